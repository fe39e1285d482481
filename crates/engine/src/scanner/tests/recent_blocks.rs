//! Tests of the thread-local table of blocks: it returns only blocks that the cache has, and does
//! not change eviction.

use hfile::{BlockKind, BlockRef, BlockSource};

use super::*;
use crate::scanner::blocks::ScannerBlocks;
use crate::scanner::load::CachePolicy;

/// A region with one file of at least `blocks` data blocks, and a cache of `cache_bytes`.
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
    // Without the cache under test.
    let loader = Arc::new(BlockLoader::new(0));
    let mut source = ScannerBlocks::new(loader.clone());
    let (mut outline, mut found) = (file.outline(1, b""), Vec::new());
    loop {
        match outline.next(&source) {
            Ok(None) => return found,
            Ok(Some((offset, _))) => {
                found.push(BlockRef { file: file.clone(), offset, len: 0, kind: BlockKind::Data });
            }
            Err(Stop::Miss(miss)) => {
                let loaded = now(loader.load_missed(&miss, None, CachePolicy::All)).unwrap();
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
fn remembered_blocks_are_those_in_the_cache() {
    let region = region(20, 1 << 30);
    let (loader, blocks) = (&region.loader, blocks_of(&region));
    assert!(!blocks.iter().any(|block| is_found(loader, block)));
    let held: Vec<_> = blocks.iter().map(|block| now(loader.load(block)).unwrap()).collect();
    let before = loader.kind_stats(BlockKind::Data).hits;
    for _ in 0..3 {
        assert!(blocks.iter().all(|block| is_found(loader, block)));
    }
    assert_eq!(loader.kind_stats(BlockKind::Data).hits - before, 3 * blocks.len() as u64, "each hit counts");
    // Another cache has no blocks under the same numbers. After eviction, this cache has none
    // either.
    let other = BlockLoader::new(1 << 30);
    assert!(!blocks.iter().any(|block| is_found(&other, block)));
    assert!(blocks.iter().all(|block| is_found(loader, block)));
    loader.evict(&blocks[0].file);
    assert!(
        !blocks.iter().any(|block| is_found(loader, block)),
        "evicted, although {} blocks are held",
        held.len()
    );
}

/// Loads all blocks of a file, of which the cache can hold a tenth, while `request` often requests
/// 30 of them. Returns how many of the 30 are still cached then.
fn cached_after(request: impl Fn(&BlockLoader, &BlockRef)) -> usize {
    let region = region(2_000, 1 << 20);
    let (loader, blocks) = (&region.loader, blocks_of(&region));
    let (wanted, others) = blocks.split_at(30);
    wanted.iter().for_each(|block| drop(now(loader.load(block)).unwrap()));
    for (at, block) in others.iter().enumerate() {
        now(loader.load(block)).unwrap();
        assert!(loader.cached(block.file.file_id(), block.offset).is_some());
        for near in 0..4 {
            request(loader, &wanted[(4 * at + near) % wanted.len()]);
        }
    }
    assert!(loader.stats().evictions > 1_000);
    wanted.iter().filter(|block| loader.peek(block.file.file_id(), block.offset).is_some()).count()
}

#[test]
fn hits_of_remembered_blocks_count_for_eviction() {
    let of_cache = cached_after(|loader, block| drop(loader.cached(block.file.file_id(), block.offset)));
    let of_thread = cached_after(|loader, block| _ = is_found(loader, block));
    assert!(
        of_thread + 3 >= of_cache,
        "{of_thread} of 30 kept, and {of_cache} if each look-up uses the cache"
    );
    assert!(of_thread > 20, "{of_thread} of 30 kept");
}
