//! The journal of procedures: rows of `master:store`, family `proc`, as in HBase.
//!
//! A row key is the procedure's id (8 bytes); the column `d` has the protobuf message. The row is
//! durable before the procedure acts, and is deleted after it has ended.
//!
//! The row of the recovery of a dead server has more columns, which HBase ignores: `f` and the
//! encoded name of each region that no longer needs the logs of the server.

use std::collections::BTreeSet;
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
/// The first byte of the qualifier for a region that needs no logs any more.
const FLUSHED: u8 = b'f';

/// A procedure as it was found in the journal.
pub struct StoredProcedure {
    /// The procedure.
    pub record: Record,
    /// For the recovery of a dead server: encoded names of the regions that need its logs no more.
    pub flushed: BTreeSet<String>,
}

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

    /// Records for the recovery `id` that regions no longer need the logs. Returns when this is
    /// durable.
    ///
    /// # Errors
    /// The region's error. It is unknown then whether this was recorded.
    pub async fn record_flushed(&self, id: u64, encoded_names: &[String]) -> Result<(), engine::Error> {
        let row = id.to_be_bytes();
        let cell = |encoded: &String| {
            let qualifier = [&[FLUSHED], encoded.as_bytes()].concat();
            KeyValue::new(&row, PROCEDURES, &qualifier, LATEST_TIMESTAMP, CellType::Put, b"")
        };
        let mut cells: Vec<KeyValue> = encoded_names.iter().map(cell).collect();
        cells.sort_by(|one, other| one.view(0).qualifier().cmp(other.view(0).qualifier()));
        self.region.batch_atomic(vec![Mutation::put(row.to_vec(), cells)]).await
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
    pub async fn load(&self) -> Result<Vec<StoredProcedure>, engine::Error> {
        let mut stored = Vec::new();
        for row in self.cells().await?.chunk_by(|one, other| one.view(0).row() == other.view(0).row()) {
            let is_message = |cell: &&KeyValue| cell.view(0).qualifier() == MESSAGE;
            let Some(cell) = row.iter().find(is_message) else { continue };
            let message = match proto::Procedure::decode(cell.view(0).value) {
                Ok(message) => message,
                Err(error) => {
                    error!(row = %cell.view(0).row().escape_ascii(), %error, "cannot decode procedure; it stays in the journal");
                    continue;
                }
            };
            match Record::from_message(&message) {
                Ok(record) => stored.push(StoredProcedure { record, flushed: flushed_in(row) }),
                Err(error) => error!(%error, "cannot resume procedure; it stays in the journal"),
            }
        }
        Ok(stored)
    }

    async fn cells(&self) -> Result<Vec<KeyValue>, engine::Error> {
        let list = self.region.scan_all(&Scan::default()).await?;
        let cells = list.cells.into_iter().map(|(cell, _)| cell);
        Ok(cells.filter(|cell| cell.view(0).family() == PROCEDURES).collect())
    }
}

fn flushed_in(row: &[KeyValue]) -> BTreeSet<String> {
    let names =
        row.iter().filter_map(|cell| cell.view(0).qualifier().strip_prefix(&[FLUSHED]).map(<[u8]>::to_vec));
    names.filter_map(|name| String::from_utf8(name).ok()).collect()
}
