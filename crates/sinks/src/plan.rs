//! The configured sinks.

use std::path::PathBuf;
use std::time::Duration;

use base::config::{Config, Error};
use regex::Regex;

use crate::filter::{Filter, Patterns, regular};
use crate::graphite::GraphiteOptions;
use crate::statsd::StatsdOptions;

/// A sink to start.
#[derive(Clone, Debug)]
pub struct SinkPlan {
    /// Its name in logs, and of its thread.
    pub name: String,
    /// The time between two pushes.
    pub period: Duration,
    /// The selection of its metrics.
    pub filter: Filter,
    /// Its target.
    pub target: Target,
}

/// The target of a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Into a file.
    File(PathBuf),
    /// To StatsD.
    Statsd(StatsdOptions),
    /// To Graphite.
    Graphite(GraphiteOptions),
    /// To OpenTelemetry.
    #[cfg(feature = "otlp")]
    Otlp(crate::otlp::OtlpOptions),
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::File(path) => write!(f, "file {}", path.display()),
            Target::Statsd(to) => write!(f, "StatsD at {}:{}", to.host, to.port),
            Target::Graphite(to) => write!(f, "Graphite at {}:{}", to.host, to.port),
            #[cfg(feature = "otlp")]
            Target::Otlp(to) => write!(f, "OpenTelemetry at {}", to.endpoint),
        }
    }
}

/// The sinks that the options configure.
///
/// # Errors
/// An invalid regular expression or endpoint, or an OTLP period that is too short.
pub fn configured(config: &Config) -> Result<Vec<SinkPlan>, Error> {
    let mut plans = Vec::new();
    let mut plan = |name: &str, period_ms, [records, metrics]: [(&str, &str); 2], target: Target| {
        let filter = Filter {
            records: patterns(config, name, "record", records)?,
            metrics: patterns(config, name, "metric", metrics)?,
            excludes_regions: !config.sink_regions,
            ..Filter::default()
        };
        let period = Duration::from_millis(period_ms);
        plans.push(SinkPlan { name: name.to_owned(), period, filter, target });
        Ok(())
    };
    if let Some(path) = &config.file_sink {
        let records = (&*config.file_sink_records_included, &*config.file_sink_records_excluded);
        let metrics = (&*config.file_sink_metrics_included, &*config.file_sink_metrics_excluded);
        plan("file", config.file_sink_period_ms, [records, metrics], Target::File(path.clone()))?;
    }
    if let Some(host) = &config.statsd_sink_host {
        let records = (&*config.statsd_sink_records_included, &*config.statsd_sink_records_excluded);
        let metrics = (&*config.statsd_sink_metrics_included, &*config.statsd_sink_metrics_excluded);
        let service = &config.statsd_sink_service;
        let target = Target::Statsd(StatsdOptions {
            host: host.clone(),
            port: config.statsd_sink_port,
            service: (!service.is_empty()).then(|| service.clone()),
            skips_hostname: config.statsd_sink_skips_hostname,
            hostname: None,
        });
        plan("statsd", config.statsd_sink_period_ms, [records, metrics], target)?;
    }
    if let Some(host) = &config.graphite_sink_host {
        let records = (&*config.graphite_sink_records_included, &*config.graphite_sink_records_excluded);
        let metrics = (&*config.graphite_sink_metrics_included, &*config.graphite_sink_metrics_excluded);
        let target = Target::Graphite(GraphiteOptions {
            host: host.clone(),
            port: config.graphite_sink_port,
            prefix: config.graphite_sink_prefix.clone(),
        });
        plan("graphite", config.graphite_sink_period_ms, [records, metrics], target)?;
    }
    #[cfg(feature = "otlp")]
    if let Some(options) = otlp(config)? {
        let records = (&*config.otlp_sink_records_included, &*config.otlp_sink_records_excluded);
        let metrics = (&*config.otlp_sink_metrics_included, &*config.otlp_sink_metrics_excluded);
        if config.otlp_period_ms < OTLP_PERIOD_MS_MIN {
            let expected = format!("expected at least {OTLP_PERIOD_MS_MIN} ms");
            return Err(config.refused("otel.metric.export.interval", expected));
        }
        plan("otlp", config.otlp_period_ms, [records, metrics], Target::Otlp(options))?;
    }
    #[cfg(not(feature = "otlp"))]
    if !config.otlp_endpoint.is_empty() {
        let why =
            "this build has no OpenTelemetry support: build with `--features otlp`, or remove the option";
        return Err(config.refused("otel.exporter.otlp.endpoint", why.to_owned()));
    }
    Ok(plans)
}

/// A shorter period is most likely a wrong unit.
#[cfg(feature = "otlp")]
const OTLP_PERIOD_MS_MIN: u64 = 100;

#[cfg(feature = "otlp")]
fn otlp(config: &Config) -> Result<Option<crate::otlp::OtlpOptions>, Error> {
    if config.otlp_endpoint.is_empty() {
        return Ok(None);
    }
    let endpoint = crate::otlp::Endpoint::parse(&config.otlp_endpoint)
        .map_err(|why| config.refused("otel.exporter.otlp.endpoint", why))?;
    let service = (!config.otlp_service.is_empty()).then(|| config.otlp_service.clone());
    Ok(Some(crate::otlp::OtlpOptions { endpoint, service }))
}

