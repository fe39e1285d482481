//! The sorted list under the memstore: a skip list whose nodes and cells lie in chunks of one arena.
//!
//! One writer at a time (it holds the list's lock through [`Writer`]), any number of readers that take no lock.
//! Nothing is ever freed or moved, so what a reader found stays valid as long as the list; all memory goes at once
//! with the last reference to the list. A cell is unlinked only by another one of its key and sequence id, that is, by
//! the write that it belongs to, which no reader sees yet.
//!
//! ```text
//! node, 8-aligned:  prefix 8 | seq id 8 | key len 4 | value len 4 | tags len 2 | height 1 | - 5
//!                   | next 8 x height | key | value | tags
//! ```
//!
//! Eight bytes of the row stand in the node as one number, so most comparisons are one compare of integers; links and
//! key lie beside it, so a comparison rarely touches a second cache line. They are those behind what rows are expected
//! to have in common: the first ones often tell nothing apart (`user…`, numbers with zeros in front).
//!
//! All `unsafe` of the memstore is here. What it rests on:
//! 1. a node's fields and bytes are written before the node is linked, and never again (its links apart, which are
//!    atomics);
//! 2. a link is stored with Release after (1) and loaded with Acquire, so who sees a node sees it whole;
//! 3. chunks are freed only when the list is dropped, and every [`Cursor`] holds the list;
//! 4. pointers to nodes come from the chunk's own pointer, so they may reach the bytes behind the node.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cmp::Ordering;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cell::{Cell, CellOrder, key};

/// Levels at most. With one node in four on the next level, twelve serve 16 M cells without getting slower.
const HEIGHT_MAX: usize = 12;
/// Size of the first chunk: thousands of regions with a handful of cells each must cost little.
const CHUNK_BYTES_MIN: usize = 4 << 10;
/// Size that chunks grow to, each as large as all before it together.
const CHUNK_BYTES_MAX: usize = 2 << 20;
/// Levels at which the last insert's neighbourhood is tried before a search from the top.
const HINT_LEVELS: usize = 3;
/// Cells that a forward seek steps over before it searches from the top.
const SEEK_STEPS: usize = 4;

const ALIGN: usize = align_of::<Node>();
const NODE_LEN: usize = size_of::<Node>();
const LINK_LEN: usize = size_of::<Link>();
const _: () = assert!(ALIGN == 8 && NODE_LEN == 32 && LINK_LEN == 8);

/// The fixed part of a node; links, key, value and tags follow it.
#[repr(C)]
struct Node {
    prefix: u64,
    seq_id: u64,
    key_len: u32,
    value_len: u32,
    tags_len: u16,
    height: u8,
}

type Link = AtomicPtr<Node>;

/// A sorted list of cells that only grows.
pub(super) struct List {
    order: CellOrder,
    // What rows are expected to begin with; settled before the first cell is inserted. Who reads before that sees none of
    // those cells: they are newer than its read point.
    common: OnceLock<Box<[u8]>>,
    head: [Link; HEIGHT_MAX],
    // Levels in use; a hint for readers, who may as well start too high or too low.
    height: AtomicU8,
    chunk_bytes: AtomicU64,
    state: Mutex<WriterState>,
}

/// What only the writer needs.
struct WriterState {
    chunks: Vec<Chunk>,
    free: *mut u8,
    free_len: usize,
    random: u64,
    // The last insert's place: per level the last node before what was inserted (null: the head), and where that was
    // linked, the node itself. Rows that come in order are thus appended without a search.
    hint: [*mut Node; HEIGHT_MAX],
}

struct Chunk {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the raw pointers lead into chunks that the list owns; readers only follow links (invariants 1 and 2) and the
// writer's pointers are used under its lock.
unsafe impl Send for List {}
// SAFETY: as above.
unsafe impl Sync for List {}

impl Drop for List {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for chunk in &state.chunks {
            // SAFETY: allocated with this layout; nobody holds the list any more (invariant 3).
            unsafe { dealloc(chunk.start.as_ptr(), chunk.layout) };
        }
    }
}

/// What a comparison needs of the key that is looked for.
struct Target<'a> {
    prefix: u64,
    key: &'a [u8],
}

/// A number of a row that orders as the rows do, as far as it tells them apart: the eight bytes behind `common`; rows that
/// do not begin so are before or behind all that do.
#[inline]
fn prefix_of(order: CellOrder, common: &[u8], key: &[u8]) -> u64 {
    if order != CellOrder::Plain {
        return 0;
    }
    let row = key::row(key);
    let Some(rest) = row.strip_prefix(common) else {
        return if row < common { 0 } else { u64::MAX };
    };
    let number = match rest.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut padded = [0; 8];
            padded[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(padded)
        }
    };
    number.clamp(1, u64::MAX - 1)
}

