//! Decodes a sequence of `MutationProto` messages.

use std::ops::Range;

use bytes::Bytes;
use cell::codec::CellBlockReader;
use cell::mutation::Mutation;
use prost::{DecodeError, Message};

use crate::convert::field::field_range;
use crate::convert::from_proto_mutation::{MutationProperties, cells_of, has_cluster_ids};
use crate::convert::{Refused, from_proto};

/// The field number of the row in a `MutationProto`.
const MUTATION_ROW: u32 = 1;
/// Maximum size in bytes of a message that is remembered. It stays in memory while similar messages
/// follow.
const REMEMBERED_LEN_MAX: usize = 256;

/// Decodes mutation messages.
///
/// A client that changes many rows usually changes them alike, with the cells in a cell block.
/// Messages that are identical after the row are decoded once.
#[derive(Default)]
pub struct Mutations {
    last: Option<DecodedMutation>,
}

/// Why a message was not decoded to a mutation.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum MutationError {
    /// The bytes are not a message. The position of the next mutation's cells is unknown as well.
    #[error(transparent)]
    Undecodable(#[from] DecodeError),
    /// The mutation is rejected.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// The last message, decoded.
struct DecodedMutation {
    after_row: Bytes,
    cell_count: i32,
    properties: MutationProperties,
}

impl Mutations {
    /// Decodes the mutation at `at` in `frame`. Takes its cells from `block` even if the mutation
    /// is rejected, unless the block itself is corrupt.
    ///
    /// # Errors
    /// [`MutationError::Undecodable`]; [`MutationError::Refused`] under the conditions of
    /// [`from_proto::mutation`].
    pub fn read(
        &mut self,
        frame: &Bytes,
        at: Range<usize>,
        block: &mut CellBlockReader,
        nonce_group: u64,
    ) -> Result<Mutation, MutationError> {
        let message = &frame[at.clone()];
        let row = field_range(message, 0, MUTATION_ROW);
        if let (Some(row), Some(last)) = (&row, &self.last)
            && message[row.end..] == last.after_row
        {
            let row = frame.slice(at.start + row.start..at.start + row.end);
            return Ok(last.mutation(row, block, nonce_group)?);
        }
        self.last = None;
        let (message_len, decoded) = (message.len(), proto::MutationProto::decode(frame.slice(at.clone()))?);
        let mutation = from_proto::mutation(&decoded, block, nonce_group)?;
        if let Some(row) = row
            && message_len <= REMEMBERED_LEN_MAX
        {
            self.last = DecodedMutation::of(&frame[at], row, &decoded);
        }
        Ok(mutation)
    }
}

impl DecodedMutation {
    /// What to remember of a message that begins with its row; `None` if no other message can be
    /// like it.
    fn of(message: &[u8], row: Range<usize>, decoded: &proto::MutationProto) -> Option<DecodedMutation> {
        // A second row field after the first one would override it. A nonce is unique to its
        // message.
        let is_only = decoded.row.as_ref().is_some_and(|last| last.as_ptr() == message[row.clone()].as_ptr());
        let is_plain = decoded.column_value.is_empty() && !has_cluster_ids(decoded);
        if !is_only || !is_plain || decoded.nonce.is_some() {
            return None;
        }
        // Copied, so that what is remembered does not keep the frame's memory.
        let after_row = Bytes::copy_from_slice(&message[row.end..]);
        let cell_count = decoded.associated_cell_count();
        Some(DecodedMutation { after_row, cell_count, properties: MutationProperties::of(decoded).ok()? })
    }

    fn mutation(
        &self,
        row: Bytes,
        block: &mut CellBlockReader,
        nonce_group: u64,
    ) -> Result<Mutation, Refused> {
        let cells = cells_of(self.cell_count, block)?;
        from_proto::check_row(&row)?;
        self.properties.check_cells(&row, &cells)?;
        self.properties.mutation(row, cells, (nonce_group, 0))
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
    ) -> Result<Mutation, MutationError> {
        mutations.read(message, 0..message.len(), block, 7)
    }

    #[test]
    fn all_messages_are_read_as_if_single() {
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
        let (mut remembered, mut alone) = (block(&rows), block(&rows));
        let mut mutations = Mutations::default();
        for message in &messages {
            let expected =
                from_proto::mutation(&proto::MutationProto::decode(message.clone()).unwrap(), &mut alone, 7);
            assert_eq!(
                read(&mut mutations, message, &mut remembered),
                expected.map_err(MutationError::Refused)
            );
            assert_eq!(remembered.remaining(), alone.remaining());
        }
    }

    #[test]
    fn remembered_messages_do_not_retain_their_frame() {
        let mut mutations = Mutations::default();
        let message = message("a", |_| {});
        drop(read(&mut mutations, &message, &mut block(&["a"])).unwrap());
        assert!(message.is_unique() && mutations.last.is_some());
    }

    #[test]
    fn messages_are_read_at_their_offset() {
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
    fn invalid_messages_are_reported() {
        let mut mutations = Mutations::default();
        read(&mut mutations, &message("a", |_| {}), &mut block(&["a"])).unwrap();
        for bytes in [&b"\x0a\x05a"[..], b"\x0a\xff", b"\x0a\x01a\xff", b"\xff"] {
            let read = read(&mut mutations, &Bytes::from_static(bytes), &mut block(&[]));
            assert!(matches!(read, Err(MutationError::Undecodable(_))), "{bytes:?}");
        }
    }
}
