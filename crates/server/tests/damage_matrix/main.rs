//! The effect of damage to each kind of file in the root directory, and the operator's remedies.
//!
//! One root directory has files of every kind ([`image`]). For each kind ([`kinds`]) and each
//! damage ([`damage`]), a copy is damaged. The real binary is started on the copy, and all tables
//! are read with gets, scans and counts ([`probe`]). No response may be wrong or silently
//! incomplete. If the server does not start, or a region stays closed, the messages must name a
//! remedy, which the test applies ([`remedy`]). The result is `docs/damage.md` ([`page`]). A file
//! of an unknown kind fails the test: add it to [`kinds`].
//!
//! Environment variables:
//!
//! * `REGENERATE=1`: rewrite `docs/damage.md`;
//! * `GRAMPUS_DAMAGE_ALL=1`: all files, several positions of each (takes about half an hour);
//! * `GRAMPUS_DAMAGE_ONLY=TEXT`: only kinds whose name contains the text;
//! * `GRAMPUS_DAMAGE_WORKERS=N`: concurrent servers (default: one and a half per CPU).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "the server under test is another process, and the test damages its files directly"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../kill9/network.rs"]
mod network;

mod content;
mod damage;
mod image;
mod kinds;
mod known;
mod page;
mod probe;
mod remedy;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use damage::Damage;
use image::Image;
use kinds::Target;
use probe::Outcome;

/// One damage to one file, with its outcome.
pub struct Cell {
    /// The file.
    pub target: Target,
    /// The damage.
    pub damage: Damage,
    /// The outcome of a start on the damaged copy and of a client's calls.
    pub outcome: Outcome,
}

#[test]
fn damage_never_causes_wrong_or_incomplete_responses_and_has_a_remedy() {
    let mut image = Image::make();
    record_usual_lines(&mut image);
    let all = std::env::var_os("GRAMPUS_DAMAGE_ALL").is_some();
    let only = std::env::var("GRAMPUS_DAMAGE_ONLY").ok();
    let mut cases = kinds::cases(&image, all);
    cases.retain(|(target, _)| only.as_ref().is_none_or(|text| target.kind.contains(text)));
    let cells = run(&image, cases);
    let is_complete = !all && only.is_none();
    if is_complete {
        page::regenerate_if_requested(&cells);
    }
    let mut failures = Vec::new();
    for cell in &cells {
        println!("{}", page::line(cell));
        failures.extend(known::unexpected(cell));
    }
    assert!(failures.is_empty(), "{} cells fail:\n{}", failures.len(), failures.join("\n"));
    if is_complete {
        known::check_unused(&cells);
        page::check(&cells);
    }
}

/// Records the log lines of a start without damage, which are ignored later.
fn record_usual_lines(image: &mut Image) {
    let outcome = probe::start_and_read(image, &image.copy("undamaged"), &[]);
    assert!(outcome.is_well(), "{outcome:?}");
    image.usual = outcome.lines;
}

/// Runs all cases and returns their outcomes in order.
fn run(image: &Image, cases: Vec<(Target, Damage)>) -> Vec<Cell> {
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..workers() {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((target, damage)) = cases.get(number) else { return };
                    let outcome = probe::probe(image, target, *damage);
                    println!("{number}: {} {damage:?}", target.kind);
                    outcomes.lock().unwrap().push((number, outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap();
    outcomes.sort_by_key(|(number, _)| *number);
    let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome);
    cases
        .into_iter()
        .zip(outcomes)
        .map(|((target, damage), outcome)| Cell { target, damage, outcome })
        .collect()
}

fn workers() -> usize {
    let of_variable = std::env::var("GRAMPUS_DAMAGE_WORKERS").ok().map(|text| text.parse().unwrap());
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    of_variable.unwrap_or(cpus + cpus.div_ceil(2))
}
