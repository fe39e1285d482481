//! Times reads and changes of rows, for the instruments of their region and their user.

use std::ops::BitOrAssign;
use std::time::Duration;

use base::metrics::{COUNTING, OwnArea, RecordedDuration};
use base::spent::{self, CallEnd};
use cell::mutation::{Mutation, MutationKind};
use engine::Region;
use engine::instruments::{GetSample, Operation};
use engine::region::Changed;

use super::CallContext;
use super::charge::Charge;
use crate::quotas;
use crate::server::RegionServer;
use crate::users::ClientIdentity;

/// Times one read or change, from its creation to one of the `end` methods.
pub(super) struct CallTimer<'a> {
    server: &'a RegionServer,
    region: &'a Region,
    client: Option<&'a ClientIdentity>,
    begun: Duration,
}

/// Which kinds occur among changes that are carried out together.
#[derive(Clone, Copy, Default)]
pub(super) struct MutationKinds {
    puts: bool,
    deletes: bool,
    increments: bool,
    appends: bool,
}

impl MutationKinds {
    pub(super) fn in_batch(mutations: &[Mutation]) -> MutationKinds {
        let any = |kind| mutations.iter().any(|mutation| mutation.kind == kind);
        MutationKinds {
            puts: any(MutationKind::Put),
            deletes: any(MutationKind::Delete),
            increments: any(MutationKind::Increment),
            appends: any(MutationKind::Append),
        }
    }
}

impl BitOrAssign for MutationKinds {
    fn bitor_assign(&mut self, other: MutationKinds) {
        self.puts |= other.puts;
        self.deletes |= other.deletes;
        self.increments |= other.increments;
        self.appends |= other.appends;
    }
}

impl<'a> CallTimer<'a> {
    pub(super) fn begin(
        server: &'a RegionServer,
        region: &'a Region,
        client: Option<&'a ClientIdentity>,
    ) -> CallTimer<'a> {
        CallTimer::since(server.env().clock.monotonic(), server, region, client)
    }

    /// For an operation that began at `begun`.
    pub(super) fn since(
        begun: Duration,
        server: &'a RegionServer,
        region: &'a Region,
        client: Option<&'a ClientIdentity>,
    ) -> CallTimer<'a> {
        CallTimer { server, region, client, begun }
    }

    /// For an operation that is a whole call: it began when the call began.
    pub(super) fn of_call(
        server: &'a RegionServer,
        region: &'a Region,
        context: &'a CallContext,
    ) -> CallTimer<'a> {
        let begun = context.begun.unwrap_or_else(|| server.env().clock.monotonic());
        CallTimer::since(begun, server, region, context.client.as_deref())
    }

    fn record_latency(&self, operation: Operation, took: Duration) {
        self.region.instruments().record(operation, took);
        if let Some(client) = self.client {
            client.record_latency(operation, took);
        }
    }

    /// Now, and the time since the operation began.
    fn now_and_elapsed(&self) -> (Duration, Duration) {
        let now = self.server.env().clock.monotonic();
        (now, now.saturating_sub(self.begun))
    }

    /// Ends a successful Get whose bytes `quota` counted. Charges it to the region and the user.
    #[inline]
    pub(super) fn end_get(self, quota: &quotas::Operation) {
        if !COUNTING {
            return;
        }
        let at = self.server.env().clock.monotonic();
        let took = RecordedDuration::between(self.begun, at);
        // Calls within the process are not charged.
        let (read_units, work_nanos) = match self.client {
            Some(_) => Charge::for_call().end_reads(self.server, quota, at),
            None => (0, 0),
        };
        let get = GetSample { took, read_units, work_nanos, area: OwnArea::get() };
        self.region.instruments().record_get(&get);
        if let Some(client) = self.client {
            client.record_get(&get);
            // A call within the process continues after this Get.
            spent::report_end(CallEnd { at, took });
        }
    }

    /// Ends a Get that failed.
    #[cold]
    pub(super) fn end_failed_get(&self) {
        let (_, took) = self.now_and_elapsed();
        self.region.instruments().record_gets(1, took);
        if let Some(client) = self.client {
            client.record_gets(1, took);
        }
    }

    /// Ends a change of one row, successful or not. Returns the end.
    pub(super) fn end(self, kind: MutationKind) -> Duration {
        let operation = match kind {
            MutationKind::Put => Operation::Put,
            MutationKind::Delete => Operation::Delete,
            MutationKind::Increment => Operation::Increment,
            MutationKind::Append => Operation::Append,
        };
        let (now, took) = self.now_and_elapsed();
        self.record_latency(operation, took);
        now
    }

    /// Ends changes that were carried out together, successful or not. Returns the end.
    pub(super) fn end_batch(self, kinds: MutationKinds) -> Duration {
        let (now, took) = self.now_and_elapsed();
        if kinds.puts {
            self.record_latency(Operation::PutBatch, took);
        }
        if kinds.deletes {
            self.record_latency(Operation::DeleteBatch, took);
        }
        self.count_change(kinds.increments, MutationKind::Increment);
        self.count_change(kinds.appends, MutationKind::Append);
        now
    }

    fn count_change(&self, is_made: bool, kind: MutationKind) {
        if is_made {
            self.region.instruments().count_change(kind);
        }
    }

    /// Ends a conditional change of `kinds`, successful or not; `kind` if it was a single mutation.
    /// Returns the end.
    pub(super) fn end_checked(
        self,
        changed: &engine::error::Result<Changed>,
        kind: Option<MutationKind>,
        kinds: MutationKinds,
    ) -> Duration {
        let (now, took) = self.now_and_elapsed();
        self.record_latency(Operation::CheckAndMutate, took);
        match kind {
            Some(MutationKind::Put) => self.record_latency(Operation::CheckAndPut, took),
            Some(MutationKind::Delete) => self.record_latency(Operation::CheckAndDelete, took),
            _ => {}
        }
        if let Ok(changed) = changed {
            self.region.instruments().count_check(changed.matched);
            self.count_change(changed.matched && kinds.puts, MutationKind::Put);
            self.count_change(changed.matched && kinds.deletes, MutationKind::Delete);
            self.count_change(changed.matched && kinds.increments, MutationKind::Increment);
            self.count_change(changed.matched && kinds.appends, MutationKind::Append);
        }
        now
    }
}
