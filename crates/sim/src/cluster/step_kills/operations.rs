//! The operations at whose steps processes are killed, and what they leave.
//!
//! An operation that succeeded must have had its effect. If it failed, it may have had it or not,
//! but not in part.

use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::Scan;
use cell::region::{RegionInfo, ServerName};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{CellType, KeyValue};
use client::{Admin, Client, Error};

use crate::cluster::scenario::Scenario;
use crate::random::RandomSource;

/// The rows of a side table.
const ROWS: [&[u8]; 2] = [b"a", b"z"];
/// A row that is written after a snapshot.
const LATER_ROW: &[u8] = b"q";
/// Rows at which the table of the clients is split, in two parts: of the first time, and of the
/// second. Regions that were split refer to files of others, and cannot be split again.
const SPLIT_ROWS: [[&str; 4]; 2] =
    [["row01", "row02", "row04", "row05"], ["row07", "row08", "row10", "row11"]];

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Drop,
    Alter,
    Truncate,
    Split,
    Merge,
    Move,
    Snapshot,
    Clone,
    Restore,
    /// The recovery of a region server.
    Crash,
}

pub(super) const OPERATIONS: [Operation; 11] = [
    Operation::Create,
    Operation::Drop,
    Operation::Alter,
    Operation::Truncate,
    Operation::Split,
    Operation::Merge,
    Operation::Move,
    Operation::Snapshot,
    Operation::Clone,
    Operation::Restore,
    Operation::Crash,
];

/// An operation that can be executed.
pub(super) struct Prepared {
    operation: Operation,
    /// 1 or 2: the tables and snapshots of an execution have this number.
    number: usize,
    /// The regions that change.
    regions: Vec<RegionInfo>,
    /// Number of regions of the table of the clients.
    region_count: usize,
    /// The row of a split.
    row: Bytes,
    /// The server of a move.
    target: Option<ServerName>,
    /// The process that crashes.
    crashed: Option<String>,
}

impl Prepared {
    pub(super) fn regions(&self) -> &[RegionInfo] {
        &self.regions
    }

    pub(super) fn crashed(&self) -> Option<&str> {
        self.crashed.as_deref()
    }

    fn side(&self) -> TableName {
        name_of("side", self.number)
    }

    fn snapshot(&self) -> String {
        format!("snapshot{}", self.number)
    }

    /// The number of versions after an alteration.
    fn versions(&self) -> String {
        (self.number + 1).to_string()
    }
}

fn name_of(kind: &str, number: usize) -> TableName {
    TableName::parse(&format!("{kind}{number}")).expect("a valid name")
}

/// Prepares, executes and checks operations.
pub(super) struct Operations {
    client: Client,
    admin: Admin,
    table: TableName,
    servers: Vec<String>,
    random: RandomSource,
}

impl Operations {
    pub(super) fn new(scenario: &Scenario) -> Operations {
        let client = scenario.workload.client(&scenario.operator_env);
        Operations {
            admin: client.admin(),
            client,
            table: scenario.workload.table().clone(),
            servers: scenario.cluster.region_servers.iter().map(|server| server.name().to_string()).collect(),
            random: scenario.world.random("operations"),
        }
    }

    /// Creates what an operation needs.
    ///
    /// # Errors
    /// The first line of a client's error.
    pub(super) async fn prepare(&self, operation: Operation, number: usize) -> Result<Prepared, String> {
        self.prepare_inner(operation, number).await.map_err(brief)
    }

    async fn prepare_inner(&self, operation: Operation, number: usize) -> client::Result<Prepared> {
        let regions = self.admin.regions(&self.table).await?;
        let mut prepared = Prepared {
            operation,
            number,
            region_count: regions.len(),
            regions: Vec::new(),
            row: Bytes::new(),
            target: None,
            crashed: None,
        };
        let side = prepared.side();
        match operation {
            Operation::Create => {}
            Operation::Drop | Operation::Truncate => {
                self.create(&side).await?;
                self.write(&side, &ROWS).await?;
                prepared.regions = self.admin.regions(&side).await?;
            }
            Operation::Restore => {
                self.create(&side).await?;
                self.write(&side, &ROWS).await?;
                self.admin.snapshot(&prepared.snapshot(), &side, false, 0).await?;
                self.write(&side, &[LATER_ROW]).await?;
                prepared.regions = self.admin.regions(&side).await?;
            }
            Operation::Clone => {
                let source = name_of("source", number);
                self.create(&source).await?;
                self.write(&source, &ROWS).await?;
                self.admin.snapshot(&prepared.snapshot(), &source, false, 0).await?;
            }
            Operation::Split => {
                let row = SPLIT_ROWS[number - 1][self.random.index(4)];
                prepared.row = Bytes::from_static(row.as_bytes());
                prepared.regions =
                    regions.into_iter().filter(|region| region.contains(&prepared.row)).collect();
            }
            Operation::Merge => {
                let first = if number == 1 { 0 } else { regions.len() - 2 };
                prepared.regions = regions[first..first + 2].to_vec();
            }
            Operation::Move => {
                let servers = self.admin.cluster_status().await?.servers;
                prepared.target = Some(servers[self.random.index(servers.len())].server.clone());
                prepared.regions = vec![regions[self.random.index(regions.len())].clone()];
            }
            Operation::Alter | Operation::Snapshot => prepared.regions = regions,
            Operation::Crash => {
                prepared.crashed = Some(self.servers[self.random.index(self.servers.len())].clone());
            }
        }
        Ok(prepared)
    }

