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

/// Bytes of the largest filter that is decoded.
pub const BYTES_MAX: usize = 16 << 20;
/// Filters that a filter may hold, whatever the server's options allow.
pub const ELEMENTS_MAX: usize = 1 << 18;

/// What a client's filter is.
///
/// # Errors
/// [`Refused::Malformed`] for classes that are not known and for messages that do not make sense.
pub fn from_proto(filter: &proto::Filter) -> Result<Filter, Refused> {
    let bytes = filter.serialized_filter.as_ref().map_or(0, |bytes| bytes.len());
    if bytes > BYTES_MAX {
        return Err(not_taken(format!("filter of {bytes} bytes exceeds limit of {BYTES_MAX} bytes")));
    }
    decode::filter(filter, cell::filter::DEPTH_MAX, &mut { ELEMENTS_MAX })
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
