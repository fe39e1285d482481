//! `Get` messages, read one after the other.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use cell::query::{CellSelection, Get};
use prost::{DecodeError, Message};

use crate::convert::field::place_of;
use crate::convert::{Refused, from_proto};

/// Number of the field of a `Get` that says which row it is.
const GET_ROW: u32 = 1;
/// Bytes of the longest message that is remembered, which is for as long as others like it come.
const REMEMBERED_LEN_MAX: usize = 1 << 10;

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

/// What a message asks for.
#[derive(Debug, PartialEq)]
pub enum Asked {
    /// The same as the message before it did, of the row that is there in the frame.
    Alike(Range<usize>),
    /// Perhaps something else.
    Other(Get),
}

impl Gets {
    /// What the next message asks for, which is at `at` in `frame`.
    ///
    /// # Errors
    /// If it is no message; within, if what it asks for is [refused](from_proto::get).
    pub fn read(&mut self, frame: &Bytes, at: Range<usize>) -> Result<Result<Get, Refused>, DecodeError> {
        let asked = self.asked(frame, at)?;
        Ok(asked.map(|asked| match asked {
            Asked::Alike(row) => self.alike(frame.slice(row)),
            Asked::Other(get) => get,
        }))
    }

    /// Whether it is this selection, and not one that is like it, of which messages are [alike](Asked::Alike) now.
    #[inline]
    pub fn know(&self, selection: &Arc<CellSelection>) -> bool {
        self.last.as_ref().is_some_and(|known| Arc::ptr_eq(&known.selection, selection))
    }

    /// The Get of a row of which [the same](Asked::Alike) was asked.
    ///
    /// # Panics
    /// If that was not so of the last message.
    pub fn alike(&self, row: Bytes) -> Get {
        let known = self.last.as_ref().expect("the last message was like another one");
        Get { row, selection: known.selection.clone(), existence_only: known.existence_only }
    }

    /// The same without a Get for each.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    pub fn asked(&mut self, frame: &Bytes, at: Range<usize>) -> Result<Result<Asked, Refused>, DecodeError> {
        if let Some(row) = self.row_of_alike(frame, at.clone()) {
            return Ok(Ok(Asked::Alike(row)));
        }
        let row = place_of(&frame[at.clone()], 0, GET_ROW);
        let get = self.read_apart(frame, at, row)?;
        Ok(get.map(Asked::Other))
    }

    /// Where in `frame` the row of the message is that is at `at`, if that asks for the same as the last one.
    #[inline]
    pub fn row_of_alike(&self, frame: &[u8], at: Range<usize>) -> Option<Range<usize>> {
        let message = &frame[at.clone()];
        let row = place_of(message, 0, GET_ROW)?;
        let is_alike = message[row.end..] == self.last.as_ref()?.behind_row;
        let is_alike = is_alike && from_proto::check_row(&message[row.clone()]).is_ok();
        is_alike.then(|| at.start + row.start..at.start + row.end)
    }

    /// Reads a message, whose row is at `row` in it, and remembers what it asks for.
    fn read_apart(
        &mut self,
        frame: &Bytes,
        at: Range<usize>,
        row: Option<Range<usize>>,
    ) -> Result<Result<Get, Refused>, DecodeError> {
        let message = &frame[at.clone()];
        self.last = None;
        if message.len() > REMEMBERED_LEN_MAX {
            return Ok(from_proto::get(&proto::Get::decode(frame.slice(at))?));
        }
        // What is remembered must not keep the memory of the frame that it came in.
        let message = Bytes::copy_from_slice(message);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn message(row: &'static str, change: impl FnOnce(&mut proto::Get)) -> Bytes {
        let mut get = proto::Get { row: row.into(), ..proto::Get::default() };
        change(&mut get);
        get.encode_to_vec().into()
    }

    fn read(gets: &mut Gets, message: &Bytes) -> Result<Result<Get, Refused>, DecodeError> {
        gets.read(message, 0..message.len())
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
            // Whether one is read as a Get makes no difference to the next.
            let at = 0..message.len();
            if let Ok(Ok(Asked::Alike(row))) = gets.asked(message, at) {
                assert_eq!(message[row.clone()], gets.alike(message.slice(row)).row);
            }
            let alone = from_proto::get(&proto::Get::decode(message.clone()).unwrap());
            match (read(&mut gets, message).unwrap(), alone) {
                (Ok(read), Ok(alone)) => assert_eq!(read, alone),
                (Err(read), Err(alone)) => assert_eq!(read.to_string(), alone.to_string()),
                (read, alone) => panic!("{read:?} {alone:?}"),
            }
        }
    }

    #[test]
    fn what_is_alike_is_taken_apart_once() {
        let mut gets = Gets::default();
        let mut get =
            |row| read(&mut gets, &message(row, |get| get.column.push(column("f")))).unwrap().unwrap();
        let (first, second) = (get("a"), get("bb"));
        assert!(Arc::ptr_eq(&first.selection, &second.selection) && gets.know(&first.selection));
        assert!(!gets.know(&Arc::new(CellSelection::clone(&first.selection))));
        assert_eq!((&first.row[..], &second.row[..]), (&b"a"[..], &b"bb"[..]));
    }

    #[test]
    fn what_is_remembered_keeps_no_frame() {
        let with_columns =
            |count: usize| Bytes::from(message("a", |get| get.column = vec![column("f"); count]).to_vec());
        for columns in [1, 1000] {
            let mut gets = Gets::default();
            let frame = with_columns(columns);
            drop(read(&mut gets, &frame).unwrap().unwrap());
            assert!(frame.is_unique(), "{columns}");
            assert_eq!(gets.last.is_some(), columns == 1);
        }
    }

    #[test]
    fn messages_are_read_where_they_are() {
        let (first, second) = (message("a", |_| {}), message("bb", |_| {}));
        let frame = Bytes::from([&b"xx"[..], &first, &second, b"y"].concat());
        let mut gets = Gets::default();
        let mut at = 2;
        for message in [&first, &second] {
            let read = gets.read(&frame, at..at + message.len()).unwrap().unwrap();
            assert_eq!(read, from_proto::get(&proto::Get::decode(message.clone()).unwrap()).unwrap());
            at += message.len();
        }
    }

    #[test]
    fn the_last_row_of_a_message_counts() {
        let twice =
            |first: &'static str| -> Bytes { [message(first, |_| {}), message("z", |_| {})].concat().into() };
        let mut gets = Gets::default();
        for first in ["a", "b", "z", "c"] {
            assert_eq!(read(&mut gets, &twice(first)).unwrap().unwrap().row, "z");
        }
    }

    #[test]
    fn what_is_no_message_is_said() {
        let mut gets = Gets::default();
        read(&mut gets, &message("a", |_| {})).unwrap().unwrap();
        for bytes in [&b"\x0a\x05a"[..], b"\x0a\xff", b"\x0a\x01a\xff", b"\xff"] {
            assert!(read(&mut gets, &Bytes::from_static(bytes)).is_err(), "{bytes:?}");
        }
    }
}
