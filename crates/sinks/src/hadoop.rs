//! `hadoop-metrics2-hbase.properties`: sinks as HBase's users configure them.
//!
//! Keys are `[hbase|*].sink.NAME.OPTION`. An option that a sink does not set is looked up as in
//! Hadoop, with `*` in place of ever more of the key. Unknown keys are ignored with a warning, as
//! in `hbase-site.xml`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use regex::Regex;

use crate::filter::{Filter, Patterns, glob, regular};
use crate::graphite::GraphiteOptions;
use crate::plan::{SinkPlan, Target};
use crate::properties::{Property, PropertyError, parse};
use crate::statsd::StatsdOptions;

const SINKS_PACKAGE: &str = "org.apache.hadoop.metrics2.sink.";
const FILTERS_PACKAGE: &str = "org.apache.hadoop.metrics2.filter.";
/// Source: Hadoop's `MetricsConfig`, in seconds.
const PERIOD_DEFAULT: Duration = Duration::from_secs(10);

/// Options of every sink.
const COMMON_OPTIONS: [&str; 6] = ["class", "period", "periodMillis", "context", "name", "description"];
/// Options of Hadoop's queues before sinks, which do not exist here.
const QUEUE_OPTIONS: [&str; 4] = ["queue.capacity", "retry.delay", "retry.backoff", "retry.count"];
/// The last parts of filter keys.
const FILTER_OPTIONS: [&str; 3] = ["class", "include", "exclude"];
const FILTERS: [&str; 3] = ["source.filter", "record.filter", "metric.filter"];
const FILE_OPTIONS: [&str; 1] = ["filename"];
const STATSD_OPTIONS: [&str; 5] =
    ["server.host", "server.port", "host.name", "service.name", "skip.hostname"];
const GRAPHITE_OPTIONS: [&str; 3] = ["server_host", "server_port", "metrics_prefix"];

/// The sinks that a file configures.
#[derive(Debug, Default)]
pub struct ConfiguredSinks {
    /// Sinks to start.
    pub sinks: Vec<SinkPlan>,
    /// Messages about settings that are supported but start no sink or have no effect.
    pub notes: Vec<String>,
    /// Messages about settings that are ignored.
    pub warnings: Vec<String>,
}

/// The error that prevents the start because of a file, in one line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {message}", path.display())]
pub struct PropertiesError {
    path: PathBuf,
    line: usize,
    message: String,
}

/// The sinks that the file at `path` with these `bytes` configures.
///
/// # Errors
/// An invalid value, or bytes that are not a properties file.
pub fn configured_sinks(path: &Path, bytes: &[u8]) -> Result<ConfiguredSinks, PropertiesError> {
    let refused = |PropertyError { line, message }| PropertiesError { path: path.to_owned(), line, message };
    let file = File { properties: parse(bytes).map_err(refused)? };
    let mut configured = ConfiguredSinks::default();
    for name in file.sinks() {
        file.add_sink(name, &mut configured).map_err(refused)?;
    }
    for property in &file.properties {
        if !is_known(&property.key) {
            let Property { key, line, .. } = property;
            configured
                .warnings
                .push(format!("{key} ({}:{line}): unknown to Grampus; ignored", path.display()));
        }
    }
    Ok(configured)
}

fn is_known(key: &str) -> bool {
    let Some(rest) = key.strip_prefix("hbase.").or_else(|| key.strip_prefix("*.")) else { return false };
    if is_option(rest) {
        return true;
    }
    // `sink.NAME.OPTION`, or `NAME.OPTION` after `*`.
    let rest = rest.strip_prefix("sink.").unwrap_or(rest);
    rest.split_once('.').is_some_and(|(name, option)| name != "source" && is_option(option))
}

fn is_option(option: &str) -> bool {
    let is_filter_option = |filter: &&str| {
        let rest = option.strip_prefix(*filter).and_then(|rest| rest.strip_prefix('.'));
        rest.is_some_and(|rest| FILTER_OPTIONS.contains(&rest))
    };
    [&COMMON_OPTIONS[..], &QUEUE_OPTIONS, &FILE_OPTIONS, &STATSD_OPTIONS, &GRAPHITE_OPTIONS]
        .iter()
        .any(|known| known.contains(&option))
        || FILTERS.iter().any(is_filter_option)
}

/// The contents of a file.
struct File {
    properties: Vec<Property>,
}

