//! Reads a store file.

use std::collections::{BTreeMap, BTreeSet};

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
    pub(crate) mob_files: MobFiles,
}

/// Names of MOB files, by the table that owns them.
#[derive(Debug, Default)]
pub(crate) struct MobFiles(BTreeMap<TableName, BTreeSet<String>>);

/// A MOB file, by the table that owns it and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MobFile {
    pub(crate) owner: TableName,
    pub(crate) name: String,
}

impl MobFiles {
    /// Adds a file. Most cells refer to a file that another cell named, which allocates nothing.
    fn add(&mut self, owner: TableName, name: &str) {
        let names = self.0.entry(owner).or_default();
        if !names.contains(name) {
            names.insert(name.to_string());
        }
    }

    pub(crate) fn into_files(self) -> impl Iterator<Item = MobFile> {
        let files = |(owner, names): (TableName, BTreeSet<String>)| {
            names.into_iter().map(move |name| MobFile { owner: owner.clone(), name })
        };
        self.0.into_iter().flat_map(files)
    }
}

/// Cells with one fault. A file may have many, so only the first is named.
#[derive(Default)]
struct Faulty {
    cells: u64,
    first_row: Vec<u8>,
}

impl Faulty {
    fn count(&mut self, cell: &Cell<'_>, is_faulty: bool) {
        if is_faulty && self.cells == 0 {
            self.first_row.extend_from_slice(cell.row());
        }
        self.cells += u64::from(is_faulty);
    }

    /// The problem of a file: the cells, and what is wrong with them.
    fn problem(&self, path: &FilePath, what: &str) -> Option<String> {
        let (cells, row) = (self.cells, to_string_binary(&self.first_row));
        (cells > 0).then(|| format!("{path}: {cells} cells {what}, the first at row {row}"))
    }
}

impl ReadFile {
    fn add_listed_mob_files(&mut self, path: &FilePath, info: &hfile::FileInfo) {
        match FileRefs::of(path, info) {
            // A file without a list: of a family without MOB files, or of an old version of HBase.
            Ok(None) => {}
            Ok(Some(refs)) => {
                for (owner, name) in refs.iter() {
                    match TableName::parse(owner) {
                        Ok(owner) => self.mob_files.add(owner, name),
                        Err(error) => self.problems.push(format!("{path}: its list of MOB files: {error}")),
                    }
                }
            }
            Err(error) => self.problems.push(error.to_string()),
        }
    }

    /// Adds the file of a MOB reference; false if the reference is malformed.
    fn add_reference(&mut self, cell: &Cell<'_>) -> bool {
        let Some(MobReference { owner, file, .. }) = MobReference::parse(cell) else { return false };
        self.mob_files.add(owner, file);
        true
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
    let (problems, mob_files) = (Vec::new(), MobFiles::default());
    let mut read = ReadFile { bytes: file.len(), cells: expected, problems, mob_files };
    if depth == Depth::Head {
        read.add_listed_mob_files(path, file.info());
        return Ok(read);
    }
    let (dir, mut walk) = (path.parent(), Walk::new(&file, IoClass::Compaction, READ_BYTES));
    let mut last: Vec<u8> = Vec::new();
    let (mut cells, mut out_of_order) = (0, Faulty::default());
    let (mut malformed, mut outside, mut of_other_families) =
        (Faulty::default(), Faulty::default(), Faulty::default());
    loop {
        walk.next().await?;
        let Some(cell) = walk.cell() else { break };
        cells += 1;
        out_of_order.count(&cell, !last.is_empty() && order.compare_keys(&last, cell.key).is_gt());
        malformed.count(&cell, is_reference(cell.tags) && !read.add_reference(&cell));
        of_other_families.count(&cell, cell.family() != dir.name().as_bytes());
        outside.count(&cell, bounds.as_ref().is_some_and(|bounds| !bounds.contains(cell.row())));
        last.clear();
        last.extend_from_slice(cell.key);
    }
    if cells != expected {
        read.problems.push(format!("{path}: it has {cells} cells, and should have {expected}"));
    }
    let faulty = [
        out_of_order.problem(path, "are not in order"),
        malformed.problem(path, "have malformed MOB references"),
        outside.problem(path, "have rows of other regions"),
        of_other_families.problem(path, "are of other families"),
    ];
    read.problems.extend(faulty.into_iter().flatten());
    Ok(read)
}

#[cfg(test)]
mod tests {
    use cell::tags::{self, MOB_REFERENCE, MOB_TABLE_NAME, Tag};
    use cell::{CellType, KeyValue};
    use fs::memory::MemoryFs;
    use hfile::{Writer, WriterOptions};

    use super::*;

    const CELLS: u64 = 100;
    /// The field of a trailer with the number of cells, and the next field's key.
    const ENTRY_COUNT: [u8; 3] = [7 << 3, CELLS as u8, 8 << 3];

    /// A file of references of the table `t` with these values.
    async fn file(value: &[u8]) -> (MemoryFs, FilePath) {
        let (fs, path) = (MemoryFs::new(), FilePath::new("region/f/file"));
        fs.make_dirs(&path.parent()).await.unwrap();
        let mut section = Vec::new();
        tags::push(&mut section, Tag { kind: MOB_REFERENCE, value: &[] });
        tags::push(&mut section, Tag { kind: MOB_TABLE_NAME, value: b"t" });
        let options = WriterOptions { include_tags: true, ..WriterOptions::default() };
        let mut writer = Writer::create(&fs, &path, options).await.unwrap();
        for row in 0..CELLS {
            let row = format!("row{row:03}");
            let cell = KeyValue::with_tags(row.as_bytes(), b"f", b"q", 1, CellType::Put, value, &section);
            writer.append(&cell.view(0)).await.unwrap();
        }
        writer.finish().await.unwrap();
        (fs, path)
    }

    async fn read_all(fs: &MemoryFs, path: &FilePath) -> ReadFile {
        read(fs, path, CellOrder::Plain, None, Depth::Cells).await.unwrap()
    }

    #[tokio::test]
    async fn a_mob_file_of_many_cells_is_listed_once() {
        let (fs, path) = file(b"\0\0\0\x05name").await;
        let read = read_all(&fs, &path).await;
        assert_eq!(read.problems, Vec::<String>::new());
        let file = MobFile { owner: TableName::parse("t").unwrap(), name: "name".into() };
        assert_eq!(read.mob_files.into_files().collect::<Vec<_>>(), [file]);
    }

    /// One line for all cells with a fault, and the number of cells is checked, too.
    #[tokio::test]
    async fn many_faults_of_one_kind_are_one_problem() {
        let (fs, path) = file(b"\0").await;
        let malformed = format!("{path}: 100 cells have malformed MOB references, the first at row row000");
        assert_eq!(read_all(&fs, &path).await.problems, std::slice::from_ref(&malformed));
        let file = fs.open(&path).await.unwrap();
        let mut bytes = file.read_at(0, usize::try_from(file.len()).unwrap()).await.unwrap().to_vec();
        let at = bytes.windows(ENTRY_COUNT.len()).rposition(|window| window == ENTRY_COUNT).unwrap();
        bytes[at + 1] -= 1;
        fs.put(&path, bytes);
        let count = format!("{path}: it has 100 cells, and should have 99");
        assert_eq!(read_all(&fs, &path).await.problems, [count, malformed]);
    }
}
