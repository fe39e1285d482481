//! Cells as PREFIX, DIFF and FAST_DIFF pack them: what a cell shares with the one before it is left out.
//!
//! ```text
//! all:        bytes of the cells unpacked 4 | [family length 1 | family, DIFF only] | cells
//! PREFIX:     rest of key, varint | value, varint | common, varint | key behind the common part | value
//! DIFF:       flags 1 | [key, varint] | [value, varint] | common, varint | [row length 2 | row] behind the common part
//!             | qualifier behind it | timestamp, little-endian | [type 1] | value
//! FAST_DIFF:  as DIFF, but the timestamp behind its common prefix | [type 1] | [value]; the first cell has its key whole
//! each cell:  [tags, varint | tags] | [sequence id, vlong]
//! ```
//!
//! (A name and "varint" stand for its length.) A cell cannot be read without the one before it; so [`Assembled`] holds
//! the key of the current cell, and a step changes it into the next. Value and tags stay in the block. When a block is
//! loaded all cells are walked and checked once, and every [`RESTART_EVERY`]th is kept with its key, for seeks to start
//! from.

use std::cmp::Ordering;
use std::ops::Range;

use cell::key::TIMESTAMP_TYPE_LEN;
use cell::{CellOrder, key};

use crate::block::plain::{CellFields, starts_row};
use crate::block::tags::TagDictionary;
use crate::compression::PLAIN_LEN_MAX;
use crate::error::{Fault, Parsed};
use crate::input::Input;

/// Cells between two restarts: a seek unpacks half of them, and their keys take a few percent of the block.
const RESTART_EVERY: usize = 16;
/// Bytes of the unpacked length in front of the cells.
const PLAIN_LEN_LEN: usize = 4;

/// Which of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Prefix,
    Diff,
    FastDiff,
}

/// DIFF's flags. Source: HBase `DiffKeyDeltaEncoder`.
pub(crate) mod diff {
    pub(crate) const SAME_KEY_LEN: u8 = 1;
    pub(crate) const SAME_VALUE_LEN: u8 = 1 << 1;
    pub(crate) const SAME_TYPE: u8 = 1 << 2;
    pub(crate) const TIMESTAMP_IS_DIFFERENCE: u8 = 1 << 3;
    pub(crate) const TIMESTAMP_LEN_SHIFT: u8 = 4;
    pub(crate) const TIMESTAMP_LEN_MASK: u8 = 7;
    pub(crate) const TIMESTAMP_NEGATIVE: u8 = 1 << 7;
}

/// FAST_DIFF's flags. Source: HBase `FastDiffDeltaEncoder`.
pub(crate) mod fast_diff {
    pub(crate) const TIMESTAMP_COMMON_MASK: u8 = 7;
    pub(crate) const SAME_KEY_LEN: u8 = 1 << 3;
    pub(crate) const SAME_VALUE_LEN: u8 = 1 << 4;
    pub(crate) const SAME_TYPE: u8 = 1 << 5;
    pub(crate) const SAME_VALUE: u8 = 1 << 6;
}

/// A cell put together: its key here, the rest in the payload.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assembled {
    /// Empty before the first cell.
    pub(crate) key: Vec<u8>,
    pub(crate) place: Place,
}

/// Where a packed cell and its parts are in the payload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    start: u32,
    end: u32,
    value_at: u32,
    value_len: u32,
    tags_at: u32,
    tags_len: u32,
    pub(crate) seq_id: u64,
}

impl Place {
    /// Where the value is within its payload.
    #[inline]
    pub(crate) fn value_range(&self) -> Range<usize> {
        self.value_at as usize..(self.value_at + self.value_len) as usize
    }

    /// The tags within their payload.
    #[inline]
    pub(crate) fn tags<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[self.tags_at as usize..][..self.tags_len as usize]
    }
}

/// A cell from which unpacking can start: the key is in [`PackedCells::keys`].
#[derive(Clone, Debug)]
struct Restart {
    key: Range<u32>,
    place: Place,
}

