//! Reads of replicated files.
//!
//! A reader belongs to a file's inode, so it still works after its file was renamed. It keeps the
//! locations of blocks that it got when it was opened, and requests new ones if no replica can be
//! read or the access tokens have expired. For two minutes after a DataNode failed, its replicas
//! are tried only after those of other DataNodes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::BoxFuture;
use bytes::{Bytes, BytesMut};
use fs::{Error, FilePath, Result};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tracing::{debug, warn};

use crate::file::Shared;
use crate::generated::{BadBlocksRequest, Empty, LocatedBlock};
use crate::link::Node;
use crate::located::{Located, Replicated, locate};
use crate::packet::CHUNK_BYTES;
use crate::replica::{ReadContext, ReplicaFault};

/// Attempts, each with all replicas of a block.
const ATTEMPTS: u32 = 6;
/// Unit of the pauses between attempts. There is no pause before the second attempt. The pause
/// before the third attempt is four units; each later pause is twice as long as the previous one.
const PAUSE: Duration = Duration::from_millis(100);

/// An open file.
pub(crate) struct HdfsReader {
    shared: Arc<Shared>,
    path: FilePath,
    // The path that names the file by its inode: `/.reserved/.inodes/ID`.
    inode: String,
    len: u64,
    located: Mutex<Arc<Located>>,
}

/// Why no replica of a block could be read.
struct Unreadable {
    what: String,
    // If the token has expired, new locations with new tokens are requested without a warning.
    is_token_expired: bool,
}

impl HdfsReader {
    /// A reader of the file at `inode`, a path of the form `/.reserved/.inodes/ID`.
    pub(crate) fn new(shared: Arc<Shared>, path: FilePath, inode: String, located: Located) -> HdfsReader {
        let len = located.len;
        HdfsReader { shared, path, inode, len, located: Mutex::new(Arc::new(located)) }
    }

    fn current(&self) -> Arc<Located> {
        self.located.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn locate_again(&self) -> Result<Arc<Located>> {
        let located = Arc::new(locate(&self.shared, &self.path, &self.inode).await?);
        if located.len < self.len {
            let message = format!("the file has only {} bytes now", located.len);
            return Err(Error::io(&self.path, "read", message));
        }
        *self.located.lock().unwrap_or_else(PoisonError::into_inner) = located.clone();
        Ok(located)
    }

    async fn read_with_retries(&self, offset: u64, len: usize) -> Result<Bytes> {
        let mut located = self.current();
        let mut attempt = 1;
        loop {
            let unreadable = match self.read_parts(&located, offset, len).await {
                Ok(bytes) => return Ok(bytes),
                Err(unreadable) => unreadable,
            };
            if attempt == ATTEMPTS {
                return Err(Error::io(&self.path, "read", unreadable.what));
            }
            if !unreadable.is_token_expired {
                let error = unreadable.what;
                warn!(path = %self.path, offset, len, error, attempt, "no replica could be read; retrying");
            }
            if attempt > 1 {
                self.shared.env.clock.sleep(PAUSE * (1 << attempt)).await;
            }
            attempt += 1;
            match self.locate_again().await {
                Ok(again) => located = again,
                Err(error @ Error::NotFound { .. }) => return Err(error),
                // The old locations may still be right.
                Err(error) => warn!(path = %self.path, %error, "cannot locate the blocks of a file again"),
            }
        }
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
    /// reads, the next replica is also tried if the current reads take long.
    async fn read_block(
        &self,
        block: &Replicated,
        at: u64,
        len: usize,
    ) -> std::result::Result<Bytes, Unreadable> {
        let clock = &self.shared.env.clock;
        let mut nodes = self.in_order(block).into_iter();
        let mut unreadable = Unreadable { what: "the block has no replica".into(), is_token_expired: false };
        let mut running: FuturesUnordered<BoxFuture<'_, _>> = FuturesUnordered::new();
        running.extend(nodes.next().map(|node| self.read_replica(node, block, at, len)));
        loop {
            let hedge = self.shared.settings.hedge_after.filter(|_| nodes.len() > 0);
            let (node, fault) = tokio::select! {
                biased;
                read = running.next() => match read {
                    Some(Ok(bytes)) => return Ok(bytes),
                    Some(Err(fault)) => fault,
                    None => return Err(unreadable),
                },
                () = clock.sleep(hedge.unwrap_or(Duration::MAX)), if hedge.is_some() => {
                    running.extend(nodes.next().map(|node| self.read_replica(node, block, at, len)));
                    continue;
                }
            };
            unreadable = self.judge(node, block, fault);
            if running.is_empty() {
                running.extend(nodes.next().map(|node| self.read_replica(node, block, at, len)));
            }
        }
    }

    /// The nodes of a block. Those that failed recently are at the end.
    fn in_order<'b>(&self, block: &'b Replicated) -> Vec<&'b Node> {
        let now = self.shared.env.clock.monotonic();
        let mut nodes: Vec<&Node> = block.nodes.iter().collect();
        nodes.sort_by_key(|node| self.shared.suspects.has(node, now));
        nodes
    }

    fn read_replica<'b>(
        &'b self,
        node: &'b Node,
        block: &'b Replicated,
        at: u64,
        len: usize,
    ) -> BoxFuture<'b, std::result::Result<Bytes, (&'b Node, ReplicaFault)>> {
        let shared = &self.shared;
        let context = ReadContext {
            env: &shared.env,
            idle: &shared.idle,
            client_name: &shared.client_name,
            by_hostname: shared.settings.by_hostname,
        };
        let limit = shared.settings.read_timeout;
        Box::pin(
            async move { context.read(node, block, (at, len), limit).await.map_err(|fault| (node, fault)) },
        )
    }

    /// After a fault, marks the node as a suspect or reports its replica as corrupt, if the kind of
    /// fault requires it. Returns why the block could not be read.
    fn judge(&self, node: &Node, block: &Replicated, fault: ReplicaFault) -> Unreadable {
        let is_token_expired = matches!(fault, ReplicaFault::Token);
        let what = match fault {
            ReplicaFault::Node(what) => {
                self.shared.suspects.add(node, self.shared.env.clock.monotonic());
                what
            }
            ReplicaFault::Corrupt(what) => {
                self.report_corrupt(node, block);
                what
            }
            ReplicaFault::Token => "the access token has expired".to_owned(),
            ReplicaFault::Refused(what) => what,
        };
        let block_id = block.block.block_id;
        if !is_token_expired {
            warn!(path = %self.path, block_id, %node, what, "cannot read a replica");
        }
        Unreadable { what: format!("block {block_id} at {node}: {what}"), is_token_expired }
    }

    /// Reports a corrupt replica, so that the NameNode replaces it.
    fn report_corrupt(&self, node: &Node, block: &Replicated) {
        let bad = LocatedBlock {
            b: block.block.clone(),
            offset: block.offset,
            locs: vec![node.info.clone()],
            corrupt: true,
            block_token: block.token.clone(),
            ..LocatedBlock::default()
        };
        let (shared, path) = (self.shared.clone(), self.path.clone());
        self.shared.env.spawn(base::env::TaskClass::Background, async move {
            let request = BadBlocksRequest { blocks: vec![bad] };
            let reported = shared.namenode.call("reportBadBlocks", &request).await;
            if let Err(failure) = reported.map(|Empty {}| ()) {
                debug!(%path, error = failure.message(), "cannot report a corrupt replica");
            }
        });
    }
}

impl fs::FileReader for HdfsReader {
    fn path(&self) -> &FilePath {
        &self.path
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>> {
        Box::pin(async move {
            let end = offset.saturating_add(len as u64);
            if end > self.len {
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
}
