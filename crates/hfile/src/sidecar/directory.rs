//! The directory of a stretch. It describes the cells of the stretch and states where its strips
//! are. [`sidecar`](super) defines these terms.

use bytes::Bytes;

use super::SidecarLocation;
use super::catalog::check_version;
use crate::error::{Fault, Parsed};
use crate::index::Target;
use crate::info::TimeRange;
use crate::input::Input;

const CUT: &str = "sidecar directory truncated";

/// The directory of a stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// The family of all cells.
    pub family: Bytes,
    /// Number of rows.
    pub rows: usize,
    /// Whether all cells are puts without tags. Otherwise there are no strips.
    pub is_plain: bool,
    /// The greatest sequence id of a cell.
    pub seq_id_max: u64,
    /// The least and the greatest timestamp of a cell.
    pub timestamps: TimeRange,
    /// Some rows in order: the first one and about one per data block.
    pub marks: Vec<RowMark>,
    /// Location of the strip with the keys of all rows.
    pub row_keys: Option<SidecarLocation>,
    // By qualifier, unordered.
    strips: Vec<(Bytes, SidecarLocation)>,
}

/// A row, and its index in the stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowMark {
    /// The row key.
    pub row: Bytes,
    /// Number of rows before it in the stretch.
    pub row_index: u32,
}

impl Directory {
    pub(super) fn new(rows: usize, is_plain: bool, seq_id_max: u64, timestamps: TimeRange) -> Directory {
        let (family, marks, strips) = (Bytes::new(), Vec::new(), Vec::new());
        Directory { family, rows, is_plain, seq_id_max, timestamps, marks, row_keys: None, strips }
    }

    pub(super) fn add_strip(&mut self, qualifier: &[u8], target: Target) {
        self.strips.push((Bytes::copy_from_slice(qualifier), SidecarLocation(target)));
    }

    /// Location of the strip of a column. If the stretch [has strips](Directory::has_strips),
    /// `None` means that no row has a value.
    pub fn strip(&self, qualifier: &[u8]) -> Option<SidecarLocation> {
        self.strips.iter().find(|(name, _)| name == qualifier).map(|(_, location)| *location)
    }

    /// Whether the stretch has strips: one with the row keys, and one for each column that at least
    /// one row has.
    pub fn has_strips(&self) -> bool {
        self.row_keys.is_some()
    }

    pub(super) fn payload(&self) -> Vec<u8> {
        let mut out = vec![super::VERSION, u8::from(self.is_plain)];
        put_bytes(&mut out, &self.family);
        out.extend_from_slice(&(self.rows as u32).to_be_bytes());
        out.extend_from_slice(&self.seq_id_max.to_be_bytes());
        out.extend_from_slice(&self.timestamps.min.to_be_bytes());
        out.extend_from_slice(&self.timestamps.max.to_be_bytes());
        out.extend_from_slice(&(self.marks.len() as u32).to_be_bytes());
        for mark in &self.marks {
            out.extend_from_slice(&mark.row_index.to_be_bytes());
            put_bytes(&mut out, &mark.row);
        }
        let Some(row_keys) = self.row_keys else {
            out.push(0);
            return out;
        };
        out.push(1);
        put_location(&mut out, row_keys);
        out.extend_from_slice(&(self.strips.len() as u32).to_be_bytes());
        for (qualifier, location) in &self.strips {
            put_bytes(&mut out, qualifier);
            put_location(&mut out, *location);
        }
        out
    }

