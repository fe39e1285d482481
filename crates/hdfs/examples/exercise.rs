//! Exercises the file system on a real HDFS; `compat/hdfs/run` starts one and this program.
//!
//!   exercise URL KEY=VALUE... -- SUITE
//!
//! Suites: `contract`; `commits COUNT visible|disk`; `faults kill|freeze|fill|slow RUNS COMMITS`;
//! `stores kill|freeze RUNS`; `restart RUNS`; `zombies RUNS`; `failover COMMITS`; `safe-mode`;
//! `quota`. The program requests faults by lines `DO ACTION NODE` on its standard output, and reads
//! a line of its standard input when one is done. It ends with code 0 if all checks passed.

#![allow(clippy::unwrap_used, reason = "a check of this program fails by a panic")]

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use base::env::{Env, TaskClass};
use bytes::Bytes;
use fs::{AccessPattern, Error, Fence, FilePath, FileSystem, FileWriter, SyncLevel};
use hdfs::{HdfsFileSystem, HdfsOptions, IfMissing, Limits};

const DATANODES: u64 = 3;
/// Attempts to continue in a new log after an error.
const ROLLS_MAX: usize = 20;

fn main() {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter("info").init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let split = arguments.iter().position(|argument| argument == "--").expect("-- before the suite");
    let (target, suite) = (&arguments[..split], &arguments[split + 1..]);
    let settings: HashMap<String, String> = target[1..]
        .iter()
        .map(|setting| setting.split_once('=').expect("KEY=VALUE"))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let (url, user, limits) = (target[0].clone(), "grampus".to_owned(), Limits::default());
    let options = HdfsOptions { url, user, settings, limits, if_missing: IfMissing::Create };
    let runtimes = os::Runtimes::start(1, 1).expect("the system has threads");
    let env = os::env(Arc::new(runtimes));
    os::block_on(run(env, options, suite));
    println!("PASSED {}", suite.join(" "));
}

async fn run(env: Env, options: HdfsOptions, suite: &[String]) {
    let fs = HdfsFileSystem::connect(&env, &options).await.expect("HDFS is reachable");
    let number = |index: usize| suite[index].parse::<usize>().expect("a number");
    match suite[0].as_str() {
        "contract" => contract(&env, &fs).await,
        "commits" => commits(&env, &fs, number(1), &suite[2]).await,
        "faults" => faults(&env, &options, &suite[1], number(2), number(3)).await,
        "stores" => stores(&env, options, &suite[1], number(2)).await,
        "restart" => restart(&env, &fs, number(1)).await,
        "zombies" => zombies(&env, &fs, &options, number(1)).await,
        "failover" => failover(&env, &fs, number(1)).await,
        "safe-mode" => safe_mode(&env, &fs).await,
        "quota" => quota(&env, &fs).await,
        other => panic!("unknown suite {other}"),
    }
}

fn path(text: &str) -> FilePath {
    FilePath::new(text)
}

/// Requests a fault.
fn request(action: &str, node: u64) {
    println!("DO {action} {node}");
    std::io::stdout().flush().expect("standard output is open");
}

/// Waits until a requested fault is done.
fn await_done() {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).expect("standard input is open");
    assert_eq!(line.trim(), "done");
}

/// Bytes that depend on `seed`.
fn content(seed: u64, len: usize) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| next()).collect::<Vec<u8>>().into()
}

async fn read_all(fs: &HdfsFileSystem, path: &FilePath) -> Bytes {
    let reader = fs.open(path).await.expect("the file opens");
    let len = reader.len() as usize;
    reader.read_at(0, len).await.expect("the file is readable")
}

struct Times(Vec<Duration>);

impl Times {
    fn print(mut self, what: &str) {
        self.0.sort();
        let at = |permille: usize| self.0[(self.0.len() - 1) * permille / 1000].as_secs_f64() * 1e3;
        let (p50, p99, max) = (at(500), at(990), at(1000));
        println!("{what}: {} times, p50 {p50:.2} ms, p99 {p99:.2} ms, max {max:.2} ms", self.0.len());
    }
}

async fn write(fs: &HdfsFileSystem, path: &FilePath, bytes: &Bytes) {
    let mut file = fs.create(path, AccessPattern::Data).await.expect("a new file");
    for start in (0..bytes.len()).step_by(100_000) {
        let part = bytes.slice(start..bytes.len().min(start + 100_000));
        file.append(part).await.expect("an append");
    }
    file.close().await.expect("a close");
}

