//! Layer 0: what every crate stands on and that knows nothing of HBase's data.
//!
//! * [`env`]: time, chance, tasks and network, handed in so that one seed can replay a run;
//! * [`pool`]: bounded threads for calls that block (local disks, compression);
//! * [`checksum`], [`compression`]: the two CRCs and the codecs of files and cell blocks;
//! * [`config`]: options declared once: key, default, unit, effect;
//! * [`metrics`]: counters and gauges that `/jmx` reads.
//!
//! Knows nothing about: cells, files' formats, protobuf, tables.

pub mod env;

use std::future::Future;
use std::pin::Pin;

/// A boxed future, as the traits that are handed around as objects return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
