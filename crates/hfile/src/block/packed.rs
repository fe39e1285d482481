//! Cells in the encodings PREFIX, DIFF and FAST_DIFF, which omit what a cell shares with the
//! previous one.
//!
//! ```text
//! all:        bytes of the unpacked cells 4 | [family length 1 | family, DIFF only] | cells
//! PREFIX:     rest of key, varint | value, varint | common, varint
//!             | key after the common part | value
//! DIFF:       flags 1 | [key, varint] | [value, varint] | common, varint
//!             | [row length 2 | row] after the common part | qualifier after it
//!             | timestamp, little-endian | [type 1] | value
//! FAST_DIFF:  as DIFF, but: timestamp after its common prefix | [type 1] | [value];
//!             the first cell has its whole key
//! each cell:  [tags, varint | tags] | [sequence id, vlong]
//! ```
//!
//! (A name with "varint" is its length.) A cell can only be decoded after the previous one. So
//! [`Assembled`] holds the key of the current cell, and a step changes it into the next key. Values
//! and tags stay in the block. Loading a block walks and checks all cells once. It retains the key
//! of every [`RESTART_EVERY`]th cell as a starting point for seeks.

use std::cmp::Ordering;
use std::ops::Range;

use cell::key::TIMESTAMP_TYPE_LEN;
use cell::{CellOrder, key};

use crate::block::plain::{CellFields, starts_row};
use crate::block::tags::TagDictionary;
use crate::compression::PAYLOAD_LEN_MAX;
use crate::error::{Fault, Parsed};
use crate::input::Input;

/// Number of cells between two restarts. A seek unpacks half of them on average. The restart keys
/// take a few percent of the block.
const RESTART_EVERY: usize = 16;
/// Bytes of the unpacked length before the cells.
const PLAIN_LEN_LEN: usize = 4;

/// The encoding.
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

/// A decoded cell: its key here, everything else in the payload.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assembled {
    /// Empty before the first cell.
    pub(crate) key: Vec<u8>,
    pub(crate) span: PackedSpan,
}

/// Positions of a packed cell and its parts in the payload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PackedSpan {
    start: u32,
    end: u32,
    value_at: u32,
    value_len: u32,
    tags_at: u32,
    tags_len: u32,
    pub(crate) seq_id: u64,
}

impl PackedSpan {
    /// Position of the value in the payload.
    #[inline]
    pub(crate) fn value_range(&self) -> Range<usize> {
        self.value_at as usize..(self.value_at + self.value_len) as usize
    }

    /// The tags of the cell in `payload`.
    #[inline]
    pub(crate) fn tags<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[self.tags_at as usize..][..self.tags_len as usize]
    }
}

/// A cell at which unpacking can start. The key is in [`PackedCells::keys`].
#[derive(Clone, Debug)]
struct Restart {
    key: Range<u32>,
    span: PackedSpan,
}

/// The search structure of a block.
#[derive(Debug)]
pub(crate) struct PackedCells {
    format: Format,
    restarts: Box<[Restart]>,
    keys: Box<[u8]>,
    /// The key of the last cell, as a range of `keys`.
    last_key: Range<u32>,
}

/// The properties of a block that are needed to unpack its cells.
#[derive(Clone, Debug)]
struct Format {
    packing: Packing,
    fields: CellFields,
    /// Offset of the first cell.
    start: u32,
    /// Position of family length and family: before the cells (DIFF) or in the first key
    /// (FAST_DIFF).
    family: Range<u32>,
}

