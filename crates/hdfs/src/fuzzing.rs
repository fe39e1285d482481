//! What the fuzz targets call: the decoders of messages from NameNodes and DataNodes.

use base::env::Stream;
use bytes::Bytes;
use fs::FilePath;
use futures_util::FutureExt;
use prost::Message;

use crate::connection::{CallError, parse_response};
use crate::generated::{
    AddBlockResponse, BlockLocationsResponse, BoolResponse, CreateResponse, DatanodeId, DatanodeInfo,
    ErasureCodingPolicyResponse, ExtendedBlock, FileInfoResponse, FsStatsResponse, ListingResponse,
    LocatedBlock, LocatedBlocks, ServerDefaultsResponse, UpdateBlockForPipelineResponse,
};
use crate::hosts::hosts_of;
use crate::link::{Link, Node, Stage, Target};
use crate::located::{Located, open_replicated};
use crate::replica::exchange;
use crate::visible::parse_len;

/// The response of a NameNode to any call.
pub fn namenode_response(bytes: &[u8]) {
    let Ok((_, response)) = parse_response(Bytes::copy_from_slice(bytes)) else { return };
    let body = match response {
        Ok(body) => body,
        Err(CallError::Broken(_)) => return,
        Err(CallError::Remote(failure) | CallError::Refused(failure)) => {
            let _ = failure.at(&FilePath::new("file"), "fuzz").to_string();
            return;
        }
    };
    decode::<BoolResponse>(&body);
    decode::<CreateResponse>(&body);
    decode::<ErasureCodingPolicyResponse>(&body);
    if let Some(status) = decode::<FileInfoResponse>(&body).and_then(|found| found.fs) {
        let _ = hosts_of("file".to_owned(), &status);
        let _ = status.locations.map(|found| locate(&found, &body));
    }
    if let Some(found) = decode::<BlockLocationsResponse>(&body).and_then(|found| found.locations) {
        let _ = locate(&found, &body);
    }
    let _ = parse_len(body.clone());
    decode::<UpdateBlockForPipelineResponse>(&body);
    decode::<FsStatsResponse>(&body);
    decode::<ListingResponse>(&body);
    decode::<ServerDefaultsResponse>(&body);
    if let Some(added) = decode::<AddBlockResponse>(&body) {
        let _ = Node::all_of(&added.block);
    }
}

/// Locates the blocks of a file. A DataNode states the length of an open block, here from the last
/// bytes of the response.
fn locate(found: &LocatedBlocks, response: &Bytes) -> Result<Located, String> {
    let mut located = Located::complete(found)?;
    if let (Some(open), Some(len)) = (open_replicated(found)?, response.last_chunk()) {
        located.push_open(open, u64::from_be_bytes(*len))?;
    }
    Ok(located)
}

fn decode<M: Message + Default>(body: &Bytes) -> Option<M> {
    M::decode_length_delimited(body.clone()).ok()
}

/// What the DataNodes of a pipeline send: the response to a setup, then acknowledgements.
pub fn datanode_messages(bytes: &[u8]) {
    let located = located();
    let Ok(nodes) = Node::all_of(&located) else { return };
    let count = nodes.len();
    let input = std::io::Cursor::new(bytes.to_vec());
    let stream: Box<dyn Stream> = Box::new(tokio::io::join(input, tokio::io::sink()));
    let mut link = Link::new(nodes, stream);
    let target = Target {
        block: &located.b,
        token: &located.block_token,
        client_name: "fuzz",
        block_bytes: 1 << 20,
        is_lazy: false,
        stage: Stage::Create,
        by_hostname: false,
    };
    // Bytes in memory never wait.
    let set_up = link.set_up(&target).now_or_never().expect("no wait");
    let fault = match set_up {
        Ok(()) => link.exchange(&[], i64::MAX).now_or_never().expect("no wait"),
        failed => failed,
    };
    let fault = fault.expect_err("the input ends before the last acknowledgement");
    assert!(fault.node < count, "the node at fault is one of the pipeline");
}

/// What a DataNode sends for a read.
pub fn datanode_read(bytes: &[u8]) {
    // It begins and ends within a chunk.
    const OFFSET: u64 = 700;
    const LEN: usize = 3000;
    let input = std::io::Cursor::new(bytes.to_vec());
    let stream: Box<dyn Stream> = Box::new(tokio::io::join(input, tokio::io::sink()));
    let read = exchange(stream, &|| (), &Bytes::new(), OFFSET, LEN).now_or_never().expect("no wait");
    if let Ok((data, _)) = read {
        assert_eq!(data.len(), LEN, "a read never returns fewer bytes");
    }
}

/// A block on three DataNodes.
fn located() -> LocatedBlock {
    let node = |port: u32| {
        let id = DatanodeId {
            ip_addr: "10.0.0.1".to_owned(),
            host_name: "host".to_owned(),
            datanode_uuid: format!("node-{port}"),
            xfer_port: port,
            ipc_port: 0,
        };
        DatanodeInfo { id: id.encode_to_vec().into() }.encode_to_vec().into()
    };
    let b = ExtendedBlock { pool_id: "pool".to_owned(), block_id: 1, generation_stamp: 1, num_bytes: None };
    let locs = (1..=3).map(node).collect();
    LocatedBlock { b, locs, ..LocatedBlock::default() }
}
