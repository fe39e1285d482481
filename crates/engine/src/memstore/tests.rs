//! Tests of the memstore against a sorted map, and with readers concurrent to the writer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cell::{KeyBuf, KeyValue};
use proptest::prelude::*;

use super::*;

fn put(row: &[u8], qualifier: &[u8], timestamp: i64, value: &[u8]) -> KeyValue {
    KeyValue::new(row, b"f", qualifier, timestamp, CellType::Put, value)
}

/// All cells in order, as (key, sequence id, value).
fn all(memstore: &Memstore) -> Vec<(Vec<u8>, u64, Vec<u8>)> {
    let mut cursor = memstore.cursor();
    cursor.seek(&KeyBuf::first_on_row(b""));
    let mut found = Vec::new();
    while let Some(cell) = cursor.cell() {
        found.push((cell.key.to_vec(), cell.seq_id, cell.value.to_vec()));
        cursor.next();
    }
    found
}

#[test]
fn an_empty_memstore_has_no_cells_and_no_memory() {
    let memstore = Memstore::new(CellOrder::Plain);
    assert_eq!((memstore.heap_bytes(), memstore.data_bytes(), memstore.timestamps()), (0, 0, None));
    let mut cursor = memstore.cursor();
    cursor.next();
    cursor.seek(&KeyBuf::first_on_row(b""));
    assert!(cursor.cell().is_none());
    cursor.seek_before(&KeyBuf::last_on_row(b"z"));
    assert!(cursor.cell().is_none());
    assert!(!memstore.may_have_time(TimeRange::ALL, i64::MIN));
}

#[test]
fn among_equal_keys_the_newest_write_is_first_and_one_write_keeps_its_last_cell() {
    let memstore = Memstore::new(CellOrder::Plain);
    for (value, seq_id) in [("a", 5), ("b", 7), ("c", 6), ("d", 7)] {
        memstore.insert(&put(b"r", b"q", 1, value.as_bytes()).view(seq_id));
    }
    let values: Vec<_> = all(&memstore).into_iter().map(|(_, seq_id, value)| (seq_id, value)).collect();
    assert_eq!(values, [(7, b"d".to_vec()), (6, b"c".to_vec()), (5, b"a".to_vec())]);
    assert_eq!(memstore.max_seq_id(), 7);
}

#[test]
fn the_common_prefix_changes_no_order() {
    let rows: Vec<String> = (0..500_u32)
        .map(|number| match number % 7 {
            0 => format!("tser{number}"),
            1 => format!("user{}", number % 3),
            2 => "use".to_owned(),
            3 => format!("v{number}"),
            _ => format!("user{:09}", number.wrapping_mul(2_654_435_761)),
        })
        .collect();
    let filled = |common: Option<&str>| {
        let memstore = Memstore::new(CellOrder::Plain);
        if let Some(common) = common {
            memstore.set_common_prefix(common.as_bytes());
        }
        for (seq_id, row) in rows.iter().enumerate() {
            memstore.insert(&put(row.as_bytes(), b"q", 1, b"v").view(seq_id as u64));
        }
        // Too late: ignored.
        memstore.set_common_prefix(b"z");
        memstore
    };
    let plain = filled(None);
    let expected = all(&plain);
    assert!(expected.is_sorted_by_key(|(key, _, _)| cell::key::row(key).to_vec()));
    for common in ["", "u", "user", "user0000000001", "\u{7f}"] {
        let memstore = filled(Some(common));
        assert_eq!(all(&memstore), expected, "{common}");
        for row in rows.iter().map(|row| row.as_bytes()).chain([&b""[..], b"u", b"user", b"usf", b"z"]) {
            let key = KeyBuf::first_on_row(row);
            let (mut one, mut other) = (plain.cursor(), memstore.cursor());
            one.seek(&key);
            other.seek(&key);
            assert_eq!(one.cell().map(|cell| cell.key), other.cell().map(|cell| cell.key), "{common}");
        }
        assert_eq!(memstore.rows_common_prefix(), Some(vec![]));
    }
    let alike = Memstore::new(CellOrder::Plain);
    assert_eq!(alike.rows_common_prefix(), None);
    for row in ["user1-2026-11-24", "user12-2026-11-24", "user13-2026-11-24"] {
        alike.insert(&put(row.as_bytes(), b"q", 1, b"v").view(1));
    }
    assert_eq!(alike.rows_common_prefix(), Some(b"user1".to_vec()));
}

