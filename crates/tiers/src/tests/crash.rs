//! Loss of power at any call: every durable file is found with its bytes, and once.

use std::collections::BTreeMap;

use base::env::Random;
use base::testing::{SeededRandom, env};
use bytes::Bytes;
use fs::faulty::{Fault, Rule};
use fs::{FilePath, FileSystem, Purpose, Role, SyncLevel};
use futures_util::FutureExt;

use super::support::{Database, Disks, path, read};
use crate::Mover;
use crate::sweep::MOVING_DIR;

const DIRS: [&str; 2] = ["store", "archive"];
const NAMES: u64 = 4;
const SEEDS: u64 = 500;

/// What a file may contain: one of these. Several if a step was not completed.
type Expected = BTreeMap<FilePath, Vec<Option<Bytes>>>;

#[derive(Debug)]
enum Step {
    /// Writes a file under another name, and renames it.
    Write(FilePath, Role, Bytes),
    Delete(FilePath),
    Rename(FilePath, FilePath),
    Move(FilePath, usize),
}

fn random_step(random: &SeededRandom) -> Step {
    let below = |n: u64| random.next_u64() % n;
    let name = |dir: u64| path(DIRS[dir as usize]).join(&format!("f{}", below(NAMES)));
    match below(8) {
        0 => Step::Delete(name(below(2))),
        1 => {
            let from = name(0);
            let to = path("archive").join(from.name());
            Step::Rename(from, to)
        }
        2..=4 => Step::Move(name(below(2)), below(2) as usize),
        _ => {
            let role = [Role::Flush, Role::MajorCompaction][below(2) as usize];
            let len = 1 + below(3000) as usize;
            Step::Write(name(0), role, vec![below(256) as u8; len].into())
        }
    }
}

impl Step {
    async fn run(&self, database: &Database) {
        let fs = &database.fs;
        match self {
            Step::Write(name, role, bytes) => {
                let unfinished = path("tmp").join(name.name());
                fs.delete(&unfinished).await.unwrap();
                let mut writer = fs.create_for(&unfinished, &Purpose::of(*role)).await.unwrap();
                writer.append(bytes.clone()).await.unwrap();
                writer.sync(SyncLevel::Disk).await.unwrap();
                writer.close().await.unwrap();
                fs.rename(&unfinished, name).await.unwrap();
                fs.sync_dir(&name.parent()).await.unwrap();
            }
            Step::Delete(name) => {
                fs.delete(name).await.unwrap();
                fs.sync_dir(&name.parent()).await.unwrap();
            }
            Step::Rename(from, to) => {
                if fs.stat(from).await.unwrap().is_some() {
                    fs.rename(from, to).await.unwrap();
                    fs.sync_dir(&to.parent()).await.unwrap();
                    fs.sync_dir(&from.parent()).await.unwrap();
                }
            }
            Step::Move(name, tier) => {
                if fs.stat(name).await.unwrap().is_some() {
                    Mover::new(fs.clone(), u64::MAX).move_to(name, *tier).await.unwrap();
                }
            }
        }
    }

    /// Changes `expected` by the completed step, or adds its possible results.
    fn expect(&self, expected: &mut Expected, is_complete: bool) {
        let mut set = |name: &FilePath, after: Vec<Option<Bytes>>| {
            let found = expected.entry(name.clone()).or_insert_with(|| vec![None]);
            if is_complete {
                *found = after;
            } else {
                found.extend(after);
            }
        };
        match self {
            Step::Write(name, _, bytes) => set(name, vec![Some(bytes.clone())]),
            Step::Delete(name) => set(name, vec![None]),
            Step::Move(..) => {}
            Step::Rename(from, to) => {
                let moved = expected.get(from).cloned().unwrap_or_else(|| vec![None]);
                if moved == [None] {
                    return;
                }
                let mut set = |name: &FilePath, after: Vec<Option<Bytes>>| {
                    let found = expected.entry(name.clone()).or_insert_with(|| vec![None]);
                    if is_complete {
                        *found = after;
                    } else {
                        found.extend(after);
                    }
                };
                set(to, moved);
                set(from, vec![None]);
            }
        }
    }
}

async fn check(disks: &Disks, database: &Database, expected: &Expected, seed: u64) {
    let mut links = 0;
    for dir in DIRS.into_iter().chain(["tmp"]) {
        for entry in database.fs.list(&path(dir)).await.unwrap() {
            links += usize::from(entry.link.is_some());
            assert!(dir == "tmp" || expected.contains_key(&path(dir).join(&entry.name)), "seed {seed}");
        }
    }
    for (name, possible) in expected {
        let found = read(&database.fs, name).await;
        assert!(
            possible.contains(&found),
            "seed {seed}: {name} has {:?} bytes",
            found.map(|bytes| bytes.len())
        );
    }
    assert!(database.fs.list(&path(MOVING_DIR)).await.unwrap().is_empty(), "seed {seed}");
    assert_eq!(disks.files_on_volumes().await, links, "seed {seed}: every file of a volume has one name");
}

#[tokio::test]
async fn durable_files_survive_a_loss_of_power_at_any_call() {
    let mut crashes = 0;
    for seed in 0..SEEDS {
        let random = SeededRandom::new(seed);
        let mut disks = Disks::new();
        let mut expected = Expected::new();
        for life in 0..4 {
            let database = disks.open(&env(seed * 10 + life)).await;
            for dir in DIRS.into_iter().chain(["tmp"]) {
                database.fs.make_dirs(&path(dir)).await.unwrap();
            }
            check(&disks, &database, &expected, seed).await;
            // What was found is what stays.
            for (name, possible) in &mut expected {
                *possible = vec![read(&database.fs, name).await];
            }
            // The process ends at a random call of a random disk.
            let rule = Rule::new(Fault::Hang).after(random.next_u64() % 600);
            match random.next_u64() % 4 {
                0 => database.volumes[random.next_u64() as usize % 3].add(rule),
                _ => database.home.add(rule),
            }
            for _ in 0..80 {
                let step = random_step(&random);
                // Without the limit of a task's turn, only a planned fault leaves a step
                // incomplete.
                let is_complete = tokio::task::unconstrained(step.run(&database)).now_or_never().is_some();
                step.expect(&mut expected, is_complete);
                if !is_complete {
                    crashes += 1;
                    break;
                }
            }
            disks = disks.crash(&mut || random.next_u64());
        }
    }
    assert!(crashes > SEEDS, "{crashes} of {SEEDS} runs ended within a step");
}
