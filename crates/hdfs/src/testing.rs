//! A NameNode and DataNodes over the in-memory network, for the tests of this crate.

mod datanode;
mod namenode;
mod reads;

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};

use base::env::Env;
use bytes::Bytes;
use prost::Message;

pub(crate) use self::datanode::{Behavior, FakeDataNode};
pub(crate) use self::namenode::{FakeNameNode, Mode};
pub(crate) use self::reads::ReadBehavior;
use crate::generated::{DatanodeId, DatanodeInfo, ExtendedBlock, LocatedBlock, PacketHeader};
use crate::link::Node;
use crate::{ConnectError, HdfsFileSystem, HdfsOptions, IfMissing, Limits};

pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The description of a DataNode on another machine that listens on `port`.
pub(crate) fn info(port: u16) -> Bytes {
    info_at("10.0.0.1", port)
}

/// The description of a DataNode that listens on `port` of a machine.
pub(crate) fn info_at(ip_addr: &str, port: u16) -> Bytes {
    let id = DatanodeId {
        ip_addr: ip_addr.to_owned(),
        host_name: "host".to_owned(),
        datanode_uuid: format!("node-{port}"),
        xfer_port: port.into(),
        ipc_port: 0,
    };
    DatanodeInfo { id: id.encode_to_vec().into() }.encode_to_vec().into()
}

/// A new block on DataNodes that listen on `ports`.
pub(crate) fn located(block_id: u64, ports: &[u16]) -> LocatedBlock {
    let b = ExtendedBlock {
        pool_id: "pool".to_owned(),
        block_id,
        generation_stamp: 1000 + block_id,
        num_bytes: Some(0),
    };
    LocatedBlock {
        b,
        offset: 0,
        locs: ports.iter().map(|port| info(*port)).collect(),
        corrupt: false,
        block_token: Bytes::new(),
        storage_types: vec![1; ports.len()],
        storage_ids: ports.iter().map(|port| format!("storage-{port}")).collect(),
    }
}

/// The DataNode that listens on `port`.
pub(crate) fn node(port: u16) -> Node {
    Node::all_of(&located(1, &[port])).unwrap().remove(0)
}

/// Parses a packet and verifies its lengths and checksums.
pub(crate) fn parse_packet(packet: &[u8]) -> (PacketHeader, Vec<u8>) {
    crate::simulated::wire::parse_packet(packet).unwrap()
}

pub(crate) const NAMENODES: [u16; 2] = [8020, 8021];

/// A file system on NameNodes with the [`NAMENODES`]' ports.
pub(crate) async fn connect(env: &Env, limits: Limits) -> HdfsFileSystem {
    connect_with(env, limits, &[]).await
}

pub(crate) async fn connect_with(env: &Env, limits: Limits, more: &[(&str, &str)]) -> HdfsFileSystem {
    try_connect(env, limits, more).await.unwrap()
}

pub(crate) async fn try_connect(
    env: &Env,
    limits: Limits,
    more: &[(&str, &str)],
) -> Result<HdfsFileSystem, ConnectError> {
    let service = [
        ("dfs.ha.namenodes.ns", "a,b"),
        ("dfs.namenode.rpc-address.ns.a", "one:8020"),
        ("dfs.namenode.rpc-address.ns.b", "two:8021"),
    ];
    let settings: HashMap<String, String> =
        service.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let options = HdfsOptions {
        url: "hdfs://ns/hbase".to_owned(),
        user: "u".to_owned(),
        settings,
        limits,
        if_missing: IfMissing::Create,
    };
    HdfsFileSystem::connect(env, &options).await
}
