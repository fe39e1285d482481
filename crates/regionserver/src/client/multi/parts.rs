//! A multi's messages in parts: actions are decoded one by one when they run, and results are
//! encoded one by one.
//!
//! An action of two bytes takes a few hundred bytes when decoded, and so does its result. With this
//! module the memory of a request stays close to its encoded size, however many actions it has.

use std::ops::Range;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, encode_varint, encoded_len_varint, skip_field,
};
use prost::{DecodeError, Message};
use proto::exception::{Answer, JavaException};
use wire::convert::field::{SHORT, field_range};

use crate::client::malformed;

// Field numbers of `MultiRequest`, `RegionAction` and `Action`.
const REQUEST_REGION_ACTION: u32 = 1;
const REGION_ACTION_ACTION: u32 = 3;
const ACTION_INDEX: u32 = 1;
const ACTION_MUTATION: u32 = 2;
const ACTION_GET: u32 = 3;
// Keys of varint and message fields with small numbers.
const FIRST_NUMBER: u8 = 0x08;
const FIRST_MESSAGE: u8 = 0x0a;
const THIRD_NUMBER: u8 = 0x18;
const SECOND_MESSAGE: u8 = 0x12;

/// Maximum length of an entry before its result, in bytes: three keys, and three varints (entry
/// length, index, result length).
const ENTRY_HEAD_LEN_MAX: usize = 3 + 3 * 10;
/// More than the bytes of a result whose cells are in the cell block. Such a result is written
/// together with its head.
const SMALL_RESULT_LEN_MAX: usize = 16;
/// Typical bytes of an entry whose cells are in the cell block.
const SMALL_ENTRY_LEN: usize = 14;
/// Maximum number of actions for whose results space is allocated in advance.
const ACTIONS_PREALLOCATED_MAX: usize = 1000;

/// A `MultiRequest` with undecoded region actions.
pub(super) struct MultiParts {
    /// All fields except the region actions.
    pub(super) rest: proto::MultiRequest,
    bytes: Bytes,
}

/// A `RegionAction` with undecoded actions.
pub(super) struct RegionParts {
    /// All fields except the actions.
    pub(super) rest: proto::RegionAction,
    /// The number of actions.
    pub(super) actions: usize,
    bytes: Bytes,
}

impl MultiParts {
    /// Splits an encoded message.
    ///
    /// # Errors
    /// `DoNotRetryIOException` if the message cannot be decoded, as for every other message.
    pub(super) fn split(bytes: Bytes) -> Answer<MultiParts> {
        let mut rest = BytesMut::new();
        split(&bytes, REQUEST_REGION_ACTION, &mut rest).map_err(malformed)?;
        let rest = proto::MultiRequest::decode(rest.freeze()).map_err(malformed)?;
        Ok(MultiParts { rest, bytes })
    }

    /// The regions' parts, in order.
    pub(super) fn regions(&self) -> impl Iterator<Item = Answer<RegionParts>> + use<> {
        let (bytes, messages) = (self.bytes.clone(), Messages::new(&self.bytes, REQUEST_REGION_ACTION));
        messages.map(move |part| part.and_then(|at| RegionParts::split(bytes.slice(at))).map_err(malformed))
    }
}

impl RegionParts {
    fn split(bytes: Bytes) -> Result<RegionParts, DecodeError> {
        let mut rest = BytesMut::new();
        let actions = split(&bytes, REGION_ACTION_ACTION, &mut rest)?;
        Ok(RegionParts { rest: proto::RegionAction::decode(rest.freeze())?, actions, bytes })
    }

    /// The encoded `RegionAction`.
    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The actions, decoded lazily.
    pub(super) fn actions(&self) -> impl Iterator<Item = Answer<proto::Action>> + use<> {
        let (bytes, messages) = (self.bytes.clone(), self.messages());
        messages.map(move |at| at.and_then(|at| proto::Action::decode(bytes.slice(at))).map_err(malformed))
    }

    /// The kinds and positions of the actions, without decoding them.
    pub(super) fn action_ranges(&self) -> ActionRanges {
        ActionRanges { messages: self.messages(), position: 0 }
    }

