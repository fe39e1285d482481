//! What must hold in a cluster: continuously, and when all faults have ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use client::Client;
use master::Master;
use master::assignment::RegionState;
use master::integrity::faults_of;
use master::procedure::executor::Progress;
use regionserver::RegionServer;
use wire::meta::TableState;

use super::operator::is_side_table;
use super::{Cluster, RunningRoles};
use crate::history::History;
use crate::scheduler::Owner;
use crate::world::World;

/// The pause between two observations of the open regions.
const OBSERVATION_PERIOD: Duration = Duration::from_millis(20);

/// Checks that the cluster has recovered: all processes run, no procedure and no region is in
/// transition, and each region of an enabled table is open exactly once.
///
/// # Errors
/// The first condition that does not hold.
pub fn check_settled(cluster: &Cluster) -> Result<(), String> {
    if let Some(stopped) = cluster.processes().find(|process| !process.is_running()) {
        return Err(format!("{} does not run", stopped.name()));
    }
    let servers = region_servers(cluster)?;
    let (_, master) = cluster.active_master().ok_or("no master is active and initialized")?;
    let live = master.context().servers.live_names();
    let known: Vec<&ServerName> = servers.keys().collect();
    if live.iter().collect::<Vec<_>>() != known {
        return Err(format!("the master knows the servers {}, but {} run", names(&live), names(known)));
    }
    let procedures = master.procedures().list();
    if let Some((id, running)) = procedures.iter().find(|(_, status)| status.progress == Progress::Running) {
        return Err(format!("procedure {id} has not ended: {:?}, {:?}", running.work, running.waiting));
    }
    check_regions(&master, &servers)?;
    match master.context().integrity.faults().first() {
        Some(fault) => Err(format!("the master reports a fault: {fault}")),
        None => Ok(()),
    }
}

