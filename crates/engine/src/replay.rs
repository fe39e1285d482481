//! Replay: puts edits of a log that are not in files yet back into the memstores.
//!
//! Edits come in log order. Some come twice, because the edits of a failed log are written again to
//! the next one. A cell that is inserted twice with one sequence id is one cell to every reader.
//! For each store, edits that its files already hold are skipped. Log markers (`wal::marker`)
//! record events of a region, such as a flush, and carry no user data. Only compaction markers have
//! an effect, and the caller, which holds the files, acts on them.
//!
//! Not here: finding and validating the entries (`wal::recovery`), and which files replace which.

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

    /// A lower limit of the sequence ids of later entries. `None`: they are not less than those of
    /// the entries that were returned, except for entries that occur twice.
    fn lowest_to_come(&self) -> Option<u64> {
        None
    }

    /// Checks that no entry of the region is missing. The region's files hold all edits up to
    /// `flushed`, so entries up to there may be missing.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if some may be lost and the loss was not accepted.
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

    fn lowest_to_come(&self) -> Option<u64> {
        self.lowest_in_later_logs()
    }
}

/// No entries: the region was closed cleanly, or is new.
pub struct NoEntries;

impl Entries for NoEntries {
    fn next(&mut self) -> BoxFuture<'_, wal::Result<Option<Entry>>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// The state of a replay, and what it needs to know of the region.
pub(crate) struct Replay<'a> {
    pub(crate) info: &'a RegionInfo,
    pub(crate) families: &'a [FamilyDescriptor],
    /// For each store, the newest edit in its files.
    pub(crate) in_files: Vec<u64>,
    /// The greatest sequence id found.
    pub(crate) highest: u64,
    /// Number of cells inserted into memstores.
    pub(crate) cells: u64,
    /// Whether one of them had tags.
    pub(crate) has_tags: bool,
    /// Sequence ids missing between entries.
    pub(crate) gaps: Gaps,
}

/// Sequence ids that are missing between entries: of writes that skipped the log, or of lost
/// entries.
#[derive(Default)]
pub(crate) struct Gaps {
    last: u64,
    /// How many ids are missing.
    pub(crate) missing: u64,
    /// The first and the last id of the first gap.
    pub(crate) first: Option<(u64, u64)>,
}

impl Gaps {
    /// Records an entry. Ids up to `in_files` are ignored.
    fn record(&mut self, seq_id: u64, in_files: u64) {
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
    /// Inserts the cells of `entry` into the active memstores of `stores`. Returns compactions to
    /// be finished.
    ///
    /// # Errors
    /// [`Error::BadRequest`] for an inconsistent entry.
    pub(crate) fn apply(&mut self, entry: &Entry, stores: &[StoreView]) -> Result<Vec<Compaction>> {
        debug_assert!(
            self.families.len() == stores.len() && self.in_files.len() == stores.len(),
            "each store has a family"
        );
        self.highest = self.highest.max(entry.key.seq_id);
        self.gaps.record(entry.key.seq_id, self.in_files.iter().copied().max().unwrap_or(0));
        let seq_id = entry.key.original_seq_id.filter(|original| *original > 0).unwrap_or(entry.key.seq_id);
        let mut compactions = Vec::new();
        for bytes in entry.key_values() {
            let (key, value, tags) = stored_parts(&bytes)?;
            if key::family(key) == marker::FAMILY {
                compactions.extend(self.compaction(&Cell { key, value, tags, seq_id })?);
            } else if let Some(store) = self.store_for(key, entry.key.seq_id) {
                stores[store].active.insert(&Cell { key, value, tags, seq_id });
                self.cells += 1;
                self.has_tags |= !tags.is_empty();
            }
        }
        Ok(compactions)
    }

    /// The compaction that a marker records, if it is one of this region.
    fn compaction(&self, cell: &Cell<'_>) -> Result<Option<Compaction>> {
        let parsed = marker::parse(cell).map_err(|error| Error::bad_request(format!("marker: {error}")))?;
        Ok(match parsed {
            Marker::Compaction(compaction) if compaction.region == self.info.encoded_name() => {
                Some(compaction)
            }
            _ => None,
        })
    }

    /// Index of the store into which the cell is replayed. `None` if the store's files have the
    /// cell already, the family was dropped, or the row is of another region (entries outlive
    /// splits and merges).
    fn store_for(&self, key: &[u8], seq_id: u64) -> Option<usize> {
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
        // 3 and 6 are repeated by the next log. Ids up to 4 are in files.
        for seq_id in [2, 3, 3, 5, 6, 6] {
            gaps.record(seq_id, 4);
        }
        assert_eq!((gaps.missing, gaps.first), (0, None));
        for seq_id in [9, 10, 12] {
            gaps.record(seq_id, 4);
        }
        assert_eq!((gaps.missing, gaps.first), (3, Some((7, 8))));
    }
}
