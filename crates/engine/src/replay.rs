//! Replay: edits of a log that are not in files yet go back into memory.
//!
//! Edits come in the order of the logs, some twice (a log that failed was written again to the next one): a cell
//! inserted twice under one sequence id is one cell to every reader. Per store, what its files hold already is passed
//! over. Markers carry no data; only a compaction's is acted on, by whoever holds the files.
//!
//! Not here: finding and checking the entries (`wal::recovery`), which file follows from which.

use base::BoxFuture;
use cell::cell::stored_parts;
use cell::region::RegionInfo;
use cell::schema::FamilyDescriptor;
use cell::{Cell, key};
use wal::Entry;
use wal::marker::{self, Compaction, Marker};

use crate::error::{Error, Result};
use crate::store::StoreView;

/// The entries of one region, in the order in which they were written.
pub trait Entries: Send {
    /// The next entry; `None` at the end.
    fn next(&mut self) -> BoxFuture<'_, wal::Result<Option<Entry>>>;

    /// Whether these are all entries of the region, whose files hold all edits up to `flushed`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if some may be lost, and this was not accepted.
    fn check(&self, flushed: u64) -> Result<()> {
        let _ = flushed;
        Ok(())
    }
}

impl Entries for wal::LogReader {
    fn next(&mut self) -> BoxFuture<'_, wal::Result<Option<Entry>>> {
        Box::pin(wal::LogReader::next(self))
    }
}

impl Entries for wal::recovery::RegionReader {
    fn next(&mut self) -> BoxFuture<'_, wal::Result<Option<Entry>>> {
        Box::pin(wal::recovery::RegionReader::next(self))
    }
}

/// No entries: a region that was closed cleanly, or is new.
pub struct NoEntries;

impl Entries for NoEntries {
    fn next(&mut self) -> BoxFuture<'_, wal::Result<Option<Entry>>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// What a replay needs to know of the region.
pub(crate) struct Replay<'a> {
    pub(crate) info: &'a RegionInfo,
    pub(crate) families: &'a [FamilyDescriptor],
    /// Of each store the newest edit in its files.
    pub(crate) in_files: Vec<u64>,
    /// The greatest sequence id met.
    pub(crate) highest: u64,
    /// Cells put into memory.
    pub(crate) cells: u64,
    /// Whether one of them had tags.
    pub(crate) has_tags: bool,
    /// Sequence ids that no entry had, between those of two entries.
    pub(crate) gaps: Gaps,
}

/// Sequence ids that are missing between entries: of writes that were not to be logged, or of entries that are lost.
#[derive(Default)]
pub(crate) struct Gaps {
    last: u64,
    /// How many ids are missing.
    pub(crate) missing: u64,
    /// The first and the last one of the first gap.
    pub(crate) first: Option<(u64, u64)>,
}

impl Gaps {
    /// Notes an entry; ids up to `in_files` are of no interest.
    fn note(&mut self, seq_id: u64, in_files: u64) {
        let (from, last) = (self.last.max(in_files) + 1, self.last);
        self.last = self.last.max(seq_id);
        if last == 0 || seq_id <= from {
            return;
        }
        self.missing += seq_id - from;
        self.first.get_or_insert((from, seq_id - 1));
    }
}

impl Replay<'_> {
    /// Puts the cells of `entry` into the active memstores of `stores`; returns compactions to be finished.
    ///
    /// # Errors
    /// [`Error::BadRequest`] for an entry that contradicts itself.
    pub(crate) fn apply(&mut self, entry: &Entry, stores: &[StoreView]) -> Result<Vec<Compaction>> {
        self.highest = self.highest.max(entry.key.seq_id);
        self.gaps.note(entry.key.seq_id, self.in_files.iter().copied().max().unwrap_or(0));
        let seq_id = entry.key.original_seq_id.filter(|original| *original > 0).unwrap_or(entry.key.seq_id);
        let mut compactions = Vec::new();
        for bytes in entry.key_values() {
            let (key, value, tags) = stored_parts(&bytes)?;
            if key::family(key) == marker::FAMILY {
                compactions.extend(self.compaction(&Cell { key, value, tags, seq_id })?);
            } else if let Some(store) = self.store_wanting(key, entry.key.seq_id) {
                stores[store].active.insert(&Cell { key, value, tags, seq_id });
                self.cells += 1;
                self.has_tags |= !tags.is_empty();
            }
        }
        Ok(compactions)
    }

    /// The compaction of this region that a marker tells of.
    fn compaction(&self, cell: &Cell<'_>) -> Result<Option<Compaction>> {
        let parsed = marker::parse(cell).map_err(|error| Error::bad_request(format!("a marker: {error}")))?;
        Ok(match parsed {
            Marker::Compaction(compaction) if compaction.region == self.info.encoded_name() => {
                Some(compaction)
            }
            _ => None,
        })
    }

    /// The store that does not hold the cell yet. A family that is gone, or a row of another region (entries outlive
    /// splits and merges), has none.
    fn store_wanting(&self, key: &[u8], seq_id: u64) -> Option<usize> {
        let store = self.families.iter().position(|family| family.name == key::family(key))?;
        (seq_id > self.in_files[store] && self.info.contains(key::row(key))).then_some(store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_ids_between_entries_that_no_file_holds() {
        let mut gaps = Gaps::default();
        // Repeated in the next log; in files up to 4.
        for seq_id in [2, 3, 3, 5, 6, 6] {
            gaps.note(seq_id, 4);
        }
        assert_eq!((gaps.missing, gaps.first), (0, None));
        for seq_id in [9, 10, 12] {
            gaps.note(seq_id, 4);
        }
        assert_eq!((gaps.missing, gaps.first), (3, Some((7, 8))));
    }
}
