//! Keys of entries: HBase's `WALKey`, with three more fields that HBase skips.
//!
//! ```text
//! HBase's: 1 region | 2 table | 3 sequence id | 4 write time | 6 scopes* | 7 cell count
//!          | 8 cluster ids* | 9, 10 nonce
//! ours:    1000 durability mark (first entry of a group) | 1001 bytes of cells
//!          | 1002 crc32c (fixed32, last)
//! ```
//!
//! The checksum is the last field, so that it covers all other fields.

use base::varint::{put_varint, varint_len};
use bytes::Bytes;

use crate::edit::{Edit, Scope};
use crate::field::{self, Value};
use crate::mark::{MARK_FIELD, MARK_LEN, Salt, put_mark};

/// Number of the field with the length of the cells.
const CELLS_LEN_FIELD: u32 = 1001;
/// Number of the checksum field.
const CRC_FIELD: u32 = 1002;
/// Bytes of the checksum's value, the last bytes of a key.
pub(crate) const CRC_LEN: usize = size_of::<u32>();
/// Bytes of the tag of each of our fields.
const OUR_TAG_LEN: usize = 2;
/// Longest key that is written or read. A key without scopes has about 100 bytes.
pub(crate) const KEY_LEN_MAX: usize = 1 << 20;

/// The key of an entry: HBase's `WALKey`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Key {
    /// Encoded name of the region.
    pub region: Bytes,
    /// `namespace:table`, or `table` in the default namespace.
    pub table: Bytes,
    /// Sequence id: orders the edits of the region.
    pub seq_id: u64,
    /// Time of the change, milliseconds since the epoch.
    pub write_time_ms: u64,
    /// Families that are replicated.
    pub scopes: Vec<Scope>,
    /// Number of cells in the entry.
    pub cell_count: u32,
    /// Clusters that already have the edit, each a UUID with its most significant half first.
    pub cluster_ids: Vec<(u64, u64)>,
    /// Nonce group and nonce of the client's operation; 0 for none.
    pub nonce: (u64, u64),
    /// The sequence id that an edit had before it was replayed.
    pub original_seq_id: Option<u64>,
    /// Names and values attached by coprocessors.
    pub attributes: Vec<(Bytes, Bytes)>,
}

/// The parts of a key that a scan of a log needs. Positions are within the key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyFields {
    pub region_at: usize,
    pub region_len: usize,
    pub seq_id: u64,
    pub cell_count: u32,
    pub cells_len: Option<u64>,
    pub mark_at: Option<usize>,
    pub crc: Option<u32>,
}

impl KeyFields {
    /// Decodes the needed parts of `key`.
    pub(crate) fn read(key: &[u8]) -> Result<KeyFields, &'static str> {
        let mut region: Option<(usize, usize)> = None;
        let (mut has_table, mut has_time, mut seq_id) = (false, false, None);
        let (mut cell_count, mut cells_len, mut mark_at, mut crc) = (0, None, None, None);
        let mut input = key;
        while let Some((number, value)) = field::next(&mut input)? {
            let end = key.len() - input.len();
            match (number, value) {
                (1, Value::Bytes(bytes)) => region = Some((end - bytes.len(), bytes.len())),
                (2, Value::Bytes(_)) => has_table = true,
                (3, Value::Number(number)) => seq_id = Some(number),
                (4, Value::Number(_)) => has_time = true,
                (7, Value::Number(number)) => {
                    cell_count = u32::try_from(number).map_err(|_| "the cell count is out of range")?;
                }
                (1 | 2 | 3 | 4 | 7, _) => return Err("a field of the key has a wrong type"),
                (MARK_FIELD, Value::Bytes(mark)) => mark_at = Some(end - mark.len()),
                (CELLS_LEN_FIELD, Value::Number(len)) => cells_len = Some(len),
                (CRC_FIELD, Value::Fixed32(value)) if input.is_empty() => crc = Some(value),
                _ => (),
            }
        }
        let (Some((region_at, region_len)), Some(seq_id), true, true) = (region, seq_id, has_table, has_time)
        else {
            return Err("the key lacks a required field");
        };
        Ok(KeyFields { region_at, region_len, seq_id, cell_count, cells_len, mark_at, crc })
    }
}

impl Key {
    /// Decodes a whole key.
    pub(crate) fn read(bytes: &Bytes) -> Result<Key, &'static str> {
        let mut key = Key::default();
        let mut input = &bytes[..];
        while let Some((number, value)) = field::next(&mut input)? {
            match number {
                1 => key.region = bytes.slice_ref(value.bytes()?),
                2 => key.table = bytes.slice_ref(value.bytes()?),
                3 => key.seq_id = value.number()?,
                4 => key.write_time_ms = value.number()?,
                6 => key.scopes.push(read_scope(bytes, value.bytes()?)?),
                7 => {
                    key.cell_count =
                        value.number()?.try_into().map_err(|_| "the cell count is out of range")?
                }
                8 => key.cluster_ids.push(read_uuid(value.bytes()?)?),
                9 => key.nonce.0 = value.number()?,
                10 => key.nonce.1 = value.number()?,
                11 => key.original_seq_id = Some(value.number()?),
                12 => key.attributes.push(read_attribute(bytes, value.bytes()?)?),
                _ => (),
            }
        }
        if key.region.is_empty() {
            return Err("the key has no region name");
        }
        Ok(key)
    }
}

