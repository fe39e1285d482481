//! Quotas of calls: the resources that users, tables, namespaces and servers may use per time unit.
//!
//! Before a call runs, its cost is estimated and charged to every limit that applies. After the
//! call, the difference to the actual cost is settled. A call that exceeds a limit is refused with
//! `RpcThrottlingException`, which contains the time to wait. Invariants:
//!
//! * Without quotas, a call reads one pointer and takes no lock.
//! * Changing a quota does not reset its usage ([`throttle::Throttle::update`]).
//! * System tables are never throttled.
//!
//! A server reads the quotas from `hbase:quota` ([`wire::quota`]) if it serves this table: when the
//! rows have changed, and periodically. Source: HBase `RegionServerRpcQuotaManager`,
//! `DefaultOperationQuota`, `ExceedOperationQuota`.
//!
//! Not here: space quotas. The master stores them, but they have no effect yet.

mod limiter;
mod operation;
mod throttle;

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use cell::Cell;
use cell::schema::TableName;
use proto::exception::Answer;
use wire::quota::{self, Subject};

pub use limiter::Refill;
pub use operation::{Operation, PlannedWork};
pub use throttle::Throttle;

/// Settings of quotas.
#[derive(Clone, Copy, Debug)]
pub struct QuotaOptions {
    /// The longest time between two reads of the quota table (`hbase.quota.refresh.period`).
    pub refresh_ms: u64,
    /// How limits are refilled (`hbase.quota.rate.limiter`).
    pub refill: Refill,
    /// Bytes of a read capacity unit (`hbase.quota.read.capacity.unit`).
    pub read_unit_bytes: i64,
    /// Bytes of a write capacity unit (`hbase.quota.write.capacity.unit`).
    pub write_unit_bytes: i64,
}

/// The quotas of a server.
pub struct RpcQuotas {
    options: QuotaOptions,
    // `None` if there are no quotas.
    table: ArcSwapOption<QuotaTable>,
}

/// The contents of `hbase:quota`.
#[derive(Default)]
struct QuotaTable {
    users: HashMap<String, User>,
    tables: HashMap<TableName, Arc<Throttle>>,
    namespaces: HashMap<String, Arc<Throttle>>,
    servers: Option<Arc<Throttle>>,
    exceed: bool,
    unthrottled: bool,
}

/// The quotas of a user.
#[derive(Default)]
struct User {
    bypasses_globals: bool,
    all: Option<Arc<Throttle>>,
    tables: HashMap<TableName, Arc<Throttle>>,
    namespaces: HashMap<String, Arc<Throttle>>,
}

impl RpcQuotas {
    /// Starts without quotas.
    pub fn new(options: QuotaOptions) -> RpcQuotas {
        RpcQuotas { options, table: ArcSwapOption::empty() }
    }

    /// The settings of quotas.
    pub fn options(&self) -> &QuotaOptions {
        &self.options
    }

    /// Charges the estimated cost of a call by `user` to all limits that apply.
    ///
    /// # Errors
    /// `RpcThrottlingException` if a limit is exhausted. Nothing is charged then.
    pub fn admit(
        &self,
        user: Option<&str>,
        table: &TableName,
        planned: impl FnOnce() -> PlannedWork,
        now_ms: i64,
    ) -> Answer<Operation> {
        let quotas = self.table.load();
        let Some(quotas) = quotas.as_ref().filter(|_| !table.is_system()) else {
            return Ok(Operation::unlimited());
        };
        if quotas.unthrottled {
            return Ok(Operation::unlimited());
        }
        let user = user.and_then(|user| quotas.users.get(user));
        let of_user = user.and_then(|user| user.throttle_of(table));
        let bound: Vec<Arc<Throttle>> = match user {
            Some(User { bypasses_globals: true, .. }) => of_user.into_iter().collect(),
            _ => {
                let globals = [quotas.tables.get(table), quotas.namespaces.get(table.namespace())];
                of_user.into_iter().chain(globals.into_iter().flatten().cloned()).collect()
            }
        };
        let of_server = quotas.servers.clone().filter(|_| user.is_none_or(|user| !user.bypasses_globals));
        operation::admit(&self.options, bound, of_server, quotas.exceed, planned, now_ms)
    }

