//! The table of a benchmark: made, filled and put in order.

use std::time::Duration;

use base::env::Env;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use client::{Client, Error};

use super::rows::{FAMILY, Rows};

/// Between two questions whether a compaction has ended.
const ASK: Duration = Duration::from_millis(200);

/// Makes the table anew, in `regions` parts of as many rows each, its family with `attributes`.
///
/// # Errors
/// What the server says.
pub(super) async fn make(
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

/// Makes one file of what was written, so that reads meet the same whatever was written how.
///
/// # Errors
/// What the server says.
pub(crate) async fn settle(env: &Env, client: &Client, name: &TableName) -> Result<(), Error> {
    let admin = client.admin();
    admin.flush(name).await?;
    admin.compact(name, true).await?;
    // It is asked for, and begins a little later.
    env.clock.sleep(ASK).await;
    while admin.is_compacting(name).await? {
        env.clock.sleep(ASK).await;
    }
    Ok(())
}
