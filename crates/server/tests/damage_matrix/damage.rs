//! Kinds of damage to a file.

use std::fs;
use std::path::Path;

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// One bit flips in the byte at this many eighths of the content; 8 is the last byte.
    Flip(u64),
    /// The second half is missing.
    Half,
    /// The last ten bytes are missing.
    Short,
    /// The file has no bytes.
    Empty,
    /// The file or directory is gone.
    Remove,
}

impl Damage {
    /// The damage to each file in the short run.
    pub const QUICK: [Damage; 4] = [Damage::Flip(4), Damage::Half, Damage::Empty, Damage::Remove];
    /// The damage to each file in the long run.
    pub const ALL: [Damage; 13] = [
        Damage::Flip(0),
        Damage::Flip(1),
        Damage::Flip(2),
        Damage::Flip(3),
        Damage::Flip(4),
        Damage::Flip(5),
        Damage::Flip(6),
        Damage::Flip(7),
        Damage::Flip(8),
        Damage::Half,
        Damage::Short,
        Damage::Empty,
        Damage::Remove,
    ];

    /// The name on the page.
    pub fn name(self) -> &'static str {
        match self {
            Damage::Flip(_) => "byte flipped",
            Damage::Half | Damage::Short => "truncated",
            Damage::Empty => "emptied",
            Damage::Remove => "removed",
        }
    }

    /// Applies the damage. Reserved space, the zeros at the end of a log, does not count as
    /// content.
    pub fn apply(self, path: &Path) {
        if self == Damage::Remove {
            match path.is_dir() {
                true => fs::remove_dir_all(path).unwrap(),
                false => fs::remove_file(path).unwrap(),
            }
            return;
        }
        let mut bytes = fs::read(path).unwrap();
        let len = content_len(&bytes);
        match self {
            Damage::Flip(eighths) => bytes[(len * eighths as usize / 8).min(len - 1)] ^= 0x10,
            Damage::Half => bytes.truncate(len / 2),
            Damage::Short => bytes.truncate(len.saturating_sub(10)),
            Damage::Empty => bytes.clear(),
            Damage::Remove => unreachable!("done above"),
        }
        fs::write(path, bytes).unwrap();
    }
}

/// Length without a long run of zeros at the end; the whole length if there are only zeros.
fn content_len(bytes: &[u8]) -> usize {
    const RESERVED_MIN: usize = 4096;
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    if used > 0 && bytes.len() - used >= RESERVED_MIN { used } else { bytes.len() }
}