fn read_scope(whole: &Bytes, mut message: &[u8]) -> Result<Scope, &'static str> {
    let mut scope = Scope { family: Bytes::new(), code: 0 };
    while let Some((number, value)) = field::next(&mut message)? {
        match number {
            1 => scope.family = whole.slice_ref(value.bytes()?),
            2 => scope.code = value.number()?.try_into().map_err(|_| "a scope is out of range")?,
            _ => (),
        }
    }
    Ok(scope)
}

fn read_uuid(mut message: &[u8]) -> Result<(u64, u64), &'static str> {
    let mut uuid = (0, 0);
    while let Some((number, value)) = field::next(&mut message)? {
        match number {
            1 => uuid.1 = value.number()?,
            2 => uuid.0 = value.number()?,
            _ => (),
        }
    }
    Ok(uuid)
}

fn read_attribute(whole: &Bytes, mut message: &[u8]) -> Result<(Bytes, Bytes), &'static str> {
    let mut attribute = (Bytes::new(), Bytes::new());
    while let Some((number, value)) = field::next(&mut message)? {
        match number {
            1 => attribute.0 = whole.slice_ref(value.bytes()?),
            2 => attribute.1 = whole.slice_ref(value.bytes()?),
            _ => (),
        }
    }
    Ok(attribute)
}

/// Bytes of the key of `edit`, without the length before it.
pub(crate) fn encoded_len(edit: &Edit, with_mark: bool) -> usize {
    let bytes_len = |len: usize| 1 + varint_len(len as u64) + len;
    let number_len = |value: u64| 1 + varint_len(value);
    let nonce_len = |nonce: u64| if nonce == 0 { 0 } else { number_len(nonce) };
    let hbase = bytes_len(edit.region.len())
        + bytes_len(edit.table.len())
        + number_len(edit.seq_id)
        + number_len(edit.write_time_ms)
        + edit.scopes.iter().map(|scope| bytes_len(scope_len(scope))).sum::<usize>()
        + number_len(u64::from(edit.cell_count))
        + cluster_ids(edit).iter().map(|id| bytes_len(uuid_len(*id))).sum::<usize>()
        + nonce_len(edit.nonce.0)
        + nonce_len(edit.nonce.1);
    let mark = if with_mark { OUR_TAG_LEN + 1 + MARK_LEN } else { 0 };
    hbase + mark + OUR_TAG_LEN + varint_len(edit.cells.len() as u64) + OUR_TAG_LEN + CRC_LEN
}

fn cluster_ids(edit: &Edit) -> &[(u64, u64)] {
    edit.cluster_ids.as_deref().unwrap_or_default()
}

fn uuid_len((most, least): (u64, u64)) -> usize {
    1 + varint_len(least) + 1 + varint_len(most)
}

fn scope_len(scope: &Scope) -> usize {
    let len = scope.family.len();
    1 + varint_len(len as u64) + len + 1 + varint_len(u64::from(scope.code))
}

/// Appends the key of `edit`, with zeros for its checksum. `out[0]` will be at offset `base` of the
/// file.
pub(crate) fn encode(out: &mut Vec<u8>, edit: &Edit, salt: Salt, base: u64, durable: Option<u64>) {
    field::put_bytes(out, 1, edit.region.as_bytes());
    field::put_bytes(out, 2, &edit.table);
    field::put_number(out, 3, edit.seq_id);
    field::put_number(out, 4, edit.write_time_ms);
    for scope in edit.scopes.iter() {
        out.push(6 << 3 | 2);
        put_varint(out, scope_len(scope) as u64);
        field::put_bytes(out, 1, &scope.family);
        field::put_number(out, 2, u64::from(scope.code));
    }
    field::put_number(out, 7, u64::from(edit.cell_count));
    for (most, least) in cluster_ids(edit) {
        out.push(8 << 3 | 2);
        put_varint(out, uuid_len((*most, *least)) as u64);
        field::put_number(out, 1, *least);
        field::put_number(out, 2, *most);
    }
    for (number, nonce) in [(9, edit.nonce.0), (10, edit.nonce.1)] {
        if nonce != 0 {
            field::put_number(out, number, nonce);
        }
    }
    if let Some(durable) = durable {
        put_varint(out, u64::from(MARK_FIELD) << 3 | 2);
        put_varint(out, MARK_LEN as u64);
        let offset = base + out.len() as u64;
        put_mark(out, salt, offset, durable);
    }
    field::put_number(out, CELLS_LEN_FIELD, edit.cells.len() as u64);
    field::put_fixed32(out, CRC_FIELD, 0);
}
