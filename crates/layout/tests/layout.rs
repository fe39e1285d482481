//! Root directories on an in-memory file system: opened, filled, emptied. Also HBase's own small
//! files.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::pool::Pool;
use base::testing::SeededRandom;
use cell::region::RegionInfo;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::local::LocalFs;
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use layout::identity::claim_wal_dir;
use layout::mob::pseudo_region;
use layout::region::RegionDir;
use layout::{Error, Identity, Inventory, RootDir};

/// Number of times that a descriptor is replaced while it is being read.
const REPLACED: usize = 300;

fn root() -> RootDir {
    RootDir::new(FilePath::root())
}

fn table_name() -> TableName {
    TableName::parse("ns1:t1").unwrap()
}

fn table() -> TableDescriptor {
    TableDescriptor::new(table_name())
        .with_family(FamilyDescriptor::new("cf1").with("VERSIONS", "3"))
        .with_family(FamilyDescriptor::new("cf2"))
}

fn regions() -> Vec<RegionInfo> {
    let region = |start: &'static str, end: &'static str| {
        RegionInfo::new(table_name(), start.into(), end.into(), 1_700_000_000_000)
    };
    vec![region("", "m"), region("m", "")]
}

async fn open(fs: &MemoryFs) -> layout::Result<Identity> {
    root().open_or_create(fs, &SeededRandom::new(1)).await
}

async fn exists(fs: &MemoryFs, path: &FilePath) -> bool {
    fs.stat(path).await.unwrap().is_some()
}

#[tokio::test]
async fn an_empty_directory_becomes_ours() {
    let fs = MemoryFs::new();
    fs.make_dirs(&FilePath::new("lost+found")).await.unwrap();
    fs.put(&root().lock_file(), "");
    let made = open(&fs).await.unwrap();
    assert!(made.is_new);
    let opened = open(&fs).await.unwrap();
    assert_eq!(opened, Identity { is_new: false, is_id_new: false, ..made });
    assert_eq!(fs.contents(&FilePath::new("hbase.version")).unwrap(), b"PBUF\x0a\x018");
    assert_eq!(fs.contents(&FilePath::new("hbase.id")).unwrap()[..6], *b"PBUF\x0a\x24");
}

/// Two processes that write a file at the same time. The first one reads it after the second one
/// has replaced it.
fn racing_processes(fs: &MemoryFs, file: &str) -> (Faulty, Faulty) {
    let clock = base::testing::env(1).clock;
    let late =
        |seconds, operation| Rule::new(Fault::Delay(Duration::from_secs(seconds))).on(operation).at(file);
    let process = |plan: Plan| Faulty::new(Arc::new(fs.clone()), plan);
    let first = Plan::new(clock.clone()).rule(late(1, Operation::Rename)).rule(late(3, Operation::Open));
    (process(first), process(Plan::new(clock.clone()).rule(late(2, Operation::Rename))))
}

/// On HDFS, nothing locks a new directory.
#[tokio::test(start_paused = true)]
async fn processes_that_create_a_directory_at_the_same_time_use_the_id_of_the_last_one() {
    let fs = MemoryFs::new();
    let (first, second) = racing_processes(&fs, "hbase.id");
    let (root_dir, random) = (root(), [SeededRandom::new(1), SeededRandom::new(2)]);
    let (first, second) = tokio::join!(
        root_dir.open_or_create(&first, &random[0]),
        root_dir.open_or_create(&second, &random[1])
    );
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first.cluster_id, second.cluster_id);
    assert!(first.is_id_new && second.is_id_new);
    assert_eq!(root().stored_cluster_id(&fs).await.unwrap(), Some(second.cluster_id));
}

#[tokio::test(start_paused = true)]
async fn only_one_of_two_clusters_claims_a_directory_of_logs() {
    let fs = MemoryFs::new();
    let (first, second) = racing_processes(&fs, "grampus.cluster");
    let random = [SeededRandom::new(1), SeededRandom::new(2)];
    let (first, second) =
        tokio::join!(claim_wal_dir(&first, &random[0], "a"), claim_wal_dir(&second, &random[1], "b"));
    assert!(matches!(first, Err(Error::Corrupt { .. })));
    second.unwrap();
}

