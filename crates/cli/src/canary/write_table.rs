//! The table that is written to: a region for each server, values that go after a day.

use bytes::Bytes;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use client::{Client, Result};

use super::report::say;

/// Source: HBase `CanaryTool.CANARY_TABLE_FAMILY_NAME`.
const FAMILY: &[u8] = b"Test";
/// Seconds that values live (`hbase.canary.write.data.ttl`).
const TTL_S: &str = "86400";
/// Regions of a server at least and at most (`hbase.canary.write.perserver.regions.lowerLimit`, `.upperLimit`).
const REGIONS_MIN: f64 = 1.0;
const REGIONS_MAX: f64 = 1.5;

/// Makes the table if it is not there, enables it if it is not, and makes it anew if it has too few or too many
/// regions for the servers that there are.
///
/// # Errors
/// What the cluster says.
pub(super) async fn prepare(client: &Client, name: &TableName) -> Result<()> {
    let admin = client.admin();
    let servers = admin.cluster_status().await?.servers.len();
    if !admin.table_exists(name).await? {
        return make(client, name, servers).await;
    }
    if !admin.is_enabled(name).await? {
        admin.enable_table(name).await?;
    }
    let regions = admin.regions(name).await?.len() as f64;
    let fits = (servers as f64 * REGIONS_MIN..=servers as f64 * REGIONS_MAX).contains(&regions);
    if fits {
        return Ok(());
    }
    say(&format!("{name} has {regions} regions for {servers} region servers: it is made anew"));
    admin.disable_table(name).await?;
    admin.delete_table(name).await?;
    make(client, name, servers).await
}

async fn make(client: &Client, name: &TableName, servers: usize) -> Result<()> {
    let family = FamilyDescriptor::new(FAMILY).with("VERSIONS", "1").with("TTL", TTL_S);
    let table = TableDescriptor::new(name.clone()).with_family(family);
    client.admin().create_table(&table, &split_keys(servers)).await
}

/// Eight hexadecimal digits: parts of equal size. Source: HBase `RegionSplitter.HexStringSplit`.
fn split_keys(regions: usize) -> Vec<Bytes> {
    let regions = regions.max(1) as u64;
    (1..regions).map(|at| format!("{:08x}", (1u64 << 32) / regions * at).into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_region_for_each_server() {
        assert!(split_keys(0).is_empty() && split_keys(1).is_empty());
        assert_eq!(split_keys(4), ["40000000", "80000000", "c0000000"]);
    }
}