/// What is known of the cells of a block.
#[derive(Debug)]
pub(crate) struct PackedCells {
    format: Format,
    restarts: Box<[Restart]>,
    keys: Box<[u8]>,
    /// The key of the last cell, within `keys`.
    last_key: Range<u32>,
}

/// What is needed to unpack one cell after the other.
#[derive(Clone, Debug)]
struct Format {
    packing: Packing,
    fields: CellFields,
    /// Where the first cell starts.
    start: u32,
    /// Family length and family: in front of the cells (DIFF), in the first key (FAST_DIFF).
    family: Range<u32>,
}

impl PackedCells {
    /// Checks a payload whose packed form begins at `start`. Tags are not packed by a dictionary.
    pub(crate) fn load(
        payload: &[u8],
        start: usize,
        packing: Packing,
        fields: CellFields,
        order: CellOrder,
    ) -> Parsed<PackedCells> {
        let format = Format::parse(payload, start, packing, fields)?;
        let mut keys = Vec::new();
        let mut restarts = Vec::new();
        let mut state = format.start_state();
        let mut previous = Vec::new();
        let mut since_restart = 0;
        while (state.place.end as usize) < payload.len() {
            format.step(payload, &mut state, None)?;
            key::check(&state.key)?;
            starts_row(order, (!previous.is_empty()).then_some(&previous[..]), &state.key)?;
            // Long keys that are mostly shared could unpack to many times the block: their restarts are spaced out.
            if restarts.is_empty() || since_restart >= RESTART_EVERY && keys.len() < payload.len() {
                let key = push_key(&mut keys, &state.key);
                restarts.push(Restart { key, place: state.place });
                since_restart = 0;
            }
            since_restart += 1;
            previous.clear();
            previous.extend_from_slice(&state.key);
        }
        if restarts.is_empty() {
            return Err(Fault::Damaged("data block without cells"));
        }
        let last_key = push_key(&mut keys, &state.key);
        Ok(PackedCells {
            format,
            restarts: restarts.into_boxed_slice(),
            keys: keys.into_boxed_slice(),
            last_key,
        })
    }

    /// Heap taken besides the payload.
    pub(crate) fn heap_len(&self) -> usize {
        self.keys.len() + size_of_val(&*self.restarts)
    }

    /// The key of the first cell.
    pub(crate) fn first_key(&self) -> &[u8] {
        self.key(&self.restarts[0].key)
    }

    /// The key of the last cell.
    pub(crate) fn last_key(&self) -> &[u8] {
        self.key(&self.last_key)
    }

    fn key(&self, range: &Range<u32>) -> &[u8] {
        &self.keys[range.start as usize..range.end as usize]
    }

    /// Puts `state` at the first cell.
    pub(crate) fn first(&self, state: &mut Assembled) {
        self.restart(0, state);
    }

    /// Puts `state` at the last cell.
    pub(crate) fn last(&self, payload: &[u8], state: &mut Assembled) -> Parsed<()> {
        self.restart(self.restarts.len() - 1, state);
        while self.advance(payload, state)? {}
        Ok(())
    }

    /// Puts `state` at the next cell; at the last one leaves it and returns false.
    #[inline]
    pub(crate) fn advance(&self, payload: &[u8], state: &mut Assembled) -> Parsed<bool> {
        if state.place.end as usize >= payload.len() {
            return Ok(false);
        }
        self.format.step(payload, state, None)?;
        Ok(true)
    }

    /// Puts `state` at the first cell at or behind `target`; there must be one. With `forward`, `state` is at a cell of
    /// this block before `target`, from which to go on if that is nearer.
    pub(crate) fn seek(
        &self,
        payload: &[u8],
        order: CellOrder,
        target: &[u8],
        state: &mut Assembled,
        forward: bool,
    ) -> Parsed<()> {
        let before = self.restarts_before(order, target);
        if before == 0 {
            self.first(state);
            return Ok(());
        }
        if !(forward && self.restarts[before - 1].place.start <= state.place.start) {
            self.restart(before - 1, state);
        }
        while order.compare_keys(&state.key, target) == Ordering::Less {
            if !self.advance(payload, state)? {
                return Err(Fault::Damaged("block ends before the sought key"));
            }
        }
        Ok(())
    }