async fn contract(env: &Env, fs: &HdfsFileSystem) {
    let dir = path("contract");
    fs.delete(&dir).await.unwrap();
    assert!(matches!(fs.list(&dir).await, Err(Error::NotFound { .. })));
    assert!(matches!(
        fs.create(&dir.join("f"), AccessPattern::Data).await.err(),
        Some(Error::NotFound { .. })
    ));
    fs.make_dirs(&dir.join("a/b")).await.unwrap();
    fs.make_dirs(&dir.join("a/b")).await.unwrap();
    files(fs, &dir).await;
    names(fs, &dir).await;
    reads(fs, &dir).await;
    unfinished(env, fs, &dir).await;
    let space = fs.space().await.unwrap().unwrap();
    assert!(space.free_bytes > 0 && space.free_bytes <= space.total_bytes);
    fs.check_root().await.unwrap();
    fs.delete(&dir).await.unwrap();
    fs.delete(&dir).await.unwrap();
    assert_eq!(fs.stat(&dir).await.unwrap(), None);
}

async fn files(fs: &HdfsFileSystem, dir: &FilePath) {
    let file = dir.join("file");
    write(fs, &file, &Bytes::from_static(b"one")).await;
    for access in [AccessPattern::Data, AccessPattern::Log] {
        let again = fs.create(&file, access).await.err();
        assert!(matches!(again, Some(Error::AlreadyExists { .. })), "{again:?}");
    }
    let status = fs.stat(&file).await.unwrap().unwrap();
    assert_eq!((status.name.as_str(), status.is_dir, status.len), ("file", false, 3));
    assert_eq!(fs.stat(&file.join("below")).await.unwrap(), None);
    assert!(matches!(fs.make_dirs(&file.join("below")).await, Err(Error::AlreadyExists { .. })));
    assert!(matches!(fs.make_dirs(&file).await, Err(Error::AlreadyExists { .. })));
    assert!(matches!(fs.list(&file).await, Err(Error::NotFound { .. })));
    assert!(matches!(fs.open(&dir.join("none")).await.err(), Some(Error::NotFound { .. })));
    assert!(fs.open(dir).await.is_err());
    assert_eq!(fs.fence(&file).await.unwrap(), Fence::Complete);
    assert!(matches!(fs.fence(&dir.join("none")).await, Err(Error::NotFound { .. })));
    let empty = dir.join("empty");
    write(fs, &empty, &Bytes::new()).await;
    assert_eq!(read_all(fs, &empty).await, Bytes::new());
}

async fn names(fs: &HdfsFileSystem, dir: &FilePath) {
    let (one, two) = (dir.join("one"), dir.join("two"));
    write(fs, &one, &Bytes::from_static(b"1")).await;
    write(fs, &two, &Bytes::from_static(b"2")).await;
    let reader = fs.open(&one).await.unwrap();
    fs.rename(&one, &two).await.unwrap();
    assert_eq!(reader.read_at(0, 1).await.unwrap(), "1", "a reader survives a rename");
    assert_eq!(read_all(fs, &two).await, "1");
    fs.rename(&two, &two).await.unwrap();
    assert!(matches!(fs.rename(&one, &two).await, Err(Error::NotFound { path }) if path == one));
    let lost = dir.join("none/x");
    assert!(matches!(fs.rename(&two, &lost).await, Err(Error::NotFound { path }) if path == lost));
    for (from, to) in [("two", "a"), ("a", "two"), ("a/b", "many")] {
        fs.make_dirs(&dir.join("many")).await.unwrap();
        let failed = fs.rename(&dir.join(from), &dir.join(to)).await;
        assert!(matches!(failed, Err(Error::AlreadyExists { .. })), "{from} to {to}: {failed:?}");
    }
    assert!(fs.rename(&dir.join("a"), &dir.join("a/b/c")).await.is_err());
    // More than a page of the NameNode.
    let mut expected: Vec<String> = (0..1100).map(|index| format!("d{index}")).collect();
    for name in &expected {
        fs.make_dirs(&dir.join("many").join(name)).await.unwrap();
    }
    expected.sort();
    let listed = fs.list(&dir.join("many")).await.unwrap();
    assert_eq!(listed.into_iter().map(|entry| entry.name).collect::<Vec<_>>(), expected);
}

