//! The files of bulk loads, which clients name by URIs.
//!
//! Local files are read by the names that this process sees. On HDFS, a file of the NameNode that
//! has the root directory is moved, and a file of another one is copied.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use base::BoxFuture;
use base::config::{Config, RootUri};
use base::env::Env;
use base::pool::Pool;
use fs::local::LocalFs;
use fs::{FilePath, FileSystem};
use regionserver::foreign_files::checked_path;
use regionserver::{ForeignFile, ForeignFiles, FoundFile};
use tokio::sync::Mutex;

use crate::hdfs::{self, IfMissing};

/// Number of threads that read local files of bulk loads.
const THREADS: usize = 2;

/// All files of this machine.
///
/// # Errors
/// Those of opening the directory `/`.
pub(crate) fn whole_machine() -> fs::Result<Arc<dyn FileSystem>> {
    let local = LocalFs::new(Path::new("/"), Arc::new(Pool::new("foreign", THREADS)))?;
    Ok(Arc::new(local))
}

/// The files that this server can reach.
///
/// # Errors
/// One line: the root directory cannot be resolved.
pub(crate) fn open(env: &Env, config: &Config) -> Result<Arc<dyn ForeignFiles>, String> {
    let local = whole_machine().map_err(|error| format!("cannot open the directory /: {error}"))?;
    let root = match &config.root {
        RootUri::Local(dir) => RootPlace::Local(absolute(dir)?),
        RootUri::Other { scheme, authority, path } => {
            let path = checked_path(path)?;
            RootPlace::Remote { scheme: scheme.clone(), authority: authority.clone(), path }
        }
    };
    let (env, config) = (env.clone(), config.clone());
    Ok(Arc::new(Reachable { env, config, root, local, remote: std::sync::Mutex::default() }))
}

/// Where the root directory is.
enum RootPlace {
    Local(FilePath),
    Remote { scheme: String, authority: String, path: FilePath },
}

struct Reachable {
    env: Env,
    config: Config,
    root: RootPlace,
    local: Arc<dyn FileSystem>,
    // The root directories of other file systems, by scheme and authority. Each has its own lock,
    // so that one that is unreachable delays no request for another one.
    remote: std::sync::Mutex<HashMap<(String, String), Arc<Mutex<RemoteRoot>>>>,
}

/// The root directory of another file system. The first request opens it.
#[derive(Default)]
struct RemoteRoot {
    opened: Option<Arc<dyn FileSystem>>,
    // When the last attempt failed, and why.
    failed: Option<(Duration, String)>,
}

impl Reachable {
    async fn find_now(&self, uri: &str) -> Result<FoundFile, String> {
        let invalid = || format!("invalid path {uri}: expected an absolute path or a URI");
        let found = RootUri::parse(uri).ok_or_else(invalid)?;
        match (found, &self.root) {
            (RootUri::Local(path), root) => {
                let text = path.to_str().filter(|text| text.starts_with('/')).ok_or_else(invalid)?;
                let path = checked_path(text)?;
                match root {
                    RootPlace::Local(root) => Ok(match below(&path, root) {
                        Some(own) => FoundFile::Own(own),
                        None => self.local_file(path),
                    }),
                    // Hadoop resolves a path without a scheme on the default file system.
                    RootPlace::Remote { scheme, authority, path: root } if !uri.contains(':') => {
                        self.remote_file((scheme, authority), path, Some(root)).await
                    }
                    RootPlace::Remote { .. } => Ok(self.local_file(path)),
                }
            }
            (RootUri::Other { scheme, authority, path }, root) => {
                let path = checked_path(&path)?;
                let root = match root {
                    RootPlace::Remote { scheme: own_scheme, authority: own, path: root }
                        if *own_scheme == scheme && (*own == authority || authority.is_empty()) =>
                    {
                        Some(root)
                    }
                    _ => None,
                };
                self.remote_file((&scheme, &authority), path, root).await
            }
        }
    }

    fn local_file(&self, path: FilePath) -> FoundFile {
        FoundFile::Foreign(ForeignFile { fs: self.local.clone(), path, root: None })
    }

    /// A file of another file system. `root` is the path of the root directory, if it is there.
    async fn remote_file(
        &self,
        (scheme, authority): (&str, &str),
        path: FilePath,
        root: Option<&FilePath>,
    ) -> Result<FoundFile, String> {
        if let Some(own) = root.and_then(|root| below(&path, root)) {
            return Ok(FoundFile::Own(own));
        }
        let place = RootUri::Other {
            scheme: scheme.to_owned(),
            authority: authority.to_owned(),
            path: "/".to_owned(),
        };
        let remote = {
            let mut all = self.remote.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry((scheme.to_owned(), authority.to_owned())).or_default().clone()
        };
        let opened = self.open_once(&remote, &place, root.is_some()).await;
        drop(remote);
        if opened.is_err() {
            self.forget_failed();
        }
        let fs = opened
            .map_err(|reason| format!("cannot open {scheme}://{authority}/{}: {reason}", path.as_str()))?;
        Ok(FoundFile::Foreign(ForeignFile { fs, path, root: root.cloned() }))
    }