    /// Puts `state` at the last cell before `target`, which the first cell must be.
    pub(crate) fn seek_before(
        &self,
        payload: &[u8],
        order: CellOrder,
        target: &[u8],
        state: &mut Assembled,
    ) -> Parsed<()> {
        let from = self.restarts_before(order, target).saturating_sub(1);
        self.restart(from, state);
        let mut found = state.place.start;
        while self.advance(payload, state)? && order.compare_keys(&state.key, target) == Ordering::Less {
            found = state.place.start;
        }
        // A step cannot be taken back; so the way to the cell before is gone a second time.
        self.restart(from, state);
        while state.place.start < found && self.advance(payload, state)? {}
        Ok(())
    }

    fn restarts_before(&self, order: CellOrder, target: &[u8]) -> usize {
        self.restarts
            .partition_point(|restart| order.compare_keys(self.key(&restart.key), target) == Ordering::Less)
    }

    fn restart(&self, index: usize, state: &mut Assembled) {
        let restart = &self.restarts[index];
        state.key.clear();
        state.key.extend_from_slice(self.key(&restart.key));
        state.place = restart.place;
    }
}

/// How many times its size a block of packed tags may unpack to: far more than keys that share their row, and tags that
/// are met again, gain in any block that a store writes.
const UNPACK_RATIO_MAX: usize = 1024;
/// Short blocks may gain more.
const UNPACK_SLACK: usize = 64 << 10;

/// Unpacks a block whose tags are packed by a dictionary, which cannot be entered in the middle, to plain cells.
pub(crate) fn to_plain(
    payload: &[u8],
    start: usize,
    packing: Packing,
    fields: CellFields,
) -> Parsed<Vec<u8>> {
    let format = Format::parse(payload, start, packing, fields)?;
    let claimed = Input::starting(payload, start).u32("packed block cut")? as usize;
    let possible = payload.len().saturating_mul(UNPACK_RATIO_MAX) + UNPACK_SLACK;
    if claimed > possible.min(PLAIN_LEN_MAX) {
        return Err(Fault::Damaged("cells claim to unpack to more than is possible"));
    }
    let mut state = format.start_state();
    let (mut dictionary, mut tags) = (TagDictionary::default(), Vec::new());
    let mut out = Vec::with_capacity(claimed.min(4 * payload.len()));
    while (state.place.end as usize) < payload.len() {
        tags.clear();
        format.step(payload, &mut state, Some((&mut dictionary, &mut tags)))?;
        let value = &payload[state.place.value_range()];
        out.extend_from_slice(&(state.key.len() as u32).to_be_bytes());
        out.extend_from_slice(&(value.len() as u32).to_be_bytes());
        out.extend_from_slice(&state.key);
        out.extend_from_slice(value);
        out.extend_from_slice(&(tags.len() as u16).to_be_bytes());
        out.extend_from_slice(&tags);
        if fields.mvcc {
            base::varint::put_vlong(&mut out, state.place.seq_id as i64);
        }
        if out.len() > claimed {
            return Err(Fault::Damaged("cells unpack to more than their block says"));
        }
    }
    Ok(out)
}

/// Keeps a key. A block has at most 1 GiB, as many bytes of keys at most are there before, so offsets fit.
fn push_key(keys: &mut Vec<u8>, key: &[u8]) -> Range<u32> {
    let start = keys.len() as u32;
    keys.extend_from_slice(key);
    start..keys.len() as u32
}

impl Format {
    fn parse(payload: &[u8], start: usize, packing: Packing, fields: CellFields) -> Parsed<Format> {
        const CUT: &str = "packed block cut";
        let mut input = Input::starting(payload, start);
        input.take(PLAIN_LEN_LEN, CUT)?;
        let family_at = input.position() as u32;
        let family = match packing {
            Packing::Prefix => 0..0,
            Packing::Diff => {
                let len = input.u8(CUT)?;
                input.take(usize::from(len), CUT)?;
                family_at..input.position() as u32
            }
            Packing::FastDiff => family_in_first_key(input)?,
        };
        Ok(Format { packing, fields, start: input.position() as u32, family })
    }

