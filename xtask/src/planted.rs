//! Planted faults: measures whether the simulation finds faults of the product.
//!
//! Each fault is one replacement in a copy of the sources, or a wrapper that `sim --plant` adds.
//! The simulation runs seeds until its checks find a violation. A fault that is not found shows
//! that the scenario or the checks are too weak.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::steps::step_with;

/// The copy of the sources, and its build outputs.
const SOURCES: &str = "target/planted/src";
const OUTPUTS: &str = "target/planted/build";
/// Seeds in which a fault must be found.
const SEEDS: u64 = 2000;

/// A fault.
struct Fault {
    name: &'static str,
    /// What the faulty product does.
    description: &'static str,
    change: Change,
    /// The simulation that finds it.
    runs: Runs,
}

/// How a fault is planted.
enum Change {
    /// By `sim --plant`.
    Wrapper,
    /// By a replacement of a text that occurs once in a file.
    Replaced { file: &'static str, text: &'static str, by: &'static str },
}

/// The kind of simulation.
#[derive(Clone, Copy)]
enum Runs {
    /// Faults of all kinds.
    Faults,
    /// Kills at durable steps.
    StepKills,
    /// A cluster on the directory of a standalone server.
    FromStandalone,
}

impl Runs {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Runs::Faults => &["--steps", "12"],
            Runs::StepKills => &["--step-kills"],
            Runs::FromStandalone => &["--from-standalone", "--steps", "4"],
        }
    }
}

const FAULTS: &[Fault] = &[
    Fault {
        name: "lost-meta-edits",
        description: "some edits of hbase:meta are acknowledged and not written",
        change: Change::Wrapper,
        runs: Runs::Faults,
    },
    Fault {
        name: "ignored-syncs",
        description: "syncs have no effect, and power may be lost",
        change: Change::Wrapper,
        runs: Runs::Faults,
    },
    Fault {
        name: "endless-lease",
        description: "a server answers reads until ZooKeeper reports the end of its session",
        change: Change::Wrapper,
        runs: Runs::Faults,
    },
    Fault {
        name: "unfenced-logs",
        description: "the same of writes, without a check between a sync and its acknowledgement",
        change: Change::Wrapper,
        runs: Runs::Faults,
    },
    Fault {
        name: "late-report",
        description: "the master accepts late and repeated reports of regions",
        change: Change::Replaced {
            file: "crates/master/src/assignment/reports.rs",
            text: "let is_current = report.order <= 0 || report.order == tracked.order;",
            by: "let is_current = true;",
        },
        runs: Runs::Faults,
    },
    Fault {
        name: "late-order",
        description: "a region server obeys late orders to open or close a region",
        change: Change::Replaced {
            file: "crates/regionserver/src/orders.rs",
            text: "Some(known) if *known > id => Novelty::Outdated,",
            by: "Some(known) if *known > id => Novelty::New,",
        },
        runs: Runs::Faults,
    },
    Fault {
        name: "double-open",
        description: "a moved region is opened before its old server has closed it",
        change: Change::Replaced {
            file: "crates/master/src/assignment.rs",
            text: "        self.close_toward(region, Some(target)).await?;
        let is_closed = |state: &RegionState| *state == RegionState::Closed;",
            by:
                "        self.begin_close(region, Some(target)).await?;
        let is_closed = |state: &RegionState| matches!(state, RegionState::Closed | RegionState::Closing(_));",
        },
        runs: Runs::Faults,
    },
    Fault {
        name: "unfenced-recovery",
        description: "regions of a dead server are opened before its logs are fenced",
        change: Change::Replaced {
            file: "crates/master/src/procedure/server_crash.rs",
            text: "    while let Err(error) = try_fence(context, server, kind).await {",
            by: "    while let Err(error) = Ok::<(), JavaException>(()) {",
        },
        runs: Runs::Faults,
    },
    Fault {
        name: "early-recovery",
        description: "a recovery reads the regions of a dead server before hbase:meta is loaded",
        change: Change::Replaced {
            file: "crates/master/src/procedure/server_crash.rs",
            text: "    context.meta_loaded().await;
    context.assignment.crashed_regions(server)",
            by: "    context.assignment.crashed_regions(server)",
        },
        runs: Runs::StepKills,
    },
    Fault {
        name: "early-archive",
        description: "the logs of a dead server are archived before its regions have flushed their edits",
        change: Change::Replaced {
            file: "crates/master/src/procedure/server_crash.rs",
            text: "    while context.recoveries.waiting(server) > 0 {",
            by: "    while context.recoveries.waiting(server) > usize::MAX - 1 {",
        },
        runs: Runs::StepKills,
    },
    Fault {
        name: "forgotten-procedures",
        description: "a new master does not resume the procedures of its predecessor",
        change: Change::Replaced {
            file: "crates/master/src/master.rs",
            text: "        self.executor.resume(stored);",
            by: "        drop(stored);",
        },
        runs: Runs::StepKills,
    },
    Fault {
        name: "repeated-split",
        description: "a resumed split does not check whether it was committed",
        change: Change::Replaced {
            file: "crates/master/src/procedure/split_region.rs",
            text: ".filter(MetaRow::is_split_parent);",
            by: ".filter(|row: &MetaRow| row.is_split_parent() && row.daughters.is_empty());",
        },
        runs: Runs::StepKills,
    },
    Fault {
        name: "skipped-edits",
        description: "the replay of logs skips the edit that follows those in files",
        change: Change::Replaced {
            file: "crates/engine/src/replay.rs",
            text: "(seq_id > self.in_files[store] && ",
            by: "(seq_id > self.in_files[store] + 1 && ",
        },
        runs: Runs::Faults,
    },
    Fault {
        name: "revived-files",
        description: "half of the files that compactions replaced stay in their stores and are forgotten",
        change: Change::Replaced {
            file: "crates/engine/src/region/compact.rs",
            text: "family, &[file.name()])",
            by: "family, &[file.name()][usize::from(file.name() < \"8\")..])",
        },
        runs: Runs::Faults,
    },
    Fault {
        name: "forgotten-order",
        description: "the replay of logs gives all edits the first sequence id, so that older values win",
        change: Change::Replaced {
            file: "crates/engine/src/replay.rs",
            text: ".unwrap_or(entry.key.seq_id);",
            by: ".unwrap_or(1);",
        },
        runs: Runs::Faults,
    },
    Fault {
        name: "unreplayed-logs",
        description: "a cluster starts on the directory of a standalone server without replaying its logs",
        change: Change::Replaced {
            file: "crates/roles/src/candidate.rs",
            text: "    let replayed = replay_logs(store.region().clone()).await;",
            by: "    let _ = replay_logs;
    let replayed = Ok::<(), String>(());",
        },
        runs: Runs::FromStandalone,
    },
];

