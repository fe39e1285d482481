//! The kernel's asynchronous input and output (`io_submit`): a read past the page cache begins on the thread that asks
//! for it, and the same thread is told that it has ended, by a file descriptor that its runtime waits for with all others.
//!
//! Handing a read to a thread of a pool costs two sleeps and two awakenings, on a virtual machine three times what the
//! read itself does; one thread that waits for the ends of all reads still costs one of each. `io_uring` would do as well
//! (the figures are the same), but containers mostly forbid it, and this they allow.
//!
//! Each thread that reads has a queue, with a task of its runtime that tells who waits. It ends with the runtime.

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

/// Reads of a thread under way at a time; one too many goes another way. The kernel has as many as 128 such queues for all
/// processes as long as nobody sets `fs.aio-max-nr`.
const EVENTS_MAX: usize = 512;
/// Ends that are asked for at a time.
const REAPED_MAX: usize = 64;

// From the kernel's `linux/aio_abi.h` and `linux/fs.h`.
const IOCB_CMD_PREAD: u16 = 0;
const RWF_NOWAIT: u32 = 8;
const IOCB_FLAG_RESFD: u32 = 1;

/// What to do, as the kernel reads it (`struct iocb`).
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

/// What was done, as the kernel writes it (`struct io_event`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    iocb: u64,
    result: i64,
    result2: i64,
}

/// A queue of reads that the kernel works on.
pub(super) struct Aio {
    context: libc::c_ulong,
    /// What the kernel signals an end by. Never read: who waits for it is woken by each signal, and not by its state.
    signal: OwnedFd,
    under_way: AtomicUsize,
}

/// What a thread knows of its queue.
enum OfThread {
    /// It is there for as long as the thread's runtime has the task that tells of ends.
    Queue(Weak<Aio>),
    /// The system refused one, and is not asked again.
    Refused,
}

thread_local! {
    static OF_THREAD: RefCell<OfThread> = const { RefCell::new(OfThread::Queue(Weak::new())) };
}

/// The end of a read: the memory it was to fill, filled as far as it came. Errors are not told apart: whoever wants the
/// rest reads it in a way that waits, and meets them again.
pub(super) type Ended = oneshot::Receiver<Pages>;

/// A read under way. The kernel has the only pointer to it, in `data` of its order, until it tells of the end; so the memory
/// and the file stay for as long as it may need them.
struct Read {
    pages: Pages,
    _file: Arc<Handle>,
    ended: oneshot::Sender<Pages>,
}

impl Aio {
    /// The queue of this thread, made when it is first asked for; `None` where the system has none, or no more. To be called in a
    /// runtime, whose only thread this is.
    pub(super) fn of_thread() -> Option<Arc<Aio>> {
        OF_THREAD.with_borrow_mut(|of_thread| {
            let OfThread::Queue(queue) = of_thread else { return None };
            if let Some(aio) = queue.upgrade() {
                return Some(aio);
            }
            match Aio::start() {
                Ok(aio) => {
                    *queue = Arc::downgrade(&aio);
                    Some(aio)
                }
                Err(error) => {
                    tracing::info!(%error, "no asynchronous reads on this thread: its reads of files go through others");
                    *of_thread = OfThread::Refused;
                    None
                }
            }
        })
    }

    #[allow(clippy::disallowed_methods, reason = "the task is to run on this very thread")]
    fn start() -> std::io::Result<Arc<Aio>> {
        let signal = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // SAFETY: the descriptor is open and stays as it is until the registration owns it no more.
        let signalled = unsafe { AsyncFd::register_with_interest(signal.try_clone()?, Interest::READABLE)? };
        let mut context: libc::c_ulong = 0;
        // SAFETY: `context` is zero and writable, as the call wants it.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, EVENTS_MAX, &raw mut context) };
        answer(made)?;
        let aio = Arc::new(Aio { context, signal, under_way: AtomicUsize::new(0) });
        let telling = aio.clone();
        tokio::spawn(async move { telling.tell_of_ends(signalled).await });
        Ok(aio)
    }

