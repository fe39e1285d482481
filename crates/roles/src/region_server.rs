//! A region server of a cluster.
//!
//! The order of its start: it waits for the active master, marks its process as alive, registers
//! with the master, publishes its znode, starts its logs, and then serves. A server registers
//! before it has logs, so that a master never finds logs of a server that it does not know.

use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, TaskClass};
use cell::query::Scan;
use cell::region::ServerName;
use cell::schema::TableName;
use client::{Client, ClientOptions};
use fs::Occupied;
use proto::exception::{JavaException, class};
use regionserver::replication_sink::table_not_found;
use regionserver::{ClusterWriter, QuotaReader};
use tracing::warn;
use wire::service::RegionServerStatusService;
use zk::servers::{MasterTracker, register_region_server};
use zk::{Coordinator, Names};

use crate::cluster_switch::ClusterSwitch;
use crate::member::Member;
use crate::remote::{ActiveMasterCaller, RPC_TIMEOUT};
use crate::watchdog;

/// The pause before another attempt to register.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Retries of a replicated mutation (`replication.sink.client.retries.number`).
const SINK_RETRIES_MAX: u32 = 4;
/// Time limit of replicated mutations (`replication.sink.client.ops.timeout`).
const SINK_TIMEOUT: Duration = Duration::from_secs(10);

/// The services of the master that is active at the time of a call.
pub fn active_master(env: &Env, coordinator: &Arc<dyn Coordinator>, names: &Names) -> ActiveMasterCaller {
    ActiveMasterCaller::follow(env, MasterTracker::new(coordinator.clone(), names), RPC_TIMEOUT)
}

/// Registers with the active master, and publishes the server in ZooKeeper. Waits for a master. The
/// result marks the process as alive; the caller keeps it until the process ends. `None` if the
/// storage has no such marks.
///
/// # Errors
/// One line that states why the process cannot be a region server.
pub async fn register(
    member: &Member,
    master: &dyn RegionServerStatusService,
) -> Result<Option<Occupied>, String> {
    let Member { env, fs, root, coordinator, names, name, info_port, .. } = member;
    let alive = watchdog::mark_alive(&**fs, root, name).await?;
    register_with_master(env, master, name).await?;
    loop {
        match register_region_server(&**coordinator, names, env, name, *info_port).await {
            Ok(()) => return Ok(alive),
            Err(error @ zk::Error::Unavailable(_)) => {
                warn!(%error, "cannot publish the server in ZooKeeper; retrying");
            }
            Err(error) => return Err(format!("cannot publish the server in ZooKeeper: {error}")),
        }
        env.clock.sleep(RETRY_PAUSE).await;
    }
}

/// Registers with the active master. Repeats the attempt until the master answers.
async fn register_with_master(
    env: &Env,
    master: &dyn RegionServerStatusService,
    name: &ServerName,
) -> Result<(), String> {
    loop {
        match regionserver::register(env, master, name).await {
            Ok(()) => return Ok(()),
            Err(error) if is_final(&error) => {
                return Err(format!("the master refused this server: {error}"));
            }
            Err(error) => warn!(%error, "cannot register with the master; retrying"),
        }
        env.clock.sleep(RETRY_PAUSE).await;
    }
}

fn is_final(error: &proto::exception::JavaException) -> bool {
    error.do_not_retry || error.is(class::CLOCK_OUT_OF_SYNC) || error.is(class::YOU_ARE_DEAD)
}

/// Reads `hbase:quota` as a client of the cluster.
pub fn quota_reader(env: &Env, coordinator: Arc<dyn Coordinator>, names: &Names) -> QuotaReader {
    let registry = client::Registry::Coordinator { coordinator, names: names.clone() };
    // The next period comes soon enough.
    let options = ClientOptions { retries_max: 3, ..ClientOptions::default() };
    let client = Client::new(env.clone(), registry, options);
    Arc::new(move || {
        let table = client.table(wire::quota::table_name());
        Box::pin(async move {
            match table.scan(Scan::default()).collect().await {
                Ok(rows) => Ok(rows.into_iter().flat_map(|row| row.cells).collect()),
                Err(error) if error.is_class(class::TABLE_NOT_FOUND) => Ok(Vec::new()),
                Err(error) => Err(error.to_string()),
            }
        })
    })
}

/// Writes mutations as a client of the cluster, for replication from other clusters.
pub fn cluster_writer(env: &Env, coordinator: Arc<dyn Coordinator>, names: &Names) -> ClusterWriter {
    let registry = client::Registry::Coordinator { coordinator, names: names.clone() };
    let options = ClientOptions {
        retries_max: SINK_RETRIES_MAX,
        operation_timeout: SINK_TIMEOUT,
        ..ClientOptions::default()
    };
    let client = Client::new(env.clone(), registry, options);
    Arc::new(move |table, mutations| {
        let of_table = client.table(table);
        Box::pin(async move {
            let written = of_table.mutate_all(mutations).await;
            written.map_err(|error| exception_of(of_table.name(), error))
        })
    })
}

fn exception_of(table: &TableName, error: client::Error) -> JavaException {
    match error {
        client::Error::TableNotFound(_) => table_not_found(table),
        client::Error::Remote(exception) if exception.is(class::TABLE_NOT_FOUND) => table_not_found(table),
        client::Error::Remote(exception) => *exception,
        client::Error::Exhausted { last, .. } => exception_of(table, *last),
        error => JavaException::io(error.to_string()),
    }
}

/// Calls `stop` with the reason when the active master shuts the cluster down: it deletes the znode
/// `running`.
pub fn stop_with_cluster(
    env: &Env,
    coordinator: Arc<dyn Coordinator>,
    names: &Names,
    stop: Arc<dyn Fn(&str) + Send + Sync>,
) {
    // It waited for the running cluster at its start.
    let (switch, clock) = (ClusterSwitch::on(names), env.clock.clone());
    env.spawn(TaskClass::Service, async move {
        if switch.turned_off(&*coordinator, &*clock).await.is_ok() {
            stop("the cluster is shutting down");
        }
    });
}
