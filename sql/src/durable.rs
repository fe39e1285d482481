//! The files that COPY writes. Each is durable, and can be found after a power loss, before the
//! statement succeeds.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path as Location;
use datafusion::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart,
};
use futures_util::stream::BoxStream;

/// Syncs a file or a directory.
pub type SyncPath = Arc<dyn Fn(&Path) -> io::Result<()> + Send + Sync>;

/// The local files. The crate `object_store` itself syncs nothing.
pub struct DurableFiles {
    files: LocalFileSystem,
    sync: SyncPath,
}

impl DurableFiles {
    /// The files of this machine.
    pub fn new() -> DurableFiles {
        DurableFiles::with_sync(Arc::new(sync))
    }

    /// The files of this machine, with another function that syncs them.
    pub fn with_sync(sync: SyncPath) -> DurableFiles {
        DurableFiles { files: LocalFileSystem::new(), sync }
    }

    /// What must be synced after a file is written. Called before its directories are created.
    fn unsynced(&self, location: &Location) -> Result<Unsynced> {
        let file = self.files.path_to_filesystem(location)?;
        let directories = directories_of(&file);
        Ok(Unsynced { file, directories, sync: Arc::clone(&self.sync) })
    }
}

/// Syncs a file or a directory of this machine.
///
/// # Errors
/// Those of opening and syncing it.
#[allow(clippy::disallowed_methods, reason = "a file of the user's, not of the store's")]
pub fn sync(path: &Path) -> io::Result<()> {
    std::fs::File::open(path)?.sync_all()
}

/// The directories to sync so that `path` is found after a power loss: its own, and the parents of
/// those that do not exist yet.
pub fn directories_of(path: &Path) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for parent in path.ancestors().skip(1) {
        directories.push(parent.to_path_buf());
        if parent.exists() {
            break;
        }
    }
    directories
}

/// A file, and the directories that must be synced with it.
struct Unsynced {
    file: PathBuf,
    directories: Vec<PathBuf>,
    sync: SyncPath,
}

impl Unsynced {
    async fn sync(&self) -> Result<()> {
        let (sync, mut paths) = (Arc::clone(&self.sync), vec![self.file.clone()]);
        paths.extend_from_slice(&self.directories);
        let synced = tokio::task::spawn_blocking(move || {
            paths.iter().try_for_each(|path| {
                sync(path).map_err(|error| format!("cannot sync {}: {error}", path.display()))
            })
        });
        let synced = synced.await.unwrap_or_else(|error| Err(error.to_string()));
        synced.map_err(|message| {
            // DataFusion drops the cause of an error at the end of a CSV or JSON file.
            eprintln!("grampus sql: {message}");
            Error::Generic { store: "local file", source: message.into() }
        })
    }
}

/// A file that is written in parts.
struct DurableUpload {
    upload: Box<dyn MultipartUpload>,
    unsynced: Unsynced,
}

#[async_trait]
impl MultipartUpload for DurableUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.upload.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let result = self.upload.complete().await?;
        self.unsynced.sync().await?;
        Ok(result)
    }

    async fn abort(&mut self) -> Result<()> {
        self.upload.abort().await
    }
}

#[async_trait]
impl ObjectStore for DurableFiles {
    async fn put_opts(
        &self,
        location: &Location,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let unsynced = self.unsynced(location)?;
        let result = self.files.put_opts(location, payload, options).await?;
        unsynced.sync().await?;
        Ok(result)
    }

    async fn put_multipart_opts(
        &self,
        location: &Location,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let unsynced = self.unsynced(location)?;
        let upload = self.files.put_multipart_opts(location, options).await?;
        Ok(Box::new(DurableUpload { upload, unsynced }))
    }

    async fn get_opts(&self, location: &Location, options: GetOptions) -> Result<GetResult> {
        self.files.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Location>>,
    ) -> BoxStream<'static, Result<Location>> {
        self.files.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Location>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Location>) -> Result<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Location, to: &Location, options: CopyOptions) -> Result<()> {
        self.files.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Location, to: &Location, options: RenameOptions) -> Result<()> {
        self.files.rename_opts(from, to, options).await
    }
}

