//! Bulk loads: which files are accepted, how their cells are ordered among others, and that a crash
//! leaves all files of a load or none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::camera::{Camera, SkippedSyncs};
use crate::common::model::VisibleCell;
use crate::common::world::{
    Opened, below, difference, open, open_regions, options, region_info, run, scan, table, unfinished_files,
};
use base::env::{Env, Random};
use base::testing::SeededRandom;
use bytes::Bytes;
use cell::cell::CellType;
use cell::mutation::Mutation;
use cell::schema::{BlockEncoding, Compression};
use cell::{CellOrder, KeyValue};
use engine::region::{BulkFile, BulkLoad, BulkSource, CompactionKind, MovableFile, RegionOptions};
use engine::{Error, Opening, Region, RegionServices};
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use hfile::{Writer, WriterOptions};
use layout::RootDir;

fn put(row: &str, family: &str, timestamp: i64, value: &str) -> KeyValue {
    KeyValue::new(row.as_bytes(), family.as_bytes(), b"q", timestamp, CellType::Put, value.as_bytes())
}

/// Writes an HFile as a job does: without sequence ids.
async fn write_file(fs: &dyn FileSystem, path: &str, cells: &[KeyValue]) -> FilePath {
    write_with(fs, path, cells, WriterOptions { include_mvcc: false, ..WriterOptions::default() }).await
}

async fn write_with(fs: &dyn FileSystem, path: &str, cells: &[KeyValue], options: WriterOptions) -> FilePath {
    let path = FilePath::new(path);
    fs.make_dirs(&path.parent()).await.unwrap();
    let mut writer = Writer::create(fs, &path, options).await.unwrap();
    writer.put_info(b"BULKLOAD_TIMESTAMP", 1u64.to_be_bytes().to_vec());
    for cell in cells {
        writer.append(&cell.view(3)).await.unwrap();
    }
    writer.finish().await.unwrap();
    fs.sync_dir(&path.parent()).await.unwrap();
    path
}

fn own(family: &str, path: &FilePath) -> BulkFile {
    BulkFile { family: family.to_owned().into(), source: BulkSource::Own(path.clone()) }
}

fn load_of(files: Vec<BulkFile>) -> BulkLoad {
    BulkLoad { files, assigns_seq_id: true, copies: false, cluster_ids: vec!["c".into()], replicate: true }
}

async fn begin() -> (Env, MemoryFs, Opened) {
    let (env, memory) = (base::testing::env(1), MemoryFs::new());
    let opened = open(&env, Arc::new(memory.clone()), options()).await.unwrap();
    (env, memory, opened)
}

async fn write(region: &Region, cell: KeyValue) {
    let row = Bytes::copy_from_slice(cell.view(0).row());
    region.batch(vec![Mutation::put(row, vec![cell])]).await.remove(0).unwrap();
}

/// The values of a row's column in family `f`.
async fn values(region: &Region, row: &str) -> Vec<String> {
    let shown = scan(region).await.unwrap();
    let of_row = shown.into_iter().filter(|cell| cell.0 == row.as_bytes() && cell.1 == b"f");
    of_row.map(|cell| String::from_utf8(cell.4).unwrap()).collect()
}

