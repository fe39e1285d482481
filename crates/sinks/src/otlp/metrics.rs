//! Metrics as OTLP's: counters as sums that grow from the start of the process, all others as gauges.
//!
//! A metric is `hbase.CONTEXT.RECORD.METRIC`; the tags of its record are its attributes, but for the host, which the
//! resource has.

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
use crate::push::{Look, Medium};
use crate::record::{Behaviour, CONTEXT, HOSTNAME, Head, Part, Records};

/// Metrics of a request at most.
const METRICS_AT_ONCE: usize = 2000;
/// How long a request may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
const PATH: &str = "/v1/metrics";
const MILLI_NANOS: u64 = 1_000_000;

/// The sink.
pub(crate) struct OtlpMetrics {
    options: OtlpOptions,
    // When counters began, milliseconds since the epoch.
    began_ms: u64,
}

impl OtlpMetrics {
    pub(crate) fn new(options: OtlpOptions, began_ms: u64) -> OtlpMetrics {
        OtlpMetrics { options, began_ms }
    }
}

impl Medium for OtlpMetrics {
    fn push(&mut self, look: &Look<'_>) -> Result<(), String> {
        let mut points = Points {
            sink: self,
            look,
            prefix: String::new(),
            attributes: vec![],
            host: String::new(),
            metrics: Vec::with_capacity(METRICS_AT_ONCE),
            failed: None,
        };
        look.records(&mut points);
        points.send();
        points.failed.map_or(Ok(()), Err)
    }
}

/// Metrics on their way into requests.
struct Points<'a> {
    sink: &'a OtlpMetrics,
    look: &'a Look<'a>,
    prefix: String,
    attributes: Vec<KeyValue>,
    host: String,
    metrics: Vec<Metric>,
    // After the first failure nothing is sent of this look.
    failed: Option<String>,
}

impl Points<'_> {
    fn send(&mut self) {
        let metrics = std::mem::take(&mut self.metrics);
        if metrics.is_empty() || self.failed.is_some() {
            return;
        }
        let of_scope = ScopeMetrics { scope: Some(scope()), metrics, ..ScopeMetrics::default() };
        let of_role = ResourceMetrics {
            resource: Some(self.sink.options.resource(self.look.role(), &self.host)),
            scope_metrics: vec![of_scope],
            ..ResourceMetrics::default()
        };
        let message = ExportMetricsServiceRequest { resource_metrics: vec![of_role] }.encode_to_vec();
        std::thread::yield_now();
        let endpoint = &self.sink.options.endpoint;
        let posted = self.look.wait(REQUEST_LIMIT, post(self.look.env(), endpoint, PATH, message));
        let late = || Err(format!("{endpoint}: no answer in time"));
        self.failed = posted.unwrap_or_else(late).err();
    }

    fn set_head(&mut self, head: &Head) {
        self.prefix = format!("hbase.{}.{}.", head.context, head.record);
        head.tag(HOSTNAME).unwrap_or_default().clone_into(&mut self.host);
        let own = head.tags.iter().filter(|(name, _)| name != HOSTNAME && name != CONTEXT);
        self.attributes = own.map(|(name, value)| text(name, value.clone())).collect();
    }

    fn metric(&self, name: &str, behaviour: Behaviour, value: Number) -> Metric {
        let value = match value {
            Number::Int(value) => Value::AsInt(value),
            Number::Float(value) => Value::AsDouble(value),
        };
        let start_time_unix_nano = match behaviour {
            Behaviour::Counter => self.sink.began_ms * MILLI_NANOS,
            Behaviour::Gauge => 0,
        };
        let point = NumberDataPoint {
            attributes: self.attributes.clone(),
            start_time_unix_nano,
            time_unix_nano: self.look.at_ms * MILLI_NANOS,
            value: Some(value),
            ..NumberDataPoint::default()
        };
        let data = match behaviour {
            Behaviour::Counter => Data::Sum(Sum {
                data_points: vec![point],
                aggregation_temporality: AggregationTemporality::Cumulative.into(),
                is_monotonic: true,
            }),
            Behaviour::Gauge => Data::Gauge(Gauge { data_points: vec![point] }),
        };
        Metric { name: format!("{}{name}", self.prefix), data: Some(data), ..Metric::default() }
    }
}

impl Records for Points<'_> {
    fn put(&mut self, part: Part<'_>) {
        if part.is_first {
            self.set_head(part.head);
        }
        for (name, behaviour, value) in part.metrics.iter() {
            let metric = self.metric(name, behaviour, value);
            self.metrics.push(metric);
            if self.metrics.len() == METRICS_AT_ONCE {
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
    use crate::testing::{Collector, Testing, look_in, registry};

    async fn push(env: &Env, port: u16, registry: &Arc<Testing>) -> Result<(), String> {
        let endpoint = Endpoint::parse(&format!("http://collector:{port}")).unwrap();
        let mut sink = OtlpMetrics::new(OtlpOptions { endpoint, service: None }, 500);
        let (env, registry, runtime) = (env.clone(), registry.clone(), tokio::runtime::Handle::current());
        let job = move || {
            let _entered = runtime.enter();
            sink.push(&look_in(&registry, 1_700, &env, Some(&runtime)))
        };
        Pool::new("test", 1).run(job).await
    }

    fn shown(message: &[u8]) -> Vec<String> {
        let request = ExportMetricsServiceRequest::decode(message).unwrap();
        let of_role = &request.resource_metrics[0];
        let names = |attributes: &[KeyValue]| -> Vec<String> {
            attributes.iter().map(|of| format!("{}={:?}", of.key, of.value.as_ref().unwrap())).collect()
        };
        let resource = names(&of_role.resource.as_ref().unwrap().attributes);
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
        of_role.scope_metrics[0].metrics.iter().map(metric).collect()
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
    async fn a_refusal_is_told_and_ends_the_look() {
        let (env, registry) = (env(1), Arc::new(registry()));
        registry.add_many(5000);
        let collector = Collector::start(&env, "503 Service Unavailable").await;
        let error = push(&env, collector.port, &registry).await.unwrap_err();
        assert!(error.ends_with("it answers 503 Service Unavailable"), "{error}");
        assert_eq!(collector.posts().len(), 1);
        let error = push(&env, 1, &registry).await.unwrap_err();
        assert!(error.starts_with("http://collector:1: "), "{error}");
    }
}
