//! How a file is damaged.

use std::fs;
use std::path::Path;

/// What happens to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// One bit of the byte at this many eighths of the content changes; 8 is the last byte.
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

impl Harm {
    /// What each file suffers in the short run.
    pub const QUICK: [Harm; 4] = [Harm::Flip(4), Harm::Half, Harm::Empty, Harm::Remove];
    /// What each file suffers in the long run.
    pub const ALL: [Harm; 13] = [
        Harm::Flip(0),
        Harm::Flip(1),
        Harm::Flip(2),
        Harm::Flip(3),
        Harm::Flip(4),
        Harm::Flip(5),
        Harm::Flip(6),
        Harm::Flip(7),
        Harm::Flip(8),
        Harm::Half,
        Harm::Short,
        Harm::Empty,
        Harm::Remove,
    ];

    /// The word of the page.
    pub fn name(self) -> &'static str {
        match self {
            Harm::Flip(_) => "byte flipped",
            Harm::Half | Harm::Short => "truncated",
            Harm::Empty => "emptied",
            Harm::Remove => "removed",
        }
    }

    /// Does it. The zeros at the end of a log, which are reserved space, are no content.
    pub fn apply(self, path: &Path) {
        if self == Harm::Remove {
            match path.is_dir() {
                true => fs::remove_dir_all(path).unwrap(),
                false => fs::remove_file(path).unwrap(),
            }
            return;
        }
        let mut bytes = fs::read(path).unwrap();
        let len = content_len(&bytes);
        match self {
            Harm::Flip(eighths) => bytes[(len * eighths as usize / 8).min(len - 1)] ^= 0x10,
            Harm::Half => bytes.truncate(len / 2),
            Harm::Short => bytes.truncate(len.saturating_sub(10)),
            Harm::Empty => bytes.clear(),
            Harm::Remove => unreachable!("done above"),
        }
        fs::write(path, bytes).unwrap();
    }
}

/// Bytes up to a long run of zeros at the end; all of a file that has only zeros.
fn content_len(bytes: &[u8]) -> usize {
    const RESERVED_MIN: usize = 4096;
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    if used > 0 && bytes.len() - used >= RESERVED_MIN { used } else { bytes.len() }
}
