//! The table for write probes: one region per server, and values that expire after a day.

use bytes::Bytes;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use client::{Client, Result};

use super::report::print_line;

/// Source: HBase `CanaryTool.CANARY_TABLE_FAMILY_NAME`.
const FAMILY: &[u8] = b"Test";
/// Time to live of values in seconds (`hbase.canary.write.data.ttl`).
const TTL_S: &str = "86400";
/// Minimum and maximum regions per server (`hbase.canary.write.perserver.regions.lowerLimit`,
/// `.upperLimit`).
const REGIONS_MIN: f64 = 1.0;
const REGIONS_MAX: f64 = 1.5;

/// Ensures that the table exists, is enabled, and has a suitable number of regions for the servers.
/// Recreates it if it has too few or too many.
///
/// # Errors
/// The cluster's error.
pub(super) async fn prepare(client: &Client, name: &TableName) -> Result<()> {
    let admin = client.admin();
    let servers = admin.cluster_status().await?.servers.len();
    if !admin.table_exists(name).await? {
        return create(client, name, servers).await;
    }
    if !admin.is_enabled(name).await? {
        admin.enable_table(name).await?;
    }
    let regions = admin.regions(name).await?.len() as f64;
    let fits = (servers as f64 * REGIONS_MIN..=servers as f64 * REGIONS_MAX).contains(&regions);
    if fits {
        return Ok(());
    }
    print_line(&format!("{name} has {regions} regions for {servers} region servers: recreating it"));
    admin.disable_table(name).await?;
    admin.delete_table(name).await?;
    create(client, name, servers).await
}

async fn create(client: &Client, name: &TableName, servers: usize) -> Result<()> {
    let family = FamilyDescriptor::new(FAMILY).with("VERSIONS", "1").with("TTL", TTL_S);
    let table = TableDescriptor::new(name.clone()).with_family(family);
    client.admin().create_table(&table, &split_keys(servers)).await
}

/// Split keys of eight hexadecimal digits, for regions of equal size. Source: HBase
/// `RegionSplitter.HexStringSplit`.
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
