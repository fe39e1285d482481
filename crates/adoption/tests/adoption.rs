//! Adopts root directories that HBase wrote, undoes this, and hands them back. The operations are
//! interrupted at every call of the file system.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // A panic is how a test fails; vectors are read from disk.

mod support;

use std::sync::Arc;

use adoption::finding::Severity;
use adoption::inspection::Request;
use adoption::{Error, Inspection, NoProgress, Release, Version, adopt, close_logs, inspect, release, undo};
use base::env::Env;
use cell::schema::TableName;
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use layout::ownership::{ADOPTION_DIR, Owner};
use layout::{BulkLoadRecord, LoadedFile};

use support::{cells, cells_of, expected_cells, fill, image, request, root, tree, unpack, unsupported_image};

const IMAGES: [&str; 2] = ["rootdir-live", "rootdir-clean"];

fn env() -> Env {
    base::testing::env(1)
}

async fn inspected(env: &Env, fs: &Arc<dyn FileSystem>) -> Inspection {
    inspect(env, fs, &root(), &request(), &NoProgress).await.unwrap()
}

async fn adopted(env: &Env, fs: &Arc<dyn FileSystem>) {
    adopted_with(env, fs, &request()).await;
}

async fn adopted_with(env: &Env, fs: &Arc<dyn FileSystem>, request: &Request) {
    let inspection = inspect(env, fs, &root(), request, &NoProgress).await.unwrap();
    assert!(inspection.is_adoptable(), "{inspection}");
    adopt(env, fs, &root(), &inspection, &NoProgress).await.unwrap();
}

async fn owner(fs: &dyn FileSystem) -> Owner {
    root().owner(fs).await.unwrap()
}

fn shared(fs: &MemoryFs) -> Arc<dyn FileSystem> {
    Arc::new(fs.clone())
}

#[tokio::test]
async fn an_inspection_changes_nothing_and_counts_everything() {
    for (name, log_regions, recovered) in [("rootdir-live", true, 0), ("rootdir-clean", false, 0)] {
        let (env, fs) = (env(), image(name).await);
        let before = tree(&fs).await;
        let found = inspected(&env, &shared(&fs)).await;
        assert!(tree(&fs).await == before, "{name}: an inspection changes nothing");
        assert_eq!(found.layout_version.as_deref(), Some("8"));
        assert_eq!(found.snapshots, ["snap1"]);
        assert_eq!((found.log_regions > 0, found.recovered_edits), (log_regions, recovered), "{name}");
        let table = |name: &str| found.tables.iter().find(|table| table.name.to_string() == name).unwrap();
        let split = table("ns1:t1");
        assert_eq!(split.regions, 3, "{name}: the two daughters and the other region");
        assert!(split.references > 0 && split.links > 0 && split.cells > 0, "{split:?}");
        assert!(table("t1clone").links > 0);
        assert_eq!(table("tfile").listed_stores, 1);
        assert!(found.features.contains_key("encoding FAST_DIFF"), "{:?}", found.features);
        assert!(found.is_adoptable(), "{found}");
        let json = found.to_json("DIR");
        assert_eq!((json["adoptable"].as_bool(), json["tables"].as_array().unwrap().len()), (Some(true), 6));
    }
}

#[tokio::test]
async fn damage_is_a_finding_or_harmless() {
    let original = unpack("rootdir-live");
    let files: Vec<&String> = original
        .iter()
        .filter(|(_, content)| content.as_ref().is_some_and(|bytes| !bytes.is_empty()))
        .map(|(path, _)| path)
        .collect();
    for seed in 0..60 {
        let env = base::testing::env(seed);
        let mut damaged = original.clone();
        let path = files[env.random.next_u64() as usize % files.len()];
        let bytes = damaged.get_mut(path).unwrap().as_mut().unwrap();
        let at = env.random.next_u64() as usize % bytes.len();
        match env.random.next_u64() % 3 {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << (env.random.next_u64() % 8),
            _ => drop(bytes.splice(at..at, *b"unexpected")),
        }
        let fs = MemoryFs::new();
        fill(&fs, &damaged).await;
        // An error is a result, too; a panic or a hang is not.
        let _ = inspect(&env, &shared(&fs), &root(), &request(), &NoProgress).await;
        assert!(tree(&fs).await == damaged, "{path}: an inspection changes nothing");
    }
}

