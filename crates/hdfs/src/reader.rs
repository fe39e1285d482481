//! Reads of replicated files.
//!
//! A reader belongs to a file's inode, so it still works after its file was renamed. It keeps the
//! locations of blocks that it got when it was opened. It requests new ones if no replica can be
//! read or the access tokens have expired, and in the background after a replica could not be read.
//! For two minutes after a DataNode failed, its replicas are tried only after those of other
//! DataNodes. Then one read probes it.

use std::sync::Arc;
use std::time::Duration;

use base::BoxFuture;
use base::env::TaskClass;
use bytes::{Bytes, BytesMut};
use fs::{Error, FilePath, Result};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::SemaphorePermit;
use tracing::warn;

use crate::corrupt::report_corrupt;
use crate::file::Shared;
use crate::link::Node;
use crate::located::{Located, Replicated};
use crate::locations::Locations;
use crate::packet::CHUNK_BYTES;
use crate::replica::{ReadContext, ReplicaFault};

/// Attempts, each with all replicas of a block.
const ATTEMPTS: u32 = 6;
/// Unit of the pauses between attempts. There is no pause before the second attempt. The pause
/// before the third attempt is four units; each later pause is twice as long as the previous one.
const PAUSE: Duration = Duration::from_millis(100);
/// The shortest time after which a hedge is attempted again, if too many others run.
const HEDGE_RETRY: Duration = Duration::from_millis(10);
/// How long an attempt waits for new locations while the old ones may still be right.
const LOCATE: Duration = Duration::from_secs(5);

/// An open file.
pub(crate) struct HdfsReader {
    shared: Arc<Shared>,
    path: FilePath,
    locations: Arc<Locations>,
}

