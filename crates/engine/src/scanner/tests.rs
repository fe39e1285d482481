//! Tests of scanners over real memstores and files. Single rules are tested by programs in a small
//! language, their combinations by a model.
//!
//! A program is a list of statements, separated by two spaces or line breaks. Each statement has
//! the next sequence id, starting at 1:
//!
//! ```text
//! put r/f:q@5=a        delete r/f:q@5 (one version)     delete-column r/f:q@5
//! delete-family r/f@5  delete-family-version r/f@5      flush (writes memory to a file, unchanged)
//! ```

mod costs;
mod fast_paths;
mod limits;
mod model;
mod recent_blocks;
mod retention;
mod write_order;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::metrics::Counts;
use base::testing::TestClock;
use bytes::Bytes;
use cell::query::{CellSelection, FamilyColumns, Scan, TimeRange};
use cell::schema::{BlockEncoding, BloomType, FamilyDescriptor};
use cell::{CellOrder, CellType, KeyBuf, KeyValue};
use fs::FilePath;
use fs::memory::MemoryFs;
use hfile::{OpenOptions, Reader, Stop, Writer, WriterOptions};
use layout::Reference;

use crate::instruments::StoreCounts;
use crate::memstore::Memstore;
use crate::mvcc::{Mvcc, ReadGuard};
use crate::scanner::{
    BlockLoader, CellList, CompactionScanner, FamilyRules, Limits, Progress, RegionScanner, Retention,
    ScannerParts, Stopped,
};
use crate::store::{StoreFile, StoreView};

/// The time by which cells expire.
const NOW_MS: i64 = 1_000;

/// Runs a future that does no I/O outside of memory.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
    }
}

/// The memstores and files of one family.
struct TestStore {
    rules: FamilyRules,
    view: StoreView,
}

/// How files are written.
#[derive(Clone, Debug)]
struct FileKind {
    block_bytes: u32,
    encoding: BlockEncoding,
    bloom: BloomType,
    // The row at which each file is divided into two references, as after a split and a merge.
    split_row: Option<&'static str>,
}

impl Default for FileKind {
    fn default() -> FileKind {
        FileKind { block_bytes: 100, encoding: BlockEncoding::None, bloom: BloomType::Row, split_row: None }
    }
}

/// A region of a few families, without a log.
struct TestRegion {
    fs: MemoryFs,
    stores: Vec<TestStore>,
    loader: Arc<BlockLoader>,
    next_file: u64,
    last_seq_id: u64,
    kind: FileKind,
}

impl TestRegion {
    fn new(families: Vec<FamilyDescriptor>) -> TestRegion {
        let store = |family: &FamilyDescriptor| TestStore {
            rules: FamilyRules::of(family),
            view: StoreView::new(Arc::new(Memstore::new(CellOrder::Plain)), Vec::new()),
        };
        TestRegion {
            fs: MemoryFs::new(),
            stores: families.iter().map(store).collect(),
            // Nothing is cached: every block that a cursor takes must be supplied.
            loader: Arc::new(BlockLoader::new(0)),
            next_file: 1,
            last_seq_id: 0,
            kind: FileKind::default(),
        }
    }

    fn store(&mut self, family: &[u8]) -> &mut TestStore {
        let found = self.stores.iter_mut().find(|store| store.rules.family == family);
        found.expect("the program names families of the region")
    }

    fn insert(&mut self, cell: &KeyValue, seq_id: u64) {
        self.last_seq_id = self.last_seq_id.max(seq_id);
        let view = cell.view(seq_id);
        self.store(view.family()).view.active.insert(&view);
    }

    fn run(&mut self, program: &str) {
        for statement in
            program.split("  ").flat_map(str::lines).map(str::trim).filter(|text| !text.is_empty())
        {
            if statement == "flush" {
                (0..self.stores.len()).for_each(|at| self.flush(at));
            } else {
                let cell = parse(statement);
                self.insert(&cell, self.last_seq_id + 1);
            }
        }
    }

    /// Writes all memstores of a store to files.
    fn flush(&mut self, at: usize) {
        let view = self.stores[at].view.clone();
        let mut files = view.files.to_vec();
        for memstore in view.snapshot.iter().chain([&view.active]).filter(|memstore| !memstore.is_empty()) {
            let mut cursor = memstore.cursor();
            cursor.seek(&KeyBuf::first_on_row(b""));
            let mut cells = Vec::new();
            while let Some(cell) = cursor.cell() {
                cells.push((cell.to_key_value(), cell.seq_id));
                cursor.next();
            }
            files.extend(self.files(&cells));
        }
        self.stores[at].view = StoreView::new(Arc::new(Memstore::new(CellOrder::Plain)), files);
    }

