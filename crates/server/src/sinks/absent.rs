//! A build without metrics sinks: rejects their options.

use std::path::Path;

use base::config::Config;
use base::env::Env;
use tracing::warn;

use super::{FILE_NAME, RoleMetrics, Services};

/// No sinks.
#[derive(Debug, Default)]
pub(crate) struct Sinks {
    warning: Option<String>,
}

impl Sinks {
    /// Checks that no sink is configured in `config`. The file of sinks in `dir` is ignored with a
    /// warning, because HBase distributes one.
    ///
    /// # Errors
    /// One line that names the option.
    pub(crate) fn load(config: &Config, dir: Option<&Path>) -> Result<Sinks, String> {
        let is_set = [
            ("hbase.sink.file.filename", config.file_sink.is_some(), "sinks"),
            ("hbase.sink.statsd.server.host", config.statsd_sink_host.is_some(), "sinks"),
            ("hbase.sink.graphite.server_host", config.graphite_sink_host.is_some(), "sinks"),
            ("otel.exporter.otlp.endpoint", !config.otlp_endpoint.is_empty(), "otlp"),
        ];
        if let Some((key, _, feature)) = is_set.into_iter().find(|(_, is_set, _)| *is_set) {
            let why = format!(
                "this build has no metrics sinks: build with `--features {feature}`, or remove the option"
            );
            return Err(config.refused(key, why).to_string());
        }
        let path = dir.map(|dir| dir.join(FILE_NAME)).filter(|path| is_file(path));
        let warning = path.map(|path| {
            format!("{} is ignored: this build has no metrics sinks (feature `sinks`)", path.display())
        });
        Ok(Sinks { warning })
    }

    /// The number of sinks.
    pub(crate) fn count(&self) -> u64 {
        0
    }

    /// Starts no sink.
    pub(crate) fn start(self, _: &Env, _: RoleMetrics) {}

    /// Returns the services of a role unchanged.
    pub(crate) fn traced(&self, _: &Env, _: &'static str, _: &str, services: Services) -> Services {
        services
    }

    /// Logs the warning. Call it once logging has started.
    pub(crate) fn log_summary(&self) {
        self.warning.iter().for_each(|warning| warn!("{warning}"));
    }
}

#[allow(clippy::disallowed_methods, reason = "the user chooses this directory")]
fn is_file(path: &Path) -> bool {
    path.is_file()
}
