//! Nonces: ids that clients give their increments and appends, so that a retry is not applied
//! twice.
//!
//! A client that gets no response sends its operation again with the same nonce. The first
//! operation with a nonce holds the claim on it; others wait. Once an edit is published under the
//! nonce, the operation never runs again, and the edit's sequence id states where to read the
//! response. A claim that ends without publishing frees the nonce, and the next waiter runs the
//! operation. Invariants:
//!
//! * A nonce counts as done when its edit is in the log's queue, even if its caller still waits for
//!   the response. A call that is abandoned in between leaves no gap.
//! * Replay registers the nonces of the entries that it reads, so a crash between edit and response
//!   changes nothing. It does not read the entries that precede a region's close. So a nonce is
//!   forgotten if the region is closed and the server then ends, as in HBase.
//!
//! Nonces are stored in generations and dropped one generation at a time: after the grace period,
//! or earlier if there are more than [`DONE_MAX`].
//!
//! Source: HBase `ServerNonceManager`.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// Nonce group and nonce.
pub type Nonce = (u64, u64);

/// The nonce value of an operation without a nonce.
const NO_NONCE: u64 = 0;
/// How long a completed nonce is remembered (`hbase.server.hashNonce.gracePeriod`).
pub const GRACE_PERIOD: Duration = Duration::from_secs(30 * 60);
/// Maximum number of completed nonces, plus or minus one generation: about 100 MiB.
pub const DONE_MAX: usize = 2 << 20;
/// A generation spans one of this many parts of the grace period, or of the maximum number.
const GENERATIONS: usize = 4;

/// The nonces of a server.
pub struct Nonces {
    grace_ms: u64,
    done_max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    // Operations in progress. The claim holds the sender.
    running: HashMap<Nonce, watch::Receiver<()>>,
    // Newest first. One more than `GENERATIONS`, so that they cover the whole period.
    generations: VecDeque<Generation>,
}

struct Generation {
    began_ms: u64,
    // Each with the sequence id of its edit.
    done: HashMap<Nonce, u64>,
}

/// The result of a [claim](Nonces::claim).
pub enum ClaimOutcome {
    /// The caller must run the operation.
    Run(Claim),
    /// The operation already ran; its edit has this sequence id.
    AlreadyDone(u64),
}

/// The right to run the operation of a nonce. Dropping it frees the nonce, unless it is
/// [done](Claim::done).
pub struct Claim {
    // `None` for an operation without a nonce.
    operation: Option<(Arc<Nonces>, Nonce)>,
    // Dropping it wakes the waiters.
    _ended: Option<watch::Sender<()>>,
}

impl Default for Nonces {
    fn default() -> Nonces {
        Nonces::new(GRACE_PERIOD, DONE_MAX)
    }
}

impl Nonces {
    /// Remembers completed nonces for `grace`, and at most about `done_max` of them.
    pub fn new(grace: Duration, done_max: usize) -> Nonces {
        Nonces { grace_ms: grace.as_millis() as u64, done_max, state: Mutex::default() }
    }

    /// Claims `nonce`. Waits while another operation with the same nonce is in progress.
    pub async fn claim(self: &Arc<Nonces>, nonce: Nonce) -> ClaimOutcome {
        if nonce.1 == NO_NONCE {
            return ClaimOutcome::Run(Claim { operation: None, _ended: None });
        }
        loop {
            let mut running = match self.try_claim(nonce) {
                Ok(outcome) => return outcome,
                Err(running) => running,
            };
            // Nothing is ever sent. An error means that the claim was dropped.
            while running.changed().await.is_ok() {}
        }
    }

    fn try_claim(self: &Arc<Nonces>, nonce: Nonce) -> Result<ClaimOutcome, watch::Receiver<()>> {
        let mut state = self.state();
        if let Some(running) = state.running.get(&nonce) {
            return Err(running.clone());
        }
        if let Some(seq_id) = state.generations.iter().find_map(|generation| generation.done.get(&nonce)) {
            return Ok(ClaimOutcome::AlreadyDone(*seq_id));
        }
        let (sender, receiver) = watch::channel(());
        state.running.insert(nonce, receiver);
        Ok(ClaimOutcome::Run(Claim { operation: Some((self.clone(), nonce)), _ended: Some(sender) }))
    }

    /// Registers a nonce found in a log, with an edit made at `written_ms`.
    pub fn replayed(&self, nonce: Nonce, seq_id: u64, written_ms: u64, now_ms: u64) {
        // As in HBase, allow some slack for clock differences.
        let is_old = now_ms > written_ms.saturating_add(self.grace_ms + self.grace_ms / 2);
        if nonce.1 != NO_NONCE && !is_old {
            self.state().record(self, nonce, seq_id, now_ms);
        }
    }

    /// Number of completed nonces that are remembered.
    pub fn len(&self) -> usize {
        self.state().generations.iter().map(|generation| generation.done.len()).sum()
    }

