//! What the master knows of regions, and what their servers last said of them, put together once for a page.

use std::collections::{BTreeMap, HashMap};

use cell::region::{RegionInfo, ServerName, encoded_name_of};
use cell::schema::TableName;
use master::Master;
use master::assignment::RegionState;
use web::Value;

use crate::pages::Peers;

/// Servers and regions at one moment.
pub(super) struct Cluster {
    /// By name, with what they last reported.
    pub(super) servers: Vec<(ServerName, proto::ServerLoad)>,
    /// By table and start key, without those that were split.
    pub(super) regions: Vec<Known>,
}

/// A region.
pub(super) struct Known {
    pub(super) region: RegionInfo,
    pub(super) encoded: String,
    pub(super) state: RegionState,
    pub(super) load: Load,
}

/// What a server said of a region, or of several together. Sizes are whole mebibytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) memstore_mib: u64,
    pub(super) files: u64,
    pub(super) file_mib: u64,
}

/// What the regions of a table have together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableSums {
    pub(super) regions: u64,
    pub(super) open: u64,
    pub(super) load: Load,
}

impl Load {
    pub(super) fn of(message: &proto::RegionLoad) -> Load {
        Load {
            reads: message.read_requests_count(),
            writes: message.write_requests_count(),
            memstore_mib: message.mem_store_size_mb().into(),
            files: message.storefiles().into(),
            file_mib: message.storefile_size_mb().into(),
        }
    }

    pub(super) fn add(&mut self, other: Load) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.memstore_mib += other.memstore_mib;
        self.files += other.files;
        self.file_mib += other.file_mib;
    }
}

impl Cluster {
    /// What `master` knows now.
    pub(super) fn of(master: &Master) -> Cluster {
        let context = master.context();
        let servers = context.servers.live();
        let loads: HashMap<&str, Load> = servers
            .iter()
            .flat_map(|(_, load)| &load.region_loads)
            .filter_map(|load| Some((encoded_name_of(&load.region_specifier.value)?, Load::of(load))))
            .collect();
        let known = context.assignment.all().into_iter().filter(|(_, state)| *state != RegionState::Split);
        let mut regions: Vec<Known> = known
            .map(|(region, state)| {
                let encoded = region.encoded_name();
                let load = loads.get(encoded.as_str()).copied().unwrap_or_default();
                Known { region, encoded, state, load }
            })
            .collect();
        regions.sort_by(|one, other| one.order().cmp(&other.order()));
        Cluster { servers, regions }
    }

    /// What the regions of each table have together.
    pub(super) fn by_table(&self) -> BTreeMap<&TableName, TableSums> {
        let mut tables: BTreeMap<&TableName, TableSums> = BTreeMap::new();
        for known in &self.regions {
            let sums = tables.entry(&known.region.table).or_default();
            sums.regions += 1;
            sums.open += u64::from(matches!(known.state, RegionState::Open(_)));
            sums.load.add(known.load);
        }
        tables
    }

    /// The address of the pages of the server that has a region open, if they have one.
    pub(super) fn pages_of(&self, known: &Known) -> Option<String> {
        let RegionState::Open(server) = &known.state else { return None };
        self.servers.iter().find(|(name, _)| name == server).and_then(|(name, load)| pages(name, load))
    }
}

impl Known {
    fn order(&self) -> (&TableName, &[u8], u64) {
        (&self.region.table, &self.region.start_key, self.region.region_id)
    }

    /// The server that has it or is to have it.
    pub(super) fn server(&self) -> Option<&ServerName> {
        match &self.state {
            RegionState::Open(server) | RegionState::Opening(server) | RegionState::Closing(server) => {
                Some(server)
            }
            RegionState::Closed | RegionState::FailedOpen | RegionState::Split => None,
        }
    }
}

/// The address of the pages of a server, if it has pages.
pub(super) fn pages(server: &ServerName, load: &proto::ServerLoad) -> Option<String> {
    let port = u16::try_from(load.info_server_port()).ok().filter(|port| *port > 0)?;
    Some(Peers::address(server, port))
}

/// A size of so many regions together, as their servers reported it: in whole mebibytes, and one where there is less.
pub(super) fn mebibytes(mib: u64, regions: u64) -> Value {
    let size = Value::bytes(mib << 20);
    let at_most = if mib > 0 && mib <= regions { "≤ " } else { "" };
    let text = format!("{at_most}{}", size.as_text());
    Value::id(text).titled(format!("{mib} MiB: servers report whole ones, and one for less"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_where_servers_say() {
        let server = ServerName { host: "host".into(), port: 16020, start_code: 1 };
        let load = |port| proto::ServerLoad { info_server_port: Some(port), ..proto::ServerLoad::default() };
        assert_eq!(pages(&server, &load(16030)).as_deref(), Some("http://host:16030"));
        let sixth = ServerName { host: "::1".into(), ..server.clone() };
        assert_eq!(pages(&sixth, &load(1)).as_deref(), Some("http://[::1]:1"));
        assert_eq!((pages(&server, &load(0)), pages(&server, &load(1 << 20))), (None, None));
    }
}
