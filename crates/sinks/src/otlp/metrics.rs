//! Metrics as OTLP messages: counters as cumulative sums since the start of the process, all others
//! as gauges.
//!
//! A metric is named `hbase.CONTEXT.RECORD.METRIC`. The tags of its record are its attributes,
//! except the host, which is part of the resource.

use std::time::Duration;

use base::metrics::Number;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use prost::Message;

use super::post::post;
use super::{OtlpOptions, scope, text};
use crate::push::{Push, Transport};
use crate::record::{CONTEXT, HOSTNAME, MetricKind, RecordHeader, RecordPart, Records};

/// Maximum number of metrics in a request.
const METRICS_PER_REQUEST: usize = 2000;
/// Timeout of a request.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
const PATH: &str = "/v1/metrics";
const MILLI_NANOS: u64 = 1_000_000;

/// The sink.
pub(crate) struct OtlpMetrics {
    options: OtlpOptions,
    // When counting started, in milliseconds since the epoch.
    began_ms: u64,
}

impl OtlpMetrics {
    pub(crate) fn new(options: OtlpOptions, began_ms: u64) -> OtlpMetrics {
        OtlpMetrics { options, began_ms }
    }
}

impl Transport for OtlpMetrics {
    fn push(&mut self, push: &Push<'_>) -> Result<(), String> {
        let mut points = Points {
            sink: self,
            push,
            prefix: String::new(),
            attributes: vec![],
            host: String::new(),
            metrics: Vec::with_capacity(METRICS_PER_REQUEST),
            failed: None,
        };
        push.records(&mut points);
        points.send();
        points.failed.map_or(Ok(()), Err)
    }
}

/// Batches metrics into requests.
struct Points<'a> {
    sink: &'a OtlpMetrics,
    push: &'a Push<'a>,
    prefix: String,
    attributes: Vec<KeyValue>,
    host: String,
    metrics: Vec<Metric>,
    // After the first failure, the rest of this period's metrics is dropped.
    failed: Option<String>,
}

impl Points<'_> {
    fn send(&mut self) {
        let metrics = std::mem::take(&mut self.metrics);
        if metrics.is_empty() || self.failed.is_some() {
            return;
        }
        let scope_metrics = ScopeMetrics { scope: Some(scope()), metrics, ..ScopeMetrics::default() };
        let resource_metrics = ResourceMetrics {
            resource: Some(self.sink.options.resource(self.push.role(), &self.host)),
            scope_metrics: vec![scope_metrics],
            ..ResourceMetrics::default()
        };
        let message =
            ExportMetricsServiceRequest { resource_metrics: vec![resource_metrics] }.encode_to_vec();
        std::thread::yield_now();
        let endpoint = &self.sink.options.endpoint;
        let posted = self.push.wait(REQUEST_LIMIT, post(self.push.env(), endpoint, PATH, message));
        let timed_out = || Err(format!("{endpoint}: no response in time"));
        self.failed = posted.unwrap_or_else(timed_out).err();
    }

    fn set_header(&mut self, head: &RecordHeader) {
        self.prefix = format!("hbase.{}.{}.", head.context, head.record);
        head.tag(HOSTNAME).unwrap_or_default().clone_into(&mut self.host);
        let own = head.tags.iter().filter(|(name, _)| name != HOSTNAME && name != CONTEXT);
        self.attributes = own.map(|(name, value)| text(name, value.clone())).collect();
    }

    fn metric(&self, name: &str, behaviour: MetricKind, value: Number) -> Metric {
        let value = match value {
            Number::Int(value) => Value::AsInt(value),
            Number::Float(value) => Value::AsDouble(value),
        };
        let start_time_unix_nano = match behaviour {
            MetricKind::Counter => self.sink.began_ms * MILLI_NANOS,
            MetricKind::Gauge => 0,
        };
        let point = NumberDataPoint {
            attributes: self.attributes.clone(),
            start_time_unix_nano,
            time_unix_nano: self.push.at_ms * MILLI_NANOS,
            value: Some(value),
            ..NumberDataPoint::default()
        };
        let data = match behaviour {
            MetricKind::Counter => Data::Sum(Sum {
                data_points: vec![point],
                aggregation_temporality: AggregationTemporality::Cumulative.into(),
                is_monotonic: true,
            }),
            MetricKind::Gauge => Data::Gauge(Gauge { data_points: vec![point] }),
        };
        Metric { name: format!("{}{name}", self.prefix), data: Some(data), ..Metric::default() }
    }
}

