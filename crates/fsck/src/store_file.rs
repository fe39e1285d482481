//! Reads a store file.

use std::collections::BTreeSet;

use base::text::to_string_binary;
use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::TableName;
use cell::{Cell, CellOrder, EndKey};
use engine::mob::{FileRefs, MobReference, is_reference};
use fs::{FilePath, FileSystem, IoClass};
use hfile::{OpenOptions, Reader, Walk};

/// Bytes that are read at a time.
const READ_BYTES: usize = 1 << 20;

/// How much of each store file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The trailer, the file info and the root of the index.
    Head,
    /// All blocks: their checksums, and the order and number of cells.
    Cells,
}

/// The rows that the cells of a file may have.
pub(crate) struct Bounds {
    start: Bytes,
    end: Bytes,
}

impl Bounds {
    pub(crate) fn of(region: &RegionInfo) -> Bounds {
        Bounds { start: region.start_key.clone(), end: region.end_key.clone() }
    }

    fn contains(&self, row: &[u8]) -> bool {
        row >= &self.start[..] && EndKey(&self.end).is_after(row)
    }
}

/// What a file has.
#[derive(Debug)]
pub(crate) struct ReadFile {
    pub(crate) bytes: u64,
    pub(crate) cells: u64,
    /// What is wrong, apart from damage.
    pub(crate) problems: Vec<String>,
    /// The MOB files to which its cells refer. With [`Depth::Head`], those that the file lists.
    pub(crate) mob_files: BTreeSet<MobFile>,
}

/// A MOB file, by the table that owns it and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MobFile {
    pub(crate) owner: TableName,
    pub(crate) name: String,
}

impl ReadFile {
    fn add_listed_mob_files(&mut self, path: &FilePath, info: &hfile::FileInfo) {
        match FileRefs::of(path, info) {
            // A file without a list: of a family without MOB files, or of an old version of HBase.
            Ok(None) => {}
            Ok(Some(refs)) => {
                for (owner, name) in refs.iter() {
                    match TableName::parse(owner) {
                        Ok(owner) => {
                            self.mob_files.insert(MobFile { owner, name: name.to_string() });
                        }
                        Err(error) => self.problems.push(format!("{path}: its list of MOB files: {error}")),
                    }
                }
            }
            Err(error) => self.problems.push(error.to_string()),
        }
    }

    fn add_reference(&mut self, path: &FilePath, cell: &Cell<'_>) {
        match MobReference::parse(cell) {
            // A set of few names: most cells refer to a file that another cell named.
            Some(MobReference { owner, file, .. }) => {
                self.mob_files.insert(MobFile { owner, name: file.to_string() });
            }
            None => {
                let row = to_string_binary(cell.row());
                self.problems.push(format!("{path}: the MOB reference at row {row} is malformed"));
            }
        }
    }
}

/// Reads a file in the directory of its family. `bounds` are those of its region, if they are
/// known.
///
/// # Errors
/// Damage, and errors of reading.
pub(crate) async fn read(
    fs: &dyn FileSystem,
    path: &FilePath,
    order: CellOrder,
    bounds: Option<Bounds>,
    depth: Depth,
) -> hfile::Result<ReadFile> {
    let options = OpenOptions { order: Some(order), assigned_seq_id: None };
    let file = Reader::open(fs, path, 0, options).await?;
    let expected = file.info().entry_count;
    let (problems, mob_files) = (Vec::new(), BTreeSet::new());
    let mut read = ReadFile { bytes: file.len(), cells: expected, problems, mob_files };
    if depth == Depth::Head {
        read.add_listed_mob_files(path, file.info());
        return Ok(read);
    }
    let (dir, mut walk) = (path.parent(), Walk::new(&file, IoClass::Compaction, READ_BYTES));
    let mut last: Vec<u8> = Vec::new();
    let (mut cells, mut outside, mut of_other_families) = (0, 0, 0);
    loop {
        walk.next().await?;
        let Some(cell) = walk.cell() else { break };
        if !last.is_empty() && order.compare_keys(&last, cell.key).is_gt() {
            let row = to_string_binary(cell.row());
            read.problems.push(format!("{path}: the cells are not in order at row {row}"));
            break;
        }
        cells += 1;
        if is_reference(cell.tags) {
            read.add_reference(path, &cell);
        }
        of_other_families += u64::from(cell.family() != dir.name().as_bytes());
        outside += u64::from(bounds.as_ref().is_some_and(|bounds| !bounds.contains(cell.row())));
        last.clear();
        last.extend_from_slice(cell.key);
    }
    if read.problems.is_empty() && cells != expected {
        read.problems.push(format!("{path}: it has {cells} cells, and should have {expected}"));
    }
    if outside > 0 {
        read.problems.push(format!("{path}: {outside} cells have rows of other regions"));
    }
    if of_other_families > 0 {
        read.problems.push(format!("{path}: {of_other_families} cells are of other families"));
    }
    Ok(read)
}
