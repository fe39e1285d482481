//! References: a region's part of a file of another region, after a split or a merge, until it is
//! compacted.
//!
//! ```text
//! data/<ns>/<table>/<region>/<family>/<file>.<parent>      PBUF | Reference { splitkey, range }
//! ```
//!
//! The name identifies the file and the parent region. The file may be a link; the name then
//! contains the link's name. The content identifies the part: the rows from a split row on (top),
//! or the rows before it (bottom). A merged region has all files of its parents as tops that start
//! at the parents' first rows.
//!
//! The split key is stored as the smallest key that a cell of the split row can have, so it stands
//! for a row. A reference that splits within a row would tear the row and is rejected.
//!
//! Source: HBase `Reference`, `StoreFileInfo`.

use bytes::Bytes;
use cell::region::RegionInfo;
use cell::{KeyBuf, key};
use fs::{FilePath, FileSystem};
use proto::magic::{MAGIC, with_magic, without_magic};
use proto::reference::Range as ProtoRange;

use crate::store::StoreFileName;
use crate::{Result, RootDir, corrupt, file};

/// The part of a file: one side of the split row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// The rows from the split row on.
    Top,
    /// The rows before the split row.
    Bottom,
}

/// A region's part of a file of another region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The row that divides the file.
    pub split_row: Bytes,
    /// The side of it that the region has.
    pub range: Range,
}

impl Reference {
    /// Refers to the rows of a file from `split_row` on.
    pub fn top(split_row: impl Into<Bytes>) -> Reference {
        Reference { split_row: split_row.into(), range: Range::Top }
    }

    /// Refers to the rows of a file before `split_row`.
    pub fn bottom(split_row: impl Into<Bytes>) -> Reference {
        Reference { split_row: split_row.into(), range: Range::Bottom }
    }

    /// The key that divides the file: it precedes all cells of the split row.
    pub fn split_key(&self) -> KeyBuf {
        KeyBuf::first_on_row(&self.split_row)
    }

    /// The content of the reference file.
    pub fn encode(&self) -> Bytes {
        with_magic(&proto::Reference::from(self))
    }

    /// Decodes the content of the reference file at `path`, including the format of HBase before
    /// 0.96.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the content is not a reference.
    pub fn decode(path: &FilePath, content: &Bytes) -> Result<Reference> {
        if content.starts_with(MAGIC) {
            let message = without_magic(content).map_err(|error| corrupt(path, error))?;
            return Reference::try_of(path, &message);
        }
        let (range, split_key) =
            parse_writable(content).ok_or_else(|| corrupt(path, "is not a reference to a file"))?;
        Ok(Reference { split_row: split_row(path, &content.slice_ref(split_key))?, range })
    }

    /// Decodes a message that was read from `path`.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if its key or range is invalid.
    pub(crate) fn try_of(path: &FilePath, message: &proto::Reference) -> Result<Reference> {
        let range = match ProtoRange::try_from(message.range) {
            Ok(ProtoRange::Top) => Range::Top,
            Ok(ProtoRange::Bottom) => Range::Bottom,
            Err(error) => return Err(corrupt(path, error)),
        };
        Ok(Reference { split_row: split_row(path, &message.splitkey)?, range })
    }
}

impl From<&Reference> for proto::Reference {
    fn from(reference: &Reference) -> proto::Reference {
        let range = match reference.range {
            Range::Top => ProtoRange::Top,
            Range::Bottom => ProtoRange::Bottom,
        };
        let splitkey = Bytes::copy_from_slice(reference.split_key().as_slice());
        proto::Reference { splitkey, range: range as i32 }
    }
}

/// The name of a reference to `file` of `parent`.
pub fn reference_name(file: &str, parent: &RegionInfo) -> String {
    format!("{file}.{}", RegionInfo { replica_id: 0, ..parent.clone() }.encoded_name())
}

/// The row of a split key.
fn split_row(path: &FilePath, split_key: &Bytes) -> Result<Bytes> {
    key::check(split_key).map_err(|error| corrupt(path, error))?;
    let row = split_key.slice_ref(key::row(split_key));
    match KeyBuf::first_on_row(&row).as_slice() == &split_key[..] {
        true => Ok(row),
        false => Err(corrupt(path, "splits a file within a row")),
    }
}

/// Parses `top 1 | key length, vint | key`, the form of Java's `Writable`.
fn parse_writable(content: &[u8]) -> Option<(Range, &[u8])> {
    let (top, rest) = content.split_first()?;
    let (len, rest) = parse_len(rest)?;
    let range = if *top == 0 { Range::Bottom } else { Range::Top };
    (rest.len() == len).then_some((range, rest))
}