#[test]
fn the_common_prefix_leaves_bytes_that_distinguish_rows() {
    let number = |number: u32| format!("{number:012}").into_bytes();
    let prefix = |first: &[u8], last: &[u8]| common_prefix(first, last).to_vec();
    assert_eq!(prefix(&number(0), &number(999)), b"0000");
    assert_eq!(prefix(&number(7), &number(7)), b"0000");
    assert_eq!(prefix(b"a", b"aa"), b"");
    assert_eq!(prefix(b"http://a.example/1", b"http://b.example/1"), b"http://");
    assert_eq!(prefix(b"", b""), b"");
}

#[test]
fn markers_that_reach_back_widen_the_time_range() {
    let memstore = Memstore::new(CellOrder::Plain);
    memstore.insert(&put(b"r", b"q", 100, b"v").view(1));
    assert_eq!(memstore.timestamps(), Some((100, 100)));
    assert!(!memstore.may_have_time(TimeRange { from: 0, to: 100 }, i64::MIN));
    assert!(memstore.may_have_time(TimeRange { from: 0, to: 101 }, 100));
    assert!(!memstore.may_have_time(TimeRange::ALL, 101));
    memstore.insert(&KeyValue::new(b"r", b"f", b"q", 100, CellType::Delete, b"").view(2));
    assert_eq!((memstore.timestamps(), memstore.family_delete_count()), (Some((100, 100)), 0));
    memstore.insert(&KeyValue::new(b"r", b"f", b"", 90, CellType::DeleteFamily, b"").view(3));
    assert_eq!((memstore.timestamps(), memstore.family_delete_count()), (Some((0, 100)), 1));
}

#[test]
fn tags_large_cells_and_empty_values_are_stored_completely() {
    let memstore = Memstore::new(CellOrder::Plain);
    let large = vec![7; 3 << 20];
    let cells = [
        KeyValue::with_tags(b"r1", b"f", b"q", 1, CellType::Put, b"v", &[0, 2, 64, 1]),
        put(b"r2", b"q", 1, &large),
        put(b"r3", b"", 1, b""),
    ];
    for cell in &cells {
        memstore.insert(&cell.view(1));
    }
    let mut cursor = memstore.cursor();
    cursor.seek(&KeyBuf::first_on_row(b""));
    let mut data_bytes = 0;
    for cell in &cells {
        assert_eq!(&cursor.cell().unwrap().to_key_value(), cell);
        data_bytes += cell.bytes().len() as u64;
        cursor.next();
    }
    assert_eq!(memstore.data_bytes(), data_bytes);
    // A large cell takes only what it needs, not a multiple of the chunk size.
    assert!(
        (data_bytes..data_bytes + (16 << 10)).contains(&memstore.heap_bytes()),
        "{}",
        memstore.heap_bytes()
    );
}

#[test]
fn a_cursor_outlives_its_memstore() {
    let memstore = Memstore::new(CellOrder::Plain);
    memstore.insert(&put(b"r", b"q", 1, b"v").view(1));
    let mut cursor = memstore.cursor();
    cursor.seek(&KeyBuf::first_on_row(b""));
    drop(memstore);
    assert_eq!(cursor.cell().unwrap().value, b"v");
}

type Model = BTreeMap<(Vec<u8>, Vec<u8>, std::cmp::Reverse<i64>, std::cmp::Reverse<u64>), Vec<u8>>;

/// Many different cells, or few that often have equal keys and sequence ids.
fn cells() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>, i64, u64)>> {
    let few = (proptest::collection::vec(0..2u8, 1), proptest::collection::vec(0..2u8, 1), 0..3i64, 0..2u64);
    prop_oneof![various_cells(), proptest::collection::vec(few, 1..200)]
}

fn various_cells() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>, i64, u64)>> {
    let row =
        prop_oneof![proptest::collection::vec(0..3u8, 0..4), proptest::collection::vec(any::<u8>(), 7..11)];
    let qualifier = proptest::collection::vec(0..2u8, 0..3);
    proptest::collection::vec((row, qualifier, 0..5i64, 0..9u64), 1..200)
}

