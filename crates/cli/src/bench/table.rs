//! The table of a benchmark: creation and compaction.

use std::time::Duration;

use base::env::Env;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use client::{Client, Error};

use super::rows::{FAMILY, Rows};

/// Interval at which the end of a compaction is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Recreates the table with `regions` regions of equal size, and `attributes` on its family.
///
/// # Errors
/// The server's error.
pub(super) async fn create(
    client: &Client,
    name: &TableName,
    rows: Rows,
    regions: u64,
    attributes: &[(String, String)],
) -> Result<(), Error> {
    let admin = client.admin();
    if admin.table_exists(name).await? {
        if admin.is_enabled(name).await? {
            admin.disable_table(name).await?;
        }
        admin.delete_table(name).await?;
    }
    let family = attributes
        .iter()
        .fold(FamilyDescriptor::new(FAMILY), |family, (attribute, value)| family.with(attribute, value));
    let table = TableDescriptor::new(name.clone()).with_family(family);
    let split_keys: Vec<_> = (1..regions).map(|at| Rows::key(rows.count * at / regions)).collect();
    admin.create_table(&table, &split_keys).await
}

/// Flushes the table and compacts it into one file per store, so that reads do not depend on how it
/// was written.
///
/// # Errors
/// The server's error.
pub async fn settle(env: &Env, client: &Client, name: &TableName) -> Result<(), Error> {
    let admin = client.admin();
    admin.flush(name).await?;
    admin.compact(name, true).await?;
    // A compaction starts some time after the request.
    env.clock.sleep(POLL_INTERVAL).await;
    while admin.is_compacting(name).await? {
        env.clock.sleep(POLL_INTERVAL).await;
    }
    Ok(())
}
