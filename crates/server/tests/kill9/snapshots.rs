//! Snapshots taken under load, and the content of a table cloned from one. Each row must be whole,
//! no older than the last write acknowledged before the snapshot was requested, and no newer than
//! the last write sent before the snapshot completed.
//!
//! A snapshot that a kill interrupts may exist afterwards or not. Acknowledged ones must exist.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use cell::schema::TableName;
use client::{Admin, Client};

use crate::cells::RowContent;
use crate::choices::RandomChoices;
use crate::ledger::{Floor, Ledger};
use crate::world::{LoadState, scan};

/// Maximum number of snapshots.
const SNAPSHOTS_MAX: usize = 3;

struct SnapshotRecord {
    floor: BTreeMap<Bytes, Floor>,
    newest: u64,
}

#[derive(Default)]
struct State {
    taken: BTreeMap<String, SnapshotRecord>,
    // Being taken or deleted, so it may exist or not.
    unconfirmed: Option<String>,
    count: u64,
}

/// The snapshots of a table, as the client that takes them knows them.
pub struct Snapshots {
    table: TableName,
    ledger: Arc<Mutex<Ledger>>,
    state: Mutex<State>,
}

impl Snapshots {
    pub fn new(table: TableName, ledger: Arc<Mutex<Ledger>>) -> Snapshots {
        Snapshots { table, ledger, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no holder of this lock panics")
    }

    /// Takes a snapshot, or deletes the oldest if there are enough.
    pub async fn step(&self, admin: &Admin, load: &LoadState) {
        let oldest = {
            let state = self.state();
            (state.taken.len() >= SNAPSHOTS_MAX).then(|| state.taken.keys().next().cloned()).flatten()
        };
        let (what, outcome) = match oldest {
            Some(name) => ("deletion of snapshot", self.delete(admin, name).await),
            None => ("snapshot", self.take(admin).await),
        };
        if let Err(error) = outcome {
            load.record_failure(what, &error);
        }
    }

    async fn take(&self, admin: &Admin) -> client::Result<()> {
        let name = {
            let mut state = self.state();
            state.count += 1;
            let name = format!("snapshot{:06}", state.count);
            state.unconfirmed = Some(name.clone());
            name
        };
        let floor = self.ledger().floor();
        admin.snapshot(&name, &self.table, false, 0).await?;
        // A row that was deleted for the first time while the snapshot was taken may be missing in
        // it.
        let (newest, later) = {
            let ledger = self.ledger();
            (ledger.newest(), ledger.floor())
        };
        let floor = floor.into_iter().map(|(row, floor)| {
            let until = floor.extended_to(later.get(&row));
            (row, until)
        });
        let floor = floor.collect();
        let mut state = self.state();
        state.unconfirmed = None;
        state.taken.insert(name, SnapshotRecord { floor, newest });
        Ok(())
    }

    async fn delete(&self, admin: &Admin, name: String) -> client::Result<()> {
        {
            let mut state = self.state();
            state.taken.remove(&name);
            state.unconfirmed = Some(name.clone());
        }
        admin.delete_snapshot(&name).await?;
        self.state().unconfirmed = None;
        Ok(())
    }

    /// Checks the snapshots after a start, sometimes also the content of one. Returns the
    /// violations.
    pub async fn verify(&self, client: &Client, choices: &RandomChoices) -> client::Result<Vec<String>> {
        let admin = client.admin();
        let unconfirmed = self.state().unconfirmed.take();
        let mut listed: Vec<_> =
            admin.list_snapshots().await?.into_iter().map(|snapshot| snapshot.name).collect();
        listed.sort();
        if let Some(name) = unconfirmed.filter(|name| listed.contains(name)) {
            admin.delete_snapshot(&name).await?;
            listed.retain(|listed| *listed != name);
        }
        let names: Vec<_> = self.state().taken.keys().cloned().collect();
        if listed != names {
            return Ok(vec![format!("snapshots listed: {listed:?}, expected: {names:?}")]);
        }
        if names.is_empty() || !choices.once_in(3) {
            return Ok(Vec::new());
        }
        let name = &names[choices.within(0..names.len() as u64) as usize];
        let seen = content(client, name).await?;
        let wrong = self.state().taken[name].check(&seen);
        Ok(wrong.into_iter().map(|what| format!("snapshot {name}: {what}")).collect())
    }
}

/// Clones the snapshot into a table, reads the table, and deletes it.
async fn content(client: &Client, name: &str) -> client::Result<BTreeMap<Bytes, RowContent>> {
    let admin = client.admin();
    let clone = TableName::parse("clone").expect("a legal name");
    admin.restore_snapshot(name, &clone).await?;
    let seen = scan(&client.table(clone.clone())).await?;
    admin.disable_table(&clone).await?;
    admin.delete_table(&clone).await?;
    Ok(seen)
}

impl SnapshotRecord {
    fn check(&self, seen: &BTreeMap<Bytes, RowContent>) -> Vec<String> {
        let mut wrong = Vec::new();
        for (row, seen) in seen {
            let floor = self.floor.get(row).and_then(|floor| floor.acknowledged).unwrap_or(0);
            match seen {
                RowContent::Version(version) if *version < floor => {
                    wrong.push(format!("lost: {} is {version}, was {floor}", row.escape_ascii()));
                }
                RowContent::Version(version) if *version > self.newest => {
                    wrong.push(format!("invented: {} is {version}", row.escape_ascii()));
                }
                RowContent::Version(_) => {}
                RowContent::Torn(what) | RowContent::Foreign(what) => {
                    wrong.push(format!("torn: {} is {what}", row.escape_ascii()));
                }
            }
        }
        let missing = self.floor.iter().filter(|(row, floor)| floor.must_exist() && !seen.contains_key(*row));
        wrong.extend(missing.map(|(row, floor)| format!("lost: {} was {floor:?}", row.escape_ascii())));
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_contains_earlier_acknowledged_writes() {
        let (kept, deletable) = (Bytes::from_static(b"kept"), Bytes::from_static(b"deletable"));
        let mut ledger = Ledger::default();
        for version in 1..=2 {
            ledger.record_sent(&kept, Some(version));
            ledger.record_acknowledged(&kept);
        }
        ledger.record_sent(&deletable, None);
        ledger.record_sent(&deletable, Some(2));
        ledger.record_acknowledged(&deletable);
        let taken = SnapshotRecord { floor: ledger.floor(), newest: 3 };
        let check = |seen: RowContent| taken.check(&BTreeMap::from([(kept.clone(), seen)]));
        assert_eq!(check(RowContent::Version(2)), [""; 0]);
        assert_eq!(check(RowContent::Version(3)), [""; 0]);
        assert!(check(RowContent::Version(1))[0].starts_with("lost"));
        assert!(check(RowContent::Version(4))[0].starts_with("invented"));
        assert!(check(RowContent::Torn("a".into()))[0].starts_with("torn"));
        assert!(taken.check(&BTreeMap::new())[0].starts_with("lost: kept"));
        ledger.record_sent(&kept, None);
        let floor = taken.floor[&kept].extended_to(ledger.floor().get(&kept));
        assert!(
            taken.floor[&kept].must_exist() && !floor.must_exist(),
            "the row was deleted while the snapshot was taken"
        );
    }
}
