//! Conditions on a row for check-and-mutate.

use std::sync::Arc;

use bytes::Bytes;

use crate::filter::{CompareOp, Filter};
use crate::query::TimeRange;

/// A condition on one row (`CheckAndMutate`). The check and the change are one atomic step.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The row, which is also the row of the change.
    pub row: Bytes,
    /// Only cells in this time range are considered.
    pub time_range: TimeRange,
    /// The test on these cells.
    pub test: Test,
}

/// What a condition requires of the cells of its row.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// A comparison of one column's newest value.
    Column(ColumnTest),
    /// At least one cell of the row passes this filter.
    Filter(Arc<Filter>),
}

/// A comparison of the newest value of a column.
///
/// `value` is the left operand: `Less` holds if `value` is less than the stored value. In filters
/// the order is the opposite. An empty `value` tests for absence: a missing cell and an empty
/// stored value both match it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnTest {
    /// The column's family.
    pub family: Bytes,
    /// The column's qualifier.
    pub qualifier: Bytes,
    /// The comparison operator.
    pub operator: CompareOp,
    /// The value to compare with the stored one.
    pub value: Bytes,
}

/// The operator is `NO_OP`, which compares nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Unknown Compare op NO_OP")]
pub struct NoComparison;

impl ColumnTest {
    /// Whether a column with the newest value `stored` passes. `None` means that the column has no
    /// value.
    ///
    /// Source: HBase `HRegion.checkAndMutateInternal`.
    ///
    /// # Errors
    /// [`NoComparison`] if two values must be compared and the operator is `NO_OP`. A test for
    /// absence needs no comparison.
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
    fn the_value_of_the_condition_is_the_left_operand() {
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
