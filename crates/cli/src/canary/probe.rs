//! One question: a row of a family of a region, a write, a znode.

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

use super::report::Sort;
use crate::shell::text::binary;

/// Bytes of a value that is written (`hbase.canary.write.value.size`).
const VALUE_LEN: usize = 10;
/// Time for a ZooKeeper server to answer.
const ZOOKEEPER_TIMEOUT: Duration = Duration::from_secs(10);
/// What is read of ZooKeeper: the parent of all of the cluster's znodes.
const ZNODE: &str = "/hbase";

/// A question.
#[derive(Debug, Clone)]
pub(super) struct Probe {
    /// Who is asked, as it is told.
    pub(super) server: String,
    pub(super) what: What,
}

/// What is asked.
#[derive(Debug, Clone)]
pub(super) enum What {
    /// The first row of a region, cells of one family.
    ReadFamily(RegionInfo, Bytes),
    /// The first row of a region, whatever it has: the server is meant, not the region.
    ReadAny(RegionInfo),
    /// A row that is written to a region.
    Write(RegionInfo, Bytes),
    /// A znode of one server.
    Znode(String, u16),
}

impl Probe {
    pub(super) fn sort(&self) -> Sort {
        match self.what {
            What::Write(..) => Sort::Write,
            _ => Sort::Read,
        }
    }

    /// The table that is asked; none of ZooKeeper.
    pub(super) fn table(&self) -> Option<String> {
        match &self.what {
            What::ReadFamily(region, _) | What::ReadAny(region) | What::Write(region, _) => {
                Some(region.table.to_string())
            }
            What::Znode(..) => None,
        }
    }

    /// Asks.
    ///
    /// # Errors
    /// A line for a person.
    pub(super) async fn ask(&self, env: &Env, client: &Client) -> Result<(), String> {
        let asked = match &self.what {
            What::ReadFamily(region, family) => read(client, region, Some(family)).await,
            What::ReadAny(region) => match read(client, region, None).await {
                // Somebody changed the table meanwhile, which says nothing of the server.
                Err(client::Error::TableNotFound(_) | client::Error::TableNotEnabled(_)) => Ok(()),
                other => other,
            },
            What::Write(region, family) => write(env, client, region, family).await,
            What::Znode(host, port) => return znode(env, host, *port).await,
        };
        asked.map_err(|error| error.to_string())
    }

    /// The line of an answer; HBase's words.
    pub(super) fn answered(&self, took: Duration) -> String {
        let (server, ms) = (&self.server, took.as_millis());
        match &self.what {
            What::ReadFamily(region, family) => {
                format!("Read from {} on {server} {} in {ms}ms", name(region), binary(family))
            }
            What::ReadAny(region) => format!("Read from {} on {server} in {ms}ms", region.table),
            What::Write(region, family) => {
                format!("Write to {} on {server} {} in {ms}ms", name(region), binary(family))
            }
            What::Znode(..) => format!("Read from {ZNODE} on {server} in {ms}ms"),
        }
    }

    /// The line of a failure; HBase's words, and the reason.
    pub(super) fn failed(&self, why: &str) -> String {
        let server = &self.server;
        let failed = match &self.what {
            What::ReadFamily(region, family) => {
                format!(
                    "Read from {} on serverName={server}, columnFamily={} failed",
                    name(region),
                    binary(family)
                )
            }
            What::ReadAny(region) => {
                format!("Read from {} on {server} failed, region {}", region.table, name(region))
            }
            What::Write(region, family) => {
                format!("Write to {} on {server} {} failed", name(region), binary(family))
            }
            What::Znode(..) => format!("Read from {ZNODE} on {server} failed"),
        };
        // Servers send traces of stacks along.
        let why = why.lines().next().unwrap_or_default();
        format!("ERROR: {failed}: {why}")
    }
}

fn name(region: &RegionInfo) -> String {
    binary(&region.name())
}

/// Reads the first cell of one row. Where a region begins with a row, that is asked for, whether it is there or not; in
/// a table's first region the first row that there is.
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
    // A region without rows shall not lead on to the next one.
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
    fn lines_say_region_server_and_family() {
        let region = || RegionInfo::new(TableName::parse("t").unwrap(), "\u{1}".into(), Bytes::new(), 7);
        let family = Bytes::from_static(b"f");
        let probe = |what| Probe { server: "h,1,2".into(), what };
        let took = Duration::from_micros(3_900);
        let name = format!(r"t,\x01,7.{}.", region().encoded_name());
        let read = probe(What::ReadFamily(region(), family.clone()));
        assert_eq!(read.answered(took), format!("Read from {name} on h,1,2 f in 3ms"));
        assert_eq!(
            read.failed("gone\n\tat x"),
            format!("ERROR: Read from {name} on serverName=h,1,2, columnFamily=f failed: gone")
        );
        let write = probe(What::Write(region(), family));
        assert_eq!(write.answered(took), format!("Write to {name} on h,1,2 f in 3ms"));
        assert_eq!(probe(What::ReadAny(region())).answered(took), "Read from t on h,1,2 in 3ms");
        let znode = probe(What::Znode("z".into(), 1));
        assert_eq!(znode.failed("no"), "ERROR: Read from /hbase on h,1,2 failed: no");
    }
}
