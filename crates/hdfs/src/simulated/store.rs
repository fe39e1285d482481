//! The replicas of a DataNode, which survive the end of its process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

use super::messages::{DELETED, ReplicaReport};

/// The state of a replica. The order is that of recovery: a replica in an earlier state is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReplicaState {
    Finalized,
    /// It is being written.
    Open,
    /// It was being written when the DataNode ended.
    Waiting,
}

impl ReplicaState {
    pub(super) fn number(self) -> u32 {
        match self {
            ReplicaState::Finalized => 0,
            ReplicaState::Open => 1,
            ReplicaState::Waiting => 2,
        }
    }
}

/// A writer of a replica. It has ended if another one, or a recovery, replaced it.
pub(super) struct WriterTicket {
    pub(super) block_id: u64,
    number: u64,
    /// Completes when the writer is stopped.
    pub(super) stopped: oneshot::Receiver<()>,
}

/// Why an operation on a replica is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// A recovery with the same or a higher id runs.
    RecoveryInProgress,
    /// There is no replica of this block.
    NoReplica(u64),
    Other(String),
}

fn refused<T>(what: impl Into<String>) -> Result<T, Refused> {
    Err(Refused::Other(what.into()))
}

struct Replica {
    stamp: u64,
    bytes: Vec<u8>,
    /// Bytes that this node and all following ones acknowledged.
    acked: usize,
    /// Bytes on disk; `None` if the replica was never synced, so that its name may be lost too.
    synced: Option<usize>,
    state: ReplicaState,
    /// The id of a recovery that has begun.
    recovery_id: Option<u64>,
    writer: u64,
    stop: Option<oneshot::Sender<()>>,
    /// The version of the store at the last change of the state.
    version: u64,
}

impl Replica {
    fn report(&self, block_id: u64) -> ReplicaReport {
        let state = self.state.number();
        ReplicaReport { block_id, stamp: self.stamp, len: self.bytes.len() as u64, state }
    }

    /// Ends the current writer. Its connection is closed.
    fn stop_writer(&mut self) {
        self.stop = None;
        self.writer = 0;
    }
}

#[derive(Default)]
struct State {
    replicas: BTreeMap<u64, Replica>,
    /// Deleted blocks, with the version of their deletion.
    deleted: BTreeMap<u64, u64>,
    last_writer: u64,
    version: u64,
}

/// The replicas of one DataNode.
#[derive(Default)]
pub struct ReplicaStore {
    state: Mutex<State>,
    changed: Arc<Notify>,
}

impl ReplicaStore {
    /// After the loss of power: bytes that were not synced are partly lost. `random` returns random
    /// bits.
    pub fn lose_power(&self, random: &mut dyn FnMut() -> u64) {
        let mut state = self.lock();
        state.replicas.retain(|_, replica| {
            let synced = replica.synced.unwrap_or(0).min(replica.bytes.len());
            let unsynced = (replica.bytes.len() - synced) as u64;
            replica.bytes.truncate(synced + (random() % (unsynced + 1)) as usize);
            replica.synced.is_some() || random().is_multiple_of(2)
        });
        drop(state);
        self.restart();
    }

    /// After a start of the DataNode: replicas that were being written wait for a recovery.
    pub(super) fn restart(&self) {
        let mut state = self.lock();
        state.version += 1;
        let version = state.version;
        for replica in state.replicas.values_mut() {
            replica.stop_writer();
            replica.recovery_id = None;
            replica.version = version;
            if replica.state == ReplicaState::Open {
                replica.state = ReplicaState::Waiting;
            }
        }
    }

    /// The version, and all changes of states after `version`; all replicas for `None`.
    pub(super) fn changes(&self, version: Option<u64>) -> (u64, Vec<ReplicaReport>) {
        let state = self.lock();
        let is_new = |changed: u64| version.is_none_or(|version| changed > version);
        let replicas = state.replicas.iter().filter(|(_, replica)| is_new(replica.version));
        let mut reports: Vec<ReplicaReport> = replicas.map(|(id, replica)| replica.report(*id)).collect();
        if version.is_some() {
            let deleted = state.deleted.iter().filter(|(_, changed)| is_new(**changed));
            reports.extend(deleted.map(|(block_id, _)| ReplicaReport {
                block_id: *block_id,
                stamp: 0,
                len: 0,
                state: DELETED,
            }));
        }
        (state.version, reports)
    }

    /// Notified of each change of a state.
    pub(super) fn changed(&self) -> &Arc<Notify> {
        &self.changed
    }

