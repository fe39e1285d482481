//! Layer 1: typed columns: values, vectors of them, conditions, groups and aggregates.
//!
//! * [`Value`], [`Kind`]: a value of a column, and what kinds there are;
//! * [`Encoding`]: how the bytes of a cell are read as a value, and values written as bytes;
//! * [`Column`]: where in a row a value is, and how it is written.
//!
//! Knows nothing about: files, regions, protobuf, networks.

pub mod column;
pub mod encoding;
pub mod value;

pub use column::{Column, Place};
pub use encoding::{Encoding, Unreadable};
pub use value::{Kind, Value};