    /// Whether an action may be a mutation.
    pub(super) fn writes(&self) -> Answer<bool> {
        for action in self.action_ranges() {
            if !matches!(action?.1, ActionRange::Get(..)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Decodes the action that [`action_ranges`](Self::action_ranges) found at this position.
    pub(super) fn action(&self, at: Range<usize>) -> Answer<proto::Action> {
        proto::Action::decode(self.bytes.slice(at)).map_err(malformed)
    }

    fn messages(&self) -> Messages {
        Messages::new(&self.bytes, REGION_ACTION_ACTION)
    }
}

/// The position of an action in its region's part. (A decoded action is large, and moving it is
/// expensive.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ActionRange {
    /// A Get and nothing else: its index, and the range of its message.
    Get(Option<u32>, Range<usize>),
    /// A mutation and nothing else: its index, and the range of its message.
    Mutation(Option<u32>, Range<usize>),
    /// Any other action.
    Other(Range<usize>),
}

/// Iterates over a region's actions, in order, each with its position.
pub(super) struct ActionRanges {
    messages: Messages,
    position: u32,
}

impl ActionRanges {
    /// Returns the index and the row of the next action, if it is a Get and `row_of` finds its row
    /// in the message. Otherwise does not consume the action.
    #[inline]
    pub(super) fn next_get(
        &mut self,
        row_of: impl FnOnce(&[u8], Range<usize>) -> Option<Range<usize>>,
    ) -> Option<(u32, Range<usize>)> {
        let before = self.messages.at;
        let row = match self.messages.step() {
            Ok(Some(at)) => get_in(&self.messages.bytes, &at)
                .and_then(|(index, get)| Some((index, row_of(&self.messages.bytes, get)?))),
            _ => None,
        };
        let Some((index, row)) = row else {
            self.messages.at = before;
            return None;
        };
        let position = self.consume();
        Some((index.unwrap_or(position), row))
    }

    /// Consumes an action and returns its position.
    fn consume(&mut self) -> u32 {
        let position = self.position;
        self.position += 1;
        position
    }
}

impl Iterator for ActionRanges {
    type Item = Answer<(u32, ActionRange)>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.messages.next()?;
        let position = self.consume();
        Some(at.map(|at| (position, action_range(&self.messages.bytes, at))).map_err(malformed))
    }
}

fn action_range(bytes: &[u8], at: Range<usize>) -> ActionRange {
    if let Some((index, get)) = get_in(bytes, &at) {
        return ActionRange::Get(index, get);
    }
    match value_after_index(bytes, &at, ACTION_MUTATION) {
        Some((index, mutation)) => ActionRange::Mutation(index, mutation),
        None => ActionRange::Other(at),
    }
}

/// The index and message of the action at `at`, if it is a Get and nothing else.
#[inline]
fn get_in(bytes: &[u8], at: &Range<usize>) -> Option<(Option<u32>, Range<usize>)> {
    value_after_index(bytes, at, ACTION_GET)
}

/// The index and the value of `field` of the action at `at`, if it has only these two, in this
/// order, or only the latter.
#[inline]
fn value_after_index(bytes: &[u8], at: &Range<usize>, field: u32) -> Option<(Option<u32>, Range<usize>)> {
    let action = &bytes[at.clone()];
    let (index, after_index) = index_of(action)?;
    // If the value does not reach the end of the action, the action has other fields.
    let value = field_range(action, after_index, field).filter(|of| of.end == action.len())?;
    Some((index, at.start + value.start..at.start + value.end))
}

/// The index that the action begins with, if any, and the offset after it.
#[inline]
fn index_of(action: &[u8]) -> Option<(Option<u32>, usize)> {
    match *action {
        [FIRST_NUMBER, index @ ..SHORT, ..] => Some((Some(u32::from(index)), 2)),
        _ => long_index(action),
    }
}

fn long_index(action: &[u8]) -> Option<(Option<u32>, usize)> {
    let mut rest = action;
    if decode_key(&mut rest).ok()? != (ACTION_INDEX, WireType::Varint) {
        return Some((None, 0));
    }
    let index = decode_varint(&mut rest).ok()? as u32;
    Some((Some(index), action.len() - rest.len()))
}

/// Copies all fields except `field` to `rest`. Returns the number of occurrences of `field`.
fn split(mut bytes: &[u8], field: u32, rest: &mut BytesMut) -> Result<usize, DecodeError> {
    let mut count = 0;
    let key = u8::try_from(field << 3 | WireType::LengthDelimited as u32).expect("a field of a small number");
    while bytes.has_remaining() {
        // Fast path for most fields.
        if let [first, len @ ..SHORT, rest @ ..] = bytes
            && *first == key
            && let Some(after) = rest.get(usize::from(*len)..)
        {
            count += 1;
            bytes = after;
            continue;
        }
        let before = bytes;
        let (number, wire_type) = decode_key(&mut bytes)?;
        skip_field(wire_type, number, &mut bytes, DecodeContext::default())?;
        match number == field && wire_type == WireType::LengthDelimited {
            true => count += 1,
            false => rest.put_slice(&before[..before.len() - bytes.len()]),
        }
    }
    Ok(count)
}

/// Iterates over the ranges of the messages of one repeated field.
struct Messages {
    bytes: Bytes,
    // Offset of the unread bytes.
    at: usize,
    field: u32,
}

impl Messages {
    fn new(bytes: &Bytes, field: u32) -> Messages {
        Messages { bytes: bytes.clone(), at: 0, field }
    }

