//! A NameNode.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, TaskClass};
use bytes::Bytes;

use super::Record;
use super::blocks::{RecoveryAttempt, ReportedNode};
use super::ipc::{self, Call, Service};
use super::journal::{Journal, Namespace};
use super::wire::{Exception, Outcome};

const STANDBY: &str = "org.apache.hadoop.ipc.StandbyException";
const RETRIABLE: &str = "org.apache.hadoop.ipc.RetriableException";
/// Calls whose results are stored in the journal.
const AT_MOST_ONCE: [&str; 4] = ["create", "rename2", "delete", "updatePipeline"];
/// Calls that a NameNode executes in safe mode.
const SAFE: [&str; 7] = [
    "getServerDefaults",
    "getFileInfo",
    "getListing",
    "getFsStats",
    "getErasureCodingPolicy",
    "renewLease",
    "fsync",
];
/// The pause between two checks of leases.
const MONITOR_PERIOD: Duration = Duration::from_secs(2);

/// How a NameNode is configured.
#[derive(Clone, Copy, Debug)]
pub struct NameNodeOptions {
    /// Port for clients and DataNodes.
    pub port: u16,
    /// The period of heartbeats of DataNodes (HDFS: `dfs.heartbeat.interval`).
    pub heartbeat: Duration,
    /// Another client may take a lease that was not renewed for this time.
    pub soft_limit: Duration,
    /// The NameNode recovers a lease that was not renewed for this time.
    pub hard_limit: Duration,
    /// A DataNode that was not heard for this time gets no blocks, and its replicas do not count.
    pub dead_after: Duration,
    /// Entries of a page of a listing (HDFS: `dfs.ls.limit`).
    pub listing_page: usize,
    /// Whether a satisfier moves replicas to where storage policies say (HDFS:
    /// `dfs.storage.policy.satisfier.mode` `external`). If not, the requests are refused.
    pub satisfier: bool,
}

impl Default for NameNodeOptions {
    /// Hadoop's defaults, except for a heartbeat each second.
    fn default() -> NameNodeOptions {
        NameNodeOptions {
            port: 8020,
            heartbeat: Duration::from_secs(1),
            soft_limit: Duration::from_secs(60),
            hard_limit: Duration::from_secs(1200),
            dead_after: Duration::from_secs(630),
            listing_page: 1000,
            satisfier: false,
        }
    }
}

/// A life of a NameNode. It is in standby until it is [activated](NameNode::activate).
pub struct NameNode {
    pub(super) env: Env,
    pub(super) options: NameNodeOptions,
    journal: Arc<Journal>,
    number: u64,
    record: Record,
    reported: Mutex<Reported>,
}

/// What a NameNode has learned since its start.
#[derive(Default)]
pub(super) struct Reported {
    /// By id.
    pub(super) nodes: BTreeMap<String, ReportedNode>,
    /// The open blocks whose DataNodes it chose, or learned from their client.
    pub(super) placed: BTreeSet<u64>,
    /// When the leases of each holder were renewed.
    pub(super) renewed: BTreeMap<String, Duration>,
    /// Leases without a renewal count from here.
    activated: Duration,
    /// The last recovery of each block.
    pub(super) recoveries: BTreeMap<u64, RecoveryAttempt>,
    /// Blocks with the DataNodes whose replicas a client found to be corrupt.
    pub(super) corrupt: BTreeSet<(u64, String)>,
    left_safe_mode: bool,
    /// Whether a call was refused in safe mode.
    refused_calls: bool,
}

impl Reported {
    /// When a holder's leases were renewed.
    pub(super) fn renewed(&self, holder: &str) -> Duration {
        self.renewed.get(holder).copied().unwrap_or(self.activated)
    }
}

/// A call while it is executed.
pub(super) struct Execution<'a> {
    pub(super) namenode: &'a NameNode,
    pub(super) names: &'a mut Namespace,
    pub(super) reported: &'a mut Reported,
    pub(super) now: Duration,
    pub(super) now_ms: u64,
}

impl Execution<'_> {
    pub(super) fn record(&self, event: &str) {
        (self.namenode.record)(event);
    }
}

