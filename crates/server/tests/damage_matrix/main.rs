//! What damage to each kind of file under the root directory does, and how an operator gets out of it.
//!
//! One root directory has files of every kind ([`image`]). For each kind ([`kinds`]) and each damage ([`harm`]) a copy
//! of it is damaged; then the real binary is started on the copy, and all tables are read by gets, scans and counts
//! ([`probe`]). No answer may be wrong or silently shorter. Where the server does not start, or a region stays closed,
//! the messages must name a way forward, which the test takes ([`remedy`]). What comes out is `docs/damage.md`
//! ([`page`]). A file of an unknown kind fails the test: add it to [`kinds`].
//!
//! Variables:
//!
//! * `REGENERATE=1`: rewrite `docs/damage.md`;
//! * `GRAMPUS_DAMAGE_ALL=1`: all files and several positions of each, which takes about half an hour;
//! * `GRAMPUS_DAMAGE_ONLY=TEXT`: only kinds whose name contains the text;
//! * `GRAMPUS_DAMAGE_WORKERS=N`: servers at a time (default: one and a half per CPU).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "the server under test is another process, and its files are damaged from outside"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../kill9/network.rs"]
mod network;

mod content;
mod harm;
mod image;
mod kinds;
mod known;
mod page;
mod probe;
mod remedy;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use harm::Harm;
use image::Image;
use kinds::Target;
use probe::Outcome;

/// One damage to one file, and its outcome.
pub struct Cell {
    /// The file.
    pub target: Target,
    /// What was done to it.
    pub harm: Harm,
    /// What a start on it and a client's calls gave.
    pub outcome: Outcome,
}

#[test]
fn damage_never_makes_an_answer_wrong_or_shorter_and_there_is_a_way_forward() {
    let mut image = Image::make();
    learn_usual_lines(&mut image);
    let all = std::env::var_os("GRAMPUS_DAMAGE_ALL").is_some();
    let only = std::env::var("GRAMPUS_DAMAGE_ONLY").ok();
    let mut cases = kinds::cases(&image, all);
    cases.retain(|(target, _)| only.as_ref().is_none_or(|text| target.kind.contains(text)));
    let cells = run(&image, cases);
    let is_complete = !all && only.is_none();
    if is_complete {
        page::regenerate_if_asked(&cells);
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

/// What a start without damage logs says nothing of damage.
fn learn_usual_lines(image: &mut Image) {
    let outcome = probe::start_and_read(image, &image.copy("undamaged"), &[]);
    assert!(outcome.is_well(), "{outcome:?}");
    image.usual = outcome.lines;
}

/// The outcomes of all cases, in their order.
fn run(image: &Image, cases: Vec<(Target, Harm)>) -> Vec<Cell> {
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..workers() {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((target, harm)) = cases.get(number) else { return };
                    let outcome = probe::probe(image, target, *harm);
                    println!("{number}: {} {harm:?}", target.kind);
                    outcomes.lock().unwrap().push((number, outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap();
    outcomes.sort_by_key(|(number, _)| *number);
    let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome);
    cases.into_iter().zip(outcomes).map(|((target, harm), outcome)| Cell { target, harm, outcome }).collect()
}

fn workers() -> usize {
    let of_variable = std::env::var("GRAMPUS_DAMAGE_WORKERS").ok().map(|text| text.parse().unwrap());
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    of_variable.unwrap_or(cpus + cpus.div_ceil(2))
}