    #[inline]
    fn step(&mut self) -> Result<Option<Range<usize>>, DecodeError> {
        let len = self.bytes.len();
        let mut rest = &self.bytes[self.at..];
        if let [key, message_len @ ..SHORT, ..] = *rest
            && u32::from(key) == self.field << 3 | WireType::LengthDelimited as u32
        {
            // Fast path for most messages.
            let start = self.at + 2;
            self.at = len.min(start + usize::from(message_len));
            return Ok(Some(start..self.at));
        }
        while rest.has_remaining() {
            let (number, wire_type) = decode_key(&mut rest)?;
            if number != self.field || wire_type != WireType::LengthDelimited {
                skip_field(wire_type, number, &mut rest, DecodeContext::default())?;
                continue;
            }
            let message_len = decode_varint(&mut rest)?;
            let message_len = usize::try_from(message_len).unwrap_or(usize::MAX).min(rest.len());
            let start = len - rest.len();
            self.at = start + message_len;
            return Ok(Some(start..self.at));
        }
        self.at = len;
        Ok(None)
    }
}

impl Iterator for Messages {
    type Item = Result<Range<usize>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.step();
        if next.is_err() {
            self.at = self.bytes.len();
        }
        next.transpose()
    }
}

/// A `RegionActionResult` that grows entry by entry.
#[derive(Default)]
pub(super) struct RegionAnswer {
    bytes: BytesMut,
    pub(super) processed: Option<bool>,
}

impl RegionAnswer {
    /// Prepares for the results of `actions` actions.
    pub(super) fn with_capacity(actions: usize) -> RegionAnswer {
        let bytes = BytesMut::with_capacity(actions.min(ACTIONS_PREALLOCATED_MAX) * SMALL_ENTRY_LEN);
        RegionAnswer { bytes, processed: None }
    }

    /// The result of a region whose actions all fail with `exception`.
    pub(super) fn failed(exception: &JavaException) -> RegionAnswer {
        let mut answer = RegionAnswer::default();
        put_message(&mut answer.bytes, SECOND_MESSAGE, &proto::NameBytesPair::from(exception));
        answer
    }

    /// Appends the outcome of one action.
    pub(super) fn push_outcome(&mut self, index: u32, outcome: Answer<proto::Result>) {
        match outcome {
            Ok(result) => self.push_result(index, &result),
            Err(exception) => self.push(&super::failed_entry(index, &exception)),
        }
    }

