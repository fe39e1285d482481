//! Random damage of the root directories that HBase wrote. A check before an adoption and `fsck`
//! must report it, unless every cell can still be read.
//!
//! `GRAMPUS_DAMAGED_VARIANTS` sets the number of variants. A failure prints the number of its
//! variant; `GRAMPUS_DAMAGED_FIRST` starts there.
#![allow(clippy::disallowed_methods, reason = "reads archives, and measures time of this machine")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../adoption/tests/support/mod.rs"]
#[allow(dead_code, reason = "these tests use a part of the module")]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use adoption::inspection::Request as Adoption;
use adoption::{Inspection, NoProgress, adopt, inspect};
use base::env::{Env, Random};
use fs::FileSystem;
use fs::memory::MemoryFs;
use fsck::{Depth, Request};
use support::{Tree, cells_of, fill, root, tree, unpack};

const IMAGES: [&str; 2] = ["rootdir-live", "rootdir-clean"];
/// The variants of a usual run. Each takes about 14 ms in a debug build.
const VARIANTS: u64 = 300;
/// The most time that the two checks of a variant may take on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// The largest allocation that damage may cause: a length in a file is no reason to reserve memory
/// for more bytes than the file has.
const ALLOCATION_LIMIT: usize = 64 << 20;

static LARGEST_ALLOCATION: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator; remembers the largest allocation.
struct Watched;

// SAFETY: forwards all calls to the system's allocator.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Few allocations are the largest so far. The others do not write to memory that all
        // threads share.
        if layout.size() > LARGEST_ALLOCATION.load(Ordering::Relaxed) {
            LARGEST_ALLOCATION.fetch_max(layout.size(), Ordering::Relaxed);
        }
        // SAFETY: the caller fulfills the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfills the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// A directory without damage.
struct Original {
    name: &'static str,
    tree: Tree,
    /// Its files that are not empty.
    files: Vec<String>,
    findings: BTreeSet<String>,
    cells: Vec<String>,
}

/// What became of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The check before an adoption, or `fsck`, reported it.
    Reported,
    /// Neither reported it, and every cell was read.
    Harmless,
    /// Neither reported it, and cells have changed. HBase's format of the file has no checksums.
    WithoutChecksum,
    /// Neither reported it, and cells are missing or strange: a fault.
    Unreported,
}

/// One change of one file.
struct Damage {
    path: String,
    what: &'static str,
}

/// A number below `end`.
fn below(random: &dyn Random, end: usize) -> usize {
    usize::try_from(random.next_u64() % end.max(1) as u64).unwrap()
}

/// The name of a file's directory: the family, if it is a store file.
fn family(path: &str) -> Option<&str> {
    path.rsplit('/').nth(1)
}

/// Whether a change of one bit can be noticed: logs and descriptors of tables have no checksums.
fn has_checksums(path: &str) -> bool {
    !path.starts_with("WALs/") && !path.contains("/.tabledesc/")
}

/// Damages a file of `tree`.
fn damage(random: &dyn Random, original: &Original, tree: &mut Tree) -> Damage {
    let path = original.files[below(random, original.files.len())].clone();
    let other = original.files[below(random, original.files.len())].clone();
    let content = original.tree[&other].clone().unwrap();
    let Some(Some(bytes)) = tree.get_mut(&path) else { return Damage { path, what: "removed before" } };
    let at = below(random, bytes.len());
    let end = (at + 1 + below(random, 64)).min(bytes.len());
    let what = match random.next_u64() % 10 {
        0 => {
            bytes.truncate(at);
            "truncated"
        }
        1 | 2 => {
            bytes[at..].iter_mut().take(1).for_each(|byte| *byte ^= 1 << (random.next_u64() % 8));
            "a bit flipped"
        }
        3 => {
            bytes[at..end].fill(0);
            "zeros written"
        }
        4 => {
            bytes[at..end.min(at + 8)].fill(if random.next_u64().is_multiple_of(2) { 0xff } else { 0x7f });
            "large numbers written"
        }
        5 => {
            let copied = bytes[at..end].to_vec();
            bytes.splice(at..at, copied);
            "bytes repeated"
        }
        6 => {
            bytes.drain(at..end);
            "bytes cut out"
        }
        7 => {
            let from = below(random, content.len());
            let part = &content[from..(from + end - at).min(content.len())];
            bytes.splice(at..end, part.iter().copied());
            "bytes of another file written"
        }
        // Files of families with the same name differ only in their rows.
        8 if family(&path) != family(&other) => {
            bytes.clone_from(&content);
            "replaced by another file"
        }
        _ => {
            tree.remove(&path);
            "removed"
        }
    };
    Damage { path, what }
}

async fn memory(tree: &Tree) -> (MemoryFs, Arc<dyn FileSystem>) {
    let memory = MemoryFs::new();
    fill(&memory, tree).await;
    let shared = Arc::new(memory.clone());
    (memory, shared)
}

impl Original {
    async fn read(name: &'static str) -> Original {
        let tree = unpack(name);
        let has_bytes = |(path, content): (&String, &Option<Vec<u8>>)| {
            content.as_ref().is_some_and(|bytes| !bytes.is_empty()).then(|| path.clone())
        };
        let files = tree.iter().filter_map(has_bytes).collect();
        let mut original = Original { name, tree, files, findings: BTreeSet::new(), cells: Vec::new() };
        let env = base::testing::env(0);
        let checked = check(&env, &original.tree).await.unwrap();
        original.cells = adopted_cells(&env, &original.tree, &checked.inspection).await.unwrap();
        original.findings = checked.findings;
        let counts = (original.files.len(), original.cells.len());
        assert!(counts.0 > 30 && counts.1 > 100, "{name}: {counts:?}");
        original
    }

