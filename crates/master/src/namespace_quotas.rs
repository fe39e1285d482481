//! Quotas of namespaces: how many tables and regions a namespace may have.
//!
//! The limits are settings of the namespace. They are validated when the namespace is created or
//! altered, and enforced if quotas are enabled (`hbase.quota.enabled`). A procedure that creates
//! tables or regions reserves them before it acts, so that two procedures cannot both use the same
//! remaining amount. A new region may briefly count twice, as reserved and as existing, but it
//! always counts at least once.
//!
//! Source: HBase `TableNamespaceManager`, `NamespaceStateManager`, `NamespaceAuditor`.

use std::collections::HashMap;
use std::sync::Mutex;

use cell::schema::{NamespaceDescriptor, TableName};
use proto::exception::{Answer, JavaException, class};

use crate::context::Context;
use crate::procedure::Work;

/// The setting for the maximum number of tables.
const TABLES_KEY: &str = "hbase.namespace.quota.maxtables";
/// The setting for the maximum number of regions.
const REGIONS_KEY: &str = "hbase.namespace.quota.maxregions";
/// The prefix of HBase's own settings.
const RESERVED_PREFIX: &str = "hbase.";

/// Validates the settings of a namespace.
///
/// # Errors
/// `ConstraintException` that names the setting, its value and what is accepted.
pub fn check_settings(namespace: &NamespaceDescriptor) -> Answer<()> {
    let name = &namespace.name;
    for (key, value) in &namespace.configuration {
        match key.as_str() {
            TABLES_KEY | REGIONS_KEY if limit_of(value).is_none() => {
                return Err(JavaException::constraint(format!(
                    "{key} => '{value}' of namespace {name}: expected an integer of at least 1"
                )));
            }
            TABLES_KEY | REGIONS_KEY => {}
            _ if key.starts_with(RESERVED_PREFIX) => {
                return Err(JavaException::constraint(format!(
                    "{key} => '{value}' of namespace {name} has no effect; settings of namespaces are {TABLES_KEY} \
                     and {REGIONS_KEY}"
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

fn limit_of(value: &str) -> Option<usize> {
    value.parse::<i64>().ok().filter(|limit| *limit > 0).and_then(|limit| usize::try_from(limit).ok())
}

/// What a procedure adds to a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Addition {
    /// A table with this many regions. It may replace a table of the same name.
    Table { table: TableName, regions: usize },
    /// This many more regions of an existing table.
    Regions { table: TableName, regions: usize },
}

impl Addition {
    fn by_work(work: &Work) -> Option<Addition> {
        let of_table = |table: &TableName, regions| Addition::Table { table: table.clone(), regions };
        match work {
            Work::CreateTable(plan) => Some(of_table(&plan.table.name, plan.regions.len())),
            Work::CloneSnapshot { table, plan: Some(plan), .. }
            | Work::RestoreSnapshot { table, plan: Some(plan), .. } => {
                Some(of_table(table, plan.regions.len()))
            }
            Work::SplitRegion { parent, .. } => {
                Some(Addition::Regions { table: parent.table.clone(), regions: 1 })
            }
            _ => None,
        }
    }

    fn table(&self) -> &TableName {
        match self {
            Addition::Table { table, .. } | Addition::Regions { table, .. } => table,
        }
    }
}

/// The reservations of running procedures.
#[derive(Debug)]
pub struct NamespaceQuotas {
    enabled: bool,
    // By procedure id.
    reserved: Mutex<HashMap<u64, Addition>>,
}

impl NamespaceQuotas {
    /// Creates an empty list of reservations. If not `enabled`, there are no limits.
    pub fn new(enabled: bool) -> NamespaceQuotas {
        NamespaceQuotas { enabled, reserved: Mutex::default() }
    }

    /// Refuses a procedure that would exceed a limit of its namespace.
    ///
    /// # Errors
    /// `QuotaExceededException`.
    pub fn check(&self, context: &Context, work: &Work) -> Answer<()> {
        match Addition::by_work(work) {
            Some(addition) if self.enabled => {
                check(context, &addition, &self.reserved.lock().expect("no holder of this lock panics"))
            }
            _ => Ok(()),
        }
    }

    /// Like `check`, and reserves what the procedure adds until [`NamespaceQuotas::release`].
    ///
    /// # Errors
    /// `QuotaExceededException`.
    pub fn reserve(&self, context: &Context, id: u64, work: &Work) -> Answer<()> {
        let Some(addition) = Addition::by_work(work).filter(|_| self.enabled) else { return Ok(()) };
        let mut reserved = self.reserved.lock().expect("no holder of this lock panics");
        check(context, &addition, &reserved)?;
        let earlier = reserved.insert(id, addition);
        debug_assert!(earlier.is_none(), "a procedure reserves once");
        Ok(())
    }

    /// Ends the reservation of a procedure.
    pub fn release(&self, id: u64) {
        self.reserved.lock().expect("no holder of this lock panics").remove(&id);
    }
}

fn check(context: &Context, addition: &Addition, reserved: &HashMap<u64, Addition>) -> Answer<()> {
    let table = addition.table();
    let Ok(namespace) = context.namespaces.get(table.namespace()) else { return Ok(()) };
    let limit = |key| namespace.configuration.get(key).and_then(|value| limit_of(value));
    let (tables_max, regions_max) = (limit(TABLES_KEY), limit(REGIONS_KEY));
    if tables_max.is_none() && regions_max.is_none() {
        return Ok(());
    }
    let mut regions_by_table = usage(context, &namespace.name, reserved);
    match *addition {
        Addition::Table { ref table, regions } => {
            regions_by_table.insert(table.clone(), regions);
        }
        Addition::Regions { ref table, regions } => {
            *regions_by_table.entry(table.clone()).or_default() += regions;
        }
    }
    let (tables, regions) = (regions_by_table.len(), regions_by_table.values().sum::<usize>());
    // A namespace that already exceeds a limit may keep its tables.
    if let (Addition::Table { .. }, Some(max)) = (addition, tables_max)
        && tables > max
        && context.tables.state(table).is_none()
    {
        return Err(exceeded(format!(
            "The table {table} cannot be created as it would exceed maximum number of tables allowed  in the namespace.  \
             The total number of tables permitted is {max}"
        )));
    }
    match (addition, regions_max) {
        (_, Some(max)) if regions <= max => Ok(()),
        (Addition::Table { regions: new, .. }, Some(max)) => Err(exceeded(format!(
            "The table {table} is not allowed to have {new} regions. The total number of regions permitted is only \
             {max}, while current region count is {}. This may be transient, please retry later if there are any \
             ongoing split operations in the namespace.",
            regions - new
        ))),
        (Addition::Regions { .. }, Some(max)) => Err(exceeded(format!(
            "Region split not possible for table {table} as quota limits are exceeded: namespace {} may have {max} \
             regions",
            namespace.name
        ))),
        (_, None) => Ok(()),
    }
}

/// The tables of a namespace with their numbers of regions, including those that are being created.
fn usage(context: &Context, namespace: &str, reserved: &HashMap<u64, Addition>) -> HashMap<TableName, usize> {
    let known = context.tables.all();
    let known = known.iter().map(|table| &table.name).filter(|table| table.namespace() == namespace);
    let mut usage: HashMap<TableName, usize> =
        known.map(|table| (table.clone(), context.assignment.regions_of(table).len())).collect();
    for addition in reserved.values().filter(|addition| addition.table().namespace() == namespace) {
        let regions_of = usage.entry(addition.table().clone()).or_default();
        match addition {
            Addition::Table { regions, .. } => *regions_of = (*regions_of).max(*regions),
            Addition::Regions { regions, .. } => *regions_of += regions,
        }
    }
    usage
}

fn exceeded(message: String) -> JavaException {
    JavaException::new(class::QUOTA_EXCEEDED, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &str, value: &str) -> Answer<()> {
        let mut namespace = NamespaceDescriptor::new("n").unwrap();
        namespace.configuration.insert(key.into(), value.into());
        check_settings(&namespace)
    }

    #[test]
    fn limits_are_positive_integers() {
        for key in [TABLES_KEY, REGIONS_KEY] {
            assert!(check(key, "1").is_ok());
            for value in ["x", "-1", "0", "1.5", "", " 1"] {
                let refused = check(key, value).unwrap_err();
                assert!(refused.is(class::CONSTRAINT) && refused.message.contains(key), "{refused}");
            }
        }
        assert!(check("k", "any").is_ok());
        assert!(check("hbase.namespace.quota.maxtable", "1").is_err(), "a key that would have no effect");
    }
}
