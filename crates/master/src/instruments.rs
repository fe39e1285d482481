//! The metrics of a master, with HBase's names.

use std::sync::Arc;
use std::time::Duration;

use base::metrics::{Counter, Times};

use crate::procedure::{RegionTransition, Work};

base::instruments! {
    /// Region transitions.
    pub struct AssignmentInstruments in "Master,sub=AssignmentManager" {
        /// Number of requests to servers to open or close a region.
        operations: Counter = "operationCount",
        /// How long regions were in transition.
        in_transition: Times = "RitDuration",
        /// Number of region assignments.
        assigns: Counter = "AssignSubmittedCount",
        /// Number of assignments that failed because the region could not be opened.
        assigns_failed: Counter = "AssignFailedCount",
        /// Time from assignment to open region.
        assign_time: Times = "AssignTime",
        /// Number of region unassignments.
        unassigns: Counter = "UnassignSubmittedCount",
        /// Number of unassignments that failed because the region could not be closed.
        unassigns_failed: Counter = "UnassignFailedCount",
        /// Time from unassignment to closed region.
        unassign_time: Times = "UnassignTime",
        /// Number of region moves.
        moves: Counter = "MoveSubmittedCount",
        /// Number of failed region moves.
        moves_failed: Counter = "MoveFailedCount",
        /// Duration of a region move.
        move_time: Times = "MoveTime",
        /// Number of region reopenings (close and open).
        reopens: Counter = "ReopenSubmittedCount",
        /// Number of failed region reopenings.
        reopens_failed: Counter = "ReopenFailedCount",
        /// Duration of a region reopening.
        reopen_time: Times = "ReopenTime",
        /// Number of requests to servers to open a region.
        opens: Counter = "OpenSubmittedCount",
        /// Number of failed requests to open a region.
        opens_failed: Counter = "OpenFailedCount",
        /// Duration of opening a region.
        open_time: Times = "OpenTime",
        /// Number of requests to servers to close a region.
        closes: Counter = "CloseSubmittedCount",
        /// Number of failed requests to close a region.
        closes_failed: Counter = "CloseFailedCount",
        /// Duration of closing a region.
        close_time: Times = "CloseTime",
        /// Number of splits started.
        splits: Counter = "SplitSubmittedCount",
        /// Number of splits that were refused or failed.
        splits_failed: Counter = "SplitFailedCount",
        /// Duration of a split.
        split_time: Times = "SplitTime",
        /// Number of merges started.
        merges: Counter = "MergeSubmittedCount",
        /// Number of merges that were refused or failed.
        merges_failed: Counter = "MergeFailedCount",
        /// Duration of a merge.
        merge_time: Times = "MergeTime",
    }
}

base::instruments! {
    /// Snapshot operations.
    pub struct SnapshotInstruments in "Master,sub=Snapshots" {
        /// Duration of taking a snapshot.
        snapshot_time: Times = "SnapshotTime",
        /// Duration of restoring a table to a snapshot.
        restore_time: Times = "SnapshotRestoreTime",
        /// Duration of cloning a snapshot to a new table.
        clone_time: Times = "SnapshotCloneTime",
    }
}

base::instruments! {
    /// Recoveries of dead region servers.
    pub struct RecoveryInstruments in "Master,sub=Server" {
        /// Recoveries of dead servers started.
        recoveries: Counter = "ServerCrashSubmittedCount",
        /// Failed recoveries of dead servers.
        recoveries_failed: Counter = "ServerCrashFailedCount",
        /// Time to recover a dead server.
        recovery_time: Times = "ServerCrashTime",
    }
}

/// All metrics of a master.
#[derive(Debug)]
pub struct MasterInstruments {
    /// Region transitions.
    pub assignment: Arc<AssignmentInstruments>,
    /// Snapshot operations.
    pub snapshots: Arc<SnapshotInstruments>,
    /// Recoveries of dead region servers.
    pub recoveries: Arc<RecoveryInstruments>,
}

/// The metrics of one kind of operation.
struct OperationInstruments<'a> {
    submitted: &'a Counter,
    failed: &'a Counter,
    time: &'a Times,
}

