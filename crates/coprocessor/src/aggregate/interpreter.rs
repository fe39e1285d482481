//! Column interpreters: decoding of values to numbers, and comparing, adding and encoding numbers.

use std::cmp::Ordering;

use proto::exception::Answer;

/// A kind of numbers, like HBase's `ColumnInterpreter`. In HBase's own interpreters the types of
/// values and sums are equal.
pub(super) trait Interpreter: Send + Sync + 'static {
    /// A number.
    type Number: Clone + Send + Sync;

    /// Decodes a cell's value; `None` if the value is skipped.
    ///
    /// # Errors
    /// If the value is invalid, which ends the call.
    fn read(value: &[u8]) -> Answer<Option<Self::Number>>;

    /// Compares two numbers.
    fn compare(left: &Self::Number, right: &Self::Number) -> Ordering;

    /// Adds two numbers.
    fn add(left: &Self::Number, right: &Self::Number) -> Self::Number;

    /// Multiplies two numbers.
    fn multiply(left: &Self::Number, right: &Self::Number) -> Self::Number;

    /// The smallest number according to HBase.
    fn smallest() -> Self::Number;

    /// Encodes a number as a protobuf message.
    fn encode(number: &Self::Number) -> Vec<u8>;

    /// Java's message when it encodes a missing number.
    const NOTHING_TO_ENCODE: &str;
}

/// The sum of two optional numbers; `None` adds nothing.
pub(super) fn add<I: Interpreter>(left: Option<I::Number>, right: Option<I::Number>) -> Option<I::Number> {
    match (left, right) {
        (Some(left), Some(right)) => Some(I::add(&left, &right)),
        (one, other) => one.or(other),
    }
}
