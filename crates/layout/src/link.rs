//! Links: files of one table that another one has too, without a copy.
//!
//! ```text
//! data/<ns>/<clone>/<region>/<family>/[<ns>=]<table>=<region>-<file>               empty: the name is the link
//! archive/data/<ns>/<table>/<region>/<family>/.links-<file>/<region>.<clone>      empty: somebody links to the file
//! ```
//!
//! The linked file is looked for where its table has it, then in the archive, then among tables being made or removed.
//! The back reference is made before the link, so that no cleaner finds a file unused that is about to be used.
//!
//! Source: HBase `HFileLink`, `FileLink`, `HFileLinkCleaner`.

use cell::region::RegionInfo;
use cell::schema::{DEFAULT_NAMESPACE, TableName};
use fs::{FilePath, FileStatus, FileSystem};

use crate::store::{StoreFileName, family_dir_name};
use crate::{Result, RootDir, file};

/// Directories of back references begin with this.
pub(crate) const BACK_REFERENCES: &str = ".links-";
/// A file may move from one place to the next while it is looked for.
const LOOKS: usize = 2;

/// A file of a store of another table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLink {
    table: TableName,
    region: String,
    family: String,
    file: String,
}

impl FileLink {
    /// A link to a file of a region, which may itself be a link or a reference: then the new one leads to the same file,
    /// all of it. `None` if the name is none of these.
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

    /// Takes the name of a link apart.
    pub fn parse(name: &str, family: &[u8]) -> Option<FileLink> {
        let StoreFileName::Link { table, region, file } = StoreFileName::parse(name)? else { return None };
        let table = TableName::parse(&table.replacen('=', ":", 1)).ok()?;
        Some(FileLink { table, region, family: family_dir_name(family)?.to_string(), file })
    }

    /// The link's name.
    pub fn name(&self) -> String {
        format!("{}={}-{}", linked_name(&self.table), self.region, self.file)
    }

    /// The name of the file by which the archived file states that `region` links to it.
    pub fn back_reference_name(&self, region: &RegionInfo) -> String {
        format!("{}.{}", region.encoded_name(), linked_name(&region.table))
    }

    /// Where the file is, wherever that is; `None` if it is gone.
    ///
    /// # Errors
    /// What the file system said.
    pub async fn find(&self, root: &RootDir, fs: &dyn FileSystem) -> Result<Option<(FilePath, FileStatus)>> {
        for _ in 0..LOOKS {
            for dir in root.places_of(&self.table, &self.region) {
                let path = dir.join(&self.family).join(&self.file);
                if let Some(status) = fs.stat(&path).await? {
                    return Ok(Some((path, status)));
                }
            }
        }
        Ok(None)
    }

    /// Says beside the archived file that `region` links to it, or is about to.
    ///
    /// # Errors
    /// What the file system said.
    pub(crate) async fn refer_back(
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
    /// Whether a region has a link or a reference to a file in the archive, which therefore must stay there. Back
    /// references of regions that have none any more do not count; whoever gets a link makes its back reference first, and
    /// the link before the file can have been archived for as long as files are kept there.
    ///
    /// # Errors
    /// What the file system said.
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
            for dir in [self.table_dir(&table), self.staged_table_dir(&table)] {
                let files = file::list(fs, &dir.join(region).join(dir_name)).await?;
                if files.iter().any(|file| is_of_file(&file.name)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// A table's name as links have it.
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
            // A link to a link leads to the file itself.
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
        assert_eq!(FileLink::parse(&format!("a b=ab-{FILE}"), b"f"), None, "no name of a table");
        assert_eq!(FileLink::parse(&format!("t=ab-{FILE}"), b"../f"), None, "no name of a family");
    }
}