#[tokio::test]
async fn a_lost_id_is_that_of_the_separate_directory_of_logs() {
    let (fs, logs, id_file) = (MemoryFs::new(), MemoryFs::new(), FilePath::new("hbase.id"));
    let cluster_id = open(&fs).await.unwrap().cluster_id;
    claim_wal_dir(&logs, &SeededRandom::new(1), &cluster_id).await.unwrap();
    root().create_table(&fs, &table(), &regions()).await.unwrap();
    for damage in ["removed", "emptied"] {
        fs.delete(&id_file).await.unwrap();
        if damage == "emptied" {
            fs.put(&id_file, "");
        }
        let opened = root().open_or_create_with(&fs, &SeededRandom::new(2), Some(&logs)).await.unwrap();
        let expected = Identity { cluster_id: cluster_id.clone(), is_new: false, is_id_new: false };
        assert_eq!(opened, expected, "{damage}");
        assert_eq!(root().stored_cluster_id(&fs).await.unwrap().as_ref(), Some(&cluster_id), "{damage}");
    }
}

/// Its creation may have been interrupted before it got an id.
#[tokio::test]
async fn a_directory_without_tables_does_not_get_the_id_of_the_logs_of_another_cluster() {
    let (fs, logs) = (MemoryFs::new(), MemoryFs::new());
    claim_wal_dir(&logs, &SeededRandom::new(1), "other").await.unwrap();
    for is_new in [true, false] {
        let opened = root().open_or_create_with(&fs, &SeededRandom::new(2), Some(&logs)).await.unwrap();
        assert!(opened.cluster_id != "other" && opened.is_new == is_new && opened.is_id_new);
        fs.delete(&FilePath::new("hbase.id")).await.unwrap();
    }
}

#[tokio::test]
async fn missing_parent_directories_are_created() {
    let fs = MemoryFs::new();
    let below = RootDir::new(FilePath::new("a/b"));
    assert!(below.open_or_create(&fs, &SeededRandom::new(1)).await.unwrap().is_new);
    assert!(!below.open_or_create(&fs, &SeededRandom::new(1)).await.unwrap().is_new);
}

#[tokio::test]
async fn a_directory_of_another_program_is_refused_and_unchanged() {
    for (content, bytes) in
        [("hbase.version", &b"PBUF\x0a\x018"[..]), ("data/default/t/x", b""), ("notes", b"")]
    {
        let fs = MemoryFs::new();
        fs.put(&FilePath::new(content), bytes);
        let error = open(&fs).await.unwrap_err();
        assert!(matches!(&error, Error::NotOurs { found, .. } if content.starts_with(found)), "{error}");
        assert_eq!(fs.list(&FilePath::root()).await.unwrap().len(), 1, "nothing was added");
    }
}

#[tokio::test]
async fn other_formats_are_refused() {
    let fs = MemoryFs::new();
    open(&fs).await.unwrap();
    fs.put(&FilePath::new("hbase.version"), &b"PBUF\x0a\x019"[..]);
    assert!(matches!(open(&fs).await, Err(Error::Unsupported { .. })));
    fs.put(&FilePath::new("hbase.version"), &b"PBUF\x0a\x018"[..]);
    fs.put(&FilePath::new("grampus.root"), "Grampus root directory\nformat 99\n");
    assert!(matches!(open(&fs).await, Err(Error::TooNew { format: 99, .. })));
}

