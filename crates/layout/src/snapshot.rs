//! Snapshots: the files of a table at one point in time.
//!
//! ```text
//! .hbase-snapshot/<name>/.snapshotinfo     SnapshotDescription
//!                       /data.manifest     SnapshotDataManifest: table, regions, files
//! .hbase-snapshot/.tmp/<name>/             being created or removed
//! ```
//!
//! [`tree`] reads the older layout, which has no manifest.
//!
//! A snapshot is built below `.tmp` and renamed into place. Before its removal it is renamed back.
//! So it is complete or does not exist. It holds names of files, not their bytes: the files stay in
//! the table or in the archive.
//!
//! Source: HBase `SnapshotDescriptionUtils`, `SnapshotManifest`, `SnapshotManifestV2`.

mod tracker;
mod tree;

use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use fs::{FilePath, FileSystem};
use prost::Message;
use proto::snapshot_region_manifest::{FamilyFiles, StoreFile};
use proto::{SnapshotDataManifest, SnapshotDescription, SnapshotRegionManifest};
use tracing::warn;

use crate::mob::is_pseudo_region;
use crate::reference::Reference;
use crate::store::{StoreFileName, check_family};
use crate::{Error, Result, RootDir, corrupt, descriptor, file};

pub use tracker::SnapshotTracker;

const DIR: &str = ".hbase-snapshot";
const DESCRIPTION: &str = ".snapshotinfo";
const MANIFEST: &str = "data.manifest";
/// The layout of snapshots since HBase 0.99 (`SnapshotManifestV2.DESCRIPTOR_VERSION`).
pub const VERSION: i32 = 2;
/// The layout before that, without a manifest (`SnapshotManifestV1.DESCRIPTOR_VERSION`).
const TREE_VERSION: i32 = 0;
/// Maximum size of a manifest (`snapshot.manifest.size.limit`).
const MANIFEST_BYTES_MAX: u64 = 64 << 20;

/// The contents of a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The table at the time of the snapshot.
    pub table: TableDescriptor,
    /// Its regions.
    pub regions: Vec<SnapshotRegion>,
}

/// A region in a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotRegion {
    /// The region.
    pub info: RegionInfo,
    /// The files of each family.
    pub families: Vec<(Bytes, Vec<SnapshotFile>)>,
}

/// A file in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    /// Its name in the store, which may be the name of a link or a reference.
    pub name: String,
    /// Size in bytes; for a reference, the size of the whole file. `None` if the snapshot does not
    /// record it.
    pub len: Option<u64>,
    /// The part of the file that the store has; `None` for the whole file.
    pub reference: Option<Reference>,
}

impl SnapshotRegion {
    /// Whether the region can be online. Replicas and split parents cannot: the daughters of a
    /// split parent use its files. The pseudo region of MOB files cannot either.
    pub fn is_served(&self) -> bool {
        let info = &self.info;
        !(info.split && info.offline) && info.replica_id == 0 && !is_pseudo_region(info)
    }
}

impl Manifest {
    /// Decodes the manifest that was read from `path`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for an invalid manifest, or one with an invalid file name.
    pub fn decode(path: &FilePath, content: Bytes) -> Result<Manifest> {
        let message = SnapshotDataManifest::decode(content).map_err(|error| corrupt(path, error))?;
        let table = TableDescriptor::try_from(&message.table_schema).map_err(|error| corrupt(path, error))?;
        for family in table.families.keys() {
            check_family(path, family)?;
        }
        let regions = message.region_manifests.iter().map(|region| read_region(path, &table.name, region));
        let mut regions = regions.collect::<Result<Vec<_>>>()?;
        regions.sort_by(|left, right| left.info.start_key.cmp(&right.info.start_key));
        Ok(Manifest { table, regions })
    }

    fn encode(&self) -> Bytes {
        let file = |file: &SnapshotFile| StoreFile {
            name: file.name.clone(),
            reference: file.reference.as_ref().map(Into::into),
            file_size: file.len,
        };
        let family = |(name, files): &(Bytes, Vec<SnapshotFile>)| FamilyFiles {
            family_name: name.clone(),
            store_files: files.iter().map(file).collect(),
        };
        let region = |region: &SnapshotRegion| SnapshotRegionManifest {
            version: None,
            region_info: (&region.info).into(),
            family_files: region.families.iter().map(family).collect(),
        };
        let message = SnapshotDataManifest {
            table_schema: (&self.table).into(),
            region_manifests: self.regions.iter().map(region).collect(),
        };
        message.encode_to_vec().into()
    }
}

