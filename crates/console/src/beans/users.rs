//! Metrics of users, and the resource usage of users and tables.

use std::sync::Arc;

use base::metrics::{Scope, Source};
use engine::instruments::Usage;
use regionserver::RegionServer;

use crate::beans::tables::prefix_of;

base::current_values! {
    /// Metrics about all users together.
    pub(super) struct AllUsers in "RegionServer,sub=Users" {
        /// Users that have sent requests.
        users: Gauge<u64> = "numUsers",
    }
}

base::absent! {
    /// Metrics that are not measured per user.
    pub(super) struct AbsentUserMetrics in "RegionServer,sub=Users" {
        /// Replays of edits for region replicas, which do not exist here.
        Times = "replay",
    }
}

base::current_values! {
    /// Resource usage of calls: of a table with the prefix `Namespace_NS_table_T_metric_`, and of a
    /// user with `User_U_metric_`.
    pub(super) struct UsageMetrics in "RegionServer,sub=Grampus" {
        /// Read capacity units: bytes of cells divided by `hbase.quota.read.capacity.unit`. Each
        /// part of a call that reads any cells counts at least one.
        read_units: Counted = "readCapacityUnits",
        /// Write capacity units, in units of `hbase.quota.write.capacity.unit`.
        write_units: Counted = "writeCapacityUnits",
        /// CPU time, including time for which the thread was preempted.
        work: Counted = "processorTime" in Milliseconds,
    }
}

impl UsageMetrics {
    fn new(usage: &Usage) -> UsageMetrics {
        UsageMetrics {
            read_units: usage.read_units.into(),
            write_units: usage.write_units.into(),
            work: (usage.work_nanos / 1_000_000).into(),
        }
    }
}

/// The users of a server.
pub(super) struct Users(pub(super) Arc<RegionServer>);

impl Source for Users {
    fn show(&self, scope: &mut Scope<'_>) {
        let users = self.0.users().all();
        if users.iter().all(|(_, user)| user.times().is_none()) {
            return;
        }
        AllUsers { users: users.len().into() }.show(scope);
        for (name, user) in &users {
            let prefix = prefix_of_user(name);
            let mut scope = scope.named(&prefix);
            if let Some(times) = user.times() {
                times.show(&mut scope);
            }
            AbsentUserMetrics.show(&mut scope);
        }
    }

    fn roll(&self) {
        self.0.users().all().iter().filter_map(|(_, user)| user.times()).for_each(Source::roll);
    }
}

/// Resource usage of the tables and users of a server.
pub(super) struct Usages(pub(super) Arc<RegionServer>);

impl Source for Usages {
    fn show(&self, scope: &mut Scope<'_>) {
        for (table, instruments) in self.0.instruments().tables() {
            UsageMetrics::new(&instruments.usage()).show(&mut scope.named(&prefix_of(&table)));
        }
        for (name, user) in self.0.users().all() {
            UsageMetrics::new(&user.usage()).show(&mut scope.named(&prefix_of_user(&name)));
        }
    }
}

fn prefix_of_user(name: &str) -> String {
    format!("User_{name}_metric_")
}