    /// The state before the first cell.
    fn start_state(&self) -> Assembled {
        Assembled { key: Vec::new(), place: Place { end: self.start, ..Place::default() } }
    }

    /// Changes `state` from one cell to the next. On an error it is of no use any more.
    #[inline]
    fn step(
        &self,
        payload: &[u8],
        state: &mut Assembled,
        unpack: Option<(&mut TagDictionary, &mut Vec<u8>)>,
    ) -> Parsed<()> {
        let mut input = Input::starting(payload, state.place.end as usize);
        state.place.start = state.place.end;
        match self.packing {
            Packing::Prefix => step_prefix(&mut input, state)?,
            Packing::Diff => self.step_diff(payload, &mut input, state)?,
            Packing::FastDiff => self.step_fast_diff(payload, &mut input, state)?,
        }
        if self.fields.tags {
            let len = input.varint("packed tags cut")?;
            if len as usize > cell::cell::TAGS_LEN_MAX {
                return Err(Fault::Damaged("tags over 64 KiB"));
            }
            (state.place.tags_at, state.place.tags_len) = (input.position() as u32, len);
            match unpack {
                None => drop(input.take(len as usize, "packed tags cut")?),
                Some((dictionary, tags)) => dictionary.unpack(&mut input, len as usize, tags)?,
            }
        }
        if self.fields.mvcc {
            state.place.seq_id = input.seq_id()?;
        }
        state.place.end = input.position() as u32;
        Ok(())
    }

    fn step_diff(&self, payload: &[u8], input: &mut Input<'_>, state: &mut Assembled) -> Parsed<()> {
        const CUT: &str = "DIFF cell cut";
        let previous = End::of(&state.key);
        let flags = input.u8(CUT)?;
        let key_len = length(input, flags & diff::SAME_KEY_LEN != 0, state.key.len())?;
        let value_len = length(input, flags & diff::SAME_VALUE_LEN != 0, state.place.value_len as usize)?;
        self.key_front(payload, input, key_len, state)?;
        let stored = input
            .take(usize::from(flags >> diff::TIMESTAMP_LEN_SHIFT & diff::TIMESTAMP_LEN_MASK) + 1, CUT)?;
        let mut timestamp = stored.iter().rev().fold(0_i64, |value, byte| (value << 8) | i64::from(*byte));
        if flags & diff::TIMESTAMP_NEGATIVE != 0 {
            timestamp = timestamp.wrapping_neg();
        }
        if flags & diff::TIMESTAMP_IS_DIFFERENCE != 0 {
            timestamp = i64::from_be_bytes(previous.timestamp).wrapping_sub(timestamp);
        }
        state.key.extend_from_slice(&timestamp.to_be_bytes());
        let same_type = flags & diff::SAME_TYPE != 0;
        state.key.push(if same_type { previous.type_code } else { input.u8(CUT)? });
        take_value(input, state, value_len)
    }

    fn step_fast_diff(&self, payload: &[u8], input: &mut Input<'_>, state: &mut Assembled) -> Parsed<()> {
        const CUT: &str = "FAST_DIFF cell cut";
        let previous = End::of(&state.key);
        let is_first = state.key.is_empty();
        let flags = input.u8(CUT)?;
        let key_len = length(input, flags & fast_diff::SAME_KEY_LEN != 0, state.key.len())?;
        let previous_value_len = state.place.value_len as usize;
        let value_len = length(input, flags & fast_diff::SAME_VALUE_LEN != 0, previous_value_len)?;
        if is_first {
            input.varint(CUT)?;
            state.key.extend_from_slice(input.take(key_len, CUT)?);
            return take_value(input, state, value_len);
        }
        self.key_front(payload, input, key_len, state)?;
        let common = usize::from(flags & fast_diff::TIMESTAMP_COMMON_MASK);
        state.key.extend_from_slice(&previous.timestamp[..common]);
        state.key.extend_from_slice(input.take(8 - common, CUT)?);
        let same_type = flags & fast_diff::SAME_TYPE != 0;
        state.key.push(if same_type { previous.type_code } else { input.u8(CUT)? });
        if flags & fast_diff::SAME_VALUE == 0 {
            return take_value(input, state, value_len);
        }
        if value_len == previous_value_len {
            Ok(())
        } else {
            Err(Fault::Damaged("equal values of two lengths"))
        }
    }