impl PackedCells {
    /// Checks a payload whose packed form begins at `start`. Tags must not be packed by a
    /// dictionary.
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
        while (state.span.end as usize) < payload.len() {
            format.step(payload, &mut state, None)?;
            key::check(&state.key)?;
            starts_row(order, (!previous.is_empty()).then_some(&previous[..]), &state.key)?;
            // Long keys that are mostly shared could unpack to many times the block, so their
            // restarts are farther apart.
            if restarts.is_empty() || since_restart >= RESTART_EVERY && keys.len() < payload.len() {
                let key = push_key(&mut keys, &state.key);
                restarts.push(Restart { key, span: state.span });
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

    /// Heap bytes, without the payload.
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

    /// Moves `state` to the first cell.
    pub(crate) fn first(&self, state: &mut Assembled) {
        self.restart(0, state);
    }

    /// Moves `state` to the last cell.
    pub(crate) fn last(&self, payload: &[u8], state: &mut Assembled) -> Parsed<()> {
        self.restart(self.restarts.len() - 1, state);
        while self.advance(payload, state)? {}
        Ok(())
    }

    /// Moves `state` to the next cell. Returns false and does not move if there is none.
    #[inline]
    pub(crate) fn advance(&self, payload: &[u8], state: &mut Assembled) -> Parsed<bool> {
        if state.span.end as usize >= payload.len() {
            return Ok(false);
        }
        self.format.step(payload, state, None)?;
        Ok(true)
    }

    /// Moves `state` to the first cell at or after `target`, which must exist. With `forward`,
    /// `state` must be at a cell of this block before `target`; the seek continues from there if
    /// that is nearer than a restart.
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
        if !(forward && self.restarts[before - 1].span.start <= state.span.start) {
            self.restart(before - 1, state);
        }
        while order.compare_keys(&state.key, target) == Ordering::Less {
            if !self.advance(payload, state)? {
                return Err(Fault::Damaged("block ends before the sought key"));
            }
        }
        Ok(())
    }

    /// Moves `state` to the last cell before `target`. The first cell must be before it.
    pub(crate) fn seek_before(
        &self,
        payload: &[u8],
        order: CellOrder,
        target: &[u8],
        state: &mut Assembled,
    ) -> Parsed<()> {
        let from = self.restarts_before(order, target).saturating_sub(1);
        self.restart(from, state);
        let mut found = state.span.start;
        while self.advance(payload, state)? && order.compare_keys(&state.key, target) == Ordering::Less {
            found = state.span.start;
        }
        // Steps cannot be reversed, so walk to the found cell a second time.
        self.restart(from, state);
        while state.span.start < found && self.advance(payload, state)? {}
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
        state.span = restart.span;
    }
}

/// Maximum expansion of a block with packed tags. Shared key prefixes and repeated tags in any
/// block that a store writes stay far below it.
const UNPACK_RATIO_MAX: usize = 1024;
/// Added to the limit, because short blocks may expand more.
const UNPACK_SLACK: usize = 64 << 10;

/// Unpacks a block whose tags are packed by a dictionary to plain cells. Such a block cannot be
/// decoded from the middle.
pub(crate) fn to_plain(
    payload: &[u8],
    start: usize,
    packing: Packing,
    fields: CellFields,
) -> Parsed<Vec<u8>> {
    let format = Format::parse(payload, start, packing, fields)?;
    let claimed = Input::starting(payload, start).u32("packed block truncated")? as usize;
    let possible = payload.len().saturating_mul(UNPACK_RATIO_MAX) + UNPACK_SLACK;
    if claimed > possible.min(PAYLOAD_LEN_MAX) {
        return Err(Fault::Damaged("cells claim to unpack to more than is possible"));
    }
    let mut state = format.start_state();
    let (mut dictionary, mut tags) = (TagDictionary::default(), Vec::new());
    let mut out = Vec::with_capacity(claimed.min(4 * payload.len()));
    while (state.span.end as usize) < payload.len() {
        tags.clear();
        format.step(payload, &mut state, Some((&mut dictionary, &mut tags)))?;
        let value = &payload[state.span.value_range()];
        out.extend_from_slice(&(state.key.len() as u32).to_be_bytes());
        out.extend_from_slice(&(value.len() as u32).to_be_bytes());
        out.extend_from_slice(&state.key);
        out.extend_from_slice(value);
        out.extend_from_slice(&(tags.len() as u16).to_be_bytes());
        out.extend_from_slice(&tags);
        if fields.mvcc {
            base::varint::put_vlong(&mut out, state.span.seq_id as i64);
        }
        if out.len() > claimed {
            return Err(Fault::Damaged("cells unpack to more than their block states"));
        }
    }
    Ok(out)
}

/// Appends a key. Offsets fit in 32 bits: a block has at most 1 GiB, and restarts stop once the
/// keys are as long as the block.
fn push_key(keys: &mut Vec<u8>, key: &[u8]) -> Range<u32> {
    let start = keys.len() as u32;
    keys.extend_from_slice(key);
    start..keys.len() as u32
}

impl Format {
    fn parse(payload: &[u8], start: usize, packing: Packing, fields: CellFields) -> Parsed<Format> {
        const CUT: &str = "packed block truncated";
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
        Assembled { key: Vec::new(), span: PackedSpan { end: self.start, ..PackedSpan::default() } }
    }

    /// Moves `state` from one cell to the next. Invalidates it on an error.
    #[inline]
    fn step(
        &self,
        payload: &[u8],
        state: &mut Assembled,
        unpack: Option<(&mut TagDictionary, &mut Vec<u8>)>,
    ) -> Parsed<()> {
        let mut input = Input::starting(payload, state.span.end as usize);
        state.span.start = state.span.end;
        match self.packing {
            Packing::Prefix => step_prefix(&mut input, state)?,
            Packing::Diff => self.step_diff(payload, &mut input, state)?,
            Packing::FastDiff => self.step_fast_diff(payload, &mut input, state)?,
        }
        if self.fields.tags {
            let len = input.varint("packed tags truncated")?;
            if len as usize > cell::cell::TAGS_LEN_MAX {
                return Err(Fault::Damaged("tags larger than 64 KiB"));
            }
            (state.span.tags_at, state.span.tags_len) = (input.position() as u32, len);
            match unpack {
                None => drop(input.take(len as usize, "packed tags truncated")?),
                Some((dictionary, tags)) => dictionary.unpack(&mut input, len as usize, tags)?,
            }
        }
        if self.fields.mvcc {
            state.span.seq_id = input.seq_id()?;
        }
        state.span.end = input.position() as u32;
        Ok(())
    }

