//! Writes of blocks at a DataNode.

use std::io;

use base::env::Stream;
use bytes::{BufMut, BytesMut};
use prost::Message;
use tokio::io::AsyncWriteExt;

use super::DiskAccess;
use super::datanode::{DataNode, exception};
use super::store::{Refused, WriterTicket};
use super::wire::{invalid, parse_packet, read_message, read_packet};
use crate::generated::{BlockOpResponse, DatanodeId, DatanodeInfo, OpWriteBlock, PacketHeader, PipelineAck};

const STAGE_CONTINUE: u32 = 3;
const STAGE_FINALIZE: u32 = 5;
const STAGE_CREATE: u32 = 6;
const SUCCESS: u32 = 0;
const ERROR: u32 = 1;
const ERROR_CHECKSUM: u32 = 2;

/// The next DataNode of a pipeline.
struct Next {
    stream: Box<dyn Stream>,
    inbound: BytesMut,
}

fn refused(refused: Refused) -> io::Error {
    io::Error::other(exception(refused).1)
}

impl DataNode {
    pub(super) async fn serve_write(&self, mut stream: Box<dyn Stream>) -> io::Result<()> {
        let setup: OpWriteBlock = read_message(&mut stream, &mut BytesMut::new()).await?;
        let mut response = BlockOpResponse { first_bad_link: Some(String::new()), ..Default::default() };
        let ticket = match self.set_up(&setup).await {
            Ok(ticket) => ticket,
            Err(error) => {
                (response.status, response.message) = (ERROR, Some(error.to_string()));
                None
            }
        };
        let mut next = None;
        if response.status == SUCCESS {
            match self.forward_setup(&setup).await {
                Ok(opened) => next = opened,
                Err(link) => (response.status, response.first_bad_link) = (ERROR, Some(link)),
            }
        }
        stream.write_all(&response.encode_length_delimited_to_vec()).await?;
        match ticket.filter(|_| response.status == SUCCESS) {
            Some(mut ticket) => self.receive(&mut stream, &mut ticket, &mut next).await,
            None => Ok(()),
        }
    }

    /// Sets up the replica. Returns the ticket of its writer, unless it is finalized.
    async fn set_up(&self, setup: &OpWriteBlock) -> io::Result<Option<WriterTicket>> {
        let syncs = setup.stage == STAGE_FINALIZE && self.options.syncs_on_close;
        self.disk.access(if syncs { DiskAccess::Sync } else { DiskAccess::Write }).await?;
        let block = &setup.header.base_header.block;
        let (block_id, old, new) = (block.block_id, block.generation_stamp, setup.latest_generation_stamp);
        let (least, most) = (setup.min_bytes_rcvd, setup.max_bytes_rcvd);
        match setup.stage {
            STAGE_CREATE => self.store.create(block_id, new).map(Some),
            STAGE_CONTINUE => self.store.resume(block_id, (old, new), (least, most)).map(Some),
            STAGE_FINALIZE => self.store.finalize_at(block_id, (old, new), least, syncs).map(|()| None),
            other => Err(Refused::Other(format!("stage {other}"))),
        }
        .map_err(refused)
    }

    /// Sets up the block on the next node, if there is one. An error has the address of that node.
    async fn forward_setup(&self, setup: &OpWriteBlock) -> Result<Option<Next>, String> {
        let Some((next, rest)) = setup.targets.split_first() else { return Ok(None) };
        let id = DatanodeInfo::decode(next.clone()).and_then(|info| DatanodeId::decode(info.id));
        let id = id.map_err(|error| error.to_string())?;
        let link = format!("{}:{}", id.ip_addr, id.xfer_port);
        let setup = OpWriteBlock { targets: rest.to_vec(), ..setup.clone() };
        let mut request = BytesMut::new();
        request.put_slice(&[0, 28, 80]);
        request.put_slice(&setup.encode_length_delimited_to_vec());
        let connected = async {
            let mut stream = self.env.net.connect(&id.ip_addr, id.xfer_port as u16).await?;
            stream.write_all(&request).await?;
            let mut inbound = BytesMut::new();
            let response: BlockOpResponse = read_message(&mut stream, &mut inbound).await?;
            Ok::<_, io::Error>((Next { stream, inbound }, response))
        };
        match connected.await {
            Ok((next, response)) if response.status == SUCCESS => Ok(Some(next)),
            Ok((_, response)) => Err(response.first_bad_link.filter(|bad| !bad.is_empty()).unwrap_or(link)),
            Err(_) => Err(link),
        }
    }

    /// Receives packets until the end of the block, or until another writer or a recovery replaces
    /// this writer.
    async fn receive(
        &self,
        stream: &mut Box<dyn Stream>,
        ticket: &mut WriterTicket,
        next: &mut Option<Next>,
    ) -> io::Result<()> {
        loop {
            let packet = tokio::select! {
                biased;
                _ = &mut ticket.stopped => return Ok(()),
                packet = read_packet(stream) => packet?,
            };
            let (header, data) = match parse_packet(&packet) {
                Ok(parsed) => parsed,
                Err(error) => {
                    let ack = PipelineAck { seqno: 0, reply: vec![ERROR_CHECKSUM], flag: Vec::new() };
                    stream.write_all(&ack.encode_length_delimited_to_vec()).await?;
                    return Err(error);
                }
            };
            // The next node works on the packet at the same time.
            let mut is_forwarded = true;
            if let Some(next) = next {
                is_forwarded = next.stream.write_all(&packet).await.is_ok();
            }
            let stored = self.store_packet(ticket, &header, &data).await;
            let mut reply = vec![if stored.is_ok() { SUCCESS } else { ERROR }];
            if let Some(next) = next {
                let ack = match is_forwarded {
                    true => read_message::<PipelineAck>(&mut next.stream, &mut next.inbound).await.ok(),
                    false => None,
                };
                reply.extend(ack.map_or(vec![ERROR], |ack| ack.reply));
            }
            let is_acked = reply.iter().all(|status| *status == SUCCESS);
            if is_acked && header.seqno >= 0 {
                let end = header.offset_in_block as u64 + data.len() as u64;
                self.store.acknowledge(ticket, end, header.last_packet_in_block).map_err(refused)?;
            }
            let ack = PipelineAck { seqno: header.seqno, reply, flag: Vec::new() };
            stream.write_all(&ack.encode_length_delimited_to_vec()).await?;
            if !is_acked || header.last_packet_in_block {
                return stream.shutdown().await;
            }
        }
    }

    async fn store_packet(
        &self,
        ticket: &WriterTicket,
        header: &PacketHeader,
        data: &[u8],
    ) -> io::Result<()> {
        if header.seqno < 0 {
            return Ok(());
        }
        let offset = u64::try_from(header.offset_in_block).map_err(|_| invalid("offset"))?;
        if !data.is_empty() {
            self.disk.access(DiskAccess::Write).await?;
            self.store.write(ticket, offset, data).map_err(refused)?;
        }
        if header.sync_block() || (header.last_packet_in_block && self.options.syncs_on_close) {
            let len = self.store.len_of(ticket).map_err(refused)?;
            self.disk.access(DiskAccess::Sync).await?;
            self.store.mark_synced(ticket, len).map_err(refused)?;
        }
        Ok(())
    }
}
