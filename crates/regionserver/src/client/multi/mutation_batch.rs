//! A batch of mutations of one region, submitted in chunks.

use std::time::Duration;

use cell::mutation::Mutation;
use engine::Region;
use engine::region::PendingBatch;

use super::super::call_timer::{CallTimer, MutationKinds};
use super::failed_entry;
use super::parts::RegionAnswer;
use crate::errors::java_exception;
use crate::server::RegionServer;
use crate::users::ClientIdentity;
use crate::write_pause::WritePause;

/// Number of cells after which a chunk of a batch of mutations ends. The chunk is submitted to the
/// region, which takes about 1 ms, and the task yields.
const CELLS_PER_CHUNK: usize = 1000;
/// Maximum number of bytes of mutations in a batch: about as many as HBase's clients buffer. The
/// number of mutations is limited too.
const BATCH_BYTES_MAX: usize = 2 << 20;

/// Puts and deletes of a region that are applied together. They are submitted in chunks while the
/// request is decoded, because decoded mutations need several times the memory of the request. At
/// the end, the call waits for all chunks.
#[derive(Default)]
pub(super) struct MutationBatch {
    // The mutations that are not submitted yet.
    chunk: BatchChunk,
    // The submitted chunks, each with the indexes of its mutations in the response.
    submitted: Vec<(Vec<u32>, PendingBatch)>,
    submitted_bytes: usize,
    // Number of all mutations, submitted or not.
    len: usize,
    kinds: MutationKinds,
    // When the first chunk was submitted.
    begun: Option<Duration>,
}

#[derive(Default)]
struct BatchChunk {
    indexes: Vec<u32>,
    mutations: Vec<Mutation>,
    cells: usize,
    bytes: usize,
}

impl MutationBatch {
    /// Adds the mutation with this index in the response.
    pub(super) fn add(&mut self, index: u32, mutation: Mutation) {
        self.len += 1;
        self.chunk.bytes += mutation.cells_len();
        self.chunk.cells += mutation.cells.len().max(1);
        self.chunk.indexes.push(index);
        self.chunk.mutations.push(mutation);
    }

    /// Whether the batch has no mutations, neither collected nor submitted ones.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn is_full(&self, mutations_max: usize) -> bool {
        self.len >= mutations_max || self.submitted_bytes + self.chunk.bytes >= BATCH_BYTES_MAX
    }

    pub(super) fn is_chunk_full(&self) -> bool {
        self.chunk.cells >= CELLS_PER_CHUNK
    }

    /// The error with which the region refused the only submitted chunk.
    pub(super) fn refusal(&self) -> Option<&engine::Error> {
        match &self.submitted[..] {
            [(_, pending)] => pending.refusal(),
            _ => None,
        }
    }

    /// Whether mutations are collected that are not submitted.
    pub(super) fn has_chunk(&self) -> bool {
        !self.chunk.mutations.is_empty()
    }

    /// Submits the collected mutations to the region, which adds them to the memstore and the log's
    /// queue. [`finish`](Self::finish) waits until they are durable and visible.
    pub(super) async fn submit_chunk(
        &mut self,
        server: &RegionServer,
        region: &Region,
        pause: &mut WritePause,
    ) {
        let BatchChunk { indexes, mutations, bytes, .. } = std::mem::take(&mut self.chunk);
        debug_assert!(!mutations.is_empty(), "a chunk has mutations");
        self.begun.get_or_insert_with(|| server.env().clock.monotonic());
        self.kinds |= MutationKinds::in_batch(&mutations);
        pause.before(server, region, bytes).await;
        let pending = region.begin_batch(mutations).await;
        self.submitted_bytes += bytes;
        self.submitted.push((indexes, pending));
    }

    /// Waits until all submitted mutations are durable and visible, and adds an entry for each.
    pub(super) async fn finish(
        self,
        server: &RegionServer,
        region: &Region,
        client: Option<&ClientIdentity>,
        answer: &mut RegionAnswer,
    ) {
        debug_assert!(!self.has_chunk(), "all mutations are submitted before the wait");
        let MutationBatch { submitted, kinds, begun: Some(begun), .. } = self else { return };
        let mut outcomes = Vec::with_capacity(submitted.len());
        for (indexes, pending) in submitted {
            outcomes.push((indexes, region.end_batch(pending).await));
        }
        CallTimer::since(begun, server, region, client).end_batch(kinds);
        for (indexes, outcomes) in outcomes {
            debug_assert_eq!(outcomes.len(), indexes.len(), "each mutation of a batch has an outcome");
            for (index, outcome) in indexes.into_iter().zip(outcomes) {
                match outcome {
                    Ok(()) => answer.push_done(index),
                    Err(error) => answer.push(&failed_entry(index, &java_exception(&error))),
                }
            }
        }
    }
}
