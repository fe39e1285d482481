//! Decodes a sequence of `Get` messages.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use cell::query::{CellSelection, Get};
use prost::{DecodeError, Message};

use crate::convert::field::field_range;
use crate::convert::{Refused, from_proto};

/// The field number of the row in a `Get`.
const GET_ROW: u32 = 1;
/// Maximum size in bytes of a message that is remembered. It stays in memory while similar messages
/// follow.
const REMEMBERED_LEN_MAX: usize = 1 << 10;

/// Decodes `Get` messages.
///
/// A client that reads many rows usually reads the same columns of each. Messages that are
/// identical after the row are decoded once.
#[derive(Default)]
pub struct Gets {
    last: Option<DecodedGet>,
}

/// The last message, decoded.
struct DecodedGet {
    after_row: Bytes,
    selection: Arc<CellSelection>,
    existence_only: bool,
}

/// What a message requests.
#[derive(Debug, PartialEq)]
pub enum GetRequestKind {
    /// The same selection as the previous message, of the row at this range of the frame.
    SameSelection(Range<usize>),
    /// Possibly another selection.
    Other(Get),
}

impl Gets {
    /// Decodes the message at `at` in `frame`.
    ///
    /// # Errors
    /// The outer error: the bytes are not a message. The inner error: the request is
    /// [rejected](from_proto::get).
    pub fn read(&mut self, frame: &Bytes, at: Range<usize>) -> Result<Result<Get, Refused>, DecodeError> {
        let kind = self.request_kind(frame, at)?;
        Ok(kind.map(|kind| match kind {
            GetRequestKind::SameSelection(row) => self.with_last_selection(frame.slice(row)),
            GetRequestKind::Other(get) => get,
        }))
    }

    /// Whether `selection` is the very object (not an equal one) that messages [like the last
    /// one](GetRequestKind::SameSelection) now share.
    #[inline]
    pub fn is_current_selection(&self, selection: &Arc<CellSelection>) -> bool {
        self.last.as_ref().is_some_and(|last| Arc::ptr_eq(&last.selection, selection))
    }

    /// The Get of `row` with the selection of the last message, as
    /// [`GetRequestKind::SameSelection`] requests it.
    ///
    /// # Panics
    /// If no message is remembered.
    pub fn with_last_selection(&self, row: Bytes) -> Get {
        let last = self.last.as_ref().expect("a message is remembered");
        Get { row, selection: last.selection.clone(), existence_only: last.existence_only }
    }

    /// Like [`read`](Self::read), but builds no Get for a message that is like the last one.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    pub fn request_kind(
        &mut self,
        frame: &Bytes,
        at: Range<usize>,
    ) -> Result<Result<GetRequestKind, Refused>, DecodeError> {
        if let Some(row) = self.row_if_same_selection(frame, at.clone()) {
            return Ok(Ok(GetRequestKind::SameSelection(row)));
        }
        let row = field_range(&frame[at.clone()], 0, GET_ROW);
        let get = self.decode(frame, at, row)?;
        Ok(get.map(GetRequestKind::Other))
    }

    /// The range in `frame` of the row of the message at `at`, if the message requests the same as
    /// the last one.
    #[inline]
    pub fn row_if_same_selection(&self, frame: &[u8], at: Range<usize>) -> Option<Range<usize>> {
        let message = &frame[at.clone()];
        let row = field_range(message, 0, GET_ROW)?;
        let is_same = message[row.end..] == self.last.as_ref()?.after_row;
        let is_same = is_same && from_proto::check_row(&message[row.clone()]).is_ok();
        is_same.then(|| at.start + row.start..at.start + row.end)
    }

    /// Decodes the whole message, whose row is at `row` in it, and remembers its selection.
    fn decode(
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
        // Copied: what is remembered must not keep the frame's memory.
        let message = Bytes::copy_from_slice(message);
        let get = from_proto::get(&proto::Get::decode(message.clone())?);
        self.last = row.zip(get.as_ref().ok()).and_then(|(row, get)| {
            // A second row field after the first one would override it.
            let is_only = message[row.clone()].as_ptr() == get.row.as_ptr();
            is_only.then(|| DecodedGet {
                after_row: message.slice(row.end..),
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
    fn all_messages_are_read_as_if_single() {
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
            // Whether a message is decoded to a Get does not affect the next one.
            let at = 0..message.len();
            if let Ok(Ok(GetRequestKind::SameSelection(row))) = gets.request_kind(message, at) {
                assert_eq!(message[row.clone()], gets.with_last_selection(message.slice(row)).row);
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
    fn equal_selections_are_decoded_once() {
        let mut gets = Gets::default();
        let mut get =
            |row| read(&mut gets, &message(row, |get| get.column.push(column("f")))).unwrap().unwrap();
        let (first, second) = (get("a"), get("bb"));
        assert!(
            Arc::ptr_eq(&first.selection, &second.selection) && gets.is_current_selection(&first.selection)
        );
        assert!(!gets.is_current_selection(&Arc::new(CellSelection::clone(&first.selection))));
        assert_eq!((&first.row[..], &second.row[..]), (&b"a"[..], &b"bb"[..]));
    }

    #[test]
    fn remembered_messages_do_not_retain_their_frame() {
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
    fn messages_are_read_at_their_offset() {
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
    fn invalid_messages_are_reported() {
        let mut gets = Gets::default();
        read(&mut gets, &message("a", |_| {})).unwrap().unwrap();
        for bytes in [&b"\x0a\x05a"[..], b"\x0a\xff", b"\x0a\x01a\xff", b"\xff"] {
            assert!(read(&mut gets, &Bytes::from_static(bytes)).is_err(), "{bytes:?}");
        }
    }
}
