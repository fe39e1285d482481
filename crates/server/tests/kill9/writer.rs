//! Writers: each owns some rows of a table and keeps the ledger of what the server acknowledged.

use std::sync::{Arc, Mutex};

use base::env::Env;
use bytes::Bytes;
use cell::mutation::Mutation;
use client::{Action, Table};

use crate::cells::{self, Timestamps};
use crate::chance::Chance;
use crate::ledger::Ledger;
use crate::world::Load;

/// Rows of each writer. Few, so that most writes meet older ones.
const ROWS: u64 = 300;

/// When a write is taken for acknowledged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Witness {
    /// When the server has said so.
    Honest,
    /// When it is sent: a planted error, which the check must notice.
    TooEarly,
    /// When the server has said so; but what is sent again goes under another nonce, as if the server had forgotten
    /// the first: a planted error too.
    FreshNonces,
}

/// One writer.
pub struct Writer {
    pub table: Table,
    pub ledger: Arc<Mutex<Ledger>>,
    pub number: u64,
    pub chance: Chance,
    pub witness: Witness,
    pub env: Env,
}

impl Writer {
    /// Writes until the load ends.
    pub async fn run(self, load: Arc<Load>) {
        let owner = format!("w{}", self.number);
        while !load.is_over() {
            let first = self.chance.within(0..ROWS);
            let count = if self.chance.once_in(3) { 1 } else { self.chance.within(2..60) };
            let rows: Vec<_> =
                (first..first + count).map(|number| cells::row_key(&owner, number % ROWS)).collect();
            self.write(&rows, &load).await;
            if self.chance.once_in(8) {
                self.env.clock.sleep(self.chance.millis(1..10)).await;
            }
        }
    }

    /// One write to each row.
    async fn write(&self, rows: &[Bytes], load: &Load) {
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
                Ok(()) => self.ledger().acknowledged(row),
                Err(error) => load.failed(&format!("write of {}", row.escape_ascii()), &error),
            }
        }
    }

    /// One write to a row: as one mutation, or as several that are made as one.
    async fn write_single(&self, row: &Bytes) -> client::Result<()> {
        if self.chance.once_in(2) {
            return self.table.mutate(&self.next_mutation(row)).await;
        }
        let version = self.next_version(row, true);
        self.table.mutate_row(&cells::put_in_parts(row, version, self.timestamps())).await
    }

    /// A put or, now and then, a delete; in the ledger when it returns. Rows whose timestamps are the server's are
    /// only put: a delete hides puts of its own millisecond too, also those that come after it.
    fn next_mutation(&self, row: &Bytes) -> Mutation {
        let is_delete = self.timestamps() == Timestamps::Versions && self.chance.once_in(6);
        let version = self.next_version(row, !is_delete);
        match is_delete {
            true => cells::delete(row, version, self.chance.once_in(2)),
            false => cells::put(row, version, self.timestamps()),
        }
    }

    /// A version for a put or a delete that is about to be sent.
    fn next_version(&self, row: &Bytes, is_put: bool) -> u64 {
        let mut ledger = self.ledger();
        let version = ledger.next_version();
        ledger.sending(row, is_put.then_some(version));
        if self.witness == Witness::TooEarly {
            ledger.acknowledged(row);
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