/// Fewer cases under Miri, which runs thousands of times slower.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn agrees_with_a_sorted_map(cells in cells(), seeks in cells(), sorted: bool, together in 1..50_usize) {
        let memstore = Memstore::new(CellOrder::Plain);
        let mut model = Model::new();
        let mut cells = cells;
        if sorted {
            cells.sort();
        }
        let inserted = cells.len();
        let mut puts = Vec::new();
        for (at, (row, qualifier, timestamp, seq_id)) in cells.into_iter().enumerate() {
            let value = at.to_be_bytes().to_vec();
            puts.push((put(&row, &qualifier, timestamp, &value), seq_id));
            let key = (row, qualifier, std::cmp::Reverse(timestamp), std::cmp::Reverse(seq_id));
            model.insert(key, value);
        }
        for puts in puts.chunks(together) {
            memstore.write().insert_all(puts.iter().map(|(put, seq_id)| put.view(*seq_id)));
        }
        let expected: Vec<_> = model.values().cloned().collect();
        let found: Vec<_> = all(&memstore).into_iter().map(|(_, _, value)| value).collect();
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(memstore.cell_count() as usize, inserted);
        prop_assert!(memstore.heap_bytes() >= memstore.data_bytes());

        let mut forward = memstore.cursor();
        forward.seek(&KeyBuf::first_on_row(b""));
        let mut seeks = seeks;
        seeks.sort();
        for (row, qualifier, timestamp, _) in seeks {
            let bound = (row.clone(), qualifier.clone(), std::cmp::Reverse(timestamp), std::cmp::Reverse(u64::MAX));
            let key = KeyBuf::new(&row, b"f", &qualifier, timestamp, CellType::Put as u8);
            let mut cursor = memstore.cursor();
            cursor.seek(&key);
            let after = model.range(bound.clone()..).next().map(|(_, value)| &value[..]);
            prop_assert_eq!(cursor.cell().map(|cell| cell.value), after);
            // With ascending timestamps, some of the keys are before the cursor, which never moves
            // back.
            let at_or_after = forward.cell().is_none_or(|cell| {
                CellOrder::Plain.compare_keys(cell.key, &key) != std::cmp::Ordering::Greater
            });
            if at_or_after && (after.is_none() || forward.cell().is_some()) {
                forward.seek_forward(&key);
                prop_assert_eq!(forward.cell().map(|cell| cell.value), after);
            }
            cursor.seek_before(&key);
            let before = model.range(..bound).next_back().map(|(_, value)| &value[..]);
            prop_assert_eq!(cursor.cell().map(|cell| cell.value), before);
        }
    }
}

/// Readers run concurrently with the writer. Cells that were inserted before a read are present,
/// complete, and in order.
#[test]
fn readers_see_whole_cells_in_order_while_the_writer_inserts() {
    let count: u64 = if cfg!(miri) { 200 } else { 40_000 };
    let memstore = Memstore::new(CellOrder::Plain);
    let inserted = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let before = inserted.load(Ordering::Acquire);
                    let mut cursor = memstore.cursor();
                    cursor.seek(&KeyBuf::first_on_row(b""));
                    let (mut seen, mut last) = (0, Vec::new());
                    while let Some(cell) = cursor.cell() {
                        assert_eq!(cell.row(), cell.value, "a visible cell is complete");
                        assert!(last.as_slice() < cell.key, "cells come in order");
                        last = cell.key.to_vec();
                        seen += u64::from(cell.seq_id <= before);
                        cursor.next();
                    }
                    assert_eq!(seen, before);
                }
            });
        }
        for at in 1..=count {
            let row = (at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes();
            memstore.insert(&put(&row, b"q", 1, &row).view(at));
            inserted.store(at, Ordering::Release);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn cells_inserted_in_reverse_are_in_order() {
    for order in [CellOrder::Plain, CellOrder::Meta] {
        let memstore = Memstore::new(order);
        let row_of = |at: u32| format!("t,{at:06},1");
        for at in (0..5_000).rev() {
            memstore.insert(&put(row_of(at).as_bytes(), b"q", 1, b"v").view(u64::from(at) + 1));
        }
        let rows: Vec<_> =
            all(&memstore).into_iter().map(|(key, _, _)| cell::key::row(&key).to_vec()).collect();
        assert_eq!(rows, (0..5_000).map(|at| row_of(at).into_bytes()).collect::<Vec<_>>());
        let mut cursor = memstore.cursor();
        for at in (0..5_000).step_by(7) {
            cursor.seek(&KeyBuf::first_on_row(row_of(at).as_bytes()));
            assert_eq!(cursor.cell().unwrap().row(), row_of(at).as_bytes());
            cursor.seek_before(&KeyBuf::first_on_row(row_of(at).as_bytes()));
            assert_eq!(cursor.cell().map(|cell| cell.seq_id), (at > 0).then(|| u64::from(at)));
        }
    }
}

#[test]
fn a_large_first_cell_takes_little_more_than_its_bytes() {
    let memstore = Memstore::new(CellOrder::Plain);
    memstore.insert(&put(b"r", b"q", 1, &vec![7; 3 << 20]).view(1));
    assert!(memstore.heap_bytes() < (3 << 20) + (16 << 10), "{}", memstore.heap_bytes());
}

#[test]
fn readers_find_inserted_cells_while_the_writer_inserts() {
    let count: u64 = if cfg!(miri) { 300 } else { 60_000 };
    let memstore = Memstore::new(CellOrder::Plain);
    let row_of = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let inserted = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for reader in 1..3 {
            let (memstore, inserted) = (&memstore, &inserted);
            scope.spawn(move || {
                let mut random: u64 = reader;
                loop {
                    let known = inserted.load(Ordering::Acquire);
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let at = 1 + (random >> 33) % known.max(1);
                    if at > known {
                        continue;
                    }
                    let row = row_of(at);
                    let found =
                        |cursor: &Cursor| cursor.cell().map(|cell| (cell.row().to_vec(), cell.seq_id));
                    let expected = Some((row.to_vec(), at));
                    let mut cursor = memstore.cursor();
                    cursor.seek(&KeyBuf::first_on_row(&row));
                    assert_eq!(found(&cursor), expected);
                    // A few steps from here, although pages split meanwhile: cells come in order.
                    let mut last = row.to_vec();
                    for _ in 0..40 {
                        cursor.next();
                        let Some(cell) = cursor.cell() else { break };
                        assert!(last.as_slice() < cell.row());
                        last = cell.row().to_vec();
                    }
                    cursor.seek_before(&KeyBuf::last_on_row(&row));
                    assert_eq!(found(&cursor), expected);
                    if known == count {
                        return;
                    }
                }
            });
        }
        let mut at = 1;
        while at <= count {
            // Alternate between single cells and groups.
            let after = (at + if at % 1000 < 500 { 1 } else { 37 }).min(count + 1);
            let puts: Vec<_> = (at..after).map(|at| (put(&row_of(at), b"q", 1, b"v"), at)).collect();
            memstore.write().insert_all(puts.iter().map(|(put, at)| put.view(*at)));
            at = after;
            inserted.store(at - 1, Ordering::Release);
        }
    });
}