/// The target of traces and the share of sampled calls, if tracing is on.
///
/// # Errors
/// An invalid endpoint.
#[cfg(feature = "otlp")]
pub fn traced(config: &Config) -> Result<Option<(crate::otlp::OtlpOptions, f64)>, Error> {
    if config.trace_ratio == 0.0 {
        return Ok(None);
    }
    Ok(otlp(config)?.map(|options| (options, config.trace_ratio)))
}

fn patterns(
    config: &Config,
    sink: &str,
    of: &str,
    (include, exclude): (&str, &str),
) -> Result<Patterns, Error> {
    let pattern = |direction: &str, text: &str| -> Result<Option<Regex>, Error> {
        if text.is_empty() {
            return Ok(None);
        }
        let key = format!("hbase.sink.{sink}.{of}.filter.{direction}");
        regular(text).map(Some).map_err(|why| config.refused(&key, why))
    };
    Ok(Patterns { include: pattern("include", include)?, exclude: pattern("exclude", exclude)? })
}

#[cfg(test)]
mod tests {
    use base::config::Sources;

    use super::*;

    fn plans(arguments: &[&str]) -> Result<Vec<SinkPlan>, Error> {
        let mut sources = Sources::default();
        arguments.iter().for_each(|argument| sources.set(argument).unwrap());
        configured(&Config::load(&sources).unwrap())
    }

    #[test]
    fn nothing_is_sent_unless_a_target_is_configured() {
        assert!(plans(&[]).unwrap().is_empty());
        assert!(plans(&["hbase.sink.statsd.server.port=1"]).unwrap().is_empty());
    }

    #[test]
    fn each_sink_has_its_own_options() {
        let plans = plans(&[
            "hbase.sink.file.filename=/m",
            "hbase.sink.file.period=60",
            "hbase.sink.file.record.filter.exclude=Tab.*",
            "hbase.sink.statsd.server.host=s",
            "hbase.sink.statsd.skip.hostname=true",
            "hbase.sink.statsd.service.name=hbase",
            "hbase.sink.graphite.server_host=g",
            "hbase.sink.graphite.metrics_prefix=p",
            "hbase.sink.graphite.metric.filter.include=Get_.*",
            "grampus.sink.regions=false",
        ])
        .unwrap();
        let shown: Vec<_> =
            plans.iter().map(|plan| format!("{} {:?} {}", plan.name, plan.period, plan.target)).collect();
        assert_eq!(
            shown,
            ["file 60s file /m", "statsd 10s StatsD at s:8125", "graphite 10s Graphite at g:2003"]
        );
        assert!(!plans[0].filter.records.accepts("Tables") && plans[1].filter.records.accepts("Tables"));
        assert!(plans[2].filter.metrics.accepts("Get_mean") && !plans[2].filter.metrics.accepts("Put_mean"));
        assert!(plans.iter().all(|plan| plan.filter.excludes_regions));
        let Target::Statsd(statsd) = &plans[1].target else { panic!("a StatsD sink") };
        assert!(statsd.skips_hostname && statsd.service.as_deref() == Some("hbase"));
    }

    #[test]
    #[cfg(not(feature = "otlp"))]
    fn a_build_without_opentelemetry_rejects_its_options() {
        let error = plans(&["otel.exporter.otlp.endpoint=http://localhost:4318"]).unwrap_err().to_string();
        assert!(error.contains("this build has no OpenTelemetry"), "{error}");
    }

    #[test]
    #[cfg(feature = "otlp")]
    fn a_collector_is_a_sink_and_gets_a_share_of_the_traces() {
        let to = "otel.exporter.otlp.endpoint=http://localhost";
        let to_collector = plans(&[to]).unwrap();
        assert_eq!(to_collector[0].target.to_string(), "OpenTelemetry at http://localhost:4318");
        assert_eq!(to_collector[0].period, Duration::from_secs(60));
        for wrong in ["otel.exporter.otlp.endpoint=https://h", "otel.metric.export.interval=0"] {
            assert!(
                plans(&[to, wrong]).unwrap_err().to_string().starts_with(wrong.split('=').next().unwrap())
            );
        }
        let traced_by = |arguments: &[&str]| {
            let mut sources = Sources::default();
            arguments.iter().for_each(|argument| sources.set(argument).unwrap());
            traced(&Config::load(&sources).unwrap()).unwrap().map(|(_, ratio)| ratio)
        };
        assert_eq!(traced_by(&[to]), None);
        assert_eq!(traced_by(&[to, "otel.traces.sampler.arg=0.5"]), Some(0.5));
        assert_eq!(traced_by(&["otel.traces.sampler.arg=0.5"]), None);
    }

    #[test]
    fn an_expression_that_is_none_names_its_key() {
        let error = plans(&["hbase.sink.file.filename=/m", "hbase.sink.file.metric.filter.exclude=("]);
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("hbase.sink.file.metric.filter.exclude = '(' (command line): no regular"),
            "{error}"
        );
    }
}
