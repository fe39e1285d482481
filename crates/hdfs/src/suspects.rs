//! DataNodes that failed recently. New blocks avoid them, and reads use other replicas first.
//!
//! A read from a dead machine fails after several seconds, and so do all reads that begin there
//! meanwhile. So reads avoid a node until one of them, the probe, has succeeded.
//!
//! A node that was only late for a writer is avoided by new blocks, but not by reads: it is often
//! the DataNode of this machine, whose replicas are the nearest. Reads avoid it only if a check
//! shows that its machine accepts no connection (`file::late`).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::link::Node;

/// How long a DataNode is avoided. A node that is restarted is used again soon; one that stays down
/// delays one new block in this time.
const AVOIDED_FOR: Duration = Duration::from_secs(120);
/// The longest time in which reads avoid a node. It begins with [`AVOIDED_FOR`], and each probe
/// doubles it.
const READ_PAUSE_MAX: Duration = Duration::from_secs(16 * 60);
/// Failures by slowness within [`SLOW_PERIOD`] after which slowness is tolerated for the same time.
const SLOW_FAILURES_MAX: usize = 3;
const SLOW_PERIOD: Duration = Duration::from_secs(10);

/// The suspects, by their UUID. Times are on the monotonic clock.
#[derive(Default)]
pub(crate) struct Suspects {
    lists: Mutex<Lists>,
}

#[derive(Default)]
struct Lists {
    // The oldest first.
    nodes: Vec<Suspect>,
    slow_failures: Vec<Duration>,
    read_pauses: HashMap<String, ReadPause>,
}

/// The time in which reads use a node last.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ReadPause {
    length: Duration,
    until: Duration,
}

impl ReadPause {
    fn restart(&mut self, now: Duration) {
        self.until = now + self.length;
    }
}

/// A read that shows whether a node that failed can be read again.
pub(crate) struct Probe<'a> {
    suspects: &'a Suspects,
    uuid: String,
    // The pause while the probe runs.
    pause: ReadPause,
    // The pause if the read is cancelled, for example because a hedged read ended first. It is not
    // longer than the previous one, because the node may work. None after an outcome.
    cancelled: Option<ReadPause>,
}

impl Probe<'_> {
    /// The node responded: reads use it again.
    pub(crate) fn succeed(mut self) {
        self.cancelled = None;
        self.suspects.lists().read_pauses.remove(&self.uuid);
    }

    /// The node failed again: the next pause is longer.
    pub(crate) fn fail(mut self) {
        self.cancelled = None;
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        let Some(cancelled) = self.cancelled else { return };
        // Another read may have changed the pause.
        if let Some(pause) =
            self.suspects.lists().read_pauses.get_mut(&self.uuid).filter(|pause| **pause == self.pause)
        {
            *pause = cancelled;
        }
    }
}

struct Suspect {
    uuid: String,
    info: Bytes,
    until: Duration,
}

impl Suspects {
    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a node that failed, or restarts its times. New blocks and reads avoid it.
    pub(crate) fn add(&self, node: &Node, now: Duration) {
        self.add_late(node, now);
        let pause = ReadPause { length: AVOIDED_FOR, until: now };
        let mut lists = self.lists();
        lists.read_pauses.entry(node.id.datanode_uuid.clone()).or_insert(pause).restart(now);
    }

    /// Adds a node that was late for a writer, or restarts its time. New blocks avoid it.
    pub(crate) fn add_late(&self, node: &Node, now: Duration) {
        let uuid = node.id.datanode_uuid.clone();
        let nodes = &mut self.lists().nodes;
        nodes.retain(|suspect| suspect.uuid != uuid);
        nodes.push(Suspect { uuid, info: node.info.clone(), until: now + AVOIDED_FOR });
    }

    /// Whether reads use a node only after others.
    pub(crate) fn is_read_last(&self, node: &Node, now: Duration) -> bool {
        self.lists().read_pauses.get(&node.id.datanode_uuid).is_some_and(|pause| pause.until > now)
    }

