//! One probe: a read of a row, a write, or a read of a znode.

use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use cell::cell::CellType;
use cell::filter::Filter;
use cell::mutation::Mutation;
use cell::query::{CellSelection, FamilyColumns, Get, Scan};
use cell::region::RegionInfo;
use cell::{KeyValue, LATEST_TIMESTAMP};
use client::{Client, ScanOptions};

use super::report::OperationKind;
use crate::shell::text::binary;

/// Size of a written value (`hbase.canary.write.value.size`).
const VALUE_LEN: usize = 10;
/// Time limit for a ZooKeeper server to respond.
const ZOOKEEPER_TIMEOUT: Duration = Duration::from_secs(10);
/// The znode that is read: the parent of all of the cluster's znodes.
const ZNODE: &str = "/hbase";

/// A probe.
#[derive(Debug, Clone)]
pub(super) struct Probe {
    /// Name of the probed server, as printed.
    pub(super) server: String,
    pub(super) kind: ProbeKind,
}

/// The operation of a probe.
#[derive(Debug, Clone)]
pub(super) enum ProbeKind {
    /// Read the first row of a region, cells of one family.
    ReadFamily(RegionInfo, Bytes),
    /// Read the first row of a region, cells of any family. This probes the server, not the region.
    ReadAny(RegionInfo),
    /// Write a row to a region.
    Write(RegionInfo, Bytes),
    /// Read a znode from one server.
    Znode(String, u16),
}

impl Probe {
    pub(super) fn operation(&self) -> OperationKind {
        match self.kind {
            ProbeKind::Write(..) => OperationKind::Write,
            _ => OperationKind::Read,
        }
    }

    /// The table that the probe accesses; `None` for ZooKeeper.
    pub(super) fn table(&self) -> Option<String> {
        match &self.kind {
            ProbeKind::ReadFamily(region, _) | ProbeKind::ReadAny(region) | ProbeKind::Write(region, _) => {
                Some(region.table.to_string())
            }
            ProbeKind::Znode(..) => None,
        }
    }

    /// Runs the probe.
    ///
    /// # Errors
    /// A message for the user.
    pub(super) async fn run(&self, env: &Env, client: &Client) -> Result<(), String> {
        let result = match &self.kind {
            ProbeKind::ReadFamily(region, family) => read(client, region, Some(family)).await,
            ProbeKind::ReadAny(region) => match read(client, region, None).await {
                // The table was changed since it was listed. This is no failure of the server.
                Err(client::Error::TableNotFound(_) | client::Error::TableNotEnabled(_)) => Ok(()),
                other => other,
            },
            ProbeKind::Write(region, family) => write(env, client, region, family).await,
            ProbeKind::Znode(host, port) => return znode(env, host, *port).await,
        };
        result.map_err(|error| error.to_string())
    }

    /// The output line of a successful probe, in HBase's words.
    pub(super) fn success_line(&self, took: Duration) -> String {
        let (server, ms) = (&self.server, took.as_millis());
        match &self.kind {
            ProbeKind::ReadFamily(region, family) => {
                format!("Read from {} on {server} {} in {ms}ms", name(region), binary(family))
            }
            ProbeKind::ReadAny(region) => format!("Read from {} on {server} in {ms}ms", region.table),
            ProbeKind::Write(region, family) => {
                format!("Write to {} on {server} {} in {ms}ms", name(region), binary(family))
            }
            ProbeKind::Znode(..) => format!("Read from {ZNODE} on {server} in {ms}ms"),
        }
    }

