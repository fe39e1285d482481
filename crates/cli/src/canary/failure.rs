//! Failures of the canary and their exit statuses.

/// Why the canary failed, with HBase's exit status. Source: HBase `CanaryTool`, `*_EXIT_CODE`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// The canary cannot determine what to probe.
    #[error("{0}")]
    Init(String),
    /// The round timed out.
    #[error("round timed out after {limit_ms} ms; {probes} probes completed")]
    Timeout {
        /// The time limit.
        limit_ms: u64,
        /// Probes that completed, successfully or not.
        probes: usize,
    },
    /// A named target does not exist, or the preparation of probes failed.
    #[error("{0}")]
    Error(String),
    /// Probes failed.
    #[error("{failures} of {probes} probes failed")]
    Failed {
        /// Number of failed probes.
        failures: usize,
        /// Number of all probes.
        probes: usize,
    },
}

impl Failure {
    /// The exit status of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 1,
            Failure::Init(_) => 2,
            Failure::Timeout { .. } => 3,
            Failure::Error(_) => 4,
            Failure::Failed { .. } => 5,
        }
    }
}