    /// Removes the file systems that are not open and that no request waits for. Otherwise there
    /// would be one for each authority that a request named.
    fn forget_failed(&self) {
        let mut all = self.remote.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, remote| match Arc::get_mut(remote) {
            Some(unused) => unused.get_mut().opened.is_some(),
            None => true,
        });
    }

    /// Opens `place`, unless an earlier request did. `has_root`: it is the file system of the root
    /// directory.
    async fn open_once(
        &self,
        remote: &Mutex<RemoteRoot>,
        place: &RootUri,
        has_root: bool,
    ) -> Result<Arc<dyn FileSystem>, String> {
        let clock = &self.env.clock;
        let began = clock.monotonic();
        let mut remote = remote.lock().await;
        if let Some(opened) = &remote.opened {
            return Ok(opened.clone());
        }
        // Requests that waited for the same attempt do not repeat it in sequence.
        if let Some((_, reason)) = remote.failed.as_ref().filter(|(at, _)| *at > began) {
            return Err(reason.clone());
        }
        let opened = match has_root {
            true => hdfs::open(&self.env, &self.config, ("hbase.rootdir", place), IfMissing::Fail).await,
            false => hdfs::open_foreign(&self.env, &self.config, place).await,
        };
        match &opened {
            Ok(opened) => remote.opened = Some(opened.clone()),
            Err(reason) => remote.failed = Some((clock.monotonic(), reason.clone())),
        }
        opened
    }
}

impl ForeignFiles for Reachable {
    fn uri_of(&self, path: &FilePath) -> String {
        match &self.root {
            RootPlace::Local(root) => format!("file:/{}", root.join(path.as_str()).as_str()),
            RootPlace::Remote { scheme, authority, path: root } => {
                format!("{scheme}://{authority}/{}", root.join(path.as_str()).as_str())
            }
        }
    }

    fn find<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<FoundFile, String>> {
        Box::pin(self.find_now(uri))
    }
}

/// The part of `path` below `dir`; `None` if it is elsewhere.
fn below(path: &FilePath, dir: &FilePath) -> Option<FilePath> {
    let rest = path.as_str().strip_prefix(dir.as_str()).filter(|_| path.is_at_or_below(dir))?;
    Some(FilePath::new(rest))
}

#[allow(clippy::disallowed_methods, reason = "FileSystem only has paths relative to the data directory")]
fn absolute(dir: &Path) -> Result<FilePath, String> {
    let found = std::fs::canonicalize(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let text = found.to_str().ok_or_else(|| format!("{}: the path is not text", found.display()))?;
    Ok(FilePath::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reachable(root: &str) -> Reachable {
        Reachable {
            env: base::testing::env(1),
            config: Config::default(),
            root: RootPlace::Local(FilePath::new(root)),
            local: whole_machine().unwrap(),
            remote: std::sync::Mutex::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_for_an_unreachable_file_system_fail_together() {
        let files = reachable("/srv/hbase");
        let (one, two) = ("hdfs://nowhere:8020/one", "hdfs://nowhere:8020/two");
        let began = files.env.clock.monotonic();
        let (found_one, found_two) = tokio::join!(files.find(one), files.find(two));
        assert!(files.env.clock.monotonic() - began <= Duration::from_secs(20));
        for (found, uri) in [(found_one, one), (found_two, two)] {
            let error = found.err().unwrap();
            assert!(error.contains(uri) && !error.contains("hbase.rootdir"), "{error}");
        }
        assert!(files.remote.lock().unwrap().is_empty(), "a client can name any authority");
    }

    #[tokio::test]
    async fn local_uris_are_found_in_all_spellings() {
        let files = reachable("/srv/hbase");
        assert_eq!(files.uri_of(&FilePath::new("staging/x")), "file:/srv/hbase/staging/x");
        for (uri, own) in [
            ("file:/srv/hbase/staging/x", "staging/x"),
            ("file:///srv/hbase/a", "a"),
            ("/srv/hbase/a/b", "a/b"),
            ("file://localhost/srv/hbase/a", "a"),
        ] {
            match files.find(uri).await {
                Ok(FoundFile::Own(path)) => assert_eq!(path.as_str(), own, "{uri}"),
                _ => panic!("{uri} is in the root directory"),
            }
        }
        for uri in ["/srv/hbase2/a", "file:/tmp/a", "/tmp/a"] {
            assert!(
                matches!(files.find(uri).await, Ok(FoundFile::Foreign(file)) if file.root.is_none()),
                "{uri}"
            );
        }
        for uri in ["relative", "", "/srv/hbase/../x", "file:/a/./b", "file://host/a"] {
            assert!(files.find(uri).await.is_err(), "{uri}");
        }
    }
}
