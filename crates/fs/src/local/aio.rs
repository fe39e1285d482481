//! The kernel's asynchronous I/O (`io_submit`) for direct reads. A read starts on the calling
//! thread, and the same thread is notified of its completion through a file descriptor that its
//! runtime polls with all others.
//!
//! Passing a read to a pool thread costs two sleeps and two wake-ups, on a virtual machine three
//! times the cost of the read itself. A single thread that waits for the completions of all reads
//! still costs one of each. `io_uring` performs equally well (measured), but most containers forbid
//! it, while they allow this interface.
//!
//! Each reading thread has a queue, with a task on its runtime that notifies the waiters. The queue
//! ends with the runtime.

use std::cell::RefCell;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use base::pages::Pages;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

use super::handle::Handle;

/// Maximum concurrent reads of a thread; further reads use another path. By default
/// (`fs.aio-max-nr`) the kernel has 128 queues of this size for all processes.
const EVENTS_MAX: usize = 512;
/// Completions fetched per call.
const REAPED_MAX: usize = 64;

// From the kernel's `linux/aio_abi.h` and `linux/fs.h`.
const IOCB_CMD_PREAD: u16 = 0;
const RWF_NOWAIT: u32 = 8;
const IOCB_FLAG_RESFD: u32 = 1;

/// A request in the kernel's layout (`struct iocb`).
#[repr(C)]
#[derive(Default)]
struct Iocb {
    data: u64,
    #[cfg(target_endian = "little")]
    key: u32,
    rw_flags: u32,
    #[cfg(target_endian = "big")]
    key: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    eventfd: u32,
}

/// A completion in the kernel's layout (`struct io_event`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    iocb: u64,
    result: i64,
    result2: i64,
}

/// A queue of reads in the kernel.
pub(super) struct Aio {
    context: libc::c_ulong,
    /// The kernel signals completions here. The eventfd is never read: its waiter is
    /// edge-triggered, so the state does not matter.
    signal: OwnedFd,
    in_progress: AtomicUsize,
}

/// State of a thread's queue.
enum ThreadQueue {
    /// The queue lives as long as the runtime's task that delivers completions.
    Queue(Weak<Aio>),
    /// The system refused to create a queue; the thread does not retry.
    Unavailable,
}

thread_local! {
    static THREAD_QUEUE: RefCell<ThreadQueue> = const { RefCell::new(ThreadQueue::Queue(Weak::new())) };
}

/// Completion of a read: the memory, filled up to where the read got. Errors are not distinguished:
/// a caller that needs the rest does a blocking read, which meets the error again.
pub(super) type Completion = oneshot::Receiver<Pages>;

/// A read in progress. The kernel holds the only pointer to it, in `data` of the request, until
/// completion. So memory and file live as long as the kernel needs them.
struct PendingRead {
    pages: Pages,
    _file: Arc<Handle>,
    ended: oneshot::Sender<Pages>,
}

impl Aio {
    /// The queue of this thread, created on first use; `None` if the system has none left or does
    /// not support them. Must be called within a single-threaded runtime.
    pub(super) fn thread_queue() -> Option<Arc<Aio>> {
        THREAD_QUEUE.with_borrow_mut(|thread_queue| {
            let ThreadQueue::Queue(queue) = thread_queue else { return None };
            if let Some(aio) = queue.upgrade() {
                return Some(aio);
            }
            match Aio::start() {
                Ok(aio) => {
                    *queue = Arc::downgrade(&aio);
                    Some(aio)
                }
                Err(error) => {
                    tracing::info!(%error, "asynchronous reads are unavailable on this thread; using the thread pool");
                    *thread_queue = ThreadQueue::Unavailable;
                    None
                }
            }
        })
    }

    #[allow(clippy::disallowed_methods, reason = "the task must run on this thread")]
    fn start() -> std::io::Result<Arc<Aio>> {
        let signal = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // SAFETY: the descriptor is open and does not change until the registration drops it.
        let signalled = unsafe { AsyncFd::register_with_interest(signal.try_clone()?, Interest::READABLE)? };
        let mut context: libc::c_ulong = 0;
        // SAFETY: `context` is zero and writable, as the call requires.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, EVENTS_MAX, &raw mut context) };
        syscall_result(made)?;
        let aio = Arc::new(Aio { context, signal, in_progress: AtomicUsize::new(0) });
        let delivering = aio.clone();
        tokio::spawn(async move { delivering.deliver_completions(signalled).await });
        Ok(aio)
    }

