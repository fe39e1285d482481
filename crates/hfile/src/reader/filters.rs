//! What the Bloom filters of an open file say.

use std::cmp::Ordering;
use std::sync::{Arc, atomic};

use cell::CellOrder;
use cell::schema::BloomType;

use super::Reader;
use crate::block::kind::BlockKind;
use crate::bloom::{BloomMeta, column_key, row_part};
use crate::source::{BlockSource, Stop};

type Answer = std::result::Result<bool, Stop>;

/// How often the filters of files were asked whether they have a row or column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FiltersAsked {
    /// Looks into a filter; of a column there are two, for markers of the whole family count too.
    pub looks: u32,
    /// Those after which it was certain that there is nothing.
    pub negatives: u32,
    /// Files that would have been asked and have no filter.
    pub without: u32,
}

impl FiltersAsked {
    /// Whether there is nothing to be told.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.looks | self.without == 0
    }

    fn note_look(&mut self, may_have: bool) {
        self.looks += 1;
        self.negatives += u32::from(!may_have);
    }
}

impl std::ops::AddAssign for FiltersAsked {
    fn add_assign(&mut self, other: FiltersAsked) {
        self.looks += other.looks;
        self.negatives += other.negatives;
        self.without += other.without;
    }
}

impl Reader {
    /// Whether the file may have cells of `row`, as far as its filters say; false is certain. What was asked is added to `asked`.
    ///
    /// # Errors
    /// [`Stop::Miss`] if a chunk of the filter is needed.
    pub fn may_have_row(
        self: &Arc<Self>,
        row: &[u8],
        source: &dyn BlockSource,
        asked: &mut FiltersAsked,
    ) -> Answer {
        let Some(meta) = self.filter() else {
            asked.without += 1;
            return Ok(true);
        };
        match self.info.bloom {
            BloomType::Row => {}
            // Prefixes of rows of hbase:meta are not sorted as the rows are.
            BloomType::RowPrefix if self.order() == CellOrder::Plain => {}
            _ => return Ok(true),
        }
        let part = row_part(self.info.bloom, self.info.bloom_prefix_len, row);
        let last = self.info.last_bloom_key.as_deref();
        if last.is_some_and(|last| self.order().compare_rows(part, last) == Ordering::Greater) {
            return Ok(false);
        }
        let may_hold = self.may_hold(meta, part, source)?;
        asked.note_look(may_hold);
        Ok(may_hold)
    }

    /// Whether the file may have cells of the column, family delete markers of the row included; false is certain. What was
    /// asked is added to `asked`, also where a chunk is needed then.
    ///
    /// # Errors
    /// [`Stop::Miss`] if a chunk of the filter is needed.
    pub fn may_have_column(
        self: &Arc<Self>,
        row: &[u8],
        qualifier: &[u8],
        source: &dyn BlockSource,
        asked: &mut FiltersAsked,
    ) -> Answer {
        if self.info.bloom != BloomType::RowCol {
            return self.may_have_row(row, source, asked);
        }
        let Some(meta) = self.filter() else {
            asked.without += 1;
            return Ok(true);
        };
        // A family delete marker has the empty qualifier.
        for qualifier in [qualifier, &[]] {
            let key = column_key(row, qualifier);
            let last = self.info.last_bloom_key.as_deref();
            let is_behind_last =
                last.is_some_and(|last| self.order().compare_keys(&key, last) == Ordering::Greater);
            if is_behind_last {
                continue;
            }
            let may_hold = self.may_hold(meta, &key, source)?;
            asked.note_look(may_hold);
            if may_hold {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the file may have family delete markers in `row`; false is certain.
    ///
    /// # Errors
    /// [`Stop::Miss`] if a chunk of the filter is needed.
    pub fn may_have_delete_family(self: &Arc<Self>, row: &[u8], source: &dyn BlockSource) -> Answer {
        if self.info.delete_family_count == Some(0) {
            return Ok(false);
        }
        if self.bloom_failed.load(atomic::Ordering::Relaxed) {
            return Ok(true);
        }
        match (&self.delete_family_bloom, &self.bloom) {
            (Some(meta), _) => self.may_hold(meta, row, source),
            (None, Some(meta)) if self.info.bloom == BloomType::RowCol => {
                self.may_hold(meta, &column_key(row, &[]), source)
            }
            _ => Ok(true),
        }
    }

    /// The general filter, unless a chunk of it could not be read.
    fn filter(&self) -> Option<&BloomMeta> {
        self.bloom.as_ref().filter(|_| !self.bloom_failed.load(atomic::Ordering::Relaxed))
    }

    fn may_hold(self: &Arc<Self>, meta: &BloomMeta, key: &[u8], source: &dyn BlockSource) -> Answer {
        let Some(chunk) = meta.chunk_of(key) else { return Ok(false) };
        let block = self.find(chunk, BlockKind::BloomChunk, source)?;
        Ok(meta.may_hold(block.payload(), key))
    }
}
