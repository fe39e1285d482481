//! Administrative operations while faults come and go. Each may fail; the checks at the end find
//! what it left.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::Scan;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{CellType, KeyValue};
use client::{Admin, Client, Result};
use wire::meta::TableState;

use super::dropped_family::DroppedFamily;
use crate::random::RandomSource;
use crate::workload::Workload;
use crate::world::World;

/// A client stops to wait for an operation after this time. The operation may continue.
const PATIENCE: Duration = Duration::from_secs(40);
/// Moves of a region in one operation.
const MOVES_MAX: usize = 4;
/// Names of tables other than that of the workload, and of snapshots.
const SIDES: [&str; 2] = ["side1", "side2"];
const SNAPSHOTS: [&str; 2] = ["snapshot1", "snapshot2"];

/// Whether the operator creates, drops and restores this table.
pub(super) fn is_side_table(table: &TableName) -> bool {
    SIDES.contains(&table.to_string().as_str())
}

/// An administrative operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Flushes the table.
    Flush,
    /// Compacts the table.
    Compact,
    /// Splits a region.
    Split,
    /// Merges two adjacent regions.
    Merge,
    /// Moves a region to another server, or to any, several times in succession.
    Move,
    /// Balances regions among servers.
    Balance,
    /// Creates a side table and writes to it.
    Create,
    /// Disables and drops a side table.
    Drop,
    /// Disables and truncates a side table.
    Truncate,
    /// Disables, or enables, a side table.
    Switch,
    /// Changes the table while it is used: its numbers of versions, or a family that is dropped and
    /// added again.
    Alter,
    /// Takes a snapshot of the table.
    Snapshot,
    /// Creates a side table from a snapshot, or restores it.
    Restore,
}

/// All operations.
pub const OPERATIONS: [Operation; 13] = [
    Operation::Flush,
    Operation::Compact,
    Operation::Split,
    Operation::Merge,
    Operation::Move,
    Operation::Balance,
    Operation::Create,
    Operation::Drop,
    Operation::Truncate,
    Operation::Switch,
    Operation::Alter,
    Operation::Snapshot,
    Operation::Restore,
];

/// Runs operations. See the module's documentation.
#[derive(Clone)]
pub struct Operator {
    world: Arc<World>,
    client: Client,
    admin: Admin,
    table: TableName,
    random: Arc<RandomSource>,
    // Decides which changes concern the family that is dropped.
    drops: Arc<RandomSource>,
    dropped_family: Arc<DroppedFamily>,
}

impl Operator {
    /// An operator of the cluster of a workload.
    pub fn new(world: Arc<World>, client: Client, workload: &Workload) -> Operator {
        Operator {
            random: Arc::new(world.random("operator")),
            drops: Arc::new(world.random("drops")),
            dropped_family: Arc::new(DroppedFamily::new(world.clone(), client.clone(), workload)),
            world,
            admin: client.admin(),
            client,
            table: workload.table().clone(),
        }
    }

    /// Runs an operation, for a limited time. Its result is an event.
    pub async fn operate(&self, operation: Operation) {
        let name = format!("{operation:?}");
        self.world.record("operator", &format!("{name} begins"));
        let event = match self.world.timeout(PATIENCE, self.run(operation)).await {
            Some(Ok(())) => format!("{name} ends"),
            Some(Err(error)) => {
                let text = error.to_string();
                let text: String = text.lines().next().unwrap_or_default().chars().take(160).collect();
                format!("{name} failed: {text}")
            }
            None => format!("{name} has not ended in time"),
        };
        self.world.record("operator", &event);
    }

    async fn run(&self, operation: Operation) -> Result<()> {
        match operation {
            Operation::Flush => self.admin.flush(&self.table).await,
            Operation::Compact => self.admin.compact(&self.table, self.random.one_in(2)).await,
            Operation::Split => self.split().await,
            Operation::Merge => self.merge().await,
            Operation::Move => self.move_region().await,
            Operation::Balance => {
                let request = proto::BalanceRequest::default();
                let _: proto::BalanceResponse = self.admin.call_master("Balance", &request).await?;
                Ok(())
            }
            Operation::Create => self.create().await,
            Operation::Drop => {
                let table = self.disabled_side().await?;
                self.admin.delete_table(&table).await
            }
            Operation::Truncate => {
                let table = self.disabled_side().await?;
                self.admin.truncate_table(&table, self.random.one_in(2)).await
            }
            Operation::Switch => self.switch().await,
            Operation::Alter => self.alter().await,
            Operation::Snapshot => self.snapshot().await,
            Operation::Restore => self.restore().await,
        }
    }

