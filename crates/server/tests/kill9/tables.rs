//! Tables that come and go: created, written, flushed, altered, disabled, truncated, enabled, deleted, whatever the kill
//! interrupts.
//!
//! After a kill a table is where the last acknowledged change left it, or where the interrupted one would have: never
//! between. An enabled one has all its regions, each takes a write, and its rows are those of its ledger. Names are
//! few, so that a table follows another one of its name; nothing of the first may come back.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use cell::mutation::Mutation;
use cell::schema::{TableDescriptor, TableName};
use client::{Admin, Client};
use wire::meta::TableState;

use crate::cells::{self, Timestamps};
use crate::chance::Chance;
use crate::forms::Altered;
use crate::ledger::Ledger;
use crate::world::{Load, scan};

/// Names that tables get.
const NAMES: u64 = 5;
/// Rows of such a table.
const ROWS: u64 = 100;
/// Procedures that a kill interrupted must have ended within this time of the next start.
const PROCEDURES_END_WITHIN: Duration = Duration::from_secs(30);

/// Where a table may be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Enabled,
    Disabled,
}

struct SideTable {
    state: State,
    // A change that was sent and not acknowledged.
    attempted: Option<Change>,
    altered: Altered,
    regions: u64,
    ledger: Ledger,
}

/// A change of a table's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    To(State),
    /// A disabled table is emptied and enabled; it keeps its regions or gets one.
    Truncate {
        keep_regions: bool,
    },
}

impl Change {
    fn to(self) -> State {
        match self {
            Change::To(state) => state,
            Change::Truncate { .. } => State::Enabled,
        }
    }
}

/// The tables, as the one who changes them knows them.
pub struct SideTables {
    tables: Mutex<BTreeMap<TableName, SideTable>>,
    chance: Chance,
}

/// The next thing to do.
enum Step {
    Change(Change),
    Alter(TableDescriptor),
    Write(Vec<(Bytes, Mutation)>),
    Flush,
}

impl SideTables {
    pub fn new(chance: Chance) -> SideTables {
        SideTables { tables: Mutex::default(), chance }
    }

