//! The way of attributes to who looks: names in pieces, so that nobody joins them who need not.

use std::time::Duration;

use crate::metrics::{Declared, Interval};

/// A number as a bean shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole one.
    Int(i64),
    /// One with a fraction; shown with a decimal point.
    Float(f64),
}

impl From<i64> for Number {
    fn from(value: i64) -> Number {
        Number::Int(value)
    }
}

impl From<u64> for Number {
    // Java's longs are signed; a count that outgrows them stays at the top.
    fn from(value: u64) -> Number {
        Number::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Number {
    // No NaN or infinity: JSON has none, and HBase shows none.
    fn from(value: f64) -> Number {
        Number::Float(if value.is_finite() { value } else { 0.0 })
    }
}

/// A value of a bean that is the Java platform's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plain<'a> {
    /// A text.
    Text(&'a str),
    /// A number.
    Number(Number),
    /// Yes or no.
    Flag(bool),
    /// Numbers by name.
    Numbers(&'a [(&'a str, Number)]),
}

/// The name of an attribute: its pieces one behind the other, and what it means.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    /// The table, region, or user that it is about; mostly empty.
    pub prefix: &'a str,
    /// The declared name.
    pub name: &'a str,
    /// Which of a histogram's or meter's attributes it is; else empty.
    pub suffix: &'a str,
    /// What it means.
    pub help: &'static str,
}

impl Name<'_> {
    /// The pieces.
    pub fn pieces(&self) -> [&str; 3] {
        [self.prefix, self.name, self.suffix]
    }

    /// Whether the pieces together are `name`.
    pub fn is(&self, name: &str) -> bool {
        let rest = name.strip_prefix(self.prefix).and_then(|rest| rest.strip_prefix(self.name));
        rest == Some(self.suffix)
    }
}

/// Who looks: takes beans, one behind the other, and the attributes of each.
pub trait Show {
    /// A bean begins: its full name, and the type that it says it is of.
    fn begin(&mut self, bean: &str, modeler_type: &str);
    /// A text; the name is without `tag.`.
    fn tag(&mut self, name: Name<'_>, text: &str);
    /// A number that only grows.
    fn counter(&mut self, name: Name<'_>, value: u64);
    /// A number of this moment.
    fn gauge(&mut self, name: Name<'_>, value: Number);
    /// Times behind the attributes of a histogram, more exactly than these have them: all so far, and those of the last
    /// interval. Mostly nobody's concern.
    fn times(&mut self, _name: Name<'_>, _all: TimesSoFar, _interval: &Interval) {}
    /// A value under its plain name, as beans of a Java platform have them. Only `/jmx` has a place for these.
    fn plain(&mut self, _name: Name<'_>, _value: Plain<'_>) {}
    /// The bean ends.
    fn end(&mut self);
}

/// What is known of all times that a histogram ever noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimesSoFar {
    /// How many there were.
    pub count: u64,
    /// Their sum in microseconds.
    pub sum_us: u64,
}

/// A place in a bean where attributes go.
pub struct Scope<'a> {
    prefix: &'a str,
    now: Duration,
    to: &'a mut dyn Show,
}

impl Scope<'_> {
    /// The attributes of a bean at `now`, a time of the monotonic clock.
    pub fn of(now: Duration, to: &mut dyn Show) -> Scope<'_> {
        Scope { prefix: "", now, to }
    }

    /// Attributes whose names begin with `prefix`, and with nothing before it.
    pub fn named<'b>(&'b mut self, prefix: &'b str) -> Scope<'b> {
        Scope { prefix, now: self.now, to: self.to }
    }

    /// When somebody looks, by the monotonic clock.
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

    /// Shows a number of this moment.
    pub fn gauge(&mut self, declared: &Declared, suffix: &str, value: impl Into<Number>) {
        self.to.gauge(name_of(self.prefix, declared, suffix), value.into());
    }

    /// Shows a value under a plain name.
    pub fn plain(&mut self, name: &str, value: Plain<'_>) {
        self.to.plain(Name { prefix: self.prefix, name, suffix: "", help: "" }, value);
    }

    /// Shows times in microseconds to who wants them so.
    pub fn times(&mut self, declared: &Declared, all: TimesSoFar, interval: &Interval) {
        self.to.times(name_of(self.prefix, declared, ""), all, interval);
    }
}

fn name_of<'a>(prefix: &'a str, declared: &Declared, suffix: &'a str) -> Name<'a> {
    Name { prefix, name: declared.name, suffix, help: declared.help }
}

/// Something that has attributes to show.
pub trait Source: Send + Sync {
    /// Shows them.
    fn show(&self, scope: &mut Scope<'_>);
    /// Ends the interval that its histograms tell of, and begins the next one.
    fn roll(&self) {}
}
