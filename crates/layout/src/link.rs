//! Links: files of one table that another table shares without a copy.
//!
//! ```text
//! data/<ns>/<clone>/<region>/<family>/[<ns>=]<table>=<region>-<file>
//!     empty: the name is the link
//! archive/data/<ns>/<table>/<region>/<family>/.links-<file>/<region>.<clone>
//!     empty: a back reference, which states that a region links to the file
//! ```
//!
//! The linked file is searched in its table, then in the archive, then among tables being created
//! or removed. The back reference is created before the link, so that no cleaner removes a file
//! that is about to be linked.
//!
//! Source: HBase `HFileLink`, `FileLink`, `HFileLinkCleaner`.

use cell::region::RegionInfo;
use cell::schema::{DEFAULT_NAMESPACE, TableName};
use fs::{FilePath, FileStatus, FileSystem};

use crate::store::{StoreFileName, family_dir_name};
use crate::{Result, RootDir, file};

/// The prefix of directories of back references.
pub(crate) const BACK_REFERENCES: &str = ".links-";
/// Number of searches for a file, which may move from one directory to the next during a search.
const FIND_ATTEMPTS: usize = 2;

/// A reference to a store file of another table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLink {
    table: TableName,
    region: String,
    family: String,
    file: String,
}

impl FileLink {
    /// A link to a file of a region. If the file is itself a link or a reference, the new link
    /// points to the same underlying file, all of it. `None` if the name is none of these.
    pub fn to(region: &RegionInfo, family: &[u8], name: &str) -> Option<FileLink> {
        match StoreFileName::parse(name)? {
            StoreFileName::Own { .. } => Some(FileLink {
                table: region.table.clone(),
                region: RegionInfo { replica_id: 0, ..region.clone() }.encoded_name(),
                family: family_dir_name(family)?.to_string(),
                file: name.to_string(),
            }),
            StoreFileName::Link { .. } => FileLink::parse(name, family),
            StoreFileName::Reference { file, region: parent } => match FileLink::parse(&file, family) {
                Some(link) => Some(link),
                None => Some(FileLink {
                    table: region.table.clone(),
                    region: parent,
                    family: family_dir_name(family)?.to_string(),
                    file,
                }),
            },
        }
    }

    /// Parses the name of a link.
    pub fn parse(name: &str, family: &[u8]) -> Option<FileLink> {
        let StoreFileName::Link { table, region, file } = StoreFileName::parse(name)? else { return None };
        let table = TableName::parse(&table.replacen('=', ":", 1)).ok()?;
        Some(FileLink { table, region, family: family_dir_name(family)?.to_string(), file })
    }

    /// The link's file name.
    pub fn name(&self) -> String {
        format!("{}={}-{}", linked_name(&self.table), self.region, self.file)
    }

    /// The name of the back reference, by which the archived file states that `region` links to it.
    pub fn back_reference_name(&self, region: &RegionInfo) -> String {
        format!("{}.{}", region.encoded_name(), linked_name(&region.table))
    }

    /// Finds the file in any of its possible directories; `None` if it no longer exists.
    ///
    /// # Errors
    /// File system errors.
    pub async fn find(&self, root: &RootDir, fs: &dyn FileSystem) -> Result<Option<(FilePath, FileStatus)>> {
        for _ in 0..FIND_ATTEMPTS {
            for dir in root.candidate_dirs(&self.table, &self.region) {
                let path = dir.join(&self.family).join(&self.file);
                if let Some(status) = fs.stat(&path).await? {
                    return Ok(Some((path, status)));
                }
            }
        }
        Ok(None)
    }

