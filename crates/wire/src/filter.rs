//! Filters and comparators. Clients send the Java class name and a serialized message of the same
//! name.
//!
//! * [`decode`]: messages to a validated [`Filter`]; rejects unknown classes as HBase does;
//! * [`encode`]: the reverse, for our own client;
//! * [`comparator`]: both directions for comparators.

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

/// Maximum size in bytes of a serialized filter that is decoded.
pub const BYTES_MAX: usize = 16 << 20;
/// Maximum number of filters inside one filter, regardless of the server's options.
pub const ELEMENTS_MAX: usize = 1 << 18;

/// Decodes a client's filter.
///
/// # Errors
/// [`Refused::Malformed`] for an unknown class or an invalid message.
pub fn from_proto(filter: &proto::Filter) -> Result<Filter, Refused> {
    let bytes = filter.serialized_filter.as_ref().map_or(0, |bytes| bytes.len());
    if bytes > BYTES_MAX {
        return Err(invalid_filter(format!("filter of {bytes} bytes exceeds limit of {BYTES_MAX} bytes")));
    }
    decode::filter(filter, cell::filter::DEPTH_MAX, &mut { ELEMENTS_MAX })
}

/// Encodes a filter as its message.
pub fn to_proto(filter: &Filter) -> proto::Filter {
    encode::filter(filter)
}

/// The class name without HBase's package; `None` for a class of another package.
fn simple_name(class: &str) -> Option<&str> {
    class.strip_prefix(PACKAGE)
}

/// HBase's error for a class that cannot be loaded.
fn unknown_class(class: &str) -> Refused {
    Refused::Malformed(format!("java.lang.ClassNotFoundException: {class}"))
}

/// HBase's error for a class that rejects its message, plus the cause, which HBase does not send.
fn invalid_filter(cause: impl std::fmt::Display) -> Refused {
    Refused::Malformed(format!("java.lang.reflect.InvocationTargetException: {cause}"))
}
