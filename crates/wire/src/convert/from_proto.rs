//! Decodes client requests with HBase's checks, and results as a client reads them.
//!
//! Source: HBase `ProtobufUtil`, `RSRpcServices`.

use std::sync::Arc;

use bytes::Bytes;
use cell::cell::{FAMILY_LEN_MAX, ROW_LEN_MAX, TAGS_LEN_MAX};
use cell::codec::CellBlockReader;
use cell::filter::Filter;
use cell::query::{CellSelection, FamilyColumns, Get, MobReads, Scan, TimeRange};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};

use crate::convert::Refused;
pub use crate::convert::from_proto_condition::condition;
pub use crate::convert::from_proto_mutation::{mutation, skip_action, skip_mutation};

/// The attributes by which a read chooses how references to MOB files are returned (HBase
/// `MobConstants`).
const MOB_RAW_ATTRIBUTE: &str = "hbase.mob.scan.raw";
const MOB_REFERENCES_ATTRIBUTE: &str = "hbase.mob.scan.ref.only";
const MOB_EMPTY_ATTRIBUTE: &str = "empty.value.on.mobcell.miss";
const MOB_CACHE_ATTRIBUTE: &str = "hbase.mob.cache.blocks";
/// The attribute by which a scan requests delete markers too.
const RAW_ATTRIBUTE: &str = "_raw_";

/// Decodes a read of one row.
///
/// # Errors
/// [`Refused`] for an invalid row, time range or version count, for unknown filters, and for
/// `closest_row_before`.
pub fn get(get: &proto::Get) -> Result<Get, Refused> {
    if get.closest_row_before() {
        return Err(Refused::Obsolete(
            "get closest_row_before is not supported: it was removed in HBase 2, use a reversed scan",
        ));
    }
    check_row(&get.row)?;
    if get.max_versions() == 0 {
        return Err(Refused::malformed("versions must be positive"));
    }
    let selection = CellSelection {
        columns: columns(&get.column)?,
        time_range: time_range(get.time_range.as_ref())?,
        family_time_ranges: family_time_ranges(&get.cf_time_range)?,
        max_versions: get.max_versions(),
        store_limit: get.store_limit,
        store_offset: get.store_offset(),
        cache_blocks: get.cache_blocks(),
        filter: filter(get.filter.as_ref())?,
        load_families_on_demand: get.load_column_families_on_demand,
        mob: mob_reads(&get.attribute),
    };
    Ok(Get { row: get.row.clone(), selection: Arc::new(selection), existence_only: get.existence_only() })
}

/// Decodes a read of rows in order. The limits of single calls (rows, bytes, time) belong to the
/// request and are not part of it.
///
/// # Errors
/// [`Refused`] for invalid rows or time ranges, for unknown filters, and for columns in a raw scan.
pub fn scan(scan: &proto::Scan) -> Result<Scan, Refused> {
    for row in [scan.start_row(), scan.stop_row()] {
        check_row_len(row)?;
    }
    let selection = CellSelection {
        columns: columns(&scan.column)?,
        time_range: time_range(scan.time_range.as_ref())?,
        family_time_ranges: family_time_ranges(&scan.cf_time_range)?,
        max_versions: scan.max_versions(),
        store_limit: scan.store_limit,
        store_offset: scan.store_offset(),
        cache_blocks: scan.cache_blocks(),
        filter: filter(scan.filter.as_ref())?,
        load_families_on_demand: scan.load_column_families_on_demand,
        mob: mob_reads(&scan.attribute),
    };
    let raw = is_set(&scan.attribute, RAW_ATTRIBUTE);
    if raw && selection.columns.iter().any(|column| column.qualifiers.is_some()) {
        return Err(Refused::malformed("Cannot specify any column for a raw scan"));
    }
    let start_row = scan.start_row.clone().unwrap_or_default();
    let stop_row = scan.stop_row.clone().unwrap_or_default();
    // Clients older than the flag mean one row when start and stop are equal.
    let is_old_get = !start_row.is_empty() && start_row == stop_row;
    Ok(Scan {
        include_start_row: scan.include_start_row(),
        include_stop_row: scan.include_stop_row.unwrap_or(is_old_get),
        start_row,
        stop_row,
        reversed: scan.reversed(),
        selection,
        // Java's int: zero and negative values mean no limit.
        batch: u32::try_from(scan.batch_size().cast_signed()).unwrap_or(0),
        raw,
        read_point: scan.mvcc_read_point.filter(|read_point| *read_point > 0),
    })
}

/// The cells of a result: those inside the message, followed by as many cells of the block as the
/// message states.
///
/// # Errors
/// [`Refused::Malformed`] if cells are missing or invalid.
pub fn result(result: &proto::Result, block: &mut CellBlockReader) -> Result<Vec<KeyValue>, Refused> {
    let mut cells = result.cell.iter().map(inline_cell).collect::<Result<Vec<_>, _>>()?;
    take_cells(result.associated_cell_count(), block, &mut cells)?;
    Ok(cells)
}

/// Appends the next `count` cells of a block. Takes all of them off the block even if some are
/// invalid.
pub(super) fn take_cells(
    count: i32,
    block: &mut CellBlockReader,
    cells: &mut Vec<KeyValue>,
) -> Result<(), Refused> {
    let mut taken = Ok(());
    for _ in 0..count {
        match block.next() {
            Some(Ok(cell)) => cells.push(cell),
            Some(Err(error)) => taken = taken.and(Err(Refused::malformed(error.to_string()))),
            None => {
                return taken.and(Err(Refused::malformed(format!(
                    "Cell count of {count} but no more cells in the cell block"
                ))));
            }
        }
    }
    taken
}