async fn reads(fs: &HdfsFileSystem, dir: &FilePath) {
    let file = dir.join("large");
    // Several blocks: `dfs.blocksize` is 1 MiB here.
    let bytes = content(7, 3_500_001);
    write(fs, &file, &bytes).await;
    assert!(read_all(fs, &file).await == bytes);
    let reader = fs.open(&file).await.unwrap();
    for (offset, len) in [(0, 1), (511, 2), (1_048_575, 2), (1_000_000, 2_000_000), (3_500_000, 1), (5, 0)] {
        let read = reader.read_at(offset, len).await.unwrap();
        assert!(read == bytes.slice(offset as usize..offset as usize + len), "{offset}, {len}");
    }
    for (offset, len) in [(3_500_001, 1), (0, 3_500_002), (u64::MAX, 1)] {
        assert!(matches!(reader.read_at(offset, len).await, Err(Error::PastEnd { .. })));
    }
    fs.delete(&file).await.unwrap();
}

async fn unfinished(env: &Env, fs: &HdfsFileSystem, dir: &FilePath) {
    let file = dir.join("dropped");
    let mut writer = fs.create(&file, AccessPattern::Log).await.unwrap();
    writer.append("abc".into()).await.unwrap();
    drop(writer);
    env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(fs.fence(&file).await.unwrap(), Fence::Complete);
    assert_eq!(read_all(fs, &file).await, "abc");
    // A block is full in the middle of a commit.
    let file = dir.join("blocks");
    let mut writer = fs.create(&file, AccessPattern::Log).await.unwrap();
    let bytes = content(8, 5_000_000);
    for start in (0..bytes.len()).step_by(1_250_000) {
        writer.append(bytes.slice(start..start + 1_250_000)).await.unwrap();
        writer.sync(SyncLevel::Disk).await.unwrap();
    }
    writer.close().await.unwrap();
    assert!(read_all(fs, &file).await == bytes);
}

/// One log file: what was appended, and how much of it was acknowledged.
struct Log {
    path: FilePath,
    writer: Box<dyn FileWriter>,
    content: Vec<u8>,
    acked: usize,
}

/// Logs as a server writes them: after an error, the bytes that were not acknowledged are written
/// to a new log.
struct Logs<'a> {
    env: &'a Env,
    fs: &'a HdfsFileSystem,
    dir: FilePath,
    level: SyncLevel,
    current: Option<Log>,
    old: Vec<Log>,
    count: usize,
}

impl<'a> Logs<'a> {
    async fn start(env: &'a Env, fs: &'a HdfsFileSystem, dir: &str, level: SyncLevel) -> Logs<'a> {
        let dir = path(dir);
        fs.delete(&dir).await.unwrap();
        fs.make_dirs(&dir).await.unwrap();
        Logs { env, fs, dir, level, current: None, old: Vec::new(), count: 0 }
    }

    async fn try_commit(&mut self, bytes: &Bytes) -> fs::Result<()> {
        if self.current.is_none() {
            self.count += 1;
            let path = self.dir.join(&format!("log.{}", self.count));
            let writer = self.fs.create(&path, AccessPattern::Log).await?;
            self.current = Some(Log { path, writer, content: Vec::new(), acked: 0 });
        }
        let log = self.current.as_mut().unwrap();
        log.content.extend_from_slice(bytes);
        log.writer.append_and_sync(bytes.clone(), bytes.len(), self.level).await?;
        log.acked = log.content.len();
        Ok(())
    }

    /// Returns the time until the bytes were acknowledged.
    async fn commit(&mut self, bytes: &Bytes) -> Duration {
        let began = self.env.clock.monotonic();
        for _ in 0..ROLLS_MAX {
            match self.try_commit(bytes).await {
                Ok(()) => return self.env.clock.monotonic() - began,
                Err(error) => {
                    let at = self.env.clock.monotonic() - began;
                    eprintln!("rolling {} ms after the begin of the commit: {error}", at.as_millis());
                    self.old.extend(self.current.take());
                }
            }
        }
        panic!("no commit in {ROLLS_MAX} logs");
    }

    /// Closes the last log, fences all, and compares what is read with what was acknowledged.
    async fn verify(mut self) {
        if let Some(log) = self.current.take() {
            let (path, content, acked) = (log.path, log.content, log.acked);
            assert_eq!(acked, content.len());
            if let Err(error) = log.writer.close().await {
                // As for a commit, the bytes that were acknowledged count.
                eprintln!("{path} was not closed: {error}");
            }
            assert_eq!(self.fs.fence(&path).await.expect("a fence"), Fence::Complete);
            assert!(read_all(self.fs, &path).await == content, "{path}");
        }
        for log in self.old {
            assert_eq!(self.fs.fence(&log.path).await.expect("a fence"), Fence::Complete);
            let read = read_all(self.fs, &log.path).await;
            assert!(read.len() >= log.acked, "{}: {} of {} bytes", log.path, read.len(), log.acked);
            assert!(log.content.starts_with(&read), "{}", log.path);
        }
        self.fs.delete(&self.dir).await.unwrap();
    }
}

