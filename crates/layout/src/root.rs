//! The paths in a root directory.

use std::sync::Arc;

use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use fs::FilePath;

use crate::store::dir_name;

/// The end of the name of a directory with the logs of a dead server (HBase
/// `AbstractFSWALProvider.SPLITTING_EXT`).
const FENCED_SUFFIX: &str = "-splitting";

/// A root directory: HBase's `hbase.rootdir`, or the master's small one inside it.
///
/// ```text
/// hbase.version  hbase.id  grampus.root  grampus.lock
/// data/<namespace>/<table>/.tabledesc/.tableinfo.<sequence>.<length>
///                         /<region>/.regioninfo              `.archiving` while it is archived
///                                  /<family>/<store file>
///                                  /.tmp/<family>/<opening>/<store file>   being written
///                                  /recovered.edits/<id>.seqid
///                                  /.bulk_load                      a bulk load in progress
/// .hbase-snapshot/    snapshots     staging/    files to be bulk loaded
/// .tmp/data/...       tables being created      archive/data/...    obsolete files
/// mobdir/             MOB files (`mob`)
/// WALs/<server>/      logs                      oldWALs/            obsolete logs
/// WALs/<server>-splitting/   logs of a dead server
/// MasterData/         the master's own root directory: data, WALs, oldWALs, archive
/// ```
///
/// Table names and encoded region names cannot leave their directory: their characters are checked
/// when the names are constructed. A family's name must have passed
/// [`store::check_family`](crate::store::check_family).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootDir {
    root: FilePath,
    // Names the directories of unfinished store files; see `for_opening`.
    opening: Option<Arc<str>>,
}

impl RootDir {
    /// The root directory at `root`.
    pub fn new(root: FilePath) -> RootDir {
        RootDir { root, opening: None }
    }

    /// The same directory, for a region that is opened: its unfinished store files are in
    /// directories of this name. The next opening removes them. After that, a process that had the
    /// region open before can neither create a file there nor rename one into a store.
    #[must_use]
    pub fn for_opening(&self, name: &str) -> RootDir {
        RootDir { opening: Some(name.into()), ..self.clone() }
    }

    /// The directory itself.
    pub fn path(&self) -> &FilePath {
        &self.root
    }

    /// The master's own root directory (`MasterData`).
    pub fn master_data(&self) -> RootDir {
        RootDir::new(self.root.join("MasterData"))
    }

    /// The lock file, held by the process that uses the directory.
    pub fn lock_file(&self) -> FilePath {
        self.root.join("grampus.lock")
    }

    /// The directory that a process of a cluster has occupied while it lives
    /// ([`FileSystem::occupy`](fs::FileSystem::occupy)).
    pub fn process_dir(&self, server: &ServerName) -> FilePath {
        self.processes_dir().join(&server.to_string())
    }

    /// The directory of all [`process_dir`](RootDir::process_dir)s.
    pub fn processes_dir(&self) -> FilePath {
        self.root.join("grampus.processes")
    }

    /// Preallocated files, for writes that must not fail on a full disk.
    pub fn reserve_dir(&self) -> FilePath {
        self.root.join("grampus.reserve")
    }

    /// The record of the existing write-ahead logs of user tables.
    pub fn log_record(&self) -> FilePath {
        self.root.join("grampus.logs").join("log")
    }

    /// The record of the existing write-ahead logs of `hbase:meta`.
    pub fn meta_log_record(&self) -> FilePath {
        self.root.join("grampus.logs").join("log.meta")
    }

    /// Both log records.
    pub fn log_records(&self) -> [FilePath; 2] {
        [self.log_record(), self.meta_log_record()]
    }

    /// The log records of one server of a cluster.
    pub fn log_records_of(&self, server: &ServerName) -> [FilePath; 2] {
        let dir = self.log_record_dir(server);
        [dir.join("log"), dir.join("log.meta")]
    }

    /// The directory of these records.
    pub fn log_record_dir(&self, server: &ServerName) -> FilePath {
        self.root.join("grampus.logs").join(&server.to_string())
    }

