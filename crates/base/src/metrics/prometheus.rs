//! Beans in Prometheus's text format, with the names of HBase 2.6's `/prometheus`.
//!
//! HBase reports times in whole milliseconds, which is too coarse for shorter times. So times are
//! also reported as summaries in seconds, under names that begin with `grampus_`.

use std::io::Write;

use crate::metrics::{Chunks, Interval, Name, Number, Reader, TimeTotals, record_of};

/// Options of a `/prometheus` query.
#[derive(Clone, Debug, Default)]
pub struct PrometheusOptions {
    /// Show only metrics whose names contain this text.
    pub containing: Option<String>,
    /// Show the description of each metric.
    pub descriptions: bool,
}

/// Writes beans; the tags of a bean become labels of all its metrics.
pub struct Prometheus {
    options: PrometheusOptions,
    out: Chunks,
    /// Prefix of the names of the bean's metrics.
    prefix: String,
    labels: Vec<u8>,
    metrics: Vec<Metric>,
    summaries: Vec<Summary>,
    /// Whether the current bean is one of several instances of its record.
    is_instance: bool,
    /// The metrics of the instances so far. The format requires that all samples of a metric are
    /// together.
    families: Vec<Family>,
}

/// A metric of several beans that is not written yet.
#[derive(Debug)]
struct Family {
    name: String,
    kind: &'static str,
    help: &'static str,
    samples: Vec<u8>,
}

/// A metric of the current bean that is not written yet.
#[derive(Debug)]
struct Metric {
    name: String,
    kind: &'static str,
    value: Number,
    help: &'static str,
}