/// Parses a length in Hadoop's variable-size form: one byte up to 127, otherwise -113 to -116
/// followed by one to four bytes.
fn parse_len(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    match *first as i8 {
        len @ 0.. => Some((len as usize, rest)),
        size @ -116..=-113 => {
            let (len, rest) = rest.split_at_checked(usize::from((-112 - size).unsigned_abs()))?;
            Some((len.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)), rest))
        }
        _ => None,
    }
}

impl RootDir {
    /// Reads a reference file.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if it is not a reference; file system errors.
    pub async fn read_reference(&self, fs: &dyn FileSystem, path: &FilePath) -> Result<Reference> {
        Reference::decode(path, &file::read(fs, path).await?)
    }

    /// Reads a reference of a region, also from the archive; `None` if it no longer exists.
    ///
    /// # Errors
    /// As for [`RootDir::read_reference`].
    pub async fn find_reference(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
        family: &[u8],
        name: &str,
    ) -> Result<Option<Reference>> {
        for dir in [self.family_dir(region, family), self.archive_family_dir(region, family)] {
            match self.read_reference(fs, &dir.join(name)).await {
                Err(crate::Error::Fs(fs::Error::NotFound { .. })) => {}
                read => return read.map(Some),
            }
        }
        Ok(None)
    }

    /// Whether a region still has references to files of other regions, in any directory that may
    /// be a family's. False if the region has no directory.
    ///
    /// # Errors
    /// File system errors.
    pub async fn has_references(&self, fs: &dyn FileSystem, region: &RegionInfo) -> Result<bool> {
        let dir = self.region_dir(region);
        for family in file::list(fs, &dir).await? {
            if !family.is_dir || family.name.starts_with('.') {
                continue;
            }
            let files = file::list(fs, &dir.join(&family.name)).await?;
            if files.iter().any(|file| !file.is_dir && is_reference(&file.name)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether a store file's name is the name of a reference.
pub fn is_reference(name: &str) -> bool {
    matches!(StoreFileName::parse(name), Some(StoreFileName::Reference { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `splits/f` of a table that HBase 2.5.10 split at `f`.
    const BOTTOM: &[u8] = b"PBUF\n\x0d\0\x01f\0\x7f\xff\xff\xff\xff\xff\xff\xff\xff\x10\x01";

    fn decode(content: impl Into<Bytes>) -> Result<Reference> {
        Reference::decode(&FilePath::new("r"), &content.into())
    }

    #[test]
    fn contents_are_hbases() {
        assert_eq!(Reference::bottom("f").encode(), BOTTOM);
        let mut top = BOTTOM.to_vec();
        *top.last_mut().unwrap() = 0;
        assert_eq!(Reference::top("f").encode(), top);
        let long = "r".repeat(cell::cell::ROW_LEN_MAX);
        for row in ["f", "", "\u{0}", &long] {
            for reference in [Reference::top(row.to_string()), Reference::bottom(row.to_string())] {
                assert_eq!(decode(reference.encode()).unwrap(), reference);
            }
        }
    }

    #[test]
    fn old_contents_are_read() {
        let key = &BOTTOM[6..BOTTOM.len() - 2];
        let old = |top: u8, len: &[u8], key: &[u8]| decode([&[top], len, key].concat());
        assert_eq!(old(0, &[13], key).unwrap(), Reference::bottom("f"));
        assert_eq!(old(1, &[13], key).unwrap(), Reference::top("f"));
        let long = KeyBuf::first_on_row(&[b'r'; 200]);
        assert_eq!(old(1, &[-113i8 as u8, 212], long.as_slice()).unwrap(), Reference::top(vec![b'r'; 200]));
        assert_eq!(old(1, &[-114i8 as u8, 0, 212], long.as_slice()).unwrap().range, Range::Top);
        for (len, key) in [(&[14][..], key), (&[12], key), (&[-114i8 as u8, 0], b""), (&[-120i8 as u8], key)]
        {
            assert!(old(1, len, key).is_err(), "{len:?}");
        }
    }

    #[test]
    fn invalid_references_are_refused() {
        let message = |splitkey: &[u8], range| {
            decode(with_magic(&proto::Reference { splitkey: splitkey.to_vec().into(), range }))
        };
        let first = KeyBuf::first_on_row(b"row");
        assert!(message(first.as_slice(), 0).is_ok());
        assert!(message(first.as_slice(), 2).is_err(), "no such range");
        assert!(message(b"row", 0).is_err(), "not a key");
        let within = KeyBuf::first_on_column(b"row", b"f", b"q");
        assert!(message(within.as_slice(), 0).is_err(), "within a row");
        for content in [&b""[..], b"\x01", b"PBUF", b"PBUF\n\x0d\0\x01f"] {
            assert!(decode(content).is_err(), "{content:?}");
        }
    }
}