    /// Creates a replica.
    pub(super) fn create(&self, block_id: u64, stamp: u64) -> Result<WriterTicket, Refused> {
        let mut state = self.lock();
        if state.replicas.contains_key(&block_id) {
            return refused(format!("ReplicaAlreadyExistsException: block {block_id}"));
        }
        let replica = Replica {
            stamp,
            bytes: Vec::new(),
            acked: 0,
            synced: None,
            state: ReplicaState::Open,
            recovery_id: None,
            writer: 0,
            stop: None,
            version: 0,
        };
        state.replicas.insert(block_id, replica);
        Ok(self.new_writer(state, block_id))
    }

    /// Continues a replica with a new generation stamp and a new writer. It is truncated to the
    /// bytes that were acknowledged, which must be at least `acked`; it must have at most `sent`
    /// bytes.
    pub(super) fn resume(
        &self,
        block_id: u64,
        (old, new): (u64, u64),
        (acked, sent): (u64, u64),
    ) -> Result<WriterTicket, Refused> {
        let mut state = self.lock();
        let replica = writable(&mut state, block_id, old, new)?;
        if replica.state != ReplicaState::Open {
            return refused(format!("block {block_id} is not being written"));
        }
        replica.stop_writer();
        if (replica.acked as u64) < acked || replica.bytes.len() as u64 > sent {
            let (known, len) = (replica.acked, replica.bytes.len());
            return refused(format!("{known} bytes of {len} are acknowledged; expected {acked} to {sent}"));
        }
        replica.bytes.truncate(replica.acked);
        replica.synced = replica.synced.map(|synced| synced.min(replica.acked));
        replica.stamp = new;
        Ok(self.new_writer(state, block_id))
    }

    /// Finalizes a replica that has `len` bytes, with a new generation stamp.
    pub(super) fn finalize_at(
        &self,
        block_id: u64,
        (old, new): (u64, u64),
        len: u64,
        syncs: bool,
    ) -> Result<(), Refused> {
        let mut state = self.lock();
        let replica = writable(&mut state, block_id, old, new)?;
        replica.stop_writer();
        if replica.bytes.len() as u64 != len {
            return refused(format!("block {block_id} has {} bytes, not {len}", replica.bytes.len()));
        }
        if syncs {
            replica.synced = Some(replica.bytes.len());
        }
        replica.stamp = new;
        replica.state = ReplicaState::Finalized;
        self.touch(state, block_id);
        Ok(())
    }

    /// Stores bytes, unless the writer was replaced.
    pub(super) fn write(&self, ticket: &WriterTicket, offset: u64, data: &[u8]) -> Result<(), Refused> {
        let mut state = self.lock();
        let replica = of_writer(&mut state, ticket)?;
        let offset = offset as usize;
        if offset > replica.bytes.len() {
            return refused(format!("a gap at {offset} of {} bytes", replica.bytes.len()));
        }
        let known = (replica.bytes.len() - offset).min(data.len());
        if replica.bytes[offset..offset + known] != data[..known] {
            return refused(format!("other bytes at {offset} than before"));
        }
        replica.bytes.extend_from_slice(&data[known..]);
        Ok(())
    }

    /// The number of bytes now, for a later [`mark_synced`](Self::mark_synced).
    pub(super) fn len_of(&self, ticket: &WriterTicket) -> Result<usize, Refused> {
        Ok(of_writer(&mut self.lock(), ticket)?.bytes.len())
    }

    /// Records that the first `len` bytes are on disk.
    pub(super) fn mark_synced(&self, ticket: &WriterTicket, len: usize) -> Result<(), Refused> {
        let mut state = self.lock();
        let replica = of_writer(&mut state, ticket)?;
        replica.synced = Some(replica.synced.unwrap_or(0).max(len));
        Ok(())
    }

    /// Records that all nodes acknowledged the bytes so far; finalizes the replica if these are all
    /// of its bytes.
    pub(super) fn acknowledge(&self, ticket: &WriterTicket, end: u64, is_last: bool) -> Result<(), Refused> {
        let mut state = self.lock();
        let replica = of_writer(&mut state, ticket)?;
        replica.acked = replica.acked.max(end as usize);
        if is_last {
            replica.state = ReplicaState::Finalized;
            replica.stop_writer();
            self.touch(state, ticket.block_id);
        }
        Ok(())
    }

    /// Begins a recovery: stops the writer. Returns the replica, if there is one.
    pub(super) fn begin_recovery(
        &self,
        block_id: u64,
        stamp: u64,
        recovery_id: u64,
    ) -> Result<Option<ReplicaReport>, Refused> {
        let mut state = self.lock();
        let Some(replica) = state.replicas.get_mut(&block_id) else { return Ok(None) };
        replica.stop_writer();
        if replica.stamp < stamp || replica.stamp >= recovery_id {
            return refused(format!("block {block_id} has the stamp {}", replica.stamp));
        }
        if replica.recovery_id.is_some_and(|current| current >= recovery_id) {
            return Err(Refused::RecoveryInProgress);
        }
        replica.recovery_id = Some(recovery_id);
        Ok(Some(replica.report(block_id)))
    }

