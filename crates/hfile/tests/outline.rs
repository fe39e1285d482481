//! The outline of a file: its steps do not depend on where the iteration starts, and it starts near
//! the given row.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use cell::{CellType, KeyValue, key};
use hfile::{Reader, WriterOptions};
use support::{Source, open, write};

const ROWS: usize = 2000;

fn row(number: usize) -> Vec<u8> {
    // Some rows span many blocks.
    format!("row{:05}", number - number % 100 % 30).into_bytes()
}

fn file(index_block_bytes: u32) -> Arc<Reader> {
    let cell = |number: usize| {
        let qualifier = format!("{number:06}").into_bytes();
        (KeyValue::new(&row(number), b"f", &qualifier, 5, CellType::Put, &[b'v'; 40]), 1)
    };
    let options = WriterOptions { block_bytes: 100, index_block_bytes, ..WriterOptions::default() };
    let mut cells: Vec<_> = (0..ROWS).map(cell).collect();
    cells.sort_by(|left, right| cell::CellOrder::Plain.compare_keys(left.0.view(0).key, right.0.view(0).key));
    open(&write(&cells, options)).unwrap()
}

/// The steps from a row, and the number of index blocks loaded for the first step.
fn steps(reader: &Arc<Reader>, stride: usize, row: &[u8]) -> (Vec<(u64, Vec<u8>)>, u64) {
    // Half of the lookups miss.
    let mut source = Source::new(128, 7);
    let mut outline = reader.outline(stride, row);
    let (mut steps, mut first_loads) = (Vec::new(), 0);
    loop {
        let next = |step: Option<(u64, &[u8])>| step.map(|(offset, key)| (offset, key.to_vec()));
        let Some(step) = source.drive(|source| outline.next(source).map(next)).unwrap() else {
            return (steps, first_loads);
        };
        if steps.is_empty() {
            first_loads = source.loads;
        }
        steps.push(step);
    }
}

#[test]
fn an_outline_from_a_row_is_a_suffix_of_the_whole() {
    for index_block_bytes in [300, 2000, 1 << 20] {
        let reader = file(index_block_bytes);
        let blocks = steps(&reader, 1, b"").0;
        assert!(blocks.len() > 500, "{}", blocks.len());
        for stride in [1, 2, 7, 128, 10_000] {
            let all = steps(&reader, stride, b"").0;
            assert!(all.iter().all(|step| blocks.contains(step)) && all[0] == blocks[0]);
            for wanted in (0..ROWS).step_by(37).map(row).chain([b"".to_vec(), b"a".to_vec(), b"z".to_vec()]) {
                let (some, loads) = steps(&reader, stride, &wanted);
                assert!(all.ends_with(&some), "{stride} {}", wanted.escape_ascii());
                let is_passed = |step: &(u64, Vec<u8>)| key::row(&step.1) > &wanted[..];
                assert!(some.len() == all.len() || !is_passed(&some[0]), "no row is skipped");
                assert!(some.iter().skip(1).all(|step| key::row(&step.1) >= &wanted[..]), "no early step");
                assert!(loads <= u64::from(reader.trailer().data_index_levels));
            }
        }
    }
    // A step is shorter than the stride only at the end of a leaf.
    let count = |stride| steps(&file(1 << 20), stride, b"").0.len();
    assert!((0..=1).contains(&(count(128) - count(1) / 128)));
}
