//! Layer 7: metrics that are sent without being asked for: into a file, to StatsD, to Graphite; by the feature `otlp`
//! to OpenTelemetry, with traces of calls.
//!
//! What a role shows ([`base::metrics::Registry`]) goes to each sink once in a period, as records as Hadoop's sinks
//! get them (`record`): no sink knows which metrics there are. Invariants:
//!
//! * a peer that is slow or away costs a line in the log, bounded memory and one thread of low priority, never a
//!   request;
//! * text goes on its way while it is written: regions may be ten thousand;
//! * names are those that HBase's sinks send, so that users' dashboards go on.
//!
//! Not here: beans (`server`), pages (`web`), sockets and files, which are handed in ([`Outside`]).

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
pub use hadoop::{FILE_NAME, Mapped, Refused, mapped};
#[cfg(feature = "otlp")]
pub use otlp::{Endpoint, OtlpOptions, Spans, TraceContext, TraceObserver, Traced, TracedCall};
#[cfg(feature = "otlp")]
pub use plan::traced;
pub use plan::{SinkPlan, Target, configured};
pub use properties::FILE_BYTES_MAX;
pub use push::Role;
pub use statsd::{Datagrams, StatsdOptions, Udp};

use push::{Sink, start};

/// What sinks need of the world beside an [`Env`].
#[derive(Clone)]
pub struct Outside {
    /// Files to put lines in.
    pub files: Arc<dyn Files>,
    /// Sockets for datagrams.
    pub udp: Arc<dyn Udp>,
}

/// Starts the sinks of `plans`, which send what `roles` show for as long as the process lives.
pub fn start_all(env: &Env, plans: Vec<SinkPlan>, roles: &[Role], outside: &Outside) {
    for SinkPlan { name, period, filter, target } in plans {
        let medium: Box<dyn push::Medium> = match target {
            Target::File(path) => Box::new(file::FileSink::new(path, outside.files.clone())),
            Target::Statsd(options) => Box::new(statsd::StatsdSink::new(options, outside.udp.clone())),
            Target::Graphite(options) => Box::new(graphite::GraphiteSink::new(options)),
            #[cfg(feature = "otlp")]
            Target::Otlp(options) => Box::new(otlp::OtlpMetrics::new(options, env.clock.now_ms())),
        };
        start(env, Sink::new(name, filter, medium), period, roles.to_vec());
    }
}
