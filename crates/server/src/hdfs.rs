//! Opens directories on HDFS, in builds with the feature `hdfs`; other builds reject them.

#[cfg(not(feature = "hdfs"))]
mod absent;

#[cfg(feature = "hdfs")]
pub(crate) use ::hdfs::{IfMissing, open, open_foreign};
#[cfg(not(feature = "hdfs"))]
pub(crate) use absent::{IfMissing, open, open_foreign};