    /// Whether no completed nonce is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of the state is one step, so a panicked holder leaves it consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn record(&mut self, nonces: &Nonces, nonce: Nonce, seq_id: u64, now_ms: u64) {
        let is_full = |newest: &Generation| {
            now_ms >= newest.began_ms.saturating_add(nonces.grace_ms / GENERATIONS as u64)
                || newest.done.len() >= nonces.done_max / GENERATIONS
        };
        if self.generations.front().is_none_or(is_full) {
            self.generations.push_front(Generation { began_ms: now_ms, done: HashMap::new() });
            self.generations.truncate(GENERATIONS + 1);
        }
        // A generation has expired when its successor began a grace period ago.
        while self.generations.len() > 1
            && now_ms >= self.generations[self.generations.len() - 2].began_ms.saturating_add(nonces.grace_ms)
        {
            self.generations.pop_back();
        }
        self.generations[0].done.insert(nonce, seq_id);
    }
}

impl Claim {
    /// Records that the operation was published under `seq_id`. It never runs again.
    pub fn done(self, seq_id: u64, now_ms: u64) {
        if let Some((nonces, nonce)) = &self.operation {
            let mut state = nonces.state();
            debug_assert!(state.running.contains_key(nonce), "a claim is registered while it lives");
            state.record(nonces, *nonce, seq_id, now_ms);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some((nonces, nonce)) = &self.operation {
            nonces.state().running.remove(nonce);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(100);

    fn nonces(done_max: usize) -> Arc<Nonces> {
        Arc::new(Nonces::new(GRACE, done_max))
    }

    async fn first(nonces: &Arc<Nonces>, nonce: u64) -> Claim {
        match nonces.claim((7, nonce)).await {
            ClaimOutcome::Run(claim) => claim,
            ClaimOutcome::AlreadyDone(seq_id) => panic!("{nonce} already ran, sequence id {seq_id}"),
        }
    }

    async fn done(nonces: &Arc<Nonces>, nonce: u64) -> Option<u64> {
        match nonces.claim((7, nonce)).await {
            ClaimOutcome::Run(_) => None,
            ClaimOutcome::AlreadyDone(seq_id) => Some(seq_id),
        }
    }

    #[tokio::test]
    async fn a_completed_operation_does_not_run_again() {
        let nonces = nonces(100);
        first(&nonces, 1).await.done(42, 0);
        assert_eq!(done(&nonces, 1).await, Some(42));
        assert_eq!(done(&nonces, 2).await, None);
        assert!(matches!(nonces.claim((8, 1)).await, ClaimOutcome::Run(_)), "another group's nonce");
    }

    #[tokio::test]
    async fn a_failed_operation_may_be_retried() {
        let nonces = nonces(100);
        drop(first(&nonces, 1).await);
        first(&nonces, 1).await.done(5, 0);
        assert_eq!(done(&nonces, 1).await, Some(5));
    }

    #[tokio::test]
    async fn a_second_claim_waits_for_the_first() {
        let nonces = nonces(100);
        for succeeds in [true, false] {
            let nonce = 1 + u64::from(succeeds);
            let claim = first(&nonces, nonce).await;
            let waiting = done(&nonces, nonce);
            tokio::pin!(waiting);
            tokio::select! {
                biased;
                _ = &mut waiting => panic!("the first one has not ended"),
                () = std::future::ready(()) => {}
            }
            match succeeds {
                true => claim.done(9, 0),
                false => drop(claim),
            }
            assert_eq!(waiting.await, succeeds.then_some(9));
        }
    }

    #[tokio::test]
    async fn operations_without_a_nonce_do_not_conflict() {
        let nonces = nonces(100);
        let claim = first(&nonces, NO_NONCE).await;
        first(&nonces, NO_NONCE).await.done(1, 0);
        claim.done(2, 0);
        nonces.replayed((7, NO_NONCE), 1, 0, 0);
        assert!(nonces.is_empty());
    }

    #[tokio::test]
    async fn nonces_are_remembered_for_the_grace_period() {
        let nonces = nonces(1_000_000);
        for second in 0..1000 {
            first(&nonces, second + 1).await.done(second, second * 1000);
            let oldest = second.saturating_sub(GRACE.as_secs());
            assert_eq!(done(&nonces, oldest + 1).await, Some(oldest));
        }
        assert!(nonces.len() as u64 <= GRACE.as_secs() * 6 / 4, "{} are remembered", nonces.len());
        nonces.replayed((7, 5000), 1, 1_000_000, 1_150_001);
        assert_eq!(done(&nonces, 5000).await, None, "too old");
        nonces.replayed((7, 5000), 1, 1_000_000, 1_150_000);
        assert_eq!(done(&nonces, 5000).await, Some(1));
    }

    #[tokio::test]
    async fn the_number_of_nonces_is_bounded() {
        let nonces = nonces(100);
        for nonce in 1..1000 {
            first(&nonces, nonce).await.done(nonce, 0);
            assert!(nonces.len() <= 125);
            assert_eq!(
                done(&nonces, nonce.saturating_sub(99).max(1)).await,
                Some(nonce.saturating_sub(99).max(1))
            );
        }
    }
}
