//! Nonces: what clients call their increments and appends, so that one that is sent again is not carried out again.
//!
//! A client that gets no answer sends the same nonce once more. Whoever comes first under a nonce has the claim on it;
//! others wait. What was published under it is never published again, and its sequence id says where to read the answer;
//! a claim that ends without that leaves the nonce free, and the next one tries. Invariants:
//!
//! * A nonce counts as done from the moment its edit is in the log's queue, whoever still waits for the answer: a call
//!   that is given up in between leaves no gap.
//! * Replay registers the nonces of the log, so a crash between edit and answer changes nothing.
//!
//! They are kept in generations, and dropped a generation at a time: after the grace period, or earlier where there are
//! more than [`DONE_MAX`].
//!
//! Source: HBase `ServerNonceManager`.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// Nonce group and nonce.
pub type Nonce = (u64, u64);

/// The nonce of an operation that has none.
const NO_NONCE: u64 = 0;
/// How long a nonce is known (`hbase.server.hashNonce.gracePeriod`).
pub const GRACE_PERIOD: Duration = Duration::from_secs(30 * 60);
/// Nonces of ended operations that are known at most, give or take a generation: some 100 MiB.
pub const DONE_MAX: usize = 2 << 20;
/// A generation spans this part of the grace period, or of the most that are known.
const PARTS: usize = 4;

/// The nonces of a server.
pub struct Nonces {
    grace_ms: u64,
    done_max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    // Of operations that are being carried out; the sender is with the claim.
    running: HashMap<Nonce, watch::Receiver<()>>,
    // Newest first; one more than `PARTS`, so that the whole period is covered.
    generations: VecDeque<Generation>,
}

struct Generation {
    began_ms: u64,
    // With the sequence id of what was done.
    done: HashMap<Nonce, u64>,
}

/// Whose turn it is.
pub enum Turn {
    /// The operation is to be carried out.
    First(Claim),
    /// It was, with this sequence id.
    Again(u64),
}

/// The right to carry out the operation of a nonce. Dropping it gives the nonce back, unless it is done.
pub struct Claim {
    // None for an operation without a nonce.
    of: Option<(Arc<Nonces>, Nonce)>,
    // Its end wakes who waits.
    _ended: Option<watch::Sender<()>>,
}

impl Default for Nonces {
    fn default() -> Nonces {
        Nonces::new(GRACE_PERIOD, DONE_MAX)
    }
}

impl Nonces {
    /// Nonces that are known for `grace`, and no more than about `done_max` of them.
    pub fn new(grace: Duration, done_max: usize) -> Nonces {
        Nonces { grace_ms: grace.as_millis() as u64, done_max, state: Mutex::default() }
    }

    /// Claims `nonce`; waits while another operation of the same nonce is under way.
    pub async fn claim(self: &Arc<Nonces>, nonce: Nonce) -> Turn {
        if nonce.1 == NO_NONCE {
            return Turn::First(Claim { of: None, _ended: None });
        }
        loop {
            let mut running = match self.try_claim(nonce) {
                Ok(turn) => return turn,
                Err(running) => running,
            };
            // Nothing is ever sent: an error says that the claim is gone.
            while running.changed().await.is_ok() {}
        }
    }

    fn try_claim(self: &Arc<Nonces>, nonce: Nonce) -> Result<Turn, watch::Receiver<()>> {
        let mut state = self.state();
        if let Some(running) = state.running.get(&nonce) {
            return Err(running.clone());
        }
        if let Some(seq_id) = state.generations.iter().find_map(|generation| generation.done.get(&nonce)) {
            return Ok(Turn::Again(*seq_id));
        }
        let (sender, receiver) = watch::channel(());
        state.running.insert(nonce, receiver);
        Ok(Turn::First(Claim { of: Some((self.clone(), nonce)), _ended: Some(sender) }))
    }

