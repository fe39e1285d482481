//! Compares the column sidecar with the cells that it was built from.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use bytes::Bytes;
use cell::schema::{BlockEncoding, Compression};
use cell::{CellOrder, CellType, KeyValue};
use hfile::{Directory, Reader, Strip, WriterOptions};
use proptest::prelude::*;
use support::{Owned, Source, all_cells, open, write};

const QUALIFIERS: [&[u8]; 4] = [b"", b"a", b"b", b"other"];

/// One row: the number of versions of each column, the size of its values, and whether its first
/// versions are deletes.
#[derive(Clone, Debug)]
struct RowPlan {
    versions: [u8; 4],
    value_bytes: usize,
    deletes: bool,
}

fn row_plan() -> impl Strategy<Value = RowPlan> {
    let versions = prop::array::uniform4(prop_oneof![3 => Just(1_u8), 2 => Just(0), 1 => 2..40_u8]);
    (versions, prop_oneof![3 => Just(8_usize), 1 => 0..30_usize], prop::bool::weighted(0.0005))
        .prop_map(|(versions, value_bytes, deletes)| RowPlan { versions, value_bytes, deletes })
}

fn cells(plans: &[RowPlan]) -> Vec<Owned> {
    let mut cells = Vec::new();
    for (number, plan) in plans.iter().enumerate() {
        let row = format!("row{number:05}").into_bytes();
        let mut of_row = Vec::new();
        for (qualifier, versions) in QUALIFIERS.into_iter().zip(plan.versions) {
            for version in 0..versions {
                let timestamp = 1000 - i64::from(version) + number as i64;
                let value = vec![version ^ number as u8; plan.value_bytes];
                let kind = if plan.deletes && version == 0 { CellType::Delete } else { CellType::Put };
                let cell = KeyValue::new(&row, b"f", qualifier, timestamp, kind, &value);
                of_row.push((cell, number as u64));
            }
        }
        cells.append(&mut of_row);
    }
    cells
}

fn options(encoding: BlockEncoding, compression: Compression) -> WriterOptions {
    WriterOptions {
        sidecar: true,
        block_bytes: 64,
        index_block_bytes: 300,
        encoding,
        compression,
        ..WriterOptions::default()
    }
}

/// A row as strips store it: its key, and the first value of each column.
type Row = (Vec<u8>, Vec<Option<Vec<u8>>>);

fn expected(cells: &[Owned]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (cell, _) in cells {
        let cell = cell.view(0);
        if rows.last().is_none_or(|(key, _)| key != cell.row()) {
            rows.push((cell.row().to_vec(), vec![None; QUALIFIERS.len()]));
        }
        let at = QUALIFIERS.iter().position(|qualifier| *qualifier == cell.qualifier()).unwrap();
        rows.last_mut().unwrap().1[at].get_or_insert_with(|| cell.value.to_vec());
    }
    rows
}

fn strip_values(strip: &Strip) -> Vec<Option<Vec<u8>>> {
    strip.values().map(|value| value.map(<[u8]>::to_vec)).collect()
}

/// The rows of a stretch, read from its strips.
fn strips(reader: &Arc<Reader>, directory: &Directory, source: &mut Source) -> Vec<Row> {
    let mut strip = |location| {
        strip_values(&source.drive(|source| reader.strip(location, directory.rows, source)).unwrap())
    };
    let keys = strip(directory.row_keys.unwrap());
    let columns: Vec<_> = QUALIFIERS
        .iter()
        .map(|qualifier| directory.strip(qualifier).map_or(vec![None; directory.rows], &mut strip))
        .collect();
    let row = |(at, key): (usize, Option<Vec<u8>>)| {
        (key.unwrap(), columns.iter().map(|column| column[at].clone()).collect())
    };
    keys.into_iter().enumerate().map(row).collect()
}

