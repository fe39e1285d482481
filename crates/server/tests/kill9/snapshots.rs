//! Snapshots taken under load, and what a table made of one must hold: each row whole, no older than what was
//! acknowledged before the snapshot was asked for, no newer than what was sent before it was there.
//!
//! One whose taking a kill interrupts is there after it, or is not; those that were acknowledged are.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use cell::schema::TableName;
use client::{Admin, Client};

use crate::cells::Seen;
use crate::chance::Chance;
use crate::ledger::{Floor, Ledger};
use crate::world::{Load, scan};

/// Snapshots that are kept at most.
const KEPT: usize = 3;

struct Taken {
    floor: BTreeMap<Bytes, Floor>,
    newest: u64,
}

#[derive(Default)]
struct State {
    taken: BTreeMap<String, Taken>,
    // Being taken or deleted: there, or not.
    unsure: Option<String>,
    count: u64,
}

/// The snapshots of a table, as the one who takes them knows them.
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

    /// Takes one, or deletes the oldest if there are enough.
    pub async fn step(&self, admin: &Admin, load: &Load) {
        let oldest = {
            let state = self.state();
            (state.taken.len() >= KEPT).then(|| state.taken.keys().next().cloned()).flatten()
        };
        let (what, outcome) = match oldest {
            Some(name) => ("deletion of snapshot", self.delete(admin, name).await),
            None => ("snapshot", self.take(admin).await),
        };
        if let Err(error) = outcome {
            load.failed(what, &error);
        }
    }

    async fn take(&self, admin: &Admin) -> client::Result<()> {
        let name = {
            let mut state = self.state();
            state.count += 1;
            let name = format!("snapshot{:06}", state.count);
            state.unsure = Some(name.clone());
            name
        };
        let floor = self.ledger().floor();
        admin.snapshot(&name, &self.table, false, 0).await?;
        // What was deleted for the first time while it was taken may be in it, or not.
        let (newest, later) = {
            let ledger = self.ledger();
            (ledger.newest(), ledger.floor())
        };
        let floor = floor.into_iter().map(|(row, floor)| {
            let until = floor.until(later.get(&row));
            (row, until)
        });
        let floor = floor.collect();
        let mut state = self.state();
        state.unsure = None;
        state.taken.insert(name, Taken { floor, newest });
        Ok(())
    }

    async fn delete(&self, admin: &Admin, name: String) -> client::Result<()> {
        {
            let mut state = self.state();
            state.taken.remove(&name);
            state.unsure = Some(name.clone());
        }
        admin.delete_snapshot(&name).await?;
        self.state().unsure = None;
        Ok(())
    }

    /// Looks at the snapshots after a start, at one of them closely; what is wrong, in words.
    pub async fn verify(&self, client: &Client, chance: &Chance) -> client::Result<Vec<String>> {
        let admin = client.admin();
        let unsure = self.state().unsure.take();
        let mut listed: Vec<_> =
            admin.list_snapshots().await?.into_iter().map(|snapshot| snapshot.name).collect();
        listed.sort();
        if let Some(name) = unsure.filter(|name| listed.contains(name)) {
            admin.delete_snapshot(&name).await?;
            listed.retain(|listed| *listed != name);
        }
        let names: Vec<_> = self.state().taken.keys().cloned().collect();
        if listed != names {
            return Ok(vec![format!("snapshots listed: {listed:?}, expected: {names:?}")]);
        }
        if names.is_empty() || !chance.once_in(3) {
            return Ok(Vec::new());
        }
        let name = &names[chance.within(0..names.len() as u64) as usize];
        let seen = content(client, name).await?;
        let wrong = self.state().taken[name].check(&seen);
        Ok(wrong.into_iter().map(|what| format!("snapshot {name}: {what}")).collect())
    }
}

/// What a table made of the snapshot holds; the table is gone when it returns.
async fn content(client: &Client, name: &str) -> client::Result<BTreeMap<Bytes, Seen>> {
    let admin = client.admin();
    let clone = TableName::parse("clone").expect("a legal name");
    admin.restore_snapshot(name, &clone).await?;
    let seen = scan(&client.table(clone.clone())).await?;
    admin.disable_table(&clone).await?;
    admin.delete_table(&clone).await?;
    Ok(seen)
}

impl Taken {
    fn check(&self, seen: &BTreeMap<Bytes, Seen>) -> Vec<String> {
        let mut wrong = Vec::new();
        for (row, seen) in seen {
            let floor = self.floor.get(row).and_then(|floor| floor.acknowledged).unwrap_or(0);
            match seen {
                Seen::Version(version) if *version < floor => {
                    wrong.push(format!("lost: {} is {version}, was {floor}", row.escape_ascii()));
                }
                Seen::Version(version) if *version > self.newest => {
                    wrong.push(format!("invented: {} is {version}", row.escape_ascii()));
                }
                Seen::Version(_) => {}
                Seen::Torn(what) | Seen::Strange(what) => {
                    wrong.push(format!("torn: {} is {what}", row.escape_ascii()));
                }
            }
        }
        let missing = self.floor.iter().filter(|(row, floor)| floor.stays() && !seen.contains_key(*row));
        wrong.extend(missing.map(|(row, floor)| format!("lost: {} was {floor:?}", row.escape_ascii())));
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_holds_what_was_acknowledged_before_it() {
        let (kept, deletable) = (Bytes::from_static(b"kept"), Bytes::from_static(b"deletable"));
        let mut ledger = Ledger::default();
        for version in 1..=2 {
            ledger.sending(&kept, Some(version));
            ledger.acknowledged(&kept);
        }
        ledger.sending(&deletable, None);
        ledger.sending(&deletable, Some(2));
        ledger.acknowledged(&deletable);
        let taken = Taken { floor: ledger.floor(), newest: 3 };
        let check = |seen: Seen| taken.check(&BTreeMap::from([(kept.clone(), seen)]));
        assert_eq!(check(Seen::Version(2)), [""; 0]);
        assert_eq!(check(Seen::Version(3)), [""; 0]);
        assert!(check(Seen::Version(1))[0].starts_with("lost"));
        assert!(check(Seen::Version(4))[0].starts_with("invented"));
        assert!(check(Seen::Torn("a".into()))[0].starts_with("torn"));
        assert!(taken.check(&BTreeMap::new())[0].starts_with("lost: kept"));
        ledger.sending(&kept, None);
        let floor = taken.floor[&kept].until(ledger.floor().get(&kept));
        assert!(taken.floor[&kept].stays() && !floor.stays(), "deleted while the snapshot was taken");
    }
}
