//! One block that is being written.

use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use fs::AccessPattern;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;

use crate::generated::{ExtendedBlock, LocatedBlock};
use crate::link::{Link, Node, NodeFault, SetupFault, Stage, Target};
use crate::packet::{HEARTBEAT, Packet, Packetizer, heartbeat};
use crate::unacked::Unacked;

/// Recoveries of one block, as in Hadoop's client for one packet.
const RECOVERIES_MAX: u32 = 5;

/// How the bytes reach the DataNodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One connection to each node.
    FanOut,
    /// One connection to the first node, and each node forwards to the next one.
    Pipeline,
}

/// How long to wait for acknowledgements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckLimits {
    /// For the first link.
    pub(crate) first: Duration,
    /// For the others after the first one, if there is such a limit.
    pub(crate) laggard: Option<Duration>,
}

/// Why a block failed.
#[derive(Default)]
pub(crate) struct BlockFault {
    /// The nodes at fault.
    pub(crate) nodes: Vec<Node>,
    /// Those of them that only took too long.
    pub(crate) late: Vec<Node>,
    pub(crate) what: String,
    /// Whether a node only took too long for an acknowledgement.
    pub(crate) is_slow: bool,
    /// Whether all other nodes of the block still work, as far as is known.
    pub(crate) is_certain: bool,
    /// Whether this machine could not open a connection. No node is then at fault.
    pub(crate) is_local: bool,
}

/// A block that is being written. After a fault it must not be used any more, unless it is
/// [recovered](BlockWriter::begin_recovery).
pub(crate) struct BlockWriter {
    env: Env,
    block: ExtendedBlock,
    links: Vec<Link>,
    packets: Packetizer,
    heartbeats: u64,
    /// Length of the block when it was last synced to disk.
    synced: u64,
    /// The number of DataNodes at the beginning.
    replicas: usize,
    /// Present if the block can be recovered.
    unacked: Option<Unacked>,
    /// The packet whose acknowledgement the last operation waits for.
    until: i64,
    /// Whether all nodes must finalize their replicas.
    is_ending: bool,
    recoveries: u32,
}

impl BlockWriter {
    /// Connects to all DataNodes of a new block. The block of a log cannot be recovered.
    pub(crate) async fn open(
        env: &Env,
        located: &LocatedBlock,
        target: &Target<'_>,
        (access, shape): (AccessPattern, Shape),
        limit: Duration,
    ) -> Result<BlockWriter, BlockFault> {
        let unusable = |what: String| BlockFault { what, ..BlockFault::default() };
        let nodes = Node::all_of(located).map_err(|error| unusable(error.to_string()))?;
        if nodes.is_empty() {
            return Err(unusable("the NameNode returned a block without DataNodes".to_owned()));
        }
        let replicas = nodes.len();
        let groups = match shape {
            Shape::FanOut => nodes.into_iter().map(|node| vec![node]).collect(),
            Shape::Pipeline => vec![nodes],
        };
        Ok(BlockWriter {
            links: connect_all(env, groups, target, limit).await?,
            env: env.clone(),
            block: target.block.clone(),
            packets: Packetizer::default(),
            heartbeats: 0,
            synced: 0,
            replicas,
            unacked: (access == AccessPattern::Data).then(Unacked::default),
            until: HEARTBEAT,
            is_ending: false,
            recoveries: 0,
        })
    }

    /// Bytes written so far.
    pub(crate) fn len(&self) -> u64 {
        self.packets.len()
    }

    /// The block with its current length.
    pub(crate) fn block(&self) -> ExtendedBlock {
        ExtendedBlock { num_bytes: Some(self.len()), ..self.block.clone() }
    }

    /// The number of DataNodes at the beginning.
    pub(crate) fn replicas(&self) -> usize {
        self.replicas
    }

    /// Whether the block may continue on this number of DataNodes.
    pub(crate) fn can_continue_with(&self, nodes: usize) -> bool {
        nodes * 2 >= self.replicas
    }

    /// Writes `data`, and waits until at most `window` packets are not acknowledged.
    pub(crate) async fn write(
        &mut self,
        data: Bytes,
        window: usize,
        limits: AckLimits,
    ) -> Result<(), BlockFault> {
        let packets = self.packets.cut(data, false);
        let until = self.packets.last().saturating_sub(window as i64);
        self.exchange(&packets, until, limits).await
    }