impl fmt::Debug for DurableFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableFiles").field("files", &self.files).finish_non_exhaustive()
    }
}

impl fmt::Display for DurableFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DurableFiles({})", self.files)
    }
}

impl fmt::Debug for DurableUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableUpload").field("file", &self.unsynced.file).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use datafusion::execution::object_store::ObjectStoreUrl;

    use super::*;
    use crate::export::{self, ExportArguments};
    use crate::statements::Engine;
    use crate::tests::{csv_export, directory, engine};

    fn replace_files(engine: &Engine, files: DurableFiles) {
        let local = ObjectStoreUrl::local_filesystem();
        engine.context.runtime_env().register_object_store(local.as_ref(), Arc::new(files));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn sessions_write_durable_files() {
        let (engine, _) = engine().await;
        let files = engine.context.runtime_env().object_store(ObjectStoreUrl::local_filesystem()).unwrap();
        assert!(files.to_string().starts_with("DurableFiles"), "{files}");
    }

    /// A complete file is synced under its final name, then its directory.
    #[tokio::test(flavor = "multi_thread")]
    async fn files_are_synced_before_their_directories() {
        let (engine, _) = engine().await;
        let (dir, synced) = (directory("order"), Arc::new(Mutex::new(Vec::new())));
        let log = Arc::clone(&synced);
        let record = move |path: &Path| {
            assert!(path.exists(), "{}", path.display());
            log.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_path_buf());
            Ok(())
        };
        replace_files(&engine, DurableFiles::with_sync(Arc::new(record)));
        let file = dir.join("new/all.csv");
        let env = base::testing::env(1);
        assert_eq!(export::run(&csv_export(file.clone()), &engine, &env).await, Ok(300));
        assert_eq!(*synced.lock().unwrap(), [file, dir.join("new"), dir.clone()]);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    /// A part whose sync fails is not recorded as finished, so the next run writes it again.
    #[tokio::test(flavor = "multi_thread")]
    async fn an_export_fails_if_a_sync_fails() {
        let (engine, _) = engine().await;
        let (dir, env) = (directory("failure"), base::testing::env(1));
        let fails_at = |name: &'static str| {
            move |path: &Path| match path.ends_with(name) {
                true => Err(io::Error::other("the disk is broken")),
                false => Ok(()),
            }
        };
        replace_files(&engine, DurableFiles::with_sync(Arc::new(fails_at("all.csv"))));
        let error = export::run(&csv_export(dir.join("all.csv")), &engine, &env).await.unwrap_err();
        assert!(error.starts_with("cannot finish"), "{error}");
        replace_files(&engine, DurableFiles::with_sync(Arc::new(fails_at("all.parquet"))));
        let parquet = ExportArguments { format: None, ..csv_export(dir.join("all.parquet")) };
        let error = export::run(&parquet, &engine, &env).await.unwrap_err();
        assert!(error.contains("cannot sync") && error.contains("the disk is broken"), "{error}");
        replace_files(&engine, DurableFiles::with_sync(Arc::new(fails_at("part-00002.csv"))));
        let parts = dir.join("parts/");
        let error = export::run(&csv_export(parts.clone()), &engine, &env).await.unwrap_err();
        assert!(error.contains("resumes the export"), "{error}");
        let manifest = std::fs::read_to_string(parts.join(export::manifest::FILE_NAME)).unwrap();
        assert!(manifest.contains("done 1 ") && !manifest.contains("done 2 "), "{manifest}");
        replace_files(&engine, DurableFiles::new());
        assert_eq!(export::run(&csv_export(parts), &engine, &env).await, Ok(300));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn parents_of_new_directories_are_synced() {
        let dir = directory("parents");
        assert_eq!(directories_of(&dir.join("a.csv")), std::slice::from_ref(&dir));
        assert_eq!(
            directories_of(&dir.join("new/b/a.csv")),
            [dir.join("new/b"), dir.join("new"), dir.clone()]
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
