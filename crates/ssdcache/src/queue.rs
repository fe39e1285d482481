//! The blocks that wait to be written, until the writer reports them as written or lost.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::{BlockId, chunk};

/// A bounded queue of blocks with one consumer.
pub(crate) struct Queue {
    bytes_max: usize,
    state: Mutex<State>,
    arrived: Notify,
    left: Notify,
}

#[derive(Default)]
struct State {
    blocks: VecDeque<(BlockId, Bytes)>,
    /// The blocks above, and those that the consumer took and has not finished.
    unfinished: HashSet<BlockId>,
    /// Bytes of the unfinished blocks in their chunks.
    bytes: usize,
    is_closed: bool,
}

/// What the consumer found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Block(BlockId, Bytes),
    /// There is no block now.
    Nothing,
    /// There will be no more blocks.
    End,
}

impl Queue {
    pub(crate) fn new(bytes_max: usize) -> Queue {
        Queue { bytes_max, state: Mutex::default(), arrived: Notify::new(), left: Notify::new() }
    }

    /// Adds a copy of a block: its bytes may be part of a much longer read. Returns `false` if the
    /// queue is full or closed. A block that waits already is not added again.
    pub(crate) fn push(&self, id: BlockId, block: &[u8]) -> bool {
        if !self.has_room(&self.state(), block.len()) {
            return false;
        }
        // Without the lock.
        let copy = Bytes::copy_from_slice(block);
        let mut state = self.state();
        if !self.has_room(&state, copy.len()) {
            return false;
        }
        if state.unfinished.insert(id) {
            state.bytes += chunk::len_in_chunk(copy.len());
            state.blocks.push_back((id, copy));
        }
        drop(state);
        self.arrived.notify_one();
        true
    }

    /// Waits until a block of this length would fit. Returns `false` if the queue is closed.
    pub(crate) async fn wait_for_room(&self, len: usize) -> bool {
        loop {
            let left = self.left.notified();
            {
                let state = self.state();
                if state.is_closed || self.has_room(&state, len) {
                    return !state.is_closed;
                }
            }
            left.await;
        }
    }

    pub(crate) fn take(&self) -> Taken {
        let mut state = self.state();
        match state.blocks.pop_front() {
            Some((id, block)) => Taken::Block(id, block),
            None if state.is_closed => Taken::End,
            None => Taken::Nothing,
        }
    }

    /// Removes blocks that the consumer took: they are written or lost.
    pub(crate) fn finish(&self, blocks: &[(BlockId, Bytes)]) {
        let mut state = self.state();
        for (id, block) in blocks {
            state.unfinished.remove(id);
            state.bytes -= chunk::len_in_chunk(block.len());
        }
        drop(state);
        self.left.notify_waiters();
    }

    /// Whether the block waits to be written.
    pub(crate) fn contains(&self, id: BlockId) -> bool {
        self.state().unfinished.contains(&id)
    }

    /// Waits until [`take`](Queue::take) may return something else than [`Taken::Nothing`].
    pub(crate) async fn wait(&self) {
        self.arrived.notified().await;
    }

    /// Accepts no more blocks.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.arrived.notify_one();
        self.left.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Bytes of the waiting blocks in their chunks.
    pub(crate) fn bytes(&self) -> usize {
        self.state().bytes
    }

    fn has_room(&self, state: &State, len: usize) -> bool {
        !state.is_closed && state.bytes + chunk::len_in_chunk(len) <= self.bytes_max
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The count of bytes agrees with the blocks whenever the lock is released.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: BlockId = BlockId { file: 1, offset: 2 };
    const OTHER: BlockId = BlockId { file: 1, offset: 3 };

    #[tokio::test]
    async fn a_full_queue_rejects_blocks_until_some_are_finished() {
        let queue = Queue::new(chunk::len_in_chunk(6) + 1);
        let six = Bytes::from_static(b"sixsix");
        assert!(queue.push(ID, &six) && !queue.push(OTHER, &six));
        let mut room = std::pin::pin!(queue.wait_for_room(6));
        assert_eq!(queue.take(), Taken::Block(ID, six.clone()));
        assert_eq!(queue.take(), Taken::Nothing);
        tokio::select! {
            biased;
            _ = &mut room => panic!("the queue is full"),
            () = std::future::ready(()) => {}
        }
        queue.finish(&[(ID, six.clone())]);
        assert_eq!(queue.bytes(), 0);
        assert!(room.await && queue.push(ID, &six));
        queue.close();
        assert!(!queue.push(OTHER, b"") && !queue.wait_for_room(0).await);
        assert_eq!((queue.take(), queue.take()), (Taken::Block(ID, six), Taken::End));
        queue.wait().await;
    }

    #[test]
    fn a_block_waits_once() {
        let queue = Queue::new(1000);
        assert!(queue.push(ID, b"block") && queue.push(ID, b"block") && queue.contains(ID));
        let Taken::Block(id, block) = queue.take() else { panic!("a block") };
        assert!(queue.take() == Taken::Nothing && queue.contains(ID));
        assert!(queue.push(ID, b"block") && queue.take() == Taken::Nothing);
        queue.finish(&[(id, block)]);
        assert!(!queue.contains(ID) && queue.bytes() == 0);
    }
}
