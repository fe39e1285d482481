//! Beans as Hadoop records: a header (context, name, tags) and metrics.
//!
//! A bean may output tags between its metrics, but a sink's line begins with the tags. So metrics
//! are buffered until the bean is complete or the buffer is full. The metrics of ten thousand
//! regions are passed on in parts, with the tags known by then; such beans have no later tags.

use base::metrics::{Name, Number, Reader, record_of};

use crate::filter::Filter;

/// Maximum number of buffered metrics, waiting for later tags: more than any bean has that outputs
/// tags between its metrics.
const METRICS_BUFFERED: usize = 2000;

/// The tag with the component's name.
pub(crate) const CONTEXT: &str = "Context";
/// The tag with the server's name.
pub(crate) const HOSTNAME: &str = "Hostname";

/// The header of a record.
#[derive(Debug, Default)]
pub(crate) struct RecordHeader {
    /// HBase's name of the component, such as `regionserver`.
    pub(crate) context: String,
    /// The record's name, such as `Server`.
    pub(crate) record: String,
    /// The tags, in Hadoop's order.
    pub(crate) tags: Vec<(String, String)>,
}

impl RecordHeader {
    /// The value of a tag.
    pub(crate) fn tag(&self, name: &str) -> Option<&str> {
        self.tags.iter().find(|(of, _)| of == name).map(|(_, text)| text.as_str())
    }
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricKind {
    /// A value that only grows.
    Counter,
    /// A current value.
    Gauge,
}

/// Metrics, with their names in one string.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    names: String,
    // With the end of each name.
    metrics: Vec<(usize, MetricKind, Number)>,
}

impl Metrics {
    /// The name, kind and value of each metric.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, MetricKind, Number)> {
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
pub(crate) struct RecordPart<'a> {
    /// The header of the record.
    pub(crate) head: &'a RecordHeader,
    /// The metrics.
    pub(crate) metrics: &'a Metrics,
    /// Whether this is the first part of the record.
    pub(crate) is_first: bool,
    /// Whether this is the last part of the record.
    pub(crate) is_last: bool,
}

/// Receives records.
pub(crate) trait Records {
    /// Receives a part of a record.
    fn put(&mut self, part: RecordPart<'_>);
}

/// Converts beans to records, restricted to what a filter selects.
pub(crate) struct Collector<'a, R> {
    filter: &'a Filter,
    to: &'a mut R,
    head: RecordHeader,
    // The process's host name. HBase's sources put it after their own tags, Hadoop's around them.
    host: String,
    metrics: Metrics,
    joined: String,
    is_selected: bool,
    has_emitted: bool,
}

impl<'a, R: Records> Collector<'a, R> {
    /// Passes the records that `filter` selects to `to`.
    pub(crate) fn new(filter: &'a Filter, to: &'a mut R) -> Collector<'a, R> {
        Collector {
            filter,
            to,
            head: RecordHeader::default(),
            host: String::new(),
            metrics: Metrics::default(),
            joined: String::new(),
            is_selected: true,
            has_emitted: false,
        }
    }

    fn metric(&mut self, name: Name<'_>, behaviour: MetricKind, value: Number) {
        if !self.is_selected || !self.filter.wants_metric(name.pieces(), &mut self.joined) {
            return;
        }
        name.pieces().iter().for_each(|piece| self.metrics.names.push_str(piece));
        self.metrics.metrics.push((self.metrics.names.len(), behaviour, value));
        if self.metrics.metrics.len() == METRICS_BUFFERED {
            self.emit(false);
        }
    }

    fn emit(&mut self, is_last: bool) {
        if !self.has_emitted {
            self.complete_tags();
        }
        let (head, metrics, is_first) = (&self.head, &self.metrics, !self.has_emitted);
        self.to.put(RecordPart { head, metrics, is_first, is_last });
        self.has_emitted = true;
        self.metrics.clear();
    }

    /// Source: Hadoop adds `Hostname` after all other tags. HBase's sources put `Context` after
    /// their own tags, Hadoop's before them.
    fn complete_tags(&mut self) {
        let context = (CONTEXT.to_owned(), self.head.context.clone());
        let is_hadoops = self.head.record == "JvmMetrics" || self.head.record == "UgiMetrics";
        let at = if is_hadoops { 0 } else { self.head.tags.len() };
        self.head.tags.insert(at, context);
        self.head.tags.push((HOSTNAME.to_owned(), std::mem::take(&mut self.host)));
    }
}