impl List {
    pub(super) fn new(order: CellOrder) -> List {
        List {
            order,
            common: OnceLock::new(),
            head: [const { AtomicPtr::new(ptr::null_mut()) }; HEIGHT_MAX],
            height: AtomicU8::new(1),
            chunk_bytes: AtomicU64::new(0),
            state: Mutex::new(WriterState {
                chunks: Vec::new(),
                free: ptr::null_mut(),
                free_len: 0,
                random: 0x9e37_79b9_7f4a_7c15,
                hint: [ptr::null_mut(); HEIGHT_MAX],
            }),
        }
    }

    /// Bytes of memory that hold the cells.
    pub(super) fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes.load(Relaxed)
    }

    pub(super) fn order(&self) -> CellOrder {
        self.order
    }

    /// Says what most rows will begin with, if there is no cell yet.
    pub(super) fn expect_common(&self, common: &[u8]) {
        // Settled before: it stays.
        let _ = self.common.set(common.into());
    }

    #[inline]
    fn target<'a>(&self, key: &'a [u8]) -> Target<'a> {
        let common = self.common.get().map(|common| &common[..]).unwrap_or_default();
        Target { prefix: prefix_of(self.order, common, key), key }
    }

    /// Becomes the one writer. A writer that panicked left the list whole: a node is linked last.
    pub(super) fn write(&self) -> Writer<'_> {
        Writer { list: self, state: self.state.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// The first cell and the last one.
    pub(super) fn first_and_last(&self) -> Option<(Cell<'_>, Cell<'_>)> {
        let (first, last) = (self.next(ptr::null_mut(), 0), self.search(|_| true).0);
        let is_empty = first.is_null() || last.is_null();
        // SAFETY: linked nodes of this list.
        (!is_empty).then(|| unsafe { (cell_of(first), cell_of(last)) })
    }

    /// The node behind `node` on `level`; a null `node` is the head.
    #[inline]
    fn next(&self, node: *mut Node, level: usize) -> *mut Node {
        self.link(node, level).load(Acquire)
    }

    #[inline]
    fn link(&self, node: *mut Node, level: usize) -> &Link {
        if node.is_null() {
            return &self.head[level];
        }
        // SAFETY: a node met on a level has a link of that level behind its fixed part (invariants 1, 2 and 4), and
        // lives as long as the list.
        unsafe { &*node.cast::<u8>().add(NODE_LEN).cast::<Link>().add(level) }
    }

    #[inline]
    fn compare_key(&self, node: *mut Node, target: &Target<'_>) -> Ordering {
        debug_assert!(!node.is_null());
        // SAFETY: a linked node is whole (invariants 1 and 2).
        let prefix = unsafe { (*node).prefix };
        // SAFETY: as above.
        prefix.cmp(&target.prefix).then_with(|| self.order.compare_keys(unsafe { key_of(node) }, target.key))
    }

    /// Whether the node comes before a cell of the target's key and of `seq_id`.
    #[inline]
    fn is_before(&self, node: *mut Node, target: &Target<'_>, seq_id: u64) -> bool {
        // SAFETY: a linked node is whole.
        self.compare_key(node, target).then_with(|| seq_id.cmp(unsafe { &(*node).seq_id })) == Ordering::Less
    }

    /// The last node for which `is_before` holds (null: none), and the node behind it (null: none).
    #[inline]
    fn search(&self, is_before: impl Fn(*mut Node) -> bool) -> (*mut Node, *mut Node) {
        let mut at = ptr::null_mut();
        let mut beyond = ptr::null_mut();
        for level in (0..usize::from(self.height.load(Relaxed))).rev() {
            loop {
                let next = self.next(at, level);
                // What stopped the level above stops this one too.
                if next.is_null() || next == beyond {
                    beyond = next;
                    break;
                }
                self.prefetch_below(at, level);
                if !is_before(next) {
                    beyond = next;
                    break;
                }
                at = next;
            }
        }
        (at, beyond)
    }

    /// Fetches the node that comes next on the level below, while the one on `level` is looked at: on the way down most
    /// steps lead to one of the two, and each would wait for memory.
    #[inline]
    fn prefetch_below(&self, at: *mut Node, level: usize) {
        if level > 0 {
            prefetch(self.link(at, level - 1).load(Relaxed));
        }
    }
}