/// A read of one replica.
type ReplicaRead<'a> = BoxFuture<'a, std::result::Result<Bytes, (&'a Node, ReplicaFault)>>;

/// Why no replica of a block could be read.
struct Unreadable {
    what: String,
    // If the token has expired, new locations with new tokens are requested without a warning.
    is_token_expired: bool,
    has_no_descriptor: bool,
}

impl Unreadable {
    /// The error of a read after the last attempt.
    fn at(self, path: &FilePath) -> Error {
        match self.has_no_descriptor {
            true => Error::NoDescriptor { path: path.clone(), operation: "read" },
            false => Error::io(path, "read", self.what),
        }
    }
}

impl HdfsReader {
    /// A reader of the file at `inode`, a path of the form `/.reserved/.inodes/ID`.
    pub(crate) fn new(shared: Arc<Shared>, path: FilePath, inode: String, located: Located) -> HdfsReader {
        let locations = Arc::new(Locations::new(shared.clone(), path.clone(), inode, located));
        HdfsReader { shared, path, locations }
    }

    async fn read_with_retries(&self, offset: u64, len: usize) -> Result<Bytes> {
        let mut located = self.locations.current();
        // A request for new locations whose response the previous attempts did not wait for.
        let mut locating: Option<BoxFuture<'static, Result<Arc<Located>>>> = None;
        let mut attempt = 1;
        loop {
            let unreadable = match self.read_parts(&located, offset, len).await {
                Ok(bytes) => return Ok(bytes),
                Err(unreadable) => unreadable,
            };
            if attempt == ATTEMPTS {
                return Err(unreadable.at(&self.path));
            }
            if !unreadable.is_token_expired {
                let error = unreadable.what;
                warn!(path = %self.path, offset, len, error, attempt, "no replica could be read; retrying");
            }
            if attempt > 1 {
                self.shared.env.clock.sleep(PAUSE * (1 << attempt)).await;
            }
            attempt += 1;
            // An expired token is in all old locations.
            let limit = if unreadable.is_token_expired { self.shared.limits.namenode } else { LOCATE };
            let request = locating.get_or_insert_with(|| self.locate_in_task());
            let Some(again) = self.shared.env.timeout(limit, request).await else {
                located = self.locations.current();
                continue;
            };
            locating = None;
            match again {
                Ok(again) => located = again,
                Err(error @ Error::NotFound { .. }) => return Err(error),
                // The old locations may still be right.
                Err(error) => warn!(path = %self.path, %error, "cannot locate the blocks of a file again"),
            }
        }
    }

    /// Requests new locations in a task, which also runs while the result is not waited for.
    /// Otherwise the request could hold the lock of a NameNode's connection for all this time.
    fn locate_in_task(&self) -> BoxFuture<'static, Result<Arc<Located>>> {
        let (env, path, locations) = (self.shared.env.clone(), self.path.clone(), self.locations.clone());
        Box::pin(async move {
            let locate = async move { locations.locate_again().await };
            let located = env.run_to_end(TaskClass::Service, locate).await;
            located.unwrap_or_else(|| Err(Error::io(&path, "read", "the request for its blocks panicked")))
        })
    }

    async fn read_parts(
        &self,
        located: &Located,
        offset: u64,
        len: usize,
    ) -> std::result::Result<Bytes, Unreadable> {
        match &located.parts(offset, len)[..] {
            [(block, at, len)] => self.read_block(&located.blocks[*block], *at, *len).await,
            parts => {
                let mut all = BytesMut::with_capacity(len);
                for (block, at, len) in parts {
                    all.extend_from_slice(&self.read_block(&located.blocks[*block], *at, *len).await?);
                }
                Ok(all.freeze())
            }
        }
    }

    /// Reads a part of a block. Tries its replicas in sequence until one can be read. With hedged
    /// reads, the next replica is also tried if the current reads take long, unless its DataNode
    /// failed recently.
    async fn read_block(
        &self,
        block: &Replicated,
        at: u64,
        len: usize,
    ) -> std::result::Result<Bytes, Unreadable> {
        let clock = &self.shared.env.clock;
        let mut nodes = self.in_order(block).into_iter();
        let mut unreadable = Unreadable {
            what: "the block has no replica".to_owned(),
            is_token_expired: false,
            has_no_descriptor: false,
        };
        let mut has_failed = false;
        let mut hedge_after = self.shared.settings.hedge_after;
        let mut running: FuturesUnordered<ReplicaRead<'_>> = FuturesUnordered::new();
        running.extend(nodes.next().map(|node| self.read_replica(node, block, at, len)));
        loop {
            let can_hedge = |_: &Duration| nodes.as_slice().first().is_some_and(|node| !self.is_last(node));
            let hedge = hedge_after.filter(can_hedge);
            let (node, fault) = tokio::select! {
                biased;
                read = running.next() => match read {
                    Some(Ok(bytes)) => {
                        if has_failed {
                            self.locations.refresh_later();
                        }
                        return Ok(bytes);
                    }
                    Some(Err(fault)) => fault,
                    None => return Err(unreadable),
                },
                () = clock.sleep(hedge.unwrap_or(Duration::MAX)), if hedge.is_some() => {
                    if let Ok(permit) = self.shared.hedges.try_acquire() {
                        let read = nodes.next().map(|node| self.read_replica(node, block, at, len));
                        running.extend(read.map(|read| hedged(read, permit)));
                    } else {
                        hedge_after = hedge_after.max(Some(HEDGE_RETRY));
                    }
                    continue;
                }
            };
            has_failed = true;
            unreadable = self.judge(node, block, fault);
            if running.is_empty() {
                running.extend(nodes.next().map(|node| self.read_replica(node, block, at, len)));
            }
        }
    }

    /// The nodes of a block. Those that failed recently are at the end.
    fn in_order<'b>(&self, block: &'b Replicated) -> Vec<&'b Node> {
        let mut nodes: Vec<&Node> = block.nodes.iter().collect();
        nodes.sort_by_cached_key(|node| self.is_last(node));
        nodes
    }

    fn is_last(&self, node: &Node) -> bool {
        self.shared.suspects.is_read_last(node, self.shared.env.clock.monotonic())
    }

    fn read_replica<'b>(
        &'b self,
        node: &'b Node,
        block: &'b Replicated,
        at: u64,
        len: usize,
    ) -> ReplicaRead<'b> {
        let shared = &self.shared;
        let probe = shared.suspects.begin_probe(node, shared.env.clock.monotonic());
        let was_last = self.is_last(node);
        let context = ReadContext {
            env: &shared.env,
            idle: &shared.idle,
            client_name: &shared.client_name,
            by_hostname: shared.settings.by_hostname,
        };
        let limit = shared.settings.read_timeout;
        Box::pin(async move {
            let read = match shared.read_slots.acquire(&shared.env, &node.id.datanode_uuid, limit).await {
                Err(fault) => Err(fault),
                Ok(_slot) if !was_last && self.is_last(node) => {
                    Err(ReplicaFault::Local("it failed while this read waited".to_owned()))
                }
                Ok(_slot) => context.read(node, block, (at, len), limit).await,
            };
            match (probe, &read) {
                (Some(probe), Err(ReplicaFault::Node(_))) => probe.fail(),
                // Nothing was sent to the DataNode.
                (Some(probe), Err(ReplicaFault::Local(_) | ReplicaFault::NoDescriptor)) => drop(probe),
                // Also an error shows that the DataNode responds.
                (Some(probe), _) => probe.succeed(),
                (None, _) => {}
            }
            read.map_err(|fault| (node, fault))
        })
    }

    /// After a fault, marks the node as a suspect, or its replica as one to read last, if the kind
    /// of fault requires it. Returns why the block could not be read.
    fn judge(&self, node: &Node, block: &Replicated, fault: ReplicaFault) -> Unreadable {
        let (block_id, is_token_expired) = (block.block.block_id, matches!(fault, ReplicaFault::Token));
        let has_no_descriptor = matches!(fault, ReplicaFault::NoDescriptor);
        let what = match fault {
            ReplicaFault::Node(what) => {
                self.shared.suspects.add(node, self.shared.env.clock.monotonic());
                what
            }
            ReplicaFault::Corrupt(what) => {
                report_corrupt(&self.shared, &self.path, node, block);
                self.locations.put_last(block_id, node);
                what
            }
            ReplicaFault::Refused(what) => {
                self.locations.put_last(block_id, node);
                what
            }
            ReplicaFault::Token => "the access token has expired".to_owned(),
            ReplicaFault::Local(what) => what,
            ReplicaFault::NoDescriptor => "no file descriptor is left".to_owned(),
        };
        if !is_token_expired {
            warn!(path = %self.path, block_id, %node, what, "cannot read a replica");
        }
        let what = format!("block {block_id} at {node}: {what}");
        Unreadable { what, is_token_expired, has_no_descriptor }
    }
}

/// The read of a hedge, which holds its permit until it ends.
fn hedged<'a>(read: ReplicaRead<'a>, permit: SemaphorePermit<'a>) -> ReplicaRead<'a> {
    Box::pin(async move {
        let _permit = permit;
        read.await
    })
}

impl fs::FileReader for HdfsReader {
    fn path(&self) -> &FilePath {
        &self.path
    }

    fn len(&self) -> u64 {
        self.locations.file_len()
    }

    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>> {
        Box::pin(async move {
            let end = offset.saturating_add(len as u64);
            if end > self.len() {
                return Err(Error::PastEnd { path: self.path.clone(), end });
            }
            if len == 0 {
                return Ok(Bytes::new());
            }
            self.read_with_retries(offset, len).await
        })
    }

    /// The chunks at both ends are received as a whole.
    fn read_overhead_bytes(&self) -> usize {
        2 * CHUNK_BYTES
    }

    /// Each call is a request to a DataNode, which takes a millisecond or more.
    fn sequential_read_bytes(&self) -> usize {
        4 << 20
    }
}
