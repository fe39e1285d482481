//! The interface between attributes and their readers. Names are passed in pieces, so that only
//! readers that need whole names join them.

use std::time::Duration;

use crate::metrics::{Declared, Interval};

/// A number in a bean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer.
    Int(i64),
    /// A number with a fraction; shown with a decimal point.
    Float(f64),
}

impl From<i64> for Number {
    fn from(value: i64) -> Number {
        Number::Int(value)
    }
}

impl From<u64> for Number {
    // Java's longs are signed; larger counts saturate.
    fn from(value: u64) -> Number {
        Number::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Number {
    // NaN and infinity become 0: JSON has neither, and HBase shows neither.
    fn from(value: f64) -> Number {
        Number::Float(if value.is_finite() { value } else { 0.0 })
    }
}

/// A value of a Java platform bean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plain<'a> {
    /// A text.
    Text(&'a str),
    /// A number.
    Number(Number),
    /// A boolean.
    Flag(bool),
    /// Named numbers.
    Numbers(&'a [(&'a str, Number)]),
}

/// The name of an attribute in pieces, and its meaning.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    /// The table, region, or user of the attribute; usually empty.
    pub prefix: &'a str,
    /// The declared name.
    pub name: &'a str,
    /// The suffix of a histogram's or meter's attribute; empty for other kinds.
    pub suffix: &'a str,
    /// Meaning of the attribute.
    pub help: &'static str,
}

impl Name<'_> {
    /// The pieces in order.
    pub fn pieces(&self) -> [&str; 3] {
        [self.prefix, self.name, self.suffix]
    }

    /// Whether the joined pieces equal `name`.
    pub fn is(&self, name: &str) -> bool {
        let rest = name.strip_prefix(self.prefix).and_then(|rest| rest.strip_prefix(self.name));
        rest == Some(self.suffix)
    }
}

/// A reader: receives beans in sequence, and the attributes of each.
pub trait Reader {
    /// Begins a bean with its full name and its modeler type.
    fn begin(&mut self, bean: &str, modeler_type: &str);
    /// A text attribute; the name is without `tag.`.
    fn tag(&mut self, name: Name<'_>, text: &str);
    /// A number that only grows.
    fn counter(&mut self, name: Name<'_>, value: u64);
    /// A current value.
    fn gauge(&mut self, name: Name<'_>, value: Number);
    /// The times of a histogram with their full precision: all times so far, and those of the last
    /// interval. Most readers ignore this.
    fn times(&mut self, _name: Name<'_>, _all: TimeTotals, _interval: &Interval) {}
    /// A value under its plain name, as in Java platform beans. Only `/jmx` shows these.
    fn plain(&mut self, _name: Name<'_>, _value: Plain<'_>) {}
    /// Ends the bean.
    fn end(&mut self);
}

/// Totals of all times that a histogram ever recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeTotals {
    /// Number of times.
    pub count: u64,
    /// Sum in microseconds.
    pub sum_us: u64,
}

/// Writes attributes of a bean to a reader.
pub struct Scope<'a> {
    prefix: &'a str,
    now: Duration,
    to: &'a mut dyn Reader,
}

impl Scope<'_> {
    /// Attributes of a bean at `now` on the monotonic clock.
    pub fn of(now: Duration, to: &mut dyn Reader) -> Scope<'_> {
        Scope { prefix: "", now, to }
    }

    /// A scope whose attribute names get the prefix `prefix`, which replaces any other prefix.
    pub fn named<'b>(&'b mut self, prefix: &'b str) -> Scope<'b> {
        Scope { prefix, now: self.now, to: self.to }
    }

    /// Time of the read, on the monotonic clock.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Shows a text.
    pub fn tag(&mut self, declared: &Declared, text: &str) {
        self.to.tag(name_of(self.prefix, declared, ""), text);
    }

    /// Shows a number that only grows.
    pub fn counter(&mut self, declared: &Declared, suffix: &str, value: u64) {
        self.to.counter(name_of(self.prefix, declared, suffix), value);
    }

    /// Shows a current value.
    pub fn gauge(&mut self, declared: &Declared, suffix: &str, value: impl Into<Number>) {
        self.to.gauge(name_of(self.prefix, declared, suffix), value.into());
    }

    /// Shows a value under a plain name.
    pub fn plain(&mut self, name: &str, value: Plain<'_>) {
        self.to.plain(Name { prefix: self.prefix, name, suffix: "", help: "" }, value);
    }

    /// Shows times in microseconds to readers that support them.
    pub fn times(&mut self, declared: &Declared, all: TimeTotals, interval: &Interval) {
        self.to.times(name_of(self.prefix, declared, ""), all, interval);
    }
}

fn name_of<'a>(prefix: &'a str, declared: &Declared, suffix: &'a str) -> Name<'a> {
    Name { prefix, name: declared.name, suffix, help: declared.help }
}

/// A source of attributes.
pub trait Source: Send + Sync {
    /// Shows the attributes.
    fn show(&self, scope: &mut Scope<'_>);
    /// Ends the current interval of its histograms and begins the next one.
    fn roll(&self) {}
}