    /// Begins to fill what is not filled yet of `pages` from `offset` of `file`, which is open past the page cache. Does not
    /// wait: where the kernel would have to (its queue is full, or it must look up on disk where the bytes are), the pages
    /// come back unfilled.
    pub(super) fn read(&self, file: &Arc<Handle>, pages: Pages, offset: u64) -> Result<Ended, Pages> {
        let (ended, receiver) = oneshot::channel();
        let filled = pages.as_ref().len();
        let mut order = Iocb {
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
        let read = Box::into_raw(Box::new(Read { pages, _file: file.clone(), ended }));
        order.data = read as u64;
        let mut orders = [&raw mut order];
        // Before it may have ended.
        self.under_way.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the context is there as long as `self`. The kernel copies the order, and `Read` keeps the memory and the file
        // that it names until `reap` hears of its end.
        let submitted =
            unsafe { libc::syscall(libc::SYS_io_submit, self.context, orders.len(), orders.as_mut_ptr()) };
        if submitted == 1 {
            return Ok(receiver);
        }
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: what was not submitted nobody else has a pointer to.
        Err(unsafe { Box::from_raw(read) }.pages)
    }

    /// Tells of ends, for as long as the runtime is there.
    async fn tell_of_ends(&self, signalled: AsyncFd<OwnedFd>) {
        loop {
            // An error is the end of the runtime.
            let Ok(mut signalled) = signalled.readable().await else { return };
            // First: what ends from here on signals again.
            signalled.clear_ready();
            while self.reap(0) == REAPED_MAX {}
        }
    }

    /// Tells of what has ended, once `at_least` so many have; how many.
    fn reap(&self, at_least: usize) -> usize {
        let mut events = [Event::default(); REAPED_MAX];
        let no_limit = std::ptr::null_mut::<libc::timespec>();
        let (context, room) = (self.context, events.len());
        // SAFETY: the context is there as long as `self`, and there is room for as many events as are asked for.
        let told = unsafe {
            libc::syscall(libc::SYS_io_getevents, context, at_least, room, events.as_mut_ptr(), no_limit)
        };
        // Interrupted; nothing else can happen to a queue that is there.
        let count = answer(told).unwrap_or(0);
        self.under_way.fetch_sub(count, Ordering::Relaxed);
        events[..count].iter().for_each(end);
        count
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // The kernel writes to the memory of what is under way: it must not be left to it. A disk answers, be it by an error.
        while self.under_way.load(Ordering::Relaxed) > 0 {
            self.reap(1);
        }
        // SAFETY: nothing is under way, and nobody else has the context.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

fn end(event: &Event) {
    // SAFETY: the pointer that `read` gave to the kernel, which tells of each end once.
    let Read { mut pages, ended, .. } = *unsafe { Box::from_raw(event.data as *mut Read) };
    let read = usize::try_from(event.result).unwrap_or(0);
    let filled = pages.fill(|spare| {
        // SAFETY: the kernel wrote to so many of them.
        Ok::<_, Errno>(unsafe { spare[..read].assume_init_mut() })
    });
    debug_assert_eq!(filled, Ok(read));
    // Nobody may wait any more.
    let _ = ended.send(pages);
}

fn answer(returned: libc::c_long) -> rustix::io::Result<usize> {
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

    /// A file whose pages differ, open past the page cache; `None` where that cannot be.
    #[allow(clippy::disallowed_methods, reason = "the file of a test, below the file system")]
    fn file(name: &str) -> Option<Arc<Handle>> {
        let path = std::env::temp_dir().join(format!("grampus-aio-{name}-{}", std::process::id()));
        let bytes: Vec<u8> = (0..PAGES).flat_map(|page| [page as u8; PAGE_BYTES]).collect();
        std::fs::write(&path, bytes).unwrap();
        // Pages that are not on disk yet would have to be waited for.
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        let opened = rustix::fs::open(&path, OFlags::RDONLY | OFlags::DIRECT, Mode::empty());
        std::fs::remove_file(&path).unwrap();
        Some(Handle::new(opened.ok()?, Arc::new(Pool::new("fs", 1))))
    }

    /// What a read of `pages` from page `from` on filled.
    async fn read(aio: &Aio, file: &Arc<Handle>, from: usize, pages: usize) -> Pages {
        let memory = Pages::new(pages * PAGE_BYTES);
        aio.read(file, memory, (from * PAGE_BYTES) as u64).unwrap().await.unwrap()
    }

    #[tokio::test]
    async fn many_reads_at_once_each_get_their_own() {
        let (Some(aio), Some(file)) = (Aio::of_thread(), file("many")) else { return };
        let under_way: Vec<_> = (0..500)
            .map(|index| (index % PAGES, index % 3 + 1))
            .map(|(from, pages)| {
                let memory = Pages::new(pages * PAGE_BYTES);
                (from, pages, aio.read(&file, memory, (from * PAGE_BYTES) as u64))
            })
            .collect();
        for (from, pages, ended) in under_way {
            // Where the disk's queue was full.
            let Ok(ended) = ended else { continue };
            let filled = ended.await.unwrap();
            // None if the kernel would have had to wait after it had begun.
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
    async fn a_read_behind_the_end_fills_nothing() {
        let (Some(aio), Some(file)) = (Aio::of_thread(), file("end")) else { return };
        assert!(read(&aio, &file, PAGES, 1).await.as_ref().is_empty());
        assert_eq!(read(&aio, &file, PAGES - 1, 4).await.as_ref().len(), PAGE_BYTES);
    }

    #[tokio::test]
    async fn a_read_that_nobody_waits_for_keeps_its_memory_to_the_end() {
        let (Some(aio), Some(file)) = (Aio::of_thread(), file("dropped")) else { return };
        for _ in 0..100 {
            drop(aio.read(&file, Pages::new(8 * PAGE_BYTES), 0));
        }
        assert!(read(&aio, &file, 3, 1).await.as_ref() == [3; PAGE_BYTES]);
    }

    #[tokio::test]
    async fn an_error_fills_nothing() {
        let Some(aio) = Aio::of_thread() else { return };
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
            assert!(queue.upgrade().is_none(), "of the runtime before");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (Some(aio), Some(file)) = (Aio::of_thread(), &file) else { return };
                assert!(read(&aio, file, 3, 1).await.as_ref() == [3; PAGE_BYTES]);
                queue = Arc::downgrade(&aio);
                // Not waited for by anybody, when the runtime ends.
                for _ in 0..100 {
                    drop(aio.read(file, Pages::new(8 * PAGE_BYTES), 0));
                }
            });
        }
    }
}
