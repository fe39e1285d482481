//! Where procedures are kept: rows of `master:store`, family `proc`, as HBase keeps them.
//!
//! A row is the procedure's number (8 bytes), its one column `d` the protobuf message. The row is written, durable,
//! before the procedure acts, and deleted when it has ended.

use std::sync::Arc;

use cell::mutation::Mutation;
use cell::query::Scan;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use engine::Region;
use prost::Message;
use tracing::error;

use super::Record;
use crate::store::PROCEDURES;

/// The qualifier of the message.
const MESSAGE: &[u8] = b"d";

/// The procedures of a cluster, on disk.
pub struct Journal {
    region: Arc<Region>,
}

impl Journal {
    /// The journal in the region of `master:store`.
    pub fn new(region: Arc<Region>) -> Journal {
        Journal { region }
    }

    /// Writes a procedure; returns when it is durable.
    ///
    /// # Errors
    /// What the region said; the procedure may be in the journal or not.
    pub async fn put(&self, record: &Record) -> Result<(), engine::Error> {
        let row = record.id.to_be_bytes();
        let value = record.to_message().encode_to_vec();
        let cell = KeyValue::new(&row, PROCEDURES, MESSAGE, LATEST_TIMESTAMP, CellType::Put, &value);
        self.region.batch_atomic(vec![Mutation::put(row.to_vec(), vec![cell])]).await
    }

    /// Removes a procedure that has ended.
    ///
    /// # Errors
    /// What the region said; the procedure may still be in the journal.
    pub async fn remove(&self, id: u64) -> Result<(), engine::Error> {
        self.region.batch_atomic(vec![Mutation::delete(id.to_be_bytes().to_vec(), vec![])]).await
    }

    /// All procedures, oldest first. One that this version cannot read is left where it is.
    ///
    /// # Errors
    /// What the region said.
    pub async fn load(&self) -> Result<Vec<Record>, engine::Error> {
        let mut records = Vec::new();
        for cell in self.cells().await? {
            let message = match proto::Procedure::decode(cell.view(0).value) {
                Ok(message) => message,
                Err(error) => {
                    error!(row = %cell.view(0).row().escape_ascii(), %error, "an unreadable procedure is left alone");
                    continue;
                }
            };
            match Record::from_message(&message) {
                Ok(record) => records.push(record),
                Err(error) => error!(%error, "a procedure is left alone"),
            }
        }
        Ok(records)
    }

    async fn cells(&self) -> Result<Vec<KeyValue>, engine::Error> {
        let list = self.region.scan_all(&Scan::default()).await?;
        Ok(list.cells.into_iter().map(|(cell, _)| cell).collect())
    }
}
