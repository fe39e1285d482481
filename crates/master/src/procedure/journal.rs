//! The journal of procedures: rows of `master:store`, family `proc`, as in HBase.
//!
//! A row key is the procedure's id (8 bytes); the column `d` has the protobuf message. The row is
//! durable before the procedure acts. It is deleted after the procedure has ended, unless a client
//! may still ask for the outcome: then the column `o` has the message, with the outcome, until the
//! retention ends.
//!
//! The row of the recovery of a dead server has more columns: `f` and the encoded name of each
//! region that no longer needs the logs of the server. HBase ignores the columns `o` and `f`.

use std::collections::BTreeSet;
use std::sync::Arc;

use cell::mutation::Mutation;
use cell::query::Scan;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use engine::Region;
use prost::Message;
use proto::exception::JavaException;
use tracing::error;

use super::{Record, Work};
use crate::store::PROCEDURES;

/// The qualifier of the message.
const MESSAGE: &[u8] = b"d";
/// The qualifier of the message of a procedure that has ended.
const OUTCOME: &[u8] = b"o";
/// The first byte of the qualifier for a region that needs no logs any more.
const FLUSHED: u8 = b'f';

/// What a journal contains.
#[derive(Default)]
pub struct StoredProcedures {
    /// Procedures that have not ended, oldest first.
    pub unfinished: Vec<StoredProcedure>,
    /// Procedures that have ended, oldest first.
    pub ended: Vec<EndedProcedure>,
}

/// A procedure that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedProcedure {
    /// The procedure.
    pub record: Record,
    /// Set if it did not succeed.
    pub exception: Option<JavaException>,
    /// When it ended, in milliseconds since the Unix epoch.
    pub ended_ms: u64,
}

/// A procedure that has not ended.
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

    /// Replaces a procedure with its outcome.
    ///
    /// # Errors
    /// The region's error. It is unknown then which of both is in the journal.
    pub async fn end(&self, ended: &EndedProcedure) -> Result<(), engine::Error> {
        let is_recovery = matches!(ended.record.work, Work::ServerCrash { .. });
        debug_assert!(!is_recovery, "no client asks for the outcome of a recovery");
        let row = ended.record.id.to_be_bytes();
        let cell = |qualifier, kind, value: &[u8]| {
            KeyValue::new(&row, PROCEDURES, qualifier, LATEST_TIMESTAMP, kind, value)
        };
        let message = ended.to_message().encode_to_vec();
        let outcome = Mutation::put(row.to_vec(), vec![cell(OUTCOME, CellType::Put, &message)]);
        let record = Mutation::delete(row.to_vec(), vec![cell(MESSAGE, CellType::DeleteColumn, b"")]);
        self.region.batch_atomic(vec![outcome, record]).await
    }

    /// Removes a procedure that has ended.
    ///
    /// # Errors
    /// The region's error. The procedure may still be in the journal.
    pub async fn remove(&self, id: u64) -> Result<(), engine::Error> {
        self.region.batch_atomic(vec![Mutation::delete(id.to_be_bytes().to_vec(), vec![])]).await
    }

    /// All procedures. One that this version cannot decode is skipped and stays in the journal.
    ///
    /// # Errors
    /// The region's error.
    pub async fn load(&self) -> Result<StoredProcedures, engine::Error> {
        let mut stored = StoredProcedures::default();
        for row in self.cells().await?.chunk_by(|one, other| one.view(0).row() == other.view(0).row()) {
            let value = |qualifier: &[u8]| {
                let cell = row.iter().find(|cell| cell.view(0).qualifier() == qualifier);
                cell.map(|cell| cell.view(0).value)
            };
            // An outcome is newer than the record, also if a clock went back and hides the removal
            // of the record.
            if let Some(message) = value(OUTCOME) {
                stored.ended.extend(read(row, message).and_then(|message| EndedProcedure::read(&message)));
            } else if let Some(record) = value(MESSAGE)
                .and_then(|message| read(row, message))
                .and_then(|message| read_record(&message))
            {
                stored.unfinished.push(StoredProcedure { record, flushed: flushed_in(row) });
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

fn read(row: &[KeyValue], message: &[u8]) -> Option<proto::Procedure> {
    let decoded = proto::Procedure::decode(message);
    let log = |error: &prost::DecodeError| {
        let row = row.first().map(|cell| cell.view(0).row().escape_ascii().to_string());
        error!(row, %error, "cannot decode procedure; it stays in the journal");
    };
    decoded.inspect_err(log).ok()
}

fn read_record(message: &proto::Procedure) -> Option<Record> {
    let record = Record::from_message(message);
    record.inspect_err(|error| error!(%error, "cannot resume procedure; it stays in the journal")).ok()
}

impl EndedProcedure {
    fn to_message(&self) -> proto::Procedure {
        let state = match self.exception {
            None => proto::ProcedureState::Success,
            Some(_) => proto::ProcedureState::Rolledback,
        };
        proto::Procedure {
            state: state as i32,
            exception: self.exception.as_ref().map(Into::into),
            last_update: self.ended_ms,
            ..self.record.to_message()
        }
    }

    fn read(message: &proto::Procedure) -> Option<EndedProcedure> {
        let exception = message.exception.as_ref().map(JavaException::from_foreign);
        let ended_ms = message.last_update;
        read_record(message).map(|record| EndedProcedure { record, exception, ended_ms })
    }
}

fn flushed_in(row: &[KeyValue]) -> BTreeSet<String> {
    let names =
        row.iter().filter_map(|cell| cell.view(0).qualifier().strip_prefix(&[FLUSHED]).map(<[u8]>::to_vec));
    names.filter_map(|name| String::from_utf8(name).ok()).collect()
}
