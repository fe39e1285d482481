//! Reads that the second level of the block cache serves.

use std::sync::Arc;
use std::time::Duration;

use crate::common::world::{Regions, open_regions, options, region_info};
use base::env::Env;
use base::testing;
use cell::KeyValue;
use cell::cell::CellType;
use cell::mutation::Mutation;
use cell::query::{CellSelection, Get, Scan};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use engine::region::CompactionKind;
use engine::replay::NoEntries;
use engine::scanner::BlockLoader;
use engine::{Opening, Region, RegionServices};
use fs::FileSystem;
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use layout::RootDir;
use ssdcache::{Options, SsdCache};

const ROWS: usize = 400;
/// Holds all index blocks of these tables, and few data blocks.
const MEMORY_BYTES: u64 = 64 << 10;

fn family() -> FamilyDescriptor {
    FamilyDescriptor::new("f").with("BLOCKSIZE", "1024")
}

fn row(number: usize) -> Vec<u8> {
    format!("row{number:05}").into_bytes()
}

/// A region whose files and second-level cache are in memory.
struct World {
    env: Env,
    data: Faulty,
    ssd: Faulty,
    services: RegionServices,
    table: Arc<TableDescriptor>,
    cache: Arc<SsdCache>,
    region: Arc<Region>,
}

impl World {
    /// An empty region with this family, and an empty cache.
    async fn new(family: FamilyDescriptor) -> World {
        let env = testing::env(3);
        let faulty = || Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env.clock.clone()));
        let (data, ssd) = (faulty(), faulty());
        let table = TableDescriptor::new(TableName::parse("t").unwrap()).with_family(family);
        let fs: Arc<dyn FileSystem> = Arc::new(data.clone());
        RootDir::new(fs::FilePath::root()).write_region_info(&*fs, &region_info()).await.unwrap();
        let opened = open_regions(&env, fs, options(), &table, &[region_info()]).await.unwrap();
        let Regions { mut regions, services, .. } = opened;
        let cache = start(&env, &ssd).await;
        let region = regions.remove(0);
        let mut world = World { env, data, ssd, services, table: Arc::new(table), cache, region };
        world.reopen().await;
        world
    }

    /// Closes the region and opens it with an empty cache in memory.
    async fn reopen(&mut self) {
        self.region.close().await.unwrap();
        let loader = BlockLoader::new(MEMORY_BYTES).with_second_level(self.cache.clone());
        let services = RegionServices { loader: Arc::new(loader), ..self.services.clone() };
        let opening =
            Opening { info: region_info(), table: self.table.clone(), entries: Box::new(NoEntries) };
        self.region = Region::open(services, opening).await.unwrap();
    }

    /// Stops the cache and starts it again.
    async fn restart_cache(&mut self) {
        self.cache.close().await;
        self.cache = start(&self.env, &self.ssd).await;
        self.reopen().await;
    }

    async fn fill(&self) {
        for number in 0..ROWS {
            let value = format!("{number}").repeat(50);
            let cell = KeyValue::new(&row(number), b"f", b"q", 1, CellType::Put, value.as_bytes());
            self.region.batch(vec![Mutation::put(row(number), vec![cell])]).await.remove(0).unwrap();
        }
        self.region.flush().await.unwrap();
    }

    /// Gets all rows.
    async fn get_all(&self) {
        for number in 0..ROWS {
            let get = Get { row: row(number).into(), selection: Default::default(), existence_only: false };
            let found = self.region.get(&get).await.unwrap();
            let values: Vec<_> = found.cells.iter().map(|(cell, _)| cell.view(0).value.to_vec()).collect();
            assert_eq!(values, [format!("{number}").repeat(50).into_bytes()]);
        }
    }

    async fn scan_all(&self, cache_blocks: bool) {
        let selection = CellSelection { cache_blocks, ..CellSelection::default() };
        let list = self.region.scan_all(&Scan { selection, ..Scan::default() }).await.unwrap();
        assert_eq!(list.cells.len(), ROWS);
    }

    /// Gets all rows until their blocks are in the second level.
    async fn warm(&self) {
        for _ in 0..3 {
            self.get_all().await;
            self.settle().await;
        }
    }

    /// Waits until queued blocks are written.
    async fn settle(&self) {
        self.env.clock.sleep(Duration::from_secs(11)).await;
    }

    /// Calls that read from the region's files, and hits in the second level, during `reads`.
    async fn counted(&self, reads: impl Future<Output = ()>) -> (u64, u64) {
        let counts = || (self.data.calls(Operation::Read), self.cache.stats().hits);
        let before = counts();
        reads.await;
        (counts().0 - before.0, counts().1 - before.1)
    }
}

async fn start(env: &Env, ssd: &Faulty) -> Arc<SsdCache> {
    let options = Options {
        capacity_bytes: 8 << 20,
        is_persistent: true,
        write_rate_max: None,
        errors_tolerated: Duration::from_secs(60),
    };
    let cache = SsdCache::start(env.clone(), vec![Arc::new(ssd.clone())], options);
    cache.recovered().await;
    Arc::new(cache)
}

