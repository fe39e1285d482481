//! Utilities that every crate uses and that know nothing of HBase's data.
//!
//! * [`mod@env`]: time, random numbers, tasks and network, injected so that one seed can replay a
//!   run;
//! * [`pool`]: bounded threads for calls that block (local disks, compression);
//! * [`prefetch`]: prefetch hints for memory that will be read soon;
//! * [`process`], [`threads`]: kernel statistics of this process and its threads;
//! * [`budget`]: bytes that all client connections hold together;
//! * [`checksum`], [`compression`], [`varint`]: the two CRCs, the codecs of files and cell blocks,
//!   variable-length integers;
//! * [`config`], [`memory`]: options declared once (key, default, form, effect), and the available
//!   memory;
//! * [`text`], [`calendar`]: bytes and times as text;
//! * [`hottest`]: the most frequent items of a stream;
//! * [`pages`]: memory in whole pages that is returned to the system when it is freed;
//! * [`metrics`]: counters and gauges for `/jmx`; histograms and meters;
//! * [`history`]: the last hour of a few metrics, in memory;
//! * [`spent`]: latency breakdown and resource use of a call;
//! * [`turns`]: how calls share the threads that serve connections;
//! * [`testing`]: a seeded [`env::Env`] for the tests of every crate.
//!
//! Knows nothing about: cells, file formats, protobuf, tables.

pub mod budget;
pub mod calendar;
pub mod checksum;
pub mod classes;
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
pub mod text;
pub mod threads;
pub mod turns;
pub mod varint;

use std::future::Future;
use std::pin::Pin;

/// A boxed future, as object-safe traits return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
