//! A file that is being written: its lease, its blocks, and what happens when a block fails.

mod attempts;
mod late;
mod recovery;

use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, TaskClass};
use bytes::{Bytes, BytesMut};
use fs::{AccessPattern, Error, FilePath, Result, SyncLevel};
use tokio::sync::Semaphore;
use tracing::{debug, info, warn};

use self::attempts::Attempts;
use crate::block::{AckLimits, BlockFault, BlockWriter, Shape};
use crate::corrupt::CorruptReplicas;
use crate::failure::Failure;
use crate::generated::{
    AbandonBlockRequest, AddBlockRequest, AddBlockResponse, BoolResponse, CompleteRequest, CreateRequest,
    CreateResponse, Empty, ErasureCodingPolicyResponse, ExtendedBlock, FsPermission, FsyncRequest,
    LocatedBlock, PathRequest, RecoverLeaseRequest,
};
use crate::hosts::LocalAddresses;
use crate::idle::IdleConnections;
use crate::link::{Node, Stage, Target};
use crate::namenode::{NameNode, Patience};
use crate::options::{Limits, Settings};
use crate::packet::PACKET_DATA_MAX;
use crate::policy::{self, Policies};
use crate::read_slots::ReadSlots;
use crate::suspects::Suspects;

const CREATE: u32 = 1;
/// The file is never erasure-coded, even in a directory whose files are, because hflush does not
/// work on erasure-coded files.
const SHOULD_REPLICATE: u32 = 0x80;
/// The mode of a new file before the umask.
const FILE_MODE: u32 = 0o666;
/// Appended bytes that are sent without a sync.
const BUFFER_BYTES: usize = 256 << 10;
/// Appends of at least this many bytes are sent without a copy in the buffer.
const UNBUFFERED_BYTES: usize = PACKET_DATA_MAX;
/// Maximum number of bytes that are sent before acknowledgements are read.
const SEND_BYTES: usize = 1 << 20;
/// Packets that may be unacknowledged when no sync is required.
const WINDOW_PACKETS: usize = 64;
/// A block is created on fewer DataNodes only if no others respond.
const REPLICAS_MIN: usize = 2;
/// How long a DataNode that failed is not used for a block that has [`REPLICAS_MIN`] others. Less
/// than the age at which a log that lacks replicas is replaced.
const FRESH_FAILURE: Duration = Duration::from_secs(5);
/// Pauses between two polls of a condition: the first, and the longest.
const POLL: Duration = Duration::from_millis(5);
const POLL_MAX: Duration = Duration::from_millis(400);
/// How long the NameNode may take to replicate the previous block, or to complete a file.
const COMPLETION: Duration = Duration::from_secs(60);
/// Time limit of the query whether the lease is still held, which delays the report of a failure.
const LEASE_CHECK: Duration = Duration::from_millis(200);
const RECOVERY_POLL: Duration = Duration::from_millis(100);
const RECOVERY_REPORT: Duration = Duration::from_secs(30);

/// The path by which HDFS finds a file independently of its name.
pub(crate) fn inode_path(file_id: u64) -> String {
    format!("/.reserved/.inodes/{file_id}")
}

/// What all files of a file system share.
pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) namenode: NameNode,
    pub(crate) settings: Settings,
    pub(crate) limits: Limits,
    pub(crate) suspects: Suspects,
    pub(crate) idle: IdleConnections,
    pub(crate) read_slots: ReadSlots,
    /// A permit for each hedge that runs.
    pub(crate) hedges: Semaphore,
    pub(crate) corrupt: CorruptReplicas,
    pub(crate) local: LocalAddresses,
    pub(crate) policies: Policies,
    /// Client name for lease recovery.
    pub(crate) client_name: String,
}

impl Shared {
    /// The absolute path in HDFS.
    pub(crate) fn full(&self, path: &FilePath) -> String {
        let full = match path.as_str() {
            "" => self.settings.root.clone(),
            below => format!("{}/{below}", self.settings.root),
        };
        if full.is_empty() { "/".to_owned() } else { full }
    }

