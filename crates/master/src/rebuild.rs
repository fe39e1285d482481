//! Rebuilds `hbase:meta` from the directories of regions, while no server runs.
//!
//! Each region's `.regioninfo` contains its row range. It does not contain whether a split or merge
//! has replaced the region since: the `.regioninfo` of a parent never changes. A region is
//! considered replaced in two cases:
//!
//! * Younger regions cover all of its rows, and at least one of them refers to its files.
//!   References that a compaction has removed count too, because they are in the archive.
//! * Two younger regions with the same id divide exactly its rows. Only a split creates such
//!   regions.
//!
//! All other regions get rows, so that no file that may contain rows is left out. If these regions
//! overlap, the next start merges them.
//!
//! The states of tables are lost with `hbase:meta`: all tables are considered enabled. Also lost is
//! which servers have unflushed edits of a region in their logs. So the next master of a cluster
//! replays all logs before it opens regions.
//!
//! The old directory and logs of `hbase:meta` are moved to `corrupt/`, from which nothing is
//! removed. After an interruption, the rebuild can be repeated.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use base::env::Env;
use cell::range::{self, KeyRange};
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use engine::Region;
use engine::recovery::other_servers_log_dirs;
use fs::{FilePath, FileSystem};
use layout::RootDir;
use layout::store::StoreFileName;
use wire::meta::row;
use wire::meta::{MetaRegionState, TableState};

use crate::integrity::{Fault, faults_of};
use crate::store::{LoneRegion, MasterStore, cannot_open};

/// Rows per write.
const ROWS_PER_WRITE: usize = 1000;

/// The host in the names of the logs that the rebuild writes. No server has this host name.
const LOG_HOST: &str = "grampus-repair";

/// The result of a rebuild.
#[derive(Debug, Default)]
pub struct Rebuilt {
    /// Tables and their numbers of regions.
    pub tables: Vec<(TableName, usize)>,
    /// Regions that were replaced in splits and merges. Their directories stay, without rows.
    pub replaced: Vec<RegionInfo>,
    /// Remaining faults: holes and overlaps.
    pub faults: Vec<Fault>,
    /// Directories that could not be read, and why.
    pub unreadable: Vec<String>,
    /// Paths of the old files.
    pub kept: Vec<FilePath>,
}

impl fmt::Display for Rebuilt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for path in &self.kept {
            writeln!(f, "old files kept in {path}")?;
        }
        for (table, regions) in &self.tables {
            writeln!(f, "table {table}: regions {regions}, state ENABLED (the state before is lost)")?;
        }
        for region in &self.replaced {
            let (table, encoded) = (&region.table, region.encoded_name());
            writeln!(
                f,
                "table {table}: region {encoded} was split or merged; its directory stays, without a row"
            )?;
        }
        for line in &self.unreadable {
            writeln!(f, "not added: {line}")?;
        }
        for fault in &self.faults {
            writeln!(f, "{fault}: {}", fault.remedy())?;
        }
        write!(f, "hbase:meta was rebuilt: tables {}", self.tables.len())
    }
}

/// Rebuilds `hbase:meta` of a root directory that no server uses.
///
/// # Errors
/// The error of the file system or of the new region. The rebuild can be repeated.
pub async fn rebuild_meta(
    env: &Env,
    fs: &Arc<dyn FileSystem>,
    root: &RootDir,
) -> Result<Rebuilt, engine::Error> {
    let mut rebuilt = Rebuilt::default();
    // Read all directories before anything is moved. If one cannot be listed, the rebuild ends
    // without a change.
    let mut found = Vec::new();
    for table in root.list_tables(&**fs).await? {
        if table.is_meta() {
            continue;
        }
        let directories = Directories::read(&**fs, root, &table, &mut rebuilt.unreadable).await?;
        let (live, replaced) = directories.partition();
        rebuilt.faults.extend(faults_of(&table, &live));
        rebuilt.replaced.extend(replaced);
        rebuilt.tables.push((table.clone(), live.len()));
        found.push((table, live));
    }
    require_replay(env, fs, root).await?;
    rebuilt.kept = set_aside(&**fs, root, env.clock.now_ms()).await?;
    write(env, fs, root, &found).await?;
    Ok(rebuilt)
}