    /// `data`.
    pub fn data_dir(&self) -> FilePath {
        self.root.join("data")
    }

    /// Objects being created or removed.
    pub fn tmp_dir(&self) -> FilePath {
        self.root.join(".tmp")
    }

    /// The directory of a namespace's tables.
    pub fn namespace_dir(&self, namespace: &str) -> FilePath {
        self.data_dir().join(namespace)
    }

    /// The directory of a table.
    pub fn table_dir(&self, table: &TableName) -> FilePath {
        below(&self.data_dir(), table)
    }

    /// The temporary directory of a table that is being created.
    pub fn staged_table_dir(&self, table: &TableName) -> FilePath {
        below(&self.tmp_dir().join("data"), table)
    }

    /// The directory of a region.
    pub fn region_dir(&self, region: &RegionInfo) -> FilePath {
        self.table_dir(&region.table).join(&owner_name(region))
    }

    /// The directory of a region's files of one family.
    ///
    /// # Panics
    /// If the name has not passed [`store::check_family`](crate::store::check_family).
    pub fn family_dir(&self, region: &RegionInfo, family: &[u8]) -> FilePath {
        self.region_dir(region).join(dir_name(family))
    }

    /// The directory of a region's unfinished files, which are renamed when they are complete.
    pub fn region_tmp_dir(&self, region: &RegionInfo) -> FilePath {
        self.region_dir(region).join(".tmp")
    }

    /// The directory of a region's unfinished store files of one family. It belongs to one
    /// [opening](RootDir::for_opening).
    ///
    /// # Panics
    /// If the name has not passed [`store::check_family`](crate::store::check_family).
    pub fn family_tmp_dir(&self, region: &RegionInfo, family: &[u8]) -> FilePath {
        let dir = self.all_family_tmp_dirs(region, family);
        self.opening.iter().fold(dir, |dir, opening| dir.join(opening))
    }

    /// The directory with the [`family_tmp_dir`](RootDir::family_tmp_dir)s of all openings.
    pub(crate) fn all_family_tmp_dirs(&self, region: &RegionInfo, family: &[u8]) -> FilePath {
        self.region_tmp_dir(region).join(dir_name(family))
    }

    /// The directory of a region's sequence id files.
    pub fn recovered_edits_dir(&self, region: &RegionInfo) -> FilePath {
        self.region_dir(region).join(crate::region::RECOVERED_EDITS)
    }

    /// The directory of obsolete files of tables.
    pub fn archive_dir(&self) -> FilePath {
        self.root.join("archive")
    }

    /// The directory of a region's obsolete files of one family.
    ///
    /// # Panics
    /// If the name has not passed [`store::check_family`](crate::store::check_family).
    pub fn archive_family_dir(&self, region: &RegionInfo, family: &[u8]) -> FilePath {
        self.archive_region_dir(&region.table, &owner_name(region)).join(dir_name(family))
    }

    /// The directories that may contain a region's families, the most likely one first.
    pub(crate) fn candidate_dirs(&self, table: &TableName, encoded: &str) -> [FilePath; 4] {
        [
            self.table_dir(table).join(encoded),
            self.archive_region_dir(table, encoded),
            self.staged_table_dir(table).join(encoded),
            self.mob_table_dir(table).join(encoded),
        ]
    }

    /// The directory of a table's MOB files.
    pub(crate) fn mob_table_dir(&self, table: &TableName) -> FilePath {
        below(&self.mob_data_dir(), table)
    }

    pub(crate) fn archive_region_dir(&self, table: &TableName, encoded: &str) -> FilePath {
        below(&self.archive_dir().join("data"), table).join(encoded)
    }

    /// The directory of the logs of all servers.
    pub fn wals_dir(&self) -> FilePath {
        self.root.join("WALs")
    }

    /// The directories that `hbase.wal.dir` moves to another file system. HBase also moves
    /// `recovered.edits`, which are only read here.
    pub fn separable_wal_dirs(&self) -> Vec<FilePath> {
        let master = self.master_data();
        vec![self.wals_dir(), self.old_wals_dir(), master.wals_dir(), master.old_wals_dir()]
    }

