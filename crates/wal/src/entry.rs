//! Entries: a key behind its length, then the cells. Writing them, finding them in a file, checking them.
//!
//! ```text
//! varint(length of the key) | key | cells, each: length 4 | KeyValue
//! ```
//!
//! The checksum in the key is CRC-32C over: salt 8 | offset of the entry 8 | the entry without the checksum's four
//! bytes. So an entry is good only where it was written, in the file it was written to.
//!
//! [`find`] takes an entry's extent from the bytes of a file and checks it in bounded memory, however long it says it
//! is. Only what passed is then read as a whole.

use base::checksum::{Crc32c, matches};
use base::varint::{VARINT_LEN_MAX, get_varint, put_varint};
use bytes::Bytes;

use crate::edit::Edit;
use crate::header::Form;
use crate::key::{self, CRC_LEN, KEY_LEN_MAX, Key, Outline};
use crate::mark::{Salt, read_mark};
use crate::window::Window;

/// Most bytes of cells that an entry can have; the offsets of a log must stay below the end mark's 2 GiB.
pub const CELLS_LEN_MAX: usize = 1 << 30;
/// Bytes of the length before each cell.
pub(crate) const CELL_LEN_LEN: usize = size_of::<u32>();
// Read at once where an entry begins: more than most keys have, so that length and key take one look.
pub(crate) const HEAD_BYTES: u64 = 512;

/// One entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it belongs to.
    pub key: Key,
    /// The cells, each `u32 length | KeyValue`; checked to be well formed. Shares memory with what was read around
    /// it: copy what is to be kept for long.
    pub cells: Bytes,
    /// Where the entry begins in its log.
    pub offset: u64,
    /// Where the next one begins.
    pub end: u64,
}

impl Entry {
    /// The cells, one serialized KeyValue each.
    pub fn key_values(&self) -> impl Iterator<Item = Bytes> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = self.cells.get(at..)?;
            let len = u32::from_be_bytes(*rest.first_chunk()?) as usize;
            at += CELL_LEN_LEN + len;
            Some(self.cells.slice(at - len..at))
        })
    }
}

/// Whether `cells` are exactly `count` cells behind their lengths, each a well-formed KeyValue if `deep`. Of its tags,
/// its type and its timestamp HBase's logs may hold any.
fn cells_add_up(mut cells: &[u8], count: u32, deep: bool) -> bool {
    for _ in 0..count {
        let Some((len, rest)) = cells.split_first_chunk::<CELL_LEN_LEN>() else { return false };
        let Some((cell, rest)) = rest.split_at_checked(u32::from_be_bytes(*len) as usize) else {
            return false;
        };
        if deep && cell::cell::stored_parts(cell).is_err() {
            return false;
        }
        cells = rest;
    }
    cells.is_empty()
}

/// Appends the entry of `edit`; `out[0]` will stand at `base` of the file. `durable`: what the first entry of a group
/// says about the file so far.
pub(crate) fn encode(out: &mut Vec<u8>, edit: &Edit, salt: Salt, base: u64, durable: Option<u64>) {
    debug_assert!(cells_add_up(&edit.cells, edit.cell_count, true), "the cells of an edit add up");
    let start = out.len();
    let key_len = key::encoded_len(edit, durable.is_some());
    put_varint(out, key_len as u64);
    let key_at = out.len();
    key::encode(out, edit, salt, base, durable);
    assert_eq!(out.len() - key_at, key_len, "the length before the key is that of the key");
    let crc_at = out.len() - CRC_LEN;
    let mut crc = begin_crc(salt, base + start as u64);
    crc.update(&out[start..crc_at]);
    crc.update(&edit.cells);
    out[crc_at..].copy_from_slice(&crc.finish().to_le_bytes());
    out.extend_from_slice(&edit.cells);
}

fn begin_crc(salt: Salt, offset: u64) -> Crc32c {
    let mut seed = [0; 16];
    seed[..8].copy_from_slice(&salt.0);
    seed[8..].copy_from_slice(&offset.to_be_bytes());
    let mut crc = Crc32c::new();
    crc.update(&seed);
    crc
}