    async fn split(&self) -> Result<()> {
        let regions = self.admin.regions(&self.table).await?;
        let region = &regions[self.random.index(regions.len())];
        self.admin.split_region(region, None).await
    }

    async fn merge(&self) -> Result<()> {
        let regions = self.admin.regions(&self.table).await?;
        if regions.len() < 2 {
            return Ok(());
        }
        let first = self.random.index(regions.len() - 1);
        let encoded = |at: usize| Bytes::from(regions[at].encoded_name().to_string());
        self.admin.merge_regions(&[encoded(first), encoded(first + 1)], false).await
    }

    async fn move_region(&self) -> Result<()> {
        let regions = self.admin.regions(&self.table).await?;
        let region = &regions[self.random.index(regions.len())];
        let servers = self.admin.cluster_status().await?.servers;
        let encoded = Bytes::from(region.encoded_name().to_string());
        // Late copies of calls for one move then arrive during another one.
        for _ in 0..=self.random.index(MOVES_MAX) {
            let chosen = servers.get(self.random.index(servers.len() + 1));
            self.admin.move_region(&encoded, chosen.map(|server| &server.server)).await?;
        }
        Ok(())
    }

    fn side(&self) -> TableName {
        TableName::parse(SIDES[self.random.index(SIDES.len())]).expect("a valid name")
    }

    async fn create(&self) -> Result<()> {
        let table = self.side();
        let family = FamilyDescriptor::new(Bytes::from_static(b"a"));
        let descriptor = TableDescriptor::new(table.clone()).with_family(family);
        let splits = [Bytes::from_static(b"m")];
        self.admin.create_table(&descriptor, &splits[..self.random.index(2)]).await?;
        for row in [b"a", b"z"] {
            let cell = KeyValue::new(row, b"a", b"q", 1, CellType::Put, b"value");
            let put = Mutation::put(Bytes::from_static(row), vec![cell]);
            self.client.table(table.clone()).mutate(&put).await?;
        }
        Ok(())
    }

    /// A side table that is disabled.
    async fn disabled_side(&self) -> Result<TableName> {
        let table = self.side();
        if self.admin.is_enabled(&table).await? {
            self.admin.disable_table(&table).await?;
        }
        Ok(table)
    }

    async fn switch(&self) -> Result<()> {
        let table = self.side();
        match self.admin.table_state(&table).await? {
            Some(TableState::Enabled) => self.admin.disable_table(&table).await,
            Some(TableState::Disabled) => self.admin.enable_table(&table).await,
            _ => Ok(()),
        }
    }

    /// Checks that no cell of a dropped family has come back.
    ///
    /// # Errors
    /// A failed read. A violation is recorded in the history.
    pub(super) async fn check_dropped_family(&self) -> Result<()> {
        self.dropped_family.check().await
    }

    async fn alter(&self) -> Result<()> {
        if self.drops.one_in(2) {
            return self.dropped_family.renew().await;
        }
        let mut table = self.admin.describe(&self.table).await?;
        let versions = 1 + self.random.below(4) as u32;
        for family in table.families.values_mut() {
            family.attributes.insert("VERSIONS".into(), versions.to_string().into());
        }
        self.admin.modify_table(&table).await
    }

    async fn snapshot(&self) -> Result<()> {
        let name = SNAPSHOTS[self.random.index(SNAPSHOTS.len())];
        if self.admin.list_snapshots().await?.iter().any(|snapshot| snapshot.name == name) {
            self.admin.delete_snapshot(name).await?;
        }
        self.admin.snapshot(name, &self.table, self.random.one_in(4), 0).await
    }

    /// Restores a snapshot into a side table, and reads that.
    async fn restore(&self) -> Result<()> {
        let snapshots = self.admin.list_snapshots().await?;
        let Some(snapshot) = snapshots.get(self.random.index(snapshots.len().max(1))) else { return Ok(()) };
        let table = self.side();
        if self.admin.table_exists(&table).await? && self.admin.is_enabled(&table).await? {
            self.admin.disable_table(&table).await?;
        }
        self.admin.restore_snapshot(&snapshot.name, &table).await?;
        if !self.admin.is_enabled(&table).await? {
            self.admin.enable_table(&table).await?;
        }
        self.client.table(table).scan(Scan::default()).collect().await.map(drop)
    }
}
