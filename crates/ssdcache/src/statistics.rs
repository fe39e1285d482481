//! Statistics of the cache.

use base::metrics::Counter;

macro_rules! statistics {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        #[derive(Default)]
        pub(crate) struct Counts {
            $(pub(crate) $name: Counter,)+
        }

        /// Statistics of the cache; counts are since the start.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats {
            $($(#[doc = $doc])+ pub $name: u64,)+
            /// Maximum size of all files, in bytes.
            pub capacity_bytes: u64,
            /// Size of all files, in bytes.
            pub used_bytes: u64,
            /// Blocks that can be found.
            pub blocks: u64,
            /// Memory in bytes: index, read history, and blocks that wait to be written.
            pub memory_bytes: u64,
            /// Whether reads use the SSD. `false` while it does not respond.
            pub is_enabled: bool,
        }

        impl Counts {
            /// The counts; everything else is 0.
            pub(crate) fn snapshot(&self) -> Stats {
                Stats { $($name: self.$name.get(),)+ ..Stats::default() }
            }
        }
    };
}

statistics! {
    /// Blocks that were found.
    hits,
    /// Blocks that were not found, for any reason.
    misses,
    /// Blocks written for the first time.
    writes,
    /// Blocks copied from an evicted segment, because they were used.
    copies,
    /// Blocks evicted with their segment, except copied ones.
    evictions,
    /// Bytes written to the SSD, which is its wear.
    written_bytes,
    /// Blocks not written because they were read for the first time.
    first_reads,
    /// Blocks not written because the queue was full.
    dropped,
    /// Blocks not written because of the limit of the write rate.
    over_rate,
    /// Blocks not written because they are too large.
    too_large,
    /// Blocks not written because a write failed.
    failed_writes,
    /// Records on the SSD that were not the expected block, or damaged.
    mismatches,
    /// Reads that failed.
    read_errors,
    /// Reads and writes that took too long.
    timeouts,
    /// Reads that did not use the SSD, because it did not respond or had too many reads.
    bypassed,
}

impl Stats {
    /// Blocks that were offered and not written although the rule for admission accepted them.
    pub fn dropped_blocks(&self) -> u64 {
        self.dropped + self.over_rate + self.too_large + self.failed_writes
    }
}
