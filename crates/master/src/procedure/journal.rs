//! The journal of procedures: rows of `master:store`, family `proc`, as in HBase.
//!
//! A row key is the procedure's id (8 bytes); the only column, `d`, has the protobuf message. The
//! row is durable before the procedure acts, and is deleted after it has ended.

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

/// The stored procedures of a cluster.
pub struct Journal {
    region: Arc<Region>,
}

impl Journal {
    /// Opens the journal in the region of `master:store`.
    pub fn new(region: Arc<Region>) -> Journal {
        Journal { region }
    }

    /// Writes a procedure, and returns when it is durable.
    ///
    /// # Errors
    /// The region's error. It is unknown then whether the procedure is in the journal.
    pub async fn put(&self, record: &Record) -> Result<(), engine::Error> {
        let row = record.id.to_be_bytes();
        let message = record.to_message();
        debug_assert!(
            Record::from_message(&message).is_ok_and(|read| read == *record),
            "a journaled procedure can be read back"
        );
        let value = message.encode_to_vec();
        let cell = KeyValue::new(&row, PROCEDURES, MESSAGE, LATEST_TIMESTAMP, CellType::Put, &value);
        self.region.batch_atomic(vec![Mutation::put(row.to_vec(), vec![cell])]).await
    }

    /// Removes a procedure that has ended.
    ///
    /// # Errors
    /// The region's error. The procedure may still be in the journal.
    pub async fn remove(&self, id: u64) -> Result<(), engine::Error> {
        self.region.batch_atomic(vec![Mutation::delete(id.to_be_bytes().to_vec(), vec![])]).await
    }

    /// All procedures, oldest first. One that this version cannot decode is skipped and stays in
    /// the journal.
    ///
    /// # Errors
    /// The region's error.
    pub async fn load(&self) -> Result<Vec<Record>, engine::Error> {
        let mut records = Vec::new();
        for cell in self.cells().await? {
            let message = match proto::Procedure::decode(cell.view(0).value) {
                Ok(message) => message,
                Err(error) => {
                    error!(row = %cell.view(0).row().escape_ascii(), %error, "cannot decode procedure; it stays in the journal");
                    continue;
                }
            };
            match Record::from_message(&message) {
                Ok(record) => records.push(record),
                Err(error) => error!(%error, "cannot resume procedure; it stays in the journal"),
            }
        }
        Ok(records)
    }

    async fn cells(&self) -> Result<Vec<KeyValue>, engine::Error> {
        let list = self.region.scan_all(&Scan::default()).await?;
        Ok(list.cells.into_iter().map(|(cell, _)| cell).collect())
    }
}
