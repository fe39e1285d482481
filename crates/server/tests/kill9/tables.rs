//! Short-lived tables: created, written, flushed, altered, disabled, truncated, enabled and
//! deleted, while kills interrupt any of these.
//!
//! After a kill, a table must be in the state of the last acknowledged change or of the interrupted
//! one, never in between. An enabled table must have all its regions, each must accept a write, and
//! its rows must match its ledger. There are few names, so that tables reuse names; nothing of an
//! earlier table may reappear.

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
use crate::choices::RandomChoices;
use crate::forms::AlteredTable;
use crate::ledger::Ledger;
use crate::world::{LoadState, scan};

/// Number of table names.
const NAMES: u64 = 5;
/// Rows of such a table.
const ROWS: u64 = 100;
/// Procedures that a kill interrupted must end within this time after the next start.
const PROCEDURES_END_WITHIN: Duration = Duration::from_secs(30);

/// The state of a table.
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
    altered: AlteredTable,
    regions: u64,
    ledger: Ledger,
}

/// A change of a table's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    To(State),
    /// A disabled table is emptied and enabled. It keeps its regions or gets a single one.
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

/// The tables, as the client that changes them knows them.
pub struct SideTables {
    tables: Mutex<BTreeMap<TableName, SideTable>>,
    choices: RandomChoices,
}

/// The next operation.
enum TableOperation {
    Change(Change),
    Alter(TableDescriptor),
    Write(Vec<(Bytes, Mutation)>),
    Flush,
}

impl SideTables {
    pub fn new(choices: RandomChoices) -> SideTables {
        SideTables { tables: Mutex::default(), choices }
    }

    /// Changes tables until the load ends.
    pub async fn run(self: Arc<Self>, env: Env, client: Client, load: Arc<LoadState>) {
        while !load.has_ended() {
            let (name, operation) = self.choose();
            let outcome = match &operation {
                TableOperation::Change(to) => self.change(&client.admin(), &name, *to).await,
                TableOperation::Alter(next) => client.admin().modify_table(next).await,
                TableOperation::Write(writes) => {
                    let mutations = writes.iter().map(|(_, mutation)| mutation.clone()).collect();
                    client.table(name.clone()).mutate_all(mutations).await
                }
                TableOperation::Flush => client.admin().flush(&name).await,
            };
            match outcome {
                Ok(()) => self.record_done(&name, operation),
                Err(error) => load.record_failure(&format!("change of table {name}"), &error),
            }
            env.clock.sleep(self.choices.millis(0..15)).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TableName, SideTable>> {
        self.tables.lock().expect("no holder of this lock panics")
    }

    /// Chooses a table and an operation, and records that it is about to be sent.
    fn choose(&self) -> (TableName, TableOperation) {
        let choices = &self.choices;
        let name = TableName::parse(&format!("side{}", choices.within(0..NAMES))).expect("a legal name");
        let mut tables = self.lock();
        let table = tables.entry(name.clone()).or_insert_with(|| SideTable {
            state: State::Absent,
            attempted: None,
            altered: AlteredTable::new(name.clone(), choices),
            regions: choices.within(1..5),
            ledger: Ledger::default(),
        });
        let operation = match table.state {
            State::Absent => TableOperation::Change(Change::To(State::Enabled)),
            State::Enabled if choices.once_in(4) => TableOperation::Change(Change::To(State::Disabled)),
            State::Enabled if choices.once_in(4) => TableOperation::Flush,
            State::Enabled | State::Disabled if choices.once_in(6) => {
                TableOperation::Alter(table.altered.next(choices))
            }
            State::Enabled => TableOperation::Write(table.next_writes(choices)),
            State::Disabled if choices.once_in(3) => TableOperation::Change(Change::To(State::Absent)),
            State::Disabled if choices.once_in(2) => {
                TableOperation::Change(Change::Truncate { keep_regions: choices.once_in(2) })
            }
            State::Disabled => TableOperation::Change(Change::To(State::Enabled)),
        };
        if let TableOperation::Change(to) = &operation {
            table.attempted = Some(*to);
        }
        (name, operation)
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

    fn record_done(&self, name: &TableName, operation: TableOperation) {
        let mut tables = self.lock();
        let table = tables.get_mut(name).expect("chosen before");
        match operation {
            TableOperation::Change(Change::To(State::Absent)) => drop(tables.remove(name)),
            TableOperation::Change(change) => table.changed(change),
            TableOperation::Alter(_) => table.altered.record_acknowledged(),
            TableOperation::Write(writes) => {
                writes.iter().for_each(|(row, _)| table.ledger.record_acknowledged(row))
            }
            TableOperation::Flush => {}
        }
    }

    /// Checks every table after a start. Returns the violations.
    pub async fn verify(&self, env: &Env, client: &Client, data: &Path, fixed: &[TableName]) -> Vec<String> {
        let admin = client.admin();
        if let Err(wrong) = procedures_end(env, &admin).await {
            return vec![wrong];
        }
        let known: Vec<_> = self.lock().keys().cloned().collect();
        let mut wrong = Vec::new();
        for name in known {
            let mut table = self.lock().remove(&name).expect("known");
            let found = table.verify(client, &name, data, &self.choices).await;
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
    /// Records that a change was applied.
    fn changed(&mut self, change: Change) {
        if let Change::Truncate { keep_regions } = change {
            self.ledger.clear();
            self.regions = if keep_regions { self.regions } else { 1 };
        }
        (self.state, self.attempted) = (change.to(), None);
    }

    fn next_writes(&mut self, choices: &RandomChoices) -> Vec<(Bytes, Mutation)> {
        let first = choices.within(0..ROWS);
        let rows = (first..first + choices.within(1..20)).map(|number| cells::row_key("s", number % ROWS));
        rows.map(|row| {
            let mutation = self.next_write(&row);
            (row, mutation)
        })
        .collect()
    }

    fn next_write(&mut self, row: &Bytes) -> Mutation {
        let version = self.ledger.next_version();
        self.ledger.record_sent(row, Some(version));
        cells::put(row, version, Timestamps::Versions)
    }

    /// Determines the state of the table and checks it. Returns the violations.
    async fn verify(
        &mut self,
        client: &Client,
        name: &TableName,
        data: &Path,
        choices: &RandomChoices,
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
            State::Disabled if choices.once_in(2) => Ok(vec![]),
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
            self.ledger.record_acknowledged(&row);
        }
        let seen = scan(&table).await?;
        let wrong = self.ledger.check(&seen);
        self.ledger.settle(&seen);
        Ok(wrong.iter().map(ToString::to_string).collect())
    }
}

/// Checks that an absent table has no regions and no directory.
#[allow(clippy::disallowed_methods, reason = "the test reads the server's directory directly")]
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

/// Waits until the procedures that a kill interrupted have ended.
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
