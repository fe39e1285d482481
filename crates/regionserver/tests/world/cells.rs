//! Cells as raw bytes, including ones that no client writes, and the calls that carry them.

use bytes::{BufMut, Bytes};
use cell::mutation::MutationKind;
use proto::mutation_proto::MutationType;

/// The fields of a cell. Lengths are written as they are, truncated to the width of their field.
#[derive(Clone, Debug)]
pub struct RawCell {
    pub row: Vec<u8>,
    pub family: Vec<u8>,
    pub qualifier: Vec<u8>,
    pub timestamp: i64,
    pub type_code: u8,
    pub value: Vec<u8>,
    /// The tags section; `None` for a cell without tags and without their length.
    pub tags: Option<Vec<u8>>,
    /// The length written before the tags, if it is to be wrong.
    pub tags_len: Option<u16>,
}

impl RawCell {
    /// A put of `f:q` with a normal timestamp.
    pub fn put(row: &str) -> RawCell {
        RawCell {
            row: row.into(),
            family: b"f".to_vec(),
            qualifier: b"q".to_vec(),
            timestamp: 7,
            type_code: 4,
            value: 1_u64.to_be_bytes().to_vec(),
            tags: None,
            tags_len: None,
        }
    }

    /// The serialized KeyValue.
    pub fn bytes(&self) -> Vec<u8> {
        let mut key = Vec::new();
        key.put_u16(self.row.len() as u16);
        key.put_slice(&self.row);
        key.put_u8(self.family.len() as u8);
        key.put_slice(&self.family);
        key.put_slice(&self.qualifier);
        key.put_i64(self.timestamp);
        key.put_u8(self.type_code);
        let mut out = Vec::with_capacity(key.len() + self.value.len() + 16);
        out.put_u32(key.len() as u32);
        out.put_u32(self.value.len() as u32);
        out.put_slice(&key);
        out.put_slice(&self.value);
        if let Some(tags) = &self.tags {
            out.put_u16(self.tags_len.unwrap_or(tags.len() as u16));
            out.put_slice(tags);
        }
        out
    }
}

/// Cells, each after its length: the format of a cell block, and of a log entry's cells.
pub fn block(cells: &[RawCell]) -> Bytes {
    let mut out = Vec::new();
    for cell in cells {
        let bytes = cell.bytes();
        out.put_u32(bytes.len() as u32);
        out.put_slice(&bytes);
    }
    out.into()
}

/// The type of a mutation in messages.
pub fn mutation_type(kind: MutationKind) -> i32 {
    let named = match kind {
        MutationKind::Put => MutationType::Put,
        MutationKind::Delete => MutationType::Delete,
        MutationKind::Increment => MutationType::Increment,
        MutationKind::Append => MutationType::Append,
    };
    named.into()
}

/// A mutation with `count` cells in the cell block.
pub fn mutation_by_block(kind: MutationKind, row: &[u8], count: i32) -> proto::MutationProto {
    proto::MutationProto {
        row: Some(Bytes::copy_from_slice(row)),
        mutate_type: Some(mutation_type(kind)),
        associated_cell_count: Some(count),
        ..Default::default()
    }
}

/// A mutation with the cell in its message; `None` if a message cannot represent the cell.
pub fn mutation_by_message(kind: MutationKind, cell: &RawCell) -> Option<proto::MutationProto> {
    if cell.tags_len.is_some() {
        return None;
    }
    let delete_type = match (cell.type_code, kind) {
        (4, MutationKind::Delete) => return None,
        (4, _) => None,
        (8, _) => Some(0),
        (12, _) => Some(1),
        (14, _) => Some(2),
        (10, _) => Some(3),
        _ => return None,
    };
    let value = proto::mutation_proto::column_value::QualifierValue {
        qualifier: Some(cell.qualifier.clone().into()),
        value: Some(cell.value.clone().into()),
        timestamp: Some(cell.timestamp.cast_unsigned()),
        delete_type,
        tags: cell.tags.clone().map(Into::into),
    };
    let column = proto::mutation_proto::ColumnValue {
        family: cell.family.clone().into(),
        qualifier_value: vec![value],
    };
    Some(proto::MutationProto {
        row: Some(cell.row.clone().into()),
        mutate_type: Some(mutation_type(kind)),
        column_value: vec![column],
        ..Default::default()
    })
}

/// A condition that holds for every row, because the column does not exist.
pub fn condition_that_holds(row: &[u8]) -> proto::Condition {
    use prost::Message;
    let comparable = proto::ByteArrayComparable { value: Some(Bytes::new()) };
    let comparator = proto::BinaryComparator { comparable };
    proto::Condition {
        row: Bytes::copy_from_slice(row),
        family: Some("f".into()),
        qualifier: Some("no such column".into()),
        compare_type: Some(proto::CompareType::Equal.into()),
        comparator: Some(proto::Comparator {
            name: "org.apache.hadoop.hbase.filter.BinaryComparator".into(),
            serialized_comparator: Some(comparator.encode_to_vec().into()),
        }),
        ..Default::default()
    }
}