#[tokio::test]
async fn an_unsupported_feature_is_refused_by_name() {
    let (env, fs) = (env(), unsupported_image("rootdir-live").await);
    let found = inspect(&env, &shared(&fs), &root(), &Default::default(), &NoProgress).await.unwrap();
    let blockers: Vec<String> = found
        .findings
        .iter()
        .filter(|one| one.severity == Severity::Blocker)
        .map(ToString::to_string)
        .collect();
    assert!(!found.is_adoptable() && blockers.len() == 1, "{blockers:?}");
    assert!(blockers[0].contains("table tmob: ENCRYPTION => 'AES' of family f"), "{blockers:?}");
}

#[tokio::test]
async fn values_in_mob_files_of_hbase_are_read() {
    for name in IMAGES {
        let (env, fs) = (env(), image(name).await);
        adopted_with(&env, &shared(&fs), &Default::default()).await;
        let lines = cells_of(&env, &fs, |table| table.to_string() == "tmob").await.unwrap();
        let [large, small] = &lines[..] else { panic!("two cells: {lines:?}") };
        assert!(large.ends_with(&format!(" val={}", "B".repeat(300))), "{large}");
        assert!(small.contains("col=f:small") && small.ends_with(" val=s"), "{small}");
    }
}

#[tokio::test]
async fn an_adopted_directory_has_every_cell() {
    for name in IMAGES {
        let (env, fs) = (env(), image(name).await);
        adopted(&env, &shared(&fs)).await;
        assert_eq!(owner(&fs).await, Owner::Grampus);
        assert!(fs.contents(&FilePath::new("hbase.version")).is_none(), "HBase must not start");
        assert_eq!(cells(&env, &fs).await, expected_cells(), "{name}");
        // The server accepts the directory, and does not write `hbase.version` again.
        let identity = root().open_or_create(&fs, &*env.random).await.unwrap();
        assert!(!identity.is_new);
        assert!(fs.contents(&FilePath::new("hbase.version")).is_none());
    }
}

#[tokio::test]
async fn an_undo_leaves_no_trace() {
    for name in IMAGES {
        let (env, fs) = (env(), image(name).await);
        adopted(&env, &shared(&fs)).await;
        undo(&shared(&fs), &root()).await.unwrap();
        assert_same_tree(name, &fs, name).await;
    }
}

/// A process that is killed while it removes a directory can leave an empty one.
#[tokio::test]
async fn an_undo_that_was_killed_while_it_removed_its_record_can_be_repeated() {
    let (env, fs) = (env(), image("rootdir-live").await);
    adopted(&env, &shared(&fs)).await;
    let adoption_dir = FilePath::root().join(ADOPTION_DIR);
    let record = fs.contents(&adoption_dir.join("record")).unwrap();
    undo(&shared(&fs), &root()).await.unwrap();
    root().fence_from_hbase(&fs).await.unwrap();
    fs.make_dirs(&adoption_dir).await.unwrap();
    assert_eq!(owner(&fs).await, Owner::Adopting);
    let inspection = inspected(&env, &shared(&fs)).await;
    let refused = adopt(&env, &shared(&fs), &root(), &inspection, &NoProgress).await;
    assert!(
        matches!(&refused, Err(Error::Refused(reason)) if reason.contains("adopt --undo")),
        "{refused:?}"
    );
    undo(&shared(&fs), &root()).await.unwrap();
    assert_same_tree("rootdir-live", &fs, "completed").await;

    // Something that was kept is still there: the record was not removed by an undo.
    adopted(&env, &shared(&fs)).await;
    fs.delete(&adoption_dir.join("record")).await.unwrap();
    root().remove_entry(&fs, layout::identity::MARKER).await.unwrap();
    let refused = undo(&shared(&fs), &root()).await.unwrap_err().to_string();
    assert!(refused.contains("restore grampus.adoption/record"), "{refused}");
    fs.put(&adoption_dir.join("record"), record);
    undo(&shared(&fs), &root()).await.unwrap();
    assert_same_tree("rootdir-live", &fs, "with its record").await;
}

#[tokio::test]
async fn an_adoption_cannot_be_undone_after_a_server_has_started() {
    let (env, fs) = (env(), image("rootdir-live").await);
    adopted(&env, &shared(&fs)).await;
    fs.put(&root().log_record(), "logs");
    let refused = undo(&shared(&fs), &root()).await;
    assert!(
        matches!(&refused, Err(Error::Refused(reason)) if reason.contains("grampus release")),
        "{refused:?}"
    );
    assert_eq!(owner(&fs).await, Owner::Grampus);
}