#[tokio::test]
async fn damaged_files_of_the_cluster_are_retained_and_rewritten() {
    let fs = MemoryFs::new();
    open(&fs).await.unwrap();
    for (name, content) in
        [("hbase.version", &b"\x00\x017"[..]), ("hbase.id", b"PBUF\x0a\x24"), ("hbase.id", b"")]
    {
        fs.put(&FilePath::new(name), content);
        open(&fs).await.unwrap();
        let kept = FilePath::new(&format!("{name}.damaged"));
        assert_eq!(fs.contents(&kept).unwrap(), content);
    }
    assert_eq!(fs.contents(&FilePath::new("hbase.version")).unwrap(), b"PBUF\x0a\x018");
    // A root directory without its data directory is not recreated.
    fs.delete(&root().data_dir()).await.unwrap();
    let error = open(&fs).await.unwrap_err();
    assert!(error.to_string().contains("is missing"), "{error}");
    fs.put(&FilePath::new("grampus.root"), "damaged");
    assert!(matches!(open(&fs).await, Err(Error::Corrupt { file, .. }) if file.name() == "grampus.root"));
}

#[tokio::test]
async fn tables_are_created_listed_and_archived() {
    let fs = MemoryFs::new();
    let root = root();
    root.create_table(&fs, &table(), &regions()).await.unwrap();
    root.create_table(&fs, &table(), &regions()).await.unwrap();
    assert_eq!(root.list_tables(&fs).await.unwrap(), [table_name()]);
    assert_eq!(root.list_namespaces(&fs).await.unwrap(), ["ns1"]);
    assert_eq!(root.read_table_descriptor(&fs, &table_name()).await.unwrap(), table());
    let mut listed = root.list_regions(&fs, &table_name()).await.unwrap();
    listed.sort_by(|left, right| left.start_key.cmp(&right.start_key));
    assert_eq!(listed, regions());

    let (region, name) = (&regions()[0], "00ff");
    fs.put(&root.family_dir(region, b"cf1").join(name), "content");
    fs.put(&root.family_tmp_dir(region, b"cf1").join("aa"), "half a file");
    root.write_max_seq_id(&fs, region, 9, Some(&Inventory::default())).await.unwrap();
    for _ in 0..2 {
        root.archive_table(&fs, &table_name()).await.unwrap();
        assert!(!exists(&fs, &root.table_dir(&table_name())).await);
        let archived = root.archive_family_dir(region, b"cf1").join(name);
        assert_eq!(fs.contents(&archived).unwrap(), b"content");
    }
    assert!(root.list_tables(&fs).await.unwrap().is_empty());
    assert!(matches!(
        root.read_table_descriptor(&fs, &table_name()).await,
        Err(Error::Fs(fs::Error::NotFound { .. }))
    ));
}

/// The deletion of the table may then be aborted, unless files may have moved already.
#[tokio::test]
async fn a_table_whose_files_cannot_be_archived_keeps_its_descriptor() {
    let region = &regions()[0];
    let file = root().family_dir(region, b"cf1").join("00ff");
    for (operation, part, state) in [
        (Operation::MakeDirs, "archive", RegionDir::Described),
        (Operation::Rename, file.as_str(), RegionDir::Archiving),
    ] {
        let (fs, clock) = (MemoryFs::new(), base::testing::env(1).clock);
        root().create_table(&fs, &table(), std::slice::from_ref(region)).await.unwrap();
        fs.put(&file, "content");
        let rule = Rule::new(Fault::NoSpace).on(operation).at(part);
        let full = Faulty::new(Arc::new(fs.clone()), Plan::new(clock).rule(rule));
        assert!(root().archive_table(&full, &table_name()).await.is_err(), "{operation:?}");
        assert_eq!(root().read_table_descriptor(&fs, &table_name()).await.unwrap(), table());
        assert_eq!(fs.contents(&file).unwrap(), b"content");
        assert_eq!(root().region_dir_state(&fs, region).await.unwrap(), state, "{operation:?}");
        root().archive_table(&fs, &table_name()).await.unwrap();
        assert!(!exists(&fs, &root().table_dir(&table_name())).await);
    }
}