    /// Registers a nonce met in a log, of an edit made at `written_ms`.
    pub fn replayed(&self, nonce: Nonce, seq_id: u64, written_ms: u64, now_ms: u64) {
        // As in HBase some slack, as clocks may differ.
        let is_old = now_ms > written_ms.saturating_add(self.grace_ms + self.grace_ms / 2);
        if nonce.1 != NO_NONCE && !is_old {
            self.state().record(self, nonce, seq_id, now_ms);
        }
    }

    /// Nonces of ended operations that are known.
    pub fn len(&self) -> usize {
        self.state().generations.iter().map(|generation| generation.done.len()).sum()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change of the state is one step, so a panic elsewhere leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn record(&mut self, nonces: &Nonces, nonce: Nonce, seq_id: u64, now_ms: u64) {
        let is_full = |newest: &Generation| {
            now_ms >= newest.began_ms.saturating_add(nonces.grace_ms / PARTS as u64)
                || newest.done.len() >= nonces.done_max / PARTS
        };
        if self.generations.front().is_none_or(is_full) {
            self.generations.push_front(Generation { began_ms: now_ms, done: HashMap::new() });
            self.generations.truncate(PARTS + 1);
        }
        // The last one that is over its time is that whose follower began a period ago.
        while self.generations.len() > 1
            && now_ms >= self.generations[self.generations.len() - 2].began_ms.saturating_add(nonces.grace_ms)
        {
            self.generations.pop_back();
        }
        self.generations[0].done.insert(nonce, seq_id);
    }
}

impl Claim {
    /// The operation is published under `seq_id`: it is never carried out again.
    pub fn done(self, seq_id: u64, now_ms: u64) {
        if let Some((nonces, nonce)) = &self.of {
            nonces.state().record(nonces, *nonce, seq_id, now_ms);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some((nonces, nonce)) = &self.of {
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
            Turn::First(claim) => claim,
            Turn::Again(seq_id) => panic!("{nonce} was done under {seq_id}"),
        }
    }

    async fn done(nonces: &Arc<Nonces>, nonce: u64) -> Option<u64> {
        match nonces.claim((7, nonce)).await {
            Turn::First(_) => None,
            Turn::Again(seq_id) => Some(seq_id),
        }
    }

    #[tokio::test]
    async fn what_is_done_is_not_done_again() {
        let nonces = nonces(100);
        first(&nonces, 1).await.done(42, 0);
        assert_eq!(done(&nonces, 1).await, Some(42));
        assert_eq!(done(&nonces, 2).await, None);
        assert!(matches!(nonces.claim((8, 1)).await, Turn::First(_)), "another group's nonce");
    }

    #[tokio::test]
    async fn what_failed_may_be_tried_again() {
        let nonces = nonces(100);
        drop(first(&nonces, 1).await);
        first(&nonces, 1).await.done(5, 0);
        assert_eq!(done(&nonces, 1).await, Some(5));
    }

    #[tokio::test]
    async fn a_second_one_waits_for_the_first() {
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
    async fn operations_without_a_nonce_do_not_meet() {
        let nonces = nonces(100);
        let claim = first(&nonces, NO_NONCE).await;
        first(&nonces, NO_NONCE).await.done(1, 0);
        claim.done(2, 0);
        nonces.replayed((7, NO_NONCE), 1, 0, 0);
        assert!(nonces.is_empty());
    }

    #[tokio::test]
    async fn nonces_are_known_for_the_grace_period() {
        let nonces = nonces(1_000_000);
        for second in 0..1000 {
            first(&nonces, second + 1).await.done(second, second * 1000);
            let oldest = second.saturating_sub(GRACE.as_secs());
            assert_eq!(done(&nonces, oldest + 1).await, Some(oldest));
        }
        assert!(nonces.len() as u64 <= GRACE.as_secs() * 6 / 4, "{} are kept", nonces.len());
        nonces.replayed((7, 5000), 1, 1_000_000, 1_150_001);
        assert_eq!(done(&nonces, 5000).await, None, "too old");
        nonces.replayed((7, 5000), 1, 1_000_000, 1_150_000);
        assert_eq!(done(&nonces, 5000).await, Some(1));
    }

    #[tokio::test]
    async fn there_are_never_too_many() {
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
