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
        let mutations: Vec<_> = rows.iter().map(|row| self.next_mutation(row)).collect();
        let outcomes = match &mutations[..] {
            [single] => vec![self.table.mutate(single).await],
            _ => {
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

    /// A put or, now and then, a delete; in the ledger when it returns. Rows whose timestamps are the server's are
    /// only put: a delete hides puts of its own millisecond too, also those that come after it.
    fn next_mutation(&self, row: &Bytes) -> Mutation {
        let timestamps =
            if self.number.is_multiple_of(2) { Timestamps::OfServer } else { Timestamps::Versions };
        let mut ledger = self.ledger();
        let version = ledger.next_version();
        let is_delete = timestamps == Timestamps::Versions && self.chance.once_in(6);
        ledger.sending(row, (!is_delete).then_some(version));
        if self.witness == Witness::TooEarly {
            ledger.acknowledged(row);
        }
        match is_delete {
            true => cells::delete(row, version, self.chance.once_in(2)),
            false => cells::put(row, version, timestamps),
        }
    }

    fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no holder of this lock panics")
    }
}