impl<R: Records> Reader for Collector<'_, R> {
    fn begin(&mut self, _: &str, source: &str) {
        self.head.record.clear();
        self.head.record.push_str(record_of(source));
        self.head.context.clear();
        self.head.tags.clear();
        self.metrics.clear();
        (self.is_selected, self.has_emitted) = (true, false);
    }

    fn tag(&mut self, name: Name<'_>, text: &str) {
        if name.is(CONTEXT) {
            self.is_selected = self.filter.wants_context(text);
            self.head.context.push_str(text);
        } else if name.is(HOSTNAME) {
            text.clone_into(&mut self.host);
        } else if !self.has_emitted {
            self.head.tags.push((name.pieces().concat(), text.to_owned()));
        }
    }

    fn counter(&mut self, name: Name<'_>, value: u64) {
        self.metric(name, MetricKind::Counter, value.into());
    }

    fn gauge(&mut self, name: Name<'_>, value: Number) {
        self.metric(name, MetricKind::Gauge, value);
    }

    fn end(&mut self) {
        // A record without selected metrics is omitted.
        if self.is_selected && (self.has_emitted || !self.metrics.metrics.is_empty()) {
            self.emit(true);
        }
    }
}

/// Writes a number as HBase's sinks do: a floating-point number has a decimal point.
pub(crate) fn put_number(out: &mut Vec<u8>, number: Number) {
    use std::io::Write;
    let written = match number {
        Number::Int(value) => write!(out, "{value}"),
        Number::Float(value) => write!(out, "{value:?}"),
    };
    written.expect("writing to memory cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bean, name};

    /// Parts as strings.
    #[derive(Default)]
    struct RecordLines(Vec<String>);

    impl Records for RecordLines {
        fn put(&mut self, part: RecordPart<'_>) {
            let RecordPart { head, metrics, is_first, is_last } = part;
            let metrics: Vec<_> =
                metrics.iter().map(|(name, of, value)| format!("{name} {of:?} {value:?}")).collect();
            let metrics_text = if metrics.len() > 3 { metrics.len().to_string() } else { metrics.join("; ") };
            let tags: Vec<_> = head.tags.iter().map(|(name, text)| format!("{name}={text}")).collect();
            let tags = tags.join(",");
            self.0
                .push(format!("{}.{} {tags} {metrics_text} {is_first} {is_last}", head.context, head.record));
        }
    }

    fn record_lines(filter: &Filter, show: impl FnOnce(&mut dyn Reader)) -> Vec<String> {
        let mut record_lines = RecordLines::default();
        show(&mut Collector::new(filter, &mut record_lines));
        record_lines.0
    }

    #[test]
    fn tags_are_in_hadoops_order_for_every_bean() {
        let filter = Filter::default();
        let of_server = record_lines(&filter, |to| {
            bean(to, "RegionServer,sub=Server", "regionserver", |to| {
                to.counter(name("calls"), 3);
                to.tag(name("serverName"), "h,1,2");
                to.gauge(name("load"), 1.5.into());
            });
        });
        let expected = "regionserver.Server serverName=h,1,2,Context=regionserver,Hostname=host.domain \
                        calls Counter Int(3); load Gauge Float(1.5) true true";
        assert_eq!(of_server, [expected]);
        let of_process = record_lines(&filter, |to| {
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
    fn filtered_metrics_are_omitted() {
        let mut filter = Filter { context: Some("master".into()), ..Filter::default() };
        let both = |to: &mut dyn Reader| {
            bean(to, "RegionServer,sub=Server", "regionserver", |to| to.counter(name("a"), 1));
            bean(to, "Master,sub=Server", "master", |to| to.counter(name("a"), 1));
        };
        let tags = "Context=master,Hostname=host.domain";
        assert_eq!(record_lines(&filter, both), [format!("master.Server {tags} a Counter Int(1) true true")]);
        filter.metrics.exclude = Some(crate::filter::glob("a").unwrap());
        assert!(record_lines(&filter, both).is_empty(), "no record without metrics");
    }

    #[test]
    fn very_many_metrics_are_split_into_records() {
        let filter = Filter::default();
        let metrics_text = record_lines(&filter, |to| {
            bean(to, "RegionServer,sub=Regions", "regionserver", |to| {
                (0..METRICS_BUFFERED + 4).for_each(|_| to.counter(name("a"), 1));
            });
        });
        let head = "regionserver.Regions Context=regionserver,Hostname=host.domain";
        assert_eq!(
            metrics_text,
            [format!("{head} {METRICS_BUFFERED} true false"), format!("{head} 4 false true")]
        );
    }
}