    /// Starts to fill the unfilled bytes of `pages` from `offset` of `file`, which must be open for
    /// direct I/O. Never waits: returns the pages unfilled if the kernel would have to wait
    /// (because its queue is full, or it must look up the file's blocks on disk).
    pub(super) fn read(&self, file: &Arc<Handle>, pages: Pages, offset: u64) -> Result<Completion, Pages> {
        let (ended, receiver) = oneshot::channel();
        let filled = pages.as_ref().len();
        let mut request = Iocb {
            rw_flags: RWF_NOWAIT,
            opcode: IOCB_CMD_PREAD,
            fd: file.fd().as_raw_fd().cast_unsigned(),
            buffer: pages.start().as_ptr() as u64 + filled as u64,
            bytes: (pages.capacity() - filled) as u64,
            offset: offset.cast_signed(),
            flags: IOCB_FLAG_RESFD,
            eventfd: self.signal.as_fd().as_raw_fd().cast_unsigned(),
            ..Iocb::default()
        };
        let read = Box::into_raw(Box::new(PendingRead { pages, _file: file.clone(), ended }));
        request.data = read as u64;
        let mut requests = [&raw mut request];
        // Must precede the completion.
        self.in_progress.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the context lives as long as `self`. The kernel copies the request, and
        // `PendingRead` holds the memory and the file that it refers to until `reap` gets its
        // completion.
        let submitted = unsafe {
            libc::syscall(libc::SYS_io_submit, self.context, requests.len(), requests.as_mut_ptr())
        };
        if submitted == 1 {
            return Ok(receiver);
        }
        self.in_progress.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the read was not submitted, so no other pointer to it exists.
        Err(unsafe { Box::from_raw(read) }.pages)
    }

    /// Delivers completions as long as the runtime lives.
    async fn deliver_completions(&self, signalled: AsyncFd<OwnedFd>) {
        loop {
            // An error means that the runtime has ended.
            let Ok(mut signalled) = signalled.readable().await else { return };
            // Clear before reaping: later completions signal again.
            signalled.clear_ready();
            while self.reap(0) == REAPED_MAX {}
        }
    }

