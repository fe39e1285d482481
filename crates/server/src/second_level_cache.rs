//! Opens the second level of the block cache on local directories. A cache is not worth a failed
//! start: if a directory cannot be used, the server runs without it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::config::Config;
use base::env::Env;
use base::pool::Pool;
use fs::FileSystem;
use fs::local::LocalFs;
use ssdcache::{Options, SsdCache};
use tracing::{info, warn};

/// Threads for calls of the cache that wait for the SSD. Separate from those of the store files, so
/// that an SSD that hangs blocks no other read.
const THREADS: usize = 32;
/// Time after which a directory that cannot be opened is given up.
const OPEN_LIMIT: Duration = Duration::from_secs(10);

/// The cache, if it is configured and its directories can be used.
pub(crate) async fn open(env: &Env, config: &Config) -> Option<Arc<SsdCache>> {
    let capacity_bytes = config.cache_file_bytes?;
    let paths = config.cache_files.paths();
    if paths.is_empty() {
        return None;
    }
    let pool = Arc::new(Pool::new("cache", THREADS));
    let direct_io = config.reads_directly(base::memory::limit_bytes());
    let mut dirs = Vec::new();
    for path in paths {
        match open_dir(env, &pool, path, direct_io).await {
            Ok(dir) => dirs.push(dir),
            Err(error) => {
                warn!(error, "no second-level block cache (hbase.bucketcache.ioengine)");
                return None;
            }
        }
    }
    let options = Options {
        capacity_bytes,
        is_persistent: config.cache_persistent_path.is_some(),
        write_rate_max: config.cache_file_write_rate_max,
        errors_tolerated: Duration::from_millis(config.cache_file_errors_tolerated_ms),
    };
    info!(?paths, bytes = capacity_bytes, persistent = options.is_persistent, "second-level block cache");
    Some(Arc::new(SsdCache::start(env.clone(), dirs, options)))
}

async fn open_dir(
    env: &Env,
    pool: &Arc<Pool>,
    path: &Path,
    direct_io: bool,
) -> Result<Arc<dyn FileSystem>, String> {
    let (of_files, owned) = (pool.clone(), path.to_owned());
    let opened = pool.run(move || {
        if is_file(&owned) {
            return Err("is a file, but must be a directory; delete it if it is a cache of HBase".to_owned());
        }
        LocalFs::create(&owned, of_files).map_err(|error| error.to_string())
    });
    let opened = env.timeout(OPEN_LIMIT, opened).await.unwrap_or(Err("does not respond".into()));
    let local = opened.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(if direct_io { Arc::new(local.with_direct_io()) } else { Arc::new(local) })
}

#[allow(clippy::disallowed_methods, reason = "FileSystem only has paths relative to a directory")]
fn is_file(path: &Path) -> bool {
    path.is_file()
}
