//! The content of the block cache after reads, flushes, compactions, opens, and closes, for
//! different family settings.

use std::sync::Arc;

use crate::common::world::{Opened, open_table, options, run};
use cell::KeyValue;
use cell::cell::CellType;
use cell::mutation::Mutation;
use cell::query::Get;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use engine::Region;
use engine::caching::Caching;
use engine::region::{CompactionKind, RegionOptions};
use fs::FileSystem;
use fs::memory::MemoryFs;

const ROWS: usize = 400;

fn family() -> FamilyDescriptor {
    FamilyDescriptor::new("f").with("BLOCKSIZE", "1024")
}

fn table(family: FamilyDescriptor) -> TableDescriptor {
    TableDescriptor::new(TableName::parse("t").unwrap()).with_family(family)
}

fn row(number: usize) -> Vec<u8> {
    format!("row{number:05}").into_bytes()
}

async fn opened(fs: &MemoryFs, family: FamilyDescriptor, options: RegionOptions) -> Opened {
    let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
    open_table(&base::testing::env(3), fs, options, &table(family)).await.unwrap()
}

/// Writes every `step`-th row and flushes.
async fn fill(region: &Region, step: usize) {
    for number in (0..ROWS).step_by(step) {
        let value = format!("{step}").repeat(100);
        let cell = KeyValue::new(&row(number), b"f", b"q", step as i64, CellType::Put, value.as_bytes());
        region.batch(vec![Mutation::put(row(number), vec![cell])]).await.remove(0).unwrap();
    }
    region.flush().await.unwrap();
}

/// Number of blocks that had to be loaded to read the rows.
async fn loads(opened: &Opened, rows: std::ops::Range<usize>) -> u64 {
    let before = opened.loader.stats().misses;
    for number in rows {
        let get = Get { row: row(number).into(), selection: Default::default(), existence_only: false };
        assert_eq!(opened.region.get(&get).await.unwrap().cells.len(), 1);
    }
    opened.loader.stats().misses - before
}

/// Lets background tasks finish.
async fn finish_background_tasks() {
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn blocks_that_are_read_are_cached_unless_the_family_disables_it() {
    run(async {
        let fs = MemoryFs::new();
        let usual = opened(&fs, family(), options()).await;
        fill(&usual.region, 1).await;
        assert!(loads(&usual, 0..ROWS).await > 40);
        assert_eq!(loads(&usual, 0..ROWS).await, 0);

        let fs = MemoryFs::new();
        let uncached = opened(&fs, family().with("BLOCKCACHE", "false"), options()).await;
        fill(&uncached.region, 1).await;
        let first = loads(&uncached, 0..1).await;
        let again = loads(&uncached, 0..1).await;
        assert!(again < first, "index blocks are cached: {again} of {first} loaded again");
        assert!(loads(&uncached, 0..ROWS).await >= ROWS as u64, "a data block for each row");
        let once = loads(&uncached, 0..ROWS).await;
        assert!(
            once < ROWS as u64 * 5 / 4,
            "{once}: a miss counts once; the first row of a block is searched in two blocks"
        );
    });
}

#[test]
fn written_blocks_are_cached_if_the_family_requires_it() {
    run(async {
        let family = family()
            .with("CACHE_DATA_ON_WRITE", "true")
            .with("CACHE_INDEX_ON_WRITE", "true")
            .with("CACHE_BLOOMS_ON_WRITE", "true");
        for encoding in ["NONE", "FAST_DIFF"] {
            for compression in ["NONE", "GZ"] {
                let family =
                    family.clone().with("DATA_BLOCK_ENCODING", encoding).with("COMPRESSION", compression);
                let opened = opened(&MemoryFs::new(), family, options()).await;
                fill(&opened.region, 1).await;
                assert_eq!(loads(&opened, 0..ROWS).await, 0, "{encoding} {compression}");
            }
        }
    });
}

#[test]
fn a_compaction_leaves_the_cache_as_warm_as_it_was() {
    run(async {
        let opened = opened(&MemoryFs::new(), family(), options()).await;
        fill(&opened.region, 1).await;
        fill(&opened.region, 3).await;
        loads(&opened, 100..200).await;
        let evictions = opened.loader.stats().evictions;
        opened.region.compact(None, CompactionKind::Major).await.unwrap();
        finish_background_tasks().await;
        assert_eq!(loads(&opened, 100..200).await, 0, "cached blocks stay cached");
        assert!(loads(&opened, 250..400).await > 10, "other blocks do not");
        assert_eq!(opened.loader.stats().evictions, evictions);
    });
}

#[test]
fn a_full_cache_is_warm_again_after_the_old_files_are_removed() {
    run(async {
        let opened = opened(&MemoryFs::new(), family(), options()).await;
        fill(&opened.region, 1).await;
        loads(&opened, 0..ROWS).await;
        opened.loader.set_cache_bytes(opened.loader.cached_bytes() * 17 / 16);
        opened.region.compact(None, CompactionKind::Major).await.unwrap();
        finish_background_tasks().await;
        let again = loads(&opened, 0..ROWS).await;
        assert!(again < 5, "{again} blocks were loaded again");
    });
}

#[test]
fn compactions_cache_all_blocks_if_the_site_requires_it() {
    run(async {
        let caching = Caching { compacted_on_write: true, ..Caching::default() };
        let opened = opened(&MemoryFs::new(), family(), RegionOptions { caching, ..options() }).await;
        fill(&opened.region, 1).await;
        fill(&opened.region, 2).await;
        opened.region.compact(None, CompactionKind::Major).await.unwrap();
        assert_eq!(loads(&opened, 0..ROWS).await, 0);
    });
}

#[test]
fn files_are_prefetched_when_they_are_opened() {
    run(async {
        let fs = MemoryFs::new();
        let family = family().with("PREFETCH_BLOCKS_ON_OPEN", "true");
        let first = opened(&fs, family.clone(), options()).await;
        fill(&first.region, 1).await;
        finish_background_tasks().await;
        assert_eq!(loads(&first, 0..ROWS).await, 0, "files of a flush");
        first.region.close().await.unwrap();
        let second = opened(&fs, family, options()).await;
        finish_background_tasks().await;
        assert_eq!(loads(&second, 0..ROWS).await, 0, "files of an opened region");
    });
}

#[test]
fn a_closed_region_leaves_the_cache_if_the_family_requires_it() {
    run(async {
        for (evicts, left) in [("true", false), ("false", true)] {
            let opened =
                opened(&MemoryFs::new(), family().with("EVICT_BLOCKS_ON_CLOSE", evicts), options()).await;
            fill(&opened.region, 1).await;
            loads(&opened, 0..ROWS).await;
            opened.region.close().await.unwrap();
            assert_eq!(opened.loader.cached_bytes() > 0, left);
        }
    });
}