    /// Row, family and qualifier of the next key, in place of the previous key.
    #[inline]
    fn key_front(
        &self,
        payload: &[u8],
        input: &mut Input<'_>,
        key_len: usize,
        state: &mut Assembled,
    ) -> Parsed<()> {
        const CUT: &str = "packed key cut";
        let common = input.varint(CUT)? as usize;
        if common > state.key.len().saturating_sub(TIMESTAMP_TYPE_LEN) {
            return Err(Fault::Damaged("packed key shares more than there is"));
        }
        let same_row = !state.key.is_empty() && common >= row_end(&state.key)?;
        state.key.truncate(common);
        if !same_row {
            if common < 2 {
                state.key.extend_from_slice(input.take(2 - common, CUT)?);
            }
            let missing = row_end(&state.key)?
                .checked_sub(state.key.len())
                .ok_or(Fault::Damaged("packed key shares more than its row"))?;
            state.key.extend_from_slice(input.take(missing, CUT)?);
            state.key.extend_from_slice(&payload[self.family.start as usize..self.family.end as usize]);
        }
        let qualifier = key_len
            .checked_sub(TIMESTAMP_TYPE_LEN + state.key.len())
            .ok_or(Fault::Damaged("packed key longer than it says"))?;
        state.key.extend_from_slice(input.take(qualifier, CUT)?);
        Ok(())
    }
}

/// Timestamp and type of a key that is about to be overwritten.
struct End {
    timestamp: [u8; 8],
    type_code: u8,
}

impl End {
    /// Of no key, zeros.
    #[inline]
    fn of(key: &[u8]) -> End {
        match key.last_chunk::<TIMESTAMP_TYPE_LEN>() {
            Some([timestamp @ .., type_code]) => End { timestamp: *timestamp, type_code: *type_code },
            None => End { timestamp: [0; 8], type_code: 0 },
        }
    }
}

/// Where the row of a key ends, of which at least the row length is there.
#[inline]
fn row_end(key: &[u8]) -> Parsed<usize> {
    let len = key.first_chunk::<2>().ok_or(Fault::Damaged("packed key without row"))?;
    Ok(2 + usize::from(u16::from_be_bytes(*len)))
}

#[inline]
fn length(input: &mut Input<'_>, same: bool, previous: usize) -> Parsed<usize> {
    if same { Ok(previous) } else { Ok(input.varint("packed length cut")? as usize) }
}

#[inline]
fn take_value(input: &mut Input<'_>, state: &mut Assembled, len: usize) -> Parsed<()> {
    (state.place.value_at, state.place.value_len) = (input.position() as u32, len as u32);
    input.take(len, "packed value cut").map(drop)
}

#[inline]
fn step_prefix(input: &mut Input<'_>, state: &mut Assembled) -> Parsed<()> {
    const CUT: &str = "PREFIX cell cut";
    let rest = input.varint(CUT)? as usize;
    let value_len = input.varint(CUT)? as usize;
    let common = input.varint(CUT)? as usize;
    if common > state.key.len() {
        return Err(Fault::Damaged("packed key shares more than there is"));
    }
    state.key.truncate(common);
    state.key.extend_from_slice(input.take(rest, CUT)?);
    take_value(input, state, value_len)
}

/// Where family length and family are in the first cell of a FAST_DIFF block, whose key is whole.
fn family_in_first_key(mut input: Input<'_>) -> Parsed<Range<u32>> {
    const CUT: &str = "FAST_DIFF cell cut";
    input.u8(CUT)?;
    let key_len = input.varint(CUT)? as usize;
    input.varint(CUT)?;
    input.varint(CUT)?;
    let key_at = input.position();
    let key = input.take(key_len, CUT)?;
    key::check(key)?;
    let at = key_at + 2 + key::row(key).len();
    Ok(at as u32..(at + 1 + key::family(key).len()) as u32)
}