/// Tells the processor that the node will be looked at; a hint, for any address.
#[inline]
fn prefetch(node: *mut Node) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program sees, and faults for no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(node.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = node;
}

/// # Safety
/// `node` is a linked node of a list that outlives `'a`.
#[inline]
unsafe fn key_of<'a>(node: *mut Node) -> &'a [u8] {
    // SAFETY: the key lies behind the links (invariants 1 and 4).
    unsafe {
        let at = node.cast::<u8>().add(NODE_LEN + LINK_LEN * usize::from((*node).height));
        std::slice::from_raw_parts(at, (*node).key_len as usize)
    }
}

/// # Safety
/// As for [`key_of`].
#[inline]
unsafe fn cell_of<'a>(node: *mut Node) -> Cell<'a> {
    // SAFETY: key, value and tags lie behind the links (invariants 1 and 4).
    unsafe {
        let key = key_of(node);
        let value = std::slice::from_raw_parts(key.as_ptr().add(key.len()), (*node).value_len as usize);
        let tags = std::slice::from_raw_parts(value.as_ptr().add(value.len()), usize::from((*node).tags_len));
        Cell { key, value, tags, seq_id: (*node).seq_id }
    }
}

/// The one writer of a list, as long as it lives.
pub(super) struct Writer<'a> {
    list: &'a List,
    state: MutexGuard<'a, WriterState>,
}

impl Writer<'_> {
    /// Copies a cell into its place, and into that of a cell with the same key and sequence id.
    pub(super) fn insert(&mut self, cell: &Cell<'_>) {
        let list = self.list;
        list.common.get_or_init(Box::default);
        let target = list.target(cell.key);
        let height = self.state.random_height();
        if height > usize::from(list.height.load(Relaxed)) {
            list.height.store(height as u8, Relaxed);
        }
        self.find_place(&target, cell.seq_id);
        let replaced = self.equal_behind_hint(&target, cell.seq_id);
        let node = self.make_node(&target, cell, height);
        for level in 0..height {
            let before = self.state.hint[level];
            let mut behind = list.next(before, level);
            if behind == replaced && !behind.is_null() {
                behind = list.next(behind, level);
            }
            list.link(node, level).store(behind, Relaxed);
            // Release: whoever meets the node sees all that was written to it (invariant 2).
            list.link(before, level).store(node, Release);
            self.state.hint[level] = node;
        }
        for level in height..if replaced.is_null() { 0 } else { HEIGHT_MAX } {
            let before = self.state.hint[level];
            if list.next(before, level) == replaced {
                list.link(before, level).store(list.next(replaced, level), Release);
            }
        }
    }

    /// The node behind the hint if it has the target's key and sequence id, else null.
    fn equal_behind_hint(&self, target: &Target<'_>, seq_id: u64) -> *mut Node {
        let node = self.list.next(self.state.hint[0], 0);
        // SAFETY: a linked node is whole.
        let is_equal = !node.is_null()
            && unsafe { (*node).seq_id } == seq_id
            && self.list.compare_key(node, target) == Ordering::Equal;
        if is_equal { node } else { ptr::null_mut() }
    }

    /// Sets the hint to the last nodes before the target, per level.
    fn find_place(&mut self, target: &Target<'_>, seq_id: u64) {
        let list = self.list;
        let hint = &mut self.state.hint;
        let is_before = |node: *mut Node| node.is_null() || list.is_before(node, target, seq_id);
        let is_behind = |node: *mut Node| node.is_null() || !list.is_before(node, target, seq_id);
        // The hint is exact for the cell inserted last: its nodes stand before that cell, their successors behind it.
        // So where it brackets the target on one level, it does on all levels above.
        let fitting = (0..HINT_LEVELS)
            .find(|level| is_before(hint[*level]) && is_behind(list.next(hint[*level], *level)));
        let (mut at, from) = match fitting {
            Some(level) => (hint[level], level),
            None => (ptr::null_mut(), HEIGHT_MAX),
        };
        let mut beyond = ptr::null_mut();
        for level in (0..from).rev() {
            loop {
                let next = list.next(at, level);
                if next.is_null() || next == beyond {
                    beyond = next;
                    break;
                }
                list.prefetch_below(at, level);
                if is_behind(next) {
                    beyond = next;
                    break;
                }
                at = next;
            }
            hint[level] = at;
        }
    }

    /// A node that holds a copy of `cell` and is not linked yet.
    fn make_node(&mut self, target: &Target<'_>, cell: &Cell<'_>, height: usize) -> *mut Node {
        let bytes_at = NODE_LEN + LINK_LEN * height;
        let len = bytes_at + cell.key.len() + cell.value.len() + cell.tags.len();
        let start = self.allocate(len.next_multiple_of(ALIGN));
        let node = start.cast::<Node>();
        // SAFETY: `start` is aligned and has room for the fixed part, the links and the bytes; nobody else knows it.
        unsafe {
            node.write(Node {
                prefix: target.prefix,
                seq_id: cell.seq_id,
                key_len: u32::try_from(cell.key.len()).expect("cells are bounded far below 4 GiB"),
                value_len: u32::try_from(cell.value.len()).expect("cells are bounded far below 4 GiB"),
                tags_len: u16::try_from(cell.tags.len()).expect("tags have a length of two bytes"),
                height: height as u8,
            });
            for level in 0..height {
                start.add(NODE_LEN).cast::<Link>().add(level).write(AtomicPtr::new(ptr::null_mut()));
            }
            let mut at = start.add(bytes_at);
            for part in [cell.key, cell.value, cell.tags] {
                ptr::copy_nonoverlapping(part.as_ptr(), at, part.len());
                at = at.add(part.len());
            }
        }
        node
    }

    /// `len` bytes (a multiple of the alignment) that nobody else uses.
    fn allocate(&mut self, len: usize) -> *mut u8 {
        if len > self.state.free_len {
            let held = self.list.chunk_bytes.load(Relaxed) as usize;
            let chunk_len = held.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
            // A large cell gets memory of its own, so that the rest of the open chunk is not given up for it.
            if len > chunk_len / 4 {
                return self.new_chunk(len);
            }
            self.state.free = self.new_chunk(chunk_len);
            self.state.free_len = chunk_len;
        }
        let start = self.state.free;
        // SAFETY: at least `len` bytes of the chunk are left behind `free`.
        self.state.free = unsafe { start.add(len) };
        self.state.free_len -= len;
        start
    }

    fn new_chunk(&mut self, len: usize) -> *mut u8 {
        let layout = Layout::from_size_align(len, ALIGN).expect("a chunk's length is far below isize::MAX");
        // SAFETY: the layout's size is not zero: a node has a fixed part.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        self.state.chunks.push(Chunk { start, layout });
        self.list.chunk_bytes.fetch_add(len as u64, Relaxed);
        start.as_ptr()
    }
}

