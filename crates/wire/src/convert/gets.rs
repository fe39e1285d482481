//! `Get` messages, read one after the other.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use cell::query::{CellSelection, Get};
use prost::encoding::{WireType, decode_key, decode_varint};
use prost::{DecodeError, Message};

use crate::convert::{Refused, from_proto};

/// Number of the field of a `Get` that says which row it is.
const GET_ROW: u32 = 1;

/// Reads the messages of Gets.
///
/// Who asks for many rows asks for the same of each: messages that are alike behind the row are taken apart once.
#[derive(Default)]
pub struct Gets {
    last: Option<Known>,
}

/// What is known of a message.
struct Known {
    behind_row: Bytes,
    selection: Arc<CellSelection>,
    existence_only: bool,
}

impl Gets {
    /// What the next message asks for.
    ///
    /// # Errors
    /// If it is no message; within, if what it asks for is [refused](from_proto::get).
    pub fn read(&mut self, message: &Bytes) -> Result<Result<Get, Refused>, DecodeError> {
        let row = leading_row(message);
        if let (Some(row), Some(known)) = (row.clone(), &self.last)
            && message[row.end..] == known.behind_row
        {
            return Ok(from_proto::check_row(&message[row.clone()]).map(|()| Get {
                row: message.slice(row),
                selection: known.selection.clone(),
                existence_only: known.existence_only,
            }));
        }
        let get = from_proto::get(&proto::Get::decode(message.clone())?);
        self.last = row.zip(get.as_ref().ok()).and_then(|(row, get)| {
            // A row that stands behind would be another one.
            let is_only = message[row.clone()].as_ptr() == get.row.as_ptr();
            is_only.then(|| Known {
                behind_row: message.slice(row.end..),
                selection: get.selection.clone(),
                existence_only: get.existence_only,
            })
        });
        Ok(get)
    }
}

/// Where the row is in a message that begins with it.
fn leading_row(message: &[u8]) -> Option<Range<usize>> {
    let mut rest = message;
    let is_row = decode_key(&mut rest).ok()? == (GET_ROW, WireType::LengthDelimited);
    let len = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
    let start = message.len() - rest.remaining();
    (is_row && len <= rest.remaining()).then(|| start..start + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(row: &'static str, change: impl FnOnce(&mut proto::Get)) -> Bytes {
        let mut get = proto::Get { row: row.into(), ..proto::Get::default() };
        change(&mut get);
        get.encode_to_vec().into()
    }

    fn column(family: &'static str) -> proto::Column {
        proto::Column { family: family.into(), qualifier: vec!["q".into()] }
    }

    #[test]
    fn all_are_read_as_if_alone() {
        let messages = [
            message("a", |get| get.column.push(column("f"))),
            message("b", |get| get.column.push(column("f"))),
            message("b", |get| get.column.push(column("g"))),
            message("c", |get| get.max_versions = Some(3)),
            message("", |get| get.max_versions = Some(3)),
            message("d", |get| get.max_versions = Some(3)),
            message("e", |get| get.max_versions = Some(0)),
            message("f", |get| get.existence_only = Some(true)),
            message("g", |get| get.existence_only = Some(true)),
            message("h", |_| {}),
            message("i", |_| {}),
        ];
        let mut gets = Gets::default();
        for message in &messages {
            let alone = from_proto::get(&proto::Get::decode(message.clone()).unwrap());
            match (gets.read(message).unwrap(), alone) {
                (Ok(read), Ok(alone)) => assert_eq!(read, alone),
                (Err(read), Err(alone)) => assert_eq!(read.to_string(), alone.to_string()),
                (read, alone) => panic!("{read:?} {alone:?}"),
            }
        }
    }

    #[test]
    fn what_is_alike_is_taken_apart_once() {
        let mut gets = Gets::default();
        let mut read = |row| gets.read(&message(row, |get| get.column.push(column("f")))).unwrap().unwrap();
        let (first, second) = (read("a"), read("bb"));
        assert!(Arc::ptr_eq(&first.selection, &second.selection));
        assert_eq!((&first.row[..], &second.row[..]), (&b"a"[..], &b"bb"[..]));
    }

    #[test]
    fn the_last_row_of_a_message_counts() {
        let twice =
            |first: &'static str| -> Bytes { [message(first, |_| {}), message("z", |_| {})].concat().into() };
        let mut gets = Gets::default();
        for first in ["a", "b", "z", "c"] {
            assert_eq!(gets.read(&twice(first)).unwrap().unwrap().row, "z");
        }
    }

    #[test]
    fn what_is_no_message_is_said() {
        let mut gets = Gets::default();
        gets.read(&message("a", |_| {})).unwrap().unwrap();
        for bytes in [&b"\x0a\x05a"[..], b"\x0a\xff", b"\x0a\x01a\xff", b"\xff"] {
            assert!(gets.read(&Bytes::from_static(bytes)).is_err(), "{bytes:?}");
        }
    }
}