/// Only the directory of scratch files may have been created.
async fn assert_same_tree(name: &str, fs: &MemoryFs, what: &str) {
    let (mut before, mut after) = (unpack(name), tree(fs).await);
    let scratch = |path: &String| path == ".tmp";
    before.retain(|path, _| !scratch(path));
    after.retain(|path, _| !scratch(path));
    let paths = |tree: &support::Tree| tree.keys().cloned().collect::<Vec<_>>();
    assert_eq!(paths(&before), paths(&after), "{what}");
    let changed: Vec<&String> =
        before.iter().filter(|(path, content)| after[*path] != **content).map(|(path, _)| path).collect();
    assert!(changed.is_empty(), "{what}: {changed:?}");
}

/// A file system that fails every call after the first `calls`, as if the process had been killed.
fn killed_after(env: &Env, fs: &MemoryFs, calls: u64) -> Arc<dyn FileSystem> {
    let plan = Plan::new(env.clock.clone()).rule(Rule::new(Fault::Fail).after(calls));
    Arc::new(Faulty::new(shared(fs), plan))
}

/// Calls at which an operation is interrupted: all of the first ones, then with gaps that grow, so
/// that each test ends soon.
fn kill_points() -> impl Iterator<Item = u64> {
    let step = |at: &u64| Some(at + 1 + at / 40);
    std::iter::successors(Some(0), step)
}

#[tokio::test]
async fn the_logs_of_all_servers_are_closed_and_not_changed() {
    let (env, fs) = (env(), image("rootdir-live").await);
    for root in [root(), root().master_data()] {
        let dirs = adoption::catalog::log_dirs(&fs, &root).await.unwrap();
        assert!(!dirs.is_empty());
        for dir in dirs {
            let plan = Plan::new(env.clock.clone());
            let plan = plan.rule(Rule::new(Fault::Fail).on(Operation::Fence).at(dir.as_str()));
            let closed = close_logs(&Faulty::new(shared(&fs), plan), &self::root(), &NoProgress).await;
            assert!(closed.is_err(), "the logs in {dir} are open");
        }
    }
    close_logs(&fs, &root(), &NoProgress).await.unwrap();
    assert_same_tree("rootdir-live", &fs, "closed logs").await;
}

#[tokio::test]
async fn an_adoption_can_be_killed_anywhere_and_repeated_or_undone() {
    let (mut kills, expected) = (0, expected_cells());
    for calls in kill_points() {
        let (env, fs) = (env(), image("rootdir-live").await);
        let inspection = inspected(&env, &shared(&fs)).await;
        let killed = adopt(&env, &killed_after(&env, &fs, calls), &root(), &inspection, &NoProgress).await;
        let after_kill = tree(&fs).await;
        if owner(&fs).await != Owner::HBase {
            let other = MemoryFs::new();
            fill(&other, &after_kill).await;
            undo(&shared(&other), &root()).await.unwrap();
            assert_same_tree("rootdir-live", &other, &format!("rolled back after {calls} calls")).await;
        }
        if owner(&fs).await != Owner::Grampus {
            let inspection = inspected(&env, &shared(&fs)).await;
            adopt(&env, &shared(&fs), &root(), &inspection, &NoProgress).await.unwrap();
        }
        assert_eq!(owner(&fs).await, Owner::Grampus);
        if calls % 5 == 0 {
            assert_eq!(cells(&env, &fs).await, expected, "killed after {calls} calls");
        }
        if killed.is_ok() {
            break;
        }
        kills += 1;
    }
    assert!(kills > 50, "{kills} kills");
}

#[tokio::test]
async fn a_released_directory_has_every_cell_in_files() {
    for (name, version) in [("rootdir-live", Version::V2_5), ("rootdir-clean", Version::V2_6)] {
        let (env, fs) = (env(), image(name).await);
        adopted_with(&env, &shared(&fs), &Request::default()).await;
        release(&env, &shared(&fs), &root(), Release { version }, &NoProgress).await.unwrap();
        assert_released(&env, &fs, name).await;
        let files = tree(&fs).await;
        let lists: Vec<&str> =
            files.keys().filter_map(|path| path.split_once("/.filelist/")).map(|list| list.1).collect();
        let has_generation = |list: &&str| list.starts_with("f1.");
        assert_eq!(lists.iter().all(has_generation), version >= Version::V2_6, "{lists:?}");
    }
}