impl WriterState {
    /// 1, and one more with a chance of one in four each. Xorshift: the heights need to be mixed, not secret.
    fn random_height(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (1 + (self.random >> 32).trailing_zeros() as usize / 2).min(HEIGHT_MAX)
    }
}

/// A place in a list: at a cell, or at none (before the first seek, past the end).
pub(super) struct Cursor {
    list: Arc<List>,
    // Null, or a linked node of `list`.
    node: *mut Node,
}

// SAFETY: the node is only read, and the list that owns it goes along.
unsafe impl Send for Cursor {}
// SAFETY: as above; nothing changes through a shared reference.
unsafe impl Sync for Cursor {}

impl Cursor {
    pub(super) fn new(list: Arc<List>) -> Cursor {
        Cursor { list, node: ptr::null_mut() }
    }

    pub(super) fn seek(&mut self, key: &[u8]) {
        let target = self.list.target(key);
        self.node = self.list.search(|node| self.list.compare_key(node, &target) == Ordering::Less).1;
    }

    pub(super) fn seek_forward(&mut self, key: &[u8]) {
        if self.node.is_null() {
            return;
        }
        let target = self.list.target(key);
        for _ in 0..SEEK_STEPS {
            if self.node.is_null() || self.list.compare_key(self.node, &target) != Ordering::Less {
                return;
            }
            self.node = self.list.next(self.node, 0);
        }
        self.seek(key);
    }

    pub(super) fn seek_before(&mut self, key: &[u8]) {
        let target = self.list.target(key);
        self.node = self.list.search(|node| self.list.compare_key(node, &target) == Ordering::Less).0;
    }

    pub(super) fn next(&mut self) {
        if !self.node.is_null() {
            self.node = self.list.next(self.node, 0);
        }
    }

    #[inline]
    pub(super) fn cell(&self) -> Option<Cell<'_>> {
        // SAFETY: not null, so a linked node of the list that this cursor holds.
        (!self.node.is_null()).then(|| unsafe { cell_of(self.node) })
    }
}
