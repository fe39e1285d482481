//! The directory `recovered.edits` of a region: edits that HBase's log splitting wrote there. They
//! are replayed when the region opens, then flushed, and the files are deleted.

use std::sync::Arc;

use base::BoxFuture;
use cell::region::RegionInfo;
use fs::{FilePath, FileSystem};
use wal::LogReader;

use crate::error::Result;
use crate::region::RegionServices;
use crate::replay::Entries;

/// The edits of a region in `recovered.edits`.
pub(crate) struct RecoveredEdits {
    fs: Arc<dyn FileSystem>,
    files: Vec<FilePath>,
    // Index of the file being read.
    current: usize,
    reader: Option<LogReader>,
}

impl RecoveredEdits {
    /// Lists the files of a region.
    ///
    /// # Errors
    /// File system errors.
    pub(crate) async fn find(services: &RegionServices, info: &RegionInfo) -> Result<RecoveredEdits> {
        let files = recovered_edits(&*services.fs, &services.root.recovered_edits_dir(info)).await?;
        Ok(RecoveredEdits { fs: services.fs.clone(), files, current: 0, reader: None })
    }

    /// The files, in the order in which they are read.
    pub(crate) fn files(&self) -> &[FilePath] {
        &self.files
    }
}

impl Entries for RecoveredEdits {
    fn next(&mut self) -> BoxFuture<'_, wal::Result<Option<wal::Entry>>> {
        Box::pin(async move {
            while let Some(path) = self.files.get(self.current) {
                let reader = match &mut self.reader {
                    Some(reader) => reader,
                    None => self.reader.insert(LogReader::open(&*self.fs, path).await?),
                };
                match reader.next().await? {
                    Some(entry) => return Ok(Some(entry)),
                    None => (self.current, self.reader) = (self.current + 1, None),
                }
            }
            Ok(None)
        })
    }

    // The sequence ids in a file are unknown before it is read.
    fn lowest_to_come(&self) -> Option<u64> {
        let unread_from = self.current + usize::from(self.reader.is_some());
        (unread_from < self.files.len()).then_some(0)
    }
}

/// Files of edits that a log split left in a region's directory, by ascending sequence id.
pub(crate) async fn recovered_edits(fs: &dyn FileSystem, dir: &FilePath) -> Result<Vec<FilePath>> {
    if fs.stat(dir).await?.is_none() {
        return Ok(Vec::new());
    }
    let mut numbered: Vec<(u64, FilePath)> = Vec::new();
    for status in fs.list(dir).await?.into_iter().filter(|status| !status.is_dir) {
        // The name is the greatest sequence id in the file. HBase marks some with a minus sign.
        if let Ok(number) = status.name.trim_start_matches('-').parse() {
            numbered.push((number, dir.join(&status.name)));
        }
    }
    numbered.sort();
    Ok(numbered.into_iter().map(|(_, path)| path).collect())
}