    /// Is called before a read from a node. Returns a probe if the node has failed and its pause
    /// has ended. Other reads avoid the node from now on, until the probe has succeeded.
    pub(crate) fn begin_probe(&self, node: &Node, now: Duration) -> Option<Probe<'_>> {
        let uuid = &node.id.datanode_uuid;
        let pauses = &mut self.lists().read_pauses;
        let pause = pauses.get_mut(uuid).filter(|pause| pause.until <= now)?;
        let cancelled = ReadPause { length: pause.length, until: now + pause.length };
        pause.length = (pause.length * 2).min(READ_PAUSE_MAX);
        pause.restart(now);
        Some(Probe { suspects: self, uuid: uuid.clone(), pause: *pause, cancelled: Some(cancelled) })
    }

    /// Whether new blocks avoid a node.
    pub(crate) fn has(&self, node: &Node, now: Duration) -> bool {
        let is_this = |suspect: &Suspect| suspect.uuid == node.id.datanode_uuid && suspect.until > now;
        self.lists().nodes.iter().any(is_this)
    }

    /// The descriptions of all nodes that new blocks avoid.
    pub(crate) fn infos(&self, now: Duration) -> Vec<Bytes> {
        let nodes = &mut self.lists().nodes;
        nodes.retain(|suspect| suspect.until > now);
        nodes.iter().map(|suspect| suspect.info.clone()).collect()
    }

    /// Lets new blocks use the node that has been a suspect for the longest time, and at least for
    /// `min_age`, and is not one of `kept`. Returns whether there was one.
    pub(crate) fn forget_oldest(&self, kept: &[Node], min_age: Duration, now: Duration) -> bool {
        let is_kept = |suspect: &Suspect| kept.iter().any(|node| node.id.datanode_uuid == suspect.uuid);
        let is_old = |suspect: &Suspect| suspect.until + min_age <= now + AVOIDED_FOR;
        let nodes = &mut self.lists().nodes;
        let oldest = nodes.iter().position(|suspect| is_old(suspect) && !is_kept(suspect));
        oldest.map(|at| nodes.remove(at)).is_some()
    }

    /// Lets new blocks use a node, if it is a suspect.
    pub(crate) fn forget(&self, node: &Node) {
        self.lists().nodes.retain(|suspect| suspect.uuid != node.id.datanode_uuid);
    }

    /// Records that a writer failed because a node was slow.
    pub(crate) fn add_slow_failure(&self, now: Duration) {
        let failures = &mut self.lists().slow_failures;
        failures.retain(|at| *at + SLOW_PERIOD > now);
        failures.push(now);
    }

    /// Whether writers should wait for slow nodes, because too many failed for this reason.
    pub(crate) fn tolerates_slowness(&self, now: Duration) -> bool {
        let recent = self.lists().slow_failures.iter().filter(|at| **at + SLOW_PERIOD > now).count();
        recent >= SLOW_FAILURES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::node;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_node_is_avoided_for_a_time() {
        let suspects = Suspects::default();
        let (one, two) = (node(1), node(2));
        suspects.add(&one, SECOND);
        suspects.add(&two, SECOND * 2);
        suspects.add(&one, SECOND * 3);
        assert!(suspects.has(&one, AVOIDED_FOR) && !suspects.has(&node(3), SECOND));
        assert!(!suspects.has(&two, AVOIDED_FOR + SECOND * 2));
        assert_eq!(suspects.infos(SECOND * 4), [two.info.clone(), one.info.clone()]);
        assert_eq!(suspects.infos(AVOIDED_FOR + SECOND * 2), [one.info]);
        let forget = |kept: &[Node], min_age, now| suspects.forget_oldest(kept, min_age, now);
        assert!(!forget(&[node(1)], Duration::ZERO, SECOND * 9));
        assert!(!forget(&[], SECOND * 6, SECOND * 8), "it failed 5 s ago");
        assert!(forget(&[node(3)], SECOND * 6, SECOND * 9));
        assert!(!forget(&[], Duration::ZERO, SECOND * 9));
        suspects.add(&two, SECOND);
        suspects.forget(&two);
        assert!(suspects.infos(SECOND).is_empty());
    }

    #[test]
    fn reads_do_not_avoid_a_node_that_was_late() {
        let (suspects, late) = (Suspects::default(), node(1));
        suspects.add_late(&late, SECOND);
        assert!(suspects.has(&late, SECOND) && !suspects.is_read_last(&late, SECOND));
        suspects.add(&late, SECOND);
        assert!(suspects.is_read_last(&late, SECOND));
    }

    #[test]
    fn one_read_probes_a_node_that_failed() {
        let (suspects, node) = (Suspects::default(), node(1));
        assert!(suspects.begin_probe(&node, SECOND).is_none(), "it has not failed");
        let mut now = SECOND;
        for pause in [2, 4, 8, 16, 16].map(|minutes| SECOND * 60 * minutes) {
            // Several reads fail.
            suspects.add(&node, now);
            suspects.add(&node, now);
            assert!(suspects.is_read_last(&node, now + pause - SECOND));
            assert!(suspects.begin_probe(&node, now + pause - SECOND).is_none());
            now += pause;
            assert!(!suspects.is_read_last(&node, now));
            let probe = suspects.begin_probe(&node, now).unwrap();
            assert!(suspects.is_read_last(&node, now) && suspects.begin_probe(&node, now).is_none());
            probe.fail();
        }
        now += READ_PAUSE_MAX;
        suspects.begin_probe(&node, now).unwrap().succeed();
        assert!(!suspects.is_read_last(&node, now));
        suspects.add(&node, now);
        assert!(!suspects.is_read_last(&node, now + AVOIDED_FOR), "it begins with the shortest time");
    }

    #[test]
    fn a_cancelled_probe_does_not_prolong_the_pause() {
        let (suspects, node) = (Suspects::default(), node(1));
        suspects.add(&node, Duration::ZERO);
        for pauses in 1..=4 {
            let now = AVOIDED_FOR * pauses;
            assert!(!suspects.is_read_last(&node, now));
            drop(suspects.begin_probe(&node, now).unwrap());
            assert!(suspects.is_read_last(&node, now + AVOIDED_FOR - SECOND));
        }
        // A read that began earlier fails while the probe runs.
        let now = AVOIDED_FOR * 5;
        let probe = suspects.begin_probe(&node, now).unwrap();
        suspects.add(&node, now + SECOND);
        drop(probe);
        assert!(suspects.is_read_last(&node, now + AVOIDED_FOR * 2));
    }

    #[test]
    fn slowness_is_tolerated_after_several_failures() {
        let suspects = Suspects::default();
        for at in 1..=3 {
            assert!(!suspects.tolerates_slowness(SECOND * at));
            suspects.add_slow_failure(SECOND * at);
        }
        assert!(suspects.tolerates_slowness(SECOND * 4));
        assert!(!suspects.tolerates_slowness(SLOW_PERIOD + SECOND * 2));
    }
}
