//! One block that is being written.

use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;

use crate::generated::{ExtendedBlock, LocatedBlock};
use crate::link::{Link, Node, NodeFault, Target};
use crate::packet::{Packet, Packetizer, heartbeat};

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
pub(crate) struct BlockFault {
    /// The nodes at fault.
    pub(crate) nodes: Vec<Node>,
    pub(crate) what: String,
    /// Whether a node only took too long.
    pub(crate) is_slow: bool,
}

/// A block that is being written. After a fault it must not be used any more.
pub(crate) struct BlockWriter {
    env: Env,
    block: ExtendedBlock,
    links: Vec<Link>,
    packets: Packetizer,
    heartbeats: u64,
    /// Length of the block when it was last synced to disk.
    synced: u64,
}

impl BlockWriter {
    /// Connects to all DataNodes of a new block.
    pub(crate) async fn open(
        env: &Env,
        located: &LocatedBlock,
        target: &Target<'_>,
        shape: Shape,
        limit: Duration,
    ) -> Result<BlockWriter, BlockFault> {
        let unusable = |what: String| BlockFault { nodes: Vec::new(), what, is_slow: false };
        let nodes = Node::all_of(located).map_err(|error| unusable(error.to_string()))?;
        if nodes.is_empty() {
            return Err(unusable("the NameNode returned a block without DataNodes".to_owned()));
        }
        let groups = match shape {
            Shape::FanOut => nodes.into_iter().map(|node| vec![node]).collect(),
            Shape::Pipeline => vec![nodes],
        };
        let opening = groups.into_iter().map(|nodes| Link::open(env, nodes, target, limit));
        let (mut links, mut faults) = (Vec::new(), Vec::new());
        for opened in join_all(opening).await {
            match opened {
                Ok(link) => links.push(link),
                Err(fault) => faults.push(fault),
            }
        }
        if let Some((node, what)) = faults.first() {
            let what = format!("{node}: {what}");
            let nodes = faults.into_iter().map(|(node, _)| node).collect();
            return Err(BlockFault { nodes, what, is_slow: false });
        }
        let (packets, block) = (Packetizer::default(), target.block.clone());
        Ok(BlockWriter { env: env.clone(), block, links, packets, heartbeats: 0, synced: 0 })
    }

    /// Bytes written so far.
    pub(crate) fn len(&self) -> u64 {
        self.packets.len()
    }

    /// The block with its current length.
    pub(crate) fn block(&self) -> ExtendedBlock {
        ExtendedBlock { num_bytes: Some(self.len()), ..self.block.clone() }
    }

    /// The number of DataNodes.
    pub(crate) fn replicas(&self) -> usize {
        self.links.iter().map(|link| link.nodes.len()).sum()
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

    /// Ends the block: all nodes finalize their replicas.
    pub(crate) async fn end(&mut self, to_disk: bool, limits: AckLimits) -> Result<(), BlockFault> {
        let packet = self.packets.end(to_disk);
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

    async fn exchange(
        &mut self,
        packets: &[Packet],
        until: i64,
        limits: AckLimits,
    ) -> Result<(), BlockFault> {
        if packets.is_empty() && self.links.iter().all(|link| link.acked >= until) {
            return Ok(());
        }
        let exchanges = self
            .links
            .iter_mut()
            .enumerate()
            .map(|(index, link)| async move { (index, link.exchange(packets, until).await) });
        let outcome = wait_all(&self.env, exchanges.collect(), limits).await;
        outcome.map_err(|fault| self.fault(fault))
    }

    fn fault(&self, fault: LinkFault) -> BlockFault {
        match fault {
            LinkFault::Failed(index, fault) => {
                let node = self.links[index].nodes[fault.node].clone();
                BlockFault { what: format!("{node}: {}", fault.what), nodes: vec![node], is_slow: false }
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
                BlockFault { nodes: if all_late { Vec::new() } else { late }, what, is_slow: true }
            }
        }
    }
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
