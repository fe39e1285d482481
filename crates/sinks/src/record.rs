//! Beans as Hadoop's records: a head (context, name, tags) and metrics.
//!
//! A bean's tags may stand in the midst of its metrics, and a line of a sink begins with them: metrics are kept until
//! the bean is whole, or until there are very many. Those of ten thousand regions are handed on in parts, with the
//! tags known by then, which are all that they have.

use base::metrics::{Name, Number, Show, record_of};

use crate::filter::Filter;

/// Metrics kept until the tags behind them are known: more than any bean has that has tags in its midst.
const METRICS_KEPT: usize = 2000;

/// The tag with the component's name.
pub(crate) const CONTEXT: &str = "Context";
/// The tag with the server's name.
pub(crate) const HOSTNAME: &str = "Hostname";

/// What a record says of itself.
#[derive(Debug, Default)]
pub(crate) struct Head {
    /// HBase's name of the component, as `regionserver`.
    pub(crate) context: String,
    /// As `Server`.
    pub(crate) record: String,
    /// In Hadoop's order.
    pub(crate) tags: Vec<(String, String)>,
}

impl Head {
    /// The text of a tag.
    pub(crate) fn tag(&self, name: &str) -> Option<&str> {
        self.tags.iter().find(|(of, _)| of == name).map(|(_, text)| text.as_str())
    }
}

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// It only grows.
    Counter,
    /// It is of this moment.
    Gauge,
}

/// Metrics, their names in one text.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    names: String,
    // Where each name ends.
    metrics: Vec<(usize, Behaviour, Number)>,
}

impl Metrics {
    /// Name, behaviour and value of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Behaviour, Number)> {
        let mut begin = 0;
        self.metrics.iter().map(move |(end, behaviour, value)| {
            let name = &self.names[std::mem::replace(&mut begin, *end)..*end];
            (name, *behaviour, *value)
        })
    }

    fn clear(&mut self) {
        self.names.clear();
        self.metrics.clear();
    }
}

/// A record or a part of it.
pub(crate) struct Part<'a> {
    /// Whose metrics they are.
    pub(crate) head: &'a Head,
    /// The metrics.
    pub(crate) metrics: &'a Metrics,
    /// Nothing of this record came before.
    pub(crate) is_first: bool,
    /// Nothing follows.
    pub(crate) is_last: bool,
}

/// Who takes records.
pub(crate) trait Records {
    /// Takes a part of one.
    fn put(&mut self, part: Part<'_>);
}

/// Makes records of beans, of what a filter lets through.
pub(crate) struct Collector<'a, R> {
    filter: &'a Filter,
    to: &'a mut R,
    head: Head,
    // Of the process; they stand behind the source's own in HBase's sources, and around them in Hadoop's.
    host: String,
    metrics: Metrics,
    joined: String,
    is_wanted: bool,
    is_begun: bool,
}

impl<'a, R: Records> Collector<'a, R> {
    /// Hands on to `to` what `filter` wants.
    pub(crate) fn new(filter: &'a Filter, to: &'a mut R) -> Collector<'a, R> {
        Collector {
            filter,
            to,
            head: Head::default(),
            host: String::new(),
            metrics: Metrics::default(),
            joined: String::new(),
            is_wanted: true,
            is_begun: false,
        }
    }

    fn metric(&mut self, name: Name<'_>, behaviour: Behaviour, value: Number) {
        if !self.is_wanted || !self.filter.wants_metric(name.pieces(), &mut self.joined) {
            return;
        }
        name.pieces().iter().for_each(|piece| self.metrics.names.push_str(piece));
        self.metrics.metrics.push((self.metrics.names.len(), behaviour, value));
        if self.metrics.metrics.len() == METRICS_KEPT {
            self.hand_on(false);
        }
    }

    fn hand_on(&mut self, is_last: bool) {
        if !self.is_begun {
            self.complete_tags();
        }
        let (head, metrics, is_first) = (&self.head, &self.metrics, !self.is_begun);
        self.to.put(Part { head, metrics, is_first, is_last });
        self.is_begun = true;
        self.metrics.clear();
    }

    /// Source: Hadoop adds `Hostname` behind all others. HBase's sources have `Context` behind their own, Hadoop's
    /// before them.
    fn complete_tags(&mut self) {
        let context = (CONTEXT.to_owned(), self.head.context.clone());
        let is_of_hadoop = self.head.record == "JvmMetrics" || self.head.record == "UgiMetrics";
        let at = if is_of_hadoop { 0 } else { self.head.tags.len() };
        self.head.tags.insert(at, context);
        self.head.tags.push((HOSTNAME.to_owned(), std::mem::take(&mut self.host)));
    }
}

