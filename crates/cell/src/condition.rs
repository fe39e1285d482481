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

impl ColumnTest {
    /// Whether a column whose newest value is `stored` (`None`: it has none) passes.
    ///
    /// Source: HBase `HRegion.checkAndMutateInternal`.
    pub fn passes(&self, stored: Option<&[u8]>) -> bool {
        let wants_absence = self.value.is_empty();
        match stored {
            None => wants_absence && self.operator != CompareOp::NotEqual,
            Some(stored) if wants_absence => stored.is_empty() == (self.operator != CompareOp::NotEqual),
            Some(stored) => self.operator.holds(self.value[..].cmp(stored)),
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
        test.passes(stored.map(str::as_bytes))
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