/// Among equal keys, the last write wins, also if it is a load. Loaded cells stay where they are
/// after a restart.
#[test]
fn a_load_is_newer_than_earlier_writes_and_older_than_later_ones() {
    run(async {
        let (env, memory, opened) = begin().await;
        let region = &opened.region;
        for row in ["flushed", "in memory"] {
            write(region, put(row, "f", 5, "first")).await;
            if row == "flushed" {
                region.flush().await.unwrap();
            }
        }
        let cells = [put("flushed", "f", 5, "loaded"), put("in memory", "f", 5, "loaded")];
        let later = put("later", "f", 5, "loaded");
        let file = write_file(&memory, "staging/x/f/a", &[&cells[..], &[later]].concat()).await;
        assert!(region.bulk_load(load_of(vec![own("f", &file)])).await.unwrap());
        write(region, put("later", "f", 5, "last")).await;
        let check = async |region: &Region, when: &str| {
            for (row, value) in [("flushed", "loaded"), ("in memory", "loaded"), ("later", "last")] {
                assert_eq!(values(region, row).await, [value], "{row}, {when}");
            }
        };
        check(region, "open").await;
        assert!(memory.contents(&file).is_none(), "the file is moved");
        let names = region.store_files(b"f").unwrap();
        let loaded: Vec<_> = names.iter().filter(|path| path.name().contains("_SeqId_")).collect();
        assert_eq!(loaded.len(), 1, "{names:?}");
        assert_eq!(loaded[0].parent().name(), "f");
        // After a crash, the log has the later write and the marker.
        region.abandon();
        let again = open(&env, Arc::new(memory.crash(&mut || 0)), options()).await.unwrap();
        check(&again.region, "after a crash").await;
        again.region.compact(None, CompactionKind::Major).await.unwrap();
        check(&again.region, "compacted").await;
        again.region.close().await.unwrap();
    });
}

/// Readers with an older read point do not see the loaded cells, even if the cells of the file have
/// small or large sequence ids of their own.
#[test]
fn a_load_without_writes_gets_a_new_sequence_id() {
    run(async {
        let (env, memory, opened) = begin().await;
        let region = &opened.region;
        let before = region.mvcc().read_point();
        let with_ids = WriterOptions { include_mvcc: true, ..WriterOptions::default() };
        let mut cells = vec![put("a", "f", 5, "x")];
        let file = write_with(&memory, "staging/x/f/a", &cells, with_ids).await;
        assert!(region.bulk_load(load_of(vec![own("f", &file)])).await.unwrap());
        let seq_id = region.mvcc().read_point();
        assert!(seq_id > before);
        let old = cell::query::Scan { read_point: Some(before), ..cell::query::Scan::default() };
        assert_eq!(region.scan_all(&old).await.unwrap().cells.len(), 0);
        assert_eq!(values(region, "a").await, ["x"]);
        // Two loads in succession: the second one wins.
        cells[0] = put("a", "f", 5, "y");
        let file = write_file(&memory, "staging/x/f/a", &cells).await;
        assert!(region.bulk_load(load_of(vec![own("f", &file)])).await.unwrap());
        assert_eq!(values(region, "a").await, ["y"]);
        region.close().await.unwrap();
        opened.log.close().await;
        let again = open(&env, Arc::new(memory), options()).await.unwrap();
        assert_eq!(values(&again.region, "a").await, ["y"]);
        assert!(again.region.open_seq_id() > seq_id);
    });
}

/// The cells of a load without sequence id are older than all others.
#[test]
fn a_load_without_sequence_id_is_older_than_all_writes() {
    run(async {
        let (_, memory, opened) = begin().await;
        write(&opened.region, put("a", "f", 5, "written")).await;
        let file =
            write_file(&memory, "staging/x/f/a", &[put("a", "f", 5, "loaded"), put("b", "f", 5, "b")]).await;
        let load = BulkLoad { assigns_seq_id: false, ..load_of(vec![own("f", &file)]) };
        assert!(opened.region.bulk_load(load).await.unwrap());
        assert_eq!(values(&opened.region, "a").await, ["written"]);
        assert_eq!(values(&opened.region, "b").await, ["b"]);
    });
}

