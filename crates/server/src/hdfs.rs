//! Opens directories on HDFS, in builds with the feature `hdfs`; other builds reject them.

#[cfg(not(feature = "hdfs"))]
mod absent;
#[cfg(feature = "hdfs")]
mod configured;

#[cfg(not(feature = "hdfs"))]
pub(crate) use absent::open;
#[cfg(feature = "hdfs")]
pub(crate) use configured::open;
