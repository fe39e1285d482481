//! The root directory to be damaged. It has files of all kinds, as a kill leaves them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use base::env::Env;
use cell::schema::TableName;

use crate::common::{Server, TempDir, text};
use crate::content::{self, Content};
use crate::network;

/// Tables of the image. Files of the first tables are preferred targets.
pub const TABLES: [&str; 8] =
    ["plain", "sidecar", "halves", "source", "linked", "late", "ns:kept", "ns:quiet"];
/// Options of every server on the image.
pub const OPTIONS: [&str; 4] =
    ["--set", "hbase.regionserver.hlog.blocksize=256 KiB", "--set", "hbase.quota.enabled=true"];
/// Long enough for several blocks per file.
const VALUE_BYTES: usize = 24_000;

/// The directory and its content.
pub struct Image {
    dir: TempDir,
    /// Row keys of each table.
    pub rows: BTreeMap<String, Vec<Vec<u8>>>,
    /// The content as a client reads it.
    pub content: Content,
    /// Regions by encoded name.
    pub regions: BTreeMap<String, Region>,
    /// Masked log lines of a start without damage.
    pub usual: Vec<String>,
}

/// A region as the test knows it.
#[derive(Clone, Debug)]
pub struct Region {
    pub start: String,
    pub is_split_parent: bool,
}

/// Commands before the first stop, which flushes everything.
fn first_commands() -> String {
    let mut lines: Vec<String> = [
        "create_namespace 'ns'",
        "create 'plain', {NAME => 'f', BLOOMFILTER => 'ROW'}, {NAME => 'g', BLOOMFILTER => 'ROWCOL', \
         COMPRESSION => 'SNAPPY', DATA_BLOCK_ENCODING => 'FAST_DIFF'}, SPLITS => ['g', 'p']",
        "create 'sidecar', {NAME => 'f', METADATA => {'COLUMN_SIDECAR' => 'true'}}",
        "create 'halves', {NAME => 'f'}, COMPACTION_ENABLED => 'false'",
        "create 'source', 'f'",
        "create 'ns:kept', 'f', SPLITS => ['m']",
        "create 'ns:quiet', 'f'",
    ]
    .map(String::from)
    .to_vec();
    for row in ["a1", "a2", "a3", "a4", "h1", "h2", "q1", "q2"] {
        lines.push(put("plain", row, "f:q", &long(row)));
        lines.push(put("plain", row, "g:q", &long(row)));
    }
    for (number, row) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        lines.push(put("sidecar", row, "f:n", &number.to_string()));
        lines.push(put("sidecar", row, "f:q", &long(row)));
        lines.push(put("halves", row, "f:q", &long(row)));
        lines.push(put("source", row, "f:q", &long(row)));
        lines.push(put("ns:kept", row, "f:q", "value"));
        lines.push(put("ns:quiet", row, "f:q", "value"));
    }
    lines.push(put("ns:kept", "x", "f:q", "value"));
    lines.extend(
        ["plain", "sidecar", "halves", "source", "ns:kept", "ns:quiet"]
            .map(|table| format!("flush '{table}'")),
    );
    lines.extend(["f", "g"].map(|row| put("source", row, "f:q", &long(row))));
    lines.extend(
        [
            "flush 'source'",
            "snapshot 'source', 'snap'",
            "clone_snapshot 'snap', 'linked'",
            "major_compact 'source'",
        ]
        .map(String::from),
    );
    lines.join("\n")
}

/// Commands before the kill. Their edits of `hbase:meta` and of tables are only in logs.
fn last_commands() -> String {
    let mut lines = vec![
        "splitormerge_switch 'SPLIT', true".to_string(),
        "split 'halves', 'c'".into(),
        "create 'late', 'f', SPLITS => ['m']".into(),
    ];
    lines.extend(["a2", "a5", "a6"].map(|row| put("plain", row, "f:q", "unflushed")));
    lines.extend(["a", "b", "x", "y"].map(|row| put("late", row, "f:q", "unflushed")));
    lines.extend(["a", "w"].map(|row| put("ns:kept", row, "f:q", "unflushed")));
    lines.join("\n")
}

fn put(table: &str, row: &str, column: &str, value: &str) -> String {
    format!("put '{table}', '{row}', '{column}', '{value}'")
}

/// An incompressible value.
fn long(row: &str) -> String {
    let mut state = row.bytes().fold(7_u64, |state, byte| state.wrapping_mul(31).wrapping_add(byte.into()));
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + (state >> 59) as u8 % 26)
    };
    (0..VALUE_BYTES).map(next).collect()
}

