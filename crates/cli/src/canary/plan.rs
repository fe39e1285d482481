//! What is probed: found out from the cluster, for each round anew.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use base::env::Env;
use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use client::{Client, Error, Location};

use super::CanaryArguments;
use super::failure::Failure;
use super::probe::{Probe, What};
use super::report::say;
use super::targets::Targets;
use super::write_table;

/// Who serves a region that no server has, in HBase's words.
const NOBODY: &str = "null";

/// Where to look, and for what.
pub(super) struct Plan<'a> {
    pub(super) env: &'a Env,
    pub(super) client: &'a Client,
    pub(super) targets: &'a Targets,
}

/// The cluster cannot be asked what there is.
fn init(error: Error) -> Failure {
    Failure::Init(error.to_string())
}

fn error(error: Error) -> Failure {
    Failure::Error(error.to_string())
}

impl Plan<'_> {
    /// Each ZooKeeper server of `quorum`, where all have ports.
    pub(super) fn zookeeper(&self, quorum: &str) -> Vec<Probe> {
        let server = |server: &str| {
            let (host, port) = server.rsplit_once(':')?;
            let what = What::Znode(host.to_string(), port.parse().ok()?);
            Some(Probe { server: server.to_string(), what })
        };
        quorum.split(',').filter_map(server).collect()
    }

    /// Each family of each region of the tables.
    pub(super) async fn regions(&self, arguments: &CanaryArguments) -> Result<Vec<Probe>, Failure> {
        let tables = self.tables(arguments).await?;
        let names: HashSet<String> = tables.iter().map(|table| table.name.to_string()).collect();
        if let Some((table, _)) =
            arguments.read_table_timeouts.iter().find(|(table, _)| !names.contains(table))
        {
            return Err(Failure::Usage(format!("there is a read timeout for {table}, which is not probed")));
        }
        let mut probes = Vec::new();
        for table in &tables {
            let regions = self.regions_of(&table.name).await?;
            probes.extend(of_families(&regions, table, What::ReadFamily));
        }
        Ok(probes)
    }

    /// The tables meant, with their families. All are those of users, but for the one that is written to.
    async fn tables(&self, arguments: &CanaryArguments) -> Result<Vec<TableDescriptor>, Failure> {
        let admin = self.client.admin();
        let Targets::Names(names) = self.targets else {
            let mut tables = self.user_tables().await?;
            let is_all = matches!(self.targets, Targets::All);
            tables.retain(|table| {
                let name = table.name.to_string();
                self.targets.mean(&[&name]) && !(is_all && name == arguments.write_table)
            });
            if tables.is_empty() && !is_all {
                let told = arguments.targets.join(" ");
                return Err(Failure::Init(format!("no table matches {told}")));
            }
            return Ok(tables);
        };
        let mut tables = Vec::new();
        for name in names {
            let name = TableName::parse(name).map_err(|error| Failure::Error(error.to_string()))?;
            match admin.is_enabled(&name).await {
                Ok(true) => tables.push(admin.describe(&name).await.map_err(error)?),
                Ok(false) => say(&format!("WARN: table {name} is not enabled")),
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
                // Dropped a moment ago.
                Ok(false) | Err(Error::TableNotFound(_)) => {}
                Err(error) => return Err(init(error)),
            }
        }
        Ok(enabled)
    }

    /// The regions of a table and who has them; rows that no server has are a region of nobody's.
    async fn regions_of(&self, table: &TableName) -> Result<Vec<(RegionInfo, String)>, Failure> {
        match self.client.table(table.clone()).regions().await {
            Ok(regions) => Ok(without_gaps(table, &regions)),
            Err(Error::TableNotFound(_)) => Ok(Vec::new()),
            Err(failed) => Err(error(failed)),
        }
    }

    /// One region of each server, or all of them.
    pub(super) async fn servers(&self, all_regions: bool) -> Result<Vec<Probe>, Failure> {
        let tables = self.user_tables().await?;
        if let (Targets::Names(names), Some(table)) =
            (self.targets, tables.iter().find(|table| self.names(table)))
        {
            let (table, names) = (&table.name, names.join(" "));
            return Err(Failure::Usage(format!(
                "{names}: with -regionserver servers are named, {table} is a table"
            )));
        }
        let mut probes = Vec::new();
        for (server, regions) in self.regions_by_server(&tables).await? {
            if regions.is_empty() {
                say(&format!("ERROR: Regionserver not serving any regions - {server}"));
                continue;
            }
            let chosen = (self.env.random.next_u64() % regions.len() as u64) as usize;
            let one =
                |region: &RegionInfo| Probe { server: server.clone(), what: What::ReadAny(region.clone()) };
            match all_regions {
                true => probes.extend(regions.iter().map(one)),
                false => probes.push(one(&regions[chosen])),
            }
        }
        Ok(probes)
    }

    fn names(&self, table: &TableDescriptor) -> bool {
        self.targets.mean(&[&table.name.to_string()])
    }

    /// Servers that are meant, also those without regions.
    async fn regions_by_server(
        &self,
        tables: &[TableDescriptor],
    ) -> Result<BTreeMap<String, Vec<RegionInfo>>, Failure> {
        let status = self.client.admin().cluster_status().await.map_err(init)?;
        let mut servers: BTreeMap<String, Vec<RegionInfo>> = BTreeMap::new();
        for server in status.servers {
            let (short, long) =
                (format!("{}:{}", server.server.host, server.server.port), server.server.to_string());
            if self.targets.mean(&[&server.server.host, &short, &long]) {
                servers.insert(long, Vec::new());
            }
        }
        if servers.is_empty() {
            return Err(Failure::Init("no live region server is meant".to_string()));
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

    /// Each family of each region of the table that is written to, which is made if it is not there.
    pub(super) async fn writes(&self, table: &str) -> Result<Vec<Probe>, Failure> {
        let name = TableName::parse(table).map_err(|error| Failure::Usage(error.to_string()))?;
        write_table::prepare(self.client, &name).await.map_err(error)?;
        let table = self.client.admin().describe(&name).await.map_err(error)?;
        let regions = self.regions_of(&name).await?;
        Ok(of_families(&regions, &table, What::Write))
    }
}

fn of_families(
    regions: &[(RegionInfo, String)],
    table: &TableDescriptor,
    what: fn(RegionInfo, Bytes) -> What,
) -> Vec<Probe> {
    let of_region = |(region, server): &(RegionInfo, String)| -> Vec<Probe> {
        let probe =
            |family: &Bytes| Probe { server: server.clone(), what: what(region.clone(), family.clone()) };
        table.families.keys().map(probe).collect()
    };
    regions.iter().flat_map(of_region).collect()
}

/// Regions in order with the rows between them, which are of regions that no server has.
fn without_gaps(table: &TableName, regions: &[Arc<Location>]) -> Vec<(RegionInfo, String)> {
    let mut all = Vec::new();
    let gap = |start: &Bytes, end: &Bytes| {
        (RegionInfo::new(table.clone(), start.clone(), end.clone(), 0), NOBODY.to_string())
    };
    // The row up to which there are regions; none behind the last.
    let mut reached = Some(Bytes::new());
    for location in regions {
        let region = &location.region;
        if let Some(reached) = reached.as_ref().filter(|reached| **reached < region.start_key) {
            all.push(gap(reached, &region.start_key));
        }
        all.push((region.clone(), location.server.to_string()));
        // A region may end before one that came earlier, where regions overlap.
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
    fn rows_that_nobody_serves_are_probed_too() {
        assert_eq!(shown(&[("", "")]), ["- h,1,1"]);
        assert_eq!(shown(&[("", "m"), ("m", "")]), ["-m h,1,1", "m- h,1,1"]);
        assert_eq!(
            shown(&[("b", "d"), ("f", "h")]),
            ["-b null", "b-d h,1,1", "d-f null", "f-h h,1,1", "h- null"]
        );
        assert_eq!(shown(&[]), ["- null"]);
    }
}