#[tokio::test(start_paused = true)]
async fn blocks_that_are_not_in_memory_come_from_the_second_level() {
    for (encoding, compression) in
        [("NONE", "NONE"), ("FAST_DIFF", "NONE"), ("NONE", "GZ"), ("FAST_DIFF", "GZ")]
    {
        let family = family().with("DATA_BLOCK_ENCODING", encoding).with("COMPRESSION", compression);
        let mut world = World::new(family).await;
        world.fill().await;
        world.warm().await;
        world.reopen().await;
        let (reads, hits) = world.counted(world.get_all()).await;
        let blocks = world.cache.stats().blocks;
        assert!(blocks > 20 && hits >= blocks, "{encoding} {compression}: {hits} hits of {blocks} blocks");
        assert!(reads < blocks / 2, "{encoding} {compression}: {reads} reads of index blocks");
    }
}

#[tokio::test(start_paused = true)]
async fn the_second_level_is_warm_after_a_restart() {
    let mut world = World::new(family()).await;
    world.fill().await;
    world.warm().await;
    world.restart_cache().await;
    let blocks = world.cache.stats().blocks;
    let (reads, hits) = world.counted(world.get_all()).await;
    assert!(
        blocks > 20 && hits >= blocks && reads < blocks / 2,
        "{blocks} blocks, {hits} hits, {reads} reads"
    );
}

#[tokio::test(start_paused = true)]
async fn scans_use_the_second_level() {
    let mut world = World::new(family()).await;
    world.fill().await;
    world.warm().await;
    world.reopen().await;
    let (reads, hits) = world.counted(world.scan_all(true)).await;
    assert!(hits > 20 && reads < 20, "{hits} hits, {reads} reads");
    world.reopen().await;
    let (reads, hits) = world.counted(world.scan_all(false)).await;
    assert!(hits > 20 && reads < 20, "{hits} hits, {reads} reads");
}

#[tokio::test(start_paused = true)]
async fn scans_that_do_not_cache_blocks_write_none() {
    let world = World::new(family()).await;
    world.fill().await;
    for _ in 0..3 {
        world.scan_all(false).await;
        world.settle().await;
    }
    let stats = world.cache.stats();
    assert!((stats.first_reads, stats.writes) == (0, 0) && stats.misses > 0, "{stats:?}");
}

#[tokio::test(start_paused = true)]
async fn families_without_block_cache_do_not_use_the_second_level() {
    let world = World::new(family().with("BLOCKCACHE", "false")).await;
    world.fill().await;
    world.warm().await;
    let stats = world.cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.first_reads, stats.writes), (0, 0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn compactions_use_only_the_files_and_leave_no_stale_blocks() {
    let mut world = World::new(family()).await;
    world.fill().await;
    world.warm().await;
    world.fill().await;
    let before = world.cache.stats();
    world.region.compact(None, CompactionKind::Major).await.unwrap();
    let after = world.cache.stats();
    assert_eq!((after.hits, after.misses), (before.hits, before.misses));
    world.reopen().await;
    let (_, hits) = world.counted(world.get_all()).await;
    assert_eq!(hits, 0, "the blocks of the old file are not those of the new one");
    assert_eq!(world.cache.stats().mismatches, 0);
}

#[tokio::test(start_paused = true)]
async fn prefetched_files_fill_the_second_level() {
    let mut world = World::new(family().with("PREFETCH_BLOCKS_ON_OPEN", "true")).await;
    world.fill().await;
    world.settle().await;
    let stats = world.cache.stats();
    assert!(stats.writes > 20 && stats.first_reads == 0, "{stats:?}");
    world.reopen().await;
    world.settle().await;
    assert_eq!(world.cache.stats().writes, stats.writes, "no block is written twice");
    let (reads, hits) = world.counted(world.get_all()).await;
    assert!(hits > 10 && reads < 20, "{hits} hits, {reads} reads");
}

#[tokio::test(start_paused = true)]
async fn an_ssd_that_hangs_delays_one_read() {
    let mut world = World::new(family()).await;
    world.fill().await;
    world.warm().await;
    world.reopen().await;
    world.ssd.add(Rule::new(Fault::Hang));
    let before = world.env.clock.monotonic();
    world.get_all().await;
    assert_eq!(world.env.clock.monotonic() - before, ssdcache::READ_LIMIT);
    world.get_all().await;
    assert_eq!(world.env.clock.monotonic() - before, ssdcache::READ_LIMIT);
}

#[tokio::test(start_paused = true)]
async fn an_ssd_that_fails_or_flips_bits_changes_no_result() {
    for fault in [Fault::Fail, Fault::Flip] {
        let mut world = World::new(family()).await;
        world.fill().await;
        world.warm().await;
        world.reopen().await;
        world.ssd.add(Rule::new(fault).on(Operation::Read));
        let (_, hits) = world.counted(world.get_all()).await;
        assert_eq!(hits, 0);
        assert!(world.ssd.faults() > 20);
    }
}
