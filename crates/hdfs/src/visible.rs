//! The length of a block that is being written: what its readers may see.
//!
//! The NameNode does not know it. Each DataNode of the block states how many bytes all DataNodes
//! after it have acknowledged, so no DataNode states fewer bytes than the writer knows to be
//! flushed. A recovery of the lease may truncate what was never acknowledged.

use bytes::Bytes;
use fs::{Error, FilePath, Result};
use prost::Message;

use crate::connection::{CLIENT_DATANODE_PROTOCOL, CallError, CallId, Connection};
use crate::failure::Failure;
use crate::file::Shared;
use crate::generated::{VisibleLengthRequest, VisibleLengthResponse};
use crate::link::Node;
use crate::located::Replicated;
use crate::options::Address;

/// Why a DataNode did not state a length.
enum Unknown {
    /// It has no replica. The writer may not have reached it.
    NoReplica,
    Other(String),
}

/// The number of bytes of `block` that readers may see. 0 if the DataNodes have no replica and the
/// NameNode knows of no byte: the writer ended before it sent one.
///
/// # Errors
/// If a DataNode may have a replica, but none states its length. So it is after a restart of all
/// DataNodes, until the lease is recovered, and after a restart of the NameNode, until a DataNode
/// has reported a replica.
pub(crate) async fn visible_len(shared: &Shared, path: &FilePath, block: &Replicated) -> Result<u64> {
    let mut failed = Vec::new();
    if block.nodes.is_empty() {
        failed.push("no DataNode has reported a replica".to_owned());
    }
    for node in &block.nodes {
        let asked = shared.env.timeout(shared.settings.read_timeout, len_at(shared, node, block)).await;
        match asked.unwrap_or_else(|| Err(Unknown::Other("no response".to_owned()))) {
            Ok(len) => return Ok(len),
            Err(Unknown::NoReplica) => {}
            Err(Unknown::Other(why)) => failed.push(format!("{node}: {why}")),
        }
    }
    if failed.is_empty() && block.len > 0 {
        failed.push("no DataNode has a replica".to_owned());
    }
    match failed.is_empty() {
        true => Ok(0),
        false => Err(Error::io(
            path,
            "open",
            format!(
                "the file is open, and the length of its last block is not known until its lease is recovered (hdfs \
                 debug recoverLease): {}",
                failed.join("; ")
            ),
        )),
    }
}

async fn len_at(shared: &Shared, node: &Node, block: &Replicated) -> std::result::Result<u64, Unknown> {
    let broken = |error: std::io::Error| Unknown::Other(error.to_string());
    let port = u16::try_from(node.id.ipc_port);
    let port = port.map_err(|_| Unknown::Other(format!("invalid port {}", node.id.ipc_port)))?;
    let address = Address { host: node.id.host(shared.settings.by_hostname).to_owned(), port };
    let identity = shared.namenode.identity();
    let opened = Connection::open(&shared.env, &address, identity, CLIENT_DATANODE_PROTOCOL).await;
    let connection = opened.map_err(broken)?;
    let request = VisibleLengthRequest { block: block.block.clone() };
    let called = connection.call("getReplicaVisibleLength", CallId { id: 0, retries: 0 }, &request).await;
    let response = called.map_err(|error| match error {
        CallError::Remote(failure) if failure.is("ReplicaNotFoundException") => Unknown::NoReplica,
        CallError::Remote(failure) | CallError::Refused(failure) => Unknown::Other(explain(&failure)),
        CallError::Broken(why) => Unknown::Other(why),
    })?;
    parse_len(response).map_err(Unknown::Other)
}

/// Why a DataNode refused to state the length. With access tokens, it wants one on the connection,
/// which needs SASL.
fn explain(failure: &Failure) -> String {
    let message = failure.message();
    match message.contains("BlockTokenIdentifier") {
        true => format!(
            "{message} (with dfs.block.access.token.enable = true, a file that is being written cannot be read)"
        ),
        false => message,
    }
}

/// The length in a response.
///
/// # Errors
/// If it is invalid, or that of a replica whose length only a recovery can decide.
pub(crate) fn parse_len(response: Bytes) -> std::result::Result<u64, String> {
    let response = VisibleLengthResponse::decode_length_delimited(response);
    let length = response.map_err(|error| error.to_string())?.length;
    // Such a replica has the length -1.
    match i64::try_from(length) {
        Ok(_) => Ok(length),
        Err(_) => Err("its replica waits for a recovery".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_of_access_tokens_is_named() {
        let explained = |message: &str| {
            let class = "java.io.IOException".to_owned();
            explain(&Failure::Remote { class, message: message.to_owned() })
        };
        // DataNode.checkReadAccess.
        let refused = "Can't continue with getReplicaVisibleLength() authorization since none or more than one \
                       BlockTokenIdentifier is found.";
        assert!(explained(refused).contains("dfs.block.access.token.enable"));
        assert_eq!(explained("x"), "IOException: x");
    }
}