async fn commits(env: &Env, fs: &HdfsFileSystem, count: usize, level: &str) {
    let sync = if level == "disk" { SyncLevel::Disk } else { SyncLevel::Visible };
    let mut logs = Logs::start(env, fs, "commits", sync).await;
    // The first commits meet cold code in the DataNodes.
    for index in 0..200 {
        logs.commit(&content(index, 1000)).await;
    }
    let mut times = Vec::new();
    for index in 0..count as u64 {
        times.push(logs.commit(&content(index, 1 + (index * 7919 % 6000) as usize)).await);
    }
    Times(times).print(&format!("commits, {level}"));
    assert!(logs.old.is_empty(), "no log failed");
    logs.verify().await;
    let mut times = Vec::new();
    for index in 0..20 {
        let began = env.clock.monotonic();
        let file = path(&format!("opened.{index}"));
        let mut log = fs.create(&file, AccessPattern::Log).await.unwrap();
        log.append_and_sync("header".into(), 6, SyncLevel::Disk).await.unwrap();
        times.push(env.clock.monotonic() - began);
        log.close().await.unwrap();
        fs.delete(&file).await.unwrap();
    }
    Times(times).print("new log with its first commit to disk");
}

/// The action that ends a fault.
fn end_of(fault: &str) -> &'static str {
    match fault {
        "kill" => "start",
        "freeze" => "resume",
        "fill" => "empty",
        "slow" => "fast",
        other => panic!("unknown fault {other}"),
    }
}

async fn faults(env: &Env, options: &HdfsOptions, kind: &str, runs: usize, commits: usize) {
    let (mut stalls, mut reads) = (Vec::new(), Vec::new());
    let data = content(3, 3_000_000);
    for run in 0..runs as u64 {
        // A new client avoids no DataNode because of an earlier run.
        let fs = &HdfsFileSystem::connect(env, options).await.unwrap();
        write(fs, &path("data"), &data).await;
        let reader = fs.open(&path("data")).await.unwrap();
        let level = if run % 2 == 0 { SyncLevel::Visible } else { SyncLevel::Disk };
        let mut logs = Logs::start(env, fs, "faults", level).await;
        let (mut longest, node) = (Duration::ZERO, run % DATANODES);
        let at = env.random.next_u64() % (commits as u64 / 2);
        for index in 0..commits as u64 {
            if index == at {
                request(kind, node);
            }
            longest = longest.max(logs.commit(&content(index, 1 + (index * 7919 % 6000) as usize)).await);
        }
        await_done();
        // If the fault came later than expected.
        for index in 0..20 {
            longest = longest.max(logs.commit(&content(index, 100)).await);
        }
        // A busy NameNode may have chosen other DataNodes for the log. A slow DataNode may be fast
        // enough.
        let had_effect = kind == "slow" || !logs.old.is_empty();
        let began = env.clock.monotonic();
        assert!(reader.read_at(0, data.len()).await.unwrap() == data);
        reads.push(env.clock.monotonic() - began);
        fs.delete(&path("data")).await.unwrap();
        request(end_of(kind), node);
        await_done();
        let began = env.clock.monotonic();
        logs.verify().await;
        let verified_ms = (env.clock.monotonic() - began).as_millis();
        let effect = if had_effect { "" } else { ", the DataNode was not in use" };
        let longest_ms = longest.as_millis();
        println!("{kind} run {run}: longest commit {longest_ms} ms, verified in {verified_ms} ms{effect}");
        stalls.extend(had_effect.then_some(longest));
    }
    assert!(stalls.len() * 2 > runs, "most faults had an effect");
    Times(stalls).print(&format!("longest commit of a run, {kind}"));
    Times(reads).print(&format!("read of 3 MB after {kind}"));
}