/// Where an entry is, and what a pass over the log needs of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub offset: u64,
    pub key_at: u64,
    pub key_len: usize,
    pub cells_at: u64,
    pub end: u64,
    /// What the first entry of a group says about the file before it.
    pub durable: Option<u64>,
    pub outline: Outline,
}

/// Why there is no entry at an offset.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The entry would go on beyond the end of the file.
    Cut,
    /// The bytes are no entry.
    Bad(&'static str),
    Fs(fs::Error),
}

impl From<fs::Error> for Fault {
    fn from(error: fs::Error) -> Fault {
        Fault::Fs(error)
    }
}

impl From<&'static str> for Fault {
    fn from(what: &'static str) -> Fault {
        Fault::Bad(what)
    }
}

/// The length and the bytes of the key at `offset`, and where it begins.
pub(crate) async fn find_key(window: &mut Window, offset: u64) -> Result<(u64, usize), Fault> {
    let left = window.len() - offset;
    let head = window.fill(offset, left.min(HEAD_BYTES) as usize).await?;
    let mut input = head;
    let Some(key_len) = get_varint(&mut input) else {
        return Err(if head.len() < VARINT_LEN_MAX { Fault::Cut } else { Fault::Bad("no length of a key") });
    };
    let prefix_len = (head.len() - input.len()) as u64;
    if key_len > left - prefix_len {
        return Err(Fault::Cut);
    }
    if key_len > KEY_LEN_MAX as u64 {
        return Err(Fault::Bad("a key is longer than any"));
    }
    let key_len = key_len as usize;
    window.fill(offset, prefix_len as usize + key_len).await?;
    Ok((offset + prefix_len, key_len))
}

/// Finds and checks the entry at `offset` of a log that has no dictionaries.
pub(crate) async fn find(window: &mut Window, offset: u64, form: &Form) -> Result<Found, Fault> {
    let (key_at, key_len) = find_key(window, offset).await?;
    let key = &window.held(key_at)[..key_len];
    let outline = Outline::read(key)?;
    let cells_at = key_at + key_len as u64;
    let mut found = Found { offset, key_at, key_len, cells_at, end: cells_at, durable: None, outline };
    match form {
        Form::Checked { salt, .. } => {
            if let Some(mark_at) = outline.mark_at {
                let mark = &key[mark_at..];
                found.durable =
                    Some(read_mark(mark, *salt, key_at + mark_at as u64).ok_or("a mark is not sound")?);
            }
            let cells_len = outline.cells_len.ok_or("an entry without the length of its cells")?;
            if cells_len > window.len() - cells_at {
                return Err(Fault::Cut);
            }
            found.end = cells_at + cells_len;
            check(window, &found, *salt).await?;
        }
        Form::Plain if outline.crc.is_some() => {
            return Err(Fault::Bad("a checked entry behind a plain header"));
        }
        Form::Plain => found.end = end_of_cells(window, cells_at, outline.cell_count).await?,
        Form::Dictionary { .. } => unreachable!("the caller reads dictionaries otherwise"),
    }
    Ok(found)
}

/// Bytes that tell whether an entry may begin: a length, and the tag of the key's first field.
pub(crate) const CANDIDATE_LEN: usize = VARINT_LEN_MAX + 1;
/// Tag of a key's first field, the region's name.
const REGION_TAG: u8 = 0x0a;

/// Where in `bytes` an entry may begin first. Does not look at the last [`CANDIDATE_LEN`] - 1 bytes.
pub(crate) fn next_candidate(bytes: &[u8]) -> Option<usize> {
    bytes.windows(CANDIDATE_LEN).position(|window| {
        // Most bytes are values or zeros: looked at before a length is decoded.
        if window[0] == 0 || !window[1..].contains(&REGION_TAG) {
            return false;
        }
        let mut input = window;
        let key_len = get_varint(&mut input);
        key_len.is_some_and(|len| (1..=KEY_LEN_MAX as u64).contains(&len))
            && input.first() == Some(&REGION_TAG)
    })
}

