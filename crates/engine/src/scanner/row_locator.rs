//! Locates a row in a store. If the store has only one file, the row can be located in advance, in
//! stages that prefetch memory ([`hfile::RowLocator`]).

use std::sync::Arc;

use hfile::{BlockSource, LocatedRow};

use crate::store::{StoreFile, StoreView};

/// A [`hfile::RowLocator`] for the only file of a store. Empty if the store has several files.
#[derive(Default)]
pub(crate) struct StoreRowLocator {
    in_file: Option<hfile::RowLocator>,
}

impl StoreRowLocator {
    /// Finds the block of `row` in `store`.
    pub(crate) fn new(row: &[u8], store: Option<&StoreView>, blocks: &dyn BlockSource) -> StoreRowLocator {
        let file = store.and_then(StoreView::only_file).filter(|file| file.half().is_none());
        StoreRowLocator { in_file: file.and_then(|file| hfile::RowLocator::new(file.reader(), row, blocks)) }
    }

    /// Does the next stage of locating `row`. Does nothing if the store has other files by now.
    #[inline]
    pub(crate) fn advance(&mut self, row: &[u8], store: Option<&StoreView>, blocks: &dyn BlockSource) {
        if let Some(locator) = &mut self.in_file
            && let Some(file) = store.and_then(StoreView::only_file)
            && file.reader().file_id() == locator.file_id()
        {
            locator.advance(row, file.reader(), blocks);
        }
    }

    /// The file in which the row was located.
    pub(crate) fn file_id(&self) -> Option<u64> {
        self.in_file.as_ref().map(hfile::RowLocator::file_id)
    }

    /// Finds the cells of `row` in `file`, which may be any file of the store. Uses what was
    /// located in advance if that is in this file.
    pub(crate) fn row(&mut self, row: &[u8], file: &StoreFile, blocks: &dyn BlockSource) -> LocatedRow {
        let reader: &Arc<hfile::Reader> = file.reader();
        let prepared = self.in_file.take_if(|locator| locator.file_id() == reader.file_id());
        let locator = prepared.or_else(|| hfile::RowLocator::new(reader, row, blocks));
        locator.map_or(LocatedRow::Unknown, |locator| locator.row(row, reader, blocks))
    }
}