    /// Appends the entry of an applied mutation, with an empty result.
    #[inline]
    pub(super) fn push_done(&mut self, index: u32) {
        match u8::try_from(index) {
            Ok(index @ ..SHORT) => {
                self.bytes.put_slice(&[FIRST_MESSAGE, 4, FIRST_NUMBER, index, SECOND_MESSAGE, 0]);
            }
            _ => self.push_head(index, 0),
        }
    }

    /// Appends the part of an entry before its result, which has `result_len` bytes.
    fn push_head(&mut self, index: u32, result_len: usize) {
        let mut head = [0; ENTRY_HEAD_LEN_MAX];
        let mut rest = &mut head[..];
        put_head(index, result_len, &mut rest);
        let len = ENTRY_HEAD_LEN_MAX - rest.len();
        self.bytes.put_slice(&head[..len]);
    }

    /// Appends a `ResultOrException` with a result.
    fn push_result(&mut self, index: u32, result: &proto::Result) {
        self.push_head(index, result.encoded_len());
        result.encode_raw(&mut self.bytes);
    }

    /// Appends a result whose cells are the next `cells` cells of the cell block.
    pub(super) fn push_cells(&mut self, index: u32, cells: usize) {
        if let (Ok(index @ ..SHORT), Ok(cells @ 1..SHORT)) = (u8::try_from(index), u8::try_from(cells)) {
            return self.push_few_cells(index, cells);
        }
        let mut head = [0; ENTRY_HEAD_LEN_MAX + SMALL_RESULT_LEN_MAX];
        let mut rest = &mut head[..];
        let result_len = wire::convert::result::in_block_len(cells);
        put_head(index, result_len, &mut rest);
        wire::convert::result::put_in_block(cells, &mut rest);
        let len = ENTRY_HEAD_LEN_MAX + SMALL_RESULT_LEN_MAX - rest.len();
        self.bytes.put_slice(&head[..len]);
    }

    /// Like `push_cells`, if all numbers fit in one byte.
    fn push_few_cells(&mut self, index: u8, cells: u8) {
        let result = wire::convert::result::short_in_block(cells);
        let mut entry = [FIRST_MESSAGE, 0, FIRST_NUMBER, index, SECOND_MESSAGE, 0, 0, 0, 0, 0];
        let end = entry.len();
        entry[1] = end as u8 - 2;
        entry[5] = result.len() as u8;
        entry[end - result.len()..].copy_from_slice(&result);
        self.bytes.put_slice(&entry);
    }

    /// Appends the entry of one action.
    pub(super) fn push(&mut self, entry: &proto::ResultOrException) {
        put_message(&mut self.bytes, FIRST_MESSAGE, entry);
    }

    /// The number of bytes so far.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// A `MultiResponse` that grows region by region.
#[derive(Default)]
pub(super) struct MultiAnswer {
    bytes: BytesMut,
    /// For clients that read only the flag of the whole response.
    pub(super) processed: Option<bool>,
}

impl MultiAnswer {
    /// Appends the result of a region.
    pub(super) fn push(&mut self, mut region: RegionAnswer) {
        if let Some(processed) = region.processed {
            region.bytes.put_slice(&[THIRD_NUMBER, u8::from(processed)]);
        }
        self.bytes.put_u8(FIRST_MESSAGE);
        encode_varint(region.bytes.len() as u64, &mut self.bytes);
        match self.bytes.len() > region.bytes.len() {
            true => self.bytes.put_slice(&region.bytes),
            // A large part takes over the message instead of being copied after a small beginning.
            false => self.bytes.unsplit(region.bytes),
        }
    }

