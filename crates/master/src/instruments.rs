//! What a master counts, under HBase's names.

use std::sync::Arc;
use std::time::Duration;

use base::metrics::{Counter, Times};

use crate::procedure::{Transit, Work};

base::instruments! {
    /// What becomes of regions.
    pub struct AssignmentInstruments in "Master,sub=AssignmentManager" {
        /// Changes of where regions are served that were begun.
        operations: Counter = "operationCount",
        /// How long regions were on their way.
        in_transition: Times = "RitDuration",
        /// Regions to be put to a server.
        assigns: Counter = "AssignSubmittedCount",
        /// Those that could not be opened.
        assigns_failed: Counter = "AssignFailedCount",
        /// How long it took until one was open.
        assign_time: Times = "AssignTime",
        /// Regions to be taken from their server.
        unassigns: Counter = "UnassignSubmittedCount",
        /// Those that could not be closed.
        unassigns_failed: Counter = "UnassignFailedCount",
        /// How long it took until one was closed.
        unassign_time: Times = "UnassignTime",
        /// Regions to be moved.
        moves: Counter = "MoveSubmittedCount",
        /// Those that could not be opened where they went.
        moves_failed: Counter = "MoveFailedCount",
        /// How long it took until one was open again.
        move_time: Times = "MoveTime",
        /// Regions to be closed and opened again.
        reopens: Counter = "ReopenSubmittedCount",
        /// Those that could not.
        reopens_failed: Counter = "ReopenFailedCount",
        /// How long it took until one was open again.
        reopen_time: Times = "ReopenTime",
        /// Regions that a server was asked to open.
        opens: Counter = "OpenSubmittedCount",
        /// Those that it could not.
        opens_failed: Counter = "OpenFailedCount",
        /// How long it took.
        open_time: Times = "OpenTime",
        /// Regions that a server was asked to close.
        closes: Counter = "CloseSubmittedCount",
        /// Those that it could not.
        closes_failed: Counter = "CloseFailedCount",
        /// How long it took.
        close_time: Times = "CloseTime",
        /// Splits begun.
        splits: Counter = "SplitSubmittedCount",
        /// Splits refused or failed.
        splits_failed: Counter = "SplitFailedCount",
        /// How long one took.
        split_time: Times = "SplitTime",
        /// Merges begun.
        merges: Counter = "MergeSubmittedCount",
        /// Merges refused or failed.
        merges_failed: Counter = "MergeFailedCount",
        /// How long one took.
        merge_time: Times = "MergeTime",
    }
}

base::instruments! {
    /// Snapshots made and used.
    pub struct SnapshotInstruments in "Master,sub=Snapshots" {
        /// How long one took.
        snapshot_time: Times = "SnapshotTime",
        /// How long it took to put a table back to one.
        restore_time: Times = "SnapshotRestoreTime",
        /// How long a table made of one took.
        clone_time: Times = "SnapshotCloneTime",
    }
}

/// All that a master counts.
#[derive(Debug)]
pub struct MasterInstruments {
    /// What becomes of regions.
    pub assignment: Arc<AssignmentInstruments>,
    /// Snapshots.
    pub snapshots: Arc<SnapshotInstruments>,
}

/// Where an operation is counted.
struct Places<'a> {
    submitted: &'a Counter,
    failed: &'a Counter,
    time: &'a Times,
}

impl MasterInstruments {
    /// Nothing counted yet; `now` is a time of the monotonic clock.
    pub fn begin(now: Duration) -> MasterInstruments {
        MasterInstruments {
            assignment: Arc::new(AssignmentInstruments::begin(now)),
            snapshots: Arc::new(SnapshotInstruments::begin(now)),
        }
    }

    /// A procedure is begun.
    pub(crate) fn note_begun(&self, work: &Work) {
        if let Some(places) = self.assignment.of_procedure(work) {
            places.submitted.increment();
        }
    }

    /// A procedure has ended, after so long.
    pub(crate) fn note_ended(&self, work: &Work, is_good: bool, took: Duration) {
        if let Some(places) = self.assignment.of_procedure(work) {
            places.end(is_good, took);
        }
        let time = match work {
            Work::Snapshot(..) => &self.snapshots.snapshot_time,
            Work::CloneSnapshot { .. } => &self.snapshots.clone_time,
            Work::RestoreSnapshot { .. } => &self.snapshots.restore_time,
            _ => return,
        };
        time.record(took);
    }
}

impl Places<'_> {
    fn end(&self, is_good: bool, took: Duration) {
        if is_good {
            self.time.record(took);
        } else {
            self.failed.increment();
        }
    }
}

impl AssignmentInstruments {
    /// Those of procedures that are about regions and have more steps than one.
    fn of_procedure(&self, work: &Work) -> Option<Places<'_>> {
        match work {
            Work::SplitRegion { .. } => {
                Some(Places { submitted: &self.splits, failed: &self.splits_failed, time: &self.split_time })
            }
            Work::MergeRegions { .. } => {
                Some(Places { submitted: &self.merges, failed: &self.merges_failed, time: &self.merge_time })
            }
            Work::Transit(_, Transit::Reopen) => {
                Some(Places { submitted: &self.moves, failed: &self.moves_failed, time: &self.move_time })
            }
            _ => None,
        }
    }

    /// A server is asked to open a region.
    pub(crate) fn note_opening(&self) {
        [&self.operations, &self.assigns, &self.opens].iter().for_each(|count| count.increment());
    }

    /// A region was opened, or could not be, after so long.
    pub(crate) fn note_opened(&self, is_good: bool, took: Duration) {
        let assign =
            Places { submitted: &self.assigns, failed: &self.assigns_failed, time: &self.assign_time };
        let open = Places { submitted: &self.opens, failed: &self.opens_failed, time: &self.open_time };
        [assign, open].iter().for_each(|places| places.end(is_good, took));
        self.in_transition.record(took);
    }

    /// A server is asked to close a region.
    pub(crate) fn note_closing(&self) {
        [&self.operations, &self.unassigns, &self.closes].iter().for_each(|count| count.increment());
    }

    /// A region was closed, after so long.
    pub(crate) fn note_closed(&self, took: Duration) {
        [&self.unassign_time, &self.close_time, &self.in_transition]
            .iter()
            .for_each(|time| time.record(took));
    }

    /// A region is to be closed and opened again.
    pub(crate) fn note_reopening(&self) {
        self.reopens.increment();
    }

    /// It was, or could not be, after so long.
    pub(crate) fn note_reopened(&self, is_good: bool, took: Duration) {
        Places { submitted: &self.reopens, failed: &self.reopens_failed, time: &self.reopen_time }
            .end(is_good, took);
    }
}
