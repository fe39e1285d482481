//! The bytes of one file in memory: as programs see them, as a disk has them, and what lies between.

use bytes::Bytes;

// A disk writes sectors of this size whole or not at all.
const SECTOR_BYTES: usize = 512;

/// Contents of a file, with what was changed since the last sync.
#[derive(Debug)]
pub(super) struct FileData {
    /// As a reader sees them.
    now: Vec<u8>,
    /// As they are after a power cut at the worst moment since the last sync.
    synced: Vec<u8>,
    /// What leads from `synced` to `now`, in order.
    unsynced: Vec<Change>,
    /// Time of the last change.
    pub(super) modified_ms: u64,
}

#[derive(Debug)]
enum Change {
    Write { offset: usize, bytes: Bytes },
    Cut { len: usize },
}

impl Change {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Change::Write { offset, bytes } => write(image, *offset, bytes),
            Change::Cut { len } => image.truncate(*len),
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
    /// A file without bytes.
    pub(super) fn empty(modified_ms: u64) -> FileData {
        FileData::synced(Vec::new(), modified_ms)
    }

    /// A file whose bytes are all on disk.
    pub(super) fn synced(bytes: Vec<u8>, modified_ms: u64) -> FileData {
        FileData { now: bytes.clone(), synced: bytes, unsynced: Vec::new(), modified_ms }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.now
    }

    pub(super) fn write(&mut self, offset: u64, bytes: Bytes) {
        let offset = usize::try_from(offset).expect("a file in memory has an offset that fits");
        self.change(Change::Write { offset, bytes });
    }

    pub(super) fn cut(&mut self, len: u64) {
        let len = usize::try_from(len).expect("a file in memory has a length that fits");
        self.change(Change::Cut { len });
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.now);
        self.unsynced.push(change);
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            change.apply(&mut self.synced);
        }
        debug_assert_eq!(self.now, self.synced, "the changes lead from one to the other");
    }

    /// What a disk may hold after a power cut now: each change since the last sync whole, in part, or not at all.
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

// Some sectors of a write reach the disk, in no order; the length may have grown to its end all the same.
fn tear(change: &Change, image: &mut Vec<u8>, random: &mut dyn FnMut() -> u64) {
    // A change of length alone happens or not.
    let Change::Write { offset, bytes } = change else {
        return if coin(random) {
            change.apply(image)
        };
    };
    // Half of the tears lose all behind one point, as an append cut short does.
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
