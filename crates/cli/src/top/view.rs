//! The lines and columns to show, and their order.

use std::cmp::Ordering;

use super::cluster::Sample;
use super::columns::Widths;
use super::field::Field;
use super::filter::Filter;
use super::mode::Mode;
use super::record::Record;
use super::value::Case;

/// The sort order.
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

/// The user's settings of the display.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) mode: Mode,
    /// All fields of the mode in the chosen order, and whether each is shown.
    pub(super) fields: Vec<(Field, bool)>,
    pub(super) sort: Field,
    pub(super) order: Order,
    pub(super) filters: Vec<Filter>,
    /// Widths of columns. They grow automatically and shrink only on request.
    pub(super) widths: Widths,
}

impl View {
    /// The default view of a mode, as in hbtop: sorted by request rate, highest first.
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

    /// The visible columns, in their order.
    pub(super) fn visible_fields(&self) -> Vec<Field> {
        self.fields.iter().filter(|(_, shown)| *shown).map(|(field, _)| *field).collect()
    }

    /// Shows only `fields`, in this order.
    pub(super) fn show_only(&mut self, fields: &[Field]) {
        let rest = self.fields.iter().filter(|(field, _)| !fields.contains(field));
        let rest: Vec<_> = rest.map(|(field, _)| (*field, false)).collect();
        self.fields = fields.iter().map(|field| (*field, true)).chain(rest).collect();
    }

    /// The lines of a sample. Lines that compare equal keep their original order.
    pub(super) fn lines(&self, sample: &Sample) -> Vec<Record> {
        let mut lines = self.mode.records(sample, &self.filters);
        lines.sort_by(|one, two| match self.order {
            Order::HighFirst => compare(two, one, self.sort),
            Order::LowFirst => compare(one, two, self.sort),
        });
        lines
    }
}

/// Compares two records. A record without the field is less than all others.
fn compare(one: &Record, two: &Record, field: Field) -> Ordering {
    match (one.get(field), two.get(field)) {
        (Some(one), Some(two)) => one.compare(two, Case::Matters),
        (one, two) => one.is_some().cmp(&two.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cluster::tests::{region, sample, server};
    use super::*;

    fn starts(view: &View) -> Vec<String> {
        let regions =
            [region("t", "a", 0, 2), region("t", "b", 0, 1), region("t", "c", 0, 2), region("u", "d", 0, 9)];
        view.lines(&sample(&[server("h", &regions)])).iter().map(|line| line.text(Field::StartKey)).collect()
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
        assert_eq!(view.visible_fields(), [Field::Requests, Field::Table]);
        assert_eq!(view.fields.len(), Mode::Table.fields().len());
    }
}
