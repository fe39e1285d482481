//! A build without HDFS.

use std::sync::Arc;

use base::config::{Config, RootUri};
use base::env::Env;
use fs::FileSystem;

const ABSENT: &str = "this build has no HDFS (feature hdfs)";

/// What to do about a directory that does not exist.
#[derive(Clone, Copy)]
pub(crate) enum IfMissing {
    /// Create it.
    Create,
    /// Fail.
    Fail,
}

/// Always fails.
pub(crate) async fn open(
    _: &Env,
    config: &Config,
    (key, _): (&str, &RootUri),
    _: IfMissing,
) -> Result<Arc<dyn FileSystem>, String> {
    Err(config.refused(key, ABSENT.into()).to_string())
}

/// Always fails.
pub(crate) async fn open_foreign(_: &Env, _: &Config, _: &RootUri) -> Result<Arc<dyn FileSystem>, String> {
    Err(ABSENT.into())
}
