//! Opens a directory as the configuration of Grampus and Hadoop names it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base::config::{Config, RootUri};
use base::env::Env;
use fs::FileSystem;

use crate::options::check_variables;
use crate::{HdfsFileSystem, HdfsOptions, IfMissing, Limits};

/// The key of the directory service that URIs without an authority refer to.
const DEFAULT_FS: &str = "fs.defaultFS";
const LOG_BLOCK_BYTES: &str = "hbase.regionserver.hlog.blocksize";
/// HDFS requires blocks of a multiple of this size.
const BLOCK_BYTES_UNIT: u64 = 512;
/// How long the calls of [`open_foreign`] and of its file system wait for an active NameNode: a
/// client waits for the request that named it.
const FOREIGN_NAMENODE: Duration = Duration::from_secs(20);

/// Connects to HDFS, and waits until a NameNode is active.
///
/// # Errors
/// One line that names the option `key`, which has the value `place`.
pub async fn open(
    env: &Env,
    config: &Config,
    (key, place): (&str, &RootUri),
    if_missing: IfMissing,
) -> Result<Arc<dyn FileSystem>, String> {
    let opened = connect(env, config, place, (if_missing, Limits::default())).await;
    opened.map_err(|reason| config.refused(key, reason).to_string())
}

/// Connects to an existing directory that a request names. Waits for an active NameNode for a short
/// time only.
///
/// # Errors
/// One line that states the reason.
pub async fn open_foreign(
    env: &Env,
    config: &Config,
    place: &RootUri,
) -> Result<Arc<dyn FileSystem>, String> {
    let limits = Limits { namenode: FOREIGN_NAMENODE, ..Limits::default() };
    connect(env, config, place, (IfMissing::Fail, limits)).await
}

async fn connect(
    env: &Env,
    config: &Config,
    place: &RootUri,
    (if_missing, limits): (IfMissing, Limits),
) -> Result<Arc<dyn FileSystem>, String> {
    let options = HdfsOptions {
        url: url(config, place)?,
        user: config.hadoop_user().to_string(),
        settings: settings(config),
        limits,
        if_missing,
    };
    let connected = HdfsFileSystem::connect(env, &options).await;
    let hdfs = connected.map_err(|error| error.to_string())?;
    Ok(Arc::new(hdfs))
}

/// Hadoop's settings, and the block size of logs, which may have a unit that Hadoop does not know.
fn settings(config: &Config) -> HashMap<String, String> {
    let given = config.hadoop().iter().map(|(key, value)| (key.clone(), value.clone()));
    let mut settings: HashMap<String, String> = given.collect();
    let blocks = config.wal_block_bytes.div_ceil(BLOCK_BYTES_UNIT) * BLOCK_BYTES_UNIT;
    settings.insert(LOG_BLOCK_BYTES.to_string(), blocks.to_string());
    settings
}

/// The URL with its authority.
fn url(config: &Config, place: &RootUri) -> Result<String, String> {
    match place {
        RootUri::Other { scheme, authority, path } if scheme == "hdfs" => {
            let authority = match authority.as_str() {
                "" => default_authority(config)?,
                authority => authority,
            };
            Ok(format!("hdfs://{authority}{path}"))
        }
        RootUri::Other { scheme, .. } => {
            Err(format!("{scheme}:// is not supported; use hdfs:// or a local directory"))
        }
        RootUri::Local(_) => Err("not a directory on HDFS".into()),
    }
}

fn default_authority(config: &Config) -> Result<&str, String> {
    let uri = config.hadoop().get(DEFAULT_FS);
    if let Some(uri) = uri {
        check_variables(DEFAULT_FS, uri).map_err(|error| error.to_string())?;
    }
    let service = uri.and_then(|uri| uri.strip_prefix("hdfs://"));
    let authority = service.map(|service| service.split('/').next().unwrap_or_default());
    let missing = || format!("it names no NameNode, and {DEFAULT_FS} in core-site.xml is not an hdfs:// URI");
    authority.filter(|authority| !authority.is_empty()).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use base::config::Sources;

    use super::*;

    fn config(settings: &[(&str, &str)]) -> Config {
        let mut sources = Sources::default();
        let owned = settings.iter().map(|(key, value)| (key.to_string(), value.to_string()));
        sources.overrides.extend(owned);
        Config::load(&sources).unwrap()
    }

    #[test]
    fn the_block_size_of_logs_is_a_number_of_bytes() {
        let with_unit = config(&[("hbase.rootdir", "hdfs://nn/hbase"), (LOG_BLOCK_BYTES, "64 MiB")]);
        assert_eq!(settings(&with_unit)[LOG_BLOCK_BYTES], (64 << 20).to_string());
        let odd = config(&[("hbase.rootdir", "hdfs://nn/hbase"), (LOG_BLOCK_BYTES, "1000001")]);
        assert_eq!(settings(&odd)[LOG_BLOCK_BYTES], "1000448");
    }

    #[test]
    fn a_uri_without_authority_is_on_the_default_file_system() {
        let root = ("hbase.rootdir", "hdfs:///hbase");
        let with_default = config(&[root, ("fs.defaultFS", "hdfs://cluster/")]);
        assert_eq!(url(&with_default, &with_default.root).unwrap(), "hdfs://cluster/hbase");
        let without = config(&[root]);
        assert!(url(&without, &without.root).unwrap_err().contains("fs.defaultFS"));
        let unset = config(&[root, ("fs.defaultFS", "hdfs://${nn.host}")]);
        assert!(
            url(&unset, &unset.root).unwrap_err().contains("fs.defaultFS = hdfs://${nn.host} is invalid")
        );
        let named = config(&[("hbase.rootdir", "hdfs://nn:8020/hbase"), ("fs.defaultFS", "hdfs://cluster")]);
        assert_eq!(url(&named, &named.root).unwrap(), "hdfs://nn:8020/hbase");
        let other = config(&[("hbase.rootdir", "s3a://bucket/hbase")]);
        assert!(url(&other, &other.root).unwrap_err().contains("s3a:// is not supported"));
    }
}