/// Store files that lose a DataNode while they are written.
async fn stores(env: &Env, mut options: HdfsOptions, kind: &str, runs: usize) {
    const PARTS: u64 = 200;
    options.limits.data_ack = Duration::from_secs(3);
    let mut times = Vec::new();
    for run in 0..runs as u64 {
        // A new client avoids no DataNode because of an earlier run.
        let fs = &HdfsFileSystem::connect(env, &options).await.unwrap();
        let (file, node) = (path(&format!("store.{run}")), run % DATANODES);
        fs.delete(&file).await.unwrap();
        let mut writer = fs.create(&file, AccessPattern::Data).await.unwrap();
        let (mut bytes, at) = (Vec::new(), 20 + env.random.next_u64() % 100);
        let mut longest = Duration::ZERO;
        for part in 0..PARTS {
            if part == at {
                request(kind, node);
            }
            if part == at + 20 {
                await_done();
            }
            let part = content(run * PARTS + part, 50_000 + (part * 7919 % 70_000) as usize);
            bytes.extend_from_slice(&part);
            let began = env.clock.monotonic();
            writer.append(part).await.unwrap();
            if run % 2 == 1 {
                writer.sync(SyncLevel::Disk).await.unwrap();
            }
            longest = longest.max(env.clock.monotonic() - began);
        }
        let began = env.clock.monotonic();
        writer.sync(SyncLevel::Disk).await.unwrap();
        writer.close().await.unwrap();
        longest = longest.max(env.clock.monotonic() - began);
        assert!(read_all(fs, &file).await == bytes, "run {run}: the bytes are those that were written");
        println!("{kind} run {run}: longest operation {} ms", longest.as_millis());
        times.push(longest);
        request(end_of(kind), node);
        await_done();
        assert!(read_all(fs, &file).await == bytes, "run {run}: an old replica is not read");
    }
    Times(times).print(&format!("longest operation on a store file, {kind}"));
}

/// Commits wait while all DataNodes are restarted.
async fn restart(env: &Env, fs: &HdfsFileSystem, runs: usize) {
    const DOWN: Duration = Duration::from_secs(10);
    /// After the first log. A server ends if it cannot write to any of these.
    const NEW_LOGS_MAX: usize = 3;
    let mut times = Vec::new();
    for run in 0..runs as u64 {
        let mut logs = Logs::start(env, fs, "restart", SyncLevel::Visible).await;
        logs.commit(&content(run, 1000)).await;
        (0..DATANODES).for_each(|node| request("kill", node));
        (0..DATANODES).for_each(|_| await_done());
        let bytes = content(run, 2000);
        let mut commit = Box::pin(logs.commit(&bytes));
        assert!(env.timeout(DOWN, &mut commit).await.is_none(), "no DataNode runs");
        (0..DATANODES).for_each(|node| request("start", node));
        times.push(commit.await);
        (0..DATANODES).for_each(|_| await_done());
        assert!(logs.count <= 1 + NEW_LOGS_MAX, "{} logs", logs.count);
        logs.verify().await;
    }
    Times(times).print("commits while all DataNodes are restarted");
}

async fn zombies(env: &Env, fs: &HdfsFileSystem, options: &HdfsOptions, runs: usize) {
    let other = HdfsFileSystem::connect(env, options).await.unwrap();
    let mut times = Vec::new();
    for run in 0..runs as u64 {
        let dir = path("zombies");
        fs.delete(&dir).await.unwrap();
        fs.make_dirs(&dir).await.unwrap();
        let (old, new) = (dir.join("log"), path("zombies-splitting/log"));
        let mut log = fs.create(&old, AccessPattern::Log).await.unwrap();
        let (acked, is_fenced) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counter, fenced) = (acked.clone(), is_fenced.clone());
        let writing = env.spawn(TaskClass::Connection, async move {
            loop {
                let was_fenced = fenced.load(Ordering::SeqCst);
                match log.append_and_sync("record".into(), 6, SyncLevel::Visible).await {
                    Ok(()) => assert!(!was_fenced, "a commit after the fence was acknowledged"),
                    Err(error) => {
                        assert!(fs::shared::is_taken_over(&error), "{error}");
                        return;
                    }
                }
                counter.fetch_add(6, Ordering::SeqCst);
            }
        });
        env.clock.sleep(Duration::from_millis(100 + env.random.next_u64() % 400)).await;
        let began = env.clock.monotonic();
        other.rename(&dir, &new.parent()).await.unwrap();
        assert_eq!(other.fence(&new).await.unwrap(), Fence::Complete);
        is_fenced.store(true, Ordering::SeqCst);
        times.push(env.clock.monotonic() - began);
        let (read, before) = (read_all(&other, &new).await, acked.load(Ordering::SeqCst));
        writing.await.expect("the writer was fenced");
        let late = fs.create(&old.parent().join("log.2"), AccessPattern::Log).await.err();
        assert!(matches!(late, Some(Error::NotFound { .. })), "{late:?}");
        let acked = acked.load(Ordering::SeqCst);
        assert_eq!(before, acked, "nothing is acknowledged after the fence");
        assert!(read.len() as u64 >= acked, "run {run}: {} of {acked} bytes", read.len());
        assert!(read.chunks(6).all(|record| b"record".starts_with(record)));
        assert!(read_all(&other, &new).await == read, "the length is final");
        other.delete(&new.parent()).await.unwrap();
    }
    Times(times).print("rename and fence of a log in use");
}