    /// Writes `data`, and waits until all nodes have acknowledged all bytes and, if `to_disk`, have
    /// synced them.
    pub(crate) async fn write_and_sync(
        &mut self,
        data: Bytes,
        to_disk: bool,
        limits: AckLimits,
    ) -> Result<(), BlockFault> {
        let to_disk = to_disk && (!data.is_empty() || self.synced < self.len());
        let packets = self.packets.cut(data, to_disk);
        self.exchange(&packets, self.packets.last(), limits).await?;
        if to_disk {
            self.synced = self.len();
        }
        Ok(())
    }

    /// Ends the block: all nodes finalize their replicas. If the block can be recovered, all bytes
    /// must have been acknowledged before.
    pub(crate) async fn end(&mut self, to_disk: bool, limits: AckLimits) -> Result<(), BlockFault> {
        let packet = self.packets.end(to_disk);
        self.is_ending = true;
        self.exchange(&[packet], self.packets.last(), limits).await
    }

    /// Checks that all nodes respond, and keeps their connections open.
    pub(crate) async fn beat(&mut self, limits: AckLimits) -> Result<(), BlockFault> {
        self.heartbeats += 1;
        let (packet, count) = (heartbeat(), self.heartbeats);
        let beats = self.links.iter_mut().enumerate().map(|(index, link)| {
            let packet = packet.clone();
            async move { (index, link.beat(&packet, count).await) }
        });
        let outcome = wait_all(&self.env, beats.collect(), limits).await;
        outcome.map_err(|fault| self.fault(fault))
    }

    /// After a fault: closes all connections, and returns the nodes that may continue the block.
    /// Returns `None` if the block cannot be recovered.
    pub(crate) fn begin_recovery(&mut self, fault: &BlockFault) -> Option<Vec<Node>> {
        self.note_acked();
        self.unacked.as_ref()?;
        self.recoveries += 1;
        if self.recoveries > RECOVERIES_MAX {
            return None;
        }
        let nodes = self.links.drain(..).flat_map(|link| link.nodes);
        Some(nodes.filter(|node| !(fault.is_certain && node.is_in(&fault.nodes))).collect())
    }

    /// The block with the length that all nodes acknowledged.
    pub(crate) fn acked_block(&self) -> ExtendedBlock {
        let acked_len = self.unacked.as_ref().map_or(0, Unacked::acked_len);
        ExtendedBlock { num_bytes: Some(acked_len), ..self.block.clone() }
    }

    /// What the nodes must do if the block continues with a new generation stamp.
    pub(crate) fn recovery_stage(&self, stamp: u64) -> Stage {
        match self.is_ending {
            true => Stage::Finalize { stamp, len: self.len() },
            false => {
                let acked = self.acked_block().num_bytes();
                Stage::Continue { stamp, acked, sent: self.len() }
            }
        }
    }

    /// Connects to each of `nodes`. With one connection to each node, a fault names the node.
    pub(crate) async fn reconnect(
        &mut self,
        nodes: &[Node],
        target: &Target<'_>,
        limit: Duration,
    ) -> Result<(), BlockFault> {
        let groups = nodes.iter().map(|node| vec![node.clone()]).collect();
        self.links = connect_all(&self.env, groups, target, limit).await?;
        self.heartbeats = 0;
        let acked = self.unacked.as_ref().map_or(HEARTBEAT, Unacked::acked);
        self.links.iter_mut().for_each(|link| link.acked = acked);
        Ok(())
    }

    /// Finishes the operation that failed, on the new connections.
    pub(crate) async fn resume(&mut self, stamp: u64, limits: AckLimits) -> Result<(), BlockFault> {
        self.block.generation_stamp = stamp;
        if self.is_ending {
            // The setup has finalized the replicas.
            self.links.clear();
            return Ok(());
        }
        let packets = self.unacked.as_ref().map(Unacked::packets).unwrap_or_default();
        self.send(&packets, self.until, limits).await
    }

    async fn exchange(
        &mut self,
        packets: &[Packet],
        until: i64,
        limits: AckLimits,
    ) -> Result<(), BlockFault> {
        self.until = until;
        if let Some(unacked) = &mut self.unacked {
            unacked.add(packets);
        }
        self.send(packets, until, limits).await
    }

    async fn send(&mut self, packets: &[Packet], until: i64, limits: AckLimits) -> Result<(), BlockFault> {
        if packets.is_empty() && self.links.iter().all(|link| link.acked >= until) {
            return Ok(());
        }
        let exchanges = self
            .links
            .iter_mut()
            .enumerate()
            .map(|(index, link)| async move { (index, link.exchange(packets, until).await) });
        let outcome = wait_all(&self.env, exchanges.collect(), limits).await;
        self.note_acked();
        outcome.map_err(|fault| self.fault(fault))
    }