    /// The error of an operation on a path whose contents are encrypted by clients.
    pub(crate) fn encrypted(&self, path: &FilePath, operation: &'static str) -> Error {
        let message = format!(
            "{} is in an encryption zone of HDFS, which is not supported; use a directory outside of all zones",
            self.full(path)
        );
        Error::io(path, operation, message)
    }

    /// Recovers the lease of a file, and returns when the file is closed.
    pub(crate) async fn recover_lease(&self, path: &FilePath) -> Result<()> {
        self.recover_lease_of(self.full(path), path).await
    }

    /// Recovers the lease of the file that HDFS calls `src`; errors contain `path`.
    async fn recover_lease_of(&self, src: String, path: &FilePath) -> Result<()> {
        let request = RecoverLeaseRequest { src, client_name: self.client_name.clone() };
        let clock = &self.env.clock;
        let began = clock.monotonic();
        let mut reported = Duration::ZERO;
        loop {
            let response: std::result::Result<BoolResponse, Failure> =
                self.namenode.call("recoverLease", &request).await;
            match response {
                Ok(BoolResponse { result: true }) => return Ok(()),
                Ok(BoolResponse { result: false }) => {}
                // An earlier attempt is still running.
                Err(failure) if failure.is("RecoveryInProgressException") => {}
                // The DataNodes have not reported all replicas of a block before the last one.
                Err(failure) if failure.is("AlreadyBeingCreatedException") => {}
                Err(failure) => return Err(failure.at(path, "recover lease")),
            }
            let waited = clock.monotonic().saturating_sub(began);
            if waited >= self.limits.recovery {
                let message = format!("the file is still open after {} s", waited.as_secs());
                return Err(Error::io(path, "recover lease", message));
            }
            if waited >= reported + RECOVERY_REPORT {
                reported = waited;
                warn!(%path, waited_s = waited.as_secs(), "lease recovery takes long; waiting");
            }
            clock.sleep(RECOVERY_POLL).await;
        }
    }
}

enum State {
    Open,
    /// An operation runs, or was cancelled: what it sent is unknown.
    Interrupted,
    Failed(Error),
    Closed,
}

/// A file that is being written, by one writer.
pub(crate) struct OpenFile {
    shared: Arc<Shared>,
    path: FilePath,
    access: AccessPattern,
    /// The holder of the lease. Each file has its own, so that the recovery of one file does not
    /// affect the others.
    client_name: String,
    file_id: u64,
    /// Whether a DataNode on this machine may keep its replica in memory at first, because the
    /// file's policy is LAZY_PERSIST. Never so for logs, which alone have the newest writes.
    is_lazy: bool,
    block: Option<BlockWriter>,
    /// Whether the NameNode knows that the block has bytes. Only so for logs.
    is_confirmed: bool,
    /// The last block that was ended.
    ended: Option<ExtendedBlock>,
    /// Appended bytes that are not sent yet.
    pending: BytesMut,
    state: State,
}

impl OpenFile {
    /// Creates a new file. A log has its first block when this returns.
    pub(crate) async fn create(
        shared: Arc<Shared>,
        path: FilePath,
        access: AccessPattern,
    ) -> Result<OpenFile> {
        let client_name = format!("{}_{:016x}", shared.client_name, shared.env.random.next_u64());
        if access == AccessPattern::Log {
            refuse_erasure_coding(&shared, &path).await?;
        }
        let (replication, block_size) = match access {
            AccessPattern::Log => (shared.settings.log_replication, shared.settings.log_block_bytes),
            AccessPattern::Data => (shared.settings.replication, shared.settings.block_bytes),
        };
        let request = CreateRequest {
            src: shared.full(&path),
            masked: FsPermission { perm: FILE_MODE & !shared.settings.umask },
            unmasked: Some(FsPermission { perm: FILE_MODE }),
            client_name: client_name.clone(),
            create_flag: CREATE | SHOULD_REPLICATE,
            create_parent: false,
            replication,
            block_size,
        };
        let created = shared.namenode.call("create", &request).await;
        let created: CreateResponse = created.map_err(|failure| match failure.means_encrypted() {
            true => shared.encrypted(&path, "create"),
            false => failure.at(&path, "create"),
        })?;
        let status = created.fs.unwrap_or_default();
        let mut file = OpenFile {
            path,
            access,
            client_name,
            file_id: status.file_id.unwrap_or_default(),
            is_lazy: access == AccessPattern::Data && policy::is_lazy(status.storage_policy()),
            block: None,
            is_confirmed: false,
            ended: None,
            pending: BytesMut::new(),
            state: State::Open,
            shared,
        };
        if status.file_encryption_info.is_some() {
            let error = file.shared.encrypted(&file.path, "create");
            return Err(file.fail(error));
        }
        if access == AccessPattern::Log
            && let Err(error) = file.next_block().await
        {
            return Err(file.fail(error));
        }
        Ok(file)
    }

