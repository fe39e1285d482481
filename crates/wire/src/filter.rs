//! Filters and comparators, which clients name by their Java classes. None is known yet.

use crate::convert::Refused;

/// Refuses a read with a filter.
///
/// # Errors
/// [`Refused::Unsupported`] that names the filter.
pub fn refuse(filter: Option<&proto::Filter>) -> Result<(), Refused> {
    match filter {
        None => Ok(()),
        Some(filter) => Err(Refused::Unsupported(format!("filter {}", filter.name))),
    }
}
