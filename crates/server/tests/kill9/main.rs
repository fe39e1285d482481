//! `kill -9` of the real binary under load, again and again, with an outside witness of what it acknowledged.
//!
//! A cycle: start the server on the directory that the last kill left (some starts are killed too), see that every
//! table is whole and every row holds what it must, then load it with writers, changes of tables, flushes and
//! compactions, and send SIGKILL at a random moment. Small memstores and logs make flushes, compactions and rolls
//! happen all the time. What the server acknowledged is kept here, in [`ledger`]; it is never asked of the server.
//!
//! What this shows: no acknowledgement before the write has left the process; a start from every state of the
//! directory; rows whole across families; creations of tables done or undone. What it cannot show: `kill -9` does not
//! take the page cache along, so a missing sync goes unnoticed here. Power cuts, torn and lost unsynced writes are
//! the subject of the in-process crash tests (`wal/tests`, `engine/tests/crash.rs`). That this checker notices an
//! acknowledgement that comes too early is shown below, by a witness that takes writes for acknowledged when they are
//! sent: from outside it looks the same.
//!
//! Variables:
//!
//! * `GRAMPUS_KILL_CYCLES`: kills under load (default 5);
//! * `GRAMPUS_KILL_SEED`: what the test itself chooses at random (the moments stay the machine's);
//! * `GRAMPUS_KILL_BINARY`: another build of the server;
//! * `GRAMPUS_KEEP_IMAGES`: a directory that gets a copy of the data after every kill, for other readers of the files.

mod cells;
mod chance;
mod disorder;
mod ledger;
mod network;
mod restart;
mod server;
mod tables;
mod world;
mod writer;

use world::{World, number_of};
use writer::Witness;

const CYCLES: u64 = 5;
/// Kills within which a witness that believes too early must have been proved wrong.
const EARLY_CYCLES_MAX: u64 = 30;

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
    world::on_a_runtime("early", async |env| {
        let mut world = World::new(env, "early", Witness::TooEarly);
        for kill in 1..=EARLY_CYCLES_MAX {
            if let Err(violations) = world.cycle().await {
                assert!(violations.contains("lost"), "{violations}");
                println!("noticed after {} kills", kill - 1);
                world.finish();
                return;
            }
        }
        panic!("{EARLY_CYCLES_MAX} kills, and no write in flight was lost");
    });
}
