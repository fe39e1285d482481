//! Encodes, locates and checks the entries of a log.
//!
//! ```text
//! varint(length of the key) | key | cells, each: length 4 | KeyValue
//! ```
//!
//! The checksum in the key is CRC-32C over: salt 8 | offset of the entry 8 | the entry without the
//! checksum's four bytes. So an entry is valid only at the offset and in the file for which it was
//! written.
//!
//! [`find`] locates an entry and checks it in bounded memory, whatever length it claims. Only a
//! valid entry is then read as a whole.

use base::checksum::{Crc32c, matches};
use base::varint::{VARINT_LEN_MAX, get_varint, put_varint};
use bytes::Bytes;

use crate::edit::Edit;
use crate::header::LogFormat;
use crate::key::{self, CRC_LEN, KEY_LEN_MAX, Key, KeyFields};
use crate::mark::{Salt, read_mark};
use crate::reader::PIECE_BYTES;
use crate::window::Window;

/// Maximum bytes of cells in one entry: the offsets of a log must stay below the end mark's 2 GiB.
pub const CELLS_LEN_MAX: usize = 1 << 30;
/// Bytes of the length before each cell.
pub(crate) const CELL_LEN_LEN: usize = size_of::<u32>();
// Bytes to read where an entry begins. Most keys are shorter, so one read is enough for the length
// and the key.
pub(crate) const HEAD_BYTES: u64 = 512;

/// One entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The cells, each `u32 length | KeyValue`, checked to be well formed. They are slices of a
    /// large buffer: copy cells that are retained for long.
    pub cells: Bytes,
    /// Offset of the entry in its log.
    pub offset: u64,
    /// Offset of the next entry.
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

/// Whether `cells` are exactly `count` cells, each preceded by its length. If `deep`, also whether
/// each is a well-formed KeyValue. Tags, types and timestamps are not checked, because those in
/// HBase's logs may have any value.
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

/// Appends the entry of `edit`. `out[0]` will be at offset `base` of the file. `durable` is the
/// durable offset that the entry states, if it is the first of its group.
pub(crate) fn encode(out: &mut Vec<u8>, edit: &Edit, salt: Salt, base: u64, durable: Option<u64>) {
    debug_assert!(cells_add_up(&edit.cells, edit.cell_count, true), "an edit's cells match its cell count");
    let start = out.len();
    let key_len = key::encoded_len(edit, durable.is_some());
    debug_assert!(
        edit.cells.len() <= CELLS_LEN_MAX && key_len <= KEY_LEN_MAX,
        "an edit that is written fits an entry"
    );
    debug_assert!(
        durable.is_none_or(|durable| durable <= base + start as u64),
        "nothing is durable beyond what was written"
    );
    put_varint(out, key_len as u64);
    let key_at = out.len();
    key::encode(out, edit, salt, base, durable);
    assert_eq!(out.len() - key_at, key_len, "the key length matches the key");
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

/// Location of an entry, and the parts of its key that a scan of the log needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryLocation {
    pub offset: u64,
    pub key_at: u64,
    pub key_len: usize,
    pub cells_at: u64,
    pub end: u64,
    /// The durable offset that the first entry of a group states.
    pub durable: Option<u64>,
    pub key_fields: KeyFields,
}

/// Why there is no valid entry at an offset.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The entry extends beyond the end of the file.
    Truncated,
    /// The bytes are not an entry.
    Invalid(&'static str),
    Fs(fs::Error),
}

impl From<fs::Error> for Fault {
    fn from(error: fs::Error) -> Fault {
        Fault::Fs(error)
    }
}

impl From<&'static str> for Fault {
    fn from(what: &'static str) -> Fault {
        Fault::Invalid(what)
    }
}

/// Reads the key of the entry at `offset` into the window. Returns where the key begins, and its
/// length.
pub(crate) async fn find_key(window: &mut Window, offset: u64) -> Result<(u64, usize), Fault> {
    let left = window.len() - offset;
    let head = window.fill(offset, left.min(HEAD_BYTES) as usize).await?;
    let mut input = head;
    let Some(key_len) = get_varint(&mut input) else {
        return Err(if head.len() < VARINT_LEN_MAX {
            Fault::Truncated
        } else {
            Fault::Invalid("bad key length")
        });
    };
    let prefix_len = (head.len() - input.len()) as u64;
    if key_len > left - prefix_len {
        return Err(Fault::Truncated);
    }
    if key_len > KEY_LEN_MAX as u64 {
        return Err(Fault::Invalid("a key exceeds the maximum length"));
    }
    let key_len = key_len as usize;
    window.fill(offset, prefix_len as usize + key_len).await?;
    Ok((offset + prefix_len, key_len))
}

/// Locates and checks the entry at `offset` of a log without dictionaries.
pub(crate) async fn find(
    window: &mut Window,
    offset: u64,
    format: &LogFormat,
) -> Result<EntryLocation, Fault> {
    let (key_at, key_len) = find_key(window, offset).await?;
    let key = &window.loaded(key_at)[..key_len];
    let key_fields = KeyFields::read(key)?;
    let cells_at = key_at + key_len as u64;
    let mut location =
        EntryLocation { offset, key_at, key_len, cells_at, end: cells_at, durable: None, key_fields };
    match format {
        LogFormat::Checked { salt, .. } => {
            if let Some(mark_at) = key_fields.mark_at {
                let mark = &key[mark_at..];
                location.durable =
                    Some(read_mark(mark, *salt, key_at + mark_at as u64).ok_or("a mark is invalid")?);
            }
            let cells_len = key_fields.cells_len.ok_or("an entry does not state the length of its cells")?;
            if cells_len > window.len() - cells_at {
                return Err(Fault::Truncated);
            }
            location.end = cells_at + cells_len;
            let len = location.end - offset;
            if len <= window.piece_bytes() as u64 {
                // The next piece then begins with this entry, whose key the caller needs.
                window.fill(offset, len as usize).await?;
            }
            check(window, &location, *salt).await?;
        }
        LogFormat::Plain if key_fields.crc.is_some() => {
            return Err(Fault::Invalid("an entry has a checksum although the header is HBase's"));
        }
        LogFormat::Plain => location.end = end_of_cells(window, cells_at, key_fields.cell_count).await?,
        LogFormat::Dictionary { .. } => unreachable!("the caller reads logs with dictionaries differently"),
    }
    Ok(location)
}

