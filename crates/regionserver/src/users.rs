//! Per-user accounting: the requests and resource usage of each user by host, and optionally the
//! latencies.
//!
//! A connection looks up its user and host once, when it is opened; its calls then count without a
//! lookup. Users remain listed after their connections are closed. The numbers of users and of
//! hosts are bounded, because a client can claim any name. Beyond the bounds, all users (or hosts)
//! share one entry.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::metrics::Counts;
use engine::instruments::{GetSample, Operation, Usage};
use rpc::ConnectionInfo;

/// Maximum number of users with an entry of their own, and of hosts per user.
const USERS_MAX: usize = 1000;
const HOSTS_MAX: usize = 100;
/// Longest user name, in bytes, that gets an entry of its own.
const NAME_LEN_MAX: usize = 128;
/// The name of the shared entry.
const OTHERS: &str = "others";

base::instruments! {
    /// Latencies of a user's operations. Metric names are the suffixes of HBase's names, after
    /// `User_U_metric_`.
    pub struct UserTimes in "RegionServer,sub=Users" {
        /// Latency of Gets; each Get of a batch counts.
        get: Times = "get",
        /// Latency of puts and of batches of puts.
        put: Times = "put",
        /// Latency of deletes and of batches of deletes.
        delete: Times = "delete",
        /// Latency of increments.
        increment: Times = "increment",
        /// Latency of appends.
        append: Times = "append",
        /// Latency of scan calls.
        scan: Times = "scanTime",
    }
}

/// All users of a server.
pub struct Users {
    begun: Duration,
    are_timed: bool,
    by_name: Mutex<BTreeMap<Arc<str>, Arc<User>>>,
}

/// One user.
pub struct User {
    // None if latencies are not measured.
    times: Option<UserTimes>,
    hosts: Mutex<BTreeMap<Arc<str>, Arc<Counts<HostCounts>>>>,
}

base::counts! {
    /// Requests of a user from one host, and the resources that they used.
    struct HostCounts {
        reads,
        writes,
        filtered_reads,
        read_units,
        write_units,
        work_nanos,
    }
}

/// The client of a connection: its user, and the host that it connects from.
pub struct ClientIdentity {
    connection: Arc<ConnectionInfo>,
    user: Arc<User>,
    host: Arc<Counts<HostCounts>>,
}

impl Users {
    /// Starts without users; `now` is a time of the monotonic clock. `are_timed` enables the
    /// measurement of latencies (`hbase.regionserver.user.metrics.enabled`).
    pub fn new(are_timed: bool, now: Duration) -> Users {
        Users { begun: now, are_timed, by_name: Mutex::default() }
    }

    /// The client at the other end of `connection`.
    pub fn identify(&self, connection: &Arc<ConnectionInfo>) -> ClientIdentity {
        let user = self.user(connection.user().unwrap_or_default());
        let host = user.host(connection.peer.ip());
        ClientIdentity { connection: connection.clone(), user, host }
    }

    fn user(&self, name: &str) -> Arc<User> {
        let name = if name.len() <= NAME_LEN_MAX { name } else { OTHERS };
        let mut by_name = lock(&self.by_name);
        get_or_shared(&mut by_name, name, USERS_MAX, || {
            let times = self.are_timed.then(|| UserTimes::begin(self.begun));
            Arc::new(User { times, hosts: Mutex::default() })
        })
    }

    /// All users, by name.
    pub fn all(&self) -> Vec<(Arc<str>, Arc<User>)> {
        lock(&self.by_name).iter().map(|(name, user)| (name.clone(), user.clone())).collect()
    }

    /// Requests by user and host, for the report to the master.
    pub(crate) fn loads(&self) -> Vec<proto::UserLoad> {
        let load = |(name, user): (Arc<str>, Arc<User>)| proto::UserLoad {
            user_name: name.to_string(),
            client_metrics: user.clients(),
        };
        self.all().into_iter().map(load).collect()
    }
}

impl User {
    /// Latencies of the user's operations, if they are measured.
    pub fn times(&self) -> Option<&UserTimes> {
        self.times.as_ref()
    }

    /// Resources that the user has used, from all hosts.
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for counts in lock(&self.hosts).values() {
            usage += Usage {
                read_units: counts.get(|of| &of.read_units),
                write_units: counts.get(|of| &of.write_units),
                work_nanos: counts.get(|of| &of.work_nanos),
            };
        }
        usage
    }

    fn host(&self, address: IpAddr) -> Arc<Counts<HostCounts>> {
        get_or_shared(&mut lock(&self.hosts), &address.to_string(), HOSTS_MAX, Arc::default)
    }

    fn clients(&self) -> Vec<proto::ClientMetrics> {
        let metrics = |(host, counts): (&Arc<str>, &Arc<Counts<HostCounts>>)| proto::ClientMetrics {
            host_name: host.to_string(),
            read_requests_count: Some(counts.get(|of| &of.reads)),
            write_requests_count: Some(counts.get(|of| &of.writes)),
            filtered_requests_count: Some(counts.get(|of| &of.filtered_reads)),
        };
        lock(&self.hosts).iter().map(metrics).collect()
    }
}

