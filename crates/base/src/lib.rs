//! Layer 0: what every crate stands on and that knows nothing of HBase's data.
//!
//! * [`mod@env`]: time, chance, tasks and network, handed in so that one seed can replay a run;
//! * [`pool`]: bounded threads for calls that block (local disks, compression);
//! * [`prefetch`]: a word to the processor about memory that will be read;
//! * [`process`], [`threads`]: what the kernel says of this process;
//! * [`budget`]: bytes that all who serve clients hold together;
//! * [`checksum`], [`compression`], [`varint`]: the two CRCs, the codecs of files and cell blocks, the integers of
//!   variable length;
//! * [`config`], [`memory`]: options declared once (key, default, form, effect), and the memory there is;
//! * [`hottest`]: the most frequent items of a stream;
//! * [`pages`]: memory in whole pages that goes back to the system when it is let go;
//! * [`metrics`]: counters and gauges that `/jmx` shows; histograms and meters;
//! * [`history`]: the last hour of a handful of figures, kept in process;
//! * [`spent`]: where the time of a call went;
//! * [`turns`]: how calls share the threads that serve connections;
//! * [`testing`]: an [`env::Env`] from a seed, for the tests of every crate.
//!
//! Knows nothing about: cells, files' formats, protobuf, tables.

pub mod budget;
pub mod checksum;
pub mod compression;
pub mod config;
pub mod env;
pub mod history;
pub mod hottest;
pub mod memory;
pub mod metrics;
pub mod pages;
pub mod pool;
pub mod prefetch;
pub mod process;
pub mod spent;
pub mod testing;
pub mod threads;
pub mod turns;
pub mod varint;

use std::future::Future;
use std::pin::Pin;

/// A boxed future, as the traits that are handed around as objects return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