    /// Ends a recovery: the replica is truncated to `len` bytes and finalized.
    pub(super) fn end_recovery(
        &self,
        block_id: u64,
        recovery_id: u64,
        len: u64,
        syncs: bool,
    ) -> Result<(), Refused> {
        let mut state = self.lock();
        let replica = state.replicas.get_mut(&block_id);
        let Some(replica) = replica.filter(|replica| replica.recovery_id == Some(recovery_id)) else {
            return refused(format!("block {block_id} is not under recovery {recovery_id}"));
        };
        let len = len as usize;
        if replica.bytes.len() < len {
            return refused(format!("block {block_id} has only {} bytes", replica.bytes.len()));
        }
        replica.bytes.truncate(len);
        replica.acked = len;
        replica.synced = if syncs { Some(len) } else { replica.synced.map(|synced| synced.min(len)) };
        replica.stamp = recovery_id;
        replica.state = ReplicaState::Finalized;
        replica.recovery_id = None;
        self.touch(state, block_id);
        Ok(())
    }

    /// Deletes the replicas of these blocks.
    pub(super) fn delete(&self, blocks: &[u64]) {
        let mut state = self.lock();
        state.version += 1;
        let version = state.version;
        for block_id in blocks {
            if state.replicas.remove(block_id).is_some() {
                state.deleted.insert(*block_id, version);
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// The bytes of a replica whose generation stamp is at least `stamp`.
    pub(super) fn read(&self, block_id: u64, stamp: u64) -> Result<Vec<u8>, Refused> {
        let state = self.lock();
        let replica = readable(&state, block_id, stamp)?;
        let visible = match replica.state {
            ReplicaState::Open => replica.acked,
            _ => replica.bytes.len(),
        };
        Ok(replica.bytes[..visible].to_vec())
    }

    /// The number of bytes that readers may see; -1 if the replica waits for a recovery.
    pub(super) fn visible_len(&self, block_id: u64, stamp: u64) -> Result<i64, Refused> {
        let state = self.lock();
        let replica = readable(&state, block_id, stamp)?;
        Ok(match replica.state {
            ReplicaState::Finalized => replica.bytes.len() as i64,
            ReplicaState::Open => replica.acked as i64,
            ReplicaState::Waiting => -1,
        })
    }

    fn new_writer(&self, mut state: MutexGuard<'_, State>, block_id: u64) -> WriterTicket {
        state.last_writer += 1;
        let number = state.last_writer;
        let (stop, stopped) = oneshot::channel();
        let replica = state.replicas.get_mut(&block_id).expect("the replica exists");
        (replica.writer, replica.stop) = (number, Some(stop));
        self.touch(state, block_id);
        WriterTicket { block_id, number, stopped }
    }

    /// Records a change of a replica's state.
    fn touch(&self, mut state: MutexGuard<'_, State>, block_id: u64) {
        state.version += 1;
        let version = state.version;
        if let Some(replica) = state.replicas.get_mut(&block_id) {
            replica.version = version;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A replica whose generation stamp is at least `stamp`.
fn readable(state: &State, block_id: u64, stamp: u64) -> Result<&Replica, Refused> {
    match state.replicas.get(&block_id) {
        Some(replica) if replica.stamp >= stamp => Ok(replica),
        Some(replica) => refused(format!("block {block_id} has the stamp {} and not {stamp}", replica.stamp)),
        None => Err(Refused::NoReplica(block_id)),
    }
}

/// The replica that continues with the stamp `new`; the client knows it with the stamp `old`.
fn writable(state: &mut State, block_id: u64, old: u64, new: u64) -> Result<&mut Replica, Refused> {
    let Some(replica) = state.replicas.get_mut(&block_id) else {
        return refused(format!("ReplicaNotFoundException: block {block_id}"));
    };
    if replica.recovery_id.is_some() {
        return refused(format!("block {block_id} is under recovery"));
    }
    if !(old..new).contains(&replica.stamp) {
        return refused(format!("block {block_id} has the stamp {}, not {old}", replica.stamp));
    }
    Ok(replica)
}

fn of_writer<'a>(state: &'a mut State, ticket: &WriterTicket) -> Result<&'a mut Replica, Refused> {
    let replica = state.replicas.get_mut(&ticket.block_id);
    match replica.filter(|replica| replica.writer == ticket.number) {
        Some(replica) => Ok(replica),
        None => refused(format!("the writer of block {} was stopped", ticket.block_id)),
    }
}
