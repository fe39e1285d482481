//! What the NameNodes of a name service share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::files::{Content, Files};
use super::wire::Outcome;

/// The first generation stamp and block id.
const FIRST: u64 = 1000;

/// What survives the end of a NameNode. See [`super`].
pub struct Journal {
    state: Mutex<Namespace>,
}

/// A file, for checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// The id of its inode.
    pub id: u64,
    /// Its path now.
    pub path: String,
    /// Its length in bytes, without a last block that is not complete.
    pub len: u64,
    /// Whether it is open for writing.
    pub is_open: bool,
}

pub(super) struct Namespace {
    pub(super) files: Files,
    /// The results of calls that are executed once, by client and call.
    pub(super) results: BTreeMap<(Bytes, i32), Outcome>,
    /// The NameNode that may change the namespace.
    pub(super) active: Option<u64>,
    last_namenode: u64,
    last_block: u64,
    last_stamp: u64,
}

impl Namespace {
    pub(super) fn next_block(&mut self) -> u64 {
        self.last_block += 1;
        self.last_block
    }

    pub(super) fn next_stamp(&mut self) -> u64 {
        self.last_stamp += 1;
        self.last_stamp
    }
}

impl Journal {
    /// An empty namespace without an active NameNode.
    pub fn new() -> Arc<Journal> {
        let state = Namespace {
            files: Files::new(),
            results: BTreeMap::new(),
            active: None,
            last_namenode: 0,
            last_block: FIRST,
            last_stamp: FIRST,
        };
        Arc::new(Journal { state: Mutex::new(state) })
    }

    /// The file at a path.
    pub fn file(&self, path: &str) -> Option<FileFacts> {
        let state = self.lock();
        let id = state.files.find(path).ok()??.id;
        facts(&state.files, id)
    }

    /// The file with this id.
    pub fn file_by_id(&self, id: u64) -> Option<FileFacts> {
        facts(&self.lock().files, id)
    }

    /// The types of storage (HDFS: `StorageTypeProto`) of the replicas of a file, in the order of
    /// its blocks. Empty if there is no such file.
    pub fn storage_types(&self, path: &str) -> Vec<u32> {
        let state = self.lock();
        let id = state.files.find(path).ok().flatten().map(|inode| inode.id);
        let file = id.and_then(|id| state.files.file(id));
        let blocks = file.into_iter().flat_map(|file| &file.blocks);
        blocks.flat_map(|block| block.expected.iter().map(|node| block.type_on(node))).collect()
    }

    /// The id of the storage policy of a file or directory, or of a directory above; 0 for none.
    pub fn storage_policy(&self, path: &str) -> u32 {
        let state = self.lock();
        let id = state.files.find(path).ok().flatten().map(|inode| inode.id);
        id.map_or(0, |id| state.files.policy_of(id))
    }

    /// A number for a NameNode that starts.
    pub(super) fn add_namenode(&self) -> u64 {
        let mut state = self.lock();
        state.last_namenode += 1;
        state.last_namenode
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Namespace> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn facts(files: &Files, id: u64) -> Option<FileFacts> {
    let Content::File(file) = &files.by_id(id)?.content else { return None };
    Some(FileFacts { id, path: files.path_of(id), len: file.closed_len(), is_open: file.holder.is_some() })
}