#[test]
fn encoded_and_compressed_files_are_loaded_as_they_are() {
    run(async {
        let (_, memory, opened) = begin().await;
        let codecs = [Compression::None, Compression::Gz, Compression::Snappy, Compression::Zstd];
        let encodings = [BlockEncoding::None, BlockEncoding::FastDiff, BlockEncoding::RowIndexV1];
        let mut expected = Vec::new();
        let mut files = Vec::new();
        for (at, (compression, encoding)) in
            codecs.into_iter().flat_map(|codec| encodings.map(|encoding| (codec, encoding))).enumerate()
        {
            let cells: Vec<_> =
                (0..50).map(|row| put(&format!("{at:02}-{row:02}"), "f", 5, &"v".repeat(40))).collect();
            let options = WriterOptions {
                compression,
                encoding,
                include_mvcc: false,
                block_bytes: 512,
                ..WriterOptions::default()
            };
            files.push(own("f", &write_with(&memory, &format!("x/f/{at}"), &cells, options).await));
            expected.extend(cells);
        }
        assert!(opened.region.bulk_load(load_of(files)).await.unwrap());
        let shown = scan(&opened.region).await.unwrap();
        assert_eq!(shown.len(), expected.len());
        assert!(shown.iter().zip(&expected).all(|(shown, cell)| shown.0 == cell.view(0).row()));
        opened.region.compact(None, CompactionKind::Major).await.unwrap();
        assert_eq!(scan(&opened.region).await.unwrap(), shown);
    });
}

/// Whatever is wrong with one file, the others are not loaded either, and no file is moved.
#[test]
fn one_unsuitable_file_refuses_all() {
    run(async {
        let (env, memory) = (base::testing::env(1), MemoryFs::new());
        let verify = RegionOptions { verify_bulk_loads: true, ..options() };
        let root = RootDir::new(FilePath::root());
        let info = cell::region::RegionInfo::new(table().name, "m".into(), "t".into(), 1);
        root.write_region_info(&memory, &info).await.unwrap();
        let fs: Arc<dyn FileSystem> = Arc::new(memory.clone());
        let opened = open_regions(&env, fs, verify, &table(), &[info]).await.unwrap();
        let region = &opened.regions[0];
        let good = write_file(&memory, "x/f/good", &[put("n", "f", 5, "v")]).await;
        let load = async |family: &str, path: &FilePath| {
            let loaded = region.bulk_load(load_of(vec![own("f", &good), own(family, path)])).await;
            assert!(memory.contents(&good).is_some(), "{path}: the other file is unchanged");
            assert_eq!(region.store_files(b"f").unwrap().len(), 0, "{path}");
            loaded
        };
        for (name, rows) in [("before", ["a", "n"]), ("after", ["n", "t"])] {
            let cells = rows.map(|row| put(row, "f", 5, "v"));
            let file = write_file(&memory, &format!("x/f/{name}"), &cells).await;
            assert!(!load("f", &file).await.unwrap(), "{name}");
            assert!(memory.contents(&file).is_some());
        }
        let error = load("nofamily", &good).await.unwrap_err();
        assert_eq!(error.to_string(), "No such column family nofamily");
        assert!(matches!(error, Error::BadRequest { .. }), "{error:?}");
        let empty = write_file(&memory, "x/f/empty", &[]).await;
        assert!(matches!(load("f", &empty).await, Err(Error::BadRequest { .. })));
        let missing = FilePath::new("x/f/missing");
        assert!(matches!(load("f", &missing).await, Err(Error::Fs(fs::Error::NotFound { .. }))));
        let text = FilePath::new("x/f/text");
        memory.put(&text, "this is not an HFile");
        assert!(matches!(load("f", &text).await, Err(Error::Corrupt { .. })));
        let meta = WriterOptions { order: CellOrder::Meta, include_mvcc: false, ..WriterOptions::default() };
        let other_order = write_with(&memory, "x/f/meta", &[put("n", "f", 5, "v")], meta).await;
        assert!(matches!(load("f", &other_order).await, Err(Error::Corrupt { .. })));
        let cells: Vec<_> = (0..200).map(|at| put(&format!("n{at:03}"), "f", 5, "value")).collect();
        let damaged = write_file(&memory, "x/f/damaged", &cells).await;
        let mut bytes = memory.contents(&damaged).unwrap();
        bytes[300] ^= 1;
        memory.put(&damaged, bytes);
        assert!(matches!(load("f", &damaged).await, Err(Error::Corrupt { .. })), "verified");
        assert!(region.bulk_load(load_of(vec![own("f", &good)])).await.unwrap());
    });
}

