//! The plan: which calls fail, and how.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::{Clock, Random};

use crate::{Error, FilePath, Result};

/// An operation of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // Each is named after its method.
pub enum Operation {
    Create,
    Open,
    Read,
    Append,
    Sync,
    Reserve,
    Close,
    Rename,
    Delete,
    Stat,
    List,
    MakeDirs,
    SyncDir,
    Fence,
}

impl Operation {
    /// The operation's name in errors.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Create => "create",
            Operation::Open => "open",
            Operation::Read => "read",
            Operation::Append => "append",
            Operation::Sync => "sync",
            Operation::Reserve => "reserve",
            Operation::Close => "close",
            Operation::Rename => "rename",
            Operation::Delete => "delete",
            Operation::Stat => "stat",
            Operation::List => "list",
            Operation::MakeDirs => "make directory",
            Operation::SyncDir => "sync directory",
            Operation::Fence => "fence",
        }
    }
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An I/O error; nothing was done.
    Fail,
    /// An I/O error, although the operation was completed.
    FailAfter,
    /// The disk is full; nothing was done.
    NoSpace,
    /// This disk is full, but others are not; nothing was done.
    VolumeFull,
    /// An append writes about half of its bytes, then fails; the file refuses further calls. For
    /// other calls like [`Fault::Fail`].
    Tear,
    /// A read or an append has one flipped bit and reports success. No effect on other calls.
    Flip,
    /// The call takes this much longer, then succeeds.
    Delay(Duration),
    /// The call never completes.
    Hang,
}

/// Selects the calls that meet a fault.
#[derive(Clone)]
pub struct Rule {
    fault: Fault,
    operation: Option<Operation>,
    path_part: String,
    skip: u64,
    times: u64,
    probability: Option<(u64, Arc<dyn Random>)>,
}

impl Rule {
    /// A rule for all calls, unless narrowed by the other methods.
    pub fn new(fault: Fault) -> Rule {
        Rule { fault, operation: None, path_part: String::new(), skip: 0, times: u64::MAX, probability: None }
    }

    /// Only calls of `operation`.
    pub fn on(mut self, operation: Operation) -> Rule {
        self.operation = Some(operation);
        self
    }

    /// Only calls whose path contains `part`.
    pub fn at(mut self, part: &str) -> Rule {
        part.clone_into(&mut self.path_part);
        self
    }

    /// Skips the first `calls` matching calls.
    pub fn after(mut self, calls: u64) -> Rule {
        self.skip = calls;
        self
    }

    /// At most `calls` calls meet the fault; later ones succeed.
    pub fn times(mut self, calls: u64) -> Rule {
        self.times = calls;
        self
    }

    /// One in `n` matching calls meets the fault, at random.
    pub fn one_in(mut self, n: u64, random: Arc<dyn Random>) -> Rule {
        self.probability = Some((n.max(1), random));
        self
    }

    fn applies(&mut self, operation: Operation, path: &FilePath) -> bool {
        let matches = self.operation.is_none_or(|only| only == operation);
        if !matches || !path.as_str().contains(&self.path_part) || self.times == 0 {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        if self.probability.as_ref().is_some_and(|(n, random)| random.next_u64() % n != 0) {
            return false;
        }
        self.times -= 1;
        true
    }
}

/// The planned faults. Without rules everything succeeds.
#[derive(Clone)]
pub struct Plan {
    clock: Arc<dyn Clock>,
    rules: Vec<Rule>,
    space_left: Option<u64>,
    capacity: Option<u64>,
}

impl Plan {
    /// No faults yet; `clock` measures delays.
    pub fn new(clock: Arc<dyn Clock>) -> Plan {
        Plan { clock, rules: Vec::new(), space_left: None, capacity: None }
    }

    /// Adds a rule. If several rules match a call, the one added first applies.
    pub fn rule(mut self, rule: Rule) -> Plan {
        self.rules.push(rule);
        self
    }

    /// The disk is full after `bytes` more bytes.
    pub fn space(mut self, bytes: u64) -> Plan {
        self.space_left = Some(bytes);
        self
    }

