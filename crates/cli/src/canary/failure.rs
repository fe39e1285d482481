//! How the program ends if not well.

/// Why, with HBase's status for it. Source: HBase `CanaryTool`, `*_EXIT_CODE`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It was asked wrongly.
    #[error("{0}")]
    Usage(String),
    /// What is to be probed cannot be found out.
    #[error("{0}")]
    Init(String),
    /// The round took too long.
    #[error("the round is not over after {limit_ms} ms; {probes} probes were made")]
    Timeout {
        /// The time that there was.
        limit_ms: u64,
        /// Probes that ended, well or not.
        probes: usize,
    },
    /// Something that was named is not there, or what is needed for probes could not be done.
    #[error("{0}")]
    Error(String),
    /// Probes failed.
    #[error("{failures} of {probes} probes failed")]
    Failed {
        /// How many.
        failures: usize,
        /// Of how many.
        probes: usize,
    },
}

impl Failure {
    /// The status of the process.
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
