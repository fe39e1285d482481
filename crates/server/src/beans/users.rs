//! What each user asks, and what users and tables use.

use std::sync::Arc;

use base::metrics::{Scope, Source};
use engine::instruments::Usage;
use regionserver::RegionServer;

use crate::beans::tables::prefix_of;

base::figures! {
    /// What is said of all users together.
    pub(super) struct AllUsers in "RegionServer,sub=Users" {
        /// Users who have asked for anything.
        users: Gauge<u64> = "numUsers",
    }
}

base::absent! {
    /// What is not counted of users here.
    pub(super) struct NotOfUsers in "RegionServer,sub=Users" {
        /// Replays of edits for replicas of regions, which there are none of.
        Times = "replay",
    }
}

base::figures! {
    /// What calls used, of a table behind `Namespace_NS_table_T_metric_` and of a user behind `User_U_metric_`.
    pub(super) struct UsageFigures in "RegionServer,sub=Grampus" {
        /// Capacity units read: bytes of cells by `hbase.quota.read.capacity.unit`, each part of a call that read any at least one.
        read_units: Counted = "readCapacityUnits",
        /// Capacity units written, by `hbase.quota.write.capacity.unit`.
        write_units: Counted = "writeCapacityUnits",
        /// Time of the processor, as far as nobody else had it meanwhile.
        work: Counted = "processorTime" in Milliseconds,
    }
}

impl UsageFigures {
    fn of(usage: &Usage) -> UsageFigures {
        UsageFigures {
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
            NotOfUsers.show(&mut scope);
        }
    }

    fn roll(&self) {
        self.0.users().all().iter().filter_map(|(_, user)| user.times()).for_each(Source::roll);
    }
}

/// What tables and users of a server used.
pub(super) struct Uses(pub(super) Arc<RegionServer>);

impl Source for Uses {
    fn show(&self, scope: &mut Scope<'_>) {
        for (table, instruments) in self.0.instruments().tables() {
            UsageFigures::of(&instruments.usage()).show(&mut scope.named(&prefix_of(&table)));
        }
        for (name, user) in self.0.users().all() {
            UsageFigures::of(&user.usage()).show(&mut scope.named(&prefix_of_user(&name)));
        }
    }
}

fn prefix_of_user(name: &str) -> String {
    format!("User_{name}_metric_")
}
