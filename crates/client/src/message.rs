//! Rows, and decoding them from responses.

use bytes::Bytes;
use cell::KeyValue;
use cell::codec::{CellBlockReader, Codec};
use wire::convert::from_proto;

use crate::error::{Error, Result};

/// The cells of a row (or of a part of one), in key order. Empty if the row has none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// The cells. Cells of one response share its memory.
    pub cells: Vec<KeyValue>,
}

impl Row {
    /// The row's key; empty if there are no cells.
    pub fn key(&self) -> &[u8] {
        self.cells.first().map_or(&[], |cell| cell.view(0).row())
    }

    /// Whether the row has no cells.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The value of the newest version of a column.
    pub fn value(&self, family: &[u8], qualifier: &[u8]) -> Option<&[u8]> {
        let is_column = |cell: &cell::Cell<'_>| cell.family() == family && cell.qualifier() == qualifier;
        self.cells.iter().map(|cell| cell.view(0)).find(is_column).map(|cell| cell.value)
    }
}

/// Decodes the cells of responses: inline cells, and the cell block, which is read sequentially.
pub(crate) struct Cells(CellBlockReader);

impl Cells {
    /// The cells without their tags.
    pub(crate) fn of(block: Bytes) -> Cells {
        Cells::in_codec(Codec::KeyValue, block)
    }

    pub(crate) fn in_codec(codec: Codec, block: Bytes) -> Cells {
        Cells(codec.read(block))
    }

    /// The next `count` cells of the block.
    pub(crate) fn take(&mut self, count: usize) -> Result<Vec<KeyValue>> {
        // Limit the allocation: the count is untrusted.
        let mut cells = Vec::with_capacity(count.min(self.0.remaining() / 16));
        for _ in 0..count {
            let cell = self.0.next().ok_or_else(|| Error::Malformed("truncated cell block".into()))?;
            cells.push(cell.map_err(|error| Error::Malformed(error.to_string()))?);
        }
        Ok(cells)
    }

    /// The cells of one result.
    pub(crate) fn row(&mut self, result: &proto::Result) -> Result<Row> {
        let cells =
            from_proto::result(result, &mut self.0).map_err(|error| Error::Malformed(error.to_string()))?;
        Ok(Row { cells })
    }
}
