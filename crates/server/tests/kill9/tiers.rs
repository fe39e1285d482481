//! Files on storage tiers: where a kill may leave them.
#![allow(clippy::disallowed_methods, reason = "the test accesses the server's directory directly")]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::choices::RandomChoices;

/// Length of the name of a store file: a random number in hexadecimal digits.
const STORE_FILE_NAME_LEN: usize = 32;
/// Prefix of the name of a directory of files while its volume fails.
const ASIDE: &str = "aside-";

/// Two tiers below the directory of the test, the fast one with two volumes. One of these fails in
/// some cycles.
pub struct Tiers {
    fast: PathBuf,
    failing: PathBuf,
    slow: PathBuf,
}

impl Tiers {
    pub fn below(dir: &Path) -> Tiers {
        Tiers { fast: dir.join("fast"), failing: dir.join("failing"), slow: dir.join("slow") }
    }

    /// The options of the tiers. Files move as soon as a policy or a compaction makes them. Cells
    /// older than a second belong on the slow tier. In one of three starts the fast tier is full,
    /// so that all its files move down.
    pub fn settings(&self, choices: &RandomChoices) -> Vec<String> {
        let (fast, failing, slow) = (self.fast.display(), self.failing.display(), self.slow.display());
        // Otherwise not full, although the disk of the machine may be.
        let fill = if choices.once_in(3) { "1%" } else { "100%" };
        let tiers =
            format!("fast ssd {fast},{failing} age.max=1s fill.max={fill}; slow hdd {slow} fill.max=100%");
        vec![format!("grampus.tiers={tiers}"), "grampus.tier.move.period=20 ms".to_owned()]
    }

    /// Makes a volume of a running server fail: no file can be created or opened there. Files that
    /// are open continue.
    pub fn fail_volume(&self) {
        for files in directories(&self.failing) {
            let aside = self.failing.join(ASIDE.to_owned() + &file_name(&files));
            fs::rename(files, aside).expect("the directory of files can be renamed");
        }
    }

    /// Makes a volume missing when the server starts.
    pub fn hide_volume(&self) {
        if self.failing.is_dir() {
            fs::rename(&self.failing, self.hidden()).expect("the directory of a volume can be renamed");
            fs::write(&self.failing, "").expect("a file can be in its place");
        }
    }

    /// Ends both failures. The server must not run.
    pub fn repair_volume(&self) {
        if self.hidden().is_dir() {
            fs::remove_file(&self.failing).expect("the file can be removed");
            fs::rename(self.hidden(), &self.failing).expect("the directory can be renamed back");
        }
        for aside in directories(&self.failing) {
            if let Some(name) = file_name(&aside).strip_prefix(ASIDE) {
                fs::rename(&aside, self.failing.join(name)).expect("the directory can be renamed back");
            }
        }
    }

    fn hidden(&self) -> PathBuf {
        self.failing.with_extension("hidden")
    }

    /// Names whose bytes are missing or belong to two names, and store files that have two names,
    /// and so could be on two tiers.
    pub fn misplaced(&self, data: &Path) -> Vec<String> {
        let (mut seen, mut stores, mut wrong) = (HashSet::new(), HashMap::new(), Vec::new());
        for link in links(data) {
            let Ok(target) = fs::read_link(&link) else { continue };
            if !target.exists() {
                wrong.push(format!("{}: no bytes at {}", link.display(), target.display()));
            }
            let name = link.file_name().unwrap_or_default().to_owned();
            let is_store_file = name.len() == STORE_FILE_NAME_LEN
                && name.to_string_lossy().bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_store_file && let Some(other) = stores.insert(name, link.clone()) {
                wrong.push(format!("{}: listed twice, also as {}", link.display(), other.display()));
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
        let failures = log.lines().filter(|line| line.contains("a volume gets no new files")).count();
        format!("{moves} files moved between tiers; the failing volume was noticed {failures} times")
    }
}

/// The directories in a directory.
fn directories(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
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
