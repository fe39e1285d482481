//! Writes random cells and reads them back. In every encoding, each cursor step agrees with a
//! sorted list while random blocks are missing, and a step that misses changes nothing.
#![allow(clippy::unwrap_used)]

mod support;

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use cell::schema::{BlockEncoding, BloomType, Compression};
use cell::{CellOrder, CellType, KeyBuf, KeyValue};
use fs::FileSystem;
use fs::faulty::{Faulty, Plan};
use fs::scheduled::{DeviceClass, DeviceQueue, ScheduledFs};
use hfile::{
    Block, BlockKind, BlockRef, BloomOptions, ChecksumType, FilterCounts, RetainKinds, Stop, WriterOptions,
};
use proptest::prelude::*;
use support::{Owned, Source, all_cells, open, own, write};

/// Rows that sort differently in the two orders, share prefixes, and are few enough to have several
/// cells.
fn row() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(prop::sample::select(vec![0, b',', b'a', b'b', 0xff]), 0..5),
        2 => (0..40_u32).prop_map(|number| format!("user{number:06}").into_bytes()),
        1 => (0..3_usize).prop_map(|number| vec![b'x'; 200 + number]),
    ]
}

fn qualifier() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::collection::vec(prop::sample::select(vec![0, b'p', b'q', 0xff]), 0..4),
        1 => (0..30_u32).prop_map(|number| format!("column{number}").into_bytes()),
    ]
}

fn timestamp() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 0..300_i64,
        4 => 1_700_000_000_000..1_700_000_100_000_i64,
        1 => any::<i64>(),
        1 => prop::sample::select(vec![i64::MIN, -1, i64::MAX]),
    ]
}

fn tags() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((1..4_u8, 0..3_usize), 0..3).prop_map(|tags| {
        let mut out = Vec::new();
        for (kind, len) in tags {
            out.extend_from_slice(&(len as u16 + 1).to_be_bytes());
            out.push(kind);
            out.extend(std::iter::repeat_n(b't', len));
        }
        out
    })
}

fn cell() -> impl Strategy<Value = Owned> {
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..30),
        Just(b"the same value".to_vec()),
        (0..2_u8).prop_map(|byte| vec![byte; 300]),
    ];
    let kind = prop::sample::select(vec![
        CellType::Put,
        CellType::Put,
        CellType::Put,
        CellType::Delete,
        CellType::DeleteFamilyVersion,
        CellType::DeleteColumn,
        CellType::DeleteFamily,
    ]);
    let seq_id = prop_oneof![0..200_u64, 0..(i64::MAX as u64)];
    (row(), qualifier(), timestamp(), kind, value, tags(), seq_id).prop_map(
        |(row, qualifier, timestamp, kind, value, tags, seq_id)| {
            (KeyValue::with_tags(&row, b"fam", &qualifier, timestamp, kind, &value, &tags), seq_id)
        },
    )
}

fn options() -> impl Strategy<Value = WriterOptions> {
    let order = prop::sample::select(vec![CellOrder::Plain, CellOrder::Meta]);
    let encoding = prop::sample::select(vec![
        BlockEncoding::None,
        BlockEncoding::Prefix,
        BlockEncoding::Diff,
        BlockEncoding::FastDiff,
        BlockEncoding::RowIndexV1,
    ]);
    let compression = prop::sample::select(vec![
        Compression::None,
        Compression::None,
        Compression::Gz,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ]);
    let bloom =
        prop::sample::select(vec![BloomType::None, BloomType::Row, BloomType::RowCol, BloomType::RowPrefix]);
    let checksum = prop::sample::select(vec![ChecksumType::Null, ChecksumType::Crc32, ChecksumType::Crc32c]);
    let block_bytes = prop::sample::select(vec![1, 300, 2000, 65536]);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (order, encoding, compression, bloom, checksum, block_bytes, flags).prop_map(
        |(order, encoding, compression, bloom, checksum, block_bytes, flags)| {
            let (include_tags, compress_tags, include_mvcc, many_levels) = flags;
            WriterOptions {
                order,
                block_bytes,
                encoding,
                compression,
                bloom,
                bloom_prefix_len: 3,
                bloom_options: BloomOptions { chunk_bytes: 128, ..BloomOptions::default() },
                checksum,
                checksum_chunk_bytes: 100,
                include_tags,
                compress_tags,
                include_mvcc,
                index_block_bytes: if many_levels { 150 } else { 128 << 10 },
                index_entries_min: 2,
                ..WriterOptions::default()
            }
        },
    )
}

