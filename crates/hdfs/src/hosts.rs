//! The hosts that have the bytes of a file, and which DataNodes are on this machine.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use base::env::Network;
use fs::FileHosts;

use crate::coding::Coding;
use crate::generated::{FileStatus, LocatedBlock};
use crate::link::Node;

/// Whether addresses of DataNodes are addresses of this machine.
#[derive(Default)]
pub(crate) struct LocalAddresses {
    known: Mutex<HashMap<String, bool>>,
}

impl LocalAddresses {
    /// Whether a DataNode is on this machine.
    pub(crate) fn has(&self, net: &dyn Network, node: &Node) -> bool {
        let address = &node.id.ip_addr;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(is_local) = known.get(address) {
            return *is_local;
        }
        let is_local = address.parse().is_ok_and(|address| net.has_address(address));
        known.insert(address.clone(), is_local);
        is_local
    }
}

/// The hosts of a file whose status has the locations of its blocks. An erasure-coded file with an
/// unknown policy has none.
pub(crate) fn hosts_of(name: String, status: &FileStatus) -> FileHosts {
    let mut bytes_by_host: HashMap<String, u64> = HashMap::new();
    // Each DataNode of an erasure-coded block has one unit of it.
    let units = match &status.ec_policy {
        Some(policy) => Coding::of(policy).map(|coding| u64::from(coding.data_units)),
        None => Some(1),
    };
    for block in status.locations.iter().flat_map(|located| &located.blocks) {
        let Some(host_bytes) = units.map(|units| block.b.num_bytes() / units) else { break };
        for host in names_of_hosts(block) {
            let bytes = bytes_by_host.entry(host).or_default();
            *bytes = bytes.saturating_add(host_bytes);
        }
    }
    FileHosts { name, len: status.length, bytes_by_host }
}

/// The names and addresses of the hosts that have a replica of the block. Several DataNodes of one
/// host count once.
fn names_of_hosts(block: &LocatedBlock) -> HashSet<String> {
    let nodes = Node::all_of(block).unwrap_or_default();
    nodes.into_iter().flat_map(|node| [node.id.host_name, node.id.ip_addr]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    use crate::generated::{DatanodeId, DatanodeInfo, ErasureCodingPolicy, ExtendedBlock, LocatedBlocks};

    fn block(num_bytes: u64, hosts: &[(&str, &str)]) -> LocatedBlock {
        let info = |(name, address): &(&str, &str)| {
            let id = DatanodeId {
                host_name: (*name).to_owned(),
                ip_addr: (*address).to_owned(),
                ..DatanodeId::default()
            };
            DatanodeInfo { id: id.encode_to_vec().into() }.encode_to_vec().into()
        };
        let b = ExtendedBlock { num_bytes: Some(num_bytes), ..ExtendedBlock::default() };
        LocatedBlock { b, locs: hosts.iter().map(info).collect(), ..LocatedBlock::default() }
    }

    #[test]
    fn bytes_are_counted_once_for_each_name_of_a_host() {
        let blocks = vec![
            block(100, &[("one", "10.0.0.1"), ("two", "10.0.0.2")]),
            block(30, &[("two", "10.0.0.2"), ("10.0.0.3", "10.0.0.3"), ("10.0.0.3", "10.0.0.3")]),
        ];
        let locations = Some(LocatedBlocks { file_length: 130, blocks, ..LocatedBlocks::default() });
        let status = FileStatus { length: 130, locations, ..FileStatus::default() };
        let found = hosts_of("file".to_owned(), &status);
        let bytes = |host: &str| found.bytes_by_host.get(host).copied();
        assert_eq!((found.len, found.bytes_by_host.len()), (130, 5));
        assert_eq!((bytes("one"), bytes("10.0.0.1")), (Some(100), Some(100)));
        assert_eq!((bytes("two"), bytes("10.0.0.2")), (Some(130), Some(130)));
        assert_eq!(bytes("10.0.0.3"), Some(30));
    }

    #[test]
    fn a_host_of_an_erasure_coded_block_has_one_unit() {
        let bytes_of = |id: u32| {
            let policy = ErasureCodingPolicy { id, ..ErasureCodingPolicy::default() };
            let blocks = vec![block(600, &[("one", "10.0.0.1"), ("two", "10.0.0.2")])];
            let status = FileStatus {
                length: 600,
                locations: Some(LocatedBlocks { file_length: 600, blocks, ..LocatedBlocks::default() }),
                ec_policy: Some(policy.encode_to_vec().into()),
                ..FileStatus::default()
            };
            let found = hosts_of("file".to_owned(), &status);
            (found.len, found.bytes_by_host.get("one").copied())
        };
        const RS_6_3: u32 = 1;
        assert_eq!(bytes_of(RS_6_3), (600, Some(100)));
        assert_eq!(bytes_of(99), (600, None), "the policy is unknown");
    }
}