    /// # Errors
    /// [`Fault::Unsupported`] for another version.
    pub(super) fn parse(payload: &Bytes) -> Parsed<Directory> {
        let mut input = Input::new(payload);
        check_version(&mut input)?;
        let is_plain = boolean(&mut input)?;
        let family = bytes(payload, &mut input)?;
        let rows = input.u32(CUT)? as usize;
        let seq_id_max = input.u64(CUT)?;
        let timestamps = TimeRange { min: input.u64(CUT)? as i64, max: input.u64(CUT)? as i64 };
        let mut directory = Directory::new(rows, is_plain, seq_id_max, timestamps);
        directory.family = family;
        for _ in 0..input.u32(CUT)? {
            let row_index = input.u32(CUT)?;
            let mark = RowMark { row: bytes(payload, &mut input)?, row_index };
            let is_after = |last: &RowMark| last.row_index < row_index && last.row < mark.row;
            if row_index as usize >= rows || !directory.marks.last().map_or(row_index == 0, is_after) {
                return Err(Fault::Damaged("sidecar directory marks out of order"));
            }
            directory.marks.push(mark);
        }
        if boolean(&mut input)? {
            directory.row_keys = Some(location(&mut input)?);
            for _ in 0..input.u32(CUT)? {
                let qualifier = bytes(payload, &mut input)?;
                directory.strips.push((qualifier, location(&mut input)?));
            }
        }
        if directory.has_strips() && (!is_plain || (rows > 0 && directory.marks.is_empty())) {
            return Err(Fault::Damaged("sidecar directory contradicts itself"));
        }
        if directory.has_strips() && rows > super::ROWS_MAX {
            return Err(Fault::Damaged("sidecar directory states too many rows"));
        }
        input.end("sidecar directory has trailing bytes")?;
        Ok(directory)
    }
}

fn boolean(input: &mut Input<'_>) -> Parsed<bool> {
    match input.u8(CUT)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Fault::Damaged("sidecar directory has an unknown form")),
    }
}

/// Rows are shorter than 2^15 bytes and qualifiers shorter than 2^16, since cell keys cannot store
/// longer ones.
fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn bytes(payload: &Bytes, input: &mut Input<'_>) -> Parsed<Bytes> {
    let len = input.u16(CUT)? as usize;
    Ok(payload.slice_ref(input.take(len, CUT)?))
}

fn put_location(out: &mut Vec<u8>, SidecarLocation(target): SidecarLocation) {
    out.extend_from_slice(&target.offset.to_be_bytes());
    out.extend_from_slice(&target.len.to_be_bytes());
}

fn location(input: &mut Input<'_>) -> Parsed<SidecarLocation> {
    Ok(SidecarLocation(Target { offset: input.u64(CUT)?, len: input.u32(CUT)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> Directory {
        let mut directory = Directory::new(7, true, 12, TimeRange { min: -3, max: 9 });
        directory.family = Bytes::from_static(b"d");
        directory.marks.push(RowMark { row: Bytes::from_static(b"a"), row_index: 0 });
        directory.marks.push(RowMark { row: Bytes::from_static(b"b"), row_index: 4 });
        directory.row_keys = Some(SidecarLocation(Target { offset: 1 << 40, len: 50 }));
        directory.add_strip(b"", Target { offset: 100, len: 1 });
        directory.add_strip(b"name", Target { offset: 101, len: 2 });
        directory
    }

    #[test]
    fn written_contents_are_read_back() {
        let plain = directory();
        let payload = Bytes::from(plain.payload());
        assert_eq!(Directory::parse(&payload), Ok(plain.clone()));
        assert_eq!(plain.strip(b"name"), Some(SidecarLocation(Target { offset: 101, len: 2 })));
        assert_eq!(plain.strip(b"nam"), None);
        for len in 0..payload.len() {
            assert!(Directory::parse(&payload.slice(..len)).is_err(), "{len} bytes are too few");
        }
        let other = Directory::new(3, false, 1, TimeRange::EMPTY);
        assert_eq!(Directory::parse(&other.payload().into()), Ok(other));
    }

    #[test]
    fn contradictions_are_found() {
        let parsed = |change: fn(&mut Directory)| {
            let mut directory = directory();
            change(&mut directory);
            Directory::parse(&directory.payload().into())
        };
        assert!(parsed(|directory| directory.is_plain = false).is_err());
        assert!(parsed(|directory| directory.rows = 4).is_err(), "a mark after all rows");
        assert!(parsed(|directory| directory.marks.swap(0, 1)).is_err());
        assert!(parsed(|directory| directory.marks.clear()).is_err());
        assert!(parsed(|directory| directory.rows = crate::sidecar::ROWS_MAX + 1).is_err());
        assert!(parsed(|directory| directory.rows = crate::sidecar::ROWS_MAX).is_ok());
        assert!(parsed(|_| {}).is_ok());
    }
}
