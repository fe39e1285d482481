//! The declaration of an attribute: the single source for documents, descriptions and sinks.

/// Declaration of an attribute of a bean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The bean without the common prefix, for example `RegionServer,sub=Server`.
    pub bean: &'static str,
    /// HBase's name. For attributes of tables and regions, the end of the name.
    pub name: &'static str,
    /// The attribute's behavior, which also determines the names derived from it.
    pub kind: Kind,
    /// Unit of the value.
    pub unit: Unit,
    /// Meaning, in one sentence.
    pub help: &'static str,
}

/// Behavior of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows during the life of the process.
    Counter,
    /// A current value.
    Gauge,
    /// A text, shown as `tag.NAME`.
    Tag,
    /// Distribution of values: `NAME_num_ops` since the start, and `NAME_min`, `_max`, `_mean` and
    /// percentiles of the last interval.
    Histogram,
    /// A histogram of times, with an additional `NAME_TimeRangeCount_A-B` per non-empty range.
    Times,
    /// A histogram of sizes, with an additional `NAME_SizeRangeCount_A-B` per non-empty range.
    Sizes,
    /// Event rate: `NAME_count`, and rates.
    Meter,
}

impl Kind {
    /// The default unit.
    pub const fn unit(self) -> Unit {
        match self {
            Kind::Times => Unit::Milliseconds,
            Kind::Sizes => Unit::Bytes,
            Kind::Meter => Unit::PerSecond,
            Kind::Counter | Kind::Gauge | Kind::Tag | Kind::Histogram => Unit::Count,
        }
    }
}

/// Unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain count, or no unit.
    Count,
    /// Bytes.
    Bytes,
    /// Mebibytes.
    Mebibytes,
    /// Milliseconds.
    Milliseconds,
    /// Average milliseconds, with a fraction.
    AverageMilliseconds,
    /// Milliseconds since the Unix epoch.
    EpochMilliseconds,
    /// Events per second.
    PerSecond,
    /// Percent.
    Percent,
    /// A fraction of one.
    Share,
}

/// A type that declares the bean attributes it shows; see [`instruments`](crate::instruments) and
/// [`current_values`](crate::current_values).
pub trait Declares {
    /// The attributes, in the order in which they are shown.
    const DECLARED: &'static [Declared];
}