/// A master that was replaced in the middle of the archival may complete its calls late, when the
/// next table of this name exists.
#[tokio::test(start_paused = true)]
async fn a_late_archival_keeps_the_regions_of_the_next_table() {
    let (fs, clock) = (MemoryFs::new(), base::testing::env(1).clock);
    root().create_table(&fs, &table(), &regions()).await.unwrap();
    let late = Rule::new(Fault::Delay(Duration::from_secs(10))).on(Operation::Delete);
    let late = late.at(root().table_dir(&table_name()).as_str()).after(regions().len() as u64);
    let faulty = Faulty::new(Arc::new(fs.clone()), Plan::new(clock).rule(late));
    let next = RegionInfo { region_id: 5, ..regions()[0].clone() };
    let replace = async {
        root().archive_table(&fs, &table_name()).await.unwrap();
        root().create_table(&fs, &table(), std::slice::from_ref(&next)).await.unwrap();
    };
    let (root_dir, name) = (root(), table_name());
    let (archived, ()) = tokio::join!(root_dir.archive_table(&faulty, &name), replace);
    assert!(archived.is_err(), "the directory is not empty");
    assert_eq!(root().list_regions(&fs, &table_name()).await.unwrap(), [next]);
}

/// The same for the descriptor and the MOB files, whichever call is the first late one.
#[tokio::test(start_paused = true)]
async fn a_late_archival_keeps_the_descriptor_and_mob_files_of_the_next_table() {
    const MOB_FILE: &str = "mob";
    for operation in [Operation::Delete, Operation::Rename] {
        for calls in 0..12 {
            let (fs, clock) = (MemoryFs::new(), base::testing::env(1).clock);
            let mob_file = |name| root().mob_family_dir(&table_name(), b"cf1").join(name);
            root().create_table(&fs, &table(), &regions()).await.unwrap();
            fs.put(&mob_file("old"), "values");
            let late = Rule::new(Fault::Delay(Duration::from_secs(10))).on(operation).after(calls);
            let faulty = Faulty::new(Arc::new(fs.clone()), Plan::new(clock.clone()).rule(late));
            let next = RegionInfo { region_id: 5, ..regions()[0].clone() };
            let replace = async {
                clock.sleep(Duration::from_secs(1)).await;
                root().archive_table(&fs, &table_name()).await.unwrap();
                root().create_table(&fs, &table(), std::slice::from_ref(&next)).await.unwrap();
                fs.put(&mob_file(MOB_FILE), "values");
            };
            let (root_dir, name) = (root(), table_name());
            // It fails or not, depending on the call that is late.
            let (_, ()) = tokio::join!(root_dir.archive_table(&faulty, &name), replace);
            let late = format!("{operation:?} after {calls}");
            assert_eq!(root().list_regions(&fs, &table_name()).await.unwrap(), [next], "{late}");
            assert_eq!(root().read_table_descriptor(&fs, &table_name()).await.unwrap(), table(), "{late}");
            assert_eq!(fs.contents(&mob_file(MOB_FILE)).as_deref(), Some(&b"values"[..]), "{late}");
        }
    }
}

/// Otherwise the deletion of the table would fail as long as they exist.
#[tokio::test]
async fn unknown_entries_of_mob_directories_are_moved_to_the_archive() {
    let fs = MemoryFs::new();
    let family_dir = root().mob_family_dir(&table_name(), b"cf1");
    let table_dir = family_dir.parent().parent();
    let archive = root().archive_family_dir(&pseudo_region(&table_name()), b"cf1");
    for suffix in ["", ".1"] {
        root().create_table(&fs, &table(), &regions()).await.unwrap();
        fs.put(&family_dir.join("dir").join("x"), "in a directory");
        fs.put(&family_dir.parent().join("x"), "next to a family");
        fs.put(&table_dir.join("x"), "next to the region");
        root().archive_table(&fs, &table_name()).await.unwrap();
        assert!(!exists(&fs, &table_dir).await);
        let moved = |path: FilePath| String::from_utf8(fs.contents(&path).unwrap()).unwrap();
        assert_eq!(moved(archive.join(&format!("dir{suffix}/x"))), "in a directory");
        assert_eq!(moved(archive.parent().join(&format!("x{suffix}"))), "next to a family");
        assert_eq!(moved(archive.parent().parent().join(&format!("x{suffix}"))), "next to the region");
    }
}

