//! How large a filter is: what it costs to keep it, and to ask it about a cell.

use super::{Comparator, Compare, Filter, PageStart};

/// Bytes of memory of one element, estimated: its data, what a scan keeps for it, and its place in a list.
pub const ELEMENT_BYTES: usize = 512;
/// Bytes of a compiled regular expression; most are smaller.
const REGEX_BYTES: usize = 16 << 10;

/// The size of a tree of filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterSize {
    /// Filters, lists among them, and the keys, ranges, prefixes, qualifiers and timestamps that they hold.
    pub elements: usize,
    /// Comparators that read all bytes of what they compare: regular expressions and substrings.
    pub texts: usize,
    /// Those of them that are regular expressions.
    pub regexes: usize,
    /// Bytes of all that is compared with.
    pub bytes: usize,
    /// Whether one of them chooses rows at random.
    pub is_random: bool,
}

impl FilterSize {
    /// Bytes of memory that a scan with this filter holds for it, estimated.
    pub fn memory(&self) -> usize {
        self.elements * ELEMENT_BYTES + self.regexes * REGEX_BYTES + self.bytes
    }

    fn add_compare(&mut self, compare: &Compare) {
        match &compare.comparator {
            Comparator::Regex(pattern) => {
                self.texts += 1;
                self.regexes += 1;
                self.bytes += pattern.source.len();
            }
            Comparator::Substring(text) => {
                self.texts += 1;
                self.bytes += text.len();
            }
            Comparator::Binary(value)
            | Comparator::BinaryPrefix(value)
            | Comparator::BinaryComponent { value, .. }
            | Comparator::Bit { value, .. }
            | Comparator::BigDecimal(value) => self.bytes += value.len(),
            Comparator::Long(_) | Comparator::Null => {}
        }
    }

    fn add_all<T>(&mut self, entries: &[T], len: impl Fn(&T) -> usize) {
        self.elements += entries.len();
        self.bytes += entries.iter().map(len).sum::<usize>();
    }

    fn add(&mut self, filter: &Filter) {
        self.elements += 1;
        match filter {
            Filter::List { filters, .. } => filters.iter().for_each(|filter| self.add(filter)),
            Filter::Skip(inner) | Filter::WhileMatch(inner) => self.add(inner),
            Filter::Row(compare)
            | Filter::Family(compare)
            | Filter::Qualifier(compare)
            | Filter::Value(compare)
            | Filter::ColumnValue { compare, .. } => self.add_compare(compare),
            Filter::DependentColumn { compare, .. } => {
                compare.iter().for_each(|compare| self.add_compare(compare));
            }
            Filter::SingleColumnValue(test) | Filter::SingleColumnValueExclude(test) => {
                self.add_compare(&test.compare);
            }
            Filter::Prefix(prefix) => self.bytes += prefix.as_ref().map_or(0, |prefix| prefix.len()),
            Filter::ColumnPrefix(bytes) | Filter::InclusiveStop(bytes) => self.bytes += bytes.len(),
            Filter::MultipleColumnPrefix(entries) | Filter::FirstKeyValueMatchingQualifiers(entries) => {
                self.add_all(entries, |entry| entry.len());
            }
            Filter::ColumnRange { min, max, .. } => {
                self.bytes += [min, max].into_iter().flatten().map(|bound| bound.len()).sum::<usize>();
            }
            Filter::ColumnPagination { from: PageStart::Column(column), .. } => self.bytes += column.len(),
            Filter::Timestamps { timestamps, .. } => self.add_all(timestamps, |_| size_of::<i64>()),
            Filter::RandomRow { .. } => self.is_random = true,
            Filter::FuzzyRow(keys) => self.add_all(keys, |key| 2 * key.key.len()),
            Filter::MultiRowRange(ranges) => {
                self.add_all(ranges, |range| range.start.len() + range.stop.len());
            }
            Filter::All
            | Filter::Page { .. }
            | Filter::ColumnCountGet { .. }
            | Filter::ColumnPagination { from: PageStart::Offset(_), .. }
            | Filter::FirstKeyOnly
            | Filter::KeyOnly { .. } => {}
        }
    }
}

impl Filter {
    /// How large it is with all that it holds. Takes time in proportion to that.
    pub fn size(&self) -> FilterSize {
        let mut size = FilterSize::default();
        size.add(self);
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{CompareOp, ListOperator, Pattern};

    #[test]
    fn a_list_is_as_large_as_what_it_holds() {
        let regex = Comparator::Regex(Pattern {
            source: "a+".into(),
            flags: 0,
            charset: "UTF-8".into(),
            engine: String::new(),
        });
        let of = |comparator| Filter::Value(Compare { op: CompareOp::Equal, comparator });
        let filters = vec![
            of(regex),
            of(Comparator::Substring("abc".into())),
            Filter::Skip(Box::new(Filter::Prefix(Some("12345".into())))),
            Filter::MultipleColumnPrefix(vec!["a".into(), "bc".into()]),
        ];
        let list = Filter::List { operator: ListOperator::MustPassOne, filters };
        let expected =
            FilterSize { elements: 1 + 2 + 2 + 3, texts: 2, regexes: 1, bytes: 13, is_random: false };
        assert_eq!(list.size(), expected);
        assert!(Filter::RandomRow { chance: 0.5 }.size().is_random);
    }
}
