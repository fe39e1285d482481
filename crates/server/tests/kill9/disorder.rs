//! Flushes, compactions, alterations and snapshots at random moments.

use std::sync::{Arc, Mutex};

use base::env::Env;
use cell::schema::TableName;
use client::Admin;

use crate::choices::RandomChoices;
use crate::forms::AlteredTable;
use crate::snapshots::Snapshots;
use crate::world::LoadState;

/// The tables to disturb.
pub struct Disorder {
    pub tables: Vec<Arc<Mutex<AlteredTable>>>,
    pub snapshots: Arc<Snapshots>,
    pub choices: RandomChoices,
}

impl Disorder {
    /// Disturbs tables until the load ends.
    pub async fn run(self, env: Env, admin: Admin, load: Arc<LoadState>) {
        let choices = &self.choices;
        while !load.has_ended() {
            env.clock.sleep(choices.millis(5..120)).await;
            let table = &self.tables[choices.within(0..self.tables.len() as u64) as usize];
            let name = lock(table).descriptor().name.clone();
            match choices.within(0..8) {
                0 => alter(&admin, table, choices, &load).await,
                1 => self.snapshots.step(&admin, &load).await,
                2 | 3 => rewrite(&admin, &name, Some(choices.once_in(2)), &load).await,
                _ => rewrite(&admin, &name, None, &load).await,
            }
        }
    }
}

/// Flushes a table, or compacts all or some of its files.
async fn rewrite(admin: &Admin, table: &TableName, compact_all: Option<bool>, load: &LoadState) {
    let outcome = match compact_all {
        Some(all) => admin.compact(table, all).await,
        None => admin.flush(table).await,
    };
    if let Err(error) = outcome {
        load.record_failure("flush or compaction", &error);
    }
}

async fn alter(admin: &Admin, table: &Mutex<AlteredTable>, choices: &RandomChoices, load: &LoadState) {
    let next = lock(table).next(choices);
    match admin.modify_table(&next).await {
        Ok(()) => lock(table).record_acknowledged(),
        Err(error) => load.record_failure("alter", &error),
    }
}

fn lock(table: &Mutex<AlteredTable>) -> std::sync::MutexGuard<'_, AlteredTable> {
    table.lock().expect("no holder of this lock panics")
}
