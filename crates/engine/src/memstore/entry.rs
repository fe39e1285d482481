//! The memory layout of a cell in the arena.
//!
//! ```text
//! entry, 8-aligned:  seq id 8 | key len 4 | value len 4 | tags len 2 | - 6 | key | value | tags
//! ```

use std::ptr::NonNull;

use cell::Cell;

use super::arena::Arena;

/// The fixed part of an entry. Key, value, and tags follow it. Written once, before another thread
/// can reach it.
#[repr(C)]
pub(super) struct Entry {
    seq_id: u64,
    key_len: u32,
    value_len: u32,
    tags_len: u16,
}

const HEAD_LEN: usize = size_of::<Entry>();
const _: () = assert!(HEAD_LEN == 24 && align_of::<Entry>() == super::arena::ALIGN);

impl Entry {
    /// Copies `cell` into the arena.
    pub(super) fn copy(arena: &mut Arena, cell: &Cell<'_>) -> NonNull<Entry> {
        let len = HEAD_LEN + cell.key.len() + cell.value.len() + cell.tags.len();
        let start = arena.allocate(len);
        let entry = start.cast::<Entry>();
        // SAFETY: `start` is aligned and has room for the fixed part and the bytes, and no other
        // pointer to it exists.
        unsafe {
            entry.write(Entry {
                seq_id: cell.seq_id,
                key_len: u32::try_from(cell.key.len()).expect("cells are bounded far below 4 GiB"),
                value_len: u32::try_from(cell.value.len()).expect("cells are bounded far below 4 GiB"),
                tags_len: u16::try_from(cell.tags.len()).expect("the length of tags fits in two bytes"),
            });
            let mut at = start.add(HEAD_LEN);
            for part in [cell.key, cell.value, cell.tags] {
                at.copy_from_nonoverlapping(NonNull::from_ref(part).cast(), part.len());
                at = at.add(part.len());
            }
        }
        entry
    }
}

/// # Safety
/// `entry` was made by [`Entry::copy`], whose writes happened before, in an arena that outlives
/// `'a`.
#[inline]
pub(super) unsafe fn key_of<'a>(entry: NonNull<Entry>) -> &'a [u8] {
    // SAFETY: the key follows the fixed part, and neither is written again.
    unsafe {
        let at = entry.cast::<u8>().add(HEAD_LEN);
        NonNull::slice_from_raw_parts(at, (*entry.as_ptr()).key_len as usize).as_ref()
    }
}

/// # Safety
/// As for [`key_of`].
#[inline]
pub(super) unsafe fn seq_id_of(entry: NonNull<Entry>) -> u64 {
    // SAFETY: as the caller promises.
    unsafe { (*entry.as_ptr()).seq_id }
}

/// # Safety
/// As for [`key_of`].
#[inline]
pub(super) unsafe fn cell_of<'a>(entry: NonNull<Entry>) -> Cell<'a> {
    // SAFETY: key, value, and tags follow the fixed part, and none of it is written again.
    unsafe {
        let Entry { seq_id, key_len, value_len, tags_len } = *entry.as_ptr();
        let key_at = entry.cast::<u8>().add(HEAD_LEN);
        let value_at = key_at.add(key_len as usize);
        let tags_at = value_at.add(value_len as usize);
        Cell {
            key: NonNull::slice_from_raw_parts(key_at, key_len as usize).as_ref(),
            value: NonNull::slice_from_raw_parts(value_at, value_len as usize).as_ref(),
            tags: NonNull::slice_from_raw_parts(tags_at, usize::from(tags_len)).as_ref(),
            seq_id,
        }
    }
}
