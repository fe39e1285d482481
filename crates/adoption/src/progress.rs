//! Reports how far a long operation is.

/// Receives the progress of an operation, which consists of stages.
pub trait Progress: Send + Sync {
    /// A stage of `total` units begins. 0: the number is unknown.
    fn begin(&self, stage: &str, total: u64);

    /// Units of the current stage that were completed.
    fn advance(&self, units: u64);
}

/// Ignores progress.
pub struct NoProgress;

impl Progress for NoProgress {
    fn begin(&self, _stage: &str, _total: u64) {}

    fn advance(&self, _units: u64) {}
}
