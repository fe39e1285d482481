//! How long changes took, told to their region's and their user's instruments by kind.

use std::time::Duration;

use cell::mutation::{Mutation, MutationKind};
use engine::Region;
use engine::instruments::Operation;
use engine::region::Changed;

use super::CallContext;
use crate::server::RegionServer;
use crate::users::Caller;

/// A change that is under way.
pub(super) struct Timed<'a> {
    server: &'a RegionServer,
    region: &'a Region,
    caller: Option<&'a Caller>,
    begun: Duration,
}

/// Which kinds are among changes that are made together.
#[derive(Clone, Copy)]
pub(super) struct Kinds {
    puts: bool,
    deletes: bool,
    increments: bool,
    appends: bool,
}

impl Kinds {
    pub(super) fn of(mutations: &[Mutation]) -> Kinds {
        let any = |kind| mutations.iter().any(|mutation| mutation.kind == kind);
        Kinds {
            puts: any(MutationKind::Put),
            deletes: any(MutationKind::Delete),
            increments: any(MutationKind::Increment),
            appends: any(MutationKind::Append),
        }
    }
}

impl<'a> Timed<'a> {
    pub(super) fn begin(
        server: &'a RegionServer,
        region: &'a Region,
        caller: Option<&'a Caller>,
    ) -> Timed<'a> {
        Timed { server, region, caller, begun: server.env().clock.monotonic() }
    }

    /// One that is all that a call asks for, and has been under way since the call was begun.
    pub(super) fn of_call(
        server: &'a RegionServer,
        region: &'a Region,
        context: &'a CallContext,
    ) -> Timed<'a> {
        let begun = context.begun.unwrap_or_else(|| server.env().clock.monotonic());
        Timed { server, region, caller: context.caller.as_deref(), begun }
    }

    fn note(&self, operation: Operation, took: Duration) {
        self.region.instruments().note(operation, took);
        if let Some(caller) = self.caller {
            caller.note(operation, took);
        }
    }

    /// When it ended, and how long it took.
    fn ended(&self) -> (Duration, Duration) {
        let now = self.server.env().clock.monotonic();
        (now, now.saturating_sub(self.begun))
    }

    /// A change of one row was made, or failed. When.
    pub(super) fn end(self, kind: MutationKind) -> Duration {
        let operation = match kind {
            MutationKind::Put => Operation::Put,
            MutationKind::Delete => Operation::Delete,
            MutationKind::Increment => Operation::Increment,
            MutationKind::Append => Operation::Append,
        };
        let (now, took) = self.ended();
        self.note(operation, took);
        now
    }

    /// Changes were made together, or failed. When.
    pub(super) fn end_batch(self, kinds: Kinds) -> Duration {
        let (now, took) = self.ended();
        if kinds.puts {
            self.note(Operation::PutBatch, took);
        }
        if kinds.deletes {
            self.note(Operation::DeleteBatch, took);
        }
        self.note_made(kinds.increments, MutationKind::Increment);
        self.note_made(kinds.appends, MutationKind::Append);
        now
    }

    fn note_made(&self, is_made: bool, kind: MutationKind) {
        if is_made {
            self.region.instruments().note_made(kind);
        }
    }

    /// Changes of these kinds on a condition were made or not, or failed; `kind` if it was one change. When.
    pub(super) fn end_checked(
        self,
        changed: &engine::error::Result<Changed>,
        kind: Option<MutationKind>,
        kinds: Kinds,
    ) -> Duration {
        let (now, took) = self.ended();
        self.note(Operation::CheckAndMutate, took);
        match kind {
            Some(MutationKind::Put) => self.note(Operation::CheckAndPut, took),
            Some(MutationKind::Delete) => self.note(Operation::CheckAndDelete, took),
            _ => {}
        }
        if let Ok(changed) = changed {
            self.region.instruments().note_check(changed.matched);
            self.note_made(changed.matched && kinds.puts, MutationKind::Put);
            self.note_made(changed.matched && kinds.deletes, MutationKind::Delete);
            self.note_made(changed.matched && kinds.increments, MutationKind::Increment);
            self.note_made(changed.matched && kinds.appends, MutationKind::Append);
        }
        now
    }
}