#[tokio::test]
async fn a_table_does_not_replace_another_one() {
    let fs = MemoryFs::new();
    root().create_table(&fs, &table(), &regions()).await.unwrap();
    let other = RegionInfo { region_id: 5, ..regions()[0].clone() };
    assert!(matches!(root().create_table(&fs, &table(), &[other]).await, Err(Error::Corrupt { .. })));
    let mut illegal = table();
    illegal.name = TableName::parse("illegal").unwrap();
    let illegal = illegal.with_family(FamilyDescriptor::new("../up"));
    assert!(root().create_table(&fs, &illegal, &[]).await.is_err());
    assert_eq!(root().list_tables(&fs).await.unwrap(), [table_name()]);
}

/// The descriptor of a table that HBase 2.5.10 created.
#[tokio::test]
async fn descriptors_of_hbase_are_read() {
    let fs = MemoryFs::new();
    let dir = root().table_dir(&table_name()).join(".tabledesc");
    let content = include_bytes!("vectors/ns1-t1.tableinfo");
    fs.put(&dir.join(".tableinfo.0000000001.626"), &content[..]);
    let read = root().read_table_descriptor(&fs, &table_name()).await.unwrap();
    assert_eq!(read.families.len(), 2);
    assert_eq!(read.families[&b"cf1"[..]].max_versions(), 3);
    assert_eq!(read.families[&b"cf1"[..]].attribute("DATA_BLOCK_ENCODING"), Some("FAST_DIFF"));
    root().write_table_descriptor(&fs, &read).await.unwrap();
    assert_eq!(root().read_table_descriptor(&fs, &table_name()).await.unwrap(), read);
    let names: Vec<String> = fs.list(&dir).await.unwrap().into_iter().map(|status| status.name).collect();
    assert_eq!(names, [".tableinfo.0000000002.626"], "the same attributes in the same number of bytes");
}

#[tokio::test]
async fn the_newest_whole_descriptor_counts() {
    let fs = MemoryFs::new();
    let dir = root().table_dir(&table_name()).join(".tabledesc");
    root().write_table_descriptor(&fs, &table()).await.unwrap();
    fs.put(&dir.join(".tableinfo.0000000007.626"), "cut off");
    fs.put(&dir.join("notes"), "");
    assert_eq!(root().read_table_descriptor(&fs, &table_name()).await.unwrap(), table());
    let changed = table().with_family(FamilyDescriptor::new("cf3"));
    root().write_table_descriptor(&fs, &changed).await.unwrap();
    assert_eq!(root().read_table_descriptor(&fs, &table_name()).await.unwrap(), changed);
    let files = fs.list(&dir).await.unwrap();
    assert!(files.iter().any(|status| status.name.starts_with(".tableinfo.0000000008.")));
    assert_eq!(files.len(), 2, "only unrelated files remain next to it");
}

/// A region may open while its table is altered.
#[tokio::test]
async fn a_descriptor_is_read_while_it_is_replaced() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("descriptor");
    let fs = LocalFs::create(&dir, Arc::new(Pool::new("fs", 2))).unwrap();
    root().write_table_descriptor(&fs, &table()).await.unwrap();
    let replaced = Cell::new(false);
    let replace = async {
        for _ in 0..REPLACED {
            root().write_table_descriptor(&fs, &table()).await.unwrap();
        }
        replaced.set(true);
    };
    let read = async {
        while !replaced.get() {
            assert_eq!(root().read_table_descriptor(&fs, &table_name()).await.unwrap(), table());
        }
    };
    tokio::join!(replace, read);
}