/// Files of another file system are copied, or moved if the storage is the same.
#[test]
fn files_of_other_file_systems_are_copied_or_moved() {
    run(async {
        let (_, memory, opened) = begin().await;
        let region = &opened.region;
        let other = MemoryFs::new();
        let copied = write_file(&other, "out/f/a", &[put("a", "f", 5, "copied")]).await;
        let source = BulkSource::Other(Arc::new(other.clone()), copied.clone());
        let mut load = load_of(vec![BulkFile { family: "f".into(), source }]);
        load.copies = true;
        assert!(region.bulk_load(load).await.unwrap());
        assert!(other.contents(&copied).is_some());
        let copied = write_file(&memory, "out/f/c", &[put("c", "f", 5, "copied here")]).await;
        assert!(
            region.bulk_load(BulkLoad { copies: true, ..load_of(vec![own("f", &copied)]) }).await.unwrap()
        );
        assert!(memory.contents(&copied).is_some());
        let movable = |name: &str| MovableFile {
            fs: Arc::new(memory.clone()),
            path: FilePath::new(&format!("outside/f/{name}")),
            staged: FilePath::new(&format!("staging/y/f/{name}")),
            own: FilePath::new(&format!("staging/y/f/{name}")),
        };
        let load_moved = async |name: &str, family: &'static str| {
            let source = BulkSource::Movable(movable(name));
            region.bulk_load(load_of(vec![BulkFile { family: family.into(), source }])).await
        };
        write_file(&memory, "outside/f/b", &[put("b", "f", 5, "moved")]).await;
        assert!(load_moved("b", "f").await.unwrap());
        assert!(memory.contents(&movable("b").path).is_none());
        let shown = scan(region).await.unwrap();
        let values: Vec<_> = shown.iter().map(|cell| String::from_utf8(cell.4.clone()).unwrap()).collect();
        assert_eq!(values, ["copied", "moved", "copied here"]);
        write_file(&memory, "outside/f/d", &[put("d", "f", 5, "back")]).await;
        assert!(load_moved("d", "h").await.is_err());
        assert!(memory.contents(&movable("d").path).is_some());
        assert_eq!(unfinished_files(&memory, "f").await, [""; 0], "no copy remains");
    });
}

/// Each call of the file system fails once. The load then fails as a whole, its file is back, and a
/// repeated load succeeds.
#[test]
fn a_failed_load_can_be_repeated() {
    run(async {
        let operations =
            [Operation::Rename, Operation::SyncDir, Operation::Create, Operation::Sync, Operation::Open];
        let mut failures = 0;
        for operation in operations {
            for nth in 1..12 {
                let (env, memory) = (base::testing::env(1), MemoryFs::new());
                let faulty = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
                let opened = open(&env, Arc::new(faulty.clone()), options()).await.unwrap();
                let region = &opened.region;
                let paths = [
                    write_file(&memory, "staging/x/f/a", &[put("a", "f", 5, "v")]).await,
                    write_file(&memory, "staging/x/g/b", &[put("a", "g", 5, "v")]).await,
                ];
                let load = || load_of(vec![own("f", &paths[0]), own("g", &paths[1])]);
                faulty.add(Rule::new(Fault::Fail).on(operation).after(nth - 1).times(1));
                let loaded = region.bulk_load(load()).await;
                faulty.heal();
                if opened.dead.load(Ordering::Acquire) {
                    continue;
                }
                if loaded.is_err() {
                    failures += 1;
                    assert_eq!(scan(region).await.unwrap(), [], "{operation:?} {nth}");
                    for path in &paths {
                        assert!(memory.contents(path).is_some(), "{operation:?} {nth}: {path} is gone");
                    }
                    assert!(region.bulk_load(load()).await.unwrap(), "{operation:?} {nth}");
                }
                assert_eq!(scan(region).await.unwrap().len(), 2, "{operation:?} {nth}");
            }
        }
        assert!(failures >= 8, "{failures} loads failed");
    });
}

