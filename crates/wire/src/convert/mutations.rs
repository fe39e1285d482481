//! `MutationProto` messages, read one after the other.

use std::ops::Range;

use bytes::Bytes;
use cell::codec::CellBlockReader;
use cell::mutation::Mutation;
use prost::{DecodeError, Message};

use crate::convert::field::place_of;
use crate::convert::from_proto_mutation::{Manner, cells_of};
use crate::convert::{Refused, from_proto};

/// Number of the field of a `MutationProto` that says which row it is.
const MUTATION_ROW: u32 = 1;
/// Bytes of the longest message that is remembered, which is for as long as others like it come.
const REMEMBERED_LEN_MAX: usize = 256;

/// Reads the messages of mutations.
///
/// Who changes many rows changes them alike, and has their cells in a block: messages that are the same behind the row are taken
/// apart once.
#[derive(Default)]
pub struct Mutations {
    last: Option<Known>,
}

/// Why a message gave no change.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum NotRead {
    /// It is none. The next one's cells are not known either.
    #[error(transparent)]
    NoMessage(#[from] DecodeError),
    /// What it asks for is refused.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// What is known of a message.
struct Known {
    behind_row: Bytes,
    cell_count: i32,
    manner: Manner,
}

impl Mutations {
    /// The change that the next message is, which is at `at` in `frame`. Its cells are taken from `block` even if it is refused,
    /// unless the block itself is damaged.
    ///
    /// # Errors
    /// [`NotRead::NoMessage`]; [`NotRead::Refused`] as by [`from_proto::mutation`].
    pub fn read(
        &mut self,
        frame: &Bytes,
        at: Range<usize>,
        block: &mut CellBlockReader,
        nonce_group: u64,
    ) -> Result<Mutation, NotRead> {
        let message = &frame[at.clone()];
        let row = place_of(message, 0, MUTATION_ROW);
        if let (Some(row), Some(known)) = (&row, &self.last)
            && message[row.end..] == known.behind_row
        {
            let row = frame.slice(at.start + row.start..at.start + row.end);
            return Ok(known.mutation(row, block, nonce_group)?);
        }
        self.last = None;
        let (message_len, decoded) = (message.len(), proto::MutationProto::decode(frame.slice(at.clone()))?);
        let mutation = from_proto::mutation(&decoded, block, nonce_group)?;
        if let Some(row) = row
            && message_len <= REMEMBERED_LEN_MAX
        {
            self.last = Known::of(&frame[at], row, &decoded);
        }
        Ok(mutation)
    }
}

impl Known {
    /// What is to be remembered of a message that begins with its row, if others can be like it.
    fn of(message: &[u8], row: Range<usize>, decoded: &proto::MutationProto) -> Option<Known> {
        // A row that stands behind would be another one. Each message has a name of its own, if it has any.
        let is_only = decoded.row.as_ref().is_some_and(|last| last.as_ptr() == message[row.clone()].as_ptr());
        if !is_only || !decoded.column_value.is_empty() || decoded.nonce.is_some() {
            return None;
        }
        // Copied, so that what is remembered does not keep the memory of the frame that it came in.
        let behind_row = Bytes::copy_from_slice(&message[row.end..]);
        let cell_count = decoded.associated_cell_count();
        Some(Known { behind_row, cell_count, manner: Manner::of(decoded).ok()? })
    }

    fn mutation(
        &self,
        row: Bytes,
        block: &mut CellBlockReader,
        nonce_group: u64,
    ) -> Result<Mutation, Refused> {
        let cells = cells_of(self.cell_count, block)?;
        from_proto::check_row(&row)?;
        self.manner.check_cells(&row, &cells)?;
        self.manner.mutation(row, cells, (nonce_group, 0))
    }
}

#[cfg(test)]
mod tests {
    use cell::codec::Codec;
    use cell::{CellType, KeyValue};
    use proto::mutation_proto::{ColumnValue, MutationType};

    use super::*;

    fn message(row: &'static str, change: impl FnOnce(&mut proto::MutationProto)) -> Bytes {
        let mut mutation = proto::MutationProto {
            row: Some(row.into()),
            mutate_type: Some(MutationType::Put.into()),
            associated_cell_count: Some(1),
            ..proto::MutationProto::default()
        };
        change(&mut mutation);
        mutation.encode_to_vec().into()
    }

    fn block(rows: &[&str]) -> CellBlockReader {
        let mut block = Vec::new();
        for row in rows {
            let cell = KeyValue::new(row.as_bytes(), b"f", b"q", 5, CellType::Put, b"value");
            Codec::KeyValue.write(&cell.view(0), &mut block);
        }
        Codec::KeyValue.read(block.into())
    }

    fn read(
        mutations: &mut Mutations,
        message: &Bytes,
        block: &mut CellBlockReader,
    ) -> Result<Mutation, NotRead> {
        mutations.read(message, 0..message.len(), block, 7)
    }

    #[test]
    fn all_are_read_as_if_alone() {
        let messages = [
            message("a", |_| {}),
            message("b", |_| {}),
            message("c", |put| put.timestamp = Some(9)),
            message("d", |put| put.timestamp = Some(9)),
            message("another", |put| put.timestamp = Some(9)),
            message("", |put| put.timestamp = Some(9)),
            message("e", |put| put.durability = Some(1)),
            message("f", |put| put.durability = Some(1)),
            message("g", |put| put.nonce = Some(3)),
            message("h", |put| put.nonce = Some(4)),
            message("i", |put| put.associated_cell_count = Some(2)),
            message("i", |put| put.associated_cell_count = Some(2)),
            message("j", |put| put.associated_cell_count = Some(0)),
            message("j", |put| put.associated_cell_count = Some(0)),
            message("k", |put| put.mutate_type = Some(MutationType::Delete.into())),
            message("k", |put| {
                put.column_value = vec![ColumnValue { family: "f".into(), ..ColumnValue::default() }]
            }),
            message("k", |put| put.mutate_type = None),
            message("l", |put| put.associated_cell_count = Some(-1)),
            message("l", |_| {}),
            message("m", |_| {}),
        ];
        let rows = [
            "a", "b", "c", "wrong", "another", "", "e", "f", "g", "h", "i", "i", "i", "n", "k", "k", "k",
            "l", "m",
        ];
        let (mut known, mut alone) = (block(&rows), block(&rows));
        let mut mutations = Mutations::default();
        for message in &messages {
            let expected =
                from_proto::mutation(&proto::MutationProto::decode(message.clone()).unwrap(), &mut alone, 7);
            assert_eq!(read(&mut mutations, message, &mut known), expected.map_err(NotRead::Refused));
            assert_eq!(known.remaining(), alone.remaining());
        }
    }

    #[test]
    fn what_is_remembered_keeps_no_frame() {
        let mut mutations = Mutations::default();
        let message = message("a", |_| {});
        drop(read(&mut mutations, &message, &mut block(&["a"])).unwrap());
        assert!(message.is_unique() && mutations.last.is_some());
    }

    #[test]
    fn messages_are_read_where_they_are() {
        let (first, second) = (message("a", |_| {}), message("bb", |_| {}));
        let frame = Bytes::from([&b"xx"[..], &first, &second, b"y"].concat());
        let (mut mutations, mut block) = (Mutations::default(), block(&["a", "bb"]));
        let mut at = 2;
        for (message, row) in [(&first, "a"), (&second, "bb")] {
            let read = mutations.read(&frame, at..at + message.len(), &mut block, 7).unwrap();
            assert_eq!((&read.row[..], read.cells.len(), read.nonce), (row.as_bytes(), 1, (7, 0)));
            at += message.len();
        }
    }

    #[test]
    fn the_last_row_of_a_message_counts() {
        let twice =
            |first: &'static str| -> Bytes { [message(first, |_| {}), message("z", |_| {})].concat().into() };
        let mut mutations = Mutations::default();
        for first in ["a", "b", "z", "c"] {
            let read = read(&mut mutations, &twice(first), &mut block(&["z"])).unwrap();
            assert_eq!(read.row, "z");
        }
    }

    #[test]
    fn what_is_no_message_is_said() {
        let mut mutations = Mutations::default();
        read(&mut mutations, &message("a", |_| {}), &mut block(&["a"])).unwrap();
        for bytes in [&b"\x0a\x05a"[..], b"\x0a\xff", b"\x0a\x01a\xff", b"\xff"] {
            let read = read(&mut mutations, &Bytes::from_static(bytes), &mut block(&[]));
            assert!(matches!(read, Err(NotRead::NoMessage(_))), "{bytes:?}");
        }
    }
}
