//! Where a root directory is: on the local disk or on HDFS.

use std::path::PathBuf;
use std::sync::Arc;

use base::config::{Config, RootUri, Sources};
use base::env::Env;
use base::pool::Pool;
use fs::local::LocalFs;
use fs::{FilePath, FileSystem};
use hdfs::IfMissing;

/// Entries of a root directory, one of which each has: of Grampus, of HBase, and of an exported
/// snapshot.
const MARKERS: [&str; 3] = ["grampus.root", "hbase.version", ".hbase-snapshot"];
/// States that files are on volumes outside of the directory.
const VOLUMES: &str = "grampus.volumes";
const ROOT_KEY: &str = "hbase.rootdir";

/// A root directory as a user names it.
#[derive(Debug, Clone)]
pub struct Place {
    /// A path, or `hdfs://HOST:PORT/PATH`.
    pub directory: String,
    /// A directory with configuration files of Hadoop and HBase.
    pub config: Option<PathBuf>,
    /// Further settings, as `KEY=VALUE`.
    pub settings: Vec<String>,
}

impl Place {
    /// The directory as it identifies the source of an export.
    pub fn absolute(&self) -> String {
        match self.is_url() {
            true => self.directory.clone(),
            false => {
                let absolute = std::path::absolute(&self.directory);
                absolute.unwrap_or_else(|_| PathBuf::from(&self.directory)).to_string_lossy().into_owned()
            }
        }
    }

    fn is_url(&self) -> bool {
        self.directory.contains("://")
    }

    /// The file system whose root is the directory.
    ///
    /// # Errors
    /// A message: it is no root directory, or has files elsewhere.
    pub async fn open(&self, env: &Env) -> Result<Arc<dyn FileSystem>, String> {
        let shown = &self.directory;
        let files = match self.is_url() {
            true => self.on_hdfs(env).await?,
            false => {
                let readers = std::thread::available_parallelism().map_or(1, usize::from);
                let files = LocalFs::new(shown.as_ref(), Arc::new(Pool::new("read", readers)));
                let files = files.map_err(|error| match error {
                    fs::Error::NotFound { .. } => format!("there is no directory {shown}"),
                    error => format!("{shown}: {error}"),
                });
                Arc::new(files?) as Arc<dyn FileSystem>
            }
        };
        let has = async |name: &str| match files.stat(&FilePath::new(name)).await {
            Ok(found) => Ok(found.is_some()),
            Err(error) => Err(format!("{shown}: {error}")),
        };
        let mut is_root = false;
        for marker in MARKERS {
            is_root |= has(marker).await?;
        }
        match (is_root, has(VOLUMES).await?) {
            (false, _) => Err(format!("{shown}: not a root directory of Grampus or HBase")),
            (true, true) => Err(format!("{shown}: files are on storage tiers; move them home first")),
            (true, false) => Ok(files),
        }
    }

    async fn on_hdfs(&self, env: &Env) -> Result<Arc<dyn FileSystem>, String> {
        let mut sources = Sources::of_process();
        sources.directories.extend(self.config.clone());
        sources.overrides.push((ROOT_KEY.to_string(), self.directory.clone()));
        for setting in &self.settings {
            sources.set(setting).map_err(|error| error.to_string())?;
        }
        let config = Config::load(&sources).map_err(|error| error.to_string())?;
        match &config.root {
            RootUri::Local(_) => Err(format!("{}: not a directory on HDFS", self.directory)),
            place => hdfs::open(env, &config, (ROOT_KEY, place), IfMissing::Fail).await,
        }
    }
}