/// If the record of a load cannot be removed, the files that it names are not compacted: the next
/// open would take the load for incomplete, and remove the files that still exist.
#[test]
fn files_are_not_compacted_before_their_load_is_settled() {
    run(async {
        let (env, memory) = (base::testing::env(1), MemoryFs::new());
        let faulty = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
        let opened = open(&env, Arc::new(faulty.clone()), options()).await.unwrap();
        let region = &opened.region;
        for value in ["1", "2", "3"] {
            write(region, put("w", "f", 1, value)).await;
            region.flush().await.unwrap();
        }
        let files = vec![
            own("f", &write_file(&memory, "staging/x/f/a", &[put("a", "f", 5, "v")]).await),
            own("g", &write_file(&memory, "staging/x/g/b", &[put("a", "g", 5, "v")]).await),
        ];
        // The first one removes the temporary name of the record.
        faulty.add(Rule::new(Fault::Fail).on(Operation::Delete).at(".bulk_load").after(1).times(1));
        assert!(region.bulk_load(load_of(files)).await.unwrap());
        let loaded = scan(region).await.unwrap();
        assert_eq!(loaded.len(), 3);
        region.compact(Some(b"f"), CompactionKind::Major).await.unwrap();
        drop(opened);
        let again = open(&base::testing::env(2), Arc::new(memory.clone()), options()).await.unwrap();
        assert_eq!(scan(&again.region).await.unwrap(), loaded);
        let merged = again.region.compact(Some(b"f"), CompactionKind::Major).await.unwrap();
        assert!(merged > 1, "the load is settled: {merged} files were merged");
        assert_eq!(scan(&again.region).await.unwrap(), loaded);
    });
}

async fn has_record(fs: &MemoryFs) -> bool {
    RootDir::new(FilePath::root()).has_bulk_load(fs, &region_info()).await.unwrap()
}

#[test]
fn a_load_completes_an_earlier_one_whose_record_was_not_removed() {
    run(async {
        let (env, memory) = (base::testing::env(1), MemoryFs::new());
        let faulty = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
        let opened = open(&env, Arc::new(faulty.clone()), options()).await.unwrap();
        let region = &opened.region;
        let first = write_file(&memory, "staging/x/f/a", &[put("a", "f", 5, "v")]).await;
        let second = write_file(&memory, "staging/x/f/b", &[put("b", "f", 5, "v")]).await;
        // The first one removes the temporary name of the record.
        faulty.add(Rule::new(Fault::Fail).on(Operation::Delete).at(".bulk_load").after(1).times(1));
        assert!(region.bulk_load(load_of(vec![own("f", &first)])).await.unwrap());
        assert!(has_record(&memory).await);
        assert!(region.bulk_load(load_of(vec![own("f", &second)])).await.unwrap());
        assert!(!has_record(&memory).await);
        assert_eq!(region.compact(Some(b"f"), CompactionKind::Major).await.unwrap(), 2);
        assert_eq!(scan(region).await.unwrap().len(), 2);
    });
}

#[test]
fn a_load_moves_the_files_of_a_failed_one_back() {
    run(async {
        let (env, memory) = (base::testing::env(1), MemoryFs::new());
        let faulty = Faulty::new(Arc::new(memory.clone()), Plan::new(env.clock.clone()));
        let opened = open(&env, Arc::new(faulty.clone()), options()).await.unwrap();
        let region = &opened.region;
        let first = write_file(&memory, "staging/x/f/a", &[put("a", "f", 5, "v")]).await;
        let second = write_file(&memory, "staging/x/f/b", &[put("b", "f", 5, "v")]).await;
        // The file is in its store, and can neither be opened nor moved back.
        let store = RootDir::new(FilePath::root()).family_dir(&region_info(), b"f");
        for operation in [Operation::Open, Operation::Rename] {
            faulty.add(Rule::new(Fault::Fail).on(operation).at(store.as_str()));
        }
        assert!(region.bulk_load(load_of(vec![own("f", &first)])).await.is_err());
        faulty.heal();
        assert!(has_record(&memory).await && memory.contents(&first).is_none());
        assert!(region.bulk_load(load_of(vec![own("f", &second)])).await.unwrap());
        assert!(!has_record(&memory).await && memory.contents(&first).is_some());
        assert_eq!(scan(region).await.unwrap().len(), 1);
        assert!(region.bulk_load(load_of(vec![own("f", &first)])).await.unwrap());
        assert_eq!(scan(region).await.unwrap().len(), 2);
    });
}