    async fn create(&self, table: &TableName) -> client::Result<()> {
        let family = FamilyDescriptor::new(Bytes::from_static(b"a"));
        let descriptor = TableDescriptor::new(table.clone()).with_family(family);
        self.admin.create_table(&descriptor, &[Bytes::from_static(b"m")]).await
    }

    async fn write(&self, table: &TableName, rows: &[&'static [u8]]) -> client::Result<()> {
        for row in rows {
            let cell = KeyValue::new(row, b"a", b"q", 1, CellType::Put, b"value");
            let put = Mutation::put(Bytes::from_static(row), vec![cell]);
            self.client.table(table.clone()).mutate(&put).await?;
        }
        Ok(())
    }

    /// Executes an operation, except a crash.
    ///
    /// # Errors
    /// The first line of a client's error. The operation may have been executed.
    pub(super) async fn execute(&self, prepared: &Prepared) -> Result<(), String> {
        self.execute_inner(prepared).await.map_err(brief)
    }

    async fn execute_inner(&self, prepared: &Prepared) -> client::Result<()> {
        let (admin, side, snapshot) = (&self.admin, prepared.side(), prepared.snapshot());
        match prepared.operation {
            Operation::Create => self.create(&side).await,
            Operation::Drop => {
                admin.disable_table(&side).await?;
                admin.delete_table(&side).await
            }
            Operation::Truncate => {
                admin.disable_table(&side).await?;
                admin.truncate_table(&side, self.random.one_in(2)).await
            }
            Operation::Alter => {
                let mut table = admin.describe(&self.table).await?;
                for family in table.families.values_mut() {
                    family.attributes.insert("VERSIONS".into(), prepared.versions().into());
                }
                admin.modify_table(&table).await
            }
            Operation::Split => admin.split_region(&prepared.regions[0], Some(prepared.row.clone())).await,
            Operation::Merge => {
                let names: Vec<Bytes> =
                    prepared.regions.iter().map(|region| region.encoded_name().into()).collect();
                admin.merge_regions(&names, false).await
            }
            Operation::Move => {
                let encoded = prepared.regions[0].encoded_name().into();
                admin.move_region(&encoded, prepared.target.as_ref()).await
            }
            Operation::Snapshot => admin.snapshot(&snapshot, &self.table, self.random.one_in(4), 0).await,
            Operation::Clone => admin.restore_snapshot(&snapshot, &side).await,
            Operation::Restore => {
                admin.disable_table(&side).await?;
                admin.restore_snapshot(&snapshot, &side).await?;
                admin.enable_table(&side).await
            }
            Operation::Crash => Ok(()),
        }
    }

    /// Checks what an operation has left, when all faults have ended.
    ///
    /// # Errors
    /// A violation.
    pub(super) async fn verify(&self, prepared: &Prepared, has_succeeded: bool) -> Result<(), String> {
        let failed =
            |error: Error| format!("violated: tables can be read after all faults: {}", brief(error));
        let found = self.effect_of(prepared).await.map_err(failed)?;
        let operation = prepared.operation;
        match found {
            Effect::None if has_succeeded => {
                Err(format!("violated: an operation that succeeded has its effect: {operation:?}"))
            }
            Effect::Partial(found) => Err(format!(
                "violated: an operation has its effect completely or not: {operation:?}: {found}"
            )),
            Effect::None | Effect::Complete => Ok(()),
        }
    }

    async fn effect_of(&self, prepared: &Prepared) -> client::Result<Effect> {
        let side = prepared.side();
        match prepared.operation {
            Operation::Create => {
                let Some(rows) = self.rows(&side).await? else { return Ok(Effect::None) };
                let regions = self.admin.regions(&side).await?.len();
                Ok(Effect::complete_if(rows.is_empty() && regions == 2, || {
                    format!("{rows:?}, {regions} regions")
                }))
            }
            Operation::Drop => match self.admin.table_exists(&side).await? {
                true => self.rows_are(&side, &[(&ROWS, Effect::None)]).await,
                false => Ok(Effect::Complete),
            },
            Operation::Truncate => {
                self.rows_are(&side, &[(&ROWS, Effect::None), (&[], Effect::Complete)]).await
            }
            Operation::Clone => match self.admin.table_exists(&side).await? {
                true => self.rows_are(&side, &[(&ROWS, Effect::Complete)]).await,
                false => Ok(Effect::None),
            },
            Operation::Restore => {
                let later: &[&[u8]] = &[ROWS[0], LATER_ROW, ROWS[1]];
                self.rows_are(&side, &[(later, Effect::None), (&ROWS, Effect::Complete)]).await
            }
            Operation::Alter => {
                let table = self.admin.describe(&self.table).await?;
                let altered = |family: &FamilyDescriptor| {
                    family.attributes.get(&b"VERSIONS"[..]).is_some_and(|value| *value == prepared.versions())
                };
                let altered = table.families.values().filter(|family| altered(family)).count();
                Ok(Effect::of(altered, table.families.len()))
            }
            Operation::Split => self.region_count(prepared, prepared.region_count + 1).await,
            Operation::Merge => self.region_count(prepared, prepared.region_count - 1).await,
            Operation::Snapshot => self.clone_of(prepared).await,
            Operation::Move | Operation::Crash => Ok(Effect::Complete),
        }
    }

    async fn region_count(&self, prepared: &Prepared, changed: usize) -> client::Result<Effect> {
        let regions = self.admin.regions(&self.table).await?.len();
        match regions {
            _ if regions == changed => Ok(Effect::Complete),
            _ if regions == prepared.region_count => Ok(Effect::None),
            _ => Ok(Effect::Partial(format!("{regions} regions"))),
        }
    }

    /// A snapshot that is listed can be cloned.
    async fn clone_of(&self, prepared: &Prepared) -> client::Result<Effect> {
        let snapshot = prepared.snapshot();
        if self.admin.list_snapshots().await?.iter().all(|listed| listed.name != snapshot) {
            return Ok(Effect::None);
        }
        let copy = name_of("copy", prepared.number);
        self.admin.restore_snapshot(&snapshot, &copy).await?;
        Ok(Effect::complete_if(self.rows(&copy).await?.is_some(), || "the clone is disabled".to_string()))
    }

    /// The rows of an enabled table; `None` if it does not exist or is disabled.
    async fn rows(&self, table: &TableName) -> client::Result<Option<Vec<Bytes>>> {
        if !self.admin.table_exists(table).await? || !self.admin.is_enabled(table).await? {
            return Ok(None);
        }
        let rows = self.client.table(table.clone()).scan(Scan::default()).collect().await?;
        Ok(Some(rows.iter().map(|row| Bytes::copy_from_slice(row.key())).collect()))
    }

    /// Compares the rows of a table with expected ones. A disabled table is enabled first.
    async fn rows_are(&self, table: &TableName, expected: &[(&[&[u8]], Effect)]) -> client::Result<Effect> {
        let is_disabled = !self.admin.is_enabled(table).await?;
        if is_disabled {
            self.admin.enable_table(table).await?;
        }
        let rows = self.rows(table).await?.unwrap_or_default();
        let found = expected.iter().find(|(keys, _)| rows.iter().eq(keys.iter()));
        match found {
            Some((_, Effect::Complete)) if is_disabled => Ok(Effect::None),
            Some((_, effect)) => Ok(effect.clone()),
            None => Ok(Effect::Partial(format!("{table} has the rows {rows:?}"))),
        }
    }
}

/// What an operation has changed.
#[derive(Clone)]
enum Effect {
    None,
    Complete,
    Partial(String),
}

impl Effect {
    fn complete_if(is_complete: bool, found: impl FnOnce() -> String) -> Effect {
        if is_complete { Effect::Complete } else { Effect::Partial(found()) }
    }

    fn of(changed: usize, all: usize) -> Effect {
        match changed {
            0 => Effect::None,
            changed if changed == all => Effect::Complete,
            changed => Effect::Partial(format!("{changed} of {all} were changed")),
        }
    }
}

/// The first line of an error.
fn brief(error: Error) -> String {
    error.to_string().lines().next().unwrap_or_default().chars().take(300).collect()
}
