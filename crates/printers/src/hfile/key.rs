//! Keys in the form of HBase's `KeyValue.keyToString`.

use base::text::to_string_binary;
use cell::LATEST_TIMESTAMP;

/// Formats row, column, timestamp and type of a key: `row/family:qualifier/1/Put`.
pub(super) fn format_key(key: &[u8]) -> String {
    let (row, family) = (to_string_binary(cell::key::row(key)), to_string_binary(cell::key::family(key)));
    let qualifier = to_string_binary(cell::key::qualifier(key));
    let colon = if family.is_empty() { "" } else { ":" };
    let timestamp = match cell::key::timestamp(key) {
        LATEST_TIMESTAMP => "LATEST_TIMESTAMP".to_owned(),
        timestamp => timestamp.to_string(),
    };
    format!("{row}/{family}{colon}{qualifier}/{timestamp}/{}", type_name(cell::key::type_code(key)))
}

/// The name of a type in HBase (`KeyValue.Type`), or the code of an unknown one.
pub(crate) fn type_name(code: u8) -> String {
    let name = match code {
        0 => "Minimum",
        4 => "Put",
        8 => "Delete",
        10 => "DeleteFamilyVersion",
        12 => "DeleteColumn",
        14 => "DeleteFamily",
        255 => "Maximum",
        _ => return format!("Unknown({code})"),
    };
    name.to_owned()
}

/// A key as the printer shows first, last and middle keys.
pub(super) fn format_optional(key: Option<&[u8]>) -> String {
    match key {
        Some(key) => format!("Optional[{}/seqid=0]", format_key(key)),
        None => "Optional.empty".to_owned(),
    }
}