/// Where the entry at `at` ends by what its key says, which is not checked; `None` if there is no key.
pub(crate) async fn claimed_end(window: &mut Window, at: u64) -> fs::Result<Option<u64>> {
    let Some((key_at, outline, key_len)) = claimed_key(window, at).await? else { return Ok(None) };
    Ok(outline.cells_len.and_then(|cells_len| (key_at + key_len as u64).checked_add(cells_len)))
}

/// The region that the key at `at` names, unchecked.
pub(crate) async fn claimed_region(window: &mut Window, at: u64) -> fs::Result<Option<String>> {
    let Some((key_at, outline, _)) = claimed_key(window, at).await? else { return Ok(None) };
    let name = window.held(key_at).get(outline.region_at..outline.region_at + outline.region_len);
    Ok(name.and_then(|name| String::from_utf8(name.to_vec()).ok()))
}

async fn claimed_key(window: &mut Window, at: u64) -> fs::Result<Option<(u64, Outline, usize)>> {
    if at >= window.len() {
        return Ok(None);
    }
    match find_key(window, at).await {
        Ok((key_at, key_len)) => {
            let outline = Outline::read(&window.held(key_at)[..key_len]);
            Ok(outline.ok().map(|outline| (key_at, outline, key_len)))
        }
        Err(Fault::Fs(error)) => Err(error),
        Err(Fault::Cut | Fault::Bad(_)) => Ok(None),
    }
}

/// Compares the checksum of an entry that fits the file, piece by piece if it is long.
async fn check(window: &mut Window, found: &Found, salt: Salt) -> Result<(), Fault> {
    let expected = found.outline.crc.ok_or("an entry without a checksum")?;
    let mut crc = begin_crc(salt, found.offset);
    let head_len = (found.cells_at - found.offset) as usize - CRC_LEN;
    crc.update(&window.held(found.offset)[..head_len]);
    let mut at = found.cells_at;
    while at < found.end {
        if window.held(at).is_empty() {
            window.fill(at, (found.end - at).min(window.piece_bytes() as u64) as usize).await?;
        }
        let held = window.held(at);
        let piece = &held[..held.len().min(usize::try_from(found.end - at).unwrap_or(usize::MAX))];
        crc.update(piece);
        at += piece.len() as u64;
    }
    if !matches(crc.finish(), expected) {
        return Err(Fault::Bad("an entry fails its check"));
    }
    Ok(())
}

/// Where `count` cells from `at` on end.
async fn end_of_cells(window: &mut Window, mut at: u64, count: u32) -> Result<u64, Fault> {
    for _ in 0..count {
        let left = window.len() - at;
        if left < CELL_LEN_LEN as u64 {
            return Err(Fault::Cut);
        }
        let len = window.fill(at, CELL_LEN_LEN).await?;
        let len = u64::from(u32::from_be_bytes(*len.first_chunk().expect("four bytes were asked for")));
        if len > left - CELL_LEN_LEN as u64 {
            return Err(Fault::Cut);
        }
        at += CELL_LEN_LEN as u64 + len;
    }
    Ok(at)
}

/// Reads an entry that was found, as a whole.
pub(crate) async fn load(window: &mut Window, found: &Found) -> Result<Entry, Fault> {
    let len = usize::try_from(found.end - found.offset).map_err(|_| "an entry longer than memory")?;
    window.fill(found.offset, len).await?;
    let key = Key::read(&window.slice(found.key_at, found.key_len))?;
    let cells = window.slice(found.cells_at, (found.end - found.cells_at) as usize);
    if !cells_add_up(&cells, found.outline.cell_count, true) {
        return Err(Fault::Bad("an entry's cells are malformed"));
    }
    Ok(Entry { key, cells, offset: found.offset, end: found.end })
}