    /// Damages a copy in one or two places, and checks it.
    async fn variant(&self, number: u64) -> (Outcome, Vec<Damage>) {
        let env = base::testing::env(number);
        let mut tree = self.tree.clone();
        let count = 1 + below(&*env.random, 8) / 7;
        let damages: Vec<Damage> = (0..count).map(|_| damage(&*env.random, self, &mut tree)).collect();
        let started = Instant::now();
        let checked = check(&env, &tree).await;
        assert!(started.elapsed() < TIME_LIMIT, "the checks took {:?}", started.elapsed());
        let Some(checked) = checked.filter(|checked| checked.findings == self.findings) else {
            return (Outcome::Reported, damages);
        };
        let cells = match adopted_cells(&env, &tree, &checked.inspection).await {
            Ok(cells) => cells,
            Err(error) => {
                eprintln!("variant {number}: {error}");
                return (Outcome::Unreported, damages);
            }
        };
        if cells == self.cells {
            return (Outcome::Harmless, damages);
        }
        let is_protected = damages.iter().all(|damage| has_checksums(&damage.path));
        let outcome = if is_protected { Outcome::Unreported } else { Outcome::WithoutChecksum };
        (outcome, damages)
    }
}

/// A directory that both checks accept.
struct Checked {
    inspection: Inspection,
    /// What the check before an adoption and `fsck` report.
    findings: BTreeSet<String>,
}

/// Checks a directory; `None` if the check before an adoption or `fsck` refuses it.
async fn check(env: &Env, files: &Tree) -> Option<Checked> {
    let (memory, shared) = memory(files).await;
    let inspection = inspect(env, &shared, &root(), &Adoption::default(), &NoProgress).await;
    let checked = fsck::check(env, &shared, &root(), Request { depth: Depth::Cells }, &NoProgress).await;
    assert!(tree(&memory).await == *files, "a check changes nothing");
    let (inspection, checked) = (inspection.ok()?, checked.ok()?);
    if !inspection.is_adoptable() {
        return None;
    }
    let warnings = inspection.findings.iter().map(ToString::to_string);
    let tables = checked.tables.iter().map(|table| format!("{table:?}"));
    let counts = [format!("{} logs, {} snapshots", checked.logs, checked.snapshots)];
    let problems = checked.problems.iter().map(ToString::to_string);
    let findings = warnings.chain(tables).chain(counts).chain(problems).collect();
    Some(Checked { inspection, findings })
}

/// All cells after an adoption.
async fn adopted_cells(env: &Env, files: &Tree, inspection: &Inspection) -> adoption::Result<Vec<String>> {
    let (memory, shared) = memory(files).await;
    adopt(env, &shared, &root(), inspection, &NoProgress).await?;
    cells_of(env, &memory, |_| true).await
}

/// A number from the environment.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

/// Prints the variant if its check panics.
struct Announced<'a>(u64, &'a Original);

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("variant {} of {}: GRAMPUS_DAMAGED_FIRST={0}", self.0, self.1.name);
        }
    }
}

#[test]
fn damage_is_reported_or_harmless() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let originals = IMAGES.map(|name| runtime().block_on(Original::read(name)));
    let first = variable("GRAMPUS_DAMAGED_FIRST").unwrap_or(0);
    let end = first + variable("GRAMPUS_DAMAGED_VARIANTS").unwrap_or(VARIANTS);
    let next = AtomicU64::new(first);
    let work = || {
        let (runtime, mut outcomes) = (runtime(), BTreeMap::<_, u64>::new());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= end {
                return outcomes;
            }
            let original = &originals[usize::try_from(number % 2).unwrap()];
            let _announced = Announced(number, original);
            let (outcome, damages) = runtime.block_on(original.variant(number));
            if outcome == Outcome::Unreported || end - first == 1 {
                let damages = damages.iter().map(|Damage { path, what }| format!("{path}: {what}"));
                eprintln!("variant {number}, {outcome:?}: {}", damages.collect::<Vec<_>>().join(", "));
            }
            *outcomes.entry(outcome).or_default() += 1;
        }
    };
    let threads = std::thread::available_parallelism().unwrap().get();
    let outcomes: BTreeMap<Outcome, u64> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut sum = BTreeMap::new();
        for outcomes in workers.into_iter().map(|worker| worker.join().unwrap()) {
            outcomes.into_iter().for_each(|(outcome, count)| *sum.entry(outcome).or_default() += count);
        }
        sum
    });
    println!("{outcomes:?}; largest allocation {} bytes", LARGEST_ALLOCATION.load(Ordering::Relaxed));
    assert!(outcomes.contains_key(&Outcome::Reported), "most damage is found");
    assert!(!outcomes.contains_key(&Outcome::Unreported), "damage that is not reported changes cells");
    let largest = LARGEST_ALLOCATION.load(Ordering::Relaxed);
    assert!(largest <= ALLOCATION_LIMIT, "an allocation of {largest} bytes");
}
