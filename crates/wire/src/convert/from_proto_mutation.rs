//! Decodes the mutations that clients send.
//!
//! Cells are inside the message or in the request's cell block, in the order of all mutations of
//! the request. A caller that rejects a mutation must skip its cells ([`skip_mutation`]); otherwise
//! the next mutation gets them.

use std::sync::Arc;

use bytes::Bytes;
use cell::codec::CellBlockReader;
use cell::mutation::{Durability, Mutation, MutationKind};
use cell::query::TimeRange;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use proto::mutation_proto::column_value::QualifierValue;
use proto::mutation_proto::{ColumnValue, DeleteType, Durability as ProtoDurability, MutationType};

use crate::convert::Refused;
use crate::convert::from_proto::{
    attribute, check_family_len, check_row, check_tags_len, take_cells, time_range,
};

/// The attribute that sets a time to live for every cell of a mutation.
const TTL_ATTRIBUTE: &str = "_ttl";

/// The attribute by which an increment or append requests no result (`Mutation.RETURN_RESULTS`).
const RETURN_RESULTS_ATTRIBUTE: &str = "_rr_";

/// The attribute with the clusters that already have a replicated mutation.
pub(super) const CLUSTER_IDS_ATTRIBUTE: &str = "_cs.id";

/// Maximum number of cells to allocate for in advance: the count in the message is untrusted.
const CELLS_PREPARED_FOR: usize = 64;

/// Decodes a mutation of one row. Takes its cells from `block` even if the mutation is rejected,
/// unless the block itself is corrupt.
///
/// # Errors
/// [`Refused`] for an invalid row, family, tag or time, for cells of another row or of a type that
/// the mutation does not allow, and for missing cells.
pub fn mutation(
    mutation: &proto::MutationProto,
    block: &mut CellBlockReader,
    nonce_group: u64,
) -> Result<Mutation, Refused> {
    let mut cells = cells_of(mutation.associated_cell_count(), block)?;
    let properties = MutationProperties::of(mutation)?;
    let row = row(mutation, &cells)?;
    properties.check_cells(&row, &cells)?;
    for column in &mutation.column_value {
        add_column(mutation, properties.kind, &row, column, &mut cells)?;
    }
    let decoded = properties.mutation(row, cells, (nonce_group, mutation.nonce()))?;
    Ok(Mutation { cluster_ids: cluster_ids(mutation)?, ..decoded })
}

/// UUIDs of clusters, each with its most significant half first.
type ClusterIds = Arc<[(u64, u64)]>;

/// The clusters that already have a replicated mutation: a number, then the halves of each id, all
/// big-endian (`Mutation.CONSUMED_CLUSTER_IDS`).
fn cluster_ids(mutation: &proto::MutationProto) -> Result<Option<ClusterIds>, Refused> {
    let Some(value) = attribute(&mutation.attribute, CLUSTER_IDS_ATTRIBUTE) else { return Ok(None) };
    let malformed = || Refused::malformed("the ids of the clusters cannot be decoded");
    let (count, ids) = value.split_first_chunk().ok_or_else(malformed)?;
    let (ids, rest) = ids.as_chunks::<16>();
    if ids.len() != u32::from_be_bytes(*count) as usize || !rest.is_empty() {
        return Err(malformed());
    }
    let id = |bytes: &[u8; 16]| {
        let number = u128::from_be_bytes(*bytes);
        ((number >> 64) as u64, number as u64)
    };
    Ok(Some(ids.iter().map(id).collect()))
}

/// Whether a mutation has ids of clusters.
pub(super) fn has_cluster_ids(mutation: &proto::MutationProto) -> bool {
    attribute(&mutation.attribute, CLUSTER_IDS_ATTRIBUTE).is_some()
}

/// The next `count` cells of a block.
pub(super) fn cells_of(count: i32, block: &mut CellBlockReader) -> Result<Vec<KeyValue>, Refused> {
    let mut cells = Vec::with_capacity(usize::try_from(count).unwrap_or(0).min(CELLS_PREPARED_FOR));
    take_cells(count, block, &mut cells)?;
    Ok(cells)
}

/// The properties of a mutation except its row, its cells and its nonce.
#[derive(Clone, Copy, Debug)]
pub(super) struct MutationProperties {
    kind: MutationKind,
    timestamp: i64,
    durability: Durability,
    ttl_ms: Option<i64>,
    time_range: TimeRange,
    return_results: bool,
}

impl MutationProperties {
    pub(super) fn of(mutation: &proto::MutationProto) -> Result<MutationProperties, Refused> {
        Ok(MutationProperties {
            kind: kind(mutation)?,
            timestamp: timestamp(mutation)?,
            durability: durability(mutation.durability()),
            ttl_ms: attribute(&mutation.attribute, TTL_ATTRIBUTE).map(ttl_ms).transpose()?.flatten(),
            time_range: time_range(mutation.time_range.as_ref())?,
            return_results: returns_results(mutation)?,
        })
    }

    /// Checks that `cells` may belong to a mutation of `row`.
    pub(super) fn check_cells(self, row: &[u8], cells: &[KeyValue]) -> Result<(), Refused> {
        cells.iter().try_for_each(|cell| Ok(self.kind.check_cell(row, &cell.view(0))?))
    }

    /// Builds the mutation of `row` from `cells`, which have been checked.
    pub(super) fn mutation(
        self,
        row: Bytes,
        cells: Vec<KeyValue>,
        nonce: (u64, u64),
    ) -> Result<Mutation, Refused> {
        if self.kind == MutationKind::Put && cells.is_empty() {
            return Err(Refused::malformed("No columns to insert"));
        }
        Ok(Mutation {
            row,
            kind: self.kind,
            cells,
            timestamp: self.timestamp,
            durability: self.durability,
            nonce,
            ttl_ms: self.ttl_ms,
            time_range: self.time_range,
            return_results: self.return_results,
            cluster_ids: None,
        })
    }
}

