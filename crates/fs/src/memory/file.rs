//! The bytes of one file in memory: as programs see them, as they are on disk, and the changes in
//! between.

use std::ops::Range;

use bytes::Bytes;

// A disk writes sectors of this size atomically.
const SECTOR_BYTES: usize = 512;

/// Contents of a file, with the changes since the last sync.
#[derive(Debug)]
pub(super) struct FileData {
    /// The contents as a reader sees them.
    current: Vec<u8>,
    /// The changes since the last sync, in order.
    unsynced: Vec<Unsynced>,
    /// Time of the last change.
    pub(super) modified_ms: u64,
}

/// A change that may be lost, and what it replaced. A second image of the synced contents would
/// cost a copy of each file in memory.
#[derive(Debug)]
struct Unsynced {
    change: Change,
    /// Length of the file before the change.
    len_before: usize,
    /// The bytes that the change overwrote or cut off.
    replaced: Vec<u8>,
}

#[derive(Debug)]
enum Change {
    Write { offset: usize, bytes: Bytes },
    Truncate { len: usize },
}

impl Change {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Change::Write { offset, bytes } => write(image, *offset, bytes),
            Change::Truncate { len } => image.truncate(*len),
        }
    }

    /// The bytes of `image` that the change overwrites or cuts off.
    fn replaces(&self, image: &[u8]) -> Range<usize> {
        let (start, end) = match self {
            Change::Write { offset, bytes } => (*offset, offset + bytes.len()),
            Change::Truncate { len } => (*len, image.len()),
        };
        let end = end.min(image.len());
        start.min(end)..end
    }
}

impl Unsynced {
    /// Applies `change`.
    fn apply(change: Change, image: &mut Vec<u8>) -> Unsynced {
        let (len_before, replaced) = (image.len(), image[change.replaces(image)].to_vec());
        change.apply(image);
        Unsynced { change, len_before, replaced }
    }

    /// Reverts the change; `image` is what it was directly after it.
    fn revert(&self, image: &mut Vec<u8>) {
        image.resize(self.len_before, 0);
        let range = self.change.replaces(image);
        image[range].copy_from_slice(&self.replaced);
    }
}

/// One of two outcomes, equally likely.
pub(super) fn coin(random: &mut dyn FnMut() -> u64) -> bool {
    random() & 1 == 0
}

// Writes `bytes` at `offset`; a gap before them reads as zeros.
fn write(image: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if image.len() < end {
        image.resize(end, 0);
    }
    image[offset..end].copy_from_slice(bytes);
}

impl FileData {
    /// An empty file.
    pub(super) fn empty(modified_ms: u64) -> FileData {
        FileData::synced(Vec::new(), modified_ms)
    }

    /// A file whose bytes are all on disk.
    pub(super) fn synced(bytes: Vec<u8>, modified_ms: u64) -> FileData {
        FileData { current: bytes, unsynced: Vec::new(), modified_ms }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.current
    }

    pub(super) fn write(&mut self, offset: u64, bytes: Bytes) {
        let offset = usize::try_from(offset).expect("an in-memory offset fits usize");
        self.change(Change::Write { offset, bytes });
    }

    pub(super) fn truncate(&mut self, len: u64) {
        let len = usize::try_from(len).expect("an in-memory length fits usize");
        self.change(Change::Truncate { len });
    }

    fn change(&mut self, change: Change) {
        self.unsynced.push(Unsynced::apply(change, &mut self.current));
    }

    pub(super) fn sync(&mut self) {
        self.unsynced.clear();
    }

    /// The state on disk after power loss now: each change since the last sync is complete,
    /// partial, or missing.
    pub(super) fn crash(&self, random: &mut dyn FnMut() -> u64) -> FileData {
        let mut image = self.at_last_sync();
        for Unsynced { change, .. } in &self.unsynced {
            match random() % 4 {
                0 => {}
                1 => change.apply(&mut image),
                _ => tear(change, &mut image, random),
            }
        }
        FileData::synced(image, self.modified_ms)
    }

    fn at_last_sync(&self) -> Vec<u8> {
        let mut image = self.current.clone();
        for unsynced in self.unsynced.iter().rev() {
            unsynced.revert(&mut image);
        }
        image
    }
}

// Writes some sectors of a write, in no particular order. The length may grow to the end of the
// write even if its last sectors are lost.
fn tear(change: &Change, image: &mut Vec<u8>, random: &mut dyn FnMut() -> u64) {
    // A change of only the length is atomic.
    let Change::Write { offset, bytes } = change else {
        return if coin(random) {
            change.apply(image)
        };
    };
    // Half of the tears lose everything after one point, like a truncated append.
    let ordered_prefix = coin(random);
    let mut cut_off = false;
    let mut at = *offset;
    let end = offset + bytes.len();
    while at < end {
        let sector_end = (at / SECTOR_BYTES + 1) * SECTOR_BYTES;
        let piece = at..sector_end.min(end);
        cut_off = (cut_off && ordered_prefix) || coin(random);
        if !cut_off {
            write(image, piece.start, &bytes[piece.start - offset..piece.end - offset]);
        }
        at = piece.end;
    }
    if image.len() < end && coin(random) {
        image.resize(end, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies random writes and truncations, and compares the state at the last sync with a copy
    /// that was taken then.
    #[test]
    fn reverting_all_changes_gives_the_state_at_the_last_sync() {
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let mut file = FileData::empty(0);
        let mut synced = Vec::new();
        for step in 0..2000_u64 {
            match random(10) {
                0 => {
                    file.sync();
                    synced = file.bytes().to_vec();
                }
                1..=3 => file.truncate(random(60)),
                _ => {
                    let len = usize::try_from(random(9)).unwrap();
                    file.write(random(60), vec![u8::try_from(step % 251).unwrap(); len].into());
                }
            }
            assert_eq!(file.at_last_sync(), synced, "step {step}");
        }
    }
}
