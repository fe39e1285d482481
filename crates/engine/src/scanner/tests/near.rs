//! Blocks that a thread remembers: those that the cache has, and what it lets go of does not depend on it.

use hfile::{BlockKind, BlockRef, BlockSource};

use super::*;
use crate::scanner::blocks::Blocks;
use crate::scanner::load::Keep;

/// A file of so many data blocks or a few more, with a cache of so many bytes.
fn region(blocks: usize, cache_bytes: u64) -> TestRegion {
    let mut region = TestRegion::new(vec![FamilyDescriptor::new("f")]);
    region.loader = Arc::new(BlockLoader::new(cache_bytes));
    for number in 0..blocks {
        let row = format!("row{number:05}");
        let cell = KeyValue::new(row.as_bytes(), b"f", b"q", 5, CellType::Put, &[b'v'; 100]);
        region.insert(&cell, 1);
    }
    region.flush(0);
    region
}

/// The data blocks of the region's file.
fn blocks_of(region: &TestRegion) -> Vec<BlockRef> {
    let file = region.stores[0].view.files[0].reader();
    // Not through the cache that is looked at.
    let loader = Arc::new(BlockLoader::new(0));
    let mut source = Blocks::new(loader.clone());
    let (mut outline, mut found) = (file.outline(1, b""), Vec::new());
    loop {
        match outline.next(&source) {
            Ok(None) => return found,
            Ok(Some((offset, _))) => {
                found.push(BlockRef { file: file.clone(), offset, len: 0, kind: BlockKind::Data });
            }
            Err(Stop::Miss(miss)) => {
                let loaded = now(loader.load_missed(&miss, None, Keep::All)).unwrap();
                loaded.into_iter().for_each(|block| source.supply(block));
            }
            Err(Stop::Failed(error)) => panic!("{error}"),
        }
    }
}

fn is_found(loader: &BlockLoader, block: &BlockRef) -> bool {
    loader.prefetch(block.file.file_id(), block.offset);
    let found = loader.block(&block.file, block.offset);
    assert!(found.as_ref().is_none_or(|found| found.offset() == block.offset));
    found.is_some()
}

#[test]
fn what_is_remembered_is_what_the_cache_has() {
    let region = region(20, 1 << 30);
    let (loader, blocks) = (&region.loader, blocks_of(&region));
    assert!(!blocks.iter().any(|block| is_found(loader, block)));
    let held: Vec<_> = blocks.iter().map(|block| now(loader.load(block)).unwrap()).collect();
    let before = loader.kind_stats(BlockKind::Data).hits;
    for _ in 0..3 {
        assert!(blocks.iter().all(|block| is_found(loader, block)));
    }
    assert_eq!(loader.kind_stats(BlockKind::Data).hits - before, 3 * blocks.len() as u64, "each counts");
    // Another cache has nothing under the same numbers, nor has this one any more.
    let other = BlockLoader::new(1 << 30);
    assert!(!blocks.iter().any(|block| is_found(&other, block)));
    assert!(blocks.iter().all(|block| is_found(loader, block)));
    loader.evict(&blocks[0].file);
    assert!(!blocks.iter().any(|block| is_found(loader, block)), "though somebody holds {}", held.len());
}

/// How many of a few blocks are still there when many others came, which the cache has room for a tenth of. All are asked for again,
/// those few often, by `ask`.
fn kept(ask: impl Fn(&BlockLoader, &BlockRef)) -> usize {
    let region = region(2_000, 1 << 20);
    let (loader, blocks) = (&region.loader, blocks_of(&region));
    let (wanted, others) = blocks.split_at(30);
    wanted.iter().for_each(|block| drop(now(loader.load(block)).unwrap()));
    for (at, block) in others.iter().enumerate() {
        now(loader.load(block)).unwrap();
        assert!(loader.cached(block.file.file_id(), block.offset).is_some());
        for near in 0..4 {
            ask(loader, &wanted[(4 * at + near) % wanted.len()]);
        }
    }
    assert!(loader.stats().evictions > 1_000);
    wanted.iter().filter(|block| loader.peek(block.file.file_id(), block.offset).is_some()).count()
}

#[test]
fn what_is_remembered_counts_as_asked_for() {
    let of_cache = kept(|loader, block| drop(loader.cached(block.file.file_id(), block.offset)));
    let of_thread = kept(|loader, block| _ = is_found(loader, block));
    assert!(
        of_thread + 3 >= of_cache,
        "{of_thread} of 30 kept, and {of_cache} by asking the cache each time"
    );
    assert!(of_thread > 20, "{of_thread} of 30 kept");
}
