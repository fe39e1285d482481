//! The stretches of a file that has a sidecar.

use bytes::Bytes;

use super::{SidecarPlace, VERSION};
use crate::error::{Fault, Parsed};
use crate::index::Target;
use crate::input::Input;

/// All stretches, in the order of their rows, which are all rows of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// At least one where the file has cells.
    pub entries: Vec<CatalogEntry>,
}

/// Where a stretch is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogEntry {
    /// No row of the stretch is before it, and none of the stretches before is not.
    pub start_row: Bytes,
    /// The data block that its first cell is in, or the one behind.
    pub block_offset: u64,
    /// Where its directory is.
    pub directory: SidecarPlace,
}

impl Catalog {
    /// Version, number of entries; of each the row behind its length, the data block, place and length of the directory.
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
    /// [`Fault::Unsupported`] of another version.
    pub(super) fn parse(payload: &Bytes) -> Parsed<Catalog> {
        const CUT: &str = "catalog of columns cut";
        let mut input = Input::new(payload);
        check_version(&mut input)?;
        let count = input.u32(CUT)?;
        let mut entries: Vec<CatalogEntry> = Vec::new();
        for _ in 0..count {
            let len = input.u16(CUT)? as usize;
            let start_row = payload.slice_ref(input.take(len, CUT)?);
            let block_offset = input.u64(CUT)?;
            let directory = SidecarPlace(Target { offset: input.u64(CUT)?, len: input.u32(CUT)? });
            if entries.last().is_some_and(|last| last.start_row >= start_row) {
                return Err(Fault::Damaged("catalog of columns out of order"));
            }
            entries.push(CatalogEntry { start_row, block_offset, directory });
        }
        input.end("bytes behind the catalog of columns")?;
        Ok(Catalog { entries })
    }
}

/// # Errors
/// [`Fault::Unsupported`] of another version.
pub(super) fn check_version(input: &mut Input<'_>) -> Parsed<()> {
    match input.u8("no version of the sidecar")? {
        VERSION => Ok(()),
        other => Err(Fault::Unsupported(format!("version {other} of the column sidecar"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let entry = |row: &'static str, offset| CatalogEntry {
            start_row: Bytes::from_static(row.as_bytes()),
            block_offset: offset,
            directory: SidecarPlace(Target { offset: offset + 7, len: 99 }),
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
            directory: SidecarPlace(Target { offset: 0, len: 0 }),
        };
        let twice = Catalog { entries: vec![entry.clone(), entry] };
        assert!(matches!(Catalog::parse(&twice.payload().into()), Err(Fault::Damaged(_))));
        assert!(matches!(Catalog::parse(&Bytes::from_static(&[9, 0, 0, 0, 0])), Err(Fault::Unsupported(_))));
    }
}