    /// The output line of a failed probe: HBase's words and the reason.
    pub(super) fn failure_line(&self, why: &str) -> String {
        let server = &self.server;
        let failed = match &self.kind {
            ProbeKind::ReadFamily(region, family) => {
                format!(
                    "Read from {} on serverName={server}, columnFamily={} failed",
                    name(region),
                    binary(family)
                )
            }
            ProbeKind::ReadAny(region) => {
                format!("Read from {} on {server} failed, region {}", region.table, name(region))
            }
            ProbeKind::Write(region, family) => {
                format!("Write to {} on {server} {} failed", name(region), binary(family))
            }
            ProbeKind::Znode(..) => format!("Read from {ZNODE} on {server} failed"),
        };
        // Servers append stack traces to their messages.
        let why = why.lines().next().unwrap_or_default();
        format!("ERROR: {failed}: {why}")
    }
}

fn name(region: &RegionInfo) -> String {
    binary(&region.name())
}

/// Reads the first cell of one row: the row of the region's start key, even if it does not exist. A
/// table's first region has no start key, so the scan returns its first row.
async fn read(client: &Client, region: &RegionInfo, family: Option<&Bytes>) -> client::Result<()> {
    let table = client.table(region.table.clone());
    let columns = family.map(|family| FamilyColumns { family: family.clone(), qualifiers: None });
    let selection = CellSelection {
        columns: columns.into_iter().collect(),
        cache_blocks: false,
        filter: Some(Arc::new(Filter::FirstKeyOnly)),
        ..CellSelection::default()
    };
    if !region.start_key.is_empty() {
        let get = Get { row: region.start_key.clone(), selection: selection.into(), existence_only: false };
        return table.get(&get).await.map(drop);
    }
    // The stop row keeps the scan of an empty region from continuing in the next one.
    let scan = Scan { stop_row: region.end_key.clone(), selection, ..Scan::default() };
    table.scan_with(scan, ScanOptions { caching: 1, limit: 1 }).next().await.map(drop)
}

async fn write(env: &Env, client: &Client, region: &RegionInfo, family: &[u8]) -> client::Result<()> {
    let row = match region.start_key.is_empty() {
        true => Bytes::from_static(&[0]),
        false => region.start_key.clone(),
    };
    let mut value = [0; VALUE_LEN];
    env.random.fill(&mut value);
    let cell = KeyValue::new(&row, family, b"", LATEST_TIMESTAMP, CellType::Put, &value);
    client.table(region.table.clone()).mutate(&Mutation::put(row, vec![cell])).await
}

async fn znode(env: &Env, host: &str, port: u16) -> Result<(), String> {
    let servers = [(host.to_string(), port)];
    let session = zk::client::Client::connect(env, &servers, ZOOKEEPER_TIMEOUT).await;
    let mut session = session.map_err(|error| error.to_string())?;
    let data = session.get_data(ZNODE).await.map_err(|error| error.to_string());
    session.close().await;
    data.map(drop)
}

#[cfg(test)]
mod tests {
    use cell::schema::TableName;

    use super::*;

    #[test]
    fn lines_name_region_server_and_family() {
        let region = || RegionInfo::new(TableName::parse("t").unwrap(), "\u{1}".into(), Bytes::new(), 7);
        let family = Bytes::from_static(b"f");
        let probe = |kind| Probe { server: "h,1,2".into(), kind };
        let took = Duration::from_micros(3_900);
        let name = format!(r"t,\x01,7.{}.", region().encoded_name());
        let read = probe(ProbeKind::ReadFamily(region(), family.clone()));
        assert_eq!(read.success_line(took), format!("Read from {name} on h,1,2 f in 3ms"));
        assert_eq!(
            read.failure_line("gone\n\tat x"),
            format!("ERROR: Read from {name} on serverName=h,1,2, columnFamily=f failed: gone")
        );
        let write = probe(ProbeKind::Write(region(), family));
        assert_eq!(write.success_line(took), format!("Write to {name} on h,1,2 f in 3ms"));
        assert_eq!(probe(ProbeKind::ReadAny(region())).success_line(took), "Read from t on h,1,2 in 3ms");
        let znode = probe(ProbeKind::Znode("z".into(), 1));
        assert_eq!(znode.failure_line("no"), "ERROR: Read from /hbase on h,1,2 failed: no");
    }
}
