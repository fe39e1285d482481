//! Determines what to probe. Every round queries the cluster again.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use base::env::Env;
use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use client::{Client, Error, Location};

use super::CanaryArguments;
use super::failure::Failure;
use super::probe::{Probe, ProbeKind};
use super::report::print_line;
use super::targets::Targets;
use super::write_table;

/// HBase's server name for a region that no server serves.
const NO_SERVER: &str = "null";

/// The inputs of a plan.
pub(super) struct Plan<'a> {
    pub(super) env: &'a Env,
    pub(super) client: &'a Client,
    pub(super) targets: &'a Targets,
}

/// A failure to list what the cluster has.
fn init(error: Error) -> Failure {
    Failure::Init(error.to_string())
}

fn error(error: Error) -> Failure {
    Failure::Error(error.to_string())
}

impl Plan<'_> {
    /// One probe for each ZooKeeper server of `quorum`. All of them must have ports.
    pub(super) fn zookeeper(&self, quorum: &str) -> Vec<Probe> {
        let server = |server: &str| {
            let (host, port) = server.rsplit_once(':')?;
            let kind = ProbeKind::Znode(host.to_string(), port.parse().ok()?);
            Some(Probe { server: server.to_string(), kind })
        };
        quorum.split(',').filter_map(server).collect()
    }

    /// One probe for each family of each region of the tables.
    pub(super) async fn regions(&self, arguments: &CanaryArguments) -> Result<Vec<Probe>, Failure> {
        let tables = self.tables(arguments).await?;
        let names: HashSet<String> = tables.iter().map(|table| table.name.to_string()).collect();
        if let Some((table, _)) =
            arguments.read_table_timeouts.iter().find(|(table, _)| !names.contains(table))
        {
            return Err(Failure::Usage(format!("--read-table-timeouts names {table}, which is not probed")));
        }
        let mut probes = Vec::new();
        for table in &tables {
            let regions = self.regions_of(&table.name).await?;
            probes.extend(family_probes(&regions, table, ProbeKind::ReadFamily));
        }
        Ok(probes)
    }

    /// The targeted tables, with their families. By default, all user tables except the one for
    /// write probes.
    async fn tables(&self, arguments: &CanaryArguments) -> Result<Vec<TableDescriptor>, Failure> {
        let admin = self.client.admin();
        let Targets::Names(names) = self.targets else {
            let mut tables = self.user_tables().await?;
            let is_all = matches!(self.targets, Targets::All);
            tables.retain(|table| {
                let name = table.name.to_string();
                self.targets.matches(&[&name]) && !(is_all && name == arguments.write_table)
            });
            if tables.is_empty() && !is_all {
                let targets = arguments.targets.join(" ");
                return Err(Failure::Init(format!("no table matches {targets}")));
            }
            return Ok(tables);
        };
        let mut tables = Vec::new();
        for name in names {
            let name = TableName::parse(name).map_err(|error| Failure::Error(error.to_string()))?;
            match admin.is_enabled(&name).await {
                Ok(true) => tables.push(admin.describe(&name).await.map_err(error)?),
                Ok(false) => print_line(&format!("WARN: table {name} is not enabled")),
                Err(failed @ Error::TableNotFound(_)) => return Err(error(failed)),
                Err(failed) => return Err(init(failed)),
            }
        }
        Ok(tables)
    }

    async fn user_tables(&self) -> Result<Vec<TableDescriptor>, Failure> {
        let admin = self.client.admin();
        let mut enabled = Vec::new();
        for table in admin.list_descriptors(None, false).await.map_err(init)? {
            match admin.is_enabled(&table.name).await {
                Ok(true) => enabled.push(table),
                // The table was dropped since it was listed.
                Ok(false) | Err(Error::TableNotFound(_)) => {}
                Err(error) => return Err(init(error)),
            }
        }
        Ok(enabled)
    }

    /// The regions of a table and their servers. A gap between regions counts as a region without a
    /// server.
    async fn regions_of(&self, table: &TableName) -> Result<Vec<(RegionInfo, String)>, Failure> {
        match self.client.table(table.clone()).regions().await {
            Ok(regions) => Ok(without_gaps(table, &regions)),
            Err(Error::TableNotFound(_)) => Ok(Vec::new()),
            Err(failed) => Err(error(failed)),
        }
    }

    /// One probe for a random region of each server, or for all its regions.
    pub(super) async fn servers(&self, all_regions: bool) -> Result<Vec<Probe>, Failure> {
        let tables = self.user_tables().await?;
        if let (Targets::Names(names), Some(table)) =
            (self.targets, tables.iter().find(|table| self.is_targeted(table)))
        {
            let (table, names) = (&table.name, names.join(" "));
            return Err(Failure::Usage(format!(
                "{names}: -regionserver expects names of servers, but {table} is a table"
            )));
        }
        let mut probes = Vec::new();
        for (server, regions) in self.regions_by_server(&tables).await? {
            if regions.is_empty() {
                print_line(&format!("ERROR: Regionserver not serving any regions - {server}"));
                continue;
            }
            let chosen = (self.env.random.next_u64() % regions.len() as u64) as usize;
            let one = |region: &RegionInfo| Probe {
                server: server.clone(),
                kind: ProbeKind::ReadAny(region.clone()),
            };
            match all_regions {
                true => probes.extend(regions.iter().map(one)),
                false => probes.push(one(&regions[chosen])),
            }
        }
        Ok(probes)
    }

    fn is_targeted(&self, table: &TableDescriptor) -> bool {
        self.targets.matches(&[&table.name.to_string()])
    }

    /// The targeted servers with their regions, including servers without regions.
    async fn regions_by_server(
        &self,
        tables: &[TableDescriptor],
    ) -> Result<BTreeMap<String, Vec<RegionInfo>>, Failure> {
        let status = self.client.admin().cluster_status().await.map_err(init)?;
        let mut servers: BTreeMap<String, Vec<RegionInfo>> = BTreeMap::new();
        for server in status.servers {
            let (short, long) =
                (format!("{}:{}", server.server.host, server.server.port), server.server.to_string());
            if self.targets.matches(&[&server.server.host, &short, &long]) {
                servers.insert(long, Vec::new());
            }
        }
        if servers.is_empty() {
            return Err(Failure::Init("no live region server matches".to_string()));
        }
        for table in tables {
            for (region, server) in self.regions_of(&table.name).await? {
                if let Some(regions) = servers.get_mut(&server) {
                    regions.push(region);
                }
            }
        }
        Ok(servers)
    }

    /// One probe for each family of each region of the write table. Creates the table if it does
    /// not exist.
    pub(super) async fn writes(&self, table: &str) -> Result<Vec<Probe>, Failure> {
        let name = TableName::parse(table).map_err(|error| Failure::Usage(error.to_string()))?;
        write_table::prepare(self.client, &name).await.map_err(error)?;
        let table = self.client.admin().describe(&name).await.map_err(error)?;
        let regions = self.regions_of(&name).await?;
        Ok(family_probes(&regions, &table, ProbeKind::Write))
    }
}