/// Bytes needed to see whether an entry may begin: a length, and the tag of the key's first field.
pub(crate) const CANDIDATE_LEN: usize = VARINT_LEN_MAX + 1;
/// Tag of a key's first field, the region name.
const REGION_TAG: u8 = 0x0a;

/// The first position in `bytes` where an entry may begin. Ignores the last [`CANDIDATE_LEN`] - 1
/// bytes.
pub(crate) fn next_candidate(bytes: &[u8]) -> Option<usize> {
    bytes.windows(CANDIDATE_LEN).position(|window| {
        // Most bytes are values or zeros: reject them before decoding a length.
        if window[0] == 0 || !window[1..].contains(&REGION_TAG) {
            return false;
        }
        let mut input = window;
        let key_len = get_varint(&mut input);
        key_len.is_some_and(|len| (1..=KEY_LEN_MAX as u64).contains(&len))
            && input.first() == Some(&REGION_TAG)
    })
}

/// The end of the entry at `at` according to its unchecked key; `None` if there is no key.
pub(crate) async fn claimed_end(window: &mut Window, at: u64) -> fs::Result<Option<u64>> {
    let Some((key_at, key_fields, key_len)) = claimed_key(window, at).await? else { return Ok(None) };
    Ok(key_fields.cells_len.and_then(|cells_len| (key_at + key_len as u64).checked_add(cells_len)))
}

/// The region named by the unchecked key at `at`.
pub(crate) async fn claimed_region(window: &mut Window, at: u64) -> fs::Result<Option<String>> {
    let Some((key_at, key_fields, _)) = claimed_key(window, at).await? else { return Ok(None) };
    let name = window.loaded(key_at).get(key_fields.region_at..key_fields.region_at + key_fields.region_len);
    Ok(name.and_then(|name| String::from_utf8(name.to_vec()).ok()))
}

async fn claimed_key(window: &mut Window, at: u64) -> fs::Result<Option<(u64, KeyFields, usize)>> {
    if at >= window.len() {
        return Ok(None);
    }
    match find_key(window, at).await {
        Ok((key_at, key_len)) => {
            let key_fields = KeyFields::read(&window.loaded(key_at)[..key_len]);
            Ok(key_fields.ok().map(|key_fields| (key_at, key_fields, key_len)))
        }
        Err(Fault::Fs(error)) => Err(error),
        Err(Fault::Truncated | Fault::Invalid(_)) => Ok(None),
    }
}

/// Verifies the checksum of an entry that lies within the file. Reads a long entry in pieces.
async fn check(window: &mut Window, location: &EntryLocation, salt: Salt) -> Result<(), Fault> {
    let expected = location.key_fields.crc.ok_or("an entry has no checksum")?;
    let mut crc = begin_crc(salt, location.offset);
    let head_len = (location.cells_at - location.offset) as usize - CRC_LEN;
    crc.update(&window.loaded(location.offset)[..head_len]);
    let mut at = location.cells_at;
    while at < location.end {
        if window.loaded(at).is_empty() {
            // The window of a reader of single entries has pieces that are much smaller than this.
            let left = usize::try_from(location.end - at).unwrap_or(usize::MAX);
            let want = left.min(PIECE_BYTES).max(window.piece_bytes());
            window.fill_ahead(at, 1, want).await?;
        }
        let loaded = window.loaded(at);
        let piece = &loaded[..loaded.len().min(usize::try_from(location.end - at).unwrap_or(usize::MAX))];
        crc.update(piece);
        at += piece.len() as u64;
    }
    if !matches(crc.finish(), expected) {
        return Err(Fault::Invalid("an entry fails its check"));
    }
    Ok(())
}

/// The end of `count` cells that begin at `at`.
async fn end_of_cells(window: &mut Window, mut at: u64, count: u32) -> Result<u64, Fault> {
    for _ in 0..count {
        let left = window.len() - at;
        if left < CELL_LEN_LEN as u64 {
            return Err(Fault::Truncated);
        }
        window.fill_ahead(at, CELL_LEN_LEN, PIECE_BYTES.max(window.piece_bytes())).await?;
        let len = window.loaded(at);
        let len = u64::from(u32::from_be_bytes(*len.first_chunk().expect("four bytes were requested")));
        if len > left - CELL_LEN_LEN as u64 {
            return Err(Fault::Truncated);
        }
        at += CELL_LEN_LEN as u64 + len;
    }
    Ok(at)
}

/// Reads all of an entry that was located.
pub(crate) async fn load(window: &mut Window, location: &EntryLocation) -> Result<Entry, Fault> {
    let len =
        usize::try_from(location.end - location.offset).map_err(|_| "an entry exceeds the address space")?;
    window.fill(location.offset, len).await?;
    let key = Key::read(&window.slice(location.key_at, location.key_len))?;
    let cells = window.slice(location.cells_at, (location.end - location.cells_at) as usize);
    if !cells_add_up(&cells, location.key_fields.cell_count, true) {
        return Err(Fault::Invalid("an entry's cells are malformed"));
    }
    Ok(Entry { key, cells, offset: location.offset, end: location.end })
}
