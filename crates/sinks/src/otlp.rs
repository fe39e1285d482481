//! Metrics and traces for OpenTelemetry, by OTLP over HTTP: protobuf messages posted to a
//! collector.
//!
//! The messages are those of `opentelemetry-proto`; connections come from the environment. Requests
//! have a bounded size: many metrics are split into several requests.

mod metrics;
mod post;
mod spans;
mod traced;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;

pub(crate) use metrics::OtlpMetrics;
pub use post::Endpoint;
pub use spans::{Spans, TraceContext, TraceObserver, TracedCall};
pub use traced::TracedService;

/// The target of an OTLP sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpOptions {
    /// The collector.
    pub endpoint: Endpoint,
    /// The service name; `None` means `hbase-master` or `hbase-regionserver`.
    pub service: Option<String>,
}

impl OtlpOptions {
    /// The sender's resource: a role on a host.
    fn resource(&self, role: &str, host: &str) -> Resource {
        let service = self.service.clone().unwrap_or_else(|| format!("hbase-{}", role.to_ascii_lowercase()));
        Resource {
            attributes: vec![text("service.name", service), text("host.name", host.to_owned())],
            ..Resource::default()
        }
    }
}

/// The instrumentation scope of the metrics and spans.
fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "grampus".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

fn text(key: &str, value: String) -> KeyValue {
    let value = Some(AnyValue { value: Some(Value::StringValue(value)) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}
