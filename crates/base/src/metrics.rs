//! Counters, gauges and histograms under HBase's bean and attribute names.
//!
//! A component declares what it counts ([`instruments`](crate::instruments)) and what it has to say of a moment
//! ([`figures`](crate::figures)), each attribute once: its name, kind, unit and meaning; what HBase has and this server has
//! not, it declares too ([`absent`](crate::absent)). It counts where things happen, by
//! a field and without a look-up; nothing there locks, and each thread counts in memory of its own. The [`Registry`] knows whose attributes a
//! [`Bean`] has, and goes through them for whoever looks ([`Show`]): `/jmx` ([`Jmx`]), `/prometheus` ([`Prometheus`]).
//! Invariants:
//!
//! * what looks costs those nothing who count;
//! * sources are asked without a lock held;
//! * no NaN or infinity leaves here: JSON has none, and HBase shows none.
//!
//! Not here: queries (`web`), what is sent without being asked for (`sinks`).

/// Whether anything is counted: in every build but those of `RUSTFLAGS="--cfg uncounted"`, which are made to see what counting
/// costs (bench/counting).
pub const COUNTING: bool = cfg!(not(uncounted));

mod absent;
mod areas;
mod chunks;
mod counter;
mod counts;
mod declared;
mod figure;
mod histogram;
mod instrument;
mod jmx;
mod macros;
mod meter;
mod prometheus;
mod registry;
mod show;
#[cfg(test)]
mod testing;

pub use absent::show_absent;
pub use areas::{Count, OwnArea, Zeroed};
pub use chunks::Chunks;
pub use counter::Counter;
pub use counts::Counts;
pub use declared::{Declared, Declares, Kind, Unit};
pub use figure::{Counted, Figure, Gauge, Tag};
pub use histogram::{Histogram, Interval, Snapshot, Told, Value};
pub use instrument::{Instrument, Sizes, Times, Took};
pub use jmx::{Jmx, JmxOptions};
pub use meter::{Meter, Rates};
pub use prometheus::{Prometheus, PrometheusOptions};
pub use registry::{Bean, Registry, record_of};
pub use show::{Name, Number, Plain, Scope, Show, Source, TimesSoFar};
