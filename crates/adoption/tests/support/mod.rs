//! Root directories that HBase 2.5.10 wrote, in memory, and their expected cells.
//!
//! `rootdir-live` was copied while the server ran, as after a crash: its last edits, all rows of
//! `hbase:meta` and all procedures are only in logs. `rootdir-clean` is from after a stop.
//! `expected-cells.txt` has what a Java client scanned before the copy.

mod archive;

use std::sync::Arc;

use adoption::catalog;
use adoption::inspection::Request;
use adoption::offline::OfflineServer;
use base::env::Env;
use cell::query::{CellSelection, Scan};
use cell::region::RegionInfo;
use cell::schema::TableName;
use engine::recovery::OnDamage;
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use layout::RootDir;

use archive::vector;
#[allow(unused_imports, reason = "each test uses a part of the module")]
pub use archive::{Tree, fill, image, unpack};

/// A table with MOB files, of which the expected cells have none. Tests give it a feature that is
/// not supported.
pub const UNSUPPORTED: &str = "tmob";

pub fn root() -> RootDir {
    RootDir::new(FilePath::root())
}

pub fn request() -> Request {
    Request { disabled: [TableName::parse(UNSUPPORTED).unwrap()].into() }
}

/// As [`image`], but a family of the table `tmob` has an unsupported attribute.
pub async fn unsupported_image(name: &str) -> MemoryFs {
    let fs = image(name).await;
    let table = TableName::parse(UNSUPPORTED).unwrap();
    let mut descriptor = root().read_table_descriptor(&fs, &table).await.unwrap();
    for family in descriptor.families.values_mut() {
        *family = family.clone().with("ENCRYPTION", "AES");
    }
    root().write_table_descriptor(&fs, &descriptor).await.unwrap();
    fs
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
    cells_of(env, fs, |table| table.to_string() != UNSUPPORTED).await.unwrap()
}

/// The cells of the user tables that `is_wanted` selects.
pub async fn cells_of(
    env: &Env,
    fs: &MemoryFs,
    is_wanted: impl Fn(&TableName) -> bool,
) -> adoption::Result<Vec<String>> {
    let copy = MemoryFs::new();
    fill(&copy, &tree(fs).await).await;
    adoption::file_lists::remove_all(&copy, &root().data_dir()).await?;
    let copy: Arc<dyn FileSystem> = Arc::new(copy);
    let root = root();
    let catalog = catalog::inspect(env, &*copy, &root).await?;
    let dirs = catalog::log_dirs(&*copy, &root).await?;
    let server = OfflineServer::start(env, &copy, &root, (&dirs, &[]), OnDamage::Refuse).await?;
    let mut lines = Vec::new();
    let is_served = |region: &RegionInfo| region.table.namespace() != "hbase" && is_wanted(&region.table);
    for row in catalog.regions.iter().filter(|row| is_served(&row.region) && !row.is_split_parent()) {
        let table = root.read_table_descriptor(&*copy, &row.region.table).await?;
        let region = server.open(table, row.region.clone()).await?;
        let selection = CellSelection { max_versions: u32::MAX, ..CellSelection::default() };
        let list = region.scan_all(&Scan { selection, ..Scan::default() }).await?;
        lines.extend(list.cells.iter().map(|(cell, _)| line(&row.region.table, cell)));
        region.close().await?;
    }
    server.stop().await?;
    lines.sort();
    Ok(lines)
}

pub fn line(table: &TableName, cell: &cell::KeyValue) -> String {
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
