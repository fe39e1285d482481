//! Flushes and compactions that nobody needs, at moments that nobody expects.

use std::sync::Arc;

use base::env::Env;
use cell::schema::TableName;
use client::Admin;

use crate::chance::Chance;
use crate::world::Load;

/// Flushes and compacts `table` until the load ends.
pub async fn run(env: Env, admin: Admin, table: TableName, chance: Chance, load: Arc<Load>) {
    while !load.is_over() {
        env.clock.sleep(chance.millis(5..120)).await;
        let outcome = match chance.within(0..4) {
            0 => admin.compact(&table, true).await,
            1 => admin.compact(&table, false).await,
            _ => admin.flush(&table).await,
        };
        if let Err(error) = outcome {
            load.failed("flush or compaction", &error);
        }
    }
}
