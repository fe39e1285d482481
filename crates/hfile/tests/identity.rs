//! The identity of a file, and blocks that are decoded from stored bytes.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

mod support;

use std::sync::Arc;

use cell::{CellType, KeyValue};
use fs::FilePath;
use fs::memory::MemoryFs;
use hfile::{BlockKind, BlockRef, OpenOptions, Reader, WriterOptions};

use support::Owned;

fn cells(count: u64, value: u8) -> Vec<Owned> {
    let cell = |row: u64| {
        let row = format!("row{row:04}");
        KeyValue::new(row.as_bytes(), b"f", b"q", 1, CellType::Put, &[value; 20])
    };
    (0..count).map(|row| (cell(row), row + 1)).collect()
}

/// Opens a file with these cells at `path`.
fn opened(path: &str, cells: &[Owned], seq_id: u64) -> Arc<Reader> {
    let options = WriterOptions { block_bytes: 500, ..WriterOptions::default() };
    let (bytes, _) = support::write_with(cells, options, |writer| {
        writer.put_info(hfile::info::names::MAX_SEQ_ID, seq_id.to_be_bytes().to_vec());
    });
    let (fs, path) = (MemoryFs::new(), FilePath::new(path));
    fs.put(&path, bytes);
    support::run(Reader::open(&fs, &path, 1, OpenOptions::default())).unwrap()
}

#[test]
fn files_have_the_same_identity_only_if_name_and_contents_are_equal() {
    let identity = |path: &str, rows, seq_id| opened(path, &cells(rows, 7), seq_id).identity();
    let file = identity("region/f/name", 100, 5);
    assert_eq!(identity("archive/region/f/name", 100, 5), file, "moved");
    assert_ne!(identity("region/f/other", 100, 5), file, "another name");
    assert_ne!(identity("region/f/name", 101, 5), file, "other cells under the same name");
    assert_ne!(identity("region/f/name", 100, 6), file, "another file info under the same name");
}

#[test]
fn stored_bytes_are_decoded_only_as_the_block_they_are() {
    let reader = opened("f/name", &cells(100, 7), 5);
    let blocks = support::run(reader.load_from(fs::IoClass::Read, 0, 1 << 20)).unwrap();
    assert!(blocks.len() > 5);
    let at = |index: usize| BlockRef {
        file: reader.clone(),
        offset: blocks[index].block.offset(),
        len: blocks[index].block.on_disk_len(),
        kind: blocks[index].block.kind(),
    };
    let loaded = support::run(reader.load_for(fs::IoClass::Read, &at(2))).unwrap();
    assert_eq!(loaded.on_disk, blocks[2].on_disk);
    let decoded = reader.decode(&at(2), loaded.on_disk.clone(), 0).unwrap();
    assert_eq!((decoded.offset(), decoded.heap_len()), (at(2).offset, blocks[2].block.heap_len()));
    assert!(reader.decode(&at(2), loaded.on_disk.slice(1..), 0).is_none());
    let other = BlockRef { kind: BlockKind::LeafIndex, ..at(2) };
    assert!(reader.decode(&other, loaded.on_disk.clone(), 0).is_none());
    let mut damaged = loaded.on_disk.to_vec();
    damaged[100] ^= 1;
    assert!(reader.decode(&at(2), damaged.into(), 0).is_none());
}