    /// Changes tables until the load ends.
    pub async fn run(self: Arc<Self>, env: Env, client: Client, load: Arc<Load>) {
        while !load.is_over() {
            let (name, step) = self.choose();
            let outcome = match &step {
                Step::Change(to) => self.change(&client.admin(), &name, *to).await,
                Step::Alter(next) => client.admin().modify_table(next).await,
                Step::Write(writes) => {
                    let mutations = writes.iter().map(|(_, mutation)| mutation.clone()).collect();
                    client.table(name.clone()).mutate_all(mutations).await
                }
                Step::Flush => client.admin().flush(&name).await,
            };
            match outcome {
                Ok(()) => self.done(&name, step),
                Err(error) => load.failed(&format!("change of table {name}"), &error),
            }
            env.clock.sleep(self.chance.millis(0..15)).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TableName, SideTable>> {
        self.tables.lock().expect("no holder of this lock panics")
    }

    /// Chooses a table and what to do with it, and takes note that it is about to be sent.
    fn choose(&self) -> (TableName, Step) {
        let chance = &self.chance;
        let name = TableName::parse(&format!("side{}", chance.within(0..NAMES))).expect("a legal name");
        let mut tables = self.lock();
        let table = tables.entry(name.clone()).or_insert_with(|| SideTable {
            state: State::Absent,
            attempted: None,
            altered: Altered::new(name.clone(), chance),
            regions: chance.within(1..5),
            ledger: Ledger::default(),
        });
        let step = match table.state {
            State::Absent => Step::Change(Change::To(State::Enabled)),
            State::Enabled if chance.once_in(4) => Step::Change(Change::To(State::Disabled)),
            State::Enabled if chance.once_in(4) => Step::Flush,
            State::Enabled | State::Disabled if chance.once_in(6) => Step::Alter(table.altered.next(chance)),
            State::Enabled => Step::Write(table.next_writes(chance)),
            State::Disabled if chance.once_in(3) => Step::Change(Change::To(State::Absent)),
            State::Disabled if chance.once_in(2) => {
                Step::Change(Change::Truncate { keep_regions: chance.once_in(2) })
            }
            State::Disabled => Step::Change(Change::To(State::Enabled)),
        };
        if let Step::Change(to) = &step {
            table.attempted = Some(*to);
        }
        (name, step)
    }

    async fn change(&self, admin: &Admin, name: &TableName, change: Change) -> client::Result<()> {
        let (from, regions, descriptor) = {
            let tables = self.lock();
            let table = &tables[name];
            (table.state, table.regions, table.altered.descriptor().clone())
        };
        let to = match change {
            Change::Truncate { keep_regions } => return admin.truncate_table(name, keep_regions).await,
            Change::To(to) => to,
        };
        match (from, to) {
            (State::Absent, _) => admin.create_table(&descriptor, &cells::split_keys(regions)).await,
            (_, State::Enabled) => admin.enable_table(name).await,
            (_, State::Disabled) => admin.disable_table(name).await,
            (_, State::Absent) => admin.delete_table(name).await,
        }
    }

    fn done(&self, name: &TableName, step: Step) {
        let mut tables = self.lock();
        let table = tables.get_mut(name).expect("chosen before");
        match step {
            Step::Change(Change::To(State::Absent)) => drop(tables.remove(name)),
            Step::Change(change) => table.changed(change),
            Step::Alter(_) => table.altered.done(),
            Step::Write(writes) => writes.iter().for_each(|(row, _)| table.ledger.acknowledged(row)),
            Step::Flush => {}
        }
    }

    /// Looks at every table after a start; what is wrong, in words.
    pub async fn verify(&self, env: &Env, client: &Client, data: &Path, fixed: &[TableName]) -> Vec<String> {
        let admin = client.admin();
        if let Err(wrong) = procedures_end(env, &admin).await {
            return vec![wrong];
        }
        let known: Vec<_> = self.lock().keys().cloned().collect();
        let mut wrong = Vec::new();
        for name in known {
            let mut table = self.lock().remove(&name).expect("known");
            let found = table.verify(client, &name, data, &self.chance).await;
            wrong.extend(
                found
                    .unwrap_or_else(|error| vec![error.to_string()])
                    .iter()
                    .map(|what| format!("table {name} ({:?}): {what}", table.state)),
            );
            if table.state != State::Absent {
                self.lock().insert(name, table);
            }
        }
        let mut expected: Vec<_> = self.lock().keys().cloned().collect();
        expected.extend_from_slice(fixed);
        expected.sort();
        match admin.list_tables(None, false).await {
            Ok(mut listed) => {
                listed.sort();
                if listed != expected {
                    wrong.push(format!("tables listed: {listed:?}, expected: {expected:?}"));
                }
            }
            Err(error) => wrong.push(format!("list of tables: {error}")),
        }
        wrong
    }
}

impl SideTable {
    /// A change was made.
    fn changed(&mut self, change: Change) {
        if let Change::Truncate { keep_regions } = change {
            self.ledger.clear();
            self.regions = if keep_regions { self.regions } else { 1 };
        }
        (self.state, self.attempted) = (change.to(), None);
    }

    fn next_writes(&mut self, chance: &Chance) -> Vec<(Bytes, Mutation)> {
        let first = chance.within(0..ROWS);
        let rows = (first..first + chance.within(1..20)).map(|number| cells::row_key("s", number % ROWS));
        rows.map(|row| {
            let mutation = self.next_write(&row);
            (row, mutation)
        })
        .collect()
    }

    fn next_write(&mut self, row: &Bytes) -> Mutation {
        let version = self.ledger.next_version();
        self.ledger.sending(row, Some(version));
        cells::put(row, version, Timestamps::Versions)
    }

    /// Finds out where the table is, and whether it is all there.
    async fn verify(
        &mut self,
        client: &Client,
        name: &TableName,
        data: &Path,
        chance: &Chance,
    ) -> client::Result<Vec<String>> {
        let admin = client.admin();
        let found = match admin.table_state(name).await? {
            None => State::Absent,
            Some(TableState::Enabled) => State::Enabled,
            Some(TableState::Disabled) => State::Disabled,
            Some(between) => return Ok(vec![format!("is left {between:?}")]),
        };
        match self.attempted.take() {
            _ if found == self.state => {}
            Some(change) if found == change.to() => self.changed(change),
            attempted => return Ok(vec![format!("is {found:?}, attempted {attempted:?}")]),
        }
        if found != State::Absent {
            let wrong = self.altered.verify(&admin).await?;
            if !wrong.is_empty() {
                return Ok(wrong);
            }
        }
        match found {
            State::Absent => Ok(nothing_left(client, name, data).await),
            State::Disabled if chance.once_in(2) => Ok(vec![]),
            State::Disabled => {
                admin.enable_table(name).await?;
                self.state = State::Enabled;
                self.verify_rows(client, name).await
            }
            State::Enabled => self.verify_rows(client, name).await,
        }
    }

    async fn verify_rows(&mut self, client: &Client, name: &TableName) -> client::Result<Vec<String>> {
        let table = client.table(name.clone());
        let located = table.regions().await?;
        if located.len() as u64 != self.regions {
            return Ok(vec![format!("{} of {} regions are open", located.len(), self.regions)]);
        }
        for location in located {
            let start = &location.region.start_key;
            let row = [if start.is_empty() { b"0" } else { &start[..] }, b"-probe"].concat().into();
            let mutation = self.next_write(&row);
            table.mutate(&mutation).await?;
            self.ledger.acknowledged(&row);
        }
        let seen = scan(&table).await?;
        let wrong = self.ledger.check(&seen);
        self.ledger.settle(&seen);
        Ok(wrong.iter().map(ToString::to_string).collect())
    }
}

/// A table that is not there has no regions and no directory.
#[allow(clippy::disallowed_methods, reason = "the server's directory is looked at from outside")]
async fn nothing_left(client: &Client, name: &TableName, data: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    match client.table(name.clone()).regions().await {
        Err(client::Error::TableNotFound(_)) => {}
        other => wrong.push(format!("is absent, and its regions are: {other:?}")),
    }
    let directory = data.join("data/default").join(name.qualifier());
    if directory.exists() {
        wrong.push(format!("is absent, and there is {}", directory.display()));
    }
    wrong
}

/// Waits until nothing that a kill interrupted is still being carried on.
async fn procedures_end(env: &Env, admin: &Admin) -> Result<(), String> {
    let deadline = env.clock.monotonic() + PROCEDURES_END_WITHIN;
    loop {
        let answer = admin.call_master("GetProcedures", &proto::GetProceduresRequest {}).await;
        let answer: proto::GetProceduresResponse = answer.map_err(|error| error.to_string())?;
        let is_open = |procedure: &&proto::Procedure| {
            let state = procedure.state();
            use proto::ProcedureState::{Failed, Rolledback, Success};
            !matches!(state, Success | Failed | Rolledback)
        };
        let Some(open) = answer.procedure.iter().find(is_open) else { return Ok(()) };
        if env.clock.monotonic() >= deadline {
            return Err(format!("procedure {} {} does not end", open.proc_id, open.class_name));
        }
        env.clock.sleep(Duration::from_millis(5)).await;
    }
}
