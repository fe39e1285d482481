//! Which program may open a root directory: HBase or Grampus.
//!
//! HBase starts only if `hbase.version` exists, or if `hbase:meta` has no directory. So Grampus
//! renames that file while it owns a directory that HBase has used, and renames it back as the last
//! step of a release. This rename is the strongest fence on a file system without leases.
//!
//! | files in the root directory | owner |
//! | --- | --- |
//! | `grampus.root` | Grampus |
//! | `grampus.releasing` | a release was interrupted |
//! | `grampus.adoption` and `hbase.version.grampus` | an adoption was interrupted |
//! | only `hbase.version.grampus` | HBase; the last rename is missing |
//! | `hbase.version` | HBase |
//!
//! Source: HBase `FSUtils.checkVersion`.

use fs::{FilePath, FileSystem};
use proto::HBaseVersionFileContent;
use proto::magic::without_magic;

use crate::identity::{ID_FILE, MARKER, VERSION_FILE};
use crate::{Result, RootDir, corrupt, file};

/// The name of `hbase.version` while Grampus owns the directory.
pub const FENCED_VERSION_FILE: &str = "hbase.version.grampus";
/// The name of the marker during a release.
pub const RELEASING: &str = "grampus.releasing";
/// The directory with the record of an adoption, and with everything that undoes it.
pub const ADOPTION_DIR: &str = "grampus.adoption";

/// The program that a root directory belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// HBase, or no program: the file `hbase.version` decides.
    HBase,
    /// Grampus.
    Grampus,
    /// Neither: an adoption was interrupted.
    Adopting,
    /// Neither: a release was interrupted.
    Releasing,
    /// HBase, as soon as `hbase.version` has its name again.
    Released,
    /// The directory is none of either.
    Nothing,
}

impl RootDir {
    /// The owner of the directory.
    ///
    /// # Errors
    /// File system errors.
    pub async fn owner(&self, fs: &dyn FileSystem) -> Result<Owner> {
        let entries = file::list(fs, self.path()).await?;
        let has = |name: &str| entries.iter().any(|entry| entry.name == name);
        Ok(match () {
            () if has(MARKER) => Owner::Grampus,
            () if has(RELEASING) => Owner::Releasing,
            () if has(VERSION_FILE) => Owner::HBase,
            () if has(FENCED_VERSION_FILE) && has(ADOPTION_DIR) => Owner::Adopting,
            () if has(FENCED_VERSION_FILE) => Owner::Released,
            () => Owner::Nothing,
        })
    }

