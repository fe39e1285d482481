//! Size of a filter: the memory it needs and the cost of evaluating it on a cell.

use super::{Comparator, Compare, Filter, PageStart};

/// Estimated bytes of memory per element: its data, its state in a scan, and its list entry.
pub const ELEMENT_BYTES: usize = 512;
/// Estimated bytes of a compiled regular expression; most are smaller.
const REGEX_BYTES: usize = 16 << 10;

/// The size of a tree of filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterSize {
    /// Number of filters, including lists, plus the keys, ranges, prefixes, qualifiers and
    /// timestamps that they contain.
    pub elements: usize,
    /// Number of comparators that read all bytes of a value: regular expressions and substrings.
    pub texts: usize,
    /// Number of regular expressions among `texts`.
    pub regexes: usize,
    /// Bytes of all comparison operands.
    pub bytes: usize,
    /// Whether the tree contains a random filter.
    pub is_random: bool,
}

impl FilterSize {
    /// Estimated bytes of memory that a scan holds for this filter.
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
    /// The size of the filter and everything it contains. Takes time proportional to that.
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
    fn a_list_is_as_large_as_its_filters() {
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
        assert!(Filter::RandomRow { probability: 0.5 }.size().is_random);
    }
}