/// The time to live in an attribute; `None` for the greatest number, which means forever.
fn ttl_ms(attribute: &[u8]) -> Result<Option<i64>, Refused> {
    let bytes = attribute.try_into().map_err(|_| {
        Refused::malformed(format!("time to live has {} bytes instead of 8", attribute.len()))
    })?;
    Ok(Some(i64::from_be_bytes(bytes)).filter(|ttl_ms| *ttl_ms != i64::MAX))
}

fn returns_results(mutation: &proto::MutationProto) -> Result<bool, Refused> {
    match attribute(&mutation.attribute, RETURN_RESULTS_ATTRIBUTE) {
        None => Ok(true),
        Some([flag]) => Ok(*flag != 0),
        Some(other) => Err(Refused::malformed(format!("Array has wrong size: {}", other.len()))),
    }
}

/// Skips the cells of a mutation that is not executed.
pub fn skip_mutation(mutation: &proto::MutationProto, block: &mut CellBlockReader) {
    for _ in 0..mutation.associated_cell_count() {
        if !block.skip_cell() {
            return;
        }
    }
}

/// Skips the cells of an action that is not executed.
pub fn skip_action(action: &proto::Action, block: &mut CellBlockReader) {
    if let Some(mutation) = &action.mutation {
        skip_mutation(mutation, block);
    }
}

fn kind(mutation: &proto::MutationProto) -> Result<MutationKind, Refused> {
    match mutation.mutate_type.map(MutationType::try_from) {
        Some(Ok(MutationType::Put)) => Ok(MutationKind::Put),
        Some(Ok(MutationType::Delete)) => Ok(MutationKind::Delete),
        Some(Ok(MutationType::Increment)) => Ok(MutationKind::Increment),
        Some(Ok(MutationType::Append)) => Ok(MutationKind::Append),
        Some(Err(_)) | None => Err(Refused::malformed("Missing required field: mutate_type")),
    }
}

/// The mutation's row, or else the row of its first cell.
fn row(mutation: &proto::MutationProto, cells: &[KeyValue]) -> Result<Bytes, Refused> {
    let row = match (&mutation.row, cells.first()) {
        (Some(row), _) => row.clone(),
        (None, Some(cell)) => cell.bytes().slice_ref(cell.view(0).row()),
        (None, None) => Bytes::new(),
    };
    check_row(&row)?;
    Ok(row)
}

/// The timestamp of a mutation; increments and appends ignore it.
fn timestamp(mutation: &proto::MutationProto) -> Result<i64, Refused> {
    let timestamp = mutation.timestamp.map_or(LATEST_TIMESTAMP, u64::cast_signed);
    let counts = matches!(mutation.mutate_type(), MutationType::Put | MutationType::Delete);
    if counts && timestamp < 0 {
        return Err(Refused::malformed(format!("Timestamp cannot be negative. ts={timestamp}")));
    }
    Ok(timestamp)
}

fn add_column(
    mutation: &proto::MutationProto,
    kind: MutationKind,
    row: &[u8],
    column: &ColumnValue,
    cells: &mut Vec<KeyValue>,
) -> Result<(), Refused> {
    check_family_len(&column.family)?;
    for value in &column.qualifier_value {
        check_tags_len(value.tags())?;
        let (timestamp, cell_type, content) = match kind {
            MutationKind::Put => put_parts(value, mutation.timestamp)?,
            // The mutation's timestamp has no meaning here.
            MutationKind::Increment | MutationKind::Append => put_parts(value, None)?,
            MutationKind::Delete => delete_parts(value),
        };
        let (qualifier, tags) = (value.qualifier(), value.tags());
        let cell = KeyValue::with_tags(row, &column.family, qualifier, timestamp, cell_type, content, tags);
        kind.check_cell(row, &cell.view(0))?;
        cells.push(cell);
    }
    Ok(())
}

/// A value may be marked as a delete marker, whose content is ignored.
fn put_parts(value: &QualifierValue, otherwise: Option<u64>) -> Result<(i64, CellType, &[u8]), Refused> {
    let Some(content) = &value.value else {
        return Err(Refused::malformed("Missing required field: qualifier value"));
    };
    let timestamp = value.timestamp.or(otherwise).map_or(LATEST_TIMESTAMP, u64::cast_signed);
    Ok(match value.delete_type {
        None => (timestamp, CellType::Put, content),
        Some(_) => (timestamp, marker_type(value), &[]),
    })
}

/// A marker has its own timestamp or the latest one, never the mutation's.
fn delete_parts(value: &QualifierValue) -> (i64, CellType, &[u8]) {
    (value.timestamp.map_or(LATEST_TIMESTAMP, u64::cast_signed), marker_type(value), &[])
}

fn marker_type(value: &QualifierValue) -> CellType {
    match value.delete_type() {
        DeleteType::DeleteOneVersion => CellType::Delete,
        DeleteType::DeleteMultipleVersions => CellType::DeleteColumn,
        DeleteType::DeleteFamily => CellType::DeleteFamily,
        DeleteType::DeleteFamilyVersion => CellType::DeleteFamilyVersion,
    }
}

fn durability(durability: ProtoDurability) -> Durability {
    match durability {
        ProtoDurability::UseDefault => Durability::UseDefault,
        ProtoDurability::SkipWal => Durability::SkipWal,
        ProtoDurability::AsyncWal => Durability::AsyncWal,
        ProtoDurability::SyncWal => Durability::SyncWal,
        ProtoDurability::FsyncWal => Durability::FsyncWal,
    }
}
