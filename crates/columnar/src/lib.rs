//! Layer 1: typed columns: values, vectors of them, conditions, groups and aggregates.
//!
//! * [`Value`], [`Kind`]: a value of a column, and what kinds there are;
//! * [`Encoding`]: how the bytes of a cell are read as a value, and values written as bytes;
//! * [`Column`]: where in a row a value is, and how it is written;
//! * [`Vector`], [`VectorBuilder`]: the values of one column for many rows;
//! * [`predicate`]: conditions over vectors, a bit a row; [`slices`]: vectors of large values cut into shorter ones;
//! * [`Aggregation`], [`Aggregator`]: groups of rows and what is found of them; [`aggregate`] has the functions;
//! * [`Packed`]: vectors that wait to be used;
//! * [`Partial`], [`Merger`]: what several found, put together.
//!
//! Knows nothing about: files, regions, protobuf, networks.

pub mod aggregate;
pub mod aggregation;
pub mod bits;
pub mod builder;
pub mod column;
pub mod encoding;
pub mod groups;
pub mod packed;
pub mod partial;
pub mod predicate;
pub mod slices;
pub mod strings;
pub mod value;
pub mod vector;

pub use aggregate::{Aggregate, Function, State};
pub use aggregation::{Aggregation, Aggregator, Batch, Refusal, Used};
pub use bits::Bits;
pub use builder::VectorBuilder;
pub use column::{Column, Place};
pub use encoding::{Encoding, Span, Unreadable};
pub use packed::Packed;
pub use partial::{Merger, Partial};
pub use predicate::Predicate;
pub use value::{Kind, Value};
pub use vector::{Bounds, Values, Vector};