impl Records for Points<'_> {
    fn put(&mut self, part: RecordPart<'_>) {
        if part.is_first {
            self.set_header(part.head);
        }
        for (name, behaviour, value) in part.metrics.iter() {
            let metric = self.metric(name, behaviour, value);
            self.metrics.push(metric);
            if self.metrics.len() == METRICS_PER_REQUEST {
                self.send();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::env::Env;
    use base::pool::Pool;
    use base::testing::env;

    use super::*;
    use crate::otlp::Endpoint;
    use crate::testing::{Collector, Testing, registry, test_push_in};

    async fn push(env: &Env, port: u16, registry: &Arc<Testing>) -> Result<(), String> {
        let endpoint = Endpoint::parse(&format!("http://collector:{port}")).unwrap();
        let mut sink = OtlpMetrics::new(OtlpOptions { endpoint, service: None }, 500);
        let (env, registry, runtime) = (env.clone(), registry.clone(), tokio::runtime::Handle::current());
        let job = move || {
            let _entered = runtime.enter();
            sink.push(&test_push_in(&registry, 1_700, &env, Some(&runtime)))
        };
        Pool::new("test", 1).run(job).await
    }

    fn shown(message: &[u8]) -> Vec<String> {
        let request = ExportMetricsServiceRequest::decode(message).unwrap();
        let resource_metrics = &request.resource_metrics[0];
        let names = |attributes: &[KeyValue]| -> Vec<String> {
            attributes.iter().map(|of| format!("{}={:?}", of.key, of.value.as_ref().unwrap())).collect()
        };
        let resource = names(&resource_metrics.resource.as_ref().unwrap().attributes);
        assert!(resource[0].contains("hbase-regionserver") && resource[1].contains("host"), "{resource:?}");
        let metric = |metric: &Metric| match metric.data.as_ref().unwrap() {
            Data::Sum(sum) => {
                let point = &sum.data_points[0];
                assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
                let times = (point.start_time_unix_nano, point.time_unix_nano);
                format!(
                    "{} {:?} {times:?} {}",
                    metric.name,
                    point.value.as_ref().unwrap(),
                    point.attributes[0].key
                )
            }
            Data::Gauge(gauge) => {
                format!("{} {:?}", metric.name, gauge.data_points[0].value.as_ref().unwrap())
            }
            other => panic!("{other:?}"),
        };
        resource_metrics.scope_metrics[0].metrics.iter().map(metric).collect()
    }

    #[tokio::test]
    async fn counters_are_sums_and_the_rest_gauges() {
        let (env, registry) = (env(1), Arc::new(registry()));
        let collector = Collector::start(&env, "200 OK").await;
        registry.counted.calls.add(3);
        push(&env, collector.port, &registry).await.unwrap();
        let posts = collector.posts();
        assert_eq!((posts.len(), posts[0].0.as_str()), (1, "/v1/metrics"));
        let expected = [
            "hbase.regionserver.Server.load AsDouble(-1.5)",
            "hbase.regionserver.Server.calls AsInt(3) (500000000, 1700000000) serverName",
        ];
        assert_eq!(shown(&posts[0].1), expected);
    }

    #[tokio::test]
    async fn very_many_go_in_several_requests() {
        let (env, registry) = (env(1), Arc::new(registry()));
        registry.add_many(5000);
        let collector = Collector::start(&env, "200 OK").await;
        push(&env, collector.port, &registry).await.unwrap();
        let lens: Vec<_> = collector.posts().iter().map(|(_, message)| shown(message).len()).collect();
        assert_eq!(lens, [2000, 2000, 1002]);
    }

    #[tokio::test]
    async fn a_rejection_is_reported_and_ends_the_push() {
        let (env, registry) = (env(1), Arc::new(registry()));
        registry.add_many(5000);
        let collector = Collector::start(&env, "503 Service Unavailable").await;
        let error = push(&env, collector.port, &registry).await.unwrap_err();
        assert!(error.ends_with("collector responded 503 Service Unavailable"), "{error}");
        assert_eq!(collector.posts().len(), 1);
        let error = push(&env, 1, &registry).await.unwrap_err();
        assert!(error.starts_with("http://collector:1: "), "{error}");
    }
}