/// Row keys of each table after all commands.
fn rows() -> BTreeMap<String, Vec<Vec<u8>>> {
    let of = |rows: &[&str]| rows.iter().map(|row| row.as_bytes().to_vec()).collect::<Vec<_>>();
    let five = ["a", "b", "c", "d", "e"];
    let seven = ["a", "b", "c", "d", "e", "f", "g"];
    [
        ("plain", of(&["a1", "a2", "a3", "a4", "a5", "a6", "h1", "h2", "q1", "q2"])),
        ("sidecar", of(&five)),
        ("halves", of(&five)),
        ("source", of(&seven)),
        ("linked", of(&seven)),
        ("late", of(&["a", "b", "x", "y"])),
        ("ns:kept", of(&["a", "b", "c", "d", "e", "w", "x"])),
        ("ns:quiet", of(&five)),
    ]
    .into_iter()
    .map(|(table, rows)| (table.to_string(), rows))
    .collect()
}

impl Image {
    /// Creates the image.
    pub fn make() -> Image {
        let dir = TempDir::new();
        let data = dir.join("image");
        let server = Server::start_with(&data, &OPTIONS);
        shell(&server, &dir, &first_commands());
        wait_for_archive(&data);
        assert_eq!(server.stop().code(), Some(0));
        let server = Server::start_with(&data, &OPTIONS);
        shell(&server, &dir, &last_commands());
        let mut image = Image {
            dir,
            rows: rows(),
            content: Content::default(),
            regions: BTreeMap::new(),
            usual: Vec::new(),
        };
        let zookeeper = server.zookeeper();
        let (regions, before) = image.on_a_runtime(async |env, image| {
            let client = content::client(&env, &zookeeper);
            (regions(&client).await, content::read(&env, &client, &image.rows).await)
        });
        server.kill();
        image.regions = regions;
        image.find_parents();
        image.content = before;
        image.check_whole();
        image
    }

    /// Runs `work` with a client's environment.
    pub fn on_a_runtime<T>(&self, work: impl AsyncFnOnce(Env, &Image) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { work(network::env(1), self).await })
    }

    /// The path of the directory.
    pub fn path(&self) -> PathBuf {
        self.dir.join("image")
    }

    /// Copies the image for one case.
    pub fn copy(&self, name: &str) -> PathBuf {
        let copy = self.dir.join(name);
        copy_tree(&self.path(), &copy);
        copy
    }

    /// Finds split parents: regions that have a directory but are not listed by their table.
    fn find_parents(&mut self) {
        let halves = self.path().join("data/default/halves");
        for entry in fs::read_dir(halves).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if !name.starts_with('.') && !self.regions.contains_key(&name) {
                let region = Region { start: String::new(), is_split_parent: true };
                self.regions.insert(name, region);
            }
        }
        assert!(self.regions.values().any(|region| region.is_split_parent));
    }

    /// Checks that all rows can be read in all ways. Otherwise later differences would mean
    /// nothing.
    fn check_whole(&self) {
        for (name, table) in &self.content.tables {
            let scan = table.scan.as_ref().unwrap();
            let known: Vec<_> = self.rows[name].iter().collect();
            assert_eq!(scan.keys().collect::<Vec<_>>(), known, "{name}");
            for (row, get) in &table.gets {
                assert_eq!(get.as_ref(), Ok(&scan[row]), "{name}");
                assert!(!scan[row].is_empty());
            }
            assert!(table.count.is_ok(), "{name}: {:?}", table.count);
        }
        assert_eq!(self.content.schema.len(), TABLES.len(), "{:?}", self.content.schema.keys());
    }
}

async fn regions(client: &client::Client) -> BTreeMap<String, Region> {
    let mut regions = BTreeMap::new();
    for table in TABLES {
        for region in client.admin().regions(&TableName::parse(table).unwrap()).await.unwrap() {
            let start = String::from_utf8(region.start_key.to_vec()).unwrap();
            let known = Region { start, is_split_parent: false };
            regions.insert(region.encoded_name(), known);
        }
    }
    regions
}

fn shell(server: &Server, dir: &TempDir, commands: &str) {
    let file = dir.join("commands");
    fs::write(&file, commands).unwrap();
    let output = server.shell_command(&["-f", file.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
}

/// Waits for the requested major compaction, which runs in the background.
fn wait_for_archive(data: &Path) {
    let archive = data.join("archive/data/default/source");
    for _ in 0..600 {
        let mut files = Vec::new();
        files_below(&archive, &mut files);
        if files.iter().filter(|file| !file.to_string_lossy().contains(".links-")).count() >= 2 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("no compaction finished");
}

fn files_below(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files_below(&path, files),
            false => files.push(path),
        }
    }
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().unwrap().is_dir() {
            true => copy_tree(&path, &target),
            false => drop(fs::copy(&path, &target).unwrap()),
        }
    }
}