async fn failover(env: &Env, fs: &HdfsFileSystem, commits: usize) {
    let mut logs = Logs::start(env, fs, "failover", SyncLevel::Visible).await;
    logs.commit(&content(0, 100)).await;
    let mut times = Vec::new();
    request("failover", 0);
    for index in 0..commits as u64 {
        times.push(logs.commit(&content(index, 1000)).await);
    }
    Times(times).print("commits while the active NameNode ends");
    let began = env.clock.monotonic();
    fs.make_dirs(&path("failover/dir")).await.unwrap();
    println!("first change after the failover: {} ms", (env.clock.monotonic() - began).as_millis());
    await_done();
    assert!(logs.old.is_empty(), "no log failed");
    logs.verify().await;
}

/// Changes wait while the NameNode is in safe mode, and reads and open logs do not.
async fn safe_mode(env: &Env, fs: &HdfsFileSystem) {
    const WAIT: Duration = Duration::from_secs(3);
    let data = content(1, 3_000_000);
    write(fs, &path("data"), &data).await;
    let mut logs = Logs::start(env, fs, "safe-mode", SyncLevel::Disk).await;
    logs.commit(&content(2, 1000)).await;
    request("enter-safe-mode", 0);
    await_done();
    assert!(read_all(fs, &path("data")).await == data, "a file is readable");
    let mut times = Vec::new();
    for index in 0..100 {
        times.push(logs.commit(&content(index, 1000)).await);
    }
    Times(times).print("commits to an open log in safe mode");
    let late = path("late");
    let mut creation = std::pin::pin!(fs.create(&late, AccessPattern::Log));
    assert!(env.timeout(WAIT, &mut creation).await.is_none(), "a new log waits");
    request("leave-safe-mode", 0);
    await_done();
    let began = env.clock.monotonic();
    let created = env.timeout(WAIT * 5, &mut creation).await.expect("the new log waits no longer");
    println!("new log {} ms after the end of safe mode", (env.clock.monotonic() - began).as_millis());
    created.expect("a new log").close().await.unwrap();
    fs.delete(&late).await.unwrap();
    logs.verify().await;
    fs.delete(&path("data")).await.unwrap();
}

/// A quota refuses new data, not reads and deletes; without it, writes continue.
async fn quota(env: &Env, fs: &HdfsFileSystem) {
    fs.delete(&path("limited")).await.unwrap();
    fs.make_dirs(&path("limited")).await.unwrap();
    let data = content(1, 3_000_000);
    write(fs, &path("limited/old"), &data).await;
    request("set-quota", 0);
    await_done();
    let refused = append(fs, &path("limited/new"), &data).await;
    assert!(matches!(refused, Err(Error::NoSpace { .. })), "{refused:?}");
    assert!(read_all(fs, &path("limited/old")).await == data, "a file is readable");
    fs.delete(&path("limited/new")).await.unwrap();
    let mut logs = Logs::start(env, fs, "elsewhere", SyncLevel::Visible).await;
    logs.commit(&data).await;
    logs.verify().await;
    request("clear-quota", 0);
    await_done();
    append(fs, &path("limited/new"), &data).await.expect("there is no quota");
    assert!(read_all(fs, &path("limited/new")).await == data);
    fs.delete(&path("limited")).await.unwrap();
}

async fn append(fs: &HdfsFileSystem, path: &FilePath, bytes: &Bytes) -> fs::Result<()> {
    let mut file = fs.create(path, AccessPattern::Data).await?;
    file.append(bytes.clone()).await?;
    file.sync(SyncLevel::Disk).await?;
    file.close().await
}