fn family_probes(
    regions: &[(RegionInfo, String)],
    table: &TableDescriptor,
    kind: fn(RegionInfo, Bytes) -> ProbeKind,
) -> Vec<Probe> {
    let region_probes = |(region, server): &(RegionInfo, String)| -> Vec<Probe> {
        let probe =
            |family: &Bytes| Probe { server: server.clone(), kind: kind(region.clone(), family.clone()) };
        table.families.keys().map(probe).collect()
    };
    regions.iter().flat_map(region_probes).collect()
}

/// Returns the regions in order. Each gap between them becomes a region without a server.
fn without_gaps(table: &TableName, regions: &[Arc<Location>]) -> Vec<(RegionInfo, String)> {
    let mut all = Vec::new();
    let gap = |start: &Bytes, end: &Bytes| {
        (RegionInfo::new(table.clone(), start.clone(), end.clone(), 0), NO_SERVER.to_string())
    };
    // The end of the rows covered so far; `None` after the last region of the table.
    let mut reached = Some(Bytes::new());
    for location in regions {
        let region = &location.region;
        if let Some(reached) = reached.as_ref().filter(|reached| **reached < region.start_key) {
            all.push(gap(reached, &region.start_key));
        }
        all.push((region.clone(), location.server.to_string()));
        // If regions overlap, a region may end before an earlier one.
        let end = Some(region.end_key.clone()).filter(|end| !end.is_empty());
        reached = reached.and_then(|reached| end.map(|end| end.max(reached)));
    }
    if let Some(reached) = reached {
        all.push(gap(&reached, &Bytes::new()));
    }
    all
}

#[cfg(test)]
mod tests {
    use cell::region::ServerName;

    use super::*;

    fn shown(ranges: &[(&'static str, &'static str)]) -> Vec<String> {
        let table = TableName::parse("t").unwrap();
        let location = |(start, end): &(&'static str, &'static str)| {
            let region = RegionInfo::new(table.clone(), (*start).into(), (*end).into(), 1);
            let server = ServerName { host: "h".into(), port: 1, start_code: 1 };
            Arc::new(Location::new(region, server, 1))
        };
        let regions: Vec<_> = ranges.iter().map(location).collect();
        let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        let line = |(region, server): &(RegionInfo, String)| {
            format!("{}-{} {server}", text(&region.start_key), text(&region.end_key))
        };
        without_gaps(&table, &regions).iter().map(line).collect()
    }

    #[test]
    fn rows_without_a_server_are_probed_too() {
        assert_eq!(shown(&[("", "")]), ["- h,1,1"]);
        assert_eq!(shown(&[("", "m"), ("m", "")]), ["-m h,1,1", "m- h,1,1"]);
        assert_eq!(
            shown(&[("b", "d"), ("f", "h")]),
            ["-b null", "b-d h,1,1", "d-f null", "f-h h,1,1", "h- null"]
        );
        assert_eq!(shown(&[]), ["- null"]);
    }
}
