//! Typed columns: values, vectors, conditions, groups and aggregates.
//!
//! * [`Value`], [`Kind`]: a value of a column, and the kinds of values;
//! * [`Encoding`]: decoding the bytes of a cell to a value, and encoding values;
//! * [`Column`]: location and encoding of a value in a row;
//! * [`Vector`], [`VectorBuilder`]: the values of one column for many rows;
//! * [`predicate`]: conditions over vectors, one bit per row; [`slices`]: splitting of vectors with
//!   large values;
//! * [`Aggregation`], [`Aggregator`]: groups of rows and their aggregates; [`aggregate`] has the
//!   functions;
//! * [`Packed`]: compressed vectors in memory;
//! * [`Partial`], [`Merger`]: partial results and merging them.
//!
//! Depends on no files, regions, protobuf or networks.

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
pub use aggregation::{Aggregation, Aggregator, Batch, ColumnMapping, Refusal};
pub use bits::Bits;
pub use builder::VectorBuilder;
pub use column::{Column, ColumnLocation};
pub use encoding::{Encoding, Span, Unreadable};
pub use packed::Packed;
pub use partial::{Merger, Partial};
pub use predicate::Predicate;
pub use value::{Kind, Value};
pub use vector::{Bounds, Values, Vector};