impl<R: Records> Show for Collector<'_, R> {
    fn begin(&mut self, _: &str, source: &str) {
        self.head.record.clear();
        self.head.record.push_str(record_of(source));
        self.head.context.clear();
        self.head.tags.clear();
        self.metrics.clear();
        (self.is_wanted, self.is_begun) = (true, false);
    }

    fn tag(&mut self, name: Name<'_>, text: &str) {
        if name.is(CONTEXT) {
            self.is_wanted = self.filter.wants_context(text);
            self.head.context.push_str(text);
        } else if name.is(HOSTNAME) {
            text.clone_into(&mut self.host);
        } else if !self.is_begun {
            self.head.tags.push((name.pieces().concat(), text.to_owned()));
        }
    }

    fn counter(&mut self, name: Name<'_>, value: u64) {
        self.metric(name, Behaviour::Counter, value.into());
    }

    fn gauge(&mut self, name: Name<'_>, value: Number) {
        self.metric(name, Behaviour::Gauge, value);
    }

    fn end(&mut self) {
        // A record of which nothing is wanted says nothing.
        if self.is_wanted && (self.is_begun || !self.metrics.metrics.is_empty()) {
            self.hand_on(true);
        }
    }
}

/// Writes a number as HBase's sinks do: one with a fraction has a point.
pub(crate) fn put_number(out: &mut Vec<u8>, number: Number) {
    use std::io::Write;
    let written = match number {
        Number::Int(value) => write!(out, "{value}"),
        Number::Float(value) => write!(out, "{value:?}"),
    };
    written.expect("memory takes what is written");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bean, name};

    /// Parts as texts.
    #[derive(Default)]
    struct Seen(Vec<String>);

    impl Records for Seen {
        fn put(&mut self, part: Part<'_>) {
            let Part { head, metrics, is_first, is_last } = part;
            let metrics: Vec<_> =
                metrics.iter().map(|(name, of, value)| format!("{name} {of:?} {value:?}")).collect();
            let shown = if metrics.len() > 3 { metrics.len().to_string() } else { metrics.join("; ") };
            let tags: Vec<_> = head.tags.iter().map(|(name, text)| format!("{name}={text}")).collect();
            let tags = tags.join(",");
            self.0.push(format!("{}.{} {tags} {shown} {is_first} {is_last}", head.context, head.record));
        }
    }

    fn seen(filter: &Filter, show: impl FnOnce(&mut dyn Show)) -> Vec<String> {
        let mut seen = Seen::default();
        show(&mut Collector::new(filter, &mut seen));
        seen.0
    }

    #[test]
    fn tags_stand_in_hadoops_order_whatever_a_bean_does() {
        let filter = Filter::default();
        let of_server = seen(&filter, |to| {
            bean(to, "RegionServer,sub=Server", "regionserver", |to| {
                to.counter(name("calls"), 3);
                to.tag(name("serverName"), "h,1,2");
                to.gauge(name("load"), 1.5.into());
            });
        });
        let expected = "regionserver.Server serverName=h,1,2,Context=regionserver,Hostname=host.domain \
                        calls Counter Int(3); load Gauge Float(1.5) true true";
        assert_eq!(of_server, [expected]);
        let of_process = seen(&filter, |to| {
            bean(to, "JvmMetrics", "jvm", |to| {
                to.tag(name("ProcessName"), "Master");
                to.gauge(name("m"), 1_u64.into());
            });
        });
        let expected =
            "jvm.JvmMetrics Context=jvm,ProcessName=Master,Hostname=host.domain m Gauge Int(1) true true";
        assert_eq!(of_process, [expected]);
    }

    #[test]
    fn what_is_not_wanted_is_left_out() {
        let mut filter = Filter { context: Some("master".into()), ..Filter::default() };
        let both = |to: &mut dyn Show| {
            bean(to, "RegionServer,sub=Server", "regionserver", |to| to.counter(name("a"), 1));
            bean(to, "Master,sub=Server", "master", |to| to.counter(name("a"), 1));
        };
        let tags = "Context=master,Hostname=host.domain";
        assert_eq!(seen(&filter, both), [format!("master.Server {tags} a Counter Int(1) true true")]);
        filter.metrics.exclude = Some(crate::filter::glob("a").unwrap());
        assert!(seen(&filter, both).is_empty(), "no record without metrics");
    }

    #[test]
    fn very_many_metrics_come_in_parts() {
        let filter = Filter::default();
        let shown = seen(&filter, |to| {
            bean(to, "RegionServer,sub=Regions", "regionserver", |to| {
                (0..METRICS_KEPT + 4).for_each(|_| to.counter(name("a"), 1));
            });
        });
        let head = "regionserver.Regions Context=regionserver,Hostname=host.domain";
        assert_eq!(shown, [format!("{head} {METRICS_KEPT} true false"), format!("{head} 4 false true")]);
    }
}
