//! What each user asks of this server: what it used, from which hosts, and if that is wanted how long it took.
//!
//! Connections find their user and host once, when they are opened; their calls count without looking anything up. Users
//! stay known when their connections are closed. There are bounds for both, for a name costs a stranger nothing: beyond
//! them all are one.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::metrics::Counts;
use engine::instruments::{EndedGet, Operation, Usage};
use rpc::ConnectionInfo;

/// Users that are told apart at most, and hosts of each.
const USERS_MAX: usize = 1000;
const HOSTS_MAX: usize = 100;
/// Bytes of the longest name of a user who is told apart.
const NAME_LEN_MAX: usize = 128;
/// The name of all beyond.
const OTHERS: &str = "others";

base::instruments! {
    /// How long what a user asked took. Names are the ends of HBase's, behind `User_U_metric_`.
    pub struct UserTimes in "RegionServer,sub=Users" {
        /// Gets, each of a batch for itself.
        get: Times = "get",
        /// Puts, and puts that were made together.
        put: Times = "put",
        /// Deletes, and deletes that were made together.
        delete: Times = "delete",
        /// Increments.
        increment: Times = "increment",
        /// Appends.
        append: Times = "append",
        /// Calls of scans.
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
    // None where they are not wanted.
    times: Option<UserTimes>,
    hosts: Mutex<BTreeMap<Arc<str>, Arc<Counts<HostCounts>>>>,
}

base::counts! {
    /// What a user asked from one host, and what that used.
    struct HostCounts {
        reads,
        writes,
        filtered_reads,
        read_units,
        write_units,
        work_nanos,
    }
}

/// Who is at the other end of a connection: his user, and the host he comes from.
pub struct Caller {
    connection: Arc<ConnectionInfo>,
    user: Arc<User>,
    host: Arc<Counts<HostCounts>>,
}

impl Users {
    /// Nobody yet; `now` is a time of the monotonic clock. If `are_timed`, how long their operations take is counted too
    /// (`hbase.regionserver.user.metrics.enabled`).
    pub fn new(are_timed: bool, now: Duration) -> Users {
        Users { begun: now, are_timed, by_name: Mutex::default() }
    }

    /// Who is at the other end of `connection`.
    pub fn caller(&self, connection: &Arc<ConnectionInfo>) -> Caller {
        let user = self.user(connection.user.as_deref().unwrap_or_default());
        let host = user.host(connection.peer.ip());
        Caller { connection: connection.clone(), user, host }
    }

    fn user(&self, name: &str) -> Arc<User> {
        let name = if name.len() <= NAME_LEN_MAX { name } else { OTHERS };
        let mut by_name = lock(&self.by_name);
        one_of(&mut by_name, name, USERS_MAX, || {
            let times = self.are_timed.then(|| UserTimes::begin(self.begun));
            Arc::new(User { times, hosts: Mutex::default() })
        })
    }

    /// All users, by name.
    pub fn all(&self) -> Vec<(Arc<str>, Arc<User>)> {
        lock(&self.by_name).iter().map(|(name, user)| (name.clone(), user.clone())).collect()
    }

    /// The users' requests by host, as the master is told of them.
    pub(crate) fn loads(&self) -> Vec<proto::UserLoad> {
        let load = |(name, user): (Arc<str>, Arc<User>)| proto::UserLoad {
            user_name: name.to_string(),
            client_metrics: user.clients(),
        };
        self.all().into_iter().map(load).collect()
    }
}

impl User {
    /// How long what he asked took, if that is counted.
    pub fn times(&self) -> Option<&UserTimes> {
        self.times.as_ref()
    }

    /// What he used.
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
        one_of(&mut lock(&self.hosts), &address.to_string(), HOSTS_MAX, Arc::default)
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

impl Caller {
    /// The name of his user.
    pub(crate) fn user(&self) -> Option<&str> {
        self.connection.user.as_deref()
    }

    /// So many Gets ended, at least one, each of which took so long.
    #[inline]
    pub(crate) fn note_gets(&self, gets: u32, took: Duration) {
        if let Some(times) = &self.user.times {
            times.get.record_many(took, gets);
        }
        self.host.add(|of| &of.reads, gets.into());
    }

    /// A call of `Get` ended well.
    #[inline]
    pub(crate) fn note_get(&self, get: &EndedGet) {
        if let Some(times) = &self.user.times {
            times.get.note(get.took, get.area);
        }
        if let Some(own) = self.host.within(get.area) {
            own.reads.add(1);
            own.read_units.add(get.read_units);
            own.work_nanos.add(get.work_nanos);
        }
    }

    /// A call of a scan ended that took so long: rows that it returned, and those that filters kept.
    pub(crate) fn note_scan(&self, took: Duration, rows: u64, filtered: u64) {
        if let Some(times) = &self.user.times {
            times.scan.record(took);
        }
        self.host.add(|of| &of.reads, rows);
        self.host.add(|of| &of.filtered_reads, filtered);
    }

    /// An operation ended that took so long. (Those on a condition are in none of HBase's figures of users.)
    pub(crate) fn note(&self, operation: Operation, took: Duration) {
        let Some(times) = &self.user.times else { return };
        match operation {
            Operation::Put | Operation::PutBatch => times.put.record(took),
            Operation::Delete | Operation::DeleteBatch => times.delete.record(took),
            Operation::Increment => times.increment.record(took),
            Operation::Append => times.append.record(took),
            Operation::CheckAndPut | Operation::CheckAndDelete | Operation::CheckAndMutate => {}
        }
    }

    /// So many changes were asked for.
    pub(crate) fn note_changes(&self, changes: usize) {
        self.host.add(|of| &of.writes, changes as u64);
    }

    /// A part of a call ended that used this.
    #[inline]
    pub(crate) fn note_usage(&self, usage: &Usage) {
        let Some(own) = self.host.own() else { return };
        usage.add_to(&own.read_units, &own.write_units, &own.work_nanos);
    }
}

/// The value at `key`, or a new one if there is room, or that of all others.
fn one_of<V: Clone>(values: &mut BTreeMap<Arc<str>, V>, key: &str, max: usize, new: impl FnOnce() -> V) -> V {
    let key = if values.len() < max || values.contains_key(key) { key } else { OTHERS };
    match values.get(key) {
        Some(value) => value.clone(),
        None => values.entry(key.into()).or_insert_with(new).clone(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Maps: whole after any panic.
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
            user: Some(user.into()),
            version: None,
            codec: None,
            compressor: None,
            presence: Default::default(),
        })
    }

    #[test]
    fn users_are_told_by_their_hosts() {
        let users = Users::new(true, Duration::ZERO);
        let took = Duration::from_millis(1);
        users.caller(&connection("ann", 1)).note_gets(3, took);
        users.caller(&connection("ann", 2)).note(Operation::PutBatch, took);
        users.caller(&connection("ann", 2)).note_changes(10);
        users.caller(&connection("ann", 1)).note_scan(took, 5, 7);
        users.caller(&connection("bob", 1)).note_usage(&Usage {
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
    fn strangers_beyond_the_bound_are_one() {
        let users = Users::new(true, Duration::ZERO);
        (0..USERS_MAX + 9).for_each(|at| drop(users.caller(&connection(&format!("user{at}"), 1))));
        let names: Vec<_> = users.all().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), USERS_MAX + 1);
        assert!(names.iter().any(|name| &**name == OTHERS));
    }
}
