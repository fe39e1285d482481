//! What a column interpreter is: how values of cells are numbers, and how those are compared, added and written.

use std::cmp::Ordering;

use wire::exception::Answer;

/// Numbers of one kind. HBase's `ColumnInterpreter`, whose type of a cell's value and that of a sum are the same in all that
/// its client has.
pub(super) trait Interpreter: Send + Sync + 'static {
    /// A number.
    type Number: Clone + Send + Sync;

    /// The number that a cell's value is; `None` for those that are passed over.
    ///
    /// # Errors
    /// Of a value that ends the call.
    fn read(value: &[u8]) -> Answer<Option<Self::Number>>;

    /// The order of two numbers.
    fn compare(left: &Self::Number, right: &Self::Number) -> Ordering;

    /// Their sum.
    fn add(left: &Self::Number, right: &Self::Number) -> Self::Number;

    /// Their product.
    fn multiply(left: &Self::Number, right: &Self::Number) -> Self::Number;

    /// What HBase takes for the smallest number.
    fn smallest() -> Self::Number;

    /// The message that carries a number.
    fn encode(number: &Self::Number) -> Vec<u8>;

    /// What Java says where a number should be encoded and there is none.
    const NOTHING_TO_ENCODE: &str;
}

/// The sum of two numbers, where a missing one adds nothing.
pub(super) fn add<I: Interpreter>(left: Option<I::Number>, right: Option<I::Number>) -> Option<I::Number> {
    match (left, right) {
        (Some(left), Some(right)) => Some(I::add(&left, &right)),
        (one, other) => one.or(other),
    }
}