impl File {
    /// The names of sinks. Source: Hadoop's `MetricsConfig.getInstanceConfigs`: only keys for HBase
    /// itself define sinks, not keys with a `*`.
    fn sinks(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for property in &self.properties {
            let rest = property.key.strip_prefix("hbase.sink.");
            if let Some((name, _)) = rest.and_then(|rest| rest.split_once('.'))
                && !name.is_empty()
                && !name.contains('*')
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        names
    }

    /// The value of a sink's option. Source: the order in which Hadoop's `MetricsConfig` searches
    /// its parents.
    fn get(&self, sink: &str, option: &str) -> Option<&Property> {
        let keys = [
            format!("hbase.sink.{sink}.{option}"),
            format!("*.sink.{sink}.{option}"),
            format!("hbase.*.{sink}.{option}"),
            format!("*.{sink}.{option}"),
            format!("hbase.sink.*.{option}"),
            format!("*.sink.*.{option}"),
            format!("hbase.*.{option}"),
            format!("*.{option}"),
        ];
        let of = |key: &String| self.properties.iter().find(|property| property.key == *key);
        keys.iter().find_map(of).filter(|property| !property.value.is_empty())
    }

    fn text(&self, sink: &str, option: &str) -> Option<String> {
        self.get(sink, option).map(|property| property.value.clone())
    }

    /// A mandatory option of a sink.
    fn required(&self, sink: &str, option: &str) -> Result<String, PropertyError> {
        self.text(sink, option).ok_or_else(|| {
            let belongs_to_sink =
                |property: &&Property| property.key.starts_with(&format!("hbase.sink.{sink}."));
            let line = self.properties.iter().find(belongs_to_sink).map_or(1, |property| property.line);
            PropertyError {
                line,
                message: format!("hbase.sink.{sink}.{option} is missing: specify where to send metrics"),
            }
        })
    }

    fn port(&self, sink: &str, option: &str) -> Result<u16, PropertyError> {
        let text = self.required(sink, option)?;
        let port = text.parse().ok().filter(|port: &u16| *port > 0);
        port.ok_or_else(|| self.invalid(sink, option, "expected a port from 1 to 65535"))
    }

    /// The error for an invalid value.
    fn invalid(&self, sink: &str, option: &str, why: &str) -> PropertyError {
        let property = self.get(sink, option).expect("the option was read before");
        let shown: String = property.value.chars().filter(|c| !c.is_control()).take(100).collect();
        PropertyError { line: property.line, message: format!("{} = '{shown}': {why}", property.key) }
    }

    fn add_sink(&self, sink: &str, configured: &mut ConfiguredSinks) -> Result<(), PropertyError> {
        let class = self.text(sink, "class").unwrap_or_default();
        let target = match class.strip_prefix(SINKS_PACKAGE) {
            Some("FileSink") => match self.text(sink, "filename") {
                Some(path) => Target::File(path.into()),
                None => {
                    let why =
                        "no filename: HBase would write to its standard output, which is not useful here";
                    configured.warnings.push(format!("hbase.sink.{sink}: {why}; ignored"));
                    return Ok(());
                }
            },
            Some("StatsDSink") => Target::Statsd(self.statsd(sink)?),
            Some("GraphiteSink") => Target::Graphite(GraphiteOptions {
                host: self.required(sink, "server_host")?,
                port: self.port(sink, "server_port")?,
                prefix: self.text(sink, "metrics_prefix").unwrap_or_default(),
            }),
            Some("PrometheusMetricsSink") => {
                let note = "nothing to start; /prometheus of the status pages serves these metrics";
                configured.notes.push(format!("hbase.sink.{sink} ({class}): {note}"));
                return Ok(());
            }
            _ if class.is_empty() => {
                configured.warnings.push(format!("hbase.sink.{sink}: no class; ignored"));
                return Ok(());
            }
            _ => {
                let known = "FileSink, StatsDSink, GraphiteSink and PrometheusMetricsSink";
                configured.warnings.push(format!(
                    "hbase.sink.{sink}: {class} is not known to Grampus, which supports {known} of {SINKS_PACKAGE}*; ignored"
                ));
                return Ok(());
            }
        };
        if let Some(queue) = QUEUE_OPTIONS.iter().find(|option| self.get(sink, option).is_some()) {
            configured
                .notes
                .push(format!("hbase.sink.{sink}: {queue} is ignored, because sinks have no queue here"));
        }
        let filter = Filter {
            context: self.text(sink, "context"),
            sources: self.patterns(sink, "source.filter")?,
            records: self.patterns(sink, "record.filter")?,
            metrics: self.patterns(sink, "metric.filter")?,
            excludes_regions: false,
        };
        configured.sinks.push(SinkPlan { name: sink.to_owned(), period: self.period(sink)?, filter, target });
        Ok(())
    }

    fn statsd(&self, sink: &str) -> Result<StatsdOptions, PropertyError> {
        let skips_hostname = match self.text(sink, "skip.hostname").map(|text| text.to_ascii_lowercase()) {
            None => false,
            // Source: `getBoolean` of commons-configuration, through which Hadoop's sinks read
            // their values.
            Some(text) => match text.as_str() {
                "true" | "yes" | "on" => true,
                "false" | "no" | "off" => false,
                _ => return Err(self.invalid(sink, "skip.hostname", "expected `true` or `false`")),
            },
        };
        Ok(StatsdOptions {
            host: self.required(sink, "server.host")?,
            port: self.port(sink, "server.port")?,
            service: self.text(sink, "service.name"),
            skips_hostname,
            hostname: self.text(sink, "host.name"),
        })
    }

    /// The period in seconds, or in milliseconds under a separate key.
    fn period(&self, sink: &str) -> Result<Duration, PropertyError> {
        const DAY_MS: u64 = 86_400_000;
        for (option, factor) in [("periodMillis", 1), ("period", 1000)] {
            let Some(text) = self.text(sink, option) else { continue };
            let millis = text.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
            let millis = millis.filter(|millis| (100..=DAY_MS).contains(millis));
            let expected = match factor {
                1 => "expected milliseconds, from 100 to a day",
                _ => "expected seconds, a whole number from 1 to a day",
            };
            return millis.map(Duration::from_millis).ok_or_else(|| self.invalid(sink, option, expected));
        }
        Ok(PERIOD_DEFAULT)
    }

    fn patterns(&self, sink: &str, filter: &str) -> Result<Patterns, PropertyError> {
        let class_key = format!("{filter}.class");
        let compile: fn(&str) -> Result<Regex, String> = match self.text(sink, &class_key) {
            None => glob,
            Some(class) => match class.strip_prefix(FILTERS_PACKAGE) {
                Some("GlobFilter") => glob,
                Some("RegexFilter") => regular,
                _ => {
                    let known =
                        format!("expected {FILTERS_PACKAGE}GlobFilter or {FILTERS_PACKAGE}RegexFilter");
                    return Err(self.invalid(sink, &class_key, &known));
                }
            },
        };
        let pattern = |direction: &str| -> Result<Option<Regex>, PropertyError> {
            let key = format!("{filter}.{direction}");
            let Some(text) = self.text(sink, &key) else { return Ok(None) };
            compile(&text).map(Some).map_err(|why| self.invalid(sink, &key, &why))
        };
        Ok(Patterns { include: pattern("include")?, exclude: pattern("exclude")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> Result<ConfiguredSinks, String> {
        configured_sinks(Path::new("m.properties"), text.as_bytes()).map_err(|refused| refused.to_string())
    }

    fn shown(text: &str) -> Vec<String> {
        let configured = map(text).unwrap();
        assert_eq!(configured.warnings, [""; 0], "{text}");
        configured
            .sinks
            .iter()
            .map(|sink| format!("{} {:?} {}", sink.name, sink.period, sink.target))
            .collect()
    }

    #[test]
    fn the_file_that_hbase_ships_configures_no_sink() {
        let shipped = "*.sink.file*.class=org.apache.hadoop.metrics2.sink.FileSink\n*.period=10\n";
        assert_eq!(shown(shipped), [""; 0]);
    }

    #[test]
    fn sinks_are_hbases() {
        let text = "*.period=20\n*.sink.statsd.class=org.apache.hadoop.metrics2.sink.StatsDSink\n\
            hbase.sink.file-all.class=org.apache.hadoop.metrics2.sink.FileSink\n\
            hbase.sink.file-all.filename=all.metrics\nhbase.sink.file-all.period=5\n\
            hbase.sink.statsd.server.host=s\nhbase.sink.statsd.server.port=8125\n\
            hbase.sink.graphite.class=org.apache.hadoop.metrics2.sink.GraphiteSink\n\
            hbase.sink.graphite.server_host=g\nhbase.sink.graphite.server_port=2003\n\
            hbase.sink.graphite.metrics_prefix=p\nhbase.sink.graphite.periodMillis=500\n";
        let expected = [
            "file-all 5s file all.metrics",
            "statsd 20s StatsD at s:8125",
            "graphite 500ms Graphite at g:2003",
        ];
        assert_eq!(shown(text), expected);
    }

    #[test]
    fn filters_and_contexts_are_hadoops() {
        let text = "hbase.sink.f.class=org.apache.hadoop.metrics2.sink.FileSink\nhbase.sink.f.filename=m\n\
            hbase.sink.f.context=master\nhbase.sink.f.record.filter.exclude=Tab*\n\
            hbase.*.metric.filter.class=org.apache.hadoop.metrics2.filter.RegexFilter\n\
            *.metric.filter.include=Get_(mean|max)\n";
        let configured = map(text).unwrap();
        let filter = &configured.sinks[0].filter;
        assert_eq!(filter.context.as_deref(), Some("master"));
        assert!(!filter.records.accepts("Tables") && filter.records.accepts("WAL"));
        assert!(filter.metrics.accepts("Get_max") && !filter.metrics.accepts("Get_min"));
    }

    #[test]
    fn statsd_has_all_its_options() {
        let text = "hbase.sink.s.class=org.apache.hadoop.metrics2.sink.StatsDSink\nhbase.sink.s.server.host=s\n\
            hbase.sink.s.server.port=1\nhbase.sink.s.host.name=h\nhbase.sink.s.service.name=n\n\
            hbase.sink.s.skip.hostname=Yes\n";
        let Target::Statsd(of) = map(text).unwrap().sinks.remove(0).target else { panic!("StatsD") };
        let expected = StatsdOptions {
            host: "s".into(),
            port: 1,
            service: Some("n".into()),
            skips_hostname: true,
            hostname: Some("h".into()),
        };
        assert_eq!(of, expected);
    }

    #[test]
    fn any_file_is_parsed_or_rejected() {
        const PIECES: [&str; 16] = [
            "hbase.sink.f.",
            "*.",
            "sink.",
            "class",
            "=",
            "\n",
            "\\",
            "${",
            "}",
            "filename",
            "period",
            ":",
            "org.apache.hadoop.metrics2.sink.FileSink",
            "record.filter.include",
            "[{(*",
            "é\0",
        ];
        let env = base::testing::env(1);
        for _ in 0..20_000 {
            let len = env.random.next_u64() % 24;
            let piece = |_| PIECES[(env.random.next_u64() % 16) as usize];
            let text: String = (0..len).map(piece).collect();
            let _ = map(&text);
        }
    }

    #[test]
    fn unsupported_properties_are_reported() {
        let configured = map(
            "hbase.sink.g.class=org.apache.hadoop.metrics2.sink.ganglia.GangliaSink31\nhbase.sink.g.servers=x\n\
             hbase.sink.p.class=org.apache.hadoop.metrics2.sink.PrometheusMetricsSink\n\
             hbase.sink.f.class=org.apache.hadoop.metrics2.sink.FileSink\nhbase.sink.n.filename=m\n\
             jvm.class=x\nhbase.source.x.y=z\nhbase.sink.f.queue.capacity=5\n",
        )
        .unwrap();
        assert!(configured.sinks.is_empty());
        assert!(configured.notes[0].contains("/prometheus"), "{:?}", configured.notes);
        let has = |part: &str| configured.warnings.iter().any(|warning| warning.contains(part));
        for part in [
            "hbase.sink.g: org.apache.hadoop.metrics2.sink.ganglia.GangliaSink31 is not known",
            "hbase.sink.f: no filename",
            "hbase.sink.n: no class",
            "hbase.sink.g.servers (m.properties:2): unknown",
            "jvm.class (m.properties:6)",
            "hbase.source.x.y (m.properties:7)",
        ] {
            assert!(has(part), "{part}: {:?}", configured.warnings);
        }
        assert_eq!(configured.warnings.len(), 6);
    }

    #[test]
    fn invalid_properties_stop_the_start() {
        const FILE: &str =
            "hbase.sink.f.class=org.apache.hadoop.metrics2.sink.FileSink\nhbase.sink.f.filename=m\n";
        const GRAPHITE: &str = "hbase.sink.g.class=org.apache.hadoop.metrics2.sink.GraphiteSink\n";
        let check = |text: String, expected: &str| assert_eq!(map(&text).unwrap_err(), expected, "{text}");
        let missing = "m.properties:1: hbase.sink.g.server_host is missing: specify where to send metrics";
        check(GRAPHITE.to_owned(), missing);
        check(
            format!("{GRAPHITE}hbase.sink.g.server_host=h\nhbase.sink.g.server_port=many"),
            "m.properties:3: hbase.sink.g.server_port = 'many': expected a port from 1 to 65535",
        );
        check(
            format!("{FILE}*.period=0"),
            "m.properties:3: *.period = '0': expected seconds, a whole number from 1 to a day",
        );
        let line =
            "m.properties:3: hbase.sink.f.metric.filter.exclude = '{a': invalid pattern: a `{` is not closed";
        check(format!("{FILE}hbase.sink.f.metric.filter.exclude={{a"), line);
        let error = map(&format!("{FILE}hbase.sink.f.metric.filter.class=x.Own")).unwrap_err();
        assert!(error.contains("= 'x.Own': expected org.apache"), "{error}");
        assert!(map("\u{0}=\\u").is_err());
    }
}