    /// The number of bytes so far.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The encoded message.
    pub(super) fn finish(mut self) -> Bytes {
        let rest = proto::MultiResponse {
            processed: self.processed,
            region_statistics: Some(proto::MultiRegionLoadStats::default()),
            ..proto::MultiResponse::default()
        };
        rest.encode(&mut self.bytes).expect("a growing buffer has room");
        self.bytes.freeze()
    }
}

/// Writes the part of a `ResultOrException` before its result, which has `result_len` bytes.
fn put_head(index: u32, result_len: usize, out: &mut impl BufMut) {
    let index_len = 1 + encoded_len_varint(u64::from(index));
    let entry_len = index_len + 1 + encoded_len_varint(result_len as u64) + result_len;
    out.put_u8(FIRST_MESSAGE);
    encode_varint(entry_len as u64, out);
    out.put_u8(FIRST_NUMBER);
    encode_varint(u64::from(index), out);
    out.put_u8(SECOND_MESSAGE);
    encode_varint(result_len as u64, out);
}

fn put_message(out: &mut BytesMut, key: u8, message: &impl Message) {
    out.put_u8(key);
    message.encode_length_delimited(out).expect("a growing buffer has room");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(index: u32) -> proto::Action {
        proto::Action { index: Some(index), ..proto::Action::default() }
    }

    #[test]
    fn split_message_equals_decoded_message() {
        let region = |name: &'static str, actions: u32| proto::RegionAction {
            region: proto::RegionSpecifier { r#type: 1, value: name.into() },
            atomic: Some(actions == 1),
            action: (0..actions).map(action).collect(),
            condition: None,
        };
        let whole = proto::MultiRequest {
            region_action: vec![region("a", 3), region("b", 0), region("c", 1)],
            nonce_group: Some(7),
            condition: None,
            grampus_master_active_time: None,
        };
        let parts = MultiParts::split(whole.encode_to_vec().into()).unwrap();
        assert_eq!((parts.rest.nonce_group, parts.rest.region_action.len()), (Some(7), 0));
        let regions: Vec<_> = parts.regions().map(Result::unwrap).collect();
        let joined = regions.iter().map(|parts| {
            let actions: Vec<_> = parts.actions().map(Result::unwrap).collect();
            assert_eq!(actions.len(), parts.actions);
            proto::RegionAction { action: actions, ..parts.rest.clone() }
        });
        assert_eq!(joined.collect::<Vec<_>>(), whole.region_action);
    }

    #[test]
    fn only_plain_gets_and_mutations_stay_encoded() {
        let get = proto::Get { row: "r".into(), ..proto::Get::default() };
        let plain = proto::Action { get: Some(get.clone()), ..action(7) };
        let without_index = proto::Action { index: None, ..plain.clone() };
        let mutation = proto::MutationProto { row: Some("r".into()), ..proto::MutationProto::default() };
        let changes = proto::Action { mutation: Some(mutation.clone()), ..action(7) };
        let both = proto::Action { get: Some(get.clone()), ..changes.clone() };
        let twice = [plain.encode_to_vec(), plain.encode_to_vec()].concat();
        for (action, index) in [(&plain, Some(7)), (&without_index, None)] {
            // Between other bytes.
            let (len, bytes) = (action.encoded_len(), [b"xx", &action.encode_to_vec()[..], b"y"].concat());
            match action_range(&bytes, 2..2 + len) {
                ActionRange::Get(of, at) => assert_eq!((of, &bytes[at]), (index, &get.encode_to_vec()[..])),
                other => panic!("{other:?}"),
            }
        }
        let bytes = changes.encode_to_vec();
        match action_range(&bytes, 0..bytes.len()) {
            ActionRange::Mutation(index, at) => {
                assert_eq!((index, &bytes[at]), (Some(7), &mutation.encode_to_vec()[..]))
            }
            other => panic!("{other:?}"),
        }
        for bytes in [both.encode_to_vec(), action(9).encode_to_vec(), twice] {
            assert_eq!(action_range(&bytes, 0..bytes.len()), ActionRange::Other(0..bytes.len()));
        }
        for cut in [plain.encode_to_vec(), changes.encode_to_vec()] {
            assert!((1..cut.len()).all(|len| action_range(&cut, 0..len) == ActionRange::Other(0..len)));
        }
    }

    #[test]
    fn next_get_consumes_only_accepted_gets() {
        let get = |row: &'static str| proto::Get { row: row.into(), ..proto::Get::default() };
        let of = |index, get| proto::Action { index, get: Some(get), ..proto::Action::default() };
        let mutation = proto::MutationProto { row: Some("r".into()), ..proto::MutationProto::default() };
        let changes = proto::Action { mutation: Some(mutation), ..action(9) };
        let actions = [of(Some(7), get("a")), of(None, get("b")), changes, of(None, get("c"))];
        let region = proto::RegionAction { action: actions.to_vec(), ..proto::RegionAction::default() };
        let region = RegionParts::split(region.encode_to_vec().into()).unwrap();
        let mut parts = region.action_ranges();
        let any = |_: &[u8], at| Some(at);
        assert_eq!(parts.next_get(|_, _| None), None);
        assert_eq!(parts.next_get(any).map(|(index, _)| index), Some(7));
        assert_eq!(parts.next_get(any).map(|(index, _)| index), Some(1), "its position");
        assert_eq!(parts.next_get(any), None);
        assert!(matches!(parts.next(), Some(Ok((2, ActionRange::Mutation(Some(9), _))))));
        let (index, at) = parts.next_get(any).unwrap();
        assert_eq!((index, &region.bytes()[at]), (3, &get("c").encode_to_vec()[..]));
        assert!(parts.next_get(any).is_none() && parts.next().is_none());
    }

    #[test]
    fn pushed_results_equal_encoded_entries() {
        for (index, cells) in [(0, 0), (1, 3), (127, 127), (5, 128), (128, 1), (200, 0), (70_000, 300)] {
            let result = wire::convert::result::in_block(cells);
            let [mut short, mut shorter, mut long] = [(); 3].map(|()| RegionAnswer::default());
            short.push_outcome(index, Ok(result.clone()));
            shorter.push_cells(index, cells);
            long.push(&proto::ResultOrException {
                index: Some(index),
                result: Some(result),
                ..proto::ResultOrException::default()
            });
            assert_eq!([short.bytes, shorter.bytes], [long.bytes.clone(), long.bytes]);
        }
    }

    #[test]
    fn applied_mutations_have_an_empty_result() {
        for index in [0, 1, 127, 128, 70_000] {
            let [mut short, mut long] = [(); 2].map(|()| RegionAnswer::default());
            short.push_done(index);
            long.push(&proto::ResultOrException {
                index: Some(index),
                result: Some(proto::Result::default()),
                ..proto::ResultOrException::default()
            });
            assert_eq!(short.bytes, long.bytes);
        }
    }

    #[test]
    fn invalid_messages_are_refused() {
        let bad = |bytes: &'static [u8]| {
            let Ok(parts) = MultiParts::split(Bytes::from_static(bytes)) else { return true };
            parts.regions().any(|region| match region {
                Ok(region) => region.actions().any(|action| action.is_err()),
                Err(_) => true,
            })
        };
        for bytes in [&b"\x0a\xff\x01"[..], b"\x0a\x02\x1a\x05", b"\x0a\x06\x0a\x00\x1a\x02\x08\x80", b"\xff"]
        {
            assert!(bad(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn response_equals_encoded_message() {
        let entry =
            |index| proto::ResultOrException { index: Some(index), ..proto::ResultOrException::default() };
        let mut answer = MultiAnswer::default();
        let mut region = RegionAnswer { processed: Some(false), ..RegionAnswer::default() };
        (0..1000).for_each(|index| region.push(&entry(index)));
        answer.push(region);
        let exception = JavaException::do_not_retry("no");
        answer.push(RegionAnswer::failed(&exception));
        answer.processed = Some(true);
        let message = proto::MultiResponse::decode(answer.finish()).unwrap();
        let expected = proto::MultiResponse {
            region_action_result: vec![
                proto::RegionActionResult {
                    result_or_exception: (0..1000).map(entry).collect(),
                    processed: Some(false),
                    exception: None,
                },
                proto::RegionActionResult {
                    exception: Some((&exception).into()),
                    ..proto::RegionActionResult::default()
                },
            ],
            processed: Some(true),
            region_statistics: Some(proto::MultiRegionLoadStats::default()),
        };
        assert_eq!(message, expected);
    }
}
