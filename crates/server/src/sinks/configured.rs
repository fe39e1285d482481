//! Loads the metrics sinks from the options and HBase's own file, and starts them.

use std::path::Path;

use ::sinks::{ConfiguredSinks, Role, SinkPlan};
use base::config::Config;
use base::env::Env;
use tracing::{info, warn};

use super::{FILE_NAME, RoleMetrics, Services, io};

/// The sinks to start, with notes and warnings from loading them.
#[derive(Debug, Default)]
pub(crate) struct Sinks {
    plans: Vec<SinkPlan>,
    notes: Vec<String>,
    warnings: Vec<String>,
    #[cfg(feature = "otlp")]
    traces: Option<(::sinks::OtlpOptions, f64)>,
}

impl Sinks {
    /// Loads the sinks of `config`, and those of the file in `dir`, if there is one.
    ///
    /// # Errors
    /// One line that names the invalid value and its source.
    pub(crate) fn load(config: &Config, dir: Option<&Path>) -> Result<Sinks, String> {
        let plans = ::sinks::configured(config).map_err(|error| error.to_string())?;
        let mut sinks = Sinks { plans, ..Sinks::default() };
        #[cfg(feature = "otlp")]
        {
            sinks.traces = ::sinks::traced(config).map_err(|error| error.to_string())?;
        }
        if let Some(path) = dir.map(|dir| dir.join(FILE_NAME)) {
            let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
            // Reading one byte more than allowed is enough to detect a file that is too long.
            if let Some(bytes) = os::read_at_start(&path, ::sinks::FILE_BYTES_MAX + 1).map_err(unreadable)? {
                let configured =
                    ::sinks::configured_sinks(&path, &bytes).map_err(|refused| refused.to_string())?;
                sinks.add(&path, configured, config);
            }
        }
        Ok(sinks)
    }

    fn add(&mut self, path: &Path, configured: ConfiguredSinks, config: &Config) {
        self.notes.extend(configured.notes);
        self.warnings.extend(configured.warnings);
        for mut plan in configured.sinks {
            if self.plans.iter().any(|earlier| earlier.name == plan.name) {
                let why = "ignored: options set a sink of this name, and they take precedence";
                self.warnings.push(format!("hbase.sink.{} ({}): {why}", plan.name, path.display()));
                continue;
            }
            plan.filter.excludes_regions = !config.sink_regions;
            self.plans.push(plan);
        }
    }

    /// Wraps the services of a role on a host with tracing, if it is configured.
    #[cfg(feature = "otlp")]
    pub(crate) fn traced(&self, env: &Env, role: &'static str, host: &str, services: Services) -> Services {
        let Some((options, ratio)) = &self.traces else { return services };
        let spans = ::sinks::Spans::start(env, options.clone(), *ratio, role, host);
        services.into_iter().map(|service| ::sinks::TracedService::service(service, spans.clone())).collect()
    }

    /// Returns the services of a role unchanged: this build has no tracing.
    #[cfg(not(feature = "otlp"))]
    pub(crate) fn traced(&self, _: &Env, _: &'static str, _: &str, services: Services) -> Services {
        services
    }

    /// The number of sinks.
    pub(crate) fn count(&self) -> u64 {
        self.plans.len() as u64
    }

    /// Starts the sinks, which send the metrics of these roles until the process ends.
    pub(crate) fn start(self, env: &Env, roles: RoleMetrics) {
        let roles: Vec<Role> = roles.into_iter().map(|(name, registry)| Role { name, registry }).collect();
        ::sinks::start_all(env, self.plans, &roles, &io::local());
    }

    /// Logs the sinks, notes and warnings. Call it once logging has started.
    pub(crate) fn log_summary(&self) {
        self.warnings.iter().for_each(|warning| warn!("{warning}"));
        self.notes.iter().for_each(|note| info!("{note}"));
        for SinkPlan { name, period, target, .. } in &self.plans {
            info!(sink = name, ?period, "sending metrics to {target}");
        }
    }
}
