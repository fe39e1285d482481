//! `kill -9` of the real binary under load, again and again, with an outside witness of what it acknowledged.
//!
//! A cycle: start the server on the directory that the last kill left (some starts are killed too), see that every
//! table is whole and every row holds what it must, then load it with writers, increments and appends under nonces,
//! chains of conditional changes, changes of tables, snapshots, flushes and compactions, and send SIGKILL at a random
//! moment. Small memstores and logs make flushes, compactions and rolls happen all the time; families are compressed,
//! encoded and filtered in all ways. What the server acknowledged is kept here, in [`ledger`], [`accounts`] and
//! [`chains`]; it is never asked of the server.
//!
//! What this shows: no acknowledgement before the write has left the process; a start from every state of the
//! directory; rows whole across families; a nonce carried out once; a condition met by one; creations, truncations and
//! alters of tables done or undone; snapshots whole. What it cannot show: `kill -9` does not
//! take the page cache along, so a missing sync goes unnoticed here. Power cuts, torn and lost unsynced writes are
//! the subject of the in-process crash tests (`wal/tests`, `engine/tests/crash.rs`). That this checker notices an
//! acknowledgement that comes too early is shown below, by a witness that takes writes for acknowledged when they are
//! sent: from outside it looks the same. So does a server that forgets nonces, and one who sends again under others.
//!
//! Variables:
//!
//! * `GRAMPUS_KILL_CYCLES`: kills under load (default 5);
//! * `GRAMPUS_KILL_SEED`: what the test itself chooses at random (the moments stay the machine's);
//! * `GRAMPUS_KILL_BINARY`: another build of the server;
//! * `GRAMPUS_KEEP_IMAGES`: a directory that gets a copy of the data after every kill, for other readers of the files.

mod accounts;
mod cells;
mod chains;
mod chance;
mod disorder;
mod forms;
mod ledger;
mod network;
mod restart;
mod server;
mod snapshots;
mod tables;
mod world;
mod writer;

use world::{World, number_of};
use writer::Witness;

const CYCLES: u64 = 5;
/// Kills within which a planted error must have been noticed.
const PLANTED_CYCLES_MAX: u64 = 30;

#[test]
fn acknowledged_writes_survive_kills() {
    let cycles = number_of("GRAMPUS_KILL_CYCLES").unwrap_or(CYCLES);
    world::on_a_runtime("survive", async |env| {
        let mut world = World::new(env, "survive", Witness::Honest);
        for _ in 0..cycles {
            world.cycle().await.unwrap_or_else(|violations| panic!("{violations}"));
        }
        world.last_look().await.unwrap_or_else(|violations| panic!("{violations}"));
        world.finish();
    });
}

#[test]
fn an_acknowledgement_before_the_write_is_noticed() {
    is_noticed("early", Witness::TooEarly, "lost");
}

#[test]
fn a_forgotten_nonce_is_noticed() {
    is_noticed("nonces", Witness::FreshNonces, "doubled");
}

/// A planted error comes out within some kills, and is called what it is.
fn is_noticed(name: &str, witness: Witness, called: &str) {
    world::on_a_runtime(name, async |env| {
        let mut world = World::new(env, name, witness);
        for kill in 1..=PLANTED_CYCLES_MAX {
            if let Err(violations) = world.cycle().await {
                assert!(violations.contains(called), "{violations}");
                println!("noticed after {} kills", kill - 1);
                world.finish();
                return;
            }
        }
        panic!("{PLANTED_CYCLES_MAX} kills, and {name} was not noticed");
    });
}
