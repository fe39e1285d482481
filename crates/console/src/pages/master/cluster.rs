//! The master's view of regions, combined with the last reports of their servers, for one page.

use std::collections::{BTreeMap, HashMap};

use cell::region::{RegionInfo, ServerName, encoded_name_of};
use cell::schema::TableName;
use master::Master;
use master::assignment::RegionState;
use web::Value;

use crate::pages::Peers;

/// Servers and regions at one moment.
pub(super) struct Cluster {
    /// Live servers with their last reports, sorted by name.
    pub(super) servers: Vec<(ServerName, proto::ServerLoad)>,
    /// Regions sorted by table and start key, without split parents.
    pub(super) regions: Vec<RegionEntry>,
}

/// A region with its state and load.
pub(super) struct RegionEntry {
    pub(super) region: RegionInfo,
    pub(super) encoded: String,
    pub(super) state: RegionState,
    pub(super) load: ReportedLoad,
}

/// Counts that a server reported for a region, or sums of them. Sizes are in whole MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedLoad {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) memstore_mib: u64,
    pub(super) files: u64,
    pub(super) file_mib: u64,
}

/// Sums over the regions of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableSums {
    pub(super) regions: u64,
    pub(super) open: u64,
    pub(super) load: ReportedLoad,
}

impl ReportedLoad {
    pub(super) fn from_report(message: &proto::RegionLoad) -> ReportedLoad {
        ReportedLoad {
            reads: message.read_requests_count(),
            writes: message.write_requests_count(),
            memstore_mib: message.mem_store_size_mb().into(),
            files: message.storefiles().into(),
            file_mib: message.storefile_size_mb().into(),
        }
    }

    pub(super) fn add(&mut self, other: ReportedLoad) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.memstore_mib += other.memstore_mib;
        self.files += other.files;
        self.file_mib += other.file_mib;
    }
}

impl Cluster {
    /// Collects the current state of `master`.
    pub(super) fn collect(master: &Master) -> Cluster {
        let context = master.context();
        let servers = context.servers.live();
        let loads: HashMap<&str, ReportedLoad> = servers
            .iter()
            .flat_map(|(_, load)| &load.region_loads)
            .filter_map(|load| {
                Some((encoded_name_of(&load.region_specifier.value)?, ReportedLoad::from_report(load)))
            })
            .collect();
        let states = context.assignment.all().into_iter().filter(|(_, state)| *state != RegionState::Split);
        let mut regions: Vec<RegionEntry> = states
            .map(|(region, state)| {
                let encoded = region.encoded_name();
                let load = loads.get(encoded.as_str()).copied().unwrap_or_default();
                RegionEntry { region, encoded, state, load }
            })
            .collect();
        regions.sort_by(|one, other| one.sort_key().cmp(&other.sort_key()));
        Cluster { servers, regions }
    }

    /// Sums for each table.
    pub(super) fn by_table(&self) -> BTreeMap<&TableName, TableSums> {
        let mut tables: BTreeMap<&TableName, TableSums> = BTreeMap::new();
        for entry in &self.regions {
            let sums = tables.entry(&entry.region.table).or_default();
            sums.regions += 1;
            sums.open += u64::from(matches!(entry.state, RegionState::Open(_)));
            sums.load.add(entry.load);
        }
        tables
    }

    /// The URL of the pages of the server that has a region open, if it has pages.
    pub(super) fn pages_url(&self, entry: &RegionEntry) -> Option<String> {
        let RegionState::Open(server) = &entry.state else { return None };
        self.servers.iter().find(|(name, _)| name == server).and_then(|(name, load)| server_url(name, load))
    }
}

impl RegionEntry {
    fn sort_key(&self) -> (&TableName, &[u8], u64) {
        (&self.region.table, &self.region.start_key, self.region.region_id)
    }

    /// The live server that has the region open, or is opening or closing it.
    pub(super) fn server(&self) -> Option<&ServerName> {
        self.state.server()
    }
}

/// The URL of a server's pages, if it has pages.
pub(super) fn server_url(server: &ServerName, load: &proto::ServerLoad) -> Option<String> {
    let port = u16::try_from(load.info_server_port()).ok().filter(|port| *port > 0)?;
    Some(Peers::address(server, port))
}

/// The size of this many regions together. Servers report whole MiB for each region, and 1 MiB for
/// any smaller size. So a small sum is shown as an upper bound.
pub(super) fn mebibytes(mib: u64, regions: u64) -> Value {
    let size = Value::bytes(mib << 20);
    let at_most = if mib > 0 && mib <= regions { "≤ " } else { "" };
    let text = format!("{at_most}{}", size.as_text());
    Value::id(text).titled(format!("{mib} MiB; servers report whole MiB, and 1 for any smaller size"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_the_reported_port() {
        let server = ServerName { host: "host".into(), port: 16020, start_code: 1 };
        let load = |port| proto::ServerLoad { info_server_port: Some(port), ..proto::ServerLoad::default() };
        assert_eq!(server_url(&server, &load(16030)).as_deref(), Some("http://host:16030"));
        let sixth = ServerName { host: "::1".into(), ..server.clone() };
        assert_eq!(server_url(&sixth, &load(1)).as_deref(), Some("http://[::1]:1"));
        assert_eq!((server_url(&server, &load(0)), server_url(&server, &load(1 << 20))), (None, None));
    }
}
