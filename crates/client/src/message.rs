//! Requests as protobuf, and rows out of answers.

use bytes::Bytes;
use cell::KeyValue;
use cell::codec::{CellBlockReader, Codec};
use cell::mutation::{Mutation, MutationKind};
use cell::query::{CellSelection, Get, Scan, TimeRange};
use cell::region::RegionInfo;
use proto::mutation_proto::MutationType;
use proto::region_specifier::RegionSpecifierType;
use rpc::CellBlock;

use crate::error::{Error, Result};

/// The cells of a row (or of a piece of one), in key order. Empty if the row has none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// The cells; those of one answer share its memory.
    pub cells: Vec<KeyValue>,
}

impl Row {
    /// The row's key; empty if there are no cells.
    pub fn key(&self) -> &[u8] {
        self.cells.first().map_or(&[], |cell| cell.view(0).row())
    }

    /// Whether the row has no cells.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The value of the newest version of a column.
    pub fn value(&self, family: &[u8], qualifier: &[u8]) -> Option<&[u8]> {
        let is_column = |cell: &cell::Cell<'_>| cell.family() == family && cell.qualifier() == qualifier;
        self.cells.iter().map(|cell| cell.view(0)).find(is_column).map(|cell| cell.value)
    }
}

/// Names a region.
pub fn region_specifier(region: &RegionInfo) -> proto::RegionSpecifier {
    proto::RegionSpecifier { r#type: RegionSpecifierType::RegionName as i32, value: region.name() }
}

fn columns(selection: &CellSelection) -> Vec<proto::Column> {
    let column = |entry: &cell::query::FamilyColumns| proto::Column {
        family: entry.family.clone(),
        qualifier: entry.qualifiers.clone().unwrap_or_default(),
    };
    selection.columns.iter().map(column).collect()
}

fn time_range(range: &TimeRange) -> proto::TimeRange {
    proto::TimeRange { from: Some(range.from.cast_unsigned()), to: Some(range.to.cast_unsigned()) }
}

fn family_time_ranges(selection: &CellSelection) -> Vec<proto::ColumnFamilyTimeRange> {
    let of = |(family, range): &(Bytes, TimeRange)| proto::ColumnFamilyTimeRange {
        column_family: family.clone(),
        time_range: time_range(range),
    };
    selection.family_time_ranges.iter().map(of).collect()
}

/// A Get.
pub fn get(get: &Get) -> proto::Get {
    let selection = &get.selection;
    proto::Get {
        row: get.row.clone(),
        column: columns(selection),
        time_range: Some(time_range(&selection.time_range)),
        max_versions: Some(selection.max_versions),
        cache_blocks: Some(selection.cache_blocks),
        store_limit: selection.store_limit,
        store_offset: (selection.store_offset > 0).then_some(selection.store_offset),
        existence_only: Some(get.existence_only),
        cf_time_range: family_time_ranges(selection),
        ..proto::Get::default()
    }
}

/// A Scan.
pub fn scan(scan: &Scan, max_result_bytes: u64, caching: u32) -> proto::Scan {
    let selection = &scan.selection;
    let raw = proto::NameBytesPair { name: "_raw_".into(), value: Some(Bytes::from_static(&[0xff])) };
    proto::Scan {
        column: columns(selection),
        attribute: if scan.raw { vec![raw] } else { Vec::new() },
        start_row: Some(scan.start_row.clone()),
        stop_row: Some(scan.stop_row.clone()),
        time_range: Some(time_range(&selection.time_range)),
        max_versions: Some(selection.max_versions),
        cache_blocks: Some(selection.cache_blocks),
        batch_size: (scan.batch > 0).then_some(scan.batch),
        max_result_size: Some(max_result_bytes),
        store_limit: selection.store_limit,
        store_offset: (selection.store_offset > 0).then_some(selection.store_offset),
        reversed: scan.reversed.then_some(true),
        caching: Some(caching),
        cf_time_range: family_time_ranges(selection),
        mvcc_read_point: scan.read_point,
        include_start_row: Some(scan.include_start_row),
        include_stop_row: Some(scan.include_stop_row),
        ..proto::Scan::default()
    }
}

/// A mutation; its cells are appended to `cells`.
pub fn mutation(mutation: &Mutation, cells: &mut CellBlock) -> proto::MutationProto {
    for cell in &mutation.cells {
        Codec::KeyValue.write(&cell.view(0), cells.tail());
    }
    let kind = match mutation.kind {
        MutationKind::Put => MutationType::Put,
        MutationKind::Delete => MutationType::Delete,
    };
    proto::MutationProto {
        row: Some(mutation.row.clone()),
        mutate_type: Some(kind as i32),
        timestamp: Some(mutation.timestamp.cast_unsigned()),
        durability: Some(mutation.durability as i32),
        associated_cell_count: Some(i32::try_from(mutation.cells.len()).unwrap_or(i32::MAX)),
        nonce: (mutation.nonce.1 != 0).then_some(mutation.nonce.1),
        ..proto::MutationProto::default()
    }
}

/// The cells of answers: some inline, some in the cell block, which is read in order.
pub(crate) struct Cells(CellBlockReader);

impl Cells {
    pub(crate) fn of(block: Bytes) -> Cells {
        Cells(Codec::KeyValue.read(block))
    }

    /// The next `count` cells of the block.
    pub(crate) fn take(&mut self, count: usize) -> Result<Vec<KeyValue>> {
        // What the message only claims is not made room for.
        let mut cells = Vec::with_capacity(count.min(self.0.remaining() / 16));
        for _ in 0..count {
            let cell = self.0.next().ok_or_else(|| Error::Malformed("the cell block ends early".into()))?;
            cells.push(cell.map_err(|error| Error::Malformed(error.to_string()))?);
        }
        Ok(cells)
    }

    /// The cells of one result.
    pub(crate) fn row(&mut self, result: &proto::Result) -> Result<Row> {
        let mut cells = result.cell.iter().map(inline_cell).collect::<Result<Vec<_>>>()?;
        cells.extend(self.take(usize::try_from(result.associated_cell_count()).unwrap_or(0))?);
        Ok(Row { cells })
    }
}

fn inline_cell(cell: &proto::Cell) -> Result<KeyValue> {
    let code = u8::try_from(cell.cell_type.unwrap_or(proto::CellType::Put as i32)).ok();
    let kind = code.and_then(cell::CellType::stored);
    let kind = kind.ok_or_else(|| Error::Malformed("a cell has no type that is stored".into()))?;
    if cell.row().len() > cell::cell::ROW_LEN_MAX || cell.family().len() > cell::cell::FAMILY_LEN_MAX {
        return Err(Error::Malformed("a cell's row or family is too long".into()));
    }
    let timestamp = cell.timestamp.unwrap_or(i64::MAX.cast_unsigned()).cast_signed();
    Ok(KeyValue::new(cell.row(), cell.family(), cell.qualifier(), timestamp, kind, cell.value()))
}