    /// Begins a flush: the active memstore becomes the snapshot.
    fn freeze(&mut self, at: usize) {
        let view = &mut self.stores[at].view;
        assert!(view.snapshot.is_none());
        view.snapshot = Some(std::mem::replace(&mut view.active, Arc::new(Memstore::new(CellOrder::Plain))));
    }

    /// A file with the cells, or its two halves.
    fn files(&mut self, cells: &[(KeyValue, u64)]) -> Vec<Arc<StoreFile>> {
        let file = self.file(cells);
        let Some(row) = self.kind.split_row else { return vec![file] };
        let half = |reference| {
            let whole = StoreFile::new(file.reader().clone(), file.seq_id(), 0);
            Arc::new(whole.with_reference(&reference))
        };
        vec![half(Reference::bottom(row)), half(Reference::top(row))]
    }

    fn file(&mut self, cells: &[(KeyValue, u64)]) -> Arc<StoreFile> {
        let id = self.next_file;
        self.next_file += 1;
        let path = FilePath::new(&format!("{id:032x}"));
        let options = WriterOptions {
            block_bytes: self.kind.block_bytes,
            encoding: self.kind.encoding,
            bloom: self.kind.bloom,
            include_tags: true,
            index_block_bytes: 200,
            index_entries_min: 2,
            ..WriterOptions::default()
        };
        let reader = now(async {
            let mut writer = Writer::create(&self.fs, &path, options).await.unwrap();
            for (cell, seq_id) in cells {
                writer.append(&cell.view(*seq_id)).await.unwrap();
            }
            writer.finish().await.unwrap();
            // The process numbers files across regions; this region has its own cache and may use
            // its own numbers.
            Reader::open(&self.fs, &path, id, OpenOptions::default()).await.unwrap()
        });
        let seq_id = cells.iter().map(|(_, seq_id)| *seq_id).max().unwrap();
        Arc::new(StoreFile::new(reader, seq_id, 0))
    }

    /// Replaces the files of a store with the result of their compaction.
    fn compact(&mut self, at: usize, retention: Retention, smallest_read_point: u64) {
        let store = &self.stores[at];
        let files = store.view.files.clone();
        let kept = self.compacted(at, &[], &files, retention, smallest_read_point);
        let files = if kept.is_empty() { Vec::new() } else { self.files(&kept) };
        let view = &mut self.stores[at].view;
        view.files = files.into();
    }

    fn compacted(
        &self,
        at: usize,
        memstores: &[Arc<Memstore>],
        files: &[Arc<StoreFile>],
        retention: Retention,
        smallest_read_point: u64,
    ) -> Vec<(KeyValue, u64)> {
        let mut scanner = CompactionScanner::new(
            memstores,
            files,
            CellOrder::Plain,
            &self.stores[at].rules,
            retention,
            smallest_read_point,
            NOW_MS,
            self.loader.clone(),
        );
        let mut kept = Vec::new();
        now(async {
            while let Some(cell) = scanner.next().await.unwrap() {
                kept.push((cell.to_key_value(), cell.seq_id));
            }
        });
        kept
    }

    fn scanner(&self, scan: &Scan) -> RegionScanner {
        self.scanner_counting(scan, self.stores.iter().map(|_| Counts::default()).collect())
    }

    fn scanner_counting(&self, scan: &Scan, counts: Arc<[Counts<StoreCounts>]>) -> RegionScanner {
        let stores = self.stores.iter().map(|store| (&store.rules, &store.view));
        let guard = Mvcc::new(self.last_seq_id).register_reader(scan.read_point);
        let parts = ScannerParts { counts, ..self.scanner_parts(guard) };
        RegionScanner::new(stores, scan, parts).unwrap()
    }

    fn scanner_parts(&self, guard: ReadGuard) -> ScannerParts {
        ScannerParts {
            mob: None,
            order: CellOrder::Plain,
            guard,
            now_ms: NOW_MS,
            loader: self.loader.clone(),
            store_bytes_max: u64::MAX,
            pins_views: false,
            seed: NOW_MS as u64,
            clock: Arc::new(TestClock::default()),
            counts: self.stores.iter().map(|_| Counts::default()).collect(),
        }
    }

