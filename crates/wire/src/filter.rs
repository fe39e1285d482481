//! Filters and comparators, which clients name by their Java classes and write as a message of the same name.
//!
//! * [`decode`]: messages to [`Filter`], checked; a class that is not known is refused as HBase refuses it;
//! * [`encode`]: the same back, for our own client;
//! * [`comparator`]: both for comparators.

mod comparator;
mod decode;
mod encode;
mod fuzzy;
mod ranges;

use cell::filter::Filter;
pub(crate) use comparator::{decode_op as compare_op, encode_op as compare_type};

use crate::convert::Refused;

/// The package of HBase's filters and comparators.
const PACKAGE: &str = "org.apache.hadoop.hbase.filter.";

/// What a client's filter is.
///
/// # Errors
/// [`Refused::Malformed`] for classes that are not known and for messages that do not make sense.
pub fn from_proto(filter: &proto::Filter) -> Result<Filter, Refused> {
    decode::filter(filter, cell::filter::DEPTH_MAX)
}

/// The message of a filter.
pub fn to_proto(filter: &Filter) -> proto::Filter {
    encode::filter(filter)
}

/// The name within HBase's package, if the class is of it.
fn simple_name(class: &str) -> Option<&str> {
    class.strip_prefix(PACKAGE)
}

/// What HBase says when a class cannot be loaded.
fn unknown_class(class: &str) -> Refused {
    Refused::Malformed(format!("java.lang.ClassNotFoundException: {class}"))
}

/// What HBase says when a class does not take its message; the cause, which HBase keeps to itself, is added.
fn not_taken(cause: impl std::fmt::Display) -> Refused {
    Refused::Malformed(format!("java.lang.reflect.InvocationTargetException: {cause}"))
}