    /// Replaces the quotas with those in the cells of `hbase:quota`.
    pub fn update<'a>(&self, cells: impl Iterator<Item = Cell<'a>>) {
        let before = self.table.load_full();
        let mut now = QuotaTable::default();
        for cell in cells.filter(|cell| cell.family() == quota::FAMILY) {
            now.add_cell(&cell, before.as_deref(), self.options.refill);
        }
        self.table.store((!now.is_empty()).then(|| Arc::new(now)));
    }
}

impl QuotaTable {
    fn is_empty(&self) -> bool {
        self.users.is_empty()
            && self.tables.is_empty()
            && self.namespaces.is_empty()
            && self.servers.is_none()
    }

    fn add_cell(&mut self, cell: &Cell<'_>, before: Option<&QuotaTable>, refill: Refill) {
        match cell.row() {
            quota::EXCEED_ROW => self.exceed = cell.value.first().is_some_and(|flag| *flag != 0),
            quota::UNTHROTTLED_ROW => self.unthrottled = true,
            row => {
                let subject = Subject::parse(row, cell.qualifier());
                if let (Some(subject), Some(quotas)) = (subject, quota::decode(cell.value)) {
                    self.put(subject, &quotas, before, refill);
                }
            }
        }
    }

    fn put(&mut self, subject: Subject, quotas: &proto::Quotas, before: Option<&QuotaTable>, refill: Refill) {
        if let Subject::User(user) = &subject
            && quotas.bypass_globals()
        {
            self.users.entry(user.clone()).or_default().bypasses_globals = true;
        }
        let Some(message) = &quotas.throttle else {
            return;
        };
        let throttle = match before.and_then(|before| before.find(&subject)) {
            Some(existing) => {
                existing.update(message, refill);
                Some(existing)
            }
            None => Throttle::new(message, refill).map(Arc::new),
        };
        let Some(throttle) = throttle else {
            return;
        };
        match subject {
            Subject::User(user) => self.users.entry(user).or_default().all = Some(throttle),
            Subject::UserTable(user, table) => {
                self.users.entry(user).or_default().tables.insert(table, throttle);
            }
            Subject::UserNamespace(user, namespace) => {
                self.users.entry(user).or_default().namespaces.insert(namespace, throttle);
            }
            Subject::Table(table) => drop(self.tables.insert(table, throttle)),
            Subject::Namespace(namespace) => drop(self.namespaces.insert(namespace, throttle)),
            Subject::Server(server) if server == quota::ALL_SERVERS => self.servers = Some(throttle),
            // HBase applies only the quota of all servers.
            Subject::Server(_) => {}
        }
    }

    fn find(&self, subject: &Subject) -> Option<Arc<Throttle>> {
        let user = |user: &String| self.users.get(user);
        match subject {
            Subject::User(name) => user(name)?.all.clone(),
            Subject::UserTable(name, table) => user(name)?.tables.get(table).cloned(),
            Subject::UserNamespace(name, namespace) => user(name)?.namespaces.get(namespace).cloned(),
            Subject::Table(table) => self.tables.get(table).cloned(),
            Subject::Namespace(namespace) => self.namespaces.get(namespace).cloned(),
            Subject::Server(server) => self.servers.clone().filter(|_| server == quota::ALL_SERVERS),
        }
    }
}

