//! What an attribute is, said once: documents, descriptions and every sink go by it.

/// An attribute of a bean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The bean without what all have in common: `RegionServer,sub=Server`.
    pub bean: &'static str,
    /// HBase's name; of an attribute that there is for each table or region, its end.
    pub name: &'static str,
    /// How it behaves, and what is made of its name.
    pub kind: Kind,
    /// What is counted.
    pub unit: Unit,
    /// What it means, in a sentence.
    pub help: &'static str,
}

/// How an attribute behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows while the process lives.
    Counter,
    /// A number of this moment.
    Gauge,
    /// A text, shown as `tag.NAME`.
    Tag,
    /// How values are spread: `NAME_num_ops` of all time, and `NAME_min`, `_max`, `_mean`, percentiles of the last interval.
    Histogram,
    /// The same of times, with `NAME_TimeRangeCount_A-B` for the ranges that had any.
    Times,
    /// The same of sizes, with `NAME_SizeRangeCount_A-B`.
    Sizes,
    /// How often something happens: `NAME_count`, and rates.
    Meter,
}

impl Kind {
    /// What is counted if nothing else is said.
    pub const fn unit(self) -> Unit {
        match self {
            Kind::Times => Unit::Milliseconds,
            Kind::Sizes => Unit::Bytes,
            Kind::Meter => Unit::PerSecond,
            Kind::Counter | Kind::Gauge | Kind::Tag | Kind::Histogram => Unit::Count,
        }
    }
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things, or no unit at all.
    Count,
    /// Bytes.
    Bytes,
    /// Mebibytes.
    Mebibytes,
    /// Milliseconds.
    Milliseconds,
    /// Milliseconds on average, with a fraction.
    AverageMilliseconds,
    /// Milliseconds since the Unix epoch.
    EpochMilliseconds,
    /// Things a second.
    PerSecond,
    /// Hundredths.
    Percent,
    /// A share of one.
    Share,
}

/// What is shown in a bean, by a declaration of the attributes it has; see [`instruments`](crate::instruments) and
/// [`figures`](crate::figures).
pub trait Declares {
    /// Its attributes, in the order in which they are shown.
    const DECLARED: &'static [Declared];
}
