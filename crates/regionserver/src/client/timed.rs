//! How long changes took, told to their region's instruments by kind.

use std::time::Duration;

use cell::mutation::{Mutation, MutationKind};
use engine::Region;
use engine::instruments::Operation;
use engine::region::Changed;

use crate::server::RegionServer;

/// A change that is under way.
pub(super) struct Timed<'a> {
    server: &'a RegionServer,
    region: &'a Region,
    begun: Duration,
}

/// Which kinds are among changes that are made together.
#[derive(Clone, Copy)]
pub(super) struct Kinds {
    puts: bool,
    deletes: bool,
}

impl Kinds {
    pub(super) fn of(mutations: &[Mutation]) -> Kinds {
        let any = |kind| mutations.iter().any(|mutation| mutation.kind == kind);
        Kinds { puts: any(MutationKind::Put), deletes: any(MutationKind::Delete) }
    }
}

impl<'a> Timed<'a> {
    pub(super) fn begin(server: &'a RegionServer, region: &'a Region) -> Timed<'a> {
        Timed { server, region, begun: server.env().clock.monotonic() }
    }

    fn took(&self) -> Duration {
        self.server.env().clock.monotonic().saturating_sub(self.begun)
    }

    /// A change of one row was made, or failed.
    pub(super) fn end(self, kind: MutationKind) {
        let operation = match kind {
            MutationKind::Put => Operation::Put,
            MutationKind::Delete => Operation::Delete,
            MutationKind::Increment => Operation::Increment,
            MutationKind::Append => Operation::Append,
        };
        self.region.instruments().note(operation, self.took());
    }

    /// Changes were made together, or failed.
    pub(super) fn end_batch(self, kinds: Kinds) {
        let (took, instruments) = (self.took(), self.region.instruments());
        if kinds.puts {
            instruments.note(Operation::PutBatch, took);
        }
        if kinds.deletes {
            instruments.note(Operation::DeleteBatch, took);
        }
    }

    /// A change on a condition was made or not, or failed; `kind` if it was one change.
    pub(super) fn end_checked(self, changed: &engine::error::Result<Changed>, kind: Option<MutationKind>) {
        let (took, instruments) = (self.took(), self.region.instruments());
        instruments.note(Operation::CheckAndMutate, took);
        match kind {
            Some(MutationKind::Put) => instruments.note(Operation::CheckAndPut, took),
            Some(MutationKind::Delete) => instruments.note(Operation::CheckAndDelete, took),
            _ => {}
        }
        if let Ok(changed) = changed {
            instruments.note_check(changed.matched);
        }
    }
}