/// Plants each fault, or one, and prints which were found.
///
/// # Errors
/// A failed build, or faults that were not found.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let (seeds, only) = parse(arguments)?;
    copy_sources()?;
    let mut rows = Vec::new();
    let mut missed = Vec::new();
    for fault in FAULTS.iter().filter(|fault| only.is_none_or(|only| only == fault.name)) {
        let found = fault.find(seeds)?;
        let row = match &found {
            Some(found) => {
                format!("| {} | {} | {} | {} |", fault.name, fault.description, found.seed, found.violation)
            }
            None => format!("| {} | {} | not in {seeds} seeds | |", fault.name, fault.description),
        };
        println!("{row}");
        rows.push(row);
        missed.extend(found.is_none().then_some(fault.name));
    }
    println!("\n| fault | description | first seed | violated |\n|---|---|---|---|\n{}", rows.join("\n"));
    match missed.is_empty() {
        true => Ok(()),
        false => Err(format!("not found: {}", missed.join(", "))),
    }
}

fn parse(arguments: &[String]) -> Result<(u64, Option<&str>), String> {
    let (mut seeds, mut only) = (SEEDS, None);
    let mut words = arguments.iter().map(String::as_str);
    while let Some(flag) = words.next() {
        match (flag, words.next()) {
            ("--seeds", Some(number)) => {
                seeds = number.parse().map_err(|_| format!("--seeds {number}: not a number"))?;
            }
            ("--only", Some(name)) if FAULTS.iter().any(|fault| fault.name == name) => only = Some(name),
            ("--only", Some(name)) => {
                let names: Vec<&str> = FAULTS.iter().map(|fault| fault.name).collect();
                return Err(format!("--only {name}: expected one of {}", names.join(", ")));
            }
            _ => return Err("usage: cargo xtask planted [--seeds N] [--only NAME]".to_string()),
        }
    }
    Ok((seeds, only))
}

/// A violation that the simulation found.
struct Violation {
    seed: String,
    violation: String,
}

