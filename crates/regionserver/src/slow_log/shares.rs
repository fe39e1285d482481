//! Where the time of a call went, from its arrival to the last byte of its answer.
//!
//! Waits and long decoding were measured; of filters some answers were, for all. What is left of the time at which it was
//! polled went to cells: those of memstores or of blocks, by where its long stretches ended.

use std::fmt;
use std::time::Duration;

use base::spent::{Phase, Use};
use rpc::server::EndedCall;

/// A part of a call's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Share {
    /// Before it was begun.
    Queue,
    /// Making sense of its bytes.
    Decode,
    /// Waiting for rows that others held, or for others to be done with the same change.
    Lock,
    /// Going through cells of memstores.
    Memstore,
    /// Going through cells of blocks in the cache, or just read.
    Cache,
    /// Waiting for blocks of files.
    Disk,
    /// Filters at work.
    Filter,
    /// Waiting for the log to be durable.
    Wal,
    /// The rest of its computing.
    Compute,
    /// It could have gone on, but its thread was with others.
    Turns,
    /// Waiting for the client to take the answer.
    Network,
}

/// All shares, in the order in which calls come by them.
const SHARES: [Share; 11] = [
    Share::Queue,
    Share::Decode,
    Share::Lock,
    Share::Memstore,
    Share::Cache,
    Share::Disk,
    Share::Filter,
    Share::Wal,
    Share::Compute,
    Share::Turns,
    Share::Network,
];

impl Share {
    /// Its name, for logs and pages.
    pub fn name(self) -> &'static str {
        match self {
            Share::Queue => "queue",
            Share::Decode => "decode",
            Share::Lock => "lock",
            Share::Memstore => "memstore",
            Share::Cache => "cache",
            Share::Disk => "disk",
            Share::Filter => "filter",
            Share::Wal => "wal",
            Share::Compute => "compute",
            Share::Turns => "turns",
            Share::Network => "network",
        }
    }
}

/// The time of a call by shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares([Duration; SHARES.len()]);

impl Shares {
    /// Those of `call`.
    pub(super) fn of(call: &EndedCall) -> Shares {
        let spent = &call.spent;
        let processed = call.ended.saturating_sub(call.begun);
        let [decode, awaited, blocked, disk, filter, log] =
            [Phase::Decode, Phase::Lock, Phase::Blocked, Phase::Disk, Phase::Filter, Phase::Log]
                .map(|phase| spent.time(phase));
        // Sampled, it may come out as more than there was.
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
        let mut shares = Shares::default();
        shares.0[Share::Queue as usize] = call.begun.saturating_sub(call.received);
        shares.0[Share::Decode as usize] = decode;
        shares.0[Share::Lock as usize] = awaited + blocked;
        shares.0[Share::Memstore as usize] = part(in_memstores);
        shares.0[Share::Cache as usize] = part(in_blocks);
        shares.0[Share::Disk as usize] = disk;
        shares.0[Share::Filter as usize] = filter;
        shares.0[Share::Wal as usize] = log;
        shares.0[Share::Compute as usize] =
            if in_memstores + in_blocks == 0 { cells } else { Duration::ZERO };
        shares.0[Share::Turns as usize] = turns;
        shares.0[Share::Network as usize] = call.sent.saturating_sub(call.ended);
        shares
    }

    /// What went to `share`.
    pub fn get(&self, share: Share) -> Duration {
        self.0[share as usize]
    }

    /// All shares with their times, in the order in which calls come by them.
    pub fn iter(&self) -> impl Iterator<Item = (Share, Duration)> + '_ {
        SHARES.into_iter().map(|share| (share, self.get(share)))
    }

    /// The greatest.
    pub fn greatest(&self) -> Share {
        self.iter().max_by_key(|(_, time)| *time).map_or(Share::Compute, |(share, _)| share)
    }
}

/// All shares of a millisecond and more, the greatest first: `disk 812 ms, queue 3 ms`.
impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shares: Vec<_> = self.iter().filter(|(_, time)| time.as_millis() > 0).collect();
        shares.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        if shares.is_empty() {
            return f.write_str("none");
        }
        for (at, (share, time)) in shares.into_iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{} {} ms", share.name(), time.as_millis())?;
        }
        Ok(())
    }
}