fn names<'a>(servers: impl IntoIterator<Item = &'a ServerName>) -> String {
    servers.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// The region servers that run, by name.
fn region_servers(cluster: &Cluster) -> Result<BTreeMap<ServerName, Arc<RegionServer>>, String> {
    let mut servers = BTreeMap::new();
    for process in &cluster.region_servers {
        let server = cluster.running.region_server(process.name());
        let server = server.ok_or_else(|| format!("{} has not registered", process.name()))?;
        servers.insert(server.name().clone(), server);
    }
    Ok(servers)
}

/// Compares the master's states with the regions that are open on the servers.
fn check_regions(master: &Master, servers: &BTreeMap<ServerName, Arc<RegionServer>>) -> Result<(), String> {
    let context = master.context();
    let mut expected: BTreeMap<String, ServerName> = BTreeMap::new();
    for (region, state) in context.assignment.all() {
        let is_enabled =
            region.table.is_meta() || context.tables.state(&region.table) == Some(TableState::Enabled);
        match state {
            RegionState::Open(server) if is_enabled => {
                expected.insert(region.encoded_name().to_string(), server);
            }
            RegionState::Closed if !is_enabled || region.is_split_parent() => {}
            RegionState::Split => {}
            other => {
                return Err(format!("region {} of {} is {other:?}", region.encoded_name(), region.table));
            }
        }
    }
    let mut open = BTreeMap::new();
    for (name, server) in servers {
        for region in server.regions().all() {
            let encoded = region.encoded_name().to_string();
            if let Some(other) = open.insert(encoded.clone(), name.clone()) {
                return Err(format!("region {encoded} is open on {other} and {name}"));
            }
        }
    }
    for (encoded, server) in &expected {
        if open.get(encoded) != Some(server) {
            return Err(format!("region {encoded} is not open on {server}, but on {:?}", open.get(encoded)));
        }
    }
    match open.iter().find(|(encoded, _)| !expected.contains_key(*encoded)) {
        Some((encoded, server)) => Err(format!("region {encoded} is open on {server}; it should be closed")),
        None => Ok(()),
    }
}

/// Checks that the regions in `hbase:meta` cover the key space of each table, and that they are
/// those of the master.
///
/// # Errors
/// A violation, or a failed read.
pub async fn check_meta(cluster: &Cluster, client: &Client) -> Result<(), String> {
    let admin = client.admin();
    let tables = admin.list_tables(None, false).await.map_err(|error| error.to_string())?;
    for table in tables {
        let regions = admin.regions(&table).await.map_err(|error| error.to_string())?;
        if regions.is_empty() {
            return Err(format!("table {table} has no regions"));
        }
        if let Some(fault) = faults_of(&table, &regions).first() {
            return Err(format!("hbase:meta: {fault}"));
        }
        let (_, master) = cluster.active_master().ok_or("no master is active")?;
        check_known(&master, &table, &regions)?;
    }
    Ok(())
}

fn check_known(master: &Master, table: &TableName, regions: &[RegionInfo]) -> Result<(), String> {
    let encoded = |regions: &[RegionInfo]| {
        let mut names: Vec<String> = regions.iter().map(|region| region.encoded_name().to_string()).collect();
        names.sort();
        names
    };
    let known = master.context().assignment.regions_of(table).into_iter();
    let known: Vec<RegionInfo> =
        known.map(|(region, _)| region).filter(|region| !region.is_split_parent()).collect();
    let (known, found) = (encoded(&known), encoded(regions));
    match known == found {
        true => Ok(()),
        false => Err(format!("{table}: the master has the regions {known:?}, hbase:meta has {found:?}")),
    }
}

/// Observes the open regions until the world ends: the sequence ids with which a region is opened
/// must not go back, except in tables that are restored. Reports closed and reopened regions to the
/// history, because their server forgets which increments it has executed.
pub fn observe(world: &Arc<World>, cluster: &Cluster, history: &Arc<History>) {
    let names = cluster.region_servers.iter().map(|process| process.name().to_string()).collect();
    let observer = Observer {
        running: cluster.running.clone(),
        names,
        history: history.clone(),
        open: BTreeMap::new(),
        opened: BTreeMap::new(),
    };
    let (scheduler, weak) = (world.scheduler().clone(), Arc::downgrade(world.scheduler()));
    scheduler.spawn(Owner::WORLD, run(observer, weak));
}

async fn run(mut observer: Observer, scheduler: Weak<crate::scheduler::Scheduler>) {
    while let Some(scheduler) = scheduler.upgrade() {
        observer.observe();
        scheduler.sleep(OBSERVATION_PERIOD).await;
    }
}

struct Observer {
    running: Arc<RunningRoles>,
    names: Vec<String>,
    history: Arc<History>,
    // Server and encoded name; the sequence id at the open.
    open: BTreeMap<(ServerName, Arc<str>), u64>,
    // The greatest sequence id with which each region was opened. The ids that were visible later
    // may be reused: those of markers are lost with the log, and no cell has them.
    opened: BTreeMap<Arc<str>, u64>,
}

impl Observer {
    fn observe(&mut self) {
        let mut open = BTreeMap::new();
        for name in &self.names {
            let Some(server) = self.running.region_server(name) else { continue };
            for region in server.regions().all() {
                let encoded = region.encoded_name().clone();
                let known = self.opened.entry(encoded.clone()).or_default();
                let key = (server.name().clone(), encoded);
                let opened = region.open_seq_id();
                // A deleted table that is restored from a snapshot has regions of the same names,
                // with the sequence ids of the snapshot.
                let may_be_restored = is_side_table(&region.info().table);
                if self.open.get(&key) != Some(&opened) && opened < *known && !may_be_restored {
                    let found = format!("{} on {}: opened at {opened} after {known}", key.1, key.0);
                    self.history.violate("sequence ids only grow", found);
                }
                *known = (*known).max(opened);
                open.insert(key, opened);
            }
        }
        let is_changed = self.open.keys().ne(open.keys());
        self.history.tick(is_changed);
        self.open = open;
    }
}