/// The cells as a file with these options stores them, sorted.
fn stored(mut cells: Vec<Owned>, options: &WriterOptions) -> Vec<Owned> {
    cells.sort_by(|(left, left_seq), (right, right_seq)| {
        options.order.compare(&left.view(*left_seq), &right.view(*right_seq))
    });
    for (key_value, seq_id) in &mut cells {
        let mut view = key_value.view(*seq_id);
        if !options.include_tags {
            view.tags = &[];
        }
        if !options.include_mvcc {
            view.seq_id = 0;
        }
        (*key_value, *seq_id) = own(view);
    }
    cells
}

#[derive(Clone, Debug)]
enum Step {
    Next(u8),
    Seek(KeyBuf),
    SeekBefore(KeyBuf),
    /// To an existing cell with `seek`, or with `seek_before` if true.
    SeekCell(prop::sample::Index, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let key = (row(), qualifier(), timestamp(), prop::sample::select(vec![0, 4, 14, 255]))
        .prop_map(|(row, qualifier, timestamp, kind)| KeyBuf::new(&row, b"fam", &qualifier, timestamp, kind));
    let edge = (row(), any::<bool>()).prop_map(|(row, first)| match first {
        true => KeyBuf::first_on_row(&row),
        false => KeyBuf::last_on_row(&row),
    });
    let key = prop_oneof![key, edge];
    prop_oneof![
        3 => (1..20_u8).prop_map(Step::Next),
        2 => key.clone().prop_map(Step::Seek),
        2 => key.prop_map(Step::SeekBefore),
        2 => (any::<prop::sample::Index>(), any::<bool>()).prop_map(|(at, before)| Step::SeekCell(at, before)),
    ]
}

/// The position of the model's cursor: before the first cell, at a cell, or after the last.
type CellIndex = Option<usize>;

fn seek(cells: &[Owned], order: CellOrder, key: &[u8]) -> usize {
    cells.partition_point(|(cell, _)| order.compare_keys(cell.view(0).key, key) == Ordering::Less)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cursors_agree_with_a_sorted_list(
        cells in prop::collection::vec(cell(), 0..150),
        options in options(),
        steps in prop::collection::vec(step(), 0..60),
        misses in prop::sample::select(vec![0, 60, 255_u64]),
        seed in any::<u64>(),
    ) {
        let cells = stored(cells, &options);
        let order = options.order;
        let reader = open(&write(&cells, options)).unwrap();
        prop_assert_eq!(&all_cells(&reader).unwrap(), &cells);
        prop_assert_eq!(reader.info().entry_count, cells.len() as u64);

        let mut source = Source::new(misses, seed);
        let mut cursor = reader.cursor();
        // `None` before the first cell, `Some(len)` after the last.
        let mut index: CellIndex = None;
        for step in steps {
            let step = match step {
                Step::SeekCell(_, _) if cells.is_empty() => Step::Next(1),
                Step::SeekCell(at, before) => {
                    let key = KeyBuf::default();
                    let mut key = key;
                    key.copy_from(at.get(&cells).0.view(0).key);
                    if before { Step::SeekBefore(key) } else { Step::Seek(key) }
                }
                other => other,
            };
            let times = if let Step::Next(times) = step { times } else { 1 };
            for _ in 0..times {
                index = match &step {
                    Step::Next(_) => Some(index.map_or(0, |at| (at + 1).min(cells.len()))),
                    Step::Seek(key) => Some(seek(&cells, order, key)),
                    Step::SeekBefore(key) => seek(&cells, order, key).checked_sub(1),
                    Step::SeekCell(_, _) => unreachable!(),
                };
                let before = cursor.cell().map(own);
                source.drive(|source| {
                    let moved = match &step {
                        Step::Next(_) => cursor.next(source),
                        Step::Seek(key) => cursor.seek(key, source),
                        Step::SeekBefore(key) => cursor.seek_before(key, source),
                        Step::SeekCell(_, _) => unreachable!(),
                    };
                    if matches!(moved, Err(Stop::Miss(_))) {
                        assert_eq!(cursor.cell().map(own), before, "a step that missed has moved the cursor");
                    }
                    moved
                }).unwrap();
                let expected = index.and_then(|at| cells.get(at));
                let cell = cursor.cell().map(own);
                prop_assert_eq!(cell.as_ref(), expected, "after {:?}", step);
            }
        }
    }

    #[test]
    fn filters_never_deny_a_present_key(
        cells in prop::collection::vec(cell(), 1..150),
        options in options(),
        misses in prop::sample::select(vec![0, 100_u64]),
        seed in any::<u64>(),
    ) {
        let cells = stored(cells, &options);
        let reader = open(&write(&cells, options)).unwrap();
        let mut source = Source::new(misses, seed);
        for (cell, _) in &cells {
            let cell = cell.view(0);
            prop_assert!(source.drive(|source| reader.may_have_row(cell.row(), source, &mut FilterCounts::default())).unwrap());
            let column = source.drive(|source| reader.may_have_column(cell.row(), cell.qualifier(), source, &mut FilterCounts::default()));
            prop_assert!(column.unwrap());
            if matches!(cell.kind(), CellType::DeleteFamily | CellType::DeleteFamilyVersion) {
                let row = source.drive(|source| reader.may_have_delete_family(cell.row(), source));
                // HBase never writes a family delete marker with a qualifier. A ROWCOL filter has
                // it under its column.
                let is_plain = cell.qualifier().is_empty();
                prop_assert!(row.unwrap() || reader.info().bloom == BloomType::RowCol && !is_plain);
            }
        }
    }

    /// Reading ahead returns the same blocks as loading them one by one.
    #[test]
    fn ranges_of_blocks_equal_single_blocks(cells in prop::collection::vec(cell(), 1..150), options in options()) {
        let cells = stored(cells, &options);
        let reader = open(&write(&cells, options)).unwrap();
        let mut cursor = reader.cursor();
        let mut source = hfile::Pinned::new(None);
        let mut loads = 0;
        let mut found = Vec::new();
        loop {
            match cursor.next(&source) {
                Ok(()) => match cursor.cell() {
                    Some(cell) => found.push(own(cell)),
                    None => break,
                },
                Err(Stop::Miss(miss)) => {
                    loads += 1;
                    for loaded in support::run(reader.load_range(fs::IoClass::Read, &miss.blocks[0], 4000)).unwrap() {
                        source.supply(loaded.block);
                    }
                }
                Err(Stop::Failed(error)) => panic!("{error}"),
            }
        }
        prop_assert_eq!(found, cells);
        // A leaf follows the data blocks it points at, so a small leaf costs a run of its own.
        prop_assert!(loads <= 10 + reader.len() / 500, "{} loads for {} bytes", loads, reader.len());
    }
}

/// Seeks within a wide row go through anchors, not from its start, and end at the right cell.
#[test]
fn seeks_within_a_wide_row_are_exact() {
    let cells: Vec<Owned> = (0..3000)
        .map(|i| {
            let qualifier = format!("q{i:05}");
            (KeyValue::new(b"row", b"fam", qualifier.as_bytes(), 7, CellType::Put, b"v"), i)
        })
        .collect();
    for encoding in [BlockEncoding::None, BlockEncoding::RowIndexV1, BlockEncoding::FastDiff] {
        let options = WriterOptions { encoding, block_bytes: 16 << 10, ..WriterOptions::default() };
        let reader = open(&write(&cells, options)).unwrap();
        let (mut source, mut cursor) = (Source::new(0, 0), reader.cursor());
        for at in (0..3000).step_by(7).chain((0..3000).rev().step_by(11)) {
            let key = KeyBuf::first_on_column(b"row", b"fam", format!("q{at:05}").as_bytes());
            source.drive(|source| cursor.seek(&key, source)).unwrap();
            assert_eq!(cursor.cell().unwrap().seq_id, at as u64);
            source.drive(|source| cursor.seek_before(&key, source)).unwrap();
            assert_eq!(cursor.cell().map(|cell| cell.seq_id), (at as u64).checked_sub(1));
        }
    }
}

/// The cells of a bulk loaded file get the sequence id of the load.
#[test]
fn an_assigned_sequence_id_replaces_the_ids_of_cells() {
    let cells = vec![(KeyValue::new(b"row", b"fam", b"q", 7, CellType::Put, b"v"), 3)];
    let bytes = write(&cells, WriterOptions::default());
    let options = hfile::OpenOptions { assigned_seq_id: Some(99), ..Default::default() };
    let reader = support::open_with(&bytes, options).unwrap();
    assert_eq!(all_cells(&reader).unwrap()[0].1, 99);
    let meta = hfile::OpenOptions { order: Some(CellOrder::Meta), ..Default::default() };
    assert!(matches!(support::open_with(&bytes, meta), Err(hfile::Error::Corrupt { .. })));
}

/// The blocks that a writer retains equal those that a reader loads.
#[test]
fn retained_blocks_equal_the_blocks_of_the_file() {
    let cells: Vec<Owned> = (0..3000)
        .map(|number| {
            let row = format!("row{number:05}").into_bytes();
            let tags = [0, 4, 1, b'a', b'b', b'c'];
            (KeyValue::with_tags(&row, b"f", b"q", 7, CellType::Put, &[b'v'; 30], &tags), number)
        })
        .collect();
    for encoding in [BlockEncoding::None, BlockEncoding::Diff, BlockEncoding::RowIndexV1] {
        for compression in [Compression::None, Compression::Gz] {
            let options = WriterOptions {
                encoding,
                compression,
                block_bytes: 1024,
                index_block_bytes: 512,
                include_tags: true,
                retain: RetainKinds { data: true, index: true, bloom: true },
                bloom_options: BloomOptions { chunk_bytes: 256, ..BloomOptions::default() },
                ..WriterOptions::default()
            };
            let mut retained = Vec::new();
            let (bytes, _) = support::write_with(&cells, options, |writer| {
                writer.complete_blocks();
                retained = writer.take_retained(0);
            });
            let file = support::open_with(&bytes, hfile::OpenOptions::default()).unwrap();
            let mut offset = 0;
            for block in &retained {
                assert_eq!(block.offset(), offset, "no block is missing");
                let location =
                    BlockRef { file: file.clone(), offset, len: block.on_disk_len(), kind: block.kind() };
                let loaded = support::run(file.load(&location)).unwrap();
                let text = |block: &Block| {
                    format!("{block:?}").replacen(&format!("file_id: {}", block.file_id()), "", 1)
                };
                assert!(text(&loaded) == text(block), "{encoding:?} {compression:?} at {offset}");
                offset += u64::from(block.on_disk_len());
            }
            let kinds: HashSet<_> = retained.iter().map(|block| block.kind() as u8).collect();
            assert_eq!(kinds.len(), 3, "data, index and filters");
        }
    }
}

/// For a requested data block, the index and Bloom blocks that cover it are retained too, and no
/// others.
#[test]
fn only_requested_blocks_are_retained() {
    let fs = fs::memory::MemoryFs::new();
    support::run(async {
        let options = WriterOptions { block_bytes: 1024, index_block_bytes: 512, ..WriterOptions::default() };
        let mut writer = hfile::Writer::create(&fs, &support::path("file"), options).await.unwrap();
        for number in 0..3000_u32 {
            let row = format!("row{number:05}").into_bytes();
            let cell = KeyValue::new(&row, b"f", b"q", 7, CellType::Put, &[b'v'; 30]);
            writer.append(&cell.view(0)).await.unwrap();
            if number == 1500 {
                writer.retain_block();
            }
        }
        writer.complete_blocks();
        let retained = writer.take_retained(0);
        let kinds: Vec<_> = retained.iter().map(|block| block.kind()).collect();
        assert_eq!(kinds.iter().filter(|kind| **kind == BlockKind::Data).count(), 1, "{kinds:?}");
        assert_eq!(kinds.iter().filter(|kind| **kind == BlockKind::LeafIndex).count(), 1, "{kinds:?}");
        assert!(!writer.has_retained());
    });
}

/// The lengths by which a file on a device of class `class` grows while it is written, without the
/// last one.
fn appended(class: DeviceClass, pending_bytes_max: usize) -> Vec<u64> {
    support::run(async {
        let clock = base::testing::env(1).clock;
        let memory = Arc::new(fs::memory::MemoryFs::new());
        let scheduled: Arc<dyn FileSystem> =
            Arc::new(ScheduledFs::new(memory.clone(), DeviceQueue::new(class, clock.clone())));
        // Wrappers pass the preferred size on.
        let fs = Faulty::new(scheduled, Plan::new(clock));
        let options = WriterOptions { pending_bytes_max, ..WriterOptions::default() };
        let mut writer = hfile::Writer::create(&fs, &support::path("file"), options).await.unwrap();
        let mut lengths = vec![0];
        for number in 0..8000_u32 {
            let row = number.to_be_bytes();
            let cell = KeyValue::new(&row, b"f", b"q", 7, CellType::Put, &[b'v'; 1000]);
            writer.append(&cell.view(0)).await.unwrap();
            let length = memory.open(&support::path("file")).await.unwrap().len();
            if Some(&length) != lengths.last() {
                lengths.push(length);
            }
        }
        writer.finish().await.unwrap();
        lengths.windows(2).map(|pair| pair[1] - pair[0]).collect()
    })
}

#[test]
fn appends_have_the_size_that_the_device_prefers() {
    const BLOCK: u64 = 100 << 10;
    for (class, pending_bytes_max, expected) in [
        (DeviceClass::hdd(), usize::MAX, 2 << 20),
        (DeviceClass::nvme(), usize::MAX, 256 << 10),
        (DeviceClass::hdd(), 512 << 10, 512 << 10),
        (DeviceClass::nvme(), 1 << 20, 256 << 10),
    ] {
        let lengths = appended(class, pending_bytes_max);
        assert!(lengths.len() >= 3, "{lengths:?}");
        assert!(lengths.iter().all(|len| (expected..expected + BLOCK).contains(len)), "{lengths:?}");
    }
}