    /// The layout's version in `hbase.version`, whichever name it has; `None` if it is missing.
    /// HBase before 0.96 wrote it without protobuf.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) for other contents.
    pub async fn layout_version(&self, fs: &dyn FileSystem) -> Result<Option<String>> {
        for name in [VERSION_FILE, FENCED_VERSION_FILE] {
            let path = self.path().join(name);
            if fs.stat(&path).await?.is_none() {
                continue;
            }
            let content = file::read(fs, &path).await?;
            if let Ok(HBaseVersionFileContent { version }) = without_magic(&content) {
                return Ok(Some(version));
            }
            // Two bytes of length, then the text.
            let text = content.get(2..).and_then(|text| std::str::from_utf8(text).ok());
            let text =
                text.filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()));
            return text.map(|text| Some(text.to_string())).ok_or_else(|| corrupt(&path, "is not a version"));
        }
        Ok(None)
    }

    /// The cluster id; `None` if its file is missing or unreadable.
    ///
    /// # Errors
    /// File system errors.
    pub async fn stored_cluster_id(&self, fs: &dyn FileSystem) -> Result<Option<String>> {
        let path = self.path().join(ID_FILE);
        if fs.stat(&path).await?.is_none() {
            return Ok(None);
        }
        let content = file::read(fs, &path).await?;
        Ok(without_magic::<proto::ClusterId>(&content).ok().map(|id| id.cluster_id))
    }

    /// Renames `hbase.version`, so that HBase refuses to start. Does nothing if it has the other
    /// name already.
    ///
    /// # Errors
    /// File system errors.
    pub async fn fence_from_hbase(&self, fs: &dyn FileSystem) -> Result<()> {
        self.rename_if_exists(fs, VERSION_FILE, FENCED_VERSION_FILE).await
    }

    /// Gives `hbase.version` its name back. From now on, HBase may start.
    ///
    /// # Errors
    /// File system errors.
    pub async fn open_to_hbase(&self, fs: &dyn FileSystem) -> Result<()> {
        self.rename_if_exists(fs, FENCED_VERSION_FILE, VERSION_FILE).await
    }

    /// Removes the marker, so that no server of Grampus starts, and marks the directory as being
    /// released.
    ///
    /// # Errors
    /// File system errors.
    pub async fn begin_release(&self, fs: &dyn FileSystem) -> Result<()> {
        self.rename_if_exists(fs, MARKER, RELEASING).await
    }

    /// Removes a file or directory in the root directory, durably.
    ///
    /// # Errors
    /// File system errors.
    pub async fn remove_entry(&self, fs: &dyn FileSystem, name: &str) -> Result<()> {
        fs.delete(&self.path().join(name)).await?;
        Ok(fs.sync_dir(self.path()).await?)
    }

    /// Moves a file or a directory, durably. Creates the directories of `to`. Does nothing if
    /// `from` does not exist.
    ///
    /// # Errors
    /// File system errors.
    pub async fn move_path(&self, fs: &dyn FileSystem, from: &FilePath, to: &FilePath) -> Result<()> {
        if fs.stat(from).await?.is_none() {
            return Ok(());
        }
        fs.make_dirs(&to.parent()).await?;
        fs.rename(from, to).await?;
        fs.sync_dir(&to.parent()).await?;
        Ok(fs.sync_dir(&from.parent()).await?)
    }

    async fn rename_if_exists(&self, fs: &dyn FileSystem, from: &str, to: &str) -> Result<()> {
        self.move_path(fs, &self.path().join(from), &self.path().join(to)).await
    }

    /// Writes a small file of the root directory, atomically and durably.
    ///
    /// # Errors
    /// File system errors.
    pub async fn write_small_file(
        &self,
        fs: &dyn FileSystem,
        path: &FilePath,
        content: bytes::Bytes,
    ) -> Result<()> {
        fs.make_dirs(&path.parent()).await?;
        file::replace(fs, &path.parent().join(&format!("{}.new", path.name())), path, content).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::memory::MemoryFs;

    fn root() -> RootDir {
        RootDir::new(FilePath::root())
    }

    #[tokio::test]
    async fn the_owner_follows_from_the_files() {
        let cases: [(&[&str], Owner); 6] = [
            (&[], Owner::Nothing),
            (&["hbase.version"], Owner::HBase),
            (&["hbase.version", "grampus.adoption/record"], Owner::HBase),
            (&["hbase.version.grampus", "grampus.adoption/record"], Owner::Adopting),
            (&["hbase.version.grampus", "grampus.adoption/record", "grampus.root"], Owner::Grampus),
            (&["hbase.version.grampus"], Owner::Released),
        ];
        for (files, owner) in cases {
            let fs = MemoryFs::new();
            files.iter().for_each(|name| fs.put(&FilePath::new(name), "x"));
            assert_eq!(root().owner(&fs).await.unwrap(), owner, "{files:?}");
        }
    }

    #[tokio::test]
    async fn the_version_is_read_in_both_forms_and_under_both_names() {
        for content in [&b"PBUF\n\x018"[..], b"\0\x018"] {
            let fs = MemoryFs::new();
            fs.put(&FilePath::new(VERSION_FILE), content);
            assert_eq!(root().layout_version(&fs).await.unwrap().as_deref(), Some("8"));
            root().fence_from_hbase(&fs).await.unwrap();
            root().fence_from_hbase(&fs).await.unwrap();
            assert!(fs.contents(&FilePath::new(VERSION_FILE)).is_none());
            assert_eq!(root().layout_version(&fs).await.unwrap().as_deref(), Some("8"));
            root().open_to_hbase(&fs).await.unwrap();
            assert_eq!(fs.contents(&FilePath::new(VERSION_FILE)).unwrap(), content);
        }
        let fs = MemoryFs::new();
        fs.put(&FilePath::new(VERSION_FILE), "\0\0\0");
        assert!(root().layout_version(&fs).await.is_err());
    }
}