/// Records that the next master of a cluster must replay all logs. It would otherwise open the
/// regions, for which the new rows name no servers, without the edits that are only in logs.
async fn require_replay(env: &Env, fs: &Arc<dyn FileSystem>, root: &RootDir) -> Result<(), engine::Error> {
    let server = ServerName { host: LOG_HOST.into(), port: 1, start_code: env.clock.now_ms() };
    let dead_log_dirs = other_servers_log_dirs(&**fs, &root.master_data(), &server).await?;
    let on_fatal = Arc::new(|_: &wal::Error| ());
    let store = MasterStore::open(env, fs, root, &server, &dead_log_dirs, on_fatal).await;
    let store = store.map_err(|error| engine::Error::bad_request(cannot_open(&error, &[])))?;
    let recorded = store.set_needs_replay(true).await;
    let closed = store.close().await;
    recorded.and(closed)
}

/// The directories of a table's regions.
struct Directories {
    regions: Vec<RegionInfo>,
    // By encoded name of a region: the regions with references or links to its files, and the names
    // of these files.
    references: HashMap<String, Vec<(RegionInfo, String)>>,
    // By encoded name: the names of a region's own files.
    own_files: HashMap<String, BTreeSet<String>>,
}

impl Directories {
    async fn read(
        fs: &dyn FileSystem,
        root: &RootDir,
        table: &TableName,
        unreadable: &mut Vec<String>,
    ) -> Result<Directories, engine::Error> {
        let mut directories =
            Directories { regions: Vec::new(), references: HashMap::new(), own_files: HashMap::new() };
        for encoded in root.list_region_dirs(fs, table).await? {
            let dir = root.table_dir(table).join(&encoded);
            match root.read_region_info(fs, table, &encoded).await {
                Ok(Some(region)) if region.table == *table && region.replica_id == 0 => {
                    for name in root.store_file_names(fs, table, &encoded).await? {
                        directories.add_file(&region, &name);
                    }
                    directories.regions.push(region);
                }
                Ok(Some(_)) => unreadable.push(format!("{dir}: its .regioninfo is that of another table")),
                Ok(None) => unreadable.push(format!("{dir}: it has no .regioninfo")),
                Err(error @ layout::Error::Corrupt { .. }) => unreadable.push(format!("{dir}: {error}")),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(directories)
    }

    /// Adds a store file of `region`, which may be archived.
    fn add_file(&mut self, region: &RegionInfo, name: &str) {
        let encoded = region.encoded_name();
        match StoreFileName::parse(name) {
            Some(StoreFileName::Own { .. }) => {
                self.own_files.entry(encoded).or_default().insert(name.to_string());
            }
            Some(StoreFileName::Reference { file, region: parent }) => {
                self.references.entry(parent).or_default().push((region.clone(), file));
            }
            Some(StoreFileName::Link { region: other, file, .. }) if other != encoded => {
                self.references.entry(other).or_default().push((region.clone(), file));
            }
            _ => {}
        }
    }

    /// Divides the regions into those that get rows and those that were replaced.
    fn partition(self) -> (Vec<RegionInfo>, Vec<RegionInfo>) {
        let uncommitted_children = self.uncommitted_children();
        let candidates: Vec<&RegionInfo> = self
            .regions
            .iter()
            .filter(|region| !uncommitted_children.contains(&region.encoded_name()))
            .collect();
        let is_replaced = |region: &RegionInfo| {
            let younger: Vec<&RegionInfo> = candidates
                .iter()
                .filter(|other| other.region_id > region.region_id && other.range().overlaps(&region.range()))
                .copied()
                .collect();
            let is_named = self
                .references
                .get(&region.encoded_name())
                .is_some_and(|names| names.iter().any(|(by, _)| younger.contains(&by)));
            (is_named && covers(&younger, &region.range())) || is_split_into(region, &younger)
        };
        let (mut live, mut replaced) = (Vec::new(), Vec::new());
        for region in &candidates {
            if is_replaced(region) { replaced.push((*region).clone()) } else { live.push((*region).clone()) }
        }
        replaced.extend(
            self.regions
                .iter()
                .filter(|region| uncommitted_children.contains(&region.encoded_name()))
                .cloned(),
        );
        live.sort_by(|one, other| (&one.start_key, one.region_id).cmp(&(&other.start_key, other.region_id)));
        let divided = live.len() + replaced.len();
        assert_eq!(divided, self.regions.len(), "each region is either live or replaced");
        (live, replaced)
    }

    /// Children of a split or merge that was started but not committed. They have no files of their
    /// own, and their parent has files to which none of them refers, because it was reopened and
    /// written again.
    fn uncommitted_children(&self) -> HashSet<String> {
        let mut uncommitted_children = HashSet::new();
        for (parent, names) in &self.references {
            let (Some(own), children) = (self.own_files.get(parent), names.iter().map(|(by, _)| by)) else {
                continue;
            };
            let children: Vec<&RegionInfo> =
                children.filter(|child| self.regions.iter().any(|region| region == *child)).collect();
            let have_own = children.iter().any(|child| self.own_files.contains_key(&child.encoded_name()));
            let named: HashSet<&str> = names.iter().map(|(_, file)| file.as_str()).collect();
            if !have_own && own.iter().any(|file| !named.contains(file.as_str())) {
                uncommitted_children.extend(children.iter().map(|child| child.encoded_name()));
            }
        }
        uncommitted_children
    }
}

/// Whether the regions cover each row of a range.
fn covers(regions: &[&RegionInfo], range: &KeyRange) -> bool {
    let ranges: Vec<KeyRange> = regions.iter().map(|region| region.range()).collect();
    !range::holes(&ranges).iter().any(|hole| hole.overlaps(range))
}

/// Whether two of the regions look like the daughters of a split of `parent`.
fn is_split_into(parent: &RegionInfo, younger: &[&RegionInfo]) -> bool {
    younger.iter().any(|low| {
        let is_high = |high: &&RegionInfo| {
            high.region_id == low.region_id
                && !low.end_key.is_empty()
                && high.start_key == low.end_key
                && high.end_key == parent.end_key
        };
        low.start_key == parent.start_key && younger.iter().any(is_high)
    })
}

/// Moves the directory and the logs of `hbase:meta` to `corrupt/`. Returns their new paths.
async fn set_aside(fs: &dyn FileSystem, root: &RootDir, now_ms: u64) -> Result<Vec<FilePath>, engine::Error> {
    let mut kept = Vec::new();
    let aside = root.corrupt_dir().join(&format!("hbase-meta-{now_ms}"));
    let meta = root.table_dir(&TableName::meta());
    if fs.stat(&meta).await?.is_some() {
        fs.make_dirs(&aside).await?;
        move_to(fs, &meta, &aside.join("data")).await?;
        kept.push(aside.join("data"));
    }
    let dirs = match fs.list(&root.wals_dir()).await {
        Err(fs::Error::NotFound { .. }) => Vec::new(),
        listed => listed?,
    };
    for dir in dirs.into_iter().filter(|status| status.is_dir) {
        let dir = root.wals_dir().join(&dir.name);
        for log in fs.list(&dir).await? {
            if log.name.ends_with(".meta") {
                fs.make_dirs(&aside).await?;
                move_to(fs, &dir.join(&log.name), &aside.join(&log.name)).await?;
                kept.push(aside.join(&log.name));
            }
        }
    }
    Ok(kept)
}

async fn move_to(fs: &dyn FileSystem, from: &FilePath, to: &FilePath) -> Result<(), engine::Error> {
    fs.rename(from, to).await?;
    fs.sync_dir(&to.parent()).await?;
    Ok(fs.sync_dir(&from.parent()).await?)
}

/// Writes a new `hbase:meta`, with all of its rows in store files.
async fn write(
    env: &Env,
    fs: &Arc<dyn FileSystem>,
    root: &RootDir,
    tables: &[(TableName, Vec<RegionInfo>)],
) -> Result<(), engine::Error> {
    let server = ServerName { host: LOG_HOST.into(), port: 1, start_code: env.clock.now_ms() };
    let (table, info) = (wire::meta::descriptor(), RegionInfo::meta());
    root.create_table(&**fs, &table, std::slice::from_ref(&info)).await?;
    let lone = LoneRegion::open(env, fs, root, &server, (table, info)).await?;
    let written = write_rows(lone.region(), tables).await;
    lone.close().await?;
    written?;
    // All rows are in store files, so there is nothing to replay.
    Ok(fs.delete(&root.wal_dir(&server)).await?)
}

async fn write_rows(region: &Region, tables: &[(TableName, Vec<RegionInfo>)]) -> Result<(), engine::Error> {
    let rows = tables.iter().flat_map(|(table, regions)| {
        let regions = regions.iter().map(|region| row::put_region(region, MetaRegionState::Closed));
        regions.chain(std::iter::once(row::put_table_state(table, TableState::Enabled)))
    });
    let rows: Vec<_> = rows.collect();
    for rows in rows.chunks(ROWS_PER_WRITE) {
        region.batch_atomic(rows.to_vec()).await?;
    }
    region.flush().await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(start: &'static str, end: &'static str, id: u64) -> RegionInfo {
        RegionInfo::new(TableName::parse("t").unwrap(), start.into(), end.into(), id)
    }

    /// Divides regions, each given with the names of its store files.
    fn partitioned(regions: &[(&RegionInfo, &[String])]) -> (Vec<RegionInfo>, Vec<RegionInfo>) {
        let mut directories =
            Directories { regions: Vec::new(), references: HashMap::new(), own_files: HashMap::new() };
        for (region, files) in regions {
            files.iter().for_each(|file| directories.add_file(region, file));
            directories.regions.push((*region).clone());
        }
        directories.partition()
    }

    fn reference(file: &str, parent: &RegionInfo) -> String {
        format!("{file}.{}", parent.encoded_name())
    }

    #[test]
    fn parents_of_splits_get_no_row() {
        let parent = region("", "", 1);
        let (low, high) = (region("", "m", 2), region("m", "", 2));
        let (by_reference, own) = ([reference("aa", &parent)], ["aa".to_string()]);
        // With references; and compacted, with the references not archived yet.
        for files in [&by_reference[..], &own[..]] {
            let (live, replaced) = partitioned(&[(&parent, &own), (&low, files), (&high, files)]);
            assert_eq!((live, replaced), (vec![low.clone(), high.clone()], vec![parent.clone()]));
        }
    }

    #[test]
    fn parents_of_merges_get_no_row() {
        let (low, high, merged) = (region("", "m", 1), region("m", "", 1), region("", "", 2));
        let own = ["aa".to_string()];
        let files = [reference("aa", &low), reference("aa", &high)];
        let (live, replaced) = partitioned(&[(&low, &own), (&high, &own), (&merged, &files)]);
        assert_eq!((live, replaced), (vec![merged], vec![low, high]));
    }

    #[test]
    fn an_uncommitted_split_keeps_its_parent() {
        let parent = region("", "", 1);
        let (low, high) = (region("", "m", 2), region("m", "", 2));
        let written_since = ["aa".to_string(), "bb".to_string()];
        let files = [reference("aa", &parent)];
        let (live, replaced) = partitioned(&[(&parent, &written_since), (&low, &files), (&high, &files)]);
        assert_eq!((live, replaced), (vec![parent], vec![low, high]));
    }

    #[test]
    fn other_overlapping_regions_get_rows() {
        // The result of a merge of the first and the last region.
        let (first, d, e, last) =
            (region("", "d", 1), region("d", "e", 1), region("e", "m", 1), region("m", "", 1));
        let merged = region("", "", 2);
        let own = ["aa".to_string()];
        let files = [reference("aa", &first), reference("aa", &last)];
        let all: [(&RegionInfo, &[String]); 5] =
            [(&first, &own), (&d, &own), (&e, &own), (&last, &own), (&merged, &files)];
        let (live, replaced) = partitioned(&all);
        assert_eq!((live, replaced), (vec![merged, d, e], vec![first, last]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_replays_all_logs_after_a_rebuild() {
        let fs: Arc<dyn FileSystem> = Arc::new(fs::memory::MemoryFs::new());
        let (env, root) = (base::testing::env(1), RootDir::new(FilePath::root()));
        let open = async |start_code| {
            let server = ServerName { host: "h".into(), port: 1, start_code };
            let dirs = other_servers_log_dirs(&*fs, &root.master_data(), &server).await.unwrap();
            let on_fatal = Arc::new(|_: &wal::Error| ());
            MasterStore::open(&env, &fs, &root, &server, &dirs, on_fatal).await.unwrap()
        };
        let store = open(1).await;
        store.set_needs_replay(false).await.unwrap();
        store.close().await.unwrap();
        rebuild_meta(&env, &fs, &root).await.unwrap();
        assert!(open(2).await.needs_replay().await.unwrap());
    }
}
