//! What is written into a row, and how it is known again.
//!
//! Every write of a row has a version, and puts it into three columns of two families with one mutation. Each value
//! names row and version and is filled up to a length that follows from them, so that every byte that comes back can
//! be held against what was sent.

use bytes::Bytes;
use cell::mutation::Mutation;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use client::Row;

/// The columns of a row, in key order.
const COLUMNS: [(&[u8], &[u8]); 3] = [(b"a", b"m"), (b"a", b"n"), (b"b", b"n")];
/// The longest filling of a value.
const FILLING_MAX: u64 = 400;

/// Where the regions of a table of up to 16 begin, if rows begin with a hexadecimal digit.
pub fn split_keys(regions: u64) -> Vec<Bytes> {
    (1..regions).map(|region| Bytes::from(format!("{:x}", region * 16 / regions))).collect()
}

/// The key of row `number` of `owner`; rows that follow each other lie in different regions.
pub fn row_key(owner: &str, number: u64) -> Bytes {
    let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    Bytes::from(format!("{scattered:04x}-{owner}-{number:06}"))
}

/// Who chooses the timestamps of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Timestamps {
    /// The server's clock: several versions may have the same, then the later write counts.
    OfServer,
    /// The version is the timestamp.
    Versions,
}

impl Timestamps {
    fn of(self, version: u64) -> i64 {
        match self {
            Timestamps::OfServer => LATEST_TIMESTAMP,
            Timestamps::Versions => i64::try_from(version).expect("versions are counted"),
        }
    }
}

/// Writes `version` into all columns of `row`.
pub fn put(row: &Bytes, version: u64, timestamps: Timestamps) -> Mutation {
    let cell = |(family, qualifier): (&[u8], &[u8])| {
        let value = value(row, version);
        KeyValue::new(row, family, qualifier, timestamps.of(version), CellType::Put, &value)
    };
    Mutation::put(row.clone(), COLUMNS.map(cell).to_vec())
}

/// The same as several mutations, one a family, which must be made as one. With the version as timestamp, what is older
/// is deleted by another one first.
pub fn put_in_parts(row: &Bytes, version: u64, timestamps: Timestamps) -> Vec<Mutation> {
    let cells = put(row, version, timestamps).cells;
    let (of_a, of_b): (Vec<_>, Vec<_>) = cells.into_iter().partition(|cell| cell.view(0).family() == b"a");
    let older = (timestamps == Timestamps::Versions).then(|| delete(row, version - 1, true));
    let puts = [of_a, of_b].map(|cells| Mutation::put(row.clone(), cells));
    older.into_iter().chain(puts).collect()
}

/// Deletes all versions of `row` up to `version`, by markers of families or of columns.
pub fn delete(row: &Bytes, version: u64, by_columns: bool) -> Mutation {
    let timestamp = Timestamps::Versions.of(version);
    let marker = |(family, qualifier): (&[u8], &[u8])| {
        KeyValue::new(row, family, qualifier, timestamp, CellType::DeleteColumn, b"")
    };
    let markers = if by_columns { COLUMNS.map(marker).to_vec() } else { Vec::new() };
    Mutation { timestamp, ..Mutation::delete(row.clone(), markers) }
}

fn value(row: &[u8], version: u64) -> Vec<u8> {
    let mut value = format!("{}#{version}#", row.escape_ascii()).into_bytes();
    let filling = version.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
    value.resize(value.len() + (filling % FILLING_MAX) as usize, b'a' + (version % 26) as u8);
    value
}

/// What came back of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// All columns, of one version.
    Version(u64),
    /// Columns of several versions, or not all columns.
    Torn(String),
    /// Bytes that nobody wrote.
    Strange(String),
}

impl Seen {
    /// Reads the cells of a row.
    pub fn of(row: &Row) -> Seen {
        let mut columns = Vec::new();
        for cell in row.cells.iter().map(|cell| cell.view(0)) {
            let column = (cell.family(), cell.qualifier());
            let known = COLUMNS.contains(&column) && cell.kind() == CellType::Put;
            match version_of(cell.row(), cell.value).filter(|_| known) {
                Some(version) => columns.push((column, version)),
                None => return Seen::Strange(format!("{cell:?}: {}", cell.value.escape_ascii())),
            }
        }
        let complete = columns.iter().map(|(column, _)| *column).eq(COLUMNS);
        match columns.first() {
            Some((_, first)) if complete && columns.iter().all(|(_, version)| version == first) => {
                Seen::Version(*first)
            }
            _ => Seen::Torn(describe(&columns)),
        }
    }
}

/// Family and qualifier.
type Column<'a> = (&'a [u8], &'a [u8]);

fn describe(columns: &[(Column<'_>, u64)]) -> String {
    let one = |((family, qualifier), version): &(Column<'_>, u64)| {
        format!("{}:{}={version}", family.escape_ascii(), qualifier.escape_ascii())
    };
    columns.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// The version whose value this is, byte for byte.
fn version_of(row: &[u8], bytes: &[u8]) -> Option<u64> {
    let version = std::str::from_utf8(bytes).ok()?.split('#').nth(1)?.parse().ok()?;
    (value(row, version) == bytes).then_some(version)
}
