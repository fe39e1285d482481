//! What must hold of a row for a change of it to be made.

use std::sync::Arc;

use bytes::Bytes;

use crate::filter::{CompareOp, Filter};
use crate::query::TimeRange;

/// A condition on one row (`CheckAndMutate`): it is judged and the change made in one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The row; that of the change too.
    pub row: Bytes,
    /// Only cells of these times are looked at.
    pub time_range: TimeRange,
    /// What is asked of them.
    pub test: Test,
}

/// What a condition asks of the cells of its row.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// A comparison of one column's newest value.
    Column(ColumnTest),
    /// That something of the row passes this filter.
    Filter(Arc<Filter>),
}

/// A comparison of the newest value of a column.
///
/// `value` stands left: `Less` holds if `value` is less than what is stored, the other way round than in filters. An
/// empty value asks for absence: it is the same as no cell and as an empty one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnTest {
    /// The column's family.
    pub family: Bytes,
    /// The column's qualifier.
    pub qualifier: Bytes,
    /// How the two are compared.
    pub operator: CompareOp,
    /// What the stored value is compared with.
    pub value: Bytes,
}

/// The operator `NO_OP` compares nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Unknown Compare op NO_OP")]
pub struct NoComparison;

impl ColumnTest {
    /// Whether a column whose newest value is `stored` (`None`: it has none) passes.
    ///
    /// Source: HBase `HRegion.checkAndMutateInternal`.
    ///
    /// # Errors
    /// [`NoComparison`] where two values are to be compared by the operator `NO_OP`. Absence is
    /// decided without a comparison.
    pub fn passes(&self, stored: Option<&[u8]>) -> Result<bool, NoComparison> {
        let wants_absence = self.value.is_empty();
        match stored {
            None => Ok(wants_absence && self.operator != CompareOp::NotEqual),
            Some(stored) if wants_absence => Ok(stored.is_empty() == (self.operator != CompareOp::NotEqual)),
            Some(_) if self.operator == CompareOp::NoOp => Err(NoComparison),
            Some(stored) => Ok(self.operator.holds(self.value[..].cmp(stored))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::CompareOp::*;

    fn passes(value: &'static str, operator: CompareOp, stored: Option<&str>) -> bool {
        let (family, qualifier) = ("f".into(), "q".into());
        let test = ColumnTest { family, qualifier, operator, value: value.into() };
        test.passes(stored.map(str::as_bytes)).unwrap()
    }

    #[test]
    fn no_op_tests_for_absence_but_compares_nothing() {
        let test = |value: &'static str| {
            let (family, qualifier) = ("f".into(), "q".into());
            ColumnTest { family, qualifier, operator: NoOp, value: value.into() }
        };
        assert_eq!(test("").passes(None), Ok(true));
        assert_eq!(test("").passes(Some(b"")), Ok(true));
        assert_eq!(test("").passes(Some(b"5")), Ok(false));
        assert_eq!(test("5").passes(None), Ok(false));
        assert_eq!(test("5").passes(Some(b"5")), Err(NoComparison));
        assert_eq!(test("5").passes(Some(b"")), Err(NoComparison));
    }

    #[test]
    fn the_value_of_the_condition_stands_left() {
        assert!(
            passes("3", Less, Some("5")) && !passes("5", Less, Some("5")) && !passes("7", Less, Some("5"))
        );
        assert!(passes("7", Greater, Some("5")) && !passes("3", Greater, Some("5")));
        assert!(passes("5", GreaterOrEqual, Some("5")) && passes("5", LessOrEqual, Some("5")));
        assert!(passes("5", Equal, Some("5")) && !passes("5", NotEqual, Some("5")));
    }

    #[test]
    fn an_absent_cell_equals_nothing_but_the_empty_value() {
        for operator in [Less, LessOrEqual, Equal, NotEqual, GreaterOrEqual, Greater] {
            assert!(!passes("5", operator, None), "{operator:?}");
            assert_eq!(passes("", operator, None), operator != NotEqual, "{operator:?}");
            assert_eq!(passes("", operator, Some("")), operator != NotEqual, "{operator:?}");
            assert_eq!(passes("", operator, Some("5")), operator == NotEqual, "{operator:?}");
        }
    }
}
