//! The paths of a root directory.

use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use fs::FilePath;

use crate::store::dir_name;

/// A root directory: HBase's `hbase.rootdir`, or the small one of the master within it.
///
/// ```text
/// hbase.version  hbase.id  grampus.root  grampus.lock
/// data/<namespace>/<table>/.tabledesc/.tableinfo.<sequence>.<length>
///                         /<region>/.regioninfo
///                                  /<family>/<store file>
///                                  /.tmp/<family>/<store file>      being written
///                                  /recovered.edits/<id>.seqid
/// .hbase-snapshot/    snapshots
/// .tmp/data/...       tables being made         archive/data/...    files that nobody needs any more
/// WALs/<server>/      logs                      oldWALs/            logs that nobody needs any more
/// MasterData/         the master's own root directory: data, WALs, oldWALs, archive
/// ```
///
/// Table names and encoded region names cannot leave their directory (their characters are checked when they are
/// made); a family's name must have passed [`store::check_family`](crate::store::check_family).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootDir {
    root: FilePath,
}

impl RootDir {
    /// The root directory at `root`.
    pub fn new(root: FilePath) -> RootDir {
        RootDir { root }
    }

    /// The directory itself.
    pub fn path(&self) -> &FilePath {
        &self.root
    }

    /// The master's own root directory (`MasterData`).
    pub fn master_data(&self) -> RootDir {
        RootDir::new(self.root.join("MasterData"))
    }

    /// Held by the process that uses the directory.
    pub fn lock_file(&self) -> FilePath {
        self.root.join("grampus.lock")
    }

    /// Files that are allocated ahead, for writes that must not fail on a full disk.
    pub fn reserve_dir(&self) -> FilePath {
        self.root.join("grampus.reserve")
    }

    /// Where it is recorded which logs of users' tables there are.
    pub fn log_record(&self) -> FilePath {
        self.root.join("grampus.logs").join("log")
    }

    /// Where it is recorded which logs of `hbase:meta` there are.
    pub fn meta_log_record(&self) -> FilePath {
        self.root.join("grampus.logs").join("log.meta")
    }

    /// Both of these.
    pub fn log_records(&self) -> [FilePath; 2] {
        [self.log_record(), self.meta_log_record()]
    }

    /// `data`.
    pub fn data_dir(&self) -> FilePath {
        self.root.join("data")
    }

    /// Things being made or removed.
    pub fn tmp_dir(&self) -> FilePath {
        self.root.join(".tmp")
    }

    /// The tables of a namespace.
    pub fn namespace_dir(&self, namespace: &str) -> FilePath {
        self.data_dir().join(namespace)
    }

    /// A table.
    pub fn table_dir(&self, table: &TableName) -> FilePath {
        below(&self.data_dir(), table)
    }

    /// A table that is being made.
    pub fn staged_table_dir(&self, table: &TableName) -> FilePath {
        below(&self.tmp_dir().join("data"), table)
    }

    /// A region.
    pub fn region_dir(&self, region: &RegionInfo) -> FilePath {
        self.table_dir(&region.table).join(&owner_name(region))
    }

    /// A region's files of one family.
    ///
    /// # Panics
    /// If the name has not passed [`store::check_family`](crate::store::check_family).
    pub fn family_dir(&self, region: &RegionInfo, family: &[u8]) -> FilePath {
        self.region_dir(region).join(dir_name(family))
    }

    /// Where a region writes what is renamed when it is done.
    pub fn region_tmp_dir(&self, region: &RegionInfo) -> FilePath {
        self.region_dir(region).join(".tmp")
    }

    /// Where a region writes store files of one family.
    ///
    /// # Panics
    /// If the name has not passed [`store::check_family`](crate::store::check_family).
    pub fn family_tmp_dir(&self, region: &RegionInfo, family: &[u8]) -> FilePath {
        self.region_tmp_dir(region).join(dir_name(family))
    }

    /// A region's sequence id files.
    pub fn recovered_edits_dir(&self, region: &RegionInfo) -> FilePath {
        self.region_dir(region).join(crate::region::RECOVERED_EDITS)
    }

    /// Files of tables that nobody needs any more.
    pub fn archive_dir(&self) -> FilePath {
        self.root.join("archive")
    }

    /// A region's files of one family that nobody needs any more.
    ///
    /// # Panics
    /// If the name has not passed [`store::check_family`](crate::store::check_family).
    pub fn archive_family_dir(&self, region: &RegionInfo, family: &[u8]) -> FilePath {
        self.archive_region_dir(&region.table, &owner_name(region)).join(dir_name(family))
    }

    /// Where a region's families may be, the most likely place first.
    pub(crate) fn places_of(&self, table: &TableName, encoded: &str) -> [FilePath; 4] {
        [
            self.table_dir(table).join(encoded),
            self.archive_region_dir(table, encoded),
            self.staged_table_dir(table).join(encoded),
            below(&self.root.join("mobdir").join("data"), table).join(encoded),
        ]
    }

    pub(crate) fn archive_region_dir(&self, table: &TableName, encoded: &str) -> FilePath {
        below(&self.archive_dir().join("data"), table).join(encoded)
    }

    /// The logs of all servers.
    pub fn wals_dir(&self) -> FilePath {
        self.root.join("WALs")
    }

    /// The logs of a server.
    pub fn wal_dir(&self, server: &ServerName) -> FilePath {
        self.wals_dir().join(&server.to_string())
    }

    /// Logs that nobody needs any more.
    pub fn old_wals_dir(&self) -> FilePath {
        self.root.join("oldWALs")
    }

    /// Logs that could not be read.
    pub fn corrupt_dir(&self) -> FilePath {
        self.root.join("corrupt")
    }
}

fn below(data: &FilePath, table: &TableName) -> FilePath {
    data.join(table.namespace()).join(table.qualifier())
}

/// The encoded name of the region that owns the files: replicas share those of the first.
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
            (root.archive_family_dir(&region, b"cf"), format!("r/archive/data/ns1/tbl/{encoded}/cf")),
            (root.region_dir(&RegionInfo::meta()), "r/data/hbase/meta/1588230740".to_string()),
            (root.wal_dir(&server), "r/WALs/h1,16020,7".to_string()),
            (root.master_data().old_wals_dir(), "r/MasterData/oldWALs".to_string()),
            (root.staged_table_dir(&table), "r/.tmp/data/ns1/tbl".to_string()),
        ];
        for (path, expected) in cases {
            assert_eq!(path.as_str(), expected);
        }
        let replica = RegionInfo { replica_id: 1, ..region.clone() };
        assert_eq!(root.region_dir(&replica), root.region_dir(&region));
    }
}