    fn step_diff(&self, payload: &[u8], input: &mut Input<'_>, state: &mut Assembled) -> Parsed<()> {
        const CUT: &str = "DIFF cell truncated";
        let previous = KeyTail::of(&state.key);
        let flags = input.u8(CUT)?;
        let key_len = length(input, flags & diff::SAME_KEY_LEN != 0, state.key.len())?;
        let value_len = length(input, flags & diff::SAME_VALUE_LEN != 0, state.span.value_len as usize)?;
        self.key_prefix(payload, input, key_len, state)?;
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
        const CUT: &str = "FAST_DIFF cell truncated";
        let previous = KeyTail::of(&state.key);
        let is_first = state.key.is_empty();
        let flags = input.u8(CUT)?;
        let key_len = length(input, flags & fast_diff::SAME_KEY_LEN != 0, state.key.len())?;
        let previous_value_len = state.span.value_len as usize;
        let value_len = length(input, flags & fast_diff::SAME_VALUE_LEN != 0, previous_value_len)?;
        if is_first {
            input.varint(CUT)?;
            state.key.extend_from_slice(input.take(key_len, CUT)?);
            return take_value(input, state, value_len);
        }
        self.key_prefix(payload, input, key_len, state)?;
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
            Err(Fault::Damaged("equal values with different lengths"))
        }
    }

    /// Replaces the previous key in `state` by row, family and qualifier of the next key.
    #[inline]
    fn key_prefix(
        &self,
        payload: &[u8],
        input: &mut Input<'_>,
        key_len: usize,
        state: &mut Assembled,
    ) -> Parsed<()> {
        const CUT: &str = "packed key truncated";
        let common = input.varint(CUT)? as usize;
        if common > state.key.len().saturating_sub(TIMESTAMP_TYPE_LEN) {
            return Err(Fault::Damaged("packed key shares more than the previous key has"));
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
            .ok_or(Fault::Damaged("packed key longer than its stated length"))?;
        state.key.extend_from_slice(input.take(qualifier, CUT)?);
        Ok(())
    }
}

/// Timestamp and type of a key that is about to be overwritten.
struct KeyTail {
    timestamp: [u8; 8],
    type_code: u8,
}

impl KeyTail {
    /// Zeros if there is no key.
    #[inline]
    fn of(key: &[u8]) -> KeyTail {
        match key.last_chunk::<TIMESTAMP_TYPE_LEN>() {
            Some([timestamp @ .., type_code]) => KeyTail { timestamp: *timestamp, type_code: *type_code },
            None => KeyTail { timestamp: [0; 8], type_code: 0 },
        }
    }
}

/// The end of the row in a key that contains at least the row length.
#[inline]
fn row_end(key: &[u8]) -> Parsed<usize> {
    let len = key.first_chunk::<2>().ok_or(Fault::Damaged("packed key without row"))?;
    Ok(2 + usize::from(u16::from_be_bytes(*len)))
}

#[inline]
fn length(input: &mut Input<'_>, same: bool, previous: usize) -> Parsed<usize> {
    if same { Ok(previous) } else { Ok(input.varint("packed length truncated")? as usize) }
}

#[inline]
fn take_value(input: &mut Input<'_>, state: &mut Assembled, len: usize) -> Parsed<()> {
    (state.span.value_at, state.span.value_len) = (input.position() as u32, len as u32);
    input.take(len, "packed value truncated").map(drop)
}

#[inline]
fn step_prefix(input: &mut Input<'_>, state: &mut Assembled) -> Parsed<()> {
    const CUT: &str = "PREFIX cell truncated";
    let rest = input.varint(CUT)? as usize;
    let value_len = input.varint(CUT)? as usize;
    let common = input.varint(CUT)? as usize;
    if common > state.key.len() {
        return Err(Fault::Damaged("packed key shares more than the previous key has"));
    }
    state.key.truncate(common);
    state.key.extend_from_slice(input.take(rest, CUT)?);
    take_value(input, state, value_len)
}

/// Position of family length and family in the first cell of a FAST_DIFF block, which has its whole
/// key.
fn family_in_first_key(mut input: Input<'_>) -> Parsed<Range<u32>> {
    const CUT: &str = "FAST_DIFF cell truncated";
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
