//! Storage policies of directories, and where replicas are.

use std::collections::BTreeMap;

use super::files::{Content, Files, IO};
use super::namenode::Execution;
use super::wire::{Exception, Outcome, encode};
use crate::generated::{Empty, PathRequest, SetStoragePolicyRequest};

const ILLEGAL_ARGUMENT: &str = "org.apache.hadoop.HadoopIllegalArgumentException";
const UNSUPPORTED: &str = "java.lang.UnsupportedOperationException";
/// Numbers of types of storage.
const DISK: u32 = 1;
const SSD: u32 = 2;
const ARCHIVE: u32 = 3;
const RAM_DISK: u32 = 4;

/// A policy: its name and id, the type of the first replica and that of the others.
const POLICIES: [(&str, u32, u32, u32); 6] = [
    ("LAZY_PERSIST", 15, RAM_DISK, DISK),
    ("ALL_SSD", 12, SSD, SSD),
    ("ONE_SSD", 10, SSD, DISK),
    ("HOT", 7, DISK, DISK),
    ("WARM", 5, DISK, ARCHIVE),
    ("COLD", 2, ARCHIVE, ARCHIVE),
];

impl Files {
    /// The id of the policy of a file or directory, or of the nearest directory above that has one;
    /// 0 if there is none.
    pub(super) fn policy_of(&self, id: u64) -> u32 {
        let mut inode = self.by_id(id);
        while let Some(found) = inode {
            if found.policy != 0 || found.is_root() {
                return found.policy;
            }
            inode = self.by_id(found.parent());
        }
        0
    }

    /// Moves the replicas of a file, or of all files below a directory, to where the policy says.
    fn satisfy(&mut self, id: u64) {
        let policy = self.policy_of(id);
        let below: Vec<u64> = match self.by_id(id).map(|inode| &inode.content) {
            Some(Content::Dir(entries)) => entries.values().copied().collect(),
            _ => Vec::new(),
        };
        for block in self.file_mut(id).into_iter().flat_map(|file| &mut file.blocks) {
            block.types = types_of(policy, &block.expected);
        }
        below.into_iter().for_each(|id| self.satisfy(id));
    }
}

impl Execution<'_> {
    pub(super) fn set_storage_policy(&mut self, request: &SetStoragePolicyRequest) -> Outcome {
        let SetStoragePolicyRequest { src, policy_name } = request;
        let unknown =
            || (ILLEGAL_ARGUMENT, format!("Cannot find a block policy with the name {policy_name}"));
        let policy = POLICIES.iter().find(|(name, ..)| name == policy_name).ok_or_else(unknown)?.1;
        let id = self.names.files.get(src)?.id;
        self.names.files.set_policy(id, policy);
        self.record(&format!("{src} has the storage policy {policy_name}"));
        encode(Empty {})
    }

    /// Moves the replicas immediately, if there is a satisfier.
    pub(super) fn satisfy_storage_policy(&mut self, request: &PathRequest) -> Outcome {
        if !self.namenode.options.satisfier {
            let message = "Cannot request to satisfy storage policy when storage policy satisfier feature has been \
                           disabled by admin. Seek for an admin help to enable it or use Mover tool.";
            return Err((UNSUPPORTED, message.to_owned()));
        }
        let inode = self.names.files.get(&request.src)?;
        let id = inode.id;
        if matches!(&inode.content, Content::File(file) if file.blocks.is_empty()) {
            return Err(no_blocks(&request.src));
        }
        self.names.files.satisfy(id);
        self.record(&format!("moves the replicas of {}", request.src));
        encode(Empty {})
    }
}

fn no_blocks(path: &str) -> Exception {
    (IO, format!("Requested file {path} has no blocks"))
}

/// The types of storage of replicas on these DataNodes.
pub(super) fn types_of(policy: u32, nodes: &[String]) -> BTreeMap<String, u32> {
    let known = POLICIES.iter().find(|(_, id, ..)| *id == policy);
    let (first, others) = known.map_or((DISK, DISK), |(_, _, first, others)| (*first, *others));
    let types = std::iter::once(first).chain(std::iter::repeat(others));
    nodes.iter().cloned().zip(types).collect()
}
