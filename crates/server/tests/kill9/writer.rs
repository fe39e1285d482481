//! Writers. Each owns some rows of a table and records in the ledger what the server acknowledged.

use std::sync::{Arc, Mutex};

use base::env::Env;
use bytes::Bytes;
use cell::mutation::Mutation;
use client::{Action, Table};

use crate::cells::{self, Timestamps};
use crate::choices::RandomChoices;
use crate::ledger::Ledger;
use crate::world::LoadState;

/// Rows of each writer. There are few, so most writes replace older ones.
const ROWS: u64 = 300;

/// When a write counts as acknowledged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Witness {
    /// On the server's acknowledgement.
    Honest,
    /// When it is sent: a planted error, which the check must detect.
    TooEarly,
    /// On the server's acknowledgement, but resent operations get another nonce, as if the server
    /// had forgotten the first: also a planted error.
    FreshNonces,
}

/// A writer.
pub struct Writer {
    pub table: Table,
    pub ledger: Arc<Mutex<Ledger>>,
    pub number: u64,
    pub choices: RandomChoices,
    pub witness: Witness,
    pub env: Env,
}

impl Writer {
    /// Writes until the load ends.
    pub async fn run(self, load: Arc<LoadState>) {
        let owner = format!("w{}", self.number);
        while !load.has_ended() {
            let first = self.choices.within(0..ROWS);
            let count = if self.choices.once_in(3) { 1 } else { self.choices.within(2..60) };
            let rows: Vec<_> =
                (first..first + count).map(|number| cells::row_key(&owner, number % ROWS)).collect();
            self.write(&rows, &load).await;
            if self.choices.once_in(8) {
                self.env.clock.sleep(self.choices.millis(1..10)).await;
            }
        }
    }

    /// Writes each row once.
    async fn write(&self, rows: &[Bytes], load: &LoadState) {
        let outcomes = match rows {
            [row] => vec![self.write_single(row).await],
            _ => {
                let mutations: Vec<_> = rows.iter().map(|row| self.next_mutation(row)).collect();
                let actions = mutations.into_iter().map(Action::Mutate).collect();
                let outcomes = self.table.batch(actions).await;
                outcomes.into_iter().map(|outcome| outcome.map(drop)).collect()
            }
        };
        if self.witness == Witness::TooEarly {
            return;
        }
        for (row, outcome) in rows.iter().zip(outcomes) {
            match outcome {
                Ok(()) => self.ledger().record_acknowledged(row),
                Err(error) => load.record_failure(&format!("write of {}", row.escape_ascii()), &error),
            }
        }
    }

    /// Writes a row once, with one mutation or with several that are applied atomically.
    async fn write_single(&self, row: &Bytes) -> client::Result<()> {
        if self.choices.once_in(2) {
            return self.table.mutate(&self.next_mutation(row)).await;
        }
        let version = self.next_version(row, true);
        self.table.mutate_row(&cells::put_in_parts(row, version, self.timestamps())).await
    }

    /// Returns a put or sometimes a delete, already recorded in the ledger. Rows with server
    /// timestamps get only puts: a delete also hides puts of the same millisecond, even later ones.
    fn next_mutation(&self, row: &Bytes) -> Mutation {
        let is_delete = self.timestamps() == Timestamps::Versions && self.choices.once_in(6);
        let version = self.next_version(row, !is_delete);
        match is_delete {
            true => cells::delete(row, version, self.choices.once_in(2)),
            false => cells::put(row, version, self.timestamps()),
        }
    }

    /// Returns a version for a put or a delete that is about to be sent.
    fn next_version(&self, row: &Bytes, is_put: bool) -> u64 {
        let mut ledger = self.ledger();
        let version = ledger.next_version();
        ledger.record_sent(row, is_put.then_some(version));
        if self.witness == Witness::TooEarly {
            ledger.record_acknowledged(row);
        }
        version
    }

    fn timestamps(&self) -> Timestamps {
        if self.number.is_multiple_of(2) { Timestamps::OfServer } else { Timestamps::Versions }
    }

    fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no holder of this lock panics")
    }
}
