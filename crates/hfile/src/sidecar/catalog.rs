//! The list of a file's stretches.

use bytes::Bytes;

use super::{SidecarLocation, VERSION};
use crate::error::{Fault, Parsed};
use crate::index::Target;
use crate::input::Input;

/// All stretches in row order. Together they contain all rows of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// At least one if the file has cells.
    pub entries: Vec<CatalogEntry>,
}

/// The location of a stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogEntry {
    /// Lower bound of the stretch's rows, greater than all rows of the previous stretch.
    pub start_row: Bytes,
    /// Offset of the stretch's first data block. Its first row may begin in an earlier block.
    pub block_offset: u64,
    /// Location of the stretch's directory.
    pub directory: SidecarLocation,
}

impl Catalog {
    /// Encodes version and number of entries; for each entry the row with its length, the data
    /// block's offset, and offset and length of the directory.
    pub(super) fn payload(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&(self.entries.len() as u32).to_be_bytes());
        for entry in &self.entries {
            out.extend_from_slice(&(entry.start_row.len() as u16).to_be_bytes());
            out.extend_from_slice(&entry.start_row);
            out.extend_from_slice(&entry.block_offset.to_be_bytes());
            out.extend_from_slice(&entry.directory.0.offset.to_be_bytes());
            out.extend_from_slice(&entry.directory.0.len.to_be_bytes());
        }
        out
    }

    /// # Errors
    /// [`Fault::Unsupported`] for another version.
    pub(super) fn parse(payload: &Bytes) -> Parsed<Catalog> {
        const CUT: &str = "sidecar catalog truncated";
        let mut input = Input::new(payload);
        check_version(&mut input)?;
        let count = input.u32(CUT)?;
        let mut entries: Vec<CatalogEntry> = Vec::new();
        for _ in 0..count {
            let len = input.u16(CUT)? as usize;
            let start_row = payload.slice_ref(input.take(len, CUT)?);
            let block_offset = input.u64(CUT)?;
            let directory = SidecarLocation(Target { offset: input.u64(CUT)?, len: input.u32(CUT)? });
            if entries.last().is_some_and(|last| last.start_row >= start_row) {
                return Err(Fault::Damaged("sidecar catalog out of order"));
            }
            entries.push(CatalogEntry { start_row, block_offset, directory });
        }
        input.end("sidecar catalog has trailing bytes")?;
        Ok(Catalog { entries })
    }
}

/// # Errors
/// [`Fault::Unsupported`] for another version.
pub(super) fn check_version(input: &mut Input<'_>) -> Parsed<()> {
    match input.u8("sidecar version missing")? {
        VERSION => Ok(()),
        other => Err(Fault::Unsupported(format!("column sidecar version {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_contents_are_read_back() {
        let entry = |row: &'static str, offset| CatalogEntry {
            start_row: Bytes::from_static(row.as_bytes()),
            block_offset: offset,
            directory: SidecarLocation(Target { offset: offset + 7, len: 99 }),
        };
        let catalog = Catalog { entries: vec![entry("", 0), entry("b", 1 << 40)] };
        let payload = Bytes::from(catalog.payload());
        assert_eq!(Catalog::parse(&payload), Ok(catalog));
        for len in 0..payload.len() {
            assert!(Catalog::parse(&payload.slice(..len)).is_err(), "{len} bytes are too few");
        }
    }

    #[test]
    fn rows_out_of_order_and_other_versions_are_refused() {
        let entry = CatalogEntry {
            start_row: Bytes::from_static(b"a"),
            block_offset: 0,
            directory: SidecarLocation(Target { offset: 0, len: 0 }),
        };
        let twice = Catalog { entries: vec![entry.clone(), entry] };
        assert!(matches!(Catalog::parse(&twice.payload().into()), Err(Fault::Damaged(_))));
        assert!(matches!(Catalog::parse(&Bytes::from_static(&[9, 0, 0, 0, 0])), Err(Fault::Unsupported(_))));
    }
}