    pub(crate) fn client_name(&self) -> &str {
        &self.client_name
    }

    /// Whether the file needs its lease.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::Interrupted)
    }

    /// Appends bytes, which may be sent later.
    pub(crate) async fn append(&mut self, bytes: Bytes) -> Result<()> {
        self.begin("append")?;
        let outcome = self.add(bytes).await;
        self.end(outcome)
    }

    /// Appends bytes, and waits until all DataNodes have all bytes with this guarantee.
    pub(crate) async fn append_and_sync(&mut self, bytes: Bytes, level: SyncLevel) -> Result<()> {
        self.begin("append")?;
        let outcome = match self.pending.is_empty() {
            true => self.send(bytes, Some(level)).await,
            false => {
                self.pending.extend_from_slice(&bytes);
                self.send_pending(Some(level)).await
            }
        };
        self.end(outcome)
    }

    /// Sends all appended bytes, and waits until all DataNodes have them with this guarantee.
    pub(crate) async fn sync(&mut self, level: SyncLevel) -> Result<()> {
        self.begin("sync")?;
        let outcome = self.send_pending(Some(level)).await;
        self.end(outcome)
    }

    /// Sends all appended bytes, and closes the file.
    pub(crate) async fn close(&mut self) -> Result<()> {
        self.begin("close")?;
        let outcome = self.finish().await;
        match outcome {
            Ok(()) => {
                self.state = State::Closed;
                Ok(())
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Closes a file whose writer was dropped. If it has an operation that was cancelled, its lease
    /// is recovered instead.
    pub(crate) async fn abandon(&mut self) {
        let outcome = match self.state {
            State::Open => self.close().await,
            State::Interrupted => {
                Err(self.fail(Error::io(&self.path, "close", "an operation was cancelled")))
            }
            State::Failed(_) | State::Closed => Ok(()),
        };
        if let Err(error) = outcome {
            warn!(path = %self.path, %error, "cannot close a file that was dropped");
        }
    }

    /// Sends a heartbeat to the DataNodes of an idle file. A failure is permanent, as for a sync.
    pub(crate) async fn beat(&mut self) {
        if self.block.is_none() || self.begin("heartbeat").is_err() {
            return;
        }
        let limits = self.ack_limits();
        let outcome = match &mut self.block {
            Some(block) => block.beat(limits).await,
            None => Ok(()),
        };
        let outcome = self.settle("heartbeat", outcome).await;
        // The next operation returns the error.
        let _ = self.end(outcome);
    }

    fn begin(&mut self, operation: &'static str) -> Result<()> {
        match &self.state {
            State::Open => {
                self.state = State::Interrupted;
                Ok(())
            }
            State::Failed(error) => Err(error.clone()),
            State::Interrupted => Err(Error::io(&self.path, operation, "an earlier operation was cancelled")),
            State::Closed => Err(Error::io(&self.path, operation, "the file is closed")),
        }
    }

    fn end(&mut self, outcome: Result<()>) -> Result<()> {
        match outcome {
            Ok(()) => {
                self.state = State::Open;
                Ok(())
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Stops the file: later operations fail with the same error. Its lease is recovered.
    fn fail(&mut self, error: Error) -> Error {
        self.state = State::Failed(error.clone());
        // Closes the connections, so that the DataNodes accept the recovery without waiting.
        self.block = None;
        self.pending = BytesMut::new();
        if !fs::shared::is_taken_over(&error) {
            recover_later(&self.shared, self.file_id, &self.path);
        }
        error
    }

    fn ack_limits(&self) -> AckLimits {
        let limits = &self.shared.limits;
        match self.access {
            AccessPattern::Data => AckLimits { first: limits.data_ack, laggard: None },
            AccessPattern::Log => {
                let tolerates = self.shared.suspects.tolerates_slowness(self.shared.env.clock.monotonic());
                let (first, laggard) = (limits.log_ack, (!tolerates).then_some(limits.log_laggard));
                AckLimits { first: if tolerates { limits.data_ack } else { first }, laggard }
            }
        }
    }

    fn block_bytes(&self) -> u64 {
        match self.access {
            AccessPattern::Log => self.shared.settings.log_block_bytes,
            AccessPattern::Data => self.shared.settings.block_bytes,
        }
    }

    async fn add(&mut self, bytes: Bytes) -> Result<()> {
        if bytes.len() >= UNBUFFERED_BYTES {
            self.send_pending(None).await?;
            return self.send(bytes, None).await;
        }
        self.pending.extend_from_slice(&bytes);
        match self.pending.len() >= BUFFER_BYTES {
            true => self.send_pending(None).await,
            false => Ok(()),
        }
    }

    async fn send_pending(&mut self, level: Option<SyncLevel>) -> Result<()> {
        let pending = self.pending.split().freeze();
        self.send(pending, level).await
    }

    /// Sends `data`. With a level, waits until all bytes of the file have it.
    async fn send(&mut self, mut data: Bytes, level: Option<SyncLevel>) -> Result<()> {
        let limits = self.ack_limits();
        while !data.is_empty() {
            let room = self.block.as_ref().map_or(0, |block| self.block_bytes().saturating_sub(block.len()));
            if room == 0 {
                self.next_block().await.map_err(|error| self.without_retry(error))?;
                continue;
            }
            let fitting = data.len().min(SEND_BYTES).min(usize::try_from(room).unwrap_or(usize::MAX));
            if fitting == data.len() && level.is_some() {
                break;
            }
            let part = data.split_to(fitting);
            let block = self.block.as_mut().expect("a block with room");
            let written = block.write(part, WINDOW_PACKETS, limits).await;
            self.settle("append", written).await?;
        }
        if let (Some(level), Some(block)) = (level, &mut self.block) {
            let synced = block.write_and_sync(data, level == SyncLevel::Disk, limits).await;
            self.settle("sync", synced).await?;
            self.confirm_block().await?;
        }
        Ok(())
    }

    /// Reports a log's block to the NameNode when its first bytes are acknowledged, before they
    /// count as durable. Later commits make no call.
    ///
    /// Without it, two sequences of events would lose acknowledged bytes:
    ///
    /// * This process pauses before it creates the replicas. A fence finds none and closes the
    ///   file, and then the DataNodes accept the writes of this process. The call fails.
    /// * The NameNode restarts. Until the DataNodes report their replicas, a recovery of the lease
    ///   removes a last block that has no known bytes.
    async fn confirm_block(&mut self) -> Result<()> {
        let len = self.block.as_ref().map_or(0, BlockWriter::len);
        if self.access != AccessPattern::Log || self.is_confirmed || len == 0 {
            return Ok(());
        }
        let request = self.fsync_request(i64::try_from(len).unwrap_or(i64::MAX));
        let confirmed = self.shared.namenode.call("fsync", &request).await;
        let Empty {} = confirmed.map_err(|failure| self.lease_error("sync", &failure))?;
        self.is_confirmed = true;
        Ok(())
    }

    fn fsync_request(&self, last_block_length: i64) -> FsyncRequest {
        FsyncRequest {
            src: self.shared.full(&self.path),
            client: self.client_name.clone(),
            last_block_length: Some(last_block_length),
            file_id: Some(self.file_id),
        }
    }

    async fn finish(&mut self) -> Result<()> {
        self.send_pending(None).await?;
        self.end_block(false).await?;
        let request = CompleteRequest {
            src: self.shared.full(&self.path),
            client_name: self.client_name.clone(),
            last: self.ended.clone(),
            file_id: Some(self.file_id),
        };
        let clock = self.shared.env.clock.clone();
        let began = clock.monotonic();
        let mut pause = POLL;
        loop {
            let completed = self.shared.namenode.call("complete", &request).await;
            let completed: BoolResponse = completed.map_err(|failure| self.lease_error("close", &failure))?;
            if completed.result {
                return Ok(());
            }
            if clock.monotonic().saturating_sub(began) >= COMPLETION {
                let message = "the DataNodes have not reported the last block";
                return Err(Error::io(&self.path, "close", message));
            }
            clock.sleep(pause).await;
            pause = (pause * 2).min(POLL_MAX);
        }
    }

    /// Ends the current block, if there is one.
    async fn end_block(&mut self, to_disk: bool) -> Result<()> {
        // A sync of a whole block may take long.
        let limits = AckLimits { first: self.shared.limits.data_ack, laggard: None };
        if self.access == AccessPattern::Data
            && let Some(block) = &mut self.block
        {
            // Once the end is sent, recovery cannot add bytes.
            let acknowledged = block.write_and_sync(Bytes::new(), to_disk, limits).await;
            self.settle("end block", acknowledged).await?;
        }
        let Some(block) = &mut self.block else { return Ok(()) };
        let ended = block.end(to_disk, limits).await;
        self.settle("end block", ended).await?;
        self.ended = self.block.take().map(|block| block.block());
        Ok(())
    }

    /// Ends the current block and begins the next one.
    async fn next_block(&mut self) -> Result<()> {
        // A later sync covers only the block that is then open.
        self.end_block(true).await?;
        let clock = self.shared.env.clock.clone();
        let mut attempts = Attempts::begin(self.access, &self.shared.limits, clock.monotonic());
        // The DataNodes that failed during this setup.
        let mut failed = Vec::new();
        let mut shape = match self.access {
            AccessPattern::Log => Shape::FanOut,
            AccessPattern::Data => Shape::Pipeline,
        };
        loop {
            let located = self.place_block(&mut failed).await?;
            let fault = match self.open_block(&located, shape, attempts.limit()).await {
                Ok(block) => {
                    self.report_replicas(&block);
                    self.block = Some(block);
                    self.is_confirmed = false;
                    return Ok(());
                }
                Err(fault) => fault,
            };
            info!(path = %self.path, reason = %fault.what, "cannot set up a block; retrying");
            self.suspect(&fault);
            let nodes = located.locs.len();
            let faulty = match (shape, fault.nodes.len()) {
                // This machine can connect to none of them now.
                _ if fault.is_local => nodes,
                // One node that is not known keeps the others from responding. One connection to
                // each node shows which one.
                (Shape::Pipeline, 0) => 1,
                (_, faulty) => faulty,
            };
            if fault.nodes.is_empty() && !fault.is_local {
                shape = Shape::FanOut;
            }
            // A log that was fenced ends here.
            self.abandon_block(&located).await?;
            let Some(pause) = attempts.record_failure(faulty, nodes, clock.monotonic()) else {
                let (count, what) = (attempts.failed(), fault.what);
                let message = format!("{count} attempts failed, the last one because of {what}");
                return Err(Error::io(&self.path, "set up a block", message));
            };
            failed.extend(fault.nodes);
            if !pause.is_zero() {
                clock.sleep(pause).await;
            }
        }
    }

    async fn open_block(
        &mut self,
        located: &LocatedBlock,
        shape: Shape,
        limit: Duration,
    ) -> std::result::Result<BlockWriter, BlockFault> {
        let target = Target {
            block: &located.b,
            token: &located.block_token,
            client_name: &self.client_name,
            block_bytes: self.block_bytes(),
            is_lazy: self.is_lazy,
            by_hostname: self.shared.settings.by_hostname,
            stage: Stage::Create,
        };
        BlockWriter::open(&self.shared.env, located, &target, (self.access, shape), limit).await
    }

    /// The replicas that the current block lacks since its beginning.
    pub(crate) fn missing_replicas(&self) -> usize {
        self.block.as_ref().map_or(0, |block| self.wanted_replicas().saturating_sub(block.replicas()))
    }

    fn wanted_replicas(&self) -> usize {
        let wanted = match self.access {
            AccessPattern::Log => self.shared.settings.log_replication,
            AccessPattern::Data => self.shared.settings.replication,
        };
        wanted as usize
    }

    fn report_replicas(&self, block: &BlockWriter) {
        let wanted = self.wanted_replicas();
        if block.replicas() < wanted {
            warn!(path = %self.path, replicas = block.replicas(), wanted, "a block has too few replicas");
        }
    }

    /// Adds a block. If it gets fewer DataNodes than wanted, uses suspects again, except those that
    /// `failed` during this setup: most suspects were only late once, and HDFS creates missing
    /// replicas only when the file is closed.
    ///
    /// Suspects that failed a moment ago are used only if there is one DataNode without them. The
    /// block is then often that of a log that replaces a failed one, and commits wait for it: the
    /// setup of a DataNode that is still paused would delay them by a second. The caller replaces
    /// the log some seconds later, because it lacks replicas.
    async fn place_block(&mut self, failed: &mut Vec<Node>) -> Result<LocatedBlock> {
        loop {
            let located = self.add_block(failed).await?;
            let (replicas, wanted) = (located.locs.len(), self.wanted_replicas());
            let min_age = if replicas < REPLICAS_MIN.min(wanted) { Duration::ZERO } else { FRESH_FAILURE };
            let now = self.shared.env.clock.monotonic();
            if replicas >= wanted || !self.shared.suspects.forget_oldest(failed, min_age, now) {
                return Ok(located);
            }
            debug!(path = %self.path, replicas, "too few DataNodes for a block; using one that failed earlier");
            self.abandon_block(&located).await?;
        }
    }

    /// The DataNodes that a new block must not use.
    fn excluded(&self, failed: &[Node]) -> Vec<Bytes> {
        let (suspects, now) = (&self.shared.suspects, self.shared.env.clock.monotonic());
        let mut infos = suspects.infos(now);
        infos.extend(failed.iter().filter(|node| !suspects.has(node, now)).map(|node| node.info.clone()));
        infos
    }

    /// Permits more DataNodes, those that `failed` during this setup last. Returns whether there
    /// was one.
    ///
    /// A log permits all that failed at the same time: if they have been restarted, it gets all its
    /// replicas.
    fn permit_more(&self, failed: &mut Vec<Node>) -> bool {
        let (suspects, now) = (&self.shared.suspects, self.shared.env.clock.monotonic());
        if suspects.forget_oldest(failed, Duration::ZERO, now) {
            return true;
        }
        let permitted = match self.access {
            AccessPattern::Log => failed.len(),
            AccessPattern::Data => failed.len().min(1),
        };
        failed.drain(..permitted).for_each(|node| suspects.forget(&node));
        permitted > 0
    }

    async fn add_block(&mut self, failed: &mut Vec<Node>) -> Result<LocatedBlock> {
        let clock = &self.shared.env.clock;
        let began = clock.monotonic();
        let mut pause = POLL;
        loop {
            let request = AddBlockRequest {
                src: self.shared.full(&self.path),
                client_name: self.client_name.clone(),
                previous: self.ended.clone(),
                exclude_nodes: self.excluded(failed),
                file_id: Some(self.file_id),
            };
            let added = self.shared.namenode.call("addBlock", &request).await;
            let failure = match added {
                Ok(AddBlockResponse { block }) => return Ok(block),
                Err(failure) => failure,
            };
            if failure.means_no_datanode() && self.permit_more(failed) {
                continue;
            }
            let waited = clock.monotonic().saturating_sub(began);
            if !failure.is("NotReplicatedYetException") || waited >= COMPLETION {
                return Err(self.lease_error("add block", &failure));
            }
            clock.sleep(pause).await;
            pause = (pause * 2).min(POLL_MAX);
        }
    }

    async fn abandon_block(&mut self, located: &LocatedBlock) -> Result<()> {
        let request = AbandonBlockRequest {
            b: located.b.clone(),
            src: self.shared.full(&self.path),
            holder: self.client_name.clone(),
            file_id: Some(self.file_id),
        };
        let abandoned = self.shared.namenode.call("abandonBlock", &request).await;
        let Empty {} = abandoned.map_err(|failure| self.lease_error("abandon block", &failure))?;
        Ok(())
    }

    fn suspect(&self, fault: &BlockFault) {
        let now = self.shared.env.clock.monotonic();
        for node in &fault.nodes {
            if node.is_in(&fault.late) {
                self.shared.suspects.add_late(node, now);
                late::check_later(&self.shared, node);
            } else {
                self.shared.suspects.add(node, now);
            }
        }
        if fault.is_slow {
            self.shared.suspects.add_slow_failure(now);
        }
    }

    /// The error of a log that has no space for its next block. The caller of a log retries a write
    /// when there is space again, but this file has failed: the retry needs a new one.
    fn without_retry(&self, error: Error) -> Error {
        match (self.access, error) {
            (AccessPattern::Log, error @ Error::NoSpace { .. }) => {
                Error::io(&self.path, "append", error.to_string())
            }
            (_, error) => error,
        }
    }

    /// The error of a call that needs the lease.
    fn lease_error(&self, operation: &'static str, failure: &Failure) -> Error {
        match failure.means_fenced() {
            true => Error::TakenOver { path: self.path.clone() },
            false => failure.at(&self.path, operation),
        }
    }

    /// The error for a block's fault. Records the nodes at fault.
    ///
    /// Lease recovery by another client closes the connections too. Only the NameNode can
    /// distinguish the two cases.
    async fn explain(&mut self, operation: &'static str, fault: BlockFault) -> Error {
        if !fault.is_slow && self.lost_lease().await {
            return Error::TakenOver { path: self.path.clone() };
        }
        self.suspect(&fault);
        Error::io(&self.path, operation, fault.what)
    }

    async fn lost_lease(&mut self) -> bool {
        // No length.
        let request = self.fsync_request(-1);
        let patience = Patience { attempt: LEASE_CHECK, total: LEASE_CHECK };
        let checked = self.shared.namenode.call_within(patience, "fsync", &request).await;
        match checked {
            Ok(Empty {}) => false,
            Err(failure) => failure.means_fenced(),
        }
    }
}

/// Refuses to create a log in a directory whose files are erasure-coded. This client's logs are
/// replicated even there, but such a directory is a mistake: a log that another client creates in
/// it may have no hflush.
async fn refuse_erasure_coding(shared: &Shared, log: &FilePath) -> Result<()> {
    let dir = log.parent();
    let request = PathRequest { src: shared.full(&dir) };
    let found = shared.namenode.call("getErasureCodingPolicy", &request).await;
    let found: ErasureCodingPolicyResponse = match found {
        Ok(found) => found,
        // HDFS 2 has no erasure coding. If the directory is missing, the creation reports it.
        Err(failure) if failure.is("RpcNoSuchMethodException") || failure.means_not_found() => return Ok(()),
        Err(failure) => return Err(failure.at(log, "create")),
    };
    let Some(policy) = found.ec_policy else { return Ok(()) };
    // HDFS sends no names of its own policies.
    let name = policy.name.unwrap_or_else(|| format!("with the id {}", policy.id));
    let src = shared.full(&dir);
    let message = format!(
        "the erasure coding policy {name} applies to its directory, and logs must be replicated; run: hdfs ec \
         -setPolicy -path {src} -replicate"
    );
    Err(Error::io(log, "create", message))
}

/// Recovers the lease of a file in the background. The file is addressed by its id: its path may
/// belong to a newer file by now, whose writer must keep its lease.
fn recover_later(shared: &Arc<Shared>, file_id: u64, path: &FilePath) {
    let (shared, path) = (shared.clone(), path.clone());
    let env = shared.env.clone();
    env.spawn(TaskClass::Service, async move {
        match shared.recover_lease_of(inode_path(file_id), &path).await {
            Ok(()) => info!(%path, "closed a file whose writer failed"),
            Err(Error::NotFound { .. }) => debug!(%path, "a file whose writer failed was removed"),
            Err(error) => warn!(%path, %error, "cannot close a file whose writer failed"),
        }
    });
}
