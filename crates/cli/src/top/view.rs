//! Which lines and columns of a look are shown, and in which order.

use std::cmp::Ordering;

use super::cluster::Look;
use super::columns::Widths;
use super::field::Field;
use super::filter::Filter;
use super::mode::Mode;
use super::record::Record;
use super::value::Case;

/// Which end of the values is on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    HighFirst,
    LowFirst,
}

impl Order {
    pub(super) fn reversed(self) -> Order {
        match self {
            Order::HighFirst => Order::LowFirst,
            Order::LowFirst => Order::HighFirst,
        }
    }
}

/// What a person chose to see.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) mode: Mode,
    /// All fields of the mode in the order chosen, and whether each is shown.
    pub(super) fields: Vec<(Field, bool)>,
    pub(super) sort: Field,
    pub(super) order: Order,
    pub(super) filters: Vec<Filter>,
    /// Columns become wider as they need it; narrower only when asked.
    pub(super) widths: Widths,
}

impl View {
    /// A mode as hbtop shows it first: what is asked for most is on top.
    pub(super) fn new(mode: Mode) -> View {
        View {
            mode,
            fields: mode.fields(),
            sort: Field::Requests,
            order: Order::HighFirst,
            filters: Vec::new(),
            widths: Widths::default(),
        }
    }

    /// The columns, in their order.
    pub(super) fn shown(&self) -> Vec<Field> {
        self.fields.iter().filter(|(_, shown)| *shown).map(|(field, _)| *field).collect()
    }

    /// Shows `fields` first and nothing else.
    pub(super) fn show_only(&mut self, fields: &[Field]) {
        let rest = self.fields.iter().filter(|(field, _)| !fields.contains(field));
        let rest: Vec<_> = rest.map(|(field, _)| (*field, false)).collect();
        self.fields = fields.iter().map(|field| (*field, true)).chain(rest).collect();
    }

    /// The lines of a look; those that compare equal stay in their natural order.
    pub(super) fn lines(&self, look: &Look) -> Vec<Record> {
        let mut lines = self.mode.records(look, &self.filters);
        lines.sort_by(|one, two| match self.order {
            Order::HighFirst => compare(two, one, self.sort),
            Order::LowFirst => compare(one, two, self.sort),
        });
        lines
    }
}

/// A record without the field is less than all others.
fn compare(one: &Record, two: &Record, field: Field) -> Ordering {
    match (one.get(field), two.get(field)) {
        (Some(one), Some(two)) => one.compare(two, Case::Matters),
        (one, two) => one.is_some().cmp(&two.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cluster::tests::{look, region, server};
    use super::*;

    fn starts(view: &View) -> Vec<String> {
        let regions =
            [region("t", "a", 0, 2), region("t", "b", 0, 1), region("t", "c", 0, 2), region("u", "d", 0, 9)];
        view.lines(&look(&[server("h", &regions)])).iter().map(|line| line.shown(Field::StartKey)).collect()
    }

    #[test]
    fn lines_are_sorted_and_equal_ones_stay() {
        let mut view = View::new(Mode::Region);
        assert_eq!(starts(&view), ["a", "b", "c", "d"]);
        view.sort = Field::StoreFiles;
        assert_eq!(starts(&view), ["d", "a", "c", "b"]);
        view.order = view.order.reversed();
        assert_eq!(starts(&view), ["b", "a", "c", "d"]);
        view.filters.push(Filter::parse("TABLE==t", &[Field::Table], Case::Matters).unwrap());
        assert_eq!(starts(&view), ["b", "a", "c"]);
    }

    #[test]
    fn chosen_fields_come_first_and_alone() {
        let mut view = View::new(Mode::Table);
        view.show_only(&[Field::Requests, Field::Table]);
        assert_eq!(view.shown(), [Field::Requests, Field::Table]);
        assert_eq!(view.fields.len(), Mode::Table.fields().len());
    }
}
