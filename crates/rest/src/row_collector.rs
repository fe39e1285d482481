//! Rows of a response that is assembled in memory, within its limits.

use std::sync::Arc;

use base::budget::{Budget, BudgetShare};
use cell::KeyValue;
use hyper::StatusCode;

use crate::media::Media;
use crate::models::cells::CellSetWriter;
use crate::reply::{Failure, Reply, Result};

/// Rows of a response.
pub(crate) struct RowCollector {
    media: Media,
    writer: CellSetWriter,
    memory: BudgetShare,
    bytes_max: usize,
}

impl RowCollector {
    /// No rows yet; the encoded rows may have `bytes_max` bytes.
    pub(crate) fn new(media: Media, budget: &Arc<Budget>, bytes_max: usize) -> RowCollector {
        RowCollector { media, writer: CellSetWriter::new(media), memory: BudgetShare::of(budget), bytes_max }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// 413 if the response becomes too large, 503 if there is no memory.
    pub(crate) fn add(&mut self, cells: &[KeyValue]) -> Result<()> {
        let before = self.writer.len();
        self.writer.row(cells);
        if !self.memory.take_large(self.writer.len() - before) {
            return Err(Failure::line(
                StatusCode::SERVICE_UNAVAILABLE,
                "Unavailable: out of memory for responses",
            ));
        }
        match self.writer.len() > self.bytes_max {
            true => Err(Failure::line(StatusCode::PAYLOAD_TOO_LARGE, "Response is too large; use a scanner")),
            false => Ok(()),
        }
    }

    /// Adds the row of a change that was applied, whatever its size. The client would apply the
    /// change again after an error.
    pub(crate) fn add_changed(&mut self, cells: &[KeyValue]) {
        let before = self.writer.len();
        self.writer.row(cells);
        self.memory.force(self.writer.len() - before);
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.writer.rows()
    }

    /// The response.
    pub(crate) fn reply(mut self) -> Reply {
        self.writer.finish();
        Reply { memory: Some(self.memory), ..Reply::of(self.media, self.writer.take()) }
    }
}