fn check(plans: &[RowPlan], options: WriterOptions) -> Result<usize, TestCaseError> {
    let cells = cells(plans);
    let reader = open(&write(&cells, options)).unwrap();
    prop_assert_eq!(&all_cells(&reader).unwrap(), &cells, "the cells are the same as without a sidecar");
    let mut source = Source::new(100, 7);
    let catalog = source.drive(|source| reader.catalog(source)).unwrap().unwrap();
    let mut left = &expected(&cells)[..];
    for (at, entry) in catalog.entries.iter().enumerate() {
        let directory = source.drive(|source| reader.directory(entry.directory, source)).unwrap();
        let stop = catalog.entries.get(at + 1).map(|next| &next.start_row);
        let (here, after) = left.split_at(directory.rows);
        left = after;
        let is_within = |row: &Row| row.0 >= entry.start_row && stop.is_none_or(|stop| row.0 < *stop);
        prop_assert!(here.iter().all(is_within));
        let of_rows = |(cell, _): &&Owned| {
            let row = cell.view(0).row().to_vec();
            here.first().is_some_and(|first| first.0 <= row) && here.last().is_some_and(|last| row <= last.0)
        };
        let is_plain = cells.iter().filter(of_rows).all(|(cell, _)| cell.view(0).kind() == CellType::Put);
        prop_assert_eq!(directory.is_plain, is_plain);
        prop_assert_eq!(directory.has_strips(), is_plain);
        let seq_id_max = cells.iter().filter(of_rows).map(|(_, seq_id)| *seq_id).max();
        prop_assert_eq!(directory.seq_id_max, seq_id_max.unwrap_or(0));
        for mark in &directory.marks {
            prop_assert_eq!(&here[mark.row_index as usize].0, &mark.row);
        }
        if is_plain {
            prop_assert_eq!(strips(&reader, &directory, &mut source), here);
        }
    }
    prop_assert!(left.is_empty(), "every row is in a stretch");
    Ok(catalog.entries.len())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn strips_match_cells(
        plans in prop::collection::vec(row_plan(), 0..1500),
        encoding in prop::sample::select(vec![BlockEncoding::None, BlockEncoding::FastDiff]),
        compression in prop::sample::select(vec![Compression::None, Compression::Snappy]),
    ) {
        check(&plans, options(encoding, compression))?;
    }
}

#[test]
fn files_have_many_stretches() {
    let plan = |number: u8| RowPlan { versions: [1, 1, number % 3, 1], value_bytes: 8, deletes: false };
    let plans: Vec<RowPlan> = (0..2000).map(|number| plan(number as u8)).collect();
    assert!(check(&plans, options(BlockEncoding::None, Compression::None)).unwrap() > 10);
}

#[test]
fn a_row_of_very_many_blocks_is_in_one_stretch() {
    let plan = |versions| RowPlan { versions: [versions, 1, 1, 0], value_bytes: 60, deletes: false };
    let mut plans: Vec<RowPlan> = (0..300).map(|_| plan(1)).collect();
    // Each version fills a block.
    plans.splice(100..100, (0..2).map(|_| plan(250)));
    plans.insert(0, plan(250));
    check(&plans, options(BlockEncoding::None, Compression::None)).unwrap();
}

#[test]
fn rows_of_too_many_columns_have_no_strips() {
    let cells: Vec<Owned> = (0..2000_u32)
        .map(|number| (KeyValue::new(b"r", b"f", &number.to_be_bytes(), 1, CellType::Put, b"v"), 1))
        .collect();
    let reader = open(&write(&cells, options(BlockEncoding::None, Compression::None))).unwrap();
    let mut source = Source::new(0, 7);
    let catalog = source.drive(|source| reader.catalog(source)).unwrap().unwrap();
    let directory = source.drive(|source| reader.directory(catalog.entries[0].directory, source)).unwrap();
    assert!(directory.is_plain && !directory.has_strips());
    assert_eq!(directory.rows, 1);
}

#[test]
fn files_without_a_sidecar_have_no_catalog() {
    let cells = cells(&[RowPlan { versions: [1; 4], value_bytes: 3, deletes: false }]);
    for options in [
        WriterOptions::default(),
        WriterOptions { order: CellOrder::Meta, ..options(BlockEncoding::None, Compression::None) },
    ] {
        let reader = open(&write(&cells, options)).unwrap();
        assert!(Source::new(0, 7).drive(|source| reader.catalog(source)).unwrap().is_none());
    }
    let empty = open(&write(&[], options(BlockEncoding::None, Compression::None))).unwrap();
    let catalog = Source::new(0, 7).drive(|source| empty.catalog(source)).unwrap().unwrap();
    assert!(catalog.entries.is_empty());
    assert!(empty.info().get(b"GRAMPUS_COLUMN_SIDECAR").is_some_and(|entry: &Bytes| entry.len() == 12));
}