#[tokio::test]
async fn a_descriptor_of_another_table_is_corrupt() {
    let fs = MemoryFs::new();
    let dir = root().table_dir(&TableName::parse("other").unwrap()).join(".tabledesc");
    fs.put(&dir.join(".tableinfo.0000000001.626"), &include_bytes!("vectors/ns1-t1.tableinfo")[..]);
    let read = root().read_table_descriptor(&fs, &TableName::parse("other").unwrap()).await;
    assert!(matches!(read, Err(Error::Corrupt { .. })));
}

/// The `.regioninfo` of a daughter region that HBase 2.5.10 created.
#[tokio::test]
async fn region_infos_of_hbase_are_read_and_rewritten_identically() {
    let fs = MemoryFs::new();
    let content = include_bytes!("vectors/bd9eea83beb8cbda48614c057541ee6b.regioninfo");
    let encoded = "bd9eea83beb8cbda48614c057541ee6b";
    fs.put(&root().table_dir(&table_name()).join(encoded).join(".regioninfo"), &content[..]);
    let region = root().read_region_info(&fs, &table_name(), encoded).await.unwrap().unwrap();
    assert_eq!((&region.start_key[..], &region.end_key[..]), (&b"f"[..], &b"m"[..]));
    let copy = MemoryFs::new();
    root().write_region_info(&copy, &region).await.unwrap();
    root().write_region_info(&copy, &region).await.unwrap();
    assert_eq!(copy.contents(&root().region_dir(&region).join(".regioninfo")).unwrap(), content);

    let wrong = "0".repeat(32);
    fs.put(&root().table_dir(&table_name()).join(&wrong).join(".regioninfo"), &content[..]);
    let read = root().read_region_info(&fs, &table_name(), &wrong).await;
    assert!(matches!(read, Err(Error::Corrupt { .. })));
    let missing = root().read_region_info(&fs, &table_name(), &"1".repeat(32)).await;
    assert_eq!(missing.unwrap(), None);
}

#[tokio::test]
async fn incomplete_stores_are_refused() {
    let region = &regions()[0];
    let dir = root().family_dir(region, b"cf1");
    let hex = "f8db11ccda7041dba9229220b25e2e90";
    let other = "1b42fa151ed2d772692addc8a9d03189";
    let list = async |names: &[&str]| {
        let fs = MemoryFs::new();
        for name in names {
            fs.put(&dir.join(name), "content");
        }
        fs.put(&dir.join("empty"), "");
        fs.put(&dir.join("abcdef"), "");
        let linked = TableName::parse("ns1:t1").unwrap();
        fs.put(&root().table_dir(&linked).join(other).join("cf1").join(hex), "linked content");
        root().list_store_files(&fs, region, b"cf1").await
    };
    let (loaded, link) = (format!("{hex}_SeqId_7_"), format!("ns1=t1={other}-{hex}"));
    let files = list(&[hex, &loaded, &link, "notes.txt"]).await.unwrap();
    let seen: Vec<_> = files.iter().map(|file| (file.path.name(), file.len, file.bulk_load_seq_id)).collect();
    assert_eq!(seen, [(hex, 7, None), (&*loaded, 7, Some(7)), (&*link, 14, None)]);
    assert!(matches!(list(&[hex, ".filelist/f1"]).await, Err(Error::Unsupported { .. })));
    for gone in [format!("ns1:t1={other}-abc"), format!("{hex}.{other}")] {
        let gone = gone.replace(':', "=");
        assert!(matches!(list(&[hex, &gone]).await, Err(Error::Corrupt { .. })), "{gone}");
    }
    let fs = MemoryFs::new();
    assert!(root().list_store_files(&fs, region, b"cf1").await.unwrap().is_empty());
}

