//! A directory of a tier whose disk was missing at the start.

use std::sync::Arc;

/// A directory of a tier whose disk was missing at the start. Its files are not available until the
/// next start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingVolume {
    /// Its absolute path.
    pub directory: Arc<str>,
    /// Why it cannot be used.
    pub reason: String,
}
