//! The bytes of one file in memory: as programs see them, as they are on disk, and the changes in
//! between.

use bytes::Bytes;

// A disk writes sectors of this size atomically.
const SECTOR_BYTES: usize = 512;

/// Contents of a file, with the changes since the last sync.
#[derive(Debug)]
pub(super) struct FileData {
    /// The contents as a reader sees them.
    current: Vec<u8>,
    /// The contents at the last sync.
    synced: Vec<u8>,
    /// The changes from `synced` to `current`, in order.
    unsynced: Vec<Change>,
    /// Time of the last change.
    pub(super) modified_ms: u64,
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
        FileData { current: bytes.clone(), synced: bytes, unsynced: Vec::new(), modified_ms }
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
        change.apply(&mut self.current);
        self.unsynced.push(change);
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            change.apply(&mut self.synced);
        }
        debug_assert_eq!(self.current, self.synced, "`unsynced` contains all changes");
    }

    /// The state on disk after power loss now: each change since the last sync is complete,
    /// partial, or missing.
    pub(super) fn crash(&self, random: &mut dyn FnMut() -> u64) -> FileData {
        let mut image = self.synced.clone();
        for change in &self.unsynced {
            match random() % 4 {
                0 => {}
                1 => change.apply(&mut image),
                _ => tear(change, &mut image, random),
            }
        }
        FileData::synced(image, self.modified_ms)
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