    /// Creates the back reference next to the archived file: `region` links to it, or is about to.
    ///
    /// # Errors
    /// File system errors.
    pub(crate) async fn add_back_reference(
        &self,
        root: &RootDir,
        fs: &dyn FileSystem,
        region: &RegionInfo,
    ) -> Result<()> {
        let family = root.archive_region_dir(&self.table, &self.region).join(&self.family);
        let dir = family.join(&format!("{BACK_REFERENCES}{}", self.file));
        let path = dir.join(&self.back_reference_name(region));
        if fs.stat(&path).await?.is_some() {
            return Ok(());
        }
        fs.make_dirs(&dir).await?;
        file::write(fs, &path, bytes::Bytes::new()).await?;
        Ok(fs.sync_dir(&dir).await?)
    }
}

impl RootDir {
    /// Whether a region has a link or a reference to a file in the archive, so that the file must
    /// stay there. Ignores back references of regions that no longer have a link. This is safe: the
    /// back reference is created before the link, and the link is created while archived files are
    /// still retained.
    ///
    /// # Errors
    /// File system errors.
    pub async fn is_linked(&self, fs: &dyn FileSystem, archived: &FilePath) -> Result<bool> {
        let family_dir = archived.parent();
        let backs =
            file::list(fs, &family_dir.join(&format!("{BACK_REFERENCES}{}", archived.name()))).await?;
        for back in backs {
            let Some((region, table)) = back.name.split_once('.') else { continue };
            let Ok(table) = TableName::parse(&table.replacen('=', ":", 1)) else { continue };
            let is_of_file = |name: &str| match StoreFileName::parse(name) {
                Some(StoreFileName::Link { file, .. }) => file == archived.name(),
                Some(StoreFileName::Reference { file, .. }) => {
                    matches!(StoreFileName::parse(&file), Some(StoreFileName::Link { file, .. }) if file == archived.name())
                }
                _ => false,
            };
            let dir_name = family_dir.name();
            let tables = [self.table_dir(&table), self.staged_table_dir(&table), self.mob_table_dir(&table)];
            for dir in tables {
                let files = file::list(fs, &dir.join(region).join(dir_name)).await?;
                if files.iter().any(|file| is_of_file(&file.name)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// A table's name as links spell it.
fn linked_name(table: &TableName) -> String {
    match table.namespace() {
        DEFAULT_NAMESPACE => table.qualifier().to_string(),
        namespace => format!("{namespace}={}", table.qualifier()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::reference_name;

    const FILE: &str = "f8db11ccda7041dba9229220b25e2e90";

    #[test]
    fn names_are_hbases() {
        for (table, shown) in [("t", "t"), ("ns:t", "ns=t"), ("a-b.c", "a-b.c")] {
            let region = RegionInfo::new(TableName::parse(table).unwrap(), "".into(), "".into(), 7);
            let link = FileLink::to(&region, b"f", FILE).unwrap();
            assert_eq!(link.name(), format!("{shown}={}-{FILE}", region.encoded_name()));
            assert_eq!(FileLink::parse(&link.name(), b"f"), Some(link.clone()));
            // A link to a link points to the file itself.
            let other = RegionInfo::new(TableName::parse("other").unwrap(), "".into(), "".into(), 8);
            assert_eq!(FileLink::to(&other, b"f", &link.name()), Some(link));
        }
        assert_eq!(FileLink::parse(FILE, b"f"), None);
        let child = RegionInfo::new(TableName::parse("t").unwrap(), "b".into(), "".into(), 9);
        let parent = RegionInfo::new(child.table.clone(), "".into(), "".into(), 7);
        let referred = |file: &str| FileLink::to(&child, b"f", &reference_name(file, &parent));
        assert_eq!(referred(FILE), FileLink::to(&parent, b"f", FILE));
        let link = format!("ns=o={}-{FILE}", "ab".repeat(16));
        assert_eq!(referred(&link), FileLink::parse(&link, b"f"), "a reference to a link");
        assert_eq!(FileLink::parse(&format!("a b=ab-{FILE}"), b"f"), None, "not a table name");
        assert_eq!(FileLink::parse(&format!("t=ab-{FILE}"), b"../f"), None, "not a family name");
    }
}
