//! The rows of one scanner as vectors, without a region that serves.

use std::sync::Arc;

use columnar::{Column, Vector};
use engine::error::Result;
use engine::scanner::{RegionScanner, Stopped};

use crate::merged::RowCollector;
use crate::scan::fill;

/// Reads the rows of a scanner batch by batch. The memory of a batch is bounded.
pub struct ScannedRows {
    scanner: RegionScanner,
    rows: RowCollector,
    is_exhausted: bool,
}

/// Some rows of a scanner.
pub struct ScannedBatch {
    /// Number of rows, at least one.
    pub len: usize,
    /// One vector per column.
    pub vectors: Vec<Arc<Vector>>,
}

impl ScannedRows {
    /// The rows of a scanner whose scan returns one version. Each row has a value or null in each
    /// column.
    pub fn new(scanner: RegionScanner, columns: &[Column]) -> ScannedRows {
        ScannedRows { scanner, rows: RowCollector::new(columns, 1), is_exhausted: false }
    }

    /// The next rows, in order; `None` after the last one.
    ///
    /// # Errors
    /// Those of reading files; [`Error::BadRequest`](engine::Error::BadRequest) for a value that
    /// does not fit the type of its column.
    pub async fn next(&mut self) -> Result<Option<ScannedBatch>> {
        while !self.is_exhausted {
            self.is_exhausted = fill(&mut self.scanner, &mut self.rows, None).await? == Stopped::Exhausted;
            let found = self.rows.take()?;
            if !found.keys.is_empty() {
                return Ok(Some(ScannedBatch { len: found.keys.len(), vectors: found.vectors }));
            }
        }
        Ok(None)
    }
}