    /// The directory of a server's logs.
    pub fn wal_dir(&self, server: &ServerName) -> FilePath {
        self.wals_dir().join(&server.to_string())
    }

    /// The directory of the logs of a dead server. The master renames the server's
    /// [`wal_dir`](RootDir::wal_dir) to it, so that the server can create no more logs.
    pub fn fenced_wal_dir(&self, server: &ServerName) -> FilePath {
        self.wals_dir().join(&format!("{server}{FENCED_SUFFIX}"))
    }

    /// The server whose logs are in the directory of this name below [`wals_dir`], and whether they
    /// are fenced; `None` if the name is not that of a directory of logs.
    ///
    /// [`wals_dir`]: RootDir::wals_dir
    pub fn server_of_wal_dir(name: &str) -> Option<(ServerName, bool)> {
        match name.strip_suffix(FENCED_SUFFIX) {
            Some(server) => Some((ServerName::parse(server)?, true)),
            None => Some((ServerName::parse(name)?, false)),
        }
    }

    /// The directory of obsolete logs.
    pub fn old_wals_dir(&self) -> FilePath {
        self.root.join("oldWALs")
    }

    /// The directory of logs that could not be read.
    pub fn corrupt_dir(&self) -> FilePath {
        self.root.join("corrupt")
    }
}

fn below(data: &FilePath, table: &TableName) -> FilePath {
    data.join(table.namespace()).join(table.qualifier())
}

/// The encoded name of the region that owns the files: replicas share the files of the default
/// replica.
fn owner_name(region: &RegionInfo) -> String {
    match region.replica_id {
        0 => region.encoded_name(),
        _ => RegionInfo { replica_id: 0, ..region.clone() }.encoded_name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_hbases() {
        let root = RootDir::new(FilePath::new("r"));
        let table = TableName::parse("ns1:tbl").unwrap();
        let region = RegionInfo::new(table.clone(), "g".into(), "p".into(), 1_700_000_000_000);
        let encoded = "52ff2a502c1b62e147ef165a0803d6b2";
        let server = ServerName { host: "h1".into(), port: 16020, start_code: 7 };
        let cases = [
            (root.table_dir(&table), "r/data/ns1/tbl".to_string()),
            (root.table_dir(&TableName::parse("t").unwrap()), "r/data/default/t".to_string()),
            (root.family_dir(&region, b"cf"), format!("r/data/ns1/tbl/{encoded}/cf")),
            (root.family_tmp_dir(&region, b"cf"), format!("r/data/ns1/tbl/{encoded}/.tmp/cf")),
            (
                root.for_opening("o").family_tmp_dir(&region, b"cf"),
                format!("r/data/ns1/tbl/{encoded}/.tmp/cf/o"),
            ),
            (root.archive_family_dir(&region, b"cf"), format!("r/archive/data/ns1/tbl/{encoded}/cf")),
            (root.region_dir(&RegionInfo::meta()), "r/data/hbase/meta/1588230740".to_string()),
            (root.wal_dir(&server), "r/WALs/h1,16020,7".to_string()),
            (root.fenced_wal_dir(&server), "r/WALs/h1,16020,7-splitting".to_string()),
            (root.master_data().old_wals_dir(), "r/MasterData/oldWALs".to_string()),
            (root.staged_table_dir(&table), "r/.tmp/data/ns1/tbl".to_string()),
        ];
        for (path, expected) in cases {
            assert_eq!(path.as_str(), expected);
        }
        assert_eq!(RootDir::server_of_wal_dir("h1,16020,7"), Some((server.clone(), false)));
        assert_eq!(RootDir::server_of_wal_dir("h1,16020,7-splitting"), Some((server, true)));
        assert_eq!(RootDir::server_of_wal_dir("other"), None);
        let replica = RegionInfo { replica_id: 1, ..region.clone() };
        assert_eq!(root.region_dir(&replica), root.region_dir(&region));
    }
}