    /// Frees the packets that all nodes acknowledged.
    fn note_acked(&mut self) {
        let acked = self.links.iter().map(|link| link.acked).min();
        if let (Some(unacked), Some(acked)) = (&mut self.unacked, acked) {
            unacked.acknowledge(acked);
        }
    }

    fn fault(&self, fault: LinkFault) -> BlockFault {
        match fault {
            LinkFault::Failed(index, fault) => {
                let link = &self.links[index];
                let node = link.nodes[fault.node].clone();
                let is_certain = fault.is_reported || link.nodes.len() == 1;
                let what = format!("{node}: {}", fault.what);
                BlockFault { what, nodes: vec![node], is_certain, ..BlockFault::default() }
            }
            LinkFault::Late { done, waited } => {
                // In a pipeline it is unknown which node is late, so all are suspects. If none of
                // several links is done, the fault may be this machine's, and no node is a suspect.
                let all_late = done.is_empty() && self.links.len() > 1;
                let late = self.links.iter().enumerate().filter(|(index, _)| !done.contains(index));
                let late: Vec<Node> = late.flat_map(|(_, link)| link.nodes.clone()).collect();
                let names: Vec<String> = late.iter().map(Node::to_string).collect();
                let what =
                    format!("no acknowledgement within {} ms: {}", waited.as_millis(), names.join(", "));
                let is_certain = !all_late && self.links.iter().all(|link| link.nodes.len() == 1);
                let nodes = if all_late { Vec::new() } else { late };
                BlockFault { late: nodes.clone(), nodes, what, is_slow: true, is_certain, is_local: false }
            }
        }
    }
}

/// Opens a link to each group of nodes.
async fn connect_all(
    env: &Env,
    groups: Vec<Vec<Node>>,
    target: &Target<'_>,
    limit: Duration,
) -> Result<Vec<Link>, BlockFault> {
    let count: usize = groups.iter().map(Vec::len).sum();
    let opening = groups.into_iter().map(|nodes| Link::open(env, nodes, target, limit));
    let (mut links, mut faults): (Vec<Link>, Vec<SetupFault>) = (Vec::new(), Vec::new());
    for opened in join_all(opening).await {
        match opened {
            Ok(link) => links.push(link),
            Err(fault) => faults.push(fault),
        }
    }
    let Some(SetupFault { node, what, .. }) = faults.first() else { return Ok(links) };
    let what = format!("{node}: {what}");
    if faults.iter().any(|fault| fault.is_local) {
        return Err(BlockFault { what, is_local: true, ..BlockFault::default() });
    }
    // If none of several nodes responds, the fault may be this machine's. In a pipeline, the first
    // node does not respond while it waits for a later one. In both cases none is a suspect.
    let all_late = links.is_empty() && count > 1 && faults.iter().all(|fault| fault.is_late);
    if all_late {
        return Err(BlockFault { what, is_certain: true, ..BlockFault::default() });
    }
    let late = faults.iter().filter(|fault| fault.is_late).map(|fault| fault.node.clone()).collect();
    let nodes = faults.into_iter().map(|fault| fault.node).collect();
    Err(BlockFault { nodes, late, what, is_certain: true, ..BlockFault::default() })
}

enum LinkFault {
    /// Index of the link, and what happened.
    Failed(usize, NodeFault),
    /// The links that were done in time.
    Late { done: Vec<usize>, waited: Duration },
}

/// Waits until all links are done.
async fn wait_all<F>(env: &Env, mut running: FuturesUnordered<F>, limits: AckLimits) -> Result<(), LinkFault>
where
    F: Future<Output = (usize, Result<(), NodeFault>)>,
{
    let mut done = Vec::new();
    let mut waited = limits.first;
    let mut timer = env.clock.sleep(waited);
    loop {
        let next = tokio::select! {
            biased;
            next = running.next() => next,
            () = &mut timer => return Err(LinkFault::Late { done, waited }),
        };
        match next {
            None => return Ok(()),
            Some((index, Err(fault))) => return Err(LinkFault::Failed(index, fault)),
            Some((index, Ok(()))) => {
                if let Some(laggard) = limits.laggard.filter(|_| done.is_empty()) {
                    waited = laggard.min(limits.first);
                    timer = env.clock.sleep(waited);
                }
                done.push(index);
            }
        }
    }
}
