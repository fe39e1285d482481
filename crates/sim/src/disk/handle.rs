//! The file system as one life of a process sees it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::BoxFuture;
use bytes::Bytes;
use fs::memory::MemoryFs;
use fs::{Error, Fence, FilePath, FileReader, FileStatus, FileSystem, FileWriter, Occupied, Purpose, Result};
use tokio::sync::oneshot;

use super::steps::{Moment, Sprung};
use super::writer::DiskWriter;
use super::{CallKind, Disk, DiskFaults, Fate};
use crate::ready::now;
use crate::scheduler::Owner;

/// The pause between two checks whether calls still hang.
const HANG_CHECK: Duration = Duration::from_millis(100);

/// A [`FileSystem`] of one life. See [`super`].
#[derive(Clone)]
pub struct DiskHandle {
    disk: Arc<Disk>,
    owner: Owner,
    process: Arc<str>,
    faults: Arc<Mutex<DiskFaults>>,
}

/// A call, for its latency and its error.
#[derive(Clone, Copy)]
pub(super) struct DiskCall<'a> {
    pub(super) kind: CallKind,
    pub(super) operation: &'static str,
    pub(super) path: &'a FilePath,
    /// The call takes effect after this time.
    pub(super) not_before: Duration,
}

impl DiskHandle {
    /// The view of one life.
    pub(crate) fn new(
        disk: &Arc<Disk>,
        owner: Owner,
        process: &str,
        faults: Arc<Mutex<DiskFaults>>,
    ) -> DiskHandle {
        DiskHandle { disk: disk.clone(), owner, process: process.into(), faults }
    }

    /// Makes a call. Returns the time of its effect, and a future of its result.
    ///
    /// A failing call has the effect or not, depending on the seed.
    pub(super) fn call<T: Send + 'static>(
        &self,
        call: DiskCall<'_>,
        effect: impl FnOnce(&MemoryFs, Fate) -> Result<T> + Send + 'static,
    ) -> (Duration, BoxFuture<'static, Result<T>>) {
        let faults = *self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let disk = &self.disk;
        let delay = disk.latency(call.kind) * faults.slowness;
        let at = (disk.scheduler.now() + delay).max(call.not_before);
        let fails = faults.failing_one_in > 0 && disk.random.one_in(faults.failing_one_in);
        let (answer, result) = oneshot::channel();
        let (handle, operation, path, kind) = (self.clone(), call.operation, call.path.clone(), call.kind);
        let epoch = disk.lock().epoch;
        let back = disk.latency(CallKind::Quick) * faults.slowness;
        disk.scheduler.at(at, move || {
            let disk = handle.disk.clone();
            let fate = disk.fate(handle.owner);
            if disk.lock().epoch != epoch || fate == Fate::Lost {
                return;
            }
            let is_alive = disk.scheduler.is_alive(handle.owner);
            let after = is_alive.then(|| handle.reach_step(kind, operation, &path)).flatten();
            if is_alive && !disk.scheduler.is_alive(handle.owner) {
                // It was killed at this step, before the effect.
                return;
            }
            let state = disk.lock();
            let injected = Error::io(&path, operation, "injected fault");
            let is_ignored = faults.ignores_syncs && kind == CallKind::Sync;
            let result = match fails && disk.random.one_in(2) {
                true => Err(injected.clone()),
                false => effect(&state.files, if is_ignored { Fate::Ignored } else { fate }),
            };
            drop(state);
            let result = if fails { Err(injected) } else { result };
            handle.record(operation, &path, result.is_ok());
            after.into_iter().for_each(Sprung::act);
            disk.scheduler.after(back, move || handle.answer(answer, result));
        });
        let result = async move {
            match result.await {
                Ok(result) => result,
                // The process has ended.
                Err(_) => std::future::pending().await,
            }
        };
        (at, Box::pin(result))
    }

    /// Counts a call. A trap before the call acts now, one after the call is returned.
    fn reach_step(&self, kind: CallKind, operation: &str, path: &FilePath) -> Option<Sprung> {
        let sprung = self.disk.reach_step(&self.process, kind, operation, path)?;
        if sprung.moment == Moment::After {
            return Some(sprung);
        }
        sprung.act();
        None
    }

    /// Sends the result to the process, unless calls hang.
    fn answer<T: Send + 'static>(self, answer: oneshot::Sender<Result<T>>, result: Result<T>) {
        let hangs = self.faults.lock().unwrap_or_else(PoisonError::into_inner).hangs;
        if hangs && !answer.is_closed() {
            let scheduler = self.disk.scheduler.clone();
            scheduler.after(HANG_CHECK, move || self.answer(answer, result));
        } else {
            let _ = answer.send(result);
        }
    }

    fn record(&self, operation: &str, path: &FilePath, is_ok: bool) {
        let timeline = &self.disk.timeline;
        let now = self.disk.scheduler.now();
        timeline.detail(now, &self.process, operation, path.as_str(), &[u64::from(is_ok)]);
    }

    fn simple<'a, T: Send + 'static>(
        &'a self,
        kind: CallKind,
        operation: &'static str,
        path: &'a FilePath,
        effect: impl FnOnce(&MemoryFs, &FilePath) -> Result<T> + Send + 'static,
    ) -> BoxFuture<'a, Result<T>> {
        // The call is made by the first poll: a future that is never polled has no effect.
        Box::pin(async move {
            let call = DiskCall { kind, operation, path, not_before: Duration::ZERO };
            let path = path.clone();
            self.call(call, move |files, _| effect(files, &path)).1.await
        })
    }

    fn sync<'a>(
        &'a self,
        operation: &'static str,
        path: &'a FilePath,
        effect: impl FnOnce(&MemoryFs, &FilePath) -> Result<()> + Send + 'static,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let call = DiskCall { kind: CallKind::Sync, operation, path, not_before: Duration::ZERO };
            let path = path.clone();
            let effect = move |files: &MemoryFs, fate| match fate {
                Fate::Ignored => Ok(()),
                _ => effect(files, &path),
            };
            self.call(call, effect).1.await
        })
    }
}