/// Without it, the store would seem complete.
#[tokio::test]
async fn a_store_file_on_a_missing_disk_is_listed() {
    let (fs, region) = (MemoryFs::new(), &regions()[0]);
    let dir = root().family_dir(region, b"cf1");
    fs.put(&dir.join("ab"), "");
    fs.link(&dir.join("cd"), "/mnt/missing/cd").await.unwrap();
    let listed = root().list_store_files(&fs, region, b"cf1").await.unwrap();
    let seen: Vec<_> = listed.iter().map(|file| (file.path.name(), file.len)).collect();
    assert_eq!(seen, [("cd", 0)]);
}

#[tokio::test]
async fn archived_files_are_renamed_only_for_equal_names() {
    let fs = MemoryFs::new();
    let (root, region) = (root(), &regions()[0]);
    let (from, to) = (root.family_dir(region, b"cf1"), root.archive_family_dir(region, b"cf1"));
    let archive = async |names: &[&str]| root.archive_store_files(&fs, region, b"cf1", names).await;
    fs.put(&from.join("aa"), "one");
    archive(&["aa"]).await.unwrap();
    archive(&["aa"]).await.unwrap();
    archive(&[]).await.unwrap();
    fs.put(&from.join("aa"), "two");
    archive(&["aa"]).await.unwrap();
    assert_eq!(fs.contents(&to.join("aa")).unwrap(), b"two");
    assert_eq!(fs.list(&to).await.unwrap().len(), 2, "the older file was renamed");
    fs.put(&from.join("aa"), "longer");
    assert!(matches!(archive(&["aa"]).await, Err(Error::Corrupt { .. })));
    assert!(exists(&fs, &from.join("aa")).await);
    assert!(matches!(archive(&["bb"]).await, Err(Error::Fs(fs::Error::NotFound { .. }))));
}

#[tokio::test]
async fn the_highest_sequence_id_is_retained() {
    let fs = MemoryFs::new();
    let (root, region) = (root(), &regions()[0]);
    let dir = root.recovered_edits_dir(region);
    assert_eq!(root.read_max_seq_id(&fs, region).await.unwrap(), 0);
    fs.put(&dir.join("7_seqid"), "");
    fs.put(&dir.join("0000000000000000012"), "edits");
    for (id, highest) in [(9, 9), (30, 30), (12, 30), (30, 30)] {
        root.write_max_seq_id(&fs, region, id, Some(&Inventory::default())).await.unwrap();
        assert_eq!(root.read_max_seq_id(&fs, region).await.unwrap(), highest);
    }
    let names: Vec<String> = fs.list(&dir).await.unwrap().into_iter().map(|status| status.name).collect();
    assert_eq!(names, ["0000000000000000012", "30.seqid"]);
}

#[tokio::test]
async fn archived_files_leave_the_inventory_first() {
    let fs = MemoryFs::new();
    let (root, region) = (root(), &regions()[0]);
    let mut inventory = Inventory::default();
    for (family, file) in [("cf1", "aa"), ("cf1", "bb"), ("cf2", "cc")] {
        inventory.add(family.as_bytes(), file);
        fs.put(&root.family_dir(region, family.as_bytes()).join(file), file);
    }
    root.write_inventory(&fs, region, Some(&inventory)).await.unwrap();
    assert_eq!(root.read_inventory(&fs, region).await.unwrap(), None, "it was never opened");
    assert!(root.write_max_seq_id(&fs, region, 3, Some(&inventory)).await.unwrap());
    assert_eq!(root.read_inventory(&fs, region).await.unwrap(), Some(inventory));
    root.archive_store_files(&fs, region, b"cf1", &["aa"]).await.unwrap();
    let left = root.read_inventory(&fs, region).await.unwrap().unwrap();
    assert_eq!(left.of_family(b"cf1").collect::<Vec<_>>(), ["bb"]);
    root.archive_family(&fs, region, b"cf2").await.unwrap();
    let left = root.read_inventory(&fs, region).await.unwrap().unwrap();
    assert_eq!(left.of_family(b"cf2").count(), 0);
    assert_eq!(root.read_max_seq_id(&fs, region).await.unwrap(), 3);
}