fn read_region(
    path: &FilePath,
    table: &TableName,
    message: &SnapshotRegionManifest,
) -> Result<SnapshotRegion> {
    let info = RegionInfo::try_from(&message.region_info).map_err(|error| corrupt(path, error))?;
    if &info.table != table {
        return Err(corrupt(path, format!("holds a region of {} in a snapshot of {table}", info.table)));
    }
    let mut families = Vec::with_capacity(message.family_files.len());
    for family in &message.family_files {
        check_family(path, &family.family_name)?;
        let files = family.store_files.iter().map(|file| read_file(path, file));
        families.push((family.family_name.clone(), files.collect::<Result<_>>()?));
    }
    Ok(SnapshotRegion { info, families })
}

fn read_file(path: &FilePath, message: &StoreFile) -> Result<SnapshotFile> {
    let (name, len) = (message.name.clone(), message.file_size);
    match (StoreFileName::parse(&name), &message.reference) {
        (Some(StoreFileName::Own { .. } | StoreFileName::Link { .. }), None) => {
            Ok(SnapshotFile { name, len, reference: None })
        }
        (Some(StoreFileName::Reference { .. }), Some(reference)) => {
            Ok(SnapshotFile { name, len, reference: Some(Reference::try_of(path, reference)?) })
        }
        (Some(_), _) => Err(corrupt(path, format!("the name {name:?} does not match the content"))),
        (None, _) => Err(corrupt(path, format!("{name:?} is not a valid store file name"))),
    }
}

impl RootDir {
    fn snapshots_dir(&self) -> FilePath {
        self.path().join(DIR)
    }

    fn staged_snapshots_dir(&self) -> FilePath {
        self.snapshots_dir().join(".tmp")
    }

    /// Lists all complete snapshots by name.
    ///
    /// # Errors
    /// File system errors. A corrupt snapshot is skipped with a warning.
    pub async fn list_snapshots(&self, fs: &dyn FileSystem) -> Result<Vec<SnapshotDescription>> {
        let mut snapshots = Vec::new();
        for name in self.snapshot_names(fs).await? {
            match self.find_snapshot(fs, &name).await {
                Ok(found) => snapshots.extend(found),
                Err(Error::Fs(error)) => return Err(error.into()),
                Err(error) => {
                    warn!(name, %error, "skipping a corrupt snapshot; delete it by name")
                }
            }
        }
        Ok(snapshots)
    }

    /// Describes the snapshot `name`, if it exists. If its description is missing or corrupt, it is
    /// derived from the manifest and the directory's name.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the manifest is unreadable too.
    pub async fn find_snapshot(
        &self,
        fs: &dyn FileSystem,
        name: &str,
    ) -> Result<Option<SnapshotDescription>> {
        if !is_name(name) {
            return Ok(None);
        }
        let path = self.snapshots_dir().join(name).join(DESCRIPTION);
        let (problem, is_missing) = match file::read(fs, &path).await {
            Err(Error::Fs(fs::Error::NotFound { .. })) => (corrupt(&path, "is missing"), true),
            Err(error) => return Err(error),
            Ok(content) => match SnapshotDescription::decode(content) {
                Ok(described) if described.name == name => return Ok(Some(described)),
                Ok(described) => (corrupt(&path, format!("belongs to snapshot {:?}", described.name)), false),
                Err(error) => (corrupt(&path, error), false),
            },
        };
        match self.describe_by_manifest(fs, name).await? {
            Some(described) => {
                warn!(error = %problem, "cannot read the snapshot's description; using its manifest instead");
                Ok(Some(described))
            }
            None if is_missing => Ok(None),
            None => Err(problem),
        }
    }

    /// Derives a description from the contents; `None` if there are none.
    async fn describe_by_manifest(
        &self,
        fs: &dyn FileSystem,
        name: &str,
    ) -> Result<Option<SnapshotDescription>> {
        let dir = self.snapshots_dir().join(name);
        let (path, version) = match fs.stat(&dir.join(MANIFEST)).await? {
            Some(_) => (dir.join(MANIFEST), VERSION),
            None => (dir.join(descriptor::DIR), TREE_VERSION),
        };
        let Some(status) = fs.stat(&path).await? else { return Ok(None) };
        let manifest = self.read_snapshot(fs, name).await?;
        Ok(Some(SnapshotDescription {
            name: name.to_string(),
            table: Some(manifest.table.name.to_string()),
            creation_time: i64::try_from(status.modified_ms).ok(),
            version: Some(version),
            ..SnapshotDescription::default()
        }))
    }