/// Which states the pictures of a campaign showed.
#[derive(Default)]
struct Coverage {
    before: AtomicU64,
    recorded: AtomicU64,
    after: AtomicU64,
}

/// A power loss at any moment of a load leaves both families or none, and not none after the load
/// was acknowledged. If none is left, the files are where they were.
fn loads_are_atomic(tracker: Arc<dyn layout::StoreFileTracker>, seeds: std::ops::Range<u64>) {
    let coverage = Coverage::default();
    for seed in seeds {
        run(async {
            let random: Arc<dyn Random> = Arc::new(SeededRandom::new(seed));
            let (env, memory) = (base::testing::env(seed), MemoryFs::new());
            let acknowledged = Arc::new(AtomicBool::new(false));
            let expected = {
                let acknowledged = acknowledged.clone();
                move || acknowledged.load(Ordering::SeqCst)
            };
            let camera =
                Arc::new(Camera::new(memory.clone(), random.clone(), 1, SkippedSyncs::None, expected));
            let opened = open_tracked(&env, camera.clone(), &tracker).await.unwrap();
            if below(&*random, 2) == 0 {
                write(&opened.0, put("w", "f", 5, "written")).await;
            }
            let other = MemoryFs::new();
            let moved = write_file(&memory, "staging/x/f/a", &[put("a", "f", 5, "v")]).await;
            let copied = write_file(&other, "out/g/b", &[put("a", "g", 5, "v")]).await;
            let source = BulkSource::Other(Arc::new(other), copied);
            let files = vec![own("f", &moved), BulkFile { family: "g".into(), source }];
            camera.take_pictures();
            assert!(opened.0.bulk_load(load_of(files)).await.unwrap());
            acknowledged.store(true, Ordering::SeqCst);
            if below(&*random, 2) == 0 {
                write(&opened.0, put("w", "g", 5, "written")).await;
                opened.0.flush().await.unwrap();
            }
            opened.0.abandon();
            let mut pictures = camera.take_pictures();
            pictures.push(camera.picture());
            for (image, acknowledged) in pictures {
                check_image(&env, image, acknowledged, &tracker, &moved, &coverage)
                    .await
                    .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            }
        });
    }
    let counts = [&coverage.before, &coverage.recorded, &coverage.after].map(|of| of.load(Ordering::SeqCst));
    assert!(counts.iter().all(|count| *count > 0), "not all cases occurred: {counts:?}");
}

async fn check_image(
    env: &Env,
    image: MemoryFs,
    acknowledged: bool,
    tracker: &Arc<dyn layout::StoreFileTracker>,
    moved: &FilePath,
    coverage: &Coverage,
) -> Result<(), String> {
    let root = RootDir::new(FilePath::root());
    let is_recorded = root.has_bulk_load(&image, &region_info()).await.unwrap();
    let (region, log) = open_tracked(env, Arc::new(image.clone()), tracker).await?;
    let shown = loaded_cells(&region).await?;
    match (shown.len(), acknowledged) {
        (0, false) => {
            coverage.before.fetch_add(1, Ordering::SeqCst);
            if image.contents(moved).is_none() {
                return Err("the file is lost".into());
            }
        }
        (2, _) => drop(coverage.after.fetch_add(1, Ordering::SeqCst)),
        (count, _) => return Err(format!("{count} cells, acknowledged: {acknowledged}")),
    }
    coverage.recorded.fetch_add(is_recorded.into(), Ordering::SeqCst);
    if root.has_bulk_load(&image, &region_info()).await.unwrap() {
        return Err("the record remains".into());
    }
    // Compactions do not support file lists yet.
    if tracker.output_dir(store_dir(&image, &root, &region_info())) != root.family_dir(&region_info(), b"f") {
        region.compact(None, CompactionKind::Major).await.map_err(|error| error.to_string())?;
    }
    region.close().await.map_err(|error| error.to_string())?;
    log.close().await;
    let (region, _) = open_tracked(env, Arc::new(image), tracker).await?;
    let again = loaded_cells(&region).await?;
    if again != shown { Err(format!("reopened: {}", difference(&again, &shown))) } else { Ok(()) }
}

