//! Shared by the tests of this crate: a driver that handles misses, and cells in the format of
//! HBase's listings.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use cell::{Cell, KeyValue};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use hfile::{
    Block, BlockSource, Error, OpenOptions, Pinned, Reader, Stop, Writer, WriterOptions, WrittenFile,
};

/// Runs a future to completion.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// An owned cell with its sequence id.
pub type Owned = (KeyValue, u64);

pub fn own(cell: Cell<'_>) -> Owned {
    (cell.to_key_value(), cell.seq_id)
}

pub fn path(name: &str) -> FilePath {
    FilePath::new(name)
}

/// Opens a file in memory.
pub fn open(bytes: &[u8]) -> Result<Arc<Reader>, Error> {
    open_with(bytes, OpenOptions::default())
}

pub fn open_with(bytes: &[u8], options: OpenOptions) -> Result<Arc<Reader>, Error> {
    static FILE_IDS: AtomicU64 = AtomicU64::new(0);
    let fs = MemoryFs::new();
    fs.put(&path("file"), bytes);
    run(Reader::open(&fs, &path("file"), FILE_IDS.fetch_add(1, Relaxed), options))
}

/// Writes a file; `finish` may add to its info.
pub fn write_with(
    cells: &[Owned],
    options: WriterOptions,
    finish: impl FnOnce(&mut Writer),
) -> (Vec<u8>, WrittenFile) {
    let fs = MemoryFs::new();
    run(async {
        let mut writer = Writer::create(&fs, &path("file"), options).await.unwrap();
        for (key_value, seq_id) in cells {
            writer.append(&key_value.view(*seq_id)).await.unwrap();
        }
        finish(&mut writer);
        let written = writer.finish().await.unwrap();
        let file = fs.open(&path("file")).await.unwrap();
        (file.read_at(0, file.len() as usize).await.unwrap().to_vec(), written)
    })
}

pub fn write(cells: &[Owned], options: WriterOptions) -> Vec<u8> {
    write_with(cells, options, |_| ()).0
}

/// A driver with an unreliable cache. Lookups of loaded blocks fail at random, except those of the
/// blocks just supplied.
pub struct Source {
    pinned: Pinned,
    cached: Arc<UnreliableCache>,
    pub loads: u64,
}

struct UnreliableCache {
    blocks: Mutex<HashMap<u64, Arc<Block>>>,
    /// Number of lookups out of 256 that find nothing.
    misses_of_256: u64,
    random: Mutex<u64>,
}

impl BlockSource for UnreliableCache {
    fn block(&self, _file: &Arc<Reader>, offset: u64) -> Option<Arc<Block>> {
        let mut random = self.random.lock().unwrap();
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if (*random >> 40) % 256 < self.misses_of_256 {
            return None;
        }
        self.blocks.lock().unwrap().get(&offset).cloned()
    }
}

impl Source {
    pub fn new(misses_of_256: u64, seed: u64) -> Source {
        let cached =
            Arc::new(UnreliableCache { blocks: Mutex::default(), misses_of_256, random: Mutex::new(seed) });
        Source { pinned: Pinned::new(Some(cached.clone())), cached, loads: 0 }
    }

    /// Repeats a step and loads the missing blocks until it succeeds.
    pub fn drive<T>(
        &mut self,
        mut step: impl FnMut(&dyn BlockSource) -> Result<T, Stop>,
    ) -> Result<T, Error> {
        self.pinned.clear();
        for _ in 0..1000 {
            match step(&self.pinned) {
                Ok(done) => return Ok(done),
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Miss(miss)) => {
                    for wanted in &miss.blocks {
                        let block = run(wanted.file.load(wanted))?;
                        self.loads += 1;
                        self.cached.blocks.lock().unwrap().insert(block.offset(), block.clone());
                        self.pinned.supply(block);
                    }
                }
            }
        }
        panic!("the step never stops missing");
    }
}

/// All cells of a file, front to back.
pub fn all_cells(reader: &Arc<Reader>) -> Result<Vec<Owned>, Error> {
    let mut source = Source::new(0, 0);
    let mut cursor = reader.cursor();
    let mut cells = Vec::new();
    loop {
        source.drive(|source| cursor.next(source))?;
        match cursor.cell() {
            Some(cell) => cells.push(own(cell)),
            None => return Ok(cells),
        }
    }
}

/// Formats a cell like the listings of the vectors.
pub fn listed(cell: &Cell<'_>) -> String {
    format!(
        "CELL row={} fam={} qual={} ts={} type={} seq={} tags={} val={}",
        escape(cell.row()),
        escape(cell.family()),
        escape(cell.qualifier()),
        cell.timestamp(),
        cell.type_code(),
        cell.seq_id,
        hex(cell.tags),
        escape(cell.value)
    )
}

/// Formats bytes like HBase's `Bytes.toStringBinary`.
pub fn escape(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|byte| match byte {
            b' '..=b'~' if *byte != b'\\' => (*byte as char).to_string(),
            _ => format!("\\x{byte:02X}"),
        })
        .collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file that HBase wrote, and its listing.
#[allow(clippy::disallowed_methods)] // Vectors are files of the repository, not data of a server.
pub fn vector(name: &str) -> (Vec<u8>, String) {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");
    let bytes = std::fs::read(format!("{dir}/hfile-{name}.hfile")).unwrap();
    let listing = std::fs::read(format!("{dir}/hfile-{name}.txt")).unwrap();
    (bytes, String::from_utf8(listing).unwrap())
}
