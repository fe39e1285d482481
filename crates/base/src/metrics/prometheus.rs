//! Beans as the text that Prometheus reads, with names as HBase 2.6 makes them for its `/prometheus`.

use std::io::Write;

use crate::metrics::{Name, Number, Show};

/// What of the beans is wanted.
#[derive(Clone, Debug, Default)]
pub struct PrometheusOptions {
    /// Only metrics whose names have this in them.
    pub containing: Option<String>,
    /// What each means goes with it.
    pub descriptions: bool,
}

/// Writes what it is shown, a bean at a time: all of its tags are labels of each of its metrics.
#[derive(Debug)]
pub struct Prometheus {
    options: PrometheusOptions,
    out: Vec<u8>,
    /// How names of the bean's metrics begin.
    prefix: String,
    labels: Vec<u8>,
    metrics: Vec<Metric>,
}

/// A metric whose bean is not whole yet.
#[derive(Debug)]
struct Metric {
    name: String,
    kind: &'static str,
    value: Number,
    help: &'static str,
}

impl Prometheus {
    /// An answer without metrics.
    pub fn new(options: PrometheusOptions) -> Prometheus {
        Prometheus { options, out: vec![], prefix: String::new(), labels: vec![], metrics: vec![] }
    }

    /// The answer.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }

    fn metric(&mut self, name: Name<'_>, kind: &'static str, value: Number) {
        let mut metric = Metric { name: self.prefix.clone(), kind, value, help: name.help };
        put_name(&mut metric.name, name.pieces().iter().flat_map(|piece| piece.chars()));
        if self.options.containing.as_ref().is_none_or(|part| metric.name.contains(part)) {
            self.metrics.push(metric);
        }
    }
}

impl Show for Prometheus {
    fn begin(&mut self, _: &str, record: &str) {
        self.prefix.clear();
        put_name(&mut self.prefix, source_of(record).chars());
        self.prefix.push('_');
    }

    fn tag(&mut self, name: Name<'_>, text: &str) {
        if !self.labels.is_empty() {
            self.labels.push(b',');
        }
        let pieces = name.pieces();
        pieces
            .iter()
            .for_each(|piece| self.labels.extend(piece.bytes().map(|byte| byte.to_ascii_lowercase())));
        self.labels.extend_from_slice(b"=\"");
        for byte in text.bytes() {
            match byte {
                b'\n' => self.labels.extend_from_slice(b"\\n"),
                b'"' | b'\\' => self.labels.extend([b'\\', byte]),
                byte => self.labels.push(byte),
            }
        }
        self.labels.push(b'"');
    }

    fn counter(&mut self, name: Name<'_>, value: u64) {
        self.metric(name, "counter", value.into());
    }

    fn gauge(&mut self, name: Name<'_>, value: Number) {
        self.metric(name, "gauge", value);
    }