async fn assert_released(env: &Env, fs: &MemoryFs, what: &str) {
    assert_eq!(owner(fs).await, Owner::HBase, "{what}");
    let own: Vec<String> = tree(fs).await.into_keys().filter(|path| path.contains("grampus")).collect();
    let is_archived_log =
        |path: &&String| path.starts_with("oldWALs/") || path.starts_with("MasterData/oldWALs/");
    let own: Vec<&String> = own.iter().filter(|path| !is_archived_log(path)).collect();
    assert!(own.is_empty(), "{what}: {own:?}");
    let found = inspect(env, &shared(fs), &root(), &Request::default(), &NoProgress).await.unwrap();
    assert!(found.is_adoptable(), "{what}: {found}");
    assert_eq!(
        (found.logs.len(), found.log_dirs.len(), found.procedures.len()),
        (0, 1, 0),
        "{what}: {found}"
    );
    let table = |name: &str| found.tables.iter().find(|table| table.name.to_string() == name).unwrap();
    assert_eq!(table("tfile").listed_stores, 1, "{what}: HBase finds no file of the store without a list");
    assert_eq!(cells(env, fs).await, expected_cells(), "{what}");
}

/// HBase does not know the record of a bulk load, and would read the files that are in their stores
/// already.
#[tokio::test]
async fn an_interrupted_bulk_load_is_settled_before_the_release() {
    let (env, fs) = (env(), image("rootdir-clean").await);
    adopted_with(&env, &shared(&fs), &Request::default()).await;
    let files = tree(&fs).await;
    let is_of_family = |path: &&String| path.starts_with("data/ns1/t1/") && path.contains("/cf2/");
    let path = files.keys().filter(is_of_family).find(|path| files[*path].is_some()).unwrap();
    let (region, _) = path.trim_start_matches("data/ns1/t1/").split_once('/').unwrap();
    let table = TableName::parse("ns1:t1").unwrap();
    let region = root().read_region_info(&fs, &table, region).await.unwrap().unwrap();
    let names = ["0123456789abcdef0123456789abcde0_SeqId_99_", "0123456789abcdef0123456789abcde1_SeqId_99_"];
    let file = |name: &str| LoadedFile { family: "cf2".into(), name: name.into(), origin: None };
    let record = BulkLoadRecord { event: "event".into(), files: names.map(file).to_vec() };
    root().write_bulk_load(&fs, &region, &record).await.unwrap();
    // The crash was between the two files.
    let loaded = root().family_dir(&region, b"cf2").join(names[0]);
    fs.put(&loaded, files[path].clone().unwrap());
    release(&env, &shared(&fs), &root(), Release { version: Version::V2_5 }, &NoProgress).await.unwrap();
    assert!(fs.contents(&loaded).is_none());
    assert!(!root().has_bulk_load(&fs, &region).await.unwrap());
    assert_released(&env, &fs, "after a bulk load").await;
}

#[tokio::test]
async fn a_release_refuses_an_unfinished_procedure() {
    let (env, fs) = (env(), image("rootdir-live").await);
    adopted(&env, &shared(&fs)).await;
    let refused = release(&env, &shared(&fs), &root(), Release { version: Version::V2_5 }, &NoProgress).await;
    let is_named = |reason: &str| reason.contains("DisableTableProcedure");
    assert!(matches!(&refused, Err(Error::Refused(reason)) if is_named(reason)), "{refused:?}");
    assert_eq!(owner(&fs).await, Owner::Grampus);
}

#[tokio::test]
async fn a_release_can_be_killed_anywhere_and_repeated() {
    let mut kills = 0;
    for calls in kill_points() {
        let (env, fs) = (env(), image("rootdir-live").await);
        adopted_with(&env, &shared(&fs), &Request::default()).await;
        let request = Release { version: Version::V2_5 };
        let killed = release(&env, &killed_after(&env, &fs, calls), &root(), request, &NoProgress).await;
        if owner(&fs).await != Owner::HBase {
            release(&env, &shared(&fs), &root(), request, &NoProgress).await.unwrap();
        }
        if calls % 7 == 0 || killed.is_ok() {
            assert_released(&env, &fs, &format!("killed after {calls} calls")).await;
        }
        if killed.is_ok() {
            break;
        }
        kills += 1;
    }
    assert!(kills > 50, "{kills} kills");
}