    /// Whether a snapshot has a directory, whatever it contains.
    ///
    /// # Errors
    /// File system errors.
    pub async fn has_snapshot(&self, fs: &dyn FileSystem, name: &str) -> Result<bool> {
        Ok(is_name(name) && fs.stat(&self.snapshots_dir().join(name)).await?.is_some())
    }

    /// Whether a snapshot's directory contains anything. HBase removes the files before the
    /// directory.
    pub(crate) async fn has_files(&self, fs: &dyn FileSystem, name: &str) -> Result<bool> {
        Ok(!file::list(fs, &self.snapshots_dir().join(name)).await?.is_empty())
    }

    /// The names of the directories of snapshots, whatever they contain, in order.
    ///
    /// # Errors
    /// File system errors.
    pub async fn snapshot_names(&self, fs: &dyn FileSystem) -> Result<Vec<String>> {
        let entries = file::list(fs, &self.snapshots_dir()).await?.into_iter();
        let dirs = entries.filter(|entry| entry.is_dir && is_name(&entry.name));
        let mut names: Vec<String> = dirs.map(|entry| entry.name).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Reads the contents of a snapshot, of either layout.
    ///
    /// # Errors
    /// [`fs::Error::NotFound`] if it has no manifest and no tree of directories;
    /// [`Error::Corrupt`] as for [`Manifest::decode`].
    pub async fn read_snapshot(&self, fs: &dyn FileSystem, name: &str) -> Result<Manifest> {
        if !is_name(name) {
            return Err(fs::Error::NotFound { path: self.snapshots_dir() }.into());
        }
        let dir = self.snapshots_dir().join(name);
        let path = dir.join(MANIFEST);
        match file::read_up_to(fs, &path, MANIFEST_BYTES_MAX).await {
            Ok(content) => Manifest::decode(&path, content),
            Err(error @ Error::Fs(fs::Error::NotFound { .. })) => tree::read(fs, &dir).await?.ok_or(error),
            Err(error) => Err(error),
        }
    }

    /// Creates a snapshot. On return, it is durable; until then, there is no snapshot of its name.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the manifest is too large to be read; file system errors.
    pub async fn write_snapshot(
        &self,
        fs: &dyn FileSystem,
        description: &SnapshotDescription,
        manifest: &Manifest,
    ) -> Result<()> {
        let staged = self.staged_snapshots_dir().join(&description.name);
        let content = manifest.encode();
        if content.len() as u64 > MANIFEST_BYTES_MAX {
            let what = format!("a snapshot manifest of more than {MANIFEST_BYTES_MAX} bytes");
            return Err(Error::Unsupported { file: staged.join(MANIFEST), what });
        }
        fs.delete(&staged).await?;
        fs.make_dirs(&staged).await?;
        file::write(fs, &staged.join(DESCRIPTION), description.encode_to_vec().into()).await?;
        file::write(fs, &staged.join(MANIFEST), content).await?;
        fs.sync_dir(&staged).await?;
        fs.rename(&staged, &self.snapshots_dir().join(&description.name)).await?;
        fs.sync_dir(&self.snapshots_dir()).await?;
        Ok(fs.sync_dir(&self.staged_snapshots_dir()).await?)
    }

    /// Removes a snapshot; the files that it names stay. On return, the removal is durable.
    ///
    /// # Errors
    /// File system errors; the snapshot then exists or is gone.
    pub async fn delete_snapshot(&self, fs: &dyn FileSystem, name: &str) -> Result<()> {
        if !is_name(name) {
            return Ok(());
        }
        let (dir, staged) = (self.snapshots_dir().join(name), self.staged_snapshots_dir().join(name));
        fs.make_dirs(&self.staged_snapshots_dir()).await?;
        fs.delete(&staged).await?;
        fs.rename(&dir, &staged).await?;
        fs.sync_dir(&self.snapshots_dir()).await?;
        Ok(fs.delete(&staged).await?)
    }
}

/// Whether a snapshot can have this name. The rule is that of a table name without its namespace.
fn is_name(name: &str) -> bool {
    TableName::new("default", name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::schema::FamilyDescriptor;
    use fs::memory::MemoryFs;

    const FILE: &str = "f8db11ccda7041dba9229220b25e2e90";

    fn manifest(name: &str) -> Manifest {
        let table =
            TableDescriptor::new(TableName::parse("ns:t").unwrap()).with_family(FamilyDescriptor::new("f"));
        let info = RegionInfo::new(table.name.clone(), "a".into(), "b".into(), 7);
        let reference = crate::reference::is_reference(name).then(|| Reference::top("f"));
        let files = vec![SnapshotFile { name: name.into(), len: Some(5), reference }];
        Manifest { table, regions: vec![SnapshotRegion { info, families: vec![("f".into(), files)] }] }
    }

    fn described(name: &str) -> SnapshotDescription {
        SnapshotDescription { name: name.into(), table: Some("ns:t".into()), ..Default::default() }
    }

    #[tokio::test]
    async fn a_manifest_that_is_too_large_to_be_read_is_not_written() {
        let (root, fs) = (RootDir::new(FilePath::root()), MemoryFs::new());
        let manifest = manifest(&"x".repeat(MANIFEST_BYTES_MAX as usize));
        let refused = root.write_snapshot(&fs, &described("s"), &manifest).await.unwrap_err();
        assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
        assert!(!root.has_snapshot(&fs, "s").await.unwrap());
    }

    #[tokio::test]
    async fn a_snapshot_is_read_back_listed_and_deleted() {
        let (root, fs) = (RootDir::new(FilePath::root()), MemoryFs::new());
        let link = format!("ns=t=1b42fa151ed2d772692addc8a9d03189-{FILE}");
        let references = [FILE, &link].map(|name| format!("{name}.1b42fa151ed2d772692addc8a9d03189"));
        for name in [FILE.to_string(), link].into_iter().chain(references) {
            let manifest = manifest(&name);
            root.write_snapshot(&fs, &described("s"), &manifest).await.unwrap();
            assert_eq!(root.find_snapshot(&fs, "s").await.unwrap(), Some(described("s")));
            assert_eq!(root.read_snapshot(&fs, "s").await.unwrap(), manifest);
            // A corrupt snapshot does not prevent others from being listed.
            let damaged = root.snapshots_dir().join("x");
            fs.make_dirs(&damaged).await.unwrap();
            fs.put(&damaged.join(DESCRIPTION), b"\xff".to_vec());
            assert_eq!(root.list_snapshots(&fs).await.unwrap(), [described("s")]);
            assert!(root.find_snapshot(&fs, "x").await.is_err());
            assert!(root.needed_files(&fs).await.is_err(), "it may need any file");
            root.delete_snapshot(&fs, "x").await.unwrap();
            // The manifest replaces a corrupt or missing description.
            for content in [&b"\xff"[..], b""] {
                fs.put(&root.snapshots_dir().join("s").join(DESCRIPTION), content);
                let found = root.find_snapshot(&fs, "s").await.unwrap().unwrap();
                assert_eq!((&*found.name, found.table()), ("s", "ns:t"));
            }
            fs.delete(&root.snapshots_dir().join("s").join(DESCRIPTION)).await.unwrap();
            assert_eq!(root.list_snapshots(&fs).await.unwrap().len(), 1);
            root.delete_snapshot(&fs, "s").await.unwrap();
            assert_eq!(root.list_snapshots(&fs).await.unwrap(), []);
        }
        assert_eq!(root.find_snapshot(&fs, "../s").await.unwrap(), None);
        assert!(root.read_snapshot(&fs, "../s").await.is_err());
    }

    #[test]
    fn names_of_no_store_file_are_refused() {
        let path = FilePath::new("m");
        let decode = |name: &str| Manifest::decode(&path, manifest(name).encode());
        assert!(decode(FILE).is_ok());
        for name in ["", "..", "../../x", "a/b", ".tmp"] {
            assert!(matches!(decode(name), Err(Error::Corrupt { .. })), "{name}");
        }
        for (name, reference) in [(FILE, true), (&format!("{FILE}.1b42fa151ed2d772692addc8a9d03189"), false)]
        {
            let mut unfit = manifest(name);
            unfit.regions[0].families[0].1[0].reference = reference.then(|| Reference::top("f"));
            assert!(matches!(Manifest::decode(&path, unfit.encode()), Err(Error::Corrupt { .. })), "{name}");
        }
        let mut other = manifest(FILE);
        other.regions[0].info.table = TableName::parse("other").unwrap();
        assert!(matches!(Manifest::decode(&path, other.encode()), Err(Error::Corrupt { .. })));
    }

    /// The tree of directories that has the contents of a manifest.
    async fn write_tree(
        root: &RootDir,
        fs: &MemoryFs,
        description: &SnapshotDescription,
        manifest: &Manifest,
    ) {
        let dir = root.snapshots_dir().join(&description.name);
        descriptor::write_in(fs, &dir, &manifest.table).await.unwrap();
        fs.put(&dir.join(DESCRIPTION), description.encode_to_vec());
        for region in &manifest.regions {
            let region_dir = dir.join(&region.info.encoded_name());
            fs.make_dirs(&region_dir).await.unwrap();
            crate::region::write_info_in(fs, &region_dir, &region.info).await.unwrap();
            for (family, files) in &region.families {
                let family_dir = region_dir.join(std::str::from_utf8(family).unwrap());
                fs.make_dirs(&family_dir).await.unwrap();
                for file in files {
                    let content = file.reference.as_ref().map(Reference::encode).unwrap_or_default();
                    fs.put(&family_dir.join(&file.name), content);
                }
            }
        }
    }

    #[tokio::test]
    async fn a_tree_of_directories_is_read_like_a_manifest() {
        let (root, fs) = (RootDir::new(FilePath::root()), MemoryFs::new());
        let link = format!("ns=t=1b42fa151ed2d772692addc8a9d03189-{FILE}");
        for name in [FILE, &link, &format!("{FILE}.1b42fa151ed2d772692addc8a9d03189")] {
            let mut manifest = manifest(name);
            manifest.regions[0].families[0].1[0].len = None;
            let description = SnapshotDescription { version: Some(TREE_VERSION), ..described("s") };
            write_tree(&root, &fs, &description, &manifest).await;
            assert_eq!(root.read_snapshot(&fs, "s").await.unwrap(), manifest);
            assert_eq!(root.list_snapshots(&fs).await.unwrap(), [description]);
            let needed = root.needed_files(&fs).await.unwrap();
            let archived = root.archive_dir().join("data/ns/t/r/f").join(FILE);
            assert!(needed.contains(&crate::cleaning::ArchivedFile::at(archived)), "{name}");
            // The table's descriptor replaces a missing description.
            let dir = root.snapshots_dir().join("s");
            fs.delete(&dir.join(DESCRIPTION)).await.unwrap();
            let found = root.find_snapshot(&fs, "s").await.unwrap().unwrap();
            assert_eq!((found.table(), found.version), ("ns:t", Some(TREE_VERSION)));
            root.delete_snapshot(&fs, "s").await.unwrap();
            assert_eq!(root.list_snapshots(&fs).await.unwrap(), []);
        }
    }

    #[tokio::test]
    async fn a_damaged_tree_of_directories_is_refused() {
        let (root, fs) = (RootDir::new(FilePath::root()), MemoryFs::new());
        let whole = manifest(FILE);
        let dir = root.snapshots_dir().join("s");
        let region_dir = dir.join(&whole.regions[0].info.encoded_name());
        for (path, content) in [
            (region_dir.join("f/not-a-store-file"), &b""[..]),
            (region_dir.join("f").join(&format!("{FILE}.1b42fa151ed2d772692addc8a9d03189")), b"no reference"),
            (region_dir.join(".regioninfo"), b"\xff"),
            (dir.join("1b42fa151ed2d772692addc8a9d03189/f").join(FILE), b""),
        ] {
            write_tree(&root, &fs, &described("s"), &whole).await;
            assert!(root.read_snapshot(&fs, "s").await.is_ok());
            fs.make_dirs(&path.parent()).await.unwrap();
            fs.put(&path, content.to_vec());
            let error = root.read_snapshot(&fs, "s").await.unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{path}: {error}");
            fs.delete(&dir).await.unwrap();
        }
        let mut other = manifest(FILE);
        other.regions[0].info.table = TableName::parse("other").unwrap();
        write_tree(&root, &fs, &described("s"), &other).await;
        assert!(matches!(root.read_snapshot(&fs, "s").await, Err(Error::Corrupt { .. })));
    }
}