impl ClientIdentity {
    /// The name of the user.
    pub(crate) fn user(&self) -> Option<&str> {
        self.connection.user()
    }

    /// Records `gets` Gets, at least one, that took `took` each.
    #[inline]
    pub(crate) fn record_gets(&self, gets: u32, took: Duration) {
        if let Some(times) = &self.user.times {
            times.get.record_many(took, gets);
        }
        self.host.add(|of| &of.reads, gets.into());
    }

    /// Records a successful `Get` call.
    #[inline]
    pub(crate) fn record_get(&self, get: &GetSample) {
        if let Some(times) = &self.user.times {
            times.get.record_in(get.took, get.area);
        }
        if let Some(own) = self.host.within(get.area) {
            own.reads.add(1);
            own.read_units.add(get.read_units);
            own.work_nanos.add(get.work_nanos);
        }
    }

    /// Records a scan call: its duration, the rows that it returned, and the rows that filters
    /// dropped.
    pub(crate) fn record_scan(&self, took: Duration, rows: u64, filtered: u64) {
        if let Some(times) = &self.user.times {
            times.scan.record(took);
        }
        self.host.add(|of| &of.reads, rows);
        self.host.add(|of| &of.filtered_reads, filtered);
    }

    /// Records the latency of an operation. (HBase's user metrics do not include operations with a
    /// condition.)
    pub(crate) fn record_latency(&self, operation: Operation, took: Duration) {
        let Some(times) = &self.user.times else { return };
        match operation {
            Operation::Put | Operation::PutBatch => times.put.record(took),
            Operation::Delete | Operation::DeleteBatch => times.delete.record(took),
            Operation::Increment => times.increment.record(took),
            Operation::Append => times.append.record(took),
            Operation::CheckAndPut | Operation::CheckAndDelete | Operation::CheckAndMutate => {}
        }
    }

    /// Records requested mutations.
    pub(crate) fn record_mutations(&self, changes: usize) {
        self.host.add(|of| &of.writes, changes as u64);
    }

    /// Records the resources that a part of a call has used.
    #[inline]
    pub(crate) fn add_usage(&self, usage: &Usage) {
        let Some(own) = self.host.own() else { return };
        usage.add_to(&own.read_units, &own.write_units, &own.work_nanos);
    }
}

/// The value at `key`. Inserts a new value if there is room, else uses the shared entry.
fn get_or_shared<V: Clone>(
    values: &mut BTreeMap<Arc<str>, V>,
    key: &str,
    max: usize,
    new: impl FnOnce() -> V,
) -> V {
    let key = if values.len() < max || values.contains_key(key) { key } else { OTHERS };
    let value = match values.get(key) {
        Some(value) => value.clone(),
        None => values.entry(key.into()).or_insert_with(new).clone(),
    };
    debug_assert!(values.len() <= max + 1, "only the shared entry exceeds the bound");
    value
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The maps are valid after any panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(user: &str, host: u8) -> Arc<ConnectionInfo> {
        Arc::new(ConnectionInfo {
            peer: ([10, 0, 0, host], 1).into(),
            local: ([10, 0, 0, 1], 16020).into(),
            service: "ClientService",
            claimed_user: Some(user.into()),
            principal: None,
            version: None,
            codec: None,
            compressor: None,
            presence: Default::default(),
        })
    }

    #[test]
    fn requests_are_counted_by_user_and_host() {
        let users = Users::new(true, Duration::ZERO);
        let took = Duration::from_millis(1);
        users.identify(&connection("ann", 1)).record_gets(3, took);
        users.identify(&connection("ann", 2)).record_latency(Operation::PutBatch, took);
        users.identify(&connection("ann", 2)).record_mutations(10);
        users.identify(&connection("ann", 1)).record_scan(took, 5, 7);
        users.identify(&connection("bob", 1)).add_usage(&Usage {
            read_units: 2,
            write_units: 0,
            work_nanos: 9,
        });
        let loads = users.loads();
        assert_eq!(loads.iter().map(|load| load.user_name.as_str()).collect::<Vec<_>>(), ["ann", "bob"]);
        let [first, second] = &loads[0].client_metrics[..] else { panic!("two hosts") };
        assert_eq!((first.read_requests_count, first.filtered_requests_count), (Some(8), Some(7)));
        assert_eq!((second.host_name.as_str(), second.write_requests_count), ("10.0.0.2", Some(10)));
        let usage = users.all()[1].1.usage();
        assert_eq!((usage.read_units, usage.write_units, usage.work_nanos), (2, 0, 9));
    }

    #[test]
    fn users_beyond_the_limit_share_an_entry() {
        let users = Users::new(true, Duration::ZERO);
        (0..USERS_MAX + 9).for_each(|at| drop(users.identify(&connection(&format!("user{at}"), 1))));
        let names: Vec<_> = users.all().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), USERS_MAX + 1);
        assert!(names.iter().any(|name| &**name == OTHERS));
    }
}