impl FileSystem for DiskHandle {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        Box::pin(async move {
            let purpose = purpose.clone();
            let created = self.simple(CallKind::Name, "create", path, move |files, path| {
                now(files.create_for(path, &purpose))
            });
            let writer = DiskWriter::new(self.clone(), created.await?);
            Ok(Box::new(writer) as Box<dyn FileWriter>)
        })
    }

    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        Box::pin(async move {
            let opened = self.simple(CallKind::Quick, "open", path, |files, path| now(files.open(path)));
            let reader = DiskReader { handle: self.clone(), inner: opened.await? };
            Ok(Arc::new(reader) as Arc<dyn FileReader>)
        })
    }

    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        let to = to.clone();
        self.simple(CallKind::Name, "rename", from, move |files, from| now(files.rename(from, &to)))
    }

    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.simple(CallKind::Name, "delete", path, |files, path| now(files.delete(path)))
    }

    fn delete_empty_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.simple(CallKind::Name, "delete", dir, |files, dir| now(files.delete_empty_dir(dir)))
    }

    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Option<FileStatus>>> {
        self.simple(CallKind::Quick, "stat", path, |files, path| now(files.stat(path)))
    }

    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Vec<FileStatus>>> {
        self.simple(CallKind::Quick, "list", dir, |files, dir| now(files.list(dir)))
    }

    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.simple(CallKind::Name, "make_dirs", dir, |files, dir| now(files.make_dirs(dir)))
    }

    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.sync("sync_dir", dir, |files, dir| now(files.sync_dir(dir)))
    }

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Fence>> {
        let fenced = self.sync("fence", path, |files, path| now(files.fence(path)).map(drop));
        Box::pin(async move { fenced.await.map(|()| Fence::Complete) })
    }

    fn occupy<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<Occupied>>> {
        Box::pin(async move {
            let found = self.stat(dir).await?;
            if found.is_none_or(|status| !status.is_dir) {
                return Err(Error::NotFound { path: dir.clone() });
            }
            if !self.disk.shows_processes {
                return Ok(None);
            }
            self.disk.lock().occupied.insert(dir.clone(), self.owner);
            Ok(Some(Box::new(OccupiedDir { disk: self.disk.clone(), dir: dir.clone() }) as Occupied))
        })
    }

    fn is_occupied<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<bool>>> {
        Box::pin(async move {
            self.stat(dir).await?;
            if !self.disk.shows_processes {
                return Ok(None);
            }
            let owner = self.disk.lock().occupied.get(dir).copied();
            Ok(Some(owner.is_some_and(|owner| self.disk.scheduler.is_alive(owner))))
        })
    }
}

/// The mark of a process that occupies a directory.
struct OccupiedDir {
    disk: Arc<Disk>,
    dir: FilePath,
}

impl Drop for OccupiedDir {
    fn drop(&mut self) {
        self.disk.lock().occupied.remove(&self.dir);
    }
}

struct DiskReader {
    handle: DiskHandle,
    inner: Arc<dyn FileReader>,
}

impl FileReader for DiskReader {
    fn path(&self) -> &FilePath {
        self.inner.path()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>> {
        let inner = self.inner.clone();
        self.handle
            .simple(CallKind::Quick, "read", self.inner.path(), move |_, _| now(inner.read_at(offset, len)))
    }
}