/// Times of the current bean that are not written yet.
#[derive(Debug)]
struct Summary {
    name: String,
    help: &'static str,
    // Quantiles with their values in seconds.
    quantiles: [(&'static str, f64); QUANTILES.len()],
    sum_s: f64,
    count: u64,
}

/// The quantiles of summaries.
const QUANTILES: [(&str, f64); 6] =
    [("0.5", 0.5), ("0.9", 0.9), ("0.95", 0.95), ("0.99", 0.99), ("0.999", 0.999), ("1", 1.0)];

/// Metrics buffered until the following tags are known. This is more than any bean has that has
/// tags among its metrics, and few compared with the metrics of ten thousand regions.
const METRICS_BUFFERED_MAX: usize = 2000;

/// Prefix of names that HBase does not have.
const OWN: &str = "grampus_";

const SECOND_US: f64 = 1e6;

impl Prometheus {
    /// A response without metrics, written to `out`.
    pub fn new(options: PrometheusOptions, out: Chunks) -> Prometheus {
        Prometheus {
            options,
            out,
            prefix: String::new(),
            labels: vec![],
            metrics: vec![],
            summaries: vec![],
            is_instance: false,
            families: vec![],
        }
    }

    /// Completes the response.
    pub fn finish(mut self) {
        self.put_families();
        self.out.finish();
    }

    fn metric(&mut self, name: Name<'_>, kind: &'static str, value: Number) {
        let help = name.help;
        let name = self.name_of(name);
        if self.wants(&name) {
            self.metrics.push(Metric { name, kind, value, help });
        }
        if self.metrics.len() == METRICS_BUFFERED_MAX && !self.is_instance {
            self.put_metrics();
        }
    }

    fn name_of(&self, name: Name<'_>) -> String {
        let mut made = self.prefix.clone();
        put_name(&mut made, name.pieces().iter().flat_map(|piece| piece.chars()));
        made
    }

    fn wants(&self, name: &str) -> bool {
        self.options.containing.as_ref().is_none_or(|part| name.contains(part))
    }

    /// Adds the buffered metrics of an instance to those of the other instances.
    fn add_to_families(&mut self) {
        for Metric { name, kind, value, help } in self.metrics.drain(..) {
            let at = self.families.iter().position(|family| family.name == name);
            let at = at.unwrap_or_else(|| {
                self.families.push(Family { name, kind, help, samples: vec![] });
                self.families.len() - 1
            });
            let Family { name, samples, .. } = &mut self.families[at];
            put_sample(samples, name, &self.labels, None, value);
        }
    }

    /// Writes the metrics of the instances of a record.
    fn put_families(&mut self) {
        for Family { name, kind, help, samples } in std::mem::take(&mut self.families) {
            self.put_head(&name, kind, help);
            self.out.text.extend_from_slice(&samples);
            self.out.emit_full();
        }
    }

    /// Writes the buffered metrics, with the labels known so far.
    fn put_metrics(&mut self) {
        let mut metrics = std::mem::take(&mut self.metrics);
        for Metric { name, kind, value, help } in metrics.drain(..) {
            self.put_head(&name, kind, help);
            put_sample(&mut self.out.text, &name, &self.labels, None, value);
            self.out.emit_full();
        }
        self.metrics = metrics;
    }

    /// Writes the description and the type of a metric.
    fn put_head(&mut self, name: &str, kind: &str, help: &str) {
        if self.options.descriptions && !help.is_empty() {
            put(&mut self.out.text, format_args!("# HELP {name} {help}\n"));
        }
        put(&mut self.out.text, format_args!("# TYPE {name} {kind}\n"));
    }
}

impl Reader for Prometheus {
    fn begin(&mut self, bean: &str, record: &str) {
        self.is_instance = bean.split_once(record).is_some_and(|(_, rest)| rest.starts_with(','));
        if !self.is_instance {
            self.put_families();
        }
        self.prefix.clear();
        put_name(&mut self.prefix, record_of(record).chars());
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

    fn times(&mut self, name: Name<'_>, all: TimeTotals, interval: &Interval) {
        // The times of tables and regions would be too many, and have the table or region in their
        // names instead of in labels.
        if !name.prefix.is_empty() {
            return;
        }
        let help = name.help;
        let name = format!("{OWN}{}_seconds", self.name_of(name));
        if self.wants(&name) {
            let quantiles =
                QUANTILES.map(|(label, share)| (label, interval.quantile(share) as f64 / SECOND_US));
            let sum_s = all.sum_us as f64 / SECOND_US;
            self.summaries.push(Summary { name, help, quantiles, sum_s, count: all.count });
        }
    }

    fn end(&mut self) {
        match self.is_instance {
            true => self.add_to_families(),
            false => self.put_metrics(),
        }
        for Summary { name, help, quantiles, sum_s, count } in std::mem::take(&mut self.summaries) {
            self.put_head(&name, "summary", help);
            let out = &mut self.out.text;
            for (share, seconds) in quantiles {
                put_sample(out, &name, &self.labels, Some(("quantile", share)), seconds.into());
            }
            put_sample(out, &format!("{name}_sum"), &self.labels, None, sum_s.into());
            put_sample(out, &format!("{name}_count"), &self.labels, None, count.into());
        }
        self.labels.clear();
    }
}

/// Writes one value, with the labels of the bean and an optional additional label.
fn put_sample(out: &mut Vec<u8>, name: &str, labels: &[u8], label: Option<(&str, &str)>, value: Number) {
    put(out, format_args!("{name}{{"));
    out.extend_from_slice(labels);
    if let Some((label, of)) = label {
        let between = if labels.is_empty() { "" } else { "," };
        put(out, format_args!("{between}{label}=\"{of}\""));
    }
    match value {
        Number::Int(value) => put(out, format_args!("}} {value}\n")),
        Number::Float(value) => put(out, format_args!("}} {value:?}\n")),
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory cannot fail");
}

/// Converts `name` to snake case: a capital letter begins a word, and each invalid character
/// becomes an underscore.
fn put_name(out: &mut String, name: impl Iterator<Item = char> + Clone) {
    let mut next = name.clone().skip(1);
    // HBase capitalizes the first letter of a name that begins in lower case, which begins no
    // additional word.
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
    use crate::metrics::testing::text_of;

    fn name(name: &'static str, suffix: &'static str) -> Name<'static> {
        Name { prefix: "", name, suffix, help: "What it is." }
    }

    #[test]
    fn names_are_those_of_hbase_2_6() {
        // As reported by a running HBase.
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
        assert_eq!(sources.map(record_of), ["WAL", "RegionServer", "MetricsSystem", "JvmMetrics"]);
    }

    fn shown(options: PrometheusOptions) -> String {
        text_of(|out| show(Prometheus::new(options, out)))
    }

    fn show(mut prometheus: Prometheus) {
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
        prometheus.finish();
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
    fn times_are_also_shown_in_seconds() {
        let histogram = crate::metrics::Histogram::new();
        (1..=100).for_each(|micros| histogram.record(micros));
        histogram.roll();
        let all = TimeTotals { count: 100, sum_us: 5050 };
        let shown = text_of(|out| {
            let mut prometheus = Prometheus::new(PrometheusOptions::default(), out);
            prometheus.begin("b", "RegionServer,sub=Server");
            prometheus.tag(name("Hostname", ""), "vm");
            prometheus.times(name("Get", ""), all, &histogram.interval());
            prometheus.times(Name { prefix: "Namespace_", ..name("Get", "") }, all, &histogram.interval());
            prometheus.end();
            prometheus.finish();
        });
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines[0], "# TYPE grampus_server_get_seconds summary");
        assert_eq!(lines[6], "grampus_server_get_seconds{hostname=\"vm\",quantile=\"1\"} 0.0001");
        let ends = ["_sum{hostname=\"vm\"} 0.00505", "_count{hostname=\"vm\"} 100"];
        assert_eq!(lines[7..], ends.map(|end| format!("grampus_server_get_seconds{end}")));
    }

    #[test]
    fn wanted_metrics_are_shown_with_their_help() {
        let options = PrometheusOptions { containing: Some("gc_".into()), descriptions: true };
        let expected = "# HELP jvm_metrics_gc_count What it is.\n# TYPE jvm_metrics_gc_count gauge\n\
                        jvm_metrics_gc_count{} 0\n";
        assert_eq!(shown(options), expected);
    }

    #[test]
    fn samples_of_all_instances_are_together() {
        let shown = text_of(|out| {
            let mut prometheus = Prometheus::new(PrometheusOptions::default(), out);
            for volume in ["0", "1"] {
                let bean = format!("Hadoop:service=HBase,name=RegionServer,sub=Grampus,volume={volume}");
                prometheus.begin(&bean, "RegionServer,sub=Grampus");
                prometheus.tag(name("Directory", ""), &format!("/disk{volume}"));
                prometheus.gauge(name("volumeErrors", ""), 7_u64.into());
                prometheus.counter(name("volumeReads", ""), 8);
                prometheus.end();
            }
            prometheus.begin("Hadoop:service=HBase,name=JvmMetrics", "JvmMetrics");
            prometheus.gauge(name("GcCount", ""), 0_u64.into());
            prometheus.end();
            prometheus.finish();
        });
        let expected = "# TYPE grampus_volume_errors gauge\n\
                        grampus_volume_errors{directory=\"/disk0\"} 7\n\
                        grampus_volume_errors{directory=\"/disk1\"} 7\n\
                        # TYPE grampus_volume_reads counter\n\
                        grampus_volume_reads{directory=\"/disk0\"} 8\n\
                        grampus_volume_reads{directory=\"/disk1\"} 8\n\
                        # TYPE jvm_metrics_gc_count gauge\njvm_metrics_gc_count{} 0\n";
        assert_eq!(shown, expected);
    }
}
