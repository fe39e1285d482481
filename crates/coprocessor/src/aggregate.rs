//! `AggregateService`: maximum, minimum, sum, average, standard deviation, weighted median and row
//! count of one region. The client calls every region and merges the results.
//!
//! * [`service`]: the methods and their responses;
//! * [`request`]: decoding of requests: a scan, and the class of a column interpreter;
//! * [`interpreter`]: the trait of column interpreters. [`long`], [`double`] and [`big_decimal`]
//!   are those of HBase's client; other classes cannot be loaded. [`decimal`] and [`integer`]
//!   implement arbitrary-precision numbers;
//! * [`fold`]: the state kept for the cells; [`rows`]: reading cells from a scanner.
//!
//! Every result depends on only a few numbers, so a scan of any length takes no memory except for
//! the blocks that it pins.
//!
//! Source: HBase `AggregateImplementation`. Responses, including those to malformed requests, were
//! compared with a running HBase.

mod big_decimal;
mod decimal;
mod double;
mod fold;
mod integer;
mod interpreter;
mod long;
mod request;
mod rows;
mod service;

pub(crate) use service::{SERVICE, call};
