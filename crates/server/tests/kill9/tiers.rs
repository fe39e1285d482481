//! Files on storage tiers: where a kill may leave them.
#![allow(clippy::disallowed_methods, reason = "the test accesses the server's directory directly")]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Two tiers below the directory of the test.
pub struct Tiers {
    fast: PathBuf,
    slow: PathBuf,
}

impl Tiers {
    pub fn below(dir: &Path) -> Tiers {
        Tiers { fast: dir.join("fast"), slow: dir.join("slow") }
    }

    /// The options of the tiers. Files move as soon as a policy or a compaction makes them. Cells
    /// older than a second belong on the slow tier.
    pub fn settings(&self) -> Vec<String> {
        let (fast, slow) = (self.fast.display(), self.slow.display());
        // The disk of the machine may be nearly full.
        let tiers = format!("fast ssd {fast} age.max=1s fill.max=100%; slow hdd {slow} fill.max=100%");
        vec![format!("grampus.tiers={tiers}"), "grampus.tier.move.period=20 ms".to_owned()]
    }

    /// Names whose bytes are missing or belong to two names.
    pub fn misplaced(&self, data: &Path) -> Vec<String> {
        let (mut seen, mut wrong) = (HashSet::new(), Vec::new());
        for link in links(data) {
            let Ok(target) = fs::read_link(&link) else { continue };
            if !target.exists() {
                wrong.push(format!("{}: no bytes at {}", link.display(), target.display()));
            }
            if !seen.insert(target) {
                wrong.push(format!("{}: its bytes have two names", link.display()));
            }
        }
        wrong
    }

    /// How many files moved.
    pub fn summary(&self, log: &Path) -> String {
        let log = fs::read_to_string(log).unwrap_or_default();
        let moves = log.lines().filter(|line| line.contains("moved to another tier")).count();
        assert!(moves > 0, "files move between the tiers");
        format!("{moves} files moved between tiers")
    }
}

/// The links below a directory. The server is not running.
fn links(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let found = entries.flatten().flat_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_symlink() => vec![entry.path()],
        Ok(kind) if kind.is_dir() => links(&entry.path()),
        _ => Vec::new(),
    });
    found.collect()
}