impl Violation {
    /// Reads the output of `sim --seeds`. `None` if it found nothing.
    fn parse(printed: &str) -> Option<Violation> {
        let seed = printed.lines().find_map(|line| {
            let line = line.strip_prefix("repeat with: sim --seed ")?;
            line.split(' ').next()
        })?;
        let violation = printed.lines().find_map(|line| line.strip_prefix(&format!("seed {seed}: ")))?;
        Some(Violation { seed: seed.to_string(), violation: violation.chars().take(140).collect() })
    }
}

impl Fault {
    fn find(&self, seeds: u64) -> Result<Option<Violation>, String> {
        println!("== {}: {}", self.name, self.description);
        let plant = match &self.change {
            Change::Wrapper => vec!["--plant", self.name],
            Change::Replaced { .. } => Vec::new(),
        };
        let changed = self.change.apply()?;
        let built = build();
        if let Some((path, original)) = changed {
            fs::write(&path, original).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let program = built?;
        let begun = Instant::now();
        let output = Command::new(&program)
            .args(self.runs.arguments())
            .args(plant)
            .args(["--seeds", &format!("0..{seeds}")])
            .output()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        println!("== {}: simulated for {} s", self.name, begun.elapsed().as_secs());
        Ok(Violation::parse(&String::from_utf8_lossy(&output.stdout)))
    }
}

impl Change {
    /// Changes the copy; returns the path and the original text of the changed file.
    fn apply(&self) -> Result<Option<(PathBuf, String)>, String> {
        let Change::Replaced { file, text, by } = self else { return Ok(None) };
        let path = Path::new(SOURCES).join(file);
        let failed = |error| format!("{}: {error}", path.display());
        let original = fs::read_to_string(&path).map_err(failed)?;
        if original.matches(text).count() != 1 {
            return Err(format!("{file} does not have this text once: {text}"));
        }
        fs::write(&path, original.replace(text, by)).map_err(failed)?;
        Ok(Some((path, original)))
    }
}

/// Copies the files that git knows. Unchanged files keep their times, so that they are not compiled
/// again.
fn copy_sources() -> Result<(), String> {
    let listed = Command::new("git").args(["ls-files", "-z"]).output();
    let listed = listed.map_err(|error| format!("cannot start git: {error}"))?;
    let names = String::from_utf8(listed.stdout).map_err(|error| format!("git ls-files: {error}"))?;
    for name in names.split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (Path::new(name), Path::new(SOURCES).join(name));
        // Deleted files and links are not needed.
        let Ok(content) = fs::read(from) else { continue };
        if fs::read(&to).is_ok_and(|copied| copied == content) {
            continue;
        }
        let failed = |error| format!("{}: {error}", to.display());
        fs::create_dir_all(to.parent().expect("it is below the copy")).map_err(failed)?;
        fs::write(&to, content).map_err(failed)?;
    }
    Ok(())
}

/// Builds the simulation of the copy, without slow optimizations; returns its path.
fn build() -> Result<PathBuf, String> {
    let manifest = format!("{SOURCES}/Cargo.toml");
    let words = ["cargo", "build", "--release", "--locked", "--quiet", "--package", "sim"];
    let words = [&words[..], &["--manifest-path", &manifest, "--target-dir", OUTPUTS]].concat();
    let profile = [
        ("CARGO_PROFILE_RELEASE_LTO", "off"),
        ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
        ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
    ];
    step_with("the simulation with the fault", &words, &profile)?;
    Ok(Path::new(OUTPUTS).join("release/sim"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_replaced_text_occurs_once() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        for fault in FAULTS {
            let Change::Replaced { file, text, by } = fault.change else { continue };
            let content = fs::read_to_string(root.join(file)).expect("a source file");
            assert_eq!(content.matches(text).count(), 1, "{}: {file}", fault.name);
            assert_ne!(text, by, "{}", fault.name);
        }
        let names: BTreeSet<&str> = FAULTS.iter().map(|fault| fault.name).collect();
        assert_eq!(names.len(), FAULTS.len());
    }

    #[test]
    fn arguments_and_output_are_parsed() {
        let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
        assert_eq!(parse(&[]), Ok((SEEDS, None)));
        assert_eq!(parse(&words("--seeds 5 --only late-order")), Ok((5, Some("late-order"))));
        assert!(parse(&words("--only unknown")).is_err() && parse(&words("--seeds")).is_err());
        let printed =
            "1.0 zk stops\nseed 17: violated: a: b\nrepeat with: sim --seed 17 --steps 12\n17 seeds";
        let found = Violation::parse(printed).expect("a violation");
        assert_eq!((&*found.seed, &*found.violation), ("17", "violated: a: b"));
        assert!(Violation::parse("2000 seeds: 0 with violations").is_none());
    }
}