    fn scan(&self, scan: &Scan) -> CellList {
        let mut list = CellList::default();
        let mut scanner = self.scanner(scan);
        let progress = call(&mut scanner, &mut Limits::default(), &mut list, |_| true);
        assert_eq!(progress, Progress { stopped: Stopped::Exhausted, mid_row: false });
        list
    }
}

/// Calls a scanner until it stops. Of the blocks of a miss, supplies the first one and those for
/// which `supplies` holds.
fn call(
    scanner: &mut RegionScanner,
    limits: &mut Limits,
    list: &mut CellList,
    mut supplies: impl FnMut(u64) -> bool,
) -> Progress {
    loop {
        match scanner.next(limits, list) {
            Ok(Progress { stopped: Stopped::Slice, .. }) => {}
            Ok(progress) => return progress,
            Err(Stop::Failed(error)) => panic!("{error}"),
            Err(Stop::Miss(miss)) => {
                assert!(!miss.blocks.is_empty());
                for (at, block) in miss.blocks.iter().enumerate() {
                    if at == 0 || supplies(block.offset) {
                        scanner.supply(now(block.file.load(block)).unwrap());
                    }
                }
            }
        }
    }
}

/// The cell of a statement.
fn parse(statement: &str) -> KeyValue {
    let (verb, rest) = statement.split_once(' ').expect("a verb and a cell");
    let kind = match verb {
        "put" => CellType::Put,
        "delete" => CellType::Delete,
        "delete-column" => CellType::DeleteColumn,
        "delete-family" => CellType::DeleteFamily,
        "delete-family-version" => CellType::DeleteFamilyVersion,
        verb => panic!("no statement {verb}"),
    };
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    let (key, timestamp) = key.split_once('@').expect("a timestamp");
    let (row, column) = key.split_once('/').expect("a column");
    let (family, qualifier) = column.split_once(':').unwrap_or((column, ""));
    let (value, ttl) = value.split_once(" ttl=").unwrap_or((value, ""));
    let tags = ttl.parse::<i64>().map_or(Vec::new(), ttl_tag);
    KeyValue::with_tags(
        row.as_bytes(),
        family.as_bytes(),
        qualifier.as_bytes(),
        timestamp.parse().expect("a number"),
        kind,
        value.as_bytes(),
        &tags,
    )
}

/// The tags of a cell with its own time to live.
fn ttl_tag(ttl_ms: i64) -> Vec<u8> {
    [&[0, 9, 8], &ttl_ms.to_be_bytes()[..]].concat()
}

/// A cell in the language, without its sequence id.
fn formatted(cell: &KeyValue) -> String {
    let cell = cell.view(0);
    let verb = match cell.kind() {
        CellType::Put => "",
        CellType::Delete => "delete ",
        CellType::DeleteColumn => "delete-column ",
        CellType::DeleteFamily => "delete-family ",
        CellType::DeleteFamilyVersion => "delete-family-version ",
        kind => panic!("{kind:?} is never stored"),
    };
    let value = if cell.value.is_empty() { String::new() } else { format!("={}", cell.value.escape_ascii()) };
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let column = match cell.qualifier().is_empty() {
        true => text(cell.family()),
        false => format!("{}:{}", text(cell.family()), text(cell.qualifier())),
    };
    format!("{verb}{}/{column}@{}{value}", text(cell.row()), cell.timestamp())
}

fn formatted_all<'a>(cells: impl IntoIterator<Item = &'a (KeyValue, u64)>) -> String {
    cells.into_iter().map(|(cell, _)| formatted(cell)).collect::<Vec<_>>().join("  ")
}

/// A scan of all versions.
fn all_versions() -> Scan {
    Scan {
        selection: CellSelection { max_versions: u32::MAX, ..CellSelection::default() },
        ..Scan::default()
    }
}

fn only(mut scan: Scan, family: &'static str, qualifiers: &[&'static str]) -> Scan {
    let qualifiers =
        (!qualifiers.is_empty()).then(|| qualifiers.iter().map(|name| Bytes::from(*name)).collect());
    scan.selection.columns.push(FamilyColumns { family: family.into(), qualifiers });
    scan
}

fn between(mut scan: Scan, from: i64, to: i64) -> Scan {
    scan.selection.time_range = TimeRange { from, to };
    scan
}