fn inline_cell(cell: &proto::Cell) -> Result<KeyValue, Refused> {
    let code = u8::try_from(cell.cell_type.unwrap_or(CellType::Put as i32)).ok();
    let kind = code.and_then(CellType::stored).ok_or_else(|| Refused::malformed("unknown cell type"))?;
    let (row, family, tags) = (cell.row(), cell.family(), cell.tags());
    check_row_len(row)?;
    check_family_len(family)?;
    check_tags_len(tags)?;
    let timestamp = cell.timestamp.map_or(LATEST_TIMESTAMP, u64::cast_signed);
    Ok(KeyValue::with_tags(row, family, cell.qualifier(), timestamp, kind, cell.value(), tags))
}

fn filter(filter: Option<&proto::Filter>) -> Result<Option<Arc<Filter>>, Refused> {
    filter.map(|filter| crate::filter::from_proto(filter).map(Arc::new)).transpose()
}

/// Sorts the columns by family and merges the entries of one family.
fn columns(columns: &[proto::Column]) -> Result<Vec<FamilyColumns>, Refused> {
    let mut entries: Vec<FamilyColumns> = Vec::with_capacity(columns.len());
    for column in columns {
        check_family_len(&column.family)?;
        let mut qualifiers = column.qualifier.clone();
        qualifiers.sort_unstable();
        qualifiers.dedup();
        let qualifiers = (!qualifiers.is_empty()).then_some(qualifiers);
        entries.push(FamilyColumns { family: column.family.clone(), qualifiers });
    }
    entries.sort_by(|left, right| left.family.cmp(&right.family));
    entries.dedup_by(|next, kept| {
        let same = next.family == kept.family;
        if same {
            kept.qualifiers = kept.qualifiers.take().zip(next.qualifiers.take()).map(union);
        }
        same
    });
    Ok(entries)
}

fn union((mut left, right): (Vec<Bytes>, Vec<Bytes>)) -> Vec<Bytes> {
    left.extend(right);
    left.sort_unstable();
    left.dedup();
    left
}

pub(super) fn time_range(range: Option<&proto::TimeRange>) -> Result<TimeRange, Refused> {
    let Some(range) = range else { return Ok(TimeRange::ALL) };
    let from = range.from.map_or(TimeRange::ALL.from, u64::cast_signed);
    let to = range.to.map_or(TimeRange::ALL.to, u64::cast_signed);
    if from < 0 || to < 0 {
        return Err(Refused::malformed(format!(
            "Timestamp cannot be negative. minStamp:{from}, maxStamp:{to}"
        )));
    }
    if to < from {
        return Err(Refused::malformed("maxStamp is smaller than minStamp"));
    }
    Ok(TimeRange { from, to })
}

fn family_time_ranges(ranges: &[proto::ColumnFamilyTimeRange]) -> Result<Vec<(Bytes, TimeRange)>, Refused> {
    ranges
        .iter()
        .map(|entry| Ok((entry.column_family.clone(), time_range(Some(&entry.time_range))?)))
        .collect()
}

/// How a read returns references to MOB files, by its attributes.
///
/// Source: HBase `MobUtils`, `MobConstants`.
fn mob_reads(attributes: &[proto::NameBytesPair]) -> MobReads {
    MobReads {
        raw: is_set(attributes, MOB_RAW_ATTRIBUTE),
        references_only: is_set(attributes, MOB_REFERENCES_ATTRIBUTE),
        empty_if_missing: is_set(attributes, MOB_EMPTY_ATTRIBUTE),
        cache_blocks: is_set(attributes, MOB_CACHE_ATTRIBUTE),
    }
}

/// Whether an attribute is the serialized boolean true. Any other value counts as false.
fn is_set(attributes: &[proto::NameBytesPair], name: &str) -> bool {
    attribute(attributes, name).is_some_and(|value| value.len() == 1 && value[0] != 0)
}

pub(super) fn attribute<'a>(attributes: &'a [proto::NameBytesPair], name: &str) -> Option<&'a [u8]> {
    attributes.iter().find(|attribute| attribute.name == name).map(proto::NameBytesPair::value)
}

pub(super) fn check_row(row: &[u8]) -> Result<(), Refused> {
    if row.is_empty() { Err(Refused::malformed("Row length is 0")) } else { check_row_len(row) }
}

fn check_row_len(row: &[u8]) -> Result<(), Refused> {
    match row.len() {
        0..=ROW_LEN_MAX => Ok(()),
        len => Err(Refused::malformed(format!("Row length {len} is > {ROW_LEN_MAX}"))),
    }
}

pub(super) fn check_family_len(family: &[u8]) -> Result<(), Refused> {
    match family.len() {
        0..=FAMILY_LEN_MAX => Ok(()),
        len => Err(Refused::malformed(format!("Family length {len} is > {FAMILY_LEN_MAX}"))),
    }
}

pub(super) fn check_tags_len(tags: &[u8]) -> Result<(), Refused> {
    match tags.len() {
        0..=TAGS_LEN_MAX => Ok(()),
        len => Err(Refused::malformed(format!("Tags length {len} is > {TAGS_LEN_MAX}"))),
    }
}