    /// A disk of `bytes`: written files use space, and deleting or truncating them frees it.
    pub fn capacity(mut self, bytes: u64) -> Plan {
        self.capacity = Some(bytes);
        self
    }
}

/// The current plan, with counts of calls and faults.
pub(super) struct PlanState {
    pub(super) rules: Vec<Rule>,
    pub(super) space_left: Option<u64>,
    pub(super) disk: Disk,
    pub(super) missing_replicas: usize,
    pub(super) calls: BTreeMap<Operation, u64>,
    pub(super) faults: u64,
}

pub(super) struct Shared {
    clock: Arc<dyn Clock>,
    plan: Mutex<PlanState>,
}

impl Shared {
    pub(super) fn new(plan: Plan) -> Shared {
        let Plan { clock, rules, space_left, capacity } = plan;
        let disk = Disk { capacity, files: BTreeMap::new() };
        let (missing_replicas, calls) = (0, BTreeMap::new());
        let state = PlanState { rules, space_left, disk, missing_replicas, calls, faults: 0 };
        Shared { clock, plan: Mutex::new(state) }
    }

    pub(super) fn plan(&self) -> MutexGuard<'_, PlanState> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call and returns its fault, if any. Delays have already passed then.
    pub(super) async fn next_fault(&self, operation: Operation, path: &FilePath) -> Option<Fault> {
        match self.decide(operation, path)? {
            Fault::Delay(duration) => {
                self.clock.sleep(duration).await;
                None
            }
            Fault::Hang => pending().await,
            fault => Some(fault),
        }
    }

    fn decide(&self, operation: Operation, path: &FilePath) -> Option<Fault> {
        let mut plan = self.plan();
        *plan.calls.entry(operation).or_default() += 1;
        // Every matching rule counts the call, even if another rule applies.
        let mut fault = None;
        for rule in &mut plan.rules {
            if fault.is_none() && rule.applies(operation, path) {
                fault = Some(rule.fault);
            }
        }
        plan.faults += u64::from(fault.is_some());
        fault
    }

    /// Takes space for `bytes`. A call that needs none (0) still fails on a full disk.
    pub(super) fn take_space(&self, bytes: u64, path: &FilePath) -> Result<()> {
        let mut plan = self.plan();
        match plan.space_left {
            Some(left) if left == 0 || left < bytes => {
                plan.faults += 1;
                Err(Error::NoSpace { path: path.clone() })
            }
            Some(left) => {
                plan.space_left = Some(left - bytes);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Extends the file at `path` to at least `len` bytes, on a disk with a capacity.
    pub(super) fn grow(&self, path: &FilePath, len: u64) -> Result<()> {
        let mut plan = self.plan();
        if plan.disk.grow(path, len) {
            return Ok(());
        }
        plan.faults += 1;
        Err(Error::NoSpace { path: path.clone() })
    }
}

/// The simulated disk: its capacity, and the bytes of each file. Names and directories take no
/// space.
#[derive(Default)]
pub(super) struct Disk {
    pub(super) capacity: Option<u64>,
    files: BTreeMap<String, u64>,
}

impl Disk {
    pub(super) fn used(&self) -> u64 {
        self.files.values().sum()
    }

    fn grow(&mut self, path: &FilePath, len: u64) -> bool {
        let old_len = self.files.get(path.as_str()).copied().unwrap_or(0);
        let more = len.saturating_sub(old_len);
        if more > 0 && self.capacity.is_some_and(|capacity| self.used() + more > capacity) {
            return false;
        }
        self.files.insert(path.as_str().to_owned(), old_len.max(len));
        true
    }

    pub(super) fn truncate(&mut self, path: &FilePath, len: u64) {
        if let Some(old_len) = self.files.get_mut(path.as_str()) {
            *old_len = (*old_len).min(len);
        }
    }

    /// Removes the file at `path`, or all files below it.
    pub(super) fn remove(&mut self, path: &FilePath) {
        self.files.retain(|file, _| below(file, path).is_none());
    }

    pub(super) fn rename(&mut self, from: &FilePath, to: &FilePath) {
        if from == to {
            return;
        }
        let moved: Vec<(String, u64)> = self
            .files
            .iter()
            .filter_map(|(file, len)| Some((format!("{to}{}", below(file, from)?), *len)))
            .collect();
        self.remove(from);
        self.files.extend(moved);
    }
}

/// The rest of `file` after `dir`, if `file` is `dir` or below it.
fn below<'a>(file: &'a str, dir: &FilePath) -> Option<&'a str> {
    file.strip_prefix(dir.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}
