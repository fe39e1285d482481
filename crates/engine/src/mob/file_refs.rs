//! The MOB files to which the cells of a store file refer, as the file lists them
//! (`MOB_FILE_REFS`): `<table>/<file>,<file>//<table>/<file>`, or a single zero byte for none.
//!
//! Source: HBase `MobUtils.serializeMobFileRefs`. Neither `/` nor `,` occurs in a name.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use fs::{FilePath, FileSystem};
use hfile::info::names;
use hfile::{FileInfo, OpenOptions, Reader, StoreInfo};

use crate::error::{Error, Result};
use crate::scanner::next_file_id;
use crate::store::StoreFile;

/// MOB files, by the name of the table that owns them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileRefs(BTreeMap<String, BTreeSet<String>>);

impl FileRefs {
    /// Adds a file.
    pub fn add(&mut self, owner: &str, file: &str) {
        let files = match self.0.get_mut(owner) {
            Some(files) => files,
            None => self.0.entry(owner.to_string()).or_default(),
        };
        if !files.contains(file) {
            files.insert(file.to_string());
        }
    }

    /// Adds all files of `other`.
    pub fn extend(&mut self, other: FileRefs) {
        for (owner, files) in other.0 {
            self.0.entry(owner).or_default().extend(files);
        }
    }

    /// Whether a table owns a file of this name. Names are random, so any table counts.
    pub fn contains(&self, file: &str) -> bool {
        self.0.values().any(|files| files.contains(file))
    }

    /// All files: the name of the owning table, and the file's name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|(owner, files)| files.iter().map(|file| (owner.as_str(), file.as_str())))
    }

    /// The form in a store file.
    pub fn encode(&self) -> Bytes {
        if self.0.is_empty() {
            return Bytes::from_static(&[0]);
        }
        let table = |(owner, files): (&String, &BTreeSet<String>)| {
            let files: Vec<&str> = files.iter().map(String::as_str).collect();
            format!("{owner}/{}", files.join(","))
        };
        self.0.iter().map(table).collect::<Vec<_>>().join("//").into()
    }

    /// Parses the form in a store file; `None` if it is malformed.
    pub fn decode(bytes: &[u8]) -> Option<FileRefs> {
        let mut refs = FileRefs::default();
        if bytes == [0] {
            return Some(refs);
        }
        for table in std::str::from_utf8(bytes).ok()?.split("//") {
            let (owner, files) = table.split_once('/')?;
            if owner.is_empty() {
                return None;
            }
            for file in files.split(',') {
                if file.is_empty() || file.contains('/') {
                    return None;
                }
                refs.add(owner, file);
            }
        }
        Some(refs)
    }

    /// The files that a store file with this info lists. `None` if it lists none: it was written
    /// when the family had no MOB files, or by a version of HBase that kept no lists. A file of a
    /// bulk load has no references.
    ///
    /// # Errors
    /// [`Error::corrupt`] for a malformed list; `path` is that of the store file.
    pub fn of(path: &FilePath, info: &FileInfo) -> Result<Option<FileRefs>> {
        match info.get(names::MOB_FILE_REFS) {
            Some(list) => match FileRefs::decode(list) {
                Some(refs) => Ok(Some(refs)),
                None => {
                    let what = format!("has a malformed list of MOB files: {}", list.escape_ascii());
                    Err(Error::corrupt(path, 0, what))
                }
            },
            None if info.get(names::BULK_LOAD_SOURCE_TASK).is_some() => Ok(Some(FileRefs::default())),
            None => Ok(None),
        }
    }

    /// The files that any of the store files lists; `None` if one of them has no list, so that any
    /// MOB file may be needed.
    ///
    /// # Errors
    /// As [`FileRefs::of`].
    pub fn of_all<'a>(files: impl IntoIterator<Item = &'a StoreFile>) -> Result<Option<FileRefs>> {
        let mut refs = FileRefs::default();
        for file in files {
            match FileRefs::of(file.path(), file.reader().info())? {
                Some(listed) => refs.extend(listed),
                None => return Ok(None),
            }
        }
        Ok(Some(refs))
    }

    /// Adds the list to the info of a store file.
    pub(crate) fn put_in(&self, info: &mut StoreInfo) {
        info.mob_file_refs = Some(self.encode());
    }
}

/// The MOB files that the store file at `path` lists; `None` if it has no list. Reads the file's
/// metadata only, and caches nothing.
///
/// # Errors
/// As [`Reader::open`] and [`FileRefs::of`].
pub async fn listed_in(fs: &dyn FileSystem, path: &FilePath) -> Result<Option<FileRefs>> {
    let reader = Reader::open(fs, path, next_file_id(), OpenOptions::default()).await?;
    FileRefs::of(path, reader.info())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_hbases_and_are_read_back() {
        let mut refs = FileRefs::default();
        assert_eq!(&refs.encode()[..], [0]);
        assert_eq!(FileRefs::decode(&[0]), Some(refs.clone()));
        for (owner, file) in [("ns:t", "b"), ("ns:t", "a"), ("ns:t", "b"), ("u", "c")] {
            refs.add(owner, file);
        }
        assert_eq!(&refs.encode()[..], b"ns:t/a,b//u/c");
        assert_eq!(FileRefs::decode(&refs.encode()), Some(refs.clone()));
        assert!(refs.contains("c") && !refs.contains("d"));
        let mut more = FileRefs::decode(b"u/d").unwrap();
        more.extend(refs);
        assert_eq!(&more.encode()[..], b"ns:t/a,b//u/c,d");
    }

    #[test]
    fn malformed_lists_are_none() {
        for list in [&b""[..], b"\0\0", b"t", b"/a", b"t/", b"t/a,", b"t/a//", b"t/a/b", b"\xff/a"] {
            assert_eq!(FileRefs::decode(list), None, "{list:?}");
        }
    }
}
