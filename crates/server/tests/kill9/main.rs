//! `kill -9` of the real binary under load, repeatedly, with an external record of the writes that
//! it acknowledged.
//!
//! One cycle: start the server on the directory that the last kill left (some starts are killed
//! too); check that every table is whole and every row has the required content; put load on it;
//! send SIGKILL at a random moment. The load consists of writers, increments and appends with
//! nonces, chains of conditional changes, table changes, snapshots, flushes and compactions. Small
//! memstores and logs cause constant flushes, compactions and log rolls. Families use all kinds of
//! compression, encoding and Bloom filters. The test records what the server acknowledged
//! ([`ledger`], [`accounts`], [`chains`]); it never takes the expected content from the server.
//!
//! The test shows that:
//! * no write is acknowledged before it has left the process;
//! * the server starts from every state of the directory;
//! * rows are whole across families, and snapshots are whole;
//! * a nonce is executed once, and a condition is met by one change;
//! * a creation, truncation or alteration of a table happens completely or not at all;
//! * all this is so while files move between storage tiers, and each name has bytes of its own.
//!
//! It does not show missing syncs, because the page cache survives `kill -9`. In-process crash
//! tests cover power losses, torn writes and lost unsynced writes (`wal/tests`,
//! `engine/tests/crash.rs`).
//!
//! Two tests below plant errors to check this checker. One counts writes as acknowledged when they
//! are sent, which simulates a server that acknowledges too early. The other resends operations
//! with fresh nonces, which simulates a server that forgets nonces.
//!
//! Environment variables:
//!
//! * `GRAMPUS_KILL_CYCLES`: kills under load (default 5);
//! * `GRAMPUS_KILL_SEED`: seed of the test's own random choices (timing still varies);
//! * `GRAMPUS_KILL_BINARY`: another build of the server;
//! * `GRAMPUS_KEEP_IMAGES`: a directory that receives a copy of the data after every kill, to test
//!   other readers of the files.

mod accounts;
mod cells;
mod chains;
mod choices;
mod disorder;
mod forms;
mod ledger;
mod network;
mod restart;
mod server;
mod snapshots;
mod tables;
mod tiers;
mod world;
mod writer;

use world::{World, number_of};
use writer::Witness;

const CYCLES: u64 = 5;
/// Maximum number of kills until a planted error must be detected.
const PLANTED_CYCLES_MAX: u64 = 30;

#[test]
fn acknowledged_writes_survive_kills() {
    check_survival("survive", |world| world);
}

#[test]
fn acknowledged_writes_survive_kills_while_files_move_between_tiers() {
    check_survival("tiers", World::on_tiers);
}

fn check_survival(name: &str, prepared: fn(World) -> World) {
    let cycles = number_of("GRAMPUS_KILL_CYCLES").unwrap_or(CYCLES);
    world::on_a_runtime(name, async |env| {
        let mut world = prepared(World::new(env, name, Witness::Honest));
        for _ in 0..cycles {
            world.cycle().await.unwrap_or_else(|violations| panic!("{violations}"));
        }
        world.final_check().await.unwrap_or_else(|violations| panic!("{violations}"));
        world.finish();
    });
}

#[test]
fn an_acknowledgement_before_the_write_is_detected() {
    check_detected("early", Witness::TooEarly, "lost");
}

#[test]
fn a_forgotten_nonce_is_detected() {
    check_detected("nonces", Witness::FreshNonces, "doubled");
}

/// Checks that a planted error is detected within some kills, and reported with the right
/// violation.
fn check_detected(name: &str, witness: Witness, called: &str) {
    world::on_a_runtime(name, async |env| {
        let mut world = World::new(env, name, witness);
        for kill in 1..=PLANTED_CYCLES_MAX {
            if let Err(violations) = world.cycle().await {
                assert!(violations.contains(called), "{violations}");
                println!("detected after {} kills", kill - 1);
                world.finish();
                return;
            }
        }
        panic!("{name} was not detected in {PLANTED_CYCLES_MAX} kills");
    });
}
