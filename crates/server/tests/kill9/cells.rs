//! The cells that are written into a row, and how they are recognized.
//!
//! Every write of a row has a version and puts three columns of two families with one mutation.
//! Each value contains row and version, and filling whose length and content follow from the
//! version. So every byte read can be compared with what was sent.

use bytes::Bytes;
use cell::mutation::Mutation;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use client::Row;

/// The columns of a row, in key order.
const COLUMNS: [(&[u8], &[u8]); 3] = [(b"a", b"m"), (b"a", b"n"), (b"b", b"n")];
/// The length of a value's filling is below this.
const FILLING_MAX: u64 = 400;

/// Split keys of a table of up to 16 regions whose rows start with a hexadecimal digit.
pub fn split_keys(regions: u64) -> Vec<Bytes> {
    (1..regions).map(|region| Bytes::from(format!("{:x}", region * 16 / regions))).collect()
}

/// The key of row `number` of `owner`. Consecutive rows are in different regions.
pub fn row_key(owner: &str, number: u64) -> Bytes {
    let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    Bytes::from(format!("{scattered:04x}-{owner}-{number:06}"))
}

/// The source of a row's timestamps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Timestamps {
    /// The server's clock. Several versions may have the same timestamp; then the later write wins.
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

/// As [`put`], but as one mutation per family, to be applied atomically. If versions are
/// timestamps, a further mutation first deletes older versions.
pub fn put_in_parts(row: &Bytes, version: u64, timestamps: Timestamps) -> Vec<Mutation> {
    let cells = put(row, version, timestamps).cells;
    let (of_a, of_b): (Vec<_>, Vec<_>) = cells.into_iter().partition(|cell| cell.view(0).family() == b"a");
    let older = (timestamps == Timestamps::Versions).then(|| delete(row, version - 1, true));
    let puts = [of_a, of_b].map(|cells| Mutation::put(row.clone(), cells));
    older.into_iter().chain(puts).collect()
}

/// Deletes all versions of `row` up to `version`, with family or column markers.
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

/// The content of a row as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowContent {
    /// All columns have one version.
    Version(u64),
    /// Columns of several versions, or columns missing.
    Torn(String),
    /// Bytes that were never written.
    Foreign(String),
}

impl RowContent {
    /// Interprets the cells of a row.
    pub fn from_row(row: &Row) -> RowContent {
        let mut columns = Vec::new();
        for cell in row.cells.iter().map(|cell| cell.view(0)) {
            let column = (cell.family(), cell.qualifier());
            let known = COLUMNS.contains(&column) && cell.kind() == CellType::Put;
            match version_of(cell.row(), cell.value).filter(|_| known) {
                Some(version) => columns.push((column, version)),
                None => return RowContent::Foreign(format!("{cell:?}: {}", cell.value.escape_ascii())),
            }
        }
        let complete = columns.iter().map(|(column, _)| *column).eq(COLUMNS);
        match columns.first() {
            Some((_, first)) if complete && columns.iter().all(|(_, version)| version == first) => {
                RowContent::Version(*first)
            }
            _ => RowContent::Torn(describe(&columns)),
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

/// The version that has exactly this value.
fn version_of(row: &[u8], bytes: &[u8]) -> Option<u64> {
    let version = std::str::from_utf8(bytes).ok()?.split('#').nth(1)?.parse().ok()?;
    (value(row, version) == bytes).then_some(version)
}
