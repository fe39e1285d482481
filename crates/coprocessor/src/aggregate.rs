//! `AggregateService`: largest, smallest, sum, average, deviation, weighted median and number of rows, of one region. The
//! client asks every region and puts their answers together.
//!
//! * [`service`]: which method does what, and what its answer looks like;
//! * [`request`]: what is asked: a scan, and the class of a column interpreter;
//! * [`interpreter`]: what an interpreter is; [`long`], [`double`], [`big_decimal`] are those of HBase's client, and there are
//!   no others, for classes are not loaded. [`decimal`] and [`integer`] hold numbers without end;
//! * [`fold`]: what is kept of the cells; [`rows`]: how they come from a scanner.
//!
//! No answer depends on more than a few numbers, so a scan of any length takes no memory but the blocks that it stands on.
//!
//! Source: HBase `AggregateImplementation`; the answers, those to malformed requests too, were compared with a running one.

mod big_decimal;
mod decimal;
mod double;
mod fold;
#[cfg(fuzzing)]
pub mod fuzzing;
mod integer;
mod interpreter;
mod long;
mod request;
mod rows;
mod service;

pub(crate) use service::{SERVICE, call};
