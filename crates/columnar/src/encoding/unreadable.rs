//! Error messages for bytes that are not a value.

use std::fmt::Write;

use super::Encoding;
use super::decimal::Fault;
use crate::column::DECIMAL_DIGITS_MAX;

/// Maximum number of bytes that an error shows.
const QUOTED_BYTES_MAX: usize = 32;

/// Bytes that are not a value of their column's encoding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

impl Encoding {
    #[cold]
    pub(super) fn unreadable(self, bytes: &[u8], fault: Fault) -> Unreadable {
        let reason = match (fault, self.width()) {
            (Fault::Scale, _) => ", it has more digits after the decimal point than the column: declare it with a larger scale".to_string(),
            (Fault::Digits, _) => format!(", it has more than {DECIMAL_DIGITS_MAX} digits"),
            (Fault::Form, Some(width)) if width != bytes.len() => format!(", it has {} bytes, not {width}", bytes.len()),
            (Fault::Form, _) if self == Encoding::PhoenixTimestamp => {
                ", it is not a time between the years 1678 and 2262, or its nanoseconds are a millisecond or more".to_string()
            }
            (Fault::Form, _) => String::new(),
        };
        Unreadable(format!("no {}: {}{reason}", self.name(), quoted(bytes)))
    }

    #[cold]
    pub(super) fn other_kind(self, wanted: &str) -> Unreadable {
        Unreadable(format!("{} is not an encoding of {wanted}", self.name()))
    }
}

/// The first bytes in HBase's notation: printable ASCII unchanged, others as `\x` and two digits.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes.iter().take(QUOTED_BYTES_MAX) {
        match byte {
            b'\\' | ..=0x1f | 0x7f.. => _ = write!(text, "\\x{byte:02X}"),
            printable => text.push(char::from(*printable)),
        }
    }
    if bytes.len() > QUOTED_BYTES_MAX {
        _ = write!(text, "... ({} bytes)", bytes.len());
    }
    if text.is_empty() { "nothing".to_string() } else { text }
}
