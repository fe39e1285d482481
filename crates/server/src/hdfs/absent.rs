//! A build without HDFS.

use std::sync::Arc;

use base::config::{Config, RootUri};
use base::env::Env;
use fs::FileSystem;

/// Always fails.
pub(crate) async fn open(
    _: &Env,
    config: &Config,
    key: &str,
    _: &RootUri,
) -> Result<Arc<dyn FileSystem>, String> {
    Err(config.refused(key, "this build has no HDFS (feature hdfs)".into()).to_string())
}