    /// Delivers completions, after waiting for `at_least` of them. Returns their number.
    fn reap(&self, at_least: usize) -> usize {
        let mut events = [Event::default(); REAPED_MAX];
        let no_limit = std::ptr::null_mut::<libc::timespec>();
        let (context, capacity) = (self.context, events.len());
        // SAFETY: the context lives as long as `self`, and `events` has space for as many events as
        // requested.
        let received = unsafe {
            libc::syscall(libc::SYS_io_getevents, context, at_least, capacity, events.as_mut_ptr(), no_limit)
        };
        // Interrupted; a live queue has no other errors.
        let count = syscall_result(received).unwrap_or(0);
        let before = self.in_progress.fetch_sub(count, Ordering::Relaxed);
        debug_assert!(count <= before, "a read is counted until its completion");
        events[..count].iter().for_each(deliver);
        count
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // The kernel still writes to the memory of reads in progress, so wait for them. A disk
        // always responds, at least with an error.
        while self.in_progress.load(Ordering::Relaxed) > 0 {
            self.reap(1);
        }
        // SAFETY: no read is in progress, and no other code has the context.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

fn deliver(event: &Event) {
    // SAFETY: the pointer that `read` passed to the kernel, which reports each completion once.
    let PendingRead { mut pages, ended, .. } = *unsafe { Box::from_raw(event.data as *mut PendingRead) };
    let read = usize::try_from(event.result).unwrap_or(0);
    let filled = pages.fill(|spare| {
        // SAFETY: the kernel wrote this many bytes.
        Ok::<_, Errno>(unsafe { spare[..read].assume_init_mut() })
    });
    debug_assert_eq!(filled, Ok(read));
    // The waiter may be gone.
    let _ = ended.send(pages);
}

fn syscall_result(returned: libc::c_long) -> rustix::io::Result<usize> {
    usize::try_from(returned)
        .map_err(|_| Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use base::pages::PAGE_BYTES;
    use base::pool::Pool;
    use rustix::fs::{Mode, OFlags};

    use super::*;

    const PAGES: usize = 40;

    /// A file with different pages, open for direct I/O; `None` if that is unsupported.
    #[allow(clippy::disallowed_methods, reason = "the file of a test, below the file system")]
    fn file(name: &str) -> Option<Arc<Handle>> {
        let path = std::env::temp_dir().join(format!("grampus-aio-{name}-{}", std::process::id()));
        let bytes: Vec<u8> = (0..PAGES).flat_map(|page| [page as u8; PAGE_BYTES]).collect();
        std::fs::write(&path, bytes).unwrap();
        // Reads of pages that are not on disk yet would have to wait.
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        let opened = rustix::fs::open(&path, OFlags::RDONLY | OFlags::DIRECT, Mode::empty());
        std::fs::remove_file(&path).unwrap();
        Some(Handle::new(opened.ok()?, Arc::new(Pool::new("fs", 1))))
    }

    /// The result of reading `pages` pages from page `from`.
    async fn read(aio: &Aio, file: &Arc<Handle>, from: usize, pages: usize) -> Pages {
        let memory = Pages::new(pages * PAGE_BYTES);
        aio.read(file, memory, (from * PAGE_BYTES) as u64).unwrap().await.unwrap()
    }

    #[tokio::test]
    async fn concurrent_reads_each_get_their_own_bytes() {
        let (Some(aio), Some(file)) = (Aio::thread_queue(), file("many")) else { return };
        let under_way: Vec<_> = (0..500)
            .map(|index| (index % PAGES, index % 3 + 1))
            .map(|(from, pages)| {
                let memory = Pages::new(pages * PAGE_BYTES);
                (from, pages, aio.read(&file, memory, (from * PAGE_BYTES) as u64))
            })
            .collect();
        for (from, pages, ended) in under_way {
            // The disk's queue was full.
            let Ok(ended) = ended else { continue };
            let filled = ended.await.unwrap();
            // Unfilled if the kernel would have had to wait after starting.
            if filled.as_ref().is_empty() {
                continue;
            }
            assert_eq!(filled.as_ref().len(), pages.min(PAGES - from) * PAGE_BYTES);
            assert!(
                (0..filled.as_ref().len()).all(|at| filled.as_ref()[at] == (from + at / PAGE_BYTES) as u8)
            );
        }
    }

    #[tokio::test]
    async fn a_read_after_the_end_fills_nothing() {
        let (Some(aio), Some(file)) = (Aio::thread_queue(), file("end")) else { return };
        assert!(read(&aio, &file, PAGES, 1).await.as_ref().is_empty());
        assert_eq!(read(&aio, &file, PAGES - 1, 4).await.as_ref().len(), PAGE_BYTES);
    }

    #[tokio::test]
    async fn a_dropped_read_keeps_its_memory_until_completion() {
        let (Some(aio), Some(file)) = (Aio::thread_queue(), file("dropped")) else { return };
        for _ in 0..100 {
            drop(aio.read(&file, Pages::new(8 * PAGE_BYTES), 0));
        }
        assert!(read(&aio, &file, 3, 1).await.as_ref() == [3; PAGE_BYTES]);
    }

    #[tokio::test]
    async fn an_error_fills_nothing() {
        let Some(aio) = Aio::thread_queue() else { return };
        let dir = rustix::fs::open(std::env::temp_dir(), OFlags::RDONLY, Mode::empty()).unwrap();
        let dir = Handle::new(dir, Arc::new(Pool::new("fs", 1)));
        match aio.read(&dir, Pages::new(PAGE_BYTES), 0) {
            Ok(ended) => assert!(ended.await.unwrap().as_ref().is_empty()),
            Err(unfilled) => assert!(unfilled.as_ref().is_empty()),
        }
    }

    #[test]
    fn a_queue_ends_with_its_runtime_and_the_next_one_has_another() {
        let file = file("runtimes");
        let mut queue = Weak::new();
        for _ in 0..3 {
            assert!(queue.upgrade().is_none(), "the queue of the previous runtime still exists");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (Some(aio), Some(file)) = (Aio::thread_queue(), &file) else { return };
                assert!(read(&aio, file, 3, 1).await.as_ref() == [3; PAGE_BYTES]);
                queue = Arc::downgrade(&aio);
                // These reads have no waiter when the runtime ends.
                for _ in 0..100 {
                    drop(aio.read(file, Pages::new(8 * PAGE_BYTES), 0));
                }
            });
        }
    }
}