    fn end(&mut self) {
        for Metric { name, kind, value, help } in self.metrics.drain(..) {
            if self.options.descriptions && !help.is_empty() {
                put(&mut self.out, format_args!("# HELP {name} {help}\n"));
            }
            put(&mut self.out, format_args!("# TYPE {name} {kind}\n{name}{{"));
            self.out.extend_from_slice(&self.labels);
            match value {
                Number::Int(value) => put(&mut self.out, format_args!("}} {value}\n")),
                Number::Float(value) => put(&mut self.out, format_args!("}} {value:?}\n")),
            }
        }
        self.labels.clear();
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("memory takes what is written");
}

/// What HBase names a bean's source: its part, but a server's calls by the server, and `MetricsSystem`.
fn source_of(record: &str) -> &str {
    match record.split_once(",sub=") {
        Some((server, "IPC")) => server,
        Some(("MetricsSystem", _)) => "MetricsSystem",
        Some((_, part)) => part,
        None => record,
    }
}

/// Words of `name`, which begin with capitals, in small letters with underscores between; what no name may have is one too.
fn put_name(out: &mut String, name: impl Iterator<Item = char> + Clone) {
    let mut next = name.clone().skip(1);
    // Of a name that begins in small letters HBase makes the first a capital one: no other word.
    let mut before = '_';
    for letter in name {
        let next = next.next();
        let begins_word = letter.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || before.is_ascii_uppercase() && next.is_some_and(|next| next.is_ascii_lowercase()));
        let letter = if letter.is_ascii_alphanumeric() { letter } else { '_' };
        if begins_word || letter == '_' && before != '_' {
            out.push('_');
        }
        if letter != '_' {
            out.push(letter.to_ascii_lowercase());
        }
        before = letter;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &'static str, suffix: &'static str) -> Name<'static> {
        Name { prefix: "", name, suffix, help: "What it is." }
    }

    #[test]
    fn names_are_those_of_hbase_2_6() {
        // As a running one has them.
        for (attribute, metric) in [
            ("l1CacheFreeSize", "l1cache_free_size"),
            ("ritCount", "rit_count"),
            ("source.shippedKBs", "source_shipped_k_bs"),
            ("sink.appliedHFiles", "sink_applied_h_files"),
            ("mutationsWithoutWALCount", "mutations_without_wal_count"),
            ("exceptions.RegionTooBusyException", "exceptions_region_too_busy_exception"),
            ("AppendSize_99.9th_percentile", "append_size_99_9th_percentile"),
            ("master:store.appendCount", "master_store_append_count"),
            (
                "Namespace_hbase_table_meta_region_1588230740_metric_maxCompactionQueueSize",
                "namespace_hbase_table_meta_region_1588230740_metric_max_compaction_queue_size",
            ),
        ] {
            let mut made = String::new();
            put_name(&mut made, attribute.chars());
            assert_eq!(made, metric);
        }
        let sources =
            ["RegionServer,sub=WAL", "RegionServer,sub=IPC", "MetricsSystem,sub=Stats", "JvmMetrics"];
        assert_eq!(sources.map(source_of), ["WAL", "RegionServer", "MetricsSystem", "JvmMetrics"]);
    }

    fn shown(options: PrometheusOptions) -> String {
        let mut prometheus = Prometheus::new(options);
        prometheus
            .begin("Hadoop:service=HBase,name=Master,sub=AssignmentManager", "Master,sub=AssignmentManager");
        prometheus.tag(name("Context", ""), "mas\"ter\n");
        prometheus.counter(name("operationCount", ""), 7);
        prometheus.gauge(name("OpenTime", "_mean"), 1.5.into());
        prometheus.tag(name("Hostname", ""), "vm");
        prometheus.end();
        prometheus.begin("b", "JvmMetrics");
        prometheus.gauge(name("GcCount", ""), 0_u64.into());
        prometheus.end();
        String::from_utf8(prometheus.finish()).unwrap()
    }

    #[test]
    fn each_metric_has_its_type_and_the_tags_of_its_bean() {
        let labels = "{context=\"mas\\\"ter\\n\",hostname=\"vm\"}";
        let expected = format!(
            "# TYPE assignment_manager_operation_count counter\nassignment_manager_operation_count{labels} 7\n\
             # TYPE assignment_manager_open_time_mean gauge\nassignment_manager_open_time_mean{labels} 1.5\n\
             # TYPE jvm_metrics_gc_count gauge\njvm_metrics_gc_count{{}} 0\n"
        );
        assert_eq!(shown(PrometheusOptions::default()), expected);
    }

    #[test]
    fn what_is_wanted_is_shown_with_what_it_means() {
        let options = PrometheusOptions { containing: Some("gc_".into()), descriptions: true };
        let expected = "# HELP jvm_metrics_gc_count What it is.\n# TYPE jvm_metrics_gc_count gauge\n\
                        jvm_metrics_gc_count{} 0\n";
        assert_eq!(shown(options), expected);
    }
}