impl MasterInstruments {
    /// Starts with zero counts; `now` is a time of the monotonic clock.
    pub fn begin(now: Duration) -> MasterInstruments {
        MasterInstruments {
            assignment: Arc::new(AssignmentInstruments::begin(now)),
            snapshots: Arc::new(SnapshotInstruments::begin(now)),
            recoveries: Arc::new(RecoveryInstruments::begin(now)),
        }
    }

    /// Records the start of a procedure.
    pub(crate) fn record_begun(&self, work: &Work) {
        if let Some(metrics) = self.of_procedure(work) {
            metrics.submitted.increment();
        }
    }

    /// Records the end of a procedure after `took`.
    pub(crate) fn record_ended(&self, work: &Work, is_good: bool, took: Duration) {
        if let Some(metrics) = self.of_procedure(work) {
            metrics.end(is_good, took);
        }
        let time = match work {
            Work::Snapshot(..) => &self.snapshots.snapshot_time,
            Work::CloneSnapshot { .. } => &self.snapshots.clone_time,
            Work::RestoreSnapshot { .. } => &self.snapshots.restore_time,
            _ => return,
        };
        time.record(took);
    }

    /// The metrics of a procedure, if it has some of its own.
    fn of_procedure(&self, work: &Work) -> Option<OperationInstruments<'_>> {
        match work {
            Work::ServerCrash { .. } => Some(OperationInstruments {
                submitted: &self.recoveries.recoveries,
                failed: &self.recoveries.recoveries_failed,
                time: &self.recoveries.recovery_time,
            }),
            _ => self.assignment.of_procedure(work),
        }
    }
}

impl OperationInstruments<'_> {
    fn end(&self, is_good: bool, took: Duration) {
        if is_good {
            self.time.record(took);
        } else {
            self.failed.increment();
        }
    }
}

impl AssignmentInstruments {
    /// The metrics of a procedure, if it splits, merges or moves regions.
    fn of_procedure(&self, work: &Work) -> Option<OperationInstruments<'_>> {
        match work {
            Work::SplitRegion { .. } => Some(OperationInstruments {
                submitted: &self.splits,
                failed: &self.splits_failed,
                time: &self.split_time,
            }),
            Work::MergeRegions { .. } => Some(OperationInstruments {
                submitted: &self.merges,
                failed: &self.merges_failed,
                time: &self.merge_time,
            }),
            Work::RegionTransition(_, RegionTransition::Reopen) | Work::MoveRegion { .. } => {
                Some(OperationInstruments {
                    submitted: &self.moves,
                    failed: &self.moves_failed,
                    time: &self.move_time,
                })
            }
            _ => None,
        }
    }

    /// Records a request to open a region.
    pub(crate) fn record_opening(&self) {
        [&self.operations, &self.assigns, &self.opens].iter().for_each(|count| count.increment());
    }

    /// Records that a region was opened, or failed to open, after `took`.
    pub(crate) fn record_opened(&self, is_good: bool, took: Duration) {
        let assign = OperationInstruments {
            submitted: &self.assigns,
            failed: &self.assigns_failed,
            time: &self.assign_time,
        };
        let open = OperationInstruments {
            submitted: &self.opens,
            failed: &self.opens_failed,
            time: &self.open_time,
        };
        [assign, open].iter().for_each(|metrics| metrics.end(is_good, took));
        self.in_transition.record(took);
    }

    /// Records a request to close a region.
    pub(crate) fn record_closing(&self) {
        [&self.operations, &self.unassigns, &self.closes].iter().for_each(|count| count.increment());
    }

    /// Records that a region was closed after `took`.
    pub(crate) fn record_closed(&self, took: Duration) {
        [&self.unassign_time, &self.close_time, &self.in_transition]
            .iter()
            .for_each(|time| time.record(took));
    }

    /// Records the start of a region reopening.
    pub(crate) fn record_reopening(&self) {
        self.reopens.increment();
    }

    /// Records the end of a region reopening after `took`.
    pub(crate) fn record_reopened(&self, is_good: bool, took: Duration) {
        OperationInstruments {
            submitted: &self.reopens,
            failed: &self.reopens_failed,
            time: &self.reopen_time,
        }
        .end(is_good, took);
    }
}
