//! Lookups in the Bloom filters of an open file.

use std::cmp::Ordering;
use std::sync::{Arc, atomic};

use cell::CellOrder;
use cell::schema::BloomType;

use super::Reader;
use crate::block::kind::BlockKind;
use crate::bloom::{BloomMeta, column_key, row_part};
use crate::source::{BlockSource, Stop};

type MayContain = std::result::Result<bool, Stop>;

/// Counts of Bloom filter lookups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterCounts {
    /// Lookups in a filter. A column takes up to two in a ROWCOL filter, because family delete
    /// markers are looked up too.
    pub lookups: u32,
    /// Lookups that proved the key absent.
    pub negatives: u32,
    /// Lookups not done because the file has no filter or its filters are corrupt.
    pub unfiltered: u32,
}

impl FilterCounts {
    /// Whether there is nothing to report.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.lookups | self.unfiltered == 0
    }

    fn count_lookup(&mut self, may_have: bool) {
        self.lookups += 1;
        self.negatives += u32::from(!may_have);
    }
}

impl std::ops::AddAssign for FilterCounts {
    fn add_assign(&mut self, other: FilterCounts) {
        self.lookups += other.lookups;
        self.negatives += other.negatives;
        self.unfiltered += other.unfiltered;
    }
}

impl Reader {
    /// Whether the file may have cells of `row` according to its Bloom filter. False is certain.
    /// Adds the lookups to `counts`.
    ///
    /// # Errors
    /// [`Stop::Miss`] if a chunk of the filter is needed.
    pub fn may_have_row(
        self: &Arc<Self>,
        row: &[u8],
        source: &dyn BlockSource,
        counts: &mut FilterCounts,
    ) -> MayContain {
        let Some(meta) = self.filter() else {
            counts.unfiltered += 1;
            return Ok(true);
        };
        match self.info.bloom {
            BloomType::Row => {}
            // In hbase:meta, row prefixes are not sorted like their rows.
            BloomType::RowPrefix if self.order() == CellOrder::Plain => {}
            _ => return Ok(true),
        }
        let part = row_part(self.info.bloom, self.info.bloom_prefix_len, row);
        let last = self.info.last_bloom_key.as_deref();
        if last.is_some_and(|last| self.order().compare_rows(part, last) == Ordering::Greater) {
            return Ok(false);
        }
        let may_hold = self.may_hold(meta, part, source)?;
        counts.count_lookup(may_hold);
        Ok(may_hold)
    }

    /// Whether the file may have cells of the column or family delete markers of the row. False is
    /// certain. Adds the lookups to `counts`, even those before a miss.
    ///
    /// # Errors
    /// [`Stop::Miss`] if a chunk of the filter is needed.
    pub fn may_have_column(
        self: &Arc<Self>,
        row: &[u8],
        qualifier: &[u8],
        source: &dyn BlockSource,
        counts: &mut FilterCounts,
    ) -> MayContain {
        if self.info.bloom != BloomType::RowCol {
            return self.may_have_row(row, source, counts);
        }
        let Some(meta) = self.filter() else {
            counts.unfiltered += 1;
            return Ok(true);
        };
        // Family delete markers have the empty qualifier.
        for qualifier in [qualifier, &[]] {
            let key = column_key(row, qualifier);
            let last = self.info.last_bloom_key.as_deref();
            let is_after_last =
                last.is_some_and(|last| self.order().compare_keys(&key, last) == Ordering::Greater);
            if is_after_last {
                continue;
            }
            let may_hold = self.may_hold(meta, &key, source)?;
            counts.count_lookup(may_hold);
            if may_hold {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the file may have family delete markers in `row`. False is certain.
    ///
    /// # Errors
    /// [`Stop::Miss`] if a chunk of the filter is needed.
    pub fn may_have_delete_family(self: &Arc<Self>, row: &[u8], source: &dyn BlockSource) -> MayContain {
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

    /// The general filter, unless a Bloom chunk of the file was corrupt.
    fn filter(&self) -> Option<&BloomMeta> {
        self.bloom.as_ref().filter(|_| !self.bloom_failed.load(atomic::Ordering::Relaxed))
    }

    fn may_hold(self: &Arc<Self>, meta: &BloomMeta, key: &[u8], source: &dyn BlockSource) -> MayContain {
        let Some(chunk) = meta.chunk_of(key) else { return Ok(false) };
        let block = self.find(chunk, BlockKind::BloomChunk, source)?;
        Ok(meta.may_hold(block.payload(), key))
    }
}