#[test]
fn readers_find_inserted_cells_while_the_common_prefix_is_set() {
    let (rounds, count): (u64, u64) = if cfg!(miri) { (1, 300) } else { (60, 1000) };
    for round in 0..rounds {
        let memstore = Memstore::new(CellOrder::Plain);
        let row_of = |at: u64| match at % 50 {
            // Some rows without the common prefix.
            0 => format!("a{at}"),
            1 => format!("z{at}"),
            _ => format!("sensor-{:012}", at.wrapping_mul(2_654_435_761 + round) % 1_000_000_007),
        };
        let inserted = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let (memstore, inserted) = (&memstore, &inserted);
            scope.spawn(move || {
                for step in 0.. {
                    let known = inserted.load(Ordering::Acquire);
                    for at in [known, 1 + step % known.max(1)] {
                        let mut cursor = memstore.cursor();
                        cursor.seek(&KeyBuf::first_on_row(row_of(at).as_bytes()));
                        let found = cursor.cell().map(|cell| cell.seq_id);
                        assert!(at == 0 || at > known || found == Some(at), "{round}: {at} of {known}");
                    }
                    if known == count {
                        return;
                    }
                }
            });
            for at in 1..=count {
                memstore.insert(&put(row_of(at).as_bytes(), b"q", 1, b"v").view(at));
                inserted.store(at, Ordering::Release);
            }
        });
        let rows: Vec<String> = all(&memstore)
            .iter()
            .map(|(key, _, _)| String::from_utf8_lossy(cell::key::row(key)).into())
            .collect();
        assert!(rows.is_sorted() && rows.len() as u64 == count);
    }
}

#[test]
fn one_row_and_then_others_are_in_order() {
    let memstore = Memstore::new(CellOrder::Plain);
    let qualifier = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    for at in 0..600_u64 {
        memstore.insert(&put(b"wide-000123", &qualifier(at), 1, b"v").view(at));
    }
    for (at, row) in
        ["wide-000122", "wide-000124", "wide", "a", "zz", "wide-000123-behind", "wide-0"].iter().enumerate()
    {
        memstore.insert(&put(row.as_bytes(), b"q", 1, b"v").view(600 + at as u64));
    }
    let keys: Vec<Vec<u8>> = all(&memstore).into_iter().map(|(key, _, _)| key).collect();
    assert_eq!(keys.len(), 607);
    assert!(keys.is_sorted_by(|left, right| CellOrder::Plain.compare_keys(left, right).is_lt()));
}

