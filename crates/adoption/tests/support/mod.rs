//! Root directories that HBase 2.5.10 wrote, in memory, and their expected cells.
//!
//! `rootdir-live` was copied while the server ran, as after a crash: its last edits, all rows of
//! `hbase:meta` and all procedures are only in logs. `rootdir-clean` is from after a stop.
//! `expected-cells.txt` has what a Java client scanned before the copy.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use adoption::catalog;
use adoption::inspection::Request;
use adoption::offline::OfflineServer;
use base::env::Env;
use cell::query::{CellSelection, Scan};
use cell::region::RegionInfo;
use cell::schema::TableName;
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use layout::RootDir;

/// A table with a feature that is not supported.
pub const UNSUPPORTED: &str = "tmob";

/// All files and directories, by path; `None` for a directory.
pub type Tree = BTreeMap<String, Option<Vec<u8>>>;

pub fn root() -> RootDir {
    RootDir::new(FilePath::root())
}

pub fn request() -> Request {
    Request { disabled: [TableName::parse(UNSUPPORTED).unwrap()].into() }
}

/// As [`image`], but no family has an unsupported attribute: its name is changed to one of a user.
pub async fn supported_image(name: &str) -> MemoryFs {
    let mut tree = unpack(name);
    for content in tree
        .iter_mut()
        .filter(|(path, _)| path.contains("/tmob/.tabledesc/"))
        .filter_map(|(_, content)| content.as_mut())
    {
        let at = content.windows(6).position(|bytes| bytes == b"IS_MOB").unwrap();
        content[at] = b'X';
    }
    let fs = MemoryFs::new();
    fill(&fs, &tree).await;
    fs
}

fn vector(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name)).unwrap()
}

/// The files of an archive, written to memory.
pub async fn image(name: &str) -> MemoryFs {
    let fs = MemoryFs::new();
    fill(&fs, &unpack(name)).await;
    fs
}

pub async fn fill(fs: &MemoryFs, tree: &Tree) {
    for (path, content) in tree {
        match content {
            Some(content) => fs.put(&FilePath::new(path), content.clone()),
            None => fs.make_dirs(&FilePath::new(path)).await.unwrap(),
        }
    }
}

/// The entries of a tar archive, below its only top directory.
pub fn unpack(name: &str) -> Tree {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&*vector(&format!("{name}.tar.gz"))).read_to_end(&mut bytes).unwrap();
    let text =
        |bytes: &[u8]| String::from_utf8(bytes.split(|byte| *byte == 0).next().unwrap().to_vec()).unwrap();
    let (mut tree, mut at, mut long_name) = (Tree::new(), 0, None);
    while bytes[at] != 0 {
        let header = &bytes[at..at + 512];
        let len = usize::from_str_radix(text(&header[124..136]).trim(), 8).unwrap();
        let content = &bytes[at + 512..at + 512 + len];
        at += 512 + len.next_multiple_of(512);
        match header[156] {
            b'L' => long_name = Some(text(content)),
            b'x' => {
                let records = String::from_utf8(content.to_vec()).unwrap();
                let path = records
                    .lines()
                    .find_map(|line| line.split_once(" path=").map(|(_, path)| path.to_string()));
                long_name = path.or(long_name);
            }
            kind => {
                let prefix =
                    if &header[257..263] == b"ustar\0" { text(&header[345..500]) } else { String::new() };
                let short = if prefix.is_empty() {
                    text(&header[..100])
                } else {
                    format!("{prefix}/{}", text(&header[..100]))
                };
                let path = long_name.take().unwrap_or(short);
                let path =
                    path.trim_end_matches('/').split_once('/').map_or("", |(_, path)| path).to_string();
                if !path.is_empty() {
                    tree.insert(path, (kind != b'5').then(|| content.to_vec()));
                }
            }
        }
    }
    assert!(tree.len() > 100, "the archive was read");
    tree
}

/// All files and directories of a file system.
pub async fn tree(fs: &MemoryFs) -> Tree {
    let walked = adoption::scratch::walk(fs, &FilePath::root()).await.unwrap();
    let entry = |(path, status): (FilePath, fs::FileStatus)| {
        let content = if status.is_dir { None } else { fs.contents(&path) };
        (path.to_string(), content)
    };
    walked.into_iter().map(entry).collect()
}

/// The lines of the expected cells of user tables, sorted. The clone has the cells that `ns1:t1`
/// had at the snapshot. (The Java client scanned the clone when one of its regions was not open
/// yet, so its cells are only a part.)
pub fn expected_cells() -> Vec<String> {
    let text = String::from_utf8(vector("expected-cells.txt")).unwrap();
    let mut lines: Vec<String> =
        text.lines().filter(|line| !line.starts_with("hbase:")).map(String::from).collect();
    let is_in_snapshot = |line: &&String| line.starts_with("ns1:t1 ") && !line.contains("row=unflushed-");
    let of_clone = |line: &String| line.replacen("ns1:t1 ", "t1clone ", 1);
    let clone: Vec<String> = lines.iter().filter(is_in_snapshot).map(of_clone).collect();
    let scanned = lines.iter().filter(|line| line.starts_with("t1clone "));
    assert!(scanned.clone().count() > 10 && scanned.clone().all(|line| clone.contains(line)));
    lines.retain(|line| !line.starts_with("t1clone "));
    lines.extend(clone);
    lines.sort();
    assert!(lines.len() > 100, "the cells were read");
    lines
}

/// All versions of all cells of user tables that are enabled, in the form of the expected cells.
/// The regions are opened and their logs replayed in a copy, so that `fs` stays as it is.
pub async fn cells(env: &Env, fs: &MemoryFs) -> Vec<String> {
    let copy = MemoryFs::new();
    fill(&copy, &tree(fs).await).await;
    adoption::file_lists::remove_all(&copy, &root().data_dir()).await.unwrap();
    let copy: Arc<dyn FileSystem> = Arc::new(copy);
    let root = root();
    let catalog = catalog::inspect(env, &*copy, &root).await.unwrap();
    let dirs = catalog::log_dirs(&*copy, &root).await.unwrap();
    let server = OfflineServer::start(env, &copy, &root, (&dirs, &[])).await.unwrap();
    let mut lines = Vec::new();
    let is_served =
        |region: &RegionInfo| region.table.namespace() != "hbase" && region.table.to_string() != UNSUPPORTED;
    for row in catalog.regions.iter().filter(|row| is_served(&row.region) && !row.is_split_parent()) {
        let table = root.read_table_descriptor(&*copy, &row.region.table).await.unwrap();
        let region = server.open(table, row.region.clone()).await.unwrap();
        let selection = CellSelection { max_versions: u32::MAX, ..CellSelection::default() };
        let list = region.scan_all(&Scan { selection, ..Scan::default() }).await.unwrap();
        lines.extend(list.cells.iter().map(|(cell, _)| line(&row.region.table, cell)));
        region.close().await.unwrap();
    }
    server.stop().await.unwrap();
    lines.sort();
    lines
}

fn line(table: &TableName, cell: &cell::KeyValue) -> String {
    let view = cell.view(0);
    let text = |bytes: &[u8]| -> String {
        let byte = |byte: &u8| match byte {
            b' '..=b'~' if *byte != b'\\' => char::from(*byte).to_string(),
            byte => format!("\\x{byte:02X}"),
        };
        bytes.iter().map(byte).collect()
    };
    format!(
        "{table} row={} col={}:{} ts={} type={} val={}",
        text(view.row()),
        text(view.family()),
        text(view.qualifier()),
        view.timestamp(),
        view.type_code(),
        text(view.value)
    )
}
