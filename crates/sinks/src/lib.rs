//! Pushes metrics to a file, to StatsD, or to Graphite; with the feature `otlp` also to
//! OpenTelemetry, together with traces of calls.
//!
//! Once per period, each sink gets the metrics of each role ([`base::metrics::Registry`]) as Hadoop
//! records (`record`). No sink depends on the set of metrics. Invariants:
//!
//! * a slow or absent receiver costs a log line, bounded memory and one thread of low priority, but
//!   never delays a request;
//! * text is sent while it is generated, because there may be ten thousand regions;
//! * names are those of HBase's sinks, so that existing dashboards keep working.
//!
//! Elsewhere: beans (`server`) and pages (`web`). Sockets and files are passed in ([`Io`]).

mod file;
mod filter;
mod graphite;
mod hadoop;
#[cfg(feature = "otlp")]
mod otlp;
mod plan;
mod properties;
mod push;
mod record;
mod statsd;
#[cfg(test)]
mod testing;

use std::sync::Arc;

use base::env::Env;

pub use file::{Files, LineFile};
pub use filter::{Filter, Patterns, glob, regular};
pub use graphite::GraphiteOptions;
pub use hadoop::{ConfiguredSinks, PropertiesError, configured_sinks};
#[cfg(feature = "otlp")]
pub use otlp::{Endpoint, OtlpOptions, Spans, TraceContext, TraceObserver, TracedCall, TracedService};
#[cfg(feature = "otlp")]
pub use plan::traced;
pub use plan::{SinkPlan, Target, configured};
pub use properties::FILE_BYTES_MAX;
pub use push::Role;
pub use statsd::{Datagrams, StatsdOptions, Udp};

use push::{Sink, start};

/// The external interfaces of sinks in addition to an [`Env`].
#[derive(Clone)]
pub struct Io {
    /// Opens files for appending.
    pub files: Arc<dyn Files>,
    /// Opens datagram sockets.
    pub udp: Arc<dyn Udp>,
}

/// Starts the sinks of `plans`, which send the metrics of `roles` until the process ends.
pub fn start_all(env: &Env, plans: Vec<SinkPlan>, roles: &[Role], io: &Io) {
    for SinkPlan { name, period, filter, target } in plans {
        let transport: Box<dyn push::Transport> = match target {
            Target::File(path) => Box::new(file::FileSink::new(path, io.files.clone())),
            Target::Statsd(options) => Box::new(statsd::StatsdSink::new(options, io.udp.clone())),
            Target::Graphite(options) => Box::new(graphite::GraphiteSink::new(options)),
            #[cfg(feature = "otlp")]
            Target::Otlp(options) => Box::new(otlp::OtlpMetrics::new(options, env.clock.now_ms())),
        };
        start(env, Sink::new(name, filter, transport), period, roles.to_vec());
    }
}