fn store_dir<'a>(
    fs: &'a dyn FileSystem,
    root: &'a RootDir,
    region: &'a cell::region::RegionInfo,
) -> layout::StoreDir<'a> {
    layout::StoreDir { fs, root, region, family: b"f" }
}

async fn loaded_cells(region: &Region) -> Result<Vec<VisibleCell>, String> {
    let mut shown = scan(region).await?;
    shown.retain(|cell| cell.0 == b"a");
    Ok(shown)
}

/// Opens the region with a store file tracker.
async fn open_tracked(
    env: &Env,
    fs: Arc<dyn FileSystem>,
    tracker: &Arc<dyn layout::StoreFileTracker>,
) -> Result<(Arc<Region>, Arc<wal::Log>), String> {
    let root = RootDir::new(FilePath::root());
    root.write_region_info(&*fs, &region_info()).await.map_err(|error| error.to_string())?;
    // Without regions, only the log is started.
    let dirs = fs.list(&root.wals_dir()).await.unwrap_or_default();
    let mut old = Vec::new();
    for dir in &dirs {
        let logs = wal::recovery::logs_in(&*fs, &root.wals_dir().join(&dir.name)).await;
        old.extend(logs.map_err(|error| error.to_string())?);
    }
    let index = wal::recovery::scan(&*fs, &old).await.map_err(|error| error.to_string())?;
    let world = open_regions(env, fs.clone(), options(), &table(), &[]).await?;
    let services = RegionServices { tracker: tracker.clone(), ..world.services };
    let entries = wal::recovery::read_region(fs, Arc::new(index), &region_info().encoded_name());
    let opening = Opening { info: region_info(), table: Arc::new(table()), entries: Box::new(entries) };
    let region = Region::open(services, opening).await.map_err(|error| format!("opening: {error}"))?;
    Ok((region, world.log))
}

#[test]
fn a_power_loss_leaves_all_families_or_none() {
    loads_are_atomic(Arc::new(layout::RenameTracker), 0..6);
}

#[test]
fn a_power_loss_leaves_all_families_or_none_with_file_lists() {
    loads_are_atomic(Arc::new(layout::FileListTracker::Plain), 100..106);
}

/// The marker is in the log, once per load, also if the record had to complete the load.
#[test]
fn the_log_has_the_marker() {
    run(async {
        let (_, memory, opened) = begin().await;
        let file = write_file(&memory, "staging/x/f/a", &[put("a", "f", 5, "v")]).await;
        assert!(opened.region.bulk_load(load_of(vec![own("f", &file)])).await.unwrap());
        opened.region.abandon();
        opened.log.close().await;
        let root = RootDir::new(FilePath::root());
        let mut markers = 0;
        let dirs = memory.list(&root.wals_dir()).await.unwrap();
        let mut dirs: Vec<_> = dirs.iter().map(|dir| root.wals_dir().join(&dir.name)).collect();
        // A closed log that nothing needs is there.
        dirs.push(root.old_wals_dir());
        for dir in dirs {
            for log in memory.list(&dir).await.unwrap() {
                let mut reader = wal::LogReader::open(&memory, &dir.join(&log.name)).await.unwrap();
                while let Some(entry) = reader.next().await.unwrap() {
                    markers += entry
                        .key_values()
                        .filter(|cell| cell.windows(16).any(|part| part == b"HBASE::BULK_LOAD"))
                        .count();
                }
            }
        }
        assert_eq!(markers, 1);
    });
}
