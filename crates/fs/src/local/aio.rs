//! The kernel's asynchronous input and output (`io_submit`): a read past the page cache begins on the thread that asks
//! for it, and one thread for all of them tells who waits that it has ended.
//!
//! Handing a read to a thread of a pool costs two sleeps and two awakenings, on a virtual machine three times what the
//! read itself does. `io_uring` would do as well (the figures are the same), but containers mostly forbid it, and this
//! they allow.
//!
//! There is one queue for the process, for its thread cannot be ended without asking who has a read under way; and it
//! stays empty where nothing is read past the page cache.

use std::os::fd::AsRawFd;
use std::sync::{Arc, OnceLock};

use base::pages::Pages;
use base::pool::Pool;
use rustix::io::Errno;
use tokio::sync::oneshot;

use super::handle::Handle;

/// Reads under way at a time; the kernel keeps 32 bytes for each, and one too many goes another way.
const EVENTS_MAX: usize = 1024;
/// Ends that are asked for at a time.
const REAPED_MAX: usize = 64;

// From the kernel's `linux/aio_abi.h` and `linux/fs.h`.
const IOCB_CMD_PREAD: u16 = 0;
const RWF_NOWAIT: u32 = 8;

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
    /// Its thread tells of what has ended, for as long as the process runs.
    _reaper: Pool,
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
    /// The process's queue, made when it is first asked for; `None` where the system has none.
    pub(super) fn of_process() -> Option<&'static Aio> {
        static AIO: OnceLock<Option<Aio>> = OnceLock::new();
        AIO.get_or_init(|| match Aio::start() {
            Ok(aio) => Some(aio),
            Err(errno) => {
                tracing::info!(%errno, "no asynchronous reads here: reads of files go through threads");
                None
            }
        })
        .as_ref()
    }

    fn start() -> rustix::io::Result<Aio> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: `context` is zero and writable, as the call wants it.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, EVENTS_MAX, &raw mut context) };
        answer(made)?;
        let reaper = Pool::new("aio", 1);
        reaper.execute(move || reap(context));
        Ok(Aio { context, _reaper: reaper })
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
            ..Iocb::default()
        };
        let read = Box::into_raw(Box::new(Read { pages, _file: file.clone(), ended }));
        order.data = read as u64;
        let mut orders = [&raw mut order];
        // SAFETY: the context is never destroyed. The kernel copies the order, and `Read` keeps the memory and the file that
        // it names until `reap` hears of its end.
        let submitted =
            unsafe { libc::syscall(libc::SYS_io_submit, self.context, orders.len(), orders.as_mut_ptr()) };
        if submitted == 1 {
            return Ok(receiver);
        }
        // SAFETY: what was not submitted nobody else has a pointer to.
        Err(unsafe { Box::from_raw(read) }.pages)
    }
}

/// Tells of ends, for ever.
fn reap(context: libc::c_ulong) {
    let mut events = [Event::default(); REAPED_MAX];
    loop {
        let no_limit = std::ptr::null_mut::<libc::timespec>();
        // SAFETY: the context is never destroyed, and there is room for as many events as are asked for.
        let told = unsafe {
            libc::syscall(libc::SYS_io_getevents, context, 1, events.len(), events.as_mut_ptr(), no_limit)
        };
        match answer(told) {
            Ok(count) => events[..count].iter().for_each(end),
            Err(Errno::INTR) => {}
            Err(errno) => unreachable!("a queue that is there, and room for events: {errno}"),
        }
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
    fn read(aio: &Aio, file: &Arc<Handle>, from: usize, pages: usize) -> Pages {
        let memory = Pages::new(pages * PAGE_BYTES);
        aio.read(file, memory, (from * PAGE_BYTES) as u64).unwrap().blocking_recv().unwrap()
    }

    #[test]
    fn many_reads_at_once_each_get_their_own() {
        let (Some(aio), Some(file)) = (Aio::of_process(), file("many")) else { return };
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
            let filled = ended.blocking_recv().unwrap();
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

    #[test]
    fn a_read_behind_the_end_fills_nothing() {
        let (Some(aio), Some(file)) = (Aio::of_process(), file("end")) else { return };
        assert!(read(aio, &file, PAGES, 1).as_ref().is_empty());
        assert_eq!(read(aio, &file, PAGES - 1, 4).as_ref().len(), PAGE_BYTES);
    }

    #[test]
    fn a_read_that_nobody_waits_for_keeps_its_memory_to_the_end() {
        let (Some(aio), Some(file)) = (Aio::of_process(), file("dropped")) else { return };
        for _ in 0..100 {
            drop(aio.read(&file, Pages::new(8 * PAGE_BYTES), 0));
        }
        assert!(read(aio, &file, 3, 1).as_ref() == [3; PAGE_BYTES]);
    }

    #[test]
    fn an_error_fills_nothing() {
        let Some(aio) = Aio::of_process() else { return };
        let dir = rustix::fs::open(std::env::temp_dir(), OFlags::RDONLY, Mode::empty()).unwrap();
        let dir = Handle::new(dir, Arc::new(Pool::new("fs", 1)));
        match aio.read(&dir, Pages::new(PAGE_BYTES), 0) {
            Ok(ended) => assert!(ended.blocking_recv().unwrap().as_ref().is_empty()),
            Err(unfilled) => assert!(unfilled.as_ref().is_empty()),
        }
    }
}