impl User {
    /// The most specific quota of a user for a table.
    fn throttle_of(&self, table: &TableName) -> Option<Arc<Throttle>> {
        let special = self.tables.get(table).or_else(|| self.namespaces.get(table.namespace()));
        special.or(self.all.as_ref()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::{CellType, KeyValue};

    const OPTIONS: QuotaOptions = QuotaOptions {
        refresh_ms: 1000,
        refill: Refill::Average,
        read_unit_bytes: 1024,
        write_unit_bytes: 1024,
    };

    fn reads(limit: u64) -> proto::Quotas {
        let quota = proto::TimedQuota {
            time_unit: proto::TimeUnit::Seconds.into(),
            soft_limit: Some(limit),
            ..Default::default()
        };
        let throttle = proto::Throttle { read_num: Some(quota), ..Default::default() };
        proto::Quotas { throttle: Some(throttle), ..Default::default() }
    }

    fn quotas(of: &[(Subject, proto::Quotas)]) -> RpcQuotas {
        let quotas = RpcQuotas::new(OPTIONS);
        set(&quotas, of);
        quotas
    }

    fn set(quotas: &RpcQuotas, of: &[(Subject, proto::Quotas)]) {
        let cell = |(subject, quotas): &(Subject, proto::Quotas)| {
            let (row, qualifier) = (subject.row(), subject.qualifier());
            KeyValue::new(&row, quota::FAMILY, &qualifier, 1, CellType::Put, &quota::encode(quotas))
        };
        let cells: Vec<_> = of.iter().map(cell).collect();
        quotas.update(cells.iter().map(|cell| cell.view(0)));
    }

    /// How many of four gets at the same time are admitted.
    fn admitted(quotas: &RpcQuotas, user: &str, table: &str, now_ms: i64) -> usize {
        let table = TableName::parse(table).unwrap();
        let get =
            || quotas.admit(Some(user), &table, || PlannedWork { gets: 1, ..PlannedWork::default() }, now_ms);
        (0..4).filter(|_| get().is_ok()).count()
    }

    #[test]
    fn each_subject_limits_its_calls() {
        let table = TableName::parse("t").unwrap();
        let one = |subject| quotas(&[(subject, reads(1))]);
        for (subject, bound) in [
            (Subject::User("a".into()), [1, 1, 1, 4]),
            (Subject::UserTable("a".into(), table.clone()), [1, 4, 4, 4]),
            (Subject::UserNamespace("a".into(), "default".into()), [1, 1, 4, 4]),
            (Subject::Table(table), [1, 4, 4, 1]),
            (Subject::Namespace("ns".into()), [4, 4, 1, 4]),
            (Subject::Server("all".into()), [1, 1, 1, 1]),
            (Subject::Server("one".into()), [4, 4, 4, 4]),
        ] {
            let calls = [("a", "t"), ("a", "u"), ("a", "ns:t"), ("b", "t")];
            let got = calls.map(|(user, name)| admitted(&one(subject.clone()), user, name, 0));
            assert_eq!(got, bound, "{subject:?}");
            assert_eq!(admitted(&one(subject), "a", "hbase:meta", 0), 4);
        }
    }

    #[test]
    fn a_user_may_bypass_global_quotas() {
        let bypass = proto::Quotas { bypass_globals: Some(true), ..Default::default() };
        let quotas = quotas(&[
            (Subject::Namespace("default".into()), reads(1)),
            (Subject::Server("all".into()), reads(2)),
            (Subject::User("a".into()), bypass),
        ]);
        assert_eq!(admitted(&quotas, "a", "t", 0), 4);
        assert_eq!(admitted(&quotas, "b", "t", 0), 1);
    }

    #[test]
    fn reloading_quotas_keeps_their_usage() {
        let subject = Subject::User("a".into());
        let quotas = quotas(&[(subject.clone(), reads(2))]);
        assert_eq!(admitted(&quotas, "a", "t", 0), 2);
        set(&quotas, &[(subject.clone(), reads(2))]);
        assert_eq!(admitted(&quotas, "a", "t", 0), 0);
        set(&quotas, &[(subject.clone(), reads(3))]);
        assert_eq!(admitted(&quotas, "a", "t", 0), 1);
        set(&quotas, &[]);
        assert_eq!(admitted(&quotas, "a", "t", 0), 4);
    }

    #[test]
    fn flag_rows_disable_quotas_or_let_them_be_exceeded() {
        let flag = |row: &[u8]| KeyValue::new(row, quota::FAMILY, quota::SETTINGS, 1, CellType::Put, &[0xff]);
        let table = |limit| {
            let value = quota::encode(&reads(limit));
            KeyValue::new(b"t.t", quota::FAMILY, quota::SETTINGS, 1, CellType::Put, &value)
        };
        let all = KeyValue::new(
            b"r.all",
            quota::FAMILY,
            quota::SETTINGS,
            1,
            CellType::Put,
            &quota::encode(&reads(3)),
        );
        let with = |cells: &[KeyValue]| {
            let quotas = RpcQuotas::new(OPTIONS);
            quotas.update(cells.iter().map(|cell| cell.view(0)));
            admitted(&quotas, "a", "t", 0)
        };
        assert_eq!(with(&[table(1), flag(quota::UNTHROTTLED_ROW)]), 4);
        assert_eq!(with(&[table(1), all.clone()]), 1);
        assert_eq!(with(&[table(1), all, flag(quota::EXCEED_ROW)]), 3);
    }
}
