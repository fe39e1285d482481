//! Metrics and status pages of both roles.
//!
//! * [`beans`]: metrics under HBase's bean names, for `/jmx`, `/prometheus` and exporters;
//! * [`pages`]: the content of the status pages;
//! * [`history`]: time series of the last hour, for the plots of the pages;
//! * [`log_counts`]: counts of logged lines.
//!
//! Knows nothing about: HTTP and HTML (`web`), exporters (`sinks`), options of the process
//! (`server`).

pub mod beans;
mod history;
mod log_counts;
pub mod pages;

pub use beans::Identity;
pub use log_counts::LogLineCounter;
pub use pages::{MasterPages, Peers, RegionServerPages, StandbyPages, StandbyState};
