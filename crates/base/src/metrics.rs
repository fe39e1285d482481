//! Counters, gauges and histograms under HBase's bean and attribute names.
//!
//! A component declares its event counters ([`instruments`](crate::instruments)) and its current
//! values ([`current_values`](crate::current_values)). Each attribute is declared once, with name,
//! kind, unit and meaning. HBase attributes that this server does not have are declared as
//! [`absent`](crate::absent). Counting uses a field of the component: no look-up, no lock, and
//! memory of the counting thread only. The [`Registry`] knows the sources of each [`Bean`]'s
//! attributes and visits them for a reader ([`Reader`]): `/jmx` ([`Jmx`]), `/prometheus`
//! ([`Prometheus`]). Invariants:
//!
//! * readers do not slow down the counting threads;
//! * no lock is held while sources are read;
//! * no NaN or infinity is returned: JSON has none, and HBase shows none.
//!
//! Elsewhere: HTTP queries (`web`), metrics that the server sends (`sinks`).

/// Whether metrics are counted. Only builds with `RUSTFLAGS="--cfg uncounted"` do not count; they
/// measure the cost of counting (bench/counting).
pub const COUNTING: bool = cfg!(not(uncounted));

mod absent;
mod areas;
mod chunks;
mod counter;
mod counts;
mod current_value;
mod declared;
mod histogram;
mod instrument;
mod jmx;
mod macros;
mod meter;
mod prometheus;
mod reader;
mod registry;
#[cfg(test)]
mod testing;

pub use absent::show_absent;
pub use areas::{Count, OwnArea, Zeroed};
pub use chunks::Chunks;
pub use counter::Counter;
pub use counts::Counts;
pub use current_value::{Counted, CurrentValue, Gauge, Tag};
pub use declared::{Declared, Declares, Kind, Unit};
pub use histogram::{Contribution, Histogram, Interval, Snapshot, Value};
pub use instrument::{Instrument, RecordedDuration, Sizes, Times};
pub use jmx::{Jmx, JmxOptions};
pub use meter::{Meter, Rates};
pub use prometheus::{Prometheus, PrometheusOptions};
pub use reader::{Name, Number, Plain, Reader, Scope, Source, TimeTotals};
pub use registry::{Bean, Registry, record_of};