impl NameNode {
    /// Starts a NameNode, in standby. It ends with its environment.
    ///
    /// # Errors
    /// If the port is in use.
    pub async fn start(
        env: &Env,
        journal: &Arc<Journal>,
        options: NameNodeOptions,
        record: Record,
    ) -> io::Result<Arc<NameNode>> {
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, options.port));
        let listener = env.net.listen(address).await?;
        let namenode = Arc::new(NameNode {
            env: env.clone(),
            options,
            journal: journal.clone(),
            number: journal.add_namenode(),
            record,
            reported: Mutex::default(),
        });
        ipc::serve(env, listener, namenode.clone());
        let (monitored, clock) = (Arc::downgrade(&namenode), env.clock.clone());
        env.spawn(TaskClass::Background, async move {
            loop {
                clock.sleep(MONITOR_PERIOD).await;
                let Some(namenode) = monitored.upgrade() else { return };
                namenode.check_leases();
            }
        });
        Ok(namenode)
    }

    /// Makes this NameNode the active one. Any other one executes no call any more.
    pub fn activate(&self) {
        let mut names = self.journal.lock();
        names.active = Some(self.number);
        let mut reported = self.lock();
        reported.activated = self.env.clock.monotonic();
        reported.renewed.clear();
        reported.recoveries.clear();
        drop((names, reported));
        (self.record)("is the active NameNode");
    }

    /// Whether this NameNode is the active one.
    pub fn is_active(&self) -> bool {
        self.journal.lock().active == Some(self.number)
    }

    fn check_leases(&self) {
        if self.is_active() {
            let _ = self.with(|execution| {
                execution.expire_leases();
                Ok(Vec::new())
            });
        }
    }

    fn with(&self, execute: impl FnOnce(&mut Execution<'_>) -> Outcome) -> Outcome {
        let (mut names, mut reported) = (self.journal.lock(), self.lock());
        let (now, now_ms) = (self.env.clock.monotonic(), self.env.clock.now_ms());
        execute(&mut Execution { namenode: self, names: &mut names, reported: &mut reported, now, now_ms })
    }

    fn execute(&self, call: &Call) -> Outcome {
        if call.method == "sendHeartbeat" {
            let is_active = self.is_active();
            return self.with(|execution| execution.heartbeat(call.decode()?, is_active));
        }
        if !self.is_active() {
            let message = "Operation category WRITE is not supported in state standby".to_owned();
            return Err((STANDBY, message));
        }
        self.with(|execution| {
            execution.check_safe_mode(&call.method)?;
            if !AT_MOST_ONCE.contains(&call.method.as_str()) {
                return execution.execute(call);
            }
            let key: (Bytes, i32) = (call.client_id.clone(), call.id);
            if let Some(result) = execution.names.results.get(&key) {
                return result.clone();
            }
            let outcome = execution.execute(call);
            // As in HDFS, a call that failed is executed again.
            if outcome.is_ok() {
                execution.names.results.insert(key, outcome.clone());
            }
            outcome
        })
    }

    /// The time until the result of a call is in the edit log.
    fn latency(&self) -> Duration {
        let random = &self.env.random;
        match random.next_u64() % 256 {
            0 => Duration::from_millis(10 + random.next_u64() % 300),
            _ => Duration::from_micros(30 + random.next_u64() % 400),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Reported> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Execution<'_> {
    /// # Errors
    /// If the NameNode does not know yet where the replicas of most blocks are.
    fn check_safe_mode(&mut self, method: &str) -> Result<(), Exception> {
        if self.reported.left_safe_mode || SAFE.contains(&method) {
            return Ok(());
        }
        let (missing, all) = self.unreported_blocks();
        // HDFS: dfs.namenode.safemode.threshold-pct 0.999.
        if missing * 1000 <= all && !self.reported.nodes.is_empty() {
            self.reported.left_safe_mode = true;
            if self.reported.refused_calls {
                self.record("leaves safe mode");
            }
            return Ok(());
        }
        if !std::mem::replace(&mut self.reported.refused_calls, true) {
            self.record(&format!("is in safe mode: {missing} of {all} blocks were not reported"));
        }
        let message = format!("SafeModeException: {missing} of {all} blocks were not reported");
        Err((RETRIABLE, message))
    }
}

impl Service for NameNode {
    fn call(&self, call: Call) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            let outcome = self.execute(&call);
            if call.method != "sendHeartbeat" {
                self.env.clock.sleep(self.latency()).await;
            }
            outcome
        })
    }
}
