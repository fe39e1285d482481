//! An arena: allocations are not freed one by one; all chunks are freed together.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

use base::pages::Pages;

/// Alignment of every allocation.
pub(super) const ALIGN: usize = 8;
/// Size of the first chunk. Thousands of regions with a few cells each must cost little.
const CHUNK_BYTES_MIN: usize = 4 << 10;
/// Largest size of a shared chunk. Each smaller chunk is as large as all chunks before it together.
pub(crate) const CHUNK_BYTES_MAX: usize = 2 << 20;
/// Smallest chunk that is allocated as pages. Freed pages return to the system instead of an
/// allocator's free list, because the block cache may need the memory.
const PAGES_BYTES_MIN: usize = 64 << 10;

/// Chunks of memory, freed when the arena is dropped.
pub(super) struct Arena {
    chunks: Vec<Chunk>,
    chunk_bytes: usize,
    // Total size of the shared chunks. Large allocations have chunks of their own.
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
        debug_assert!(len > 0, "a chunk has bytes");
        if len >= PAGES_BYTES_MIN {
            return Chunk::Pages(Pages::new(len));
        }
        let layout = Layout::from_size_align(len, ALIGN).expect("a chunk's length is far below isize::MAX");
        // SAFETY: the layout's size is not zero, as asserted above.
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
            // SAFETY: allocated with this layout. The owner drops the arena only when its memory is
            // no longer used.
            unsafe { dealloc(start.as_ptr(), *layout) };
        }
    }
}

// SAFETY: the arena owns its chunks and gives out each byte only once.
unsafe impl Send for Arena {}

impl Arena {
    /// An arena without memory.
    pub(super) fn new() -> Arena {
        Arena { chunks: Vec::new(), chunk_bytes: 0, shared_bytes: 0, free: ptr::null_mut(), free_len: 0 }
    }

    /// Bytes of all chunks.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Allocates `len` exclusive bytes, aligned to [`ALIGN`], valid until the arena is dropped.
    pub(super) fn allocate(&mut self, len: usize) -> NonNull<u8> {
        let len = len.next_multiple_of(ALIGN);
        if len > self.free_len {
            let chunk_len = self.shared_bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
            // A large allocation gets its own chunk, so that it does not waste the rest of the open
            // chunk.
            if len > chunk_len / 4 {
                return self.new_chunk(len);
            }
            self.free = self.new_chunk(chunk_len).as_ptr();
            self.free_len = chunk_len;
            self.shared_bytes += chunk_len;
        }
        let start = self.free;
        // SAFETY: at least `len` bytes of the chunk are left from `free` on.
        self.free = unsafe { start.add(len) };
        self.free_len -= len;
        debug_assert!(start.addr().is_multiple_of(ALIGN), "every allocation is aligned");
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
