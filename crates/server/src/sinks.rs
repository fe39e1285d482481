//! Which sinks the options and HBase's own file ask for, and what they need of the operating system.

use std::path::Path;
use std::sync::Arc;

use ::sinks::{FILE_NAME, Mapped, SinkPlan};
use base::config::Config;
use base::env::Env;
use rpc::Service;
use tracing::{info, warn};

use crate::os;

/// Sinks to be started, and what is to be told of how they came about.
#[derive(Debug, Default)]
pub(crate) struct Sinks {
    pub(crate) plans: Vec<SinkPlan>,
    notes: Vec<String>,
    warnings: Vec<String>,
    #[cfg(feature = "otlp")]
    traces: Option<(::sinks::OtlpOptions, f64)>,
}

/// The services of a role.
type Services = Vec<Arc<dyn Service>>;

impl Sinks {
    /// The sinks of `config`, and those of the file that may lie in its directory.
    ///
    /// # Errors
    /// One line that says which value cannot be meant, and where it stands.
    pub(crate) fn load(config: &Config, dir: Option<&Path>) -> Result<Sinks, String> {
        let plans = ::sinks::configured(config).map_err(|error| error.to_string())?;
        let mut sinks = Sinks { plans, ..Sinks::default() };
        #[cfg(feature = "otlp")]
        {
            sinks.traces = ::sinks::traced(config).map_err(|error| error.to_string())?;
        }
        if let Some(path) = dir.map(|dir| dir.join(FILE_NAME)) {
            let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
            // One byte more than is allowed is enough to see that there are too many.
            if let Some(bytes) = os::read_at_start(&path, ::sinks::FILE_BYTES_MAX + 1).map_err(unreadable)? {
                let mapped = ::sinks::mapped(&path, &bytes).map_err(|refused| refused.to_string())?;
                sinks.add(&path, mapped, config);
            }
        }
        Ok(sinks)
    }

    fn add(&mut self, path: &Path, mapped: Mapped, config: &Config) {
        self.notes.extend(mapped.notes);
        self.warnings.extend(mapped.warnings);
        for mut plan in mapped.sinks {
            if self.plans.iter().any(|earlier| earlier.name == plan.name) {
                let why = "given by options already, which count more; ignored";
                self.warnings.push(format!("hbase.sink.{} ({}): {why}", plan.name, path.display()));
                continue;
            }
            plan.filter.leaves_out_regions = !config.sink_regions;
            self.plans.push(plan);
        }
    }

    /// The services of a role on a host, with their calls traced if that is asked for.
    #[cfg(feature = "otlp")]
    pub(crate) fn traced(&self, env: &Env, role: &'static str, host: &str, services: Services) -> Services {
        let Some((options, ratio)) = &self.traces else { return services };
        let spans = ::sinks::Spans::start(env, options.clone(), *ratio, role, host);
        services.into_iter().map(|service| ::sinks::Traced::service(service, spans.clone())).collect()
    }

    /// The services of a role as they are: this build traces nothing.
    #[cfg(not(feature = "otlp"))]
    pub(crate) fn traced(&self, _: &Env, _: &'static str, _: &str, services: Services) -> Services {
        services
    }

    /// Tells what was found, when there is a log.
    pub(crate) fn tell(&self) {
        self.warnings.iter().for_each(|warning| warn!("{warning}"));
        self.notes.iter().for_each(|note| info!("{note}"));
        for SinkPlan { name, period, target, .. } in &self.plans {
            info!(sink = name, ?period, "metrics are sent to {target}");
        }
    }
}