/// Run with `--ignored --nocapture`: measures a million inserts, in order and at random, one by one
/// and in groups.
#[test]
#[ignore = "a measurement, not a check"]
#[allow(clippy::disallowed_methods)] // Measures real time.
fn insert_costs() {
    const COUNT: u64 = 1_000_000;
    const RANDOM: u64 = 0x9e37_79b9_7f4a_7c15;
    // The first run only touches the memory that the others reuse.
    base::pages::set_resident_large_bytes(u64::MAX);
    let inserts = [
        ("for the memory", 1, 1),
        ("in order", 1, 1),
        ("in order, together", 1, 1000),
        ("at random", RANDOM, 1),
        ("at random, together", RANDOM, 1000),
    ];
    for (name, mix, together) in inserts {
        let cells: Vec<_> = (0..COUNT)
            .map(|at| put(format!("{:026}", at.wrapping_mul(mix)).as_bytes(), b"q", 1, &[b'v'; 100]))
            .collect();
        let memstore = Memstore::new(CellOrder::Plain);
        memstore.set_common_prefix(b"000000");
        let start = std::time::Instant::now();
        let mut writer = memstore.write();
        for cells in cells.chunks(together) {
            match cells {
                [one] => writer.insert(&one.view(1)),
                several => writer.insert_all(several.iter().map(|cell| cell.view(1))),
            }
        }
        drop(writer);
        let inserted = start.elapsed();
        let start = std::time::Instant::now();
        let mut cursor = memstore.cursor();
        let mut bytes = 0;
        for cell in &cells {
            cursor.seek(cell.view(0).key);
            bytes += cursor.cell().unwrap().value.len();
        }
        let sought = start.elapsed();
        let start = std::time::Instant::now();
        cursor.seek(&KeyBuf::first_on_row(b""));
        while let Some(cell) = cursor.cell() {
            bytes += cell.value.len();
            cursor.next();
        }
        println!(
            "{name}: insert {inserted:?}, seek {sought:?}, walk {:?}, heap {} data {} ({bytes})",
            start.elapsed(),
            memstore.heap_bytes(),
            memstore.data_bytes()
        );
    }
}

/// Writes of several cells, some of them twice, in a memstore with several levels of pages.
#[test]
fn a_cell_written_twice_by_one_write_keeps_the_last_value_among_many() {
    let writes: u64 = if cfg!(miri) { 30 } else { 20_000 };
    let random = base::testing::SeededRandom::new(5);
    let below = |bound: u64| base::env::Random::next_u64(&random) % bound;
    let memstore = Memstore::new(CellOrder::Plain);
    let mut model: BTreeMap<(Vec<u8>, std::cmp::Reverse<u64>), Vec<u8>> = BTreeMap::new();
    let key_of = |cell: &KeyValue| cell.view(0).key.to_vec();
    for seq_id in 1..=writes {
        let row = format!("000789aq-{:02}", below(40));
        let mut written = Vec::new();
        for value in 0..9_u64 {
            let qualifier = [&b""[..], b"\x00", b"a", b"c", b"longer", b"\xff"][below(6) as usize];
            let timestamp = if below(3) == 0 { 8 } else { 100 + seq_id as i64 };
            let cell = put(row.as_bytes(), qualifier, timestamp, &value.to_be_bytes());
            model.insert((key_of(&cell), std::cmp::Reverse(seq_id)), value.to_be_bytes().to_vec());
            written.push(cell);
        }
        let mut writer = memstore.write();
        match seq_id % 2 {
            0 => written.iter().for_each(|cell| writer.insert(&cell.view(seq_id))),
            _ => writer.insert_all(written.iter().map(|cell| cell.view(seq_id))),
        }
        drop(writer);
        for cell in written {
            let mut cursor = memstore.cursor();
            cursor.seek(cell.view(0).key);
            let found = cursor.cell().unwrap();
            let expected = &model[&(key_of(&cell), std::cmp::Reverse(seq_id))];
            assert_eq!((found.key, found.seq_id), (cell.view(0).key, seq_id));
            assert_eq!(found.value, &expected[..], "write {seq_id}");
        }
    }
    assert_eq!(all(&memstore).len(), model.len());
}
