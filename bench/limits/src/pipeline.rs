//! Commits to a log on HDFS by one writer, without a region server.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use fs::{AccessPattern, FilePath, FileSystem, SyncLevel};
use hdfs::{HdfsFileSystem, HdfsOptions, IfMissing, Limits};

/// The first commits, in which the DataNodes still compile their code, are not measured.
const UNMEASURED: usize = 2000;

/// What is committed.
pub struct Commits {
    /// Directory on HDFS, which is created if it is missing.
    pub url: String,
    /// Settings of the HDFS client.
    pub settings: HashMap<String, String>,
    /// Number of measured commits.
    pub count: usize,
    /// Bytes of each commit.
    pub len: usize,
    /// Whether the DataNodes sync their disks.
    pub level: SyncLevel,
}

impl Commits {
    /// Commits one entry after the other and prints the latencies in microseconds as JSON.
    pub fn run(self) -> io::Result<()> {
        let env = os::env(Arc::new(os::Runtimes::start(1, 1)?));
        let mut latencies = os::block_on(self.measure(&env))?;
        latencies.sort();
        let us = |percent: usize| latencies[(latencies.len() - 1) * percent / 100].as_secs_f64() * 1e6;
        println!("{{\"commits\": {}, \"p50\": {:.1}, \"p99\": {:.1}}}", latencies.len(), us(50), us(99));
        Ok(())
    }

    async fn measure(self, env: &Env) -> io::Result<Vec<Duration>> {
        let Commits { url, settings, count, len, level } = self;
        let (user, limits) = ("grampus".to_owned(), Limits::default());
        let options = HdfsOptions { url, user, settings, limits, if_missing: IfMissing::Create };
        let hdfs = HdfsFileSystem::connect(env, &options).await.map_err(io::Error::other)?;
        commit_all(env, &hdfs, count, Bytes::from(vec![b'v'; len]), level).await.map_err(io::Error::other)
    }
}

/// Returns the latencies of the measured commits.
async fn commit_all(
    env: &Env,
    hdfs: &HdfsFileSystem,
    count: usize,
    entry: Bytes,
    level: SyncLevel,
) -> fs::Result<Vec<Duration>> {
    let path = FilePath::new("pipeline.log");
    let mut log = hdfs.create(&path, AccessPattern::Log).await?;
    let mut latencies = Vec::with_capacity(count);
    for index in 0..UNMEASURED + count {
        let begin = env.clock.monotonic();
        log.append_and_sync(entry.clone(), entry.len(), level).await?;
        if index >= UNMEASURED {
            latencies.push(env.clock.monotonic() - begin);
        }
    }
    log.close().await?;
    hdfs.delete(&path).await?;
    Ok(latencies)
}
