//! Flushes, compactions, alters and snapshots that nobody needs, at moments that nobody expects.

use std::sync::{Arc, Mutex};

use base::env::Env;
use cell::schema::TableName;
use client::Admin;

use crate::chance::Chance;
use crate::forms::Altered;
use crate::snapshots::Snapshots;
use crate::world::Load;

/// What is disturbed.
pub struct Disorder {
    pub tables: Vec<Arc<Mutex<Altered>>>,
    pub snapshots: Arc<Snapshots>,
    pub chance: Chance,
}

impl Disorder {
    /// Disturbs until the load ends.
    pub async fn run(self, env: Env, admin: Admin, load: Arc<Load>) {
        let chance = &self.chance;
        while !load.is_over() {
            env.clock.sleep(chance.millis(5..120)).await;
            let table = &self.tables[chance.within(0..self.tables.len() as u64) as usize];
            let name = lock(table).descriptor().name.clone();
            match chance.within(0..8) {
                0 => alter(&admin, table, chance, &load).await,
                1 => self.snapshots.step(&admin, &load).await,
                2 | 3 => rewrite(&admin, &name, Some(chance.once_in(2)), &load).await,
                _ => rewrite(&admin, &name, None, &load).await,
            }
        }
    }
}

/// Flushes a table, or compacts it, all its files or some.
async fn rewrite(admin: &Admin, table: &TableName, compact_all: Option<bool>, load: &Load) {
    let outcome = match compact_all {
        Some(all) => admin.compact(table, all).await,
        None => admin.flush(table).await,
    };
    if let Err(error) = outcome {
        load.failed("flush or compaction", &error);
    }
}

async fn alter(admin: &Admin, table: &Mutex<Altered>, chance: &Chance, load: &Load) {
    let next = lock(table).next(chance);
    match admin.modify_table(&next).await {
        Ok(()) => lock(table).done(),
        Err(error) => load.failed("alter", &error),
    }
}

fn lock(table: &Mutex<Altered>) -> std::sync::MutexGuard<'_, Altered> {
    table.lock().expect("no holder of this lock panics")
}
