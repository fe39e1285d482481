//! The names of an in-memory file system: as programs see them, as they are on disk, and the
//! changes in between.
//!
//! A change of names (create, rename, delete) is atomic under power loss. Changes that touch the
//! same name keep their order: a later one never survives without the earlier. Other changes are
//! independent of each other. A journaling file system guarantees more than that, but the contract
//! does not.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::file::{FileData, coin};

/// A file's contents, shared by the tree and by open readers and writers.
pub(super) type SharedFile = Arc<Mutex<FileData>>;

pub(super) type DirId = u64;
pub(super) const ROOT: DirId = 0;

/// A file, a directory, or a link.
#[derive(Clone, Debug)]
pub(super) enum Node {
    File(SharedFile),
    Dir(DirId),
    Link { target: Arc<str>, modified_ms: u64 },
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    pub(super) dir: DirId,
    pub(super) name: String,
}

/// One atomic change of names: removes a name, adds a name, or both.
#[derive(Debug)]
struct Change {
    id: u64,
    removes: Option<Slot>,
    puts: Option<(Slot, Node)>,
    /// Changes without which this one cannot be on disk.
    needs: BTreeSet<u64>,
}

impl Change {
    fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.removes.iter().chain(self.puts.iter().map(|(slot, _)| slot))
    }
}

type Entries = BTreeMap<String, Node>;
type Names = HashMap<DirId, Entries>;

fn apply(change: &Change, names: &mut Names) {
    if let Some(slot) = &change.removes {
        names.entry(slot.dir).or_default().remove(&slot.name);
    }
    if let Some((slot, node)) = &change.puts {
        names.entry(slot.dir).or_default().insert(slot.name.clone(), node.clone());
    }
}

/// All names of a file system.
#[derive(Debug)]
pub(super) struct Tree {
    current: Names,
    synced: Names,
    unsynced: Vec<Change>,
    next_change: u64,
    next_dir: DirId,
    dir_modified_ms: HashMap<DirId, u64>,
}

impl Tree {
    pub(super) fn new() -> Tree {
        let names = Names::from([(ROOT, Entries::new())]);
        Tree {
            current: names.clone(),
            synced: names,
            unsynced: Vec::new(),
            next_change: 0,
            next_dir: ROOT + 1,
            dir_modified_ms: HashMap::new(),
        }
    }

    pub(super) fn get(&self, slot: &Slot) -> Option<&Node> {
        self.entries(slot.dir).get(&slot.name)
    }

    pub(super) fn entries(&self, dir: DirId) -> &Entries {
        self.current.get(&dir).expect("every directory has an entry table")
    }

    pub(super) fn dir_modified_ms(&self, dir: DirId) -> u64 {
        self.dir_modified_ms.get(&dir).copied().unwrap_or(0)
    }

    pub(super) fn put(&mut self, slot: Slot, node: Node, now_ms: u64) {
        self.change(None, Some((slot, node)), BTreeSet::new(), now_ms);
    }

    pub(super) fn rename(&mut self, from: Slot, to: Slot, now_ms: u64) {
        let node = self.get(&from).expect("the caller checked that it exists").clone();
        self.change(Some(from), Some((to, node)), BTreeSet::new(), now_ms);
    }

    /// Removes a name and everything below it. Returns the change, which depends on the changes
    /// below it.
    pub(super) fn remove(&mut self, slot: Slot, now_ms: u64) -> u64 {
        let mut needs = BTreeSet::new();
        if let Some(Node::Dir(dir)) = self.get(&slot).cloned() {
            let names: Vec<String> = self.entries(dir).keys().cloned().collect();
            needs = names.into_iter().map(|name| self.remove(Slot { dir, name }, now_ms)).collect();
        }
        self.change(Some(slot), None, needs, now_ms)
    }

    /// Creates a directory whose name is durable immediately.
    pub(super) fn make_dir(&mut self, slot: Slot, now_ms: u64) -> DirId {
        let dir = self.next_dir;
        self.next_dir += 1;
        self.current.insert(dir, Entries::new());
        self.synced.insert(dir, Entries::new());
        self.put(slot.clone(), Node::Dir(dir), now_ms);
        self.sync_slot(&slot);
        dir
    }

    pub(super) fn sync_slot(&mut self, slot: &Slot) {
        self.sync_where(|change| change.slots().any(|touched| touched == slot));
    }

    pub(super) fn sync_dir(&mut self, dir: DirId) {
        self.sync_where(|change| change.slots().any(|touched| touched.dir == dir));
    }

    fn change(
        &mut self,
        removes: Option<Slot>,
        puts: Option<(Slot, Node)>,
        needs: BTreeSet<u64>,
        now_ms: u64,
    ) -> u64 {
        let id = self.next_change;
        self.next_change += 1;
        let mut change = Change { id, removes, puts, needs };
        for earlier in &self.unsynced {
            if earlier.slots().any(|slot| change.slots().any(|touched| touched == slot)) {
                change.needs.insert(earlier.id);
            }
        }
        for slot in change.slots() {
            self.dir_modified_ms.insert(slot.dir, now_ms);
        }
        apply(&change, &mut self.current);
        self.unsynced.push(change);
        id
    }

    fn sync_where(&mut self, is_synced: impl Fn(&Change) -> bool) {
        let mut chosen: BTreeSet<u64> =
            self.unsynced.iter().filter(|change| is_synced(change)).map(|change| change.id).collect();
        // A change needs only older ones, so one pass from the newest finds all.
        for change in self.unsynced.iter().rev() {
            if chosen.contains(&change.id) {
                chosen.extend(&change.needs);
            }
        }
        for change in self.unsynced.extract_if(.., |change| chosen.contains(&change.id)) {
            apply(&change, &mut self.synced);
        }
    }

    /// The names and files that may be on disk after power loss now.
    pub(super) fn crash(&self, random: &mut dyn FnMut() -> u64) -> Tree {
        let mut names = self.synced.clone();
        let mut lost = BTreeSet::new();
        for change in &self.unsynced {
            if coin(random) || !change.needs.is_disjoint(&lost) {
                lost.insert(change.id);
            } else {
                apply(change, &mut names);
            }
        }
        let mut image = Tree::new();
        image.next_dir = self.next_dir;
        image.dir_modified_ms = self.dir_modified_ms.clone();
        let reached = copy_crashed(&names, random);
        image.synced = reached.clone();
        image.current = reached;
        image
    }
}

// Copies everything reachable from the root, with each file in its state after the power loss.
fn copy_crashed(names: &Names, random: &mut dyn FnMut() -> u64) -> Names {
    let mut copy = Names::new();
    let mut dirs = vec![ROOT];
    while let Some(dir) = dirs.pop() {
        let entries = names.get(&dir).expect("every directory has an entry table");
        let mut copied = Entries::new();
        for (name, node) in entries {
            let node = match node {
                Node::Dir(child) => {
                    dirs.push(*child);
                    Node::Dir(*child)
                }
                Node::File(file) => {
                    let file = file.lock().unwrap_or_else(PoisonError::into_inner).crash(random);
                    Node::File(Arc::new(Mutex::new(file)))
                }
                Node::Link { .. } => node.clone(),
            };
            copied.insert(name.clone(), node);
        }
        copy.insert(dir, copied);
    }
    copy
}
