//! A family of the table that the operator writes, drops and adds again. Clients do not use it.
//!
//! The cells of each round have their own qualifier. When a drop has ended, the cells of the rounds
//! that were acknowledged before it began must not come back: not from files, and not from logs
//! that are replayed later.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::{CellSelection, FamilyColumns, Scan};
use cell::schema::{FamilyDescriptor, TableName};
use cell::{CellType, KeyValue};
use client::{Client, Result};

use crate::history::History;
use crate::workload::{SENT_ONCE, Workload};
use crate::world::World;

const FAMILY: &[u8] = b"d";
/// One row of each region with which the table was created.
const ROWS: [&[u8]; 4] = [b"row00", b"row03", b"row06", b"row09"];

/// The family. See the module's documentation.
pub(super) struct DroppedFamily {
    world: Arc<World>,
    client: Client,
    table: TableName,
    history: Arc<History>,
    rounds: Mutex<Rounds>,
}

#[derive(Default)]
struct Rounds {
    last: u64,
    /// All cells were acknowledged, and were sent once: so none of them can be written again.
    written: BTreeSet<u64>,
    dropped: BTreeSet<u64>,
}

impl DroppedFamily {
    /// The family in the table of a workload. It does not exist yet.
    pub(super) fn new(world: Arc<World>, client: Client, workload: &Workload) -> DroppedFamily {
        DroppedFamily {
            world,
            client,
            table: workload.table().clone(),
            history: workload.history().clone(),
            rounds: Mutex::default(),
        }
    }

    /// Writes the family, drops it, adds it again, and checks it.
    pub(super) async fn renew(&self) -> Result<()> {
        if !self.exists().await? {
            self.add().await?;
        }
        self.write().await?;
        self.drop_family().await?;
        self.add().await?;
        self.check().await
    }

    async fn exists(&self) -> Result<bool> {
        let table = self.client.admin().describe(&self.table).await?;
        Ok(table.families.contains_key(FAMILY))
    }

    async fn add(&self) -> Result<()> {
        let family = FamilyDescriptor::new(Bytes::from_static(FAMILY));
        self.client.admin().add_family(&self.table, &family).await
    }

    async fn drop_family(&self) -> Result<()> {
        let written = self.lock().written.clone();
        self.client.admin().delete_family(&self.table, FAMILY).await?;
        let mut rounds = self.lock();
        rounds.written.retain(|round| !written.contains(round));
        rounds.dropped.extend(written);
        Ok(())
    }

    /// Writes the cells of a new round.
    async fn write(&self) -> Result<()> {
        let round = self.begin_round();
        let table = self.client.table(self.table.clone());
        let mut is_sent_once = true;
        for row in ROWS {
            let cell = KeyValue::new(row, FAMILY, &round.to_be_bytes(), 1, CellType::Put, b"");
            let begun = self.world.now();
            table.mutate(&Mutation::put(Bytes::from_static(row), vec![cell])).await?;
            is_sent_once &= self.world.now() - begun < SENT_ONCE;
        }
        if is_sent_once {
            self.lock().written.insert(round);
        }
        Ok(())
    }

    fn begin_round(&self) -> u64 {
        let mut rounds = self.lock();
        rounds.last += 1;
        rounds.last
    }

    /// Reads the family, if it exists. Cells of dropped rounds are violations.
    ///
    /// # Errors
    /// A failed read.
    pub(super) async fn check(&self) -> Result<()> {
        if !self.exists().await? {
            return Ok(());
        }
        let (dropped, begun) = (self.lock().dropped.clone(), self.history.old_reads());
        let columns = vec![FamilyColumns { family: Bytes::from_static(FAMILY), qualifiers: None }];
        let selection = CellSelection { columns, ..CellSelection::default() };
        let scan = Scan { selection, ..Scan::default() };
        let rows = self.client.table(self.table.clone()).scan(scan).collect().await?;
        if self.history.may_be_old(begun) {
            return Ok(());
        }
        for cell in rows.iter().flat_map(|row| &row.cells) {
            let cell = cell.view(0);
            let round = cell.qualifier().try_into().map_or(0, u64::from_be_bytes);
            if dropped.contains(&round) {
                let found = format!("{}: round {round}", cell.row().escape_ascii());
                self.history.violate("the cells of a dropped family do not come back", found);
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
