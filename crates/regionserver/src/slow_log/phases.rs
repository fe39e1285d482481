//! The latency breakdown of a call, from its arrival to the last byte of its response.
//!
//! Waits and long decoding are measured. Filters are sampled and extrapolated. The remaining CPU
//! time is attributed to cells of memstores or of blocks, in proportion to the sampled places at
//! which long stretches of reading ended.

use std::fmt;
use std::time::Duration;

use base::spent::{Phase, Use};
use rpc::server::EndedCall;

/// A phase of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallPhase {
    /// In the queue, before the call began.
    Queue,
    /// Decoding the request.
    Decode,
    /// Waiting for row locks, or for another call with the same nonce.
    Lock,
    /// Reading cells of memstores.
    Memstore,
    /// Reading cells of blocks that are in memory.
    Cache,
    /// Waiting for file blocks.
    Disk,
    /// Evaluating filters.
    Filter,
    /// Waiting until the log is durable.
    Wal,
    /// Other work, of a call that has no sample of reading cells.
    Compute,
    /// Runnable, while its thread ran other tasks.
    Turns,
    /// Waiting until the client has received the response.
    Network,
}

/// All phases, in the order in which a call passes through them.
const CALL_PHASES: [CallPhase; 11] = [
    CallPhase::Queue,
    CallPhase::Decode,
    CallPhase::Lock,
    CallPhase::Memstore,
    CallPhase::Cache,
    CallPhase::Disk,
    CallPhase::Filter,
    CallPhase::Wal,
    CallPhase::Compute,
    CallPhase::Turns,
    CallPhase::Network,
];

impl CallPhase {
    /// The name of the phase in logs and on status pages.
    pub fn name(self) -> &'static str {
        match self {
            CallPhase::Queue => "queue",
            CallPhase::Decode => "decode",
            CallPhase::Lock => "lock",
            CallPhase::Memstore => "memstore",
            CallPhase::Cache => "cache",
            CallPhase::Disk => "disk",
            CallPhase::Filter => "filter",
            CallPhase::Wal => "wal",
            CallPhase::Compute => "compute",
            CallPhase::Turns => "turns",
            CallPhase::Network => "network",
        }
    }
}

/// The time of a call by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimes([Duration; CALL_PHASES.len()]);

impl PhaseTimes {
    /// The breakdown of `call`.
    pub(crate) fn of(call: &EndedCall) -> PhaseTimes {
        let spent = &call.spent;
        let processed = call.ended.saturating_sub(call.begun);
        let [decode, awaited, blocked, disk, filter, log] =
            [Phase::Decode, Phase::Lock, Phase::Blocked, Phase::Disk, Phase::Filter, Phase::Log]
                .map(|phase| spent.time(phase));
        // The filter time is extrapolated, so it may exceed the total.
        let work = spent.time(Phase::Work);
        let filter = filter.min(work);
        let cells = work.saturating_sub(decode + filter + blocked);
        let turns = processed.saturating_sub(work + awaited + disk + log);
        let [in_memstores, in_blocks] =
            [Use::MemstoreSlices, Use::BlockSlices].map(|slices| spent.used(slices));
        let part = |slices: u64| match in_memstores + in_blocks {
            0 => Duration::ZERO,
            all => cells.mul_f64(slices as f64 / all as f64),
        };
        let mut phases = PhaseTimes::default();
        phases.0[CallPhase::Queue as usize] = call.begun.saturating_sub(call.received);
        phases.0[CallPhase::Decode as usize] = decode;
        phases.0[CallPhase::Lock as usize] = awaited + blocked;
        phases.0[CallPhase::Memstore as usize] = part(in_memstores);
        phases.0[CallPhase::Cache as usize] = part(in_blocks);
        phases.0[CallPhase::Disk as usize] = disk;
        phases.0[CallPhase::Filter as usize] = filter;
        phases.0[CallPhase::Wal as usize] = log;
        phases.0[CallPhase::Compute as usize] =
            if in_memstores + in_blocks == 0 { cells } else { Duration::ZERO };
        phases.0[CallPhase::Turns as usize] = turns;
        phases.0[CallPhase::Network as usize] = call.sent.saturating_sub(call.ended);
        phases
    }

    /// The time of one phase.
    pub fn get(&self, phase: CallPhase) -> Duration {
        self.0[phase as usize]
    }

    /// All phases with their times, in the order in which a call passes through them.
    pub fn iter(&self) -> impl Iterator<Item = (CallPhase, Duration)> + '_ {
        CALL_PHASES.into_iter().map(|phase| (phase, self.get(phase)))
    }

    /// The longest phase.
    pub fn longest(&self) -> CallPhase {
        self.iter().max_by_key(|(_, time)| *time).map_or(CallPhase::Compute, |(phase, _)| phase)
    }
}

/// All phases of at least one millisecond, longest first: `disk 812 ms, queue 3 ms`.
impl fmt::Display for PhaseTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut phases: Vec<_> = self.iter().filter(|(_, time)| time.as_millis() > 0).collect();
        phases.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        if phases.is_empty() {
            return f.write_str("none");
        }
        for (at, (phase, time)) in phases.into_iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{} {} ms", phase.name(), time.as_millis())?;
        }
        Ok(())
    }
}
