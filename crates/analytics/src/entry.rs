//! Vectors in the block cache, and facts about the cells from which they were built.

use std::sync::Arc;

use columnar::{Column, ColumnLocation, Packed};
use engine::scanner::CachedValue;

use crate::marks::Marks;

/// Facts about all cells of a stretch, wanted or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StretchFacts {
    /// Number of rows that have a cell.
    pub(crate) rows: usize,
    /// Whether all cells are plain puts, so that the first cell of a column is its value. There are
    /// no deletes and no tags; a tag may contain the time when a cell expires.
    pub(crate) is_plain: bool,
    /// The greatest sequence id.
    pub(crate) seq_id_max: u64,
    /// The smallest and the greatest timestamp.
    pub(crate) timestamps: (i64, i64),
}

impl StretchFacts {
    /// The facts about no cells.
    pub(crate) fn none() -> StretchFacts {
        StretchFacts { rows: 0, is_plain: true, seq_id_max: 0, timestamps: (i64::MAX, i64::MIN) }
    }
}

/// What is cached for a stretch, or for one of its columns.
#[derive(Debug)]
pub(crate) enum CachedEntry {
    /// Facts about its cells, and where its rows are.
    Rows(StretchFacts, Marks),
    /// The values of a column.
    Vector(StretchFacts, Arc<Packed>),
    /// The column cannot be read from the stretch alone. A value does not fit the type of the
    /// column (newer cells elsewhere may hide it), or the values are very large.
    Unusable,
}

impl CachedEntry {
    /// Facts about the cells of the stretch.
    pub(crate) fn facts(&self) -> Option<StretchFacts> {
        match self {
            CachedEntry::Rows(facts, _) | CachedEntry::Vector(facts, _) => Some(*facts),
            CachedEntry::Unusable => None,
        }
    }
}

impl CachedValue for CachedEntry {
    fn heap_len(&self) -> usize {
        let content = match self {
            CachedEntry::Rows(_, marks) => marks.heap_len(),
            CachedEntry::Vector(_, vector) => vector.heap_len(),
            CachedEntry::Unusable => 0,
        };
        size_of::<CachedEntry>() + content
    }
}

/// Where the bounds of a file's stretches come from. Stretches from different sources may begin at
/// the same block and end at different ones, because the index replaces a catalog that can no
/// longer be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StretchSource {
    /// The catalog of the file's sidecar.
    Catalog,
    /// The index of the file's blocks.
    Index,
}

/// The name under which the cache has the entries of a column, one for each stretch of a file.
/// Without a column, the name of the entries for the rows of the stretches.
///
/// Names of different columns differ: the parts before the last one have fixed lengths or are
/// preceded by their lengths.
pub(crate) fn name(source: StretchSource, column: Option<&Column>) -> Vec<u8> {
    let mut name = vec![source as u8];
    let Some(Column { location, encoding, scale }) = column else { return name };
    name.extend([*encoding as u8, *scale]);
    let mut push = |kind: u8, numbers: &[usize], bytes: &[u8]| {
        name.push(kind);
        numbers.iter().for_each(|number| name.extend((*number as u64).to_be_bytes()));
        name.extend_from_slice(bytes);
    };
    match location {
        ColumnLocation::Cell { family, qualifier } => {
            push(0, &[family.len()], &[&family[..], qualifier].concat());
        }
        ColumnLocation::RowBytes { offset, length: None } => push(1, &[*offset], &[]),
        ColumnLocation::RowBytes { offset, length: Some(length) } => push(2, &[*offset, *length], &[]),
        ColumnLocation::RowPart { offset, separator, part } => push(3, &[*offset, *part], separator),
    }
    name
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use columnar::Encoding;

    use super::*;

    #[test]
    fn names_of_columns_differ() {
        let cell = |family: &'static str, qualifier: &'static str| ColumnLocation::Cell {
            family: family.into(),
            qualifier: qualifier.into(),
        };
        let bytes = |offset, length| ColumnLocation::RowBytes { offset, length };
        let part = |offset, separator: &'static str, part| ColumnLocation::RowPart {
            offset,
            separator: separator.into(),
            part,
        };
        let mut columns = vec![None];
        for location in [
            cell("f", "q"),
            cell("fq", ""),
            cell("", "fq"),
            bytes(0, None),
            bytes(1, None),
            bytes(0, Some(0)),
            bytes(0, Some(1)),
            bytes(1, Some(0)),
            part(0, ",", 0),
            part(0, ",", 1),
            part(1, ",", 0),
            part(0, ";", 0),
        ] {
            for encoding in Encoding::ALL {
                for scale in [0, 2] {
                    columns.push(Some(Column { location: location.clone(), encoding: *encoding, scale }));
                }
            }
        }
        let sources = [StretchSource::Catalog, StretchSource::Index];
        let all = sources.iter().flat_map(|source| columns.iter().map(|c| name(*source, c.as_ref())));
        assert_eq!(all.collect::<HashSet<_>>().len(), 2 * columns.len());
    }
}
