//! Memory that is given out and never taken back: chunks that are freed together.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

use base::pages::Pages;

/// Alignment of all that is given out.
pub(super) const ALIGN: usize = 8;
/// Size of the first chunk: thousands of regions with a handful of cells each must cost little.
const CHUNK_BYTES_MIN: usize = 4 << 10;
/// Size that chunks grow to, each as large as all before it together.
const CHUNK_BYTES_MAX: usize = 2 << 20;
/// Chunks from this size on are pages, which go back to the system at once: the block cache may want the memory.
const PAGES_BYTES_MIN: usize = 64 << 10;

/// Chunks of memory; freed when it is dropped.
pub(super) struct Arena {
    chunks: Vec<Chunk>,
    chunk_bytes: usize,
    // Without what got memory of its own.
    shared_bytes: usize,
    free: *mut u8,
    free_len: usize,
}

enum Chunk {
    Small(NonNull<u8>, Layout),
    Pages(Pages),
}

impl Chunk {
    fn new(len: usize) -> Chunk {
        if len >= PAGES_BYTES_MIN {
            return Chunk::Pages(Pages::new(len));
        }
        let layout = Layout::from_size_align(len, ALIGN).expect("a chunk's length is far below isize::MAX");
        // SAFETY: the layout's size is not zero: nothing empty is asked for.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        Chunk::Small(start, layout)
    }

    fn start(&self) -> NonNull<u8> {
        match self {
            Chunk::Small(start, _) => *start,
            Chunk::Pages(pages) => pages.start(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Chunk::Small(_, layout) => layout.size(),
            Chunk::Pages(pages) => pages.capacity(),
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Chunk::Small(start, layout) = self {
            // SAFETY: allocated with this layout; whoever drops the arena says that nobody uses its memory any more.
            unsafe { dealloc(start.as_ptr(), *layout) };
        }
    }
}

// SAFETY: the arena owns its chunks, and hands out each byte once.
unsafe impl Send for Arena {}

impl Arena {
    /// No memory yet.
    pub(super) fn new() -> Arena {
        Arena { chunks: Vec::new(), chunk_bytes: 0, shared_bytes: 0, free: ptr::null_mut(), free_len: 0 }
    }

    /// Bytes of all chunks.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// `len` bytes that nobody else uses, aligned to [`ALIGN`], valid until the arena is dropped.
    pub(super) fn allocate(&mut self, len: usize) -> NonNull<u8> {
        let len = len.next_multiple_of(ALIGN);
        if len > self.free_len {
            let chunk_len = self.shared_bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
            // What is large gets memory of its own, so that the rest of the open chunk is not given up for it.
            if len > chunk_len / 4 {
                return self.new_chunk(len);
            }
            self.free = self.new_chunk(chunk_len).as_ptr();
            self.free_len = chunk_len;
            self.shared_bytes += chunk_len;
        }
        let start = self.free;
        // SAFETY: at least `len` bytes of the chunk are left behind `free`.
        self.free = unsafe { start.add(len) };
        self.free_len -= len;
        NonNull::new(start).expect("within a chunk")
    }

    fn new_chunk(&mut self, len: usize) -> NonNull<u8> {
        let chunk = Chunk::new(len);
        let start = chunk.start();
        self.chunk_bytes += chunk.bytes();
        self.chunks.push(chunk);
        start
    }
}
