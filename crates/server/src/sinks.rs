//! Where metrics are sent, in builds with the feature `sinks`; other builds reject its options.

#[cfg(not(feature = "sinks"))]
mod absent;
#[cfg(feature = "sinks")]
mod configured;
#[cfg(feature = "sinks")]
mod io;

use std::sync::Arc;

use base::metrics::Registry;
use rpc::Service;

#[cfg(not(feature = "sinks"))]
pub(crate) use absent::Sinks;
#[cfg(feature = "sinks")]
pub(crate) use configured::Sinks;

/// HBase's file of metrics sinks, in the configuration directory.
const FILE_NAME: &str = "hadoop-metrics2-hbase.properties";

/// The metrics of the roles of this process, with their names.
pub(crate) type RoleMetrics = Vec<(&'static str, Arc<Registry>)>;
/// The services of a role.
type Services = Vec<Arc<dyn Service>>;
