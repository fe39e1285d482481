//! Compares a region of a random schema with a model over random steps: writes, deletes, flushes,
//! compactions, reopens, and clock advances, in any order. Every read must return what HBase's
//! rules require.
//!
//! A failure prints the seed and the minimal schema and steps that fail. `GRAMPUS_MODEL_STEPS` is
//! the total number of steps, `GRAMPUS_MODEL_SEED` the seed. Example of a long run:
//!
//! ```text
//! GRAMPUS_MODEL_STEPS=1000000 GRAMPUS_MODEL_SEED=1 cargo test -p engine model::
//! ```

#[path = "../../analytics/tests/common/columns.rs"]
mod columns;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::common::model::{Model, ModelCell, VisibleCell};
use crate::common::rules::{ModelRead, in_order};
use crate::common::world::{self, Opened, difference, open_table, options, visible_cell};
use base::env::Env;
use bytes::Bytes;
use cell::cell::CellType;
use cell::condition::{ColumnTest, Condition, Test};
use cell::filter::CompareOp;
use cell::mutation::Mutation;
use cell::query::{CellSelection, FamilyColumns, Get, Scan, TimeRange};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{KeyValue, LATEST_TIMESTAMP};
use engine::compaction::{SelectionRequest, Settings, SiteSettings};
use engine::region::{RegionOptions, Unthrottled};
use fs::memory::MemoryFs;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};

const FAMILIES: [&[u8]; 2] = [b"f", b"g"];
const QUALIFIERS: [&[u8]; 3] = [b"", b"a", b"b"];
const ROWS: [&[u8]; 4] = [b"r0", b"r1", b"r1\x00", b"r2"];
/// Explicit timestamps are multiples of this, so that many are equal. TTLs are multiples of four
/// times this.
const GRID_MS: i64 = 250;
/// Number of steps in a regular test run.
const STEPS: u64 = 6000;
/// Maximum number of steps for one schema.
const STEPS_OF_SCHEMA: usize = 60;

/// The attributes of a family.
#[derive(Clone, Debug)]
struct FamilyPlan {
    versions: u32,
    min_versions: u32,
    ttl_s: Option<u32>,
    keep_deleted: &'static str,
    encoding: &'static str,
    compression: &'static str,
    bloom: &'static str,
    block_bytes: &'static str,
    policy: &'static str,
    sidecar: &'static str,
}

#[derive(Clone, Debug)]
struct Plan {
    families: [FamilyPlan; 2],
    files_min: usize,
    files_max: usize,
    bytes_min: u64,
    ratio: f64,
    blocking_files: usize,
    purge_after_ms: u64,
}

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<Change>),
    Atomic { row: usize, condition: Option<(Target, CompareOp, &'static str)>, parts: Vec<(Target, Part)> },
    Flush,
    FlushFamily(usize),
    Compact { family: usize, by_user: bool, major: bool },
    Reopen(Reopen),
    Get { row: usize, read: Read },
    Scan { start: usize, stop: usize, with_stop: bool, reversed: bool, read: Read },
    Wait { ms: u64 },
}

/// How the region stops before it is reopened.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reopen {
    /// It is closed.
    Clean,
    /// The process is killed.
    Killed,
    /// Power is lost. The number is the seed of what unsynced data survives.
    PowerLoss(u64),
}

/// A mutation: its row and its cells. A delete without cells deletes the row.
#[derive(Clone, Debug)]
enum Change {
    Put(usize, Vec<Target>),
    Delete(usize, Vec<(Target, CellType)>),
    DeleteRow(usize, When),
}

/// What an atomic change of one row does to a column.
#[derive(Clone, Copy, Debug)]
enum Part {
    Put,
    Increment(i64),
    Append,
}

#[derive(Clone, Debug)]
struct Target {
    family: usize,
    qualifier: usize,
    at: When,
}

/// A timestamp as the client sends it.
#[derive(Clone, Copy, Debug)]
enum When {
    /// The server's clock.
    Now,
    /// This many grid steps before the clock.
    Before(i64),
}

/// What is read of the families.
#[derive(Clone, Debug)]
struct Read {
    // By family: `None` does not read it, an empty set reads all columns.
    columns: [Option<BTreeSet<usize>>; 2],
    range: Option<(When, i64)>,
    range_of_first: Option<(When, i64)>,
    versions: u32,
    raw: bool,
}

fn plan() -> impl Strategy<Value = Plan> {
    let families = [family_plan(), family_plan()];
    let files = (2..4_usize, 2..5_usize, 2..8_usize);
    let sizes = (prop_oneof![Just(0_u64), Just(1 << 20)], prop_oneof![Just(1.2), Just(0.5), Just(5.0)]);
    (families, files, sizes, prop_oneof![3 => Just(0_u64), 1 => Just(1500)]).prop_map(
        |(families, (files_min, files_max, blocking_files), (bytes_min, ratio), purge_after_ms)| Plan {
            families,
            files_min,
            files_max,
            bytes_min,
            ratio,
            blocking_files,
            purge_after_ms,
        },
    )
}

fn family_plan() -> impl Strategy<Value = FamilyPlan> {
    let versions = (1..4_u32, 0..3_u32);
    let ttl_s = prop_oneof![2 => Just(None), 1 => Just(Some(1)), 1 => Just(Some(2))];
    let keep = prop_oneof![3 => Just("FALSE"), 1 => Just("TRUE"), 1 => Just("TTL")];
    let encoding = prop::sample::select(vec!["NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"]);
    let compression = prop_oneof![2 => Just("NONE"), 1 => Just("SNAPPY"), 1 => Just("GZ")];
    let bloom = prop::sample::select(vec!["NONE", "ROW", "ROWCOL"]);
    let block_bytes = prop::sample::select(vec!["64", "1024", "65536"]);
    let policy = prop_oneof![3 => Just("Exploring"), 1 => Just("RatioBased"), 1 => Just("FIFO"), 2 => Just("DateTiered")];
    let sidecar = prop::sample::select(vec!["false", "true"]);
    (versions, ttl_s, keep, encoding, compression, bloom, block_bytes, policy, sidecar).prop_map(
        |(
            (versions, min_versions),
            ttl_s,
            keep_deleted,
            encoding,
            compression,
            bloom,
            block_bytes,
            policy,
            sidecar,
        )| {
            FamilyPlan {
                versions,
                min_versions: min_versions.min(versions - 1),
                ttl_s,
                keep_deleted,
                encoding,
                compression,
                bloom,
                block_bytes,
                policy,
                sidecar,
            }
        },
    )
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![1 => Just(When::Now), 2 => (-2..9_i64).prop_map(When::Before)]
}

fn target() -> impl Strategy<Value = Target> {
    (0..FAMILIES.len(), 0..QUALIFIERS.len(), when()).prop_map(|(family, qualifier, at)| Target {
        family,
        qualifier,
        at,
    })
}

fn marker() -> impl Strategy<Value = CellType> {
    prop_oneof![
        3 => Just(CellType::Delete),
        2 => Just(CellType::DeleteColumn),
        1 => Just(CellType::DeleteFamily),
        1 => Just(CellType::DeleteFamilyVersion),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let row = 0..ROWS.len();
    prop_oneof![
        6 => (row.clone(), prop::collection::vec(target(), 1..5)).prop_map(|(row, cells)| Change::Put(row, cells)),
        3 => (row.clone(), prop::collection::vec((target(), marker()), 1..4))
            .prop_map(|(row, cells)| Change::Delete(row, cells)),
        1 => (row, when()).prop_map(|(row, at)| Change::DeleteRow(row, at)),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        1 => Just(Part::Put),
        4 => (-3..9i64).prop_map(Part::Increment),
        2 => Just(Part::Append),
    ]
}

fn condition() -> impl Strategy<Value = (Target, CompareOp, &'static str)> {
    use CompareOp::*;
    let operator = prop_oneof![Just(Less), Just(Equal), Just(NotEqual), Just(Greater)];
    (target(), operator, prop_oneof![Just(""), Just("v"), Just("v2"), Just("w")])
}

fn read() -> impl Strategy<Value = Read> {
    let of_family = || prop::option::weighted(0.7, prop::collection::btree_set(0..QUALIFIERS.len(), 0..3));
    let range = || prop::option::weighted(0.3, (when(), 0..6_i64));
    (
        (of_family(), of_family()),
        range(),
        range(),
        prop_oneof![1..5_u32, Just(u32::MAX)],
        prop::bool::weighted(0.3),
    )
        .prop_map(|((first, second), range, range_of_first, versions, raw)| Read {
            columns: [first, second],
            range,
            range_of_first,
            versions,
            raw,
        })
}

fn step() -> impl Strategy<Value = Step> {
    let rows = || 0..ROWS.len();
    prop_oneof![
        6 => (rows(), prop::option::of(condition()), prop::collection::vec((target(), part()), 1..4))
            .prop_map(|(row, condition, parts)| Step::Atomic { row, condition, parts }),
        10 => prop::collection::vec(change(), 1..4).prop_map(Step::Write),
        4 => Just(Step::Flush),
        2 => (0..FAMILIES.len()).prop_map(Step::FlushFamily),
        5 => (0..FAMILIES.len(), any::<bool>(), prop::bool::weighted(0.3))
            .prop_map(|(family, by_user, major)| Step::Compact { family, by_user, major }),
        2 => prop_oneof![Just(Reopen::Clean), Just(Reopen::Killed), any::<u64>().prop_map(Reopen::PowerLoss)]
            .prop_map(Step::Reopen),
        3 => (rows(), read()).prop_map(|(row, read)| Step::Get { row, read }),
        4 => (rows(), rows(), any::<bool>(), any::<bool>(), read())
            .prop_map(|(start, stop, with_stop, reversed, read)| Step::Scan { start, stop, with_stop, reversed, read }),
        3 => prop_oneof![1..20_u64, 200..1500_u64].prop_map(|ms| Step::Wait { ms }),
    ]
}

impl FamilyPlan {
    fn descriptor(&self, name: &'static [u8]) -> FamilyDescriptor {
        let ttl_s = self.ttl_s.unwrap_or(i32::MAX as u32);
        let mut family = FamilyDescriptor::new(name)
            .with("VERSIONS", &self.versions.to_string())
            .with("MIN_VERSIONS", &self.min_versions.to_string())
            .with("TTL", &ttl_s.to_string())
            .with("KEEP_DELETED_CELLS", self.keep_deleted)
            .with("DATA_BLOCK_ENCODING", self.encoding)
            .with("COMPRESSION", self.compression)
            .with("BLOOMFILTER", self.bloom)
            .with("BLOCKSIZE", self.block_bytes)
            .with("COLUMN_SIDECAR", self.sidecar);
        let mut set = |key: &str, value: &str| {
            family.configuration.insert(key.to_string(), value.to_string());
        };
        match self.policy {
            "DateTiered" => {
                const OF: &str = "hbase.hstore.compaction.date.tiered.";
                set(
                    "hbase.hstore.engine.class",
                    "org.apache.hadoop.hbase.regionserver.DateTieredStoreEngine",
                );
                set(&format!("{OF}base.window.millis"), "500");
                set(&format!("{OF}windows.per.tier"), "2");
                set(&format!("{OF}incoming.window.min"), "2");
                set(&format!("{OF}single.output.for.minor.compaction"), "false");
            }
            policy => set(
                "hbase.hstore.defaultengine.compactionpolicy.class",
                &format!("org.apache.hadoop.hbase.regionserver.compactions.{policy}CompactionPolicy"),
            ),
        }
        family
    }
}

impl Plan {
    fn table(&self) -> TableDescriptor {
        let [first, second] = &self.families;
        TableDescriptor::new(TableName::parse("t").unwrap())
            .with_family(first.descriptor(FAMILIES[0]))
            .with_family(second.descriptor(FAMILIES[1]))
    }

    fn options(&self) -> RegionOptions {
        let settings = Settings {
            files_min: self.files_min,
            files_max: self.files_max,
            ratio: self.ratio,
            blocking_files: self.blocking_files,
            ..Settings::default()
        };
        let compaction =
            SiteSettings { settings, bytes_min: Some(self.bytes_min), ..SiteSettings::default() };
        let purge_deletes_after = Duration::from_millis(self.purge_after_ms);
        RegionOptions { compaction, purge_deletes_after, ..options() }
    }
}

/// A region, its model, and their environment.
struct RegionWithModel {
    plan: Plan,
    table: TableDescriptor,
    env: Env,
    fs: MemoryFs,
    opened: Opened,
    model: Model,
    written: u32,
    last_seq_id: u64,
    last_nonce: u64,
    // The last change with a nonce, while the log still has it.
    in_log: Option<Vec<Mutation>>,
}

impl RegionWithModel {
    async fn new(plan: &Plan) -> RegionWithModel {
        let (env, fs, table) = (base::testing::env(1), MemoryFs::new(), plan.table());
        let opened = open_table(&env, Arc::new(fs.clone()), plan.options(), &table).await.unwrap();
        let mut model = Model::new(&table);
        model.purge_after(plan.purge_after_ms as i64);
        RegionWithModel {
            plan: plan.clone(),
            table,
            env,
            fs,
            opened,
            model,
            written: 0,
            last_seq_id: 0,
            last_nonce: 0,
            in_log: None,
        }
    }

    fn now(&self) -> i64 {
        self.env.clock.now_ms() as i64
    }

    fn time(&self, at: When) -> i64 {
        match at {
            When::Now => LATEST_TIMESTAMP,
            When::Before(steps) => (self.now() / GRID_MS - steps) * GRID_MS,
        }
    }

    async fn apply(&mut self, step: &Step) {
        tokio::time::advance(Duration::from_millis(1)).await;
        self.model.now = self.now();
        let keeps_log = matches!(
            step,
            Step::Reopen(Reopen::Killed | Reopen::PowerLoss(_))
                | Step::Get { .. }
                | Step::Scan { .. }
                | Step::Compact { .. }
        );
        if !keeps_log {
            self.in_log = None;
        }
        match step {
            Step::Atomic { row, condition, parts } => self.change(*row, condition.as_ref(), parts).await,
            Step::Write(changes) => self.write(changes).await,
            Step::Flush => {
                self.opened.region.flush().await.unwrap();
                self.model.flush();
            }
            Step::FlushFamily(family) => {
                let name = Bytes::from_static(FAMILIES[*family]);
                self.opened.region.flush_families(&[name]).await.unwrap();
                self.model.flush_family(*family);
            }
            Step::Compact { family, by_user, major } => self.compact(*family, *by_user, *major).await,
            Step::Reopen(how) => self.reopen(*how).await,
            Step::Get { row, read } => self.get(*row, read).await,
            Step::Scan { start, stop, with_stop, reversed, read } => {
                self.scan(*start, *stop, *with_stop, *reversed, read).await;
            }
            Step::Wait { ms } => {
                tokio::time::advance(Duration::from_millis(*ms)).await;
                self.model.now = self.now();
            }
        }
    }

    async fn write(&mut self, changes: &[Change]) {
        let mutations: Vec<Mutation> = changes.iter().map(|change| self.mutation(change)).collect();
        let now = self.now();
        for result in self.opened.region.batch(mutations.clone()).await {
            result.unwrap();
        }
        self.last_seq_id = self.opened.region.mvcc().read_point();
        assert_eq!(self.now(), now, "time advances only between steps");
        self.model.apply(&mutations, now);
    }

    /// Sends a change of one row twice with one nonce.
    async fn change(
        &mut self,
        row: usize,
        condition: Option<&(Target, CompareOp, &'static str)>,
        parts: &[(Target, Part)],
    ) {
        self.last_nonce += 1;
        let nonce = (77, self.last_nonce);
        let mutations: Vec<Mutation> =
            parts.iter().map(|(target, part)| Mutation { nonce, ..self.part(row, target, *part) }).collect();
        let condition = condition.map(|(target, operator, value)| Condition {
            row: Bytes::from_static(ROWS[row]),
            time_range: TimeRange::ALL,
            test: Test::Column(ColumnTest {
                family: Bytes::from_static(FAMILIES[target.family]),
                qualifier: Bytes::from_static(QUALIFIERS[target.qualifier]),
                operator: *operator,
                value: (*value).into(),
            }),
        });
        let expected = self.model.change(condition.as_ref(), &mutations, self.now());
        let region = self.opened.region.clone();
        let found = region.change(condition.as_ref(), mutations.clone()).await;
        assert_eq!(found.as_ref().map(|changed| changed.matched).map_err(drop), expected);
        if expected == Ok(true) {
            let again = region.change(condition.as_ref(), mutations.clone()).await.unwrap();
            assert!(again.matched);
            self.in_log = Some(mutations);
            self.last_seq_id = region.mvcc().read_point();
        }
    }

    fn part(&mut self, row: usize, target: &Target, part: Part) -> Mutation {
        let of = Bytes::from_static(ROWS[row]);
        let cell_of = |value: &[u8]| {
            let (family, qualifier) = (FAMILIES[target.family], QUALIFIERS[target.qualifier]);
            vec![KeyValue::new(ROWS[row], family, qualifier, LATEST_TIMESTAMP, CellType::Put, value)]
        };
        match part {
            Part::Put => Mutation::put(of, vec![self.cell(row, target, CellType::Put)]),
            Part::Increment(by) => Mutation::increment(of, cell_of(&by.to_be_bytes())),
            Part::Append => Mutation::append(of, cell_of(b"w")),
        }
    }

    fn mutation(&mut self, change: &Change) -> Mutation {
        match change {
            Change::Put(row, targets) => {
                let cells = targets.iter().map(|target| self.cell(*row, target, CellType::Put)).collect();
                Mutation::put(Bytes::from_static(ROWS[*row]), cells)
            }
            Change::Delete(row, markers) => {
                let cells = markers.iter().map(|(target, kind)| self.cell(*row, target, *kind)).collect();
                Mutation::delete(Bytes::from_static(ROWS[*row]), cells)
            }
            Change::DeleteRow(row, at) => {
                let delete = Mutation::delete(Bytes::from_static(ROWS[*row]), Vec::new());
                Mutation { timestamp: self.time(*at), ..delete }
            }
        }
    }

    fn cell(&mut self, row: usize, target: &Target, kind: CellType) -> KeyValue {
        self.written += 1;
        let of_family = matches!(kind, CellType::DeleteFamily | CellType::DeleteFamilyVersion);
        let qualifier = if of_family { b"" } else { QUALIFIERS[target.qualifier] };
        let value = if kind == CellType::Put { format!("v{}", self.written) } else { String::new() };
        let timestamp = self.time(target.at);
        KeyValue::new(ROWS[row], FAMILIES[target.family], qualifier, timestamp, kind, value.as_bytes())
    }

    /// Names of the files of a family, oldest first.
    fn names(&self, family: usize) -> Vec<String> {
        let files = self.opened.region.store_files(FAMILIES[family]).unwrap();
        files.iter().map(|path| path.name().to_string()).collect()
    }

    /// Compacts the files that the region selects.
    async fn compact(&mut self, family: usize, by_user: bool, major: bool) {
        let region = self.opened.region.clone();
        self.model.drop_expired(family, &self.names(family));
        let request = SelectionRequest { by_user, major, off_peak: false };
        let Some(selected) = region.select_compaction(FAMILIES[family], request).await.unwrap() else {
            return;
        };
        let (names, selection) = (self.names(family), selected.selection().clone());
        assert!(self.model.learn_names(family, &names), "only expired files are dropped");
        let chosen: Vec<String> = selection.files.iter().map(|at| names[*at].clone()).collect();
        assert_eq!(region.run_compaction(selected, &Unthrottled).await.unwrap(), chosen.len());
        self.model.compact_files(family, &chosen, selection.is_all, &selection.boundaries);
    }

    async fn reopen(&mut self, how: Reopen) {
        if how == Reopen::Clean {
            self.opened.region.close().await.unwrap();
            self.model.flush();
        } else {
            self.opened.region.abandon();
        }
        if let Reopen::PowerLoss(seed) = how {
            let mut state = seed;
            // Any deterministic sequence will do.
            let mut random = move || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state >> 11
            };
            let after = self.fs.crash(&mut random);
            self.opened.log.close().await;
            self.fs = after;
        } else {
            self.opened.log.close().await;
        }
        let fs = Arc::new(self.fs.clone());
        self.opened = open_table(&self.env, fs, self.plan.options(), &self.table).await.unwrap();
        for family in 0..FAMILIES.len() {
            self.model.crashed(family, &self.names(family));
        }
        // Sequence ids of markers may be reused, those of cells never.
        assert!(self.opened.region.open_seq_id() > self.last_seq_id, "sequence ids never decrease");
        // A change in the log was applied. Sending it again changes nothing, as the next scan
        // shows.
        if let Some(mutations) = self.in_log.clone() {
            assert!(self.opened.region.change(None, mutations).await.unwrap().matched);
        }
    }

    fn range(&self, range: Option<(When, i64)>) -> TimeRange {
        range.map_or(TimeRange::ALL, |(from, steps)| {
            let from = match from {
                When::Now => 0,
                from => self.time(from),
            };
            TimeRange {
                from,
                to: if steps == 5 { i64::MAX } else { from.max(self.now() - 2000) + steps * GRID_MS },
            }
        })
    }

    /// The same read for the region and, by family, for the model.
    fn selection(&self, read: &Read) -> (CellSelection, Vec<Option<ModelRead>>) {
        let (range, range_of_first) = (self.range(read.range), self.range(read.range_of_first));
        let of_first = read.range_of_first.is_some();
        let name = |family: usize| Bytes::from_static(FAMILIES[family]);
        let named = |wanted: &BTreeSet<usize>| {
            let qualifiers = wanted.iter().map(|at| Bytes::from_static(QUALIFIERS[*at]));
            (!wanted.is_empty() && !read.raw).then(|| qualifiers.collect::<Vec<_>>())
        };
        let all = read.columns.iter().all(Option::is_none);
        let wanted = |family: usize| match (&read.columns[family], all) {
            (_, true) => Some(None),
            (Some(wanted), _) => Some(named(wanted)),
            (None, false) => None,
        };
        let columns = (0..2)
            .filter(|_| !all)
            .filter_map(|family| Some(FamilyColumns { family: name(family), qualifiers: wanted(family)? }));
        let selection = CellSelection {
            columns: columns.collect(),
            time_range: range,
            family_time_ranges: if of_first { vec![(name(0), range_of_first)] } else { Vec::new() },
            max_versions: read.versions,
            ..CellSelection::default()
        };
        let model_read = |family: usize| {
            let qualifiers: Option<Vec<Bytes>> = wanted(family)?;
            Some(ModelRead {
                qualifiers: qualifiers.map(|all| all.iter().map(|name| name.to_vec()).collect()),
                range: if family == 0 && of_first { range_of_first } else { range },
                versions: read.versions as usize,
                raw: read.raw,
            })
        };
        (selection, (0..2).map(model_read).collect())
    }

    fn expected(&self, model_reads: &[Option<ModelRead>], rows: &dyn Fn(&[u8]) -> bool) -> Vec<ModelCell> {
        let each = model_reads
            .iter()
            .enumerate()
            .filter_map(|(family, model_read)| Some((family, model_read.as_ref()?)));
        let cells = each.flat_map(|(family, model_read)| self.model.read(family, model_read));
        in_order(cells.filter(|cell| rows(&cell.row)).collect())
    }

    async fn get(&self, row: usize, read: &Read) {
        let read = Read { raw: false, ..read.clone() };
        let (selection, model_reads) = self.selection(&read);
        let get =
            Get { row: Bytes::from_static(ROWS[row]), selection: selection.into(), existence_only: false };
        let list = self.opened.region.get(&get).await.unwrap();
        let found: Vec<_> = list.cells.iter().map(|(cell, _)| with_type(&cell.view(0))).collect();
        let expected: Vec<_> =
            self.expected(&model_reads, &|of| of == ROWS[row]).iter().map(model_with_type).collect();
        assert_eq!(found, expected, "{get:?}");
    }

    async fn scan(&self, start: usize, stop: usize, with_stop: bool, reversed: bool, read: &Read) {
        let (selection, model_reads) = self.selection(read);
        let (low, high) = (start.min(stop), start.max(stop));
        let (from, to) = if reversed { (high, low) } else { (low, high) };
        let scan = Scan {
            start_row: Bytes::from_static(ROWS[from]),
            stop_row: Bytes::from_static(ROWS[to]),
            include_stop_row: with_stop,
            reversed,
            selection,
            raw: read.raw,
            ..Scan::default()
        };
        let list = self.opened.region.scan_all(&scan).await.unwrap();
        let found: Vec<_> = list.cells.iter().map(|(cell, _)| with_type(&cell.view(0))).collect();
        let end = ROWS[to];
        let is_wanted = |row: &[u8]| (ROWS[low]..=ROWS[high]).contains(&row) && (with_stop || row != end);
        let mut expected = self.expected(&model_reads, &is_wanted);
        if reversed {
            // Rows are in descending order, the cells of a row are not.
            expected.sort_by(|left, right| right.row.cmp(&left.row));
        }
        let expected: Vec<_> = expected.iter().map(model_with_type).collect();
        assert_eq!(found, expected, "{scan:?}");
        self.scan_columns(ROWS[low], ROWS[high], &scan.selection).await;
    }

    /// Checks that column scans of one family, and of both, return what a cell scan returns.
    async fn scan_columns(&self, start: &'static [u8], stop: &'static [u8], as_scan: &CellSelection) {
        for families in [&FAMILIES[..1], &FAMILIES[1..], &FAMILIES[..]] {
            let columns: Vec<_> =
                families.iter().flat_map(|family| QUALIFIERS.map(|qualifier| (*family, qualifier))).collect();
            let wanted = analytics::ColumnQuery {
                start_row: Bytes::from_static(start),
                stop_row: Bytes::from_static(stop),
                time_range: as_scan.time_range,
                versions: as_scan.max_versions,
                ..columns::wanted(families, columns::raw_columns(&columns))
            };
            columns::check(&self.opened.region, &wanted).await;
            let all = analytics::ColumnQuery { start_row: Bytes::new(), stop_row: Bytes::new(), ..wanted };
            columns::check(&self.opened.region, &all).await;
        }
    }

    async fn check(&mut self, step: &Step) {
        for family in 0..FAMILIES.len() {
            let names = self.names(family);
            assert!(
                self.model.learn_names(family, &names),
                "files of family {family} after {step:?}: {names:?}"
            );
        }
        let (found, expected) = (world::scan(&self.opened.region).await.unwrap(), self.model.scan());
        assert!(found == expected, "after {step:?}: {}", difference(&found, &expected));
    }
}

/// A cell with its type, because raw reads return markers too.
fn with_type(cell: &cell::Cell<'_>) -> (VisibleCell, CellType) {
    if cell.kind() == CellType::Put {
        return (visible_cell(cell), CellType::Put);
    }
    let (row, family, qualifier) = (cell.row().to_vec(), cell.family().to_vec(), cell.qualifier().to_vec());
    ((row, family, qualifier, cell.timestamp(), cell.value.to_vec()), cell.kind())
}

fn model_with_type(cell: &ModelCell) -> (VisibleCell, CellType) {
    (cell.visible_cell(), cell.kind)
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn region_agrees_with_model() {
    let (steps, seed) = (number("GRAMPUS_MODEL_STEPS", STEPS), number("GRAMPUS_MODEL_SEED", 1));
    let cases = u32::try_from(steps / (STEPS_OF_SCHEMA as u64 / 2)).unwrap_or(u32::MAX).max(1);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let programs = (plan(), prop::collection::vec(step(), 1..STEPS_OF_SCHEMA));
    let outcome = TestRunner::new_with_rng(config, random).run(&programs, |(plan, steps)| {
        world::run(async {
            let mut region = RegionWithModel::new(&plan).await;
            for step in &steps {
                region.apply(step).await;
                region.check(step).await;
            }
        });
        Ok(())
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, least)) => panic!("seed {seed}: {why}\nleast program: {least:#?}"),
        Err(TestError::Abort(why)) => panic!("seed {seed}: {why}"),
    }
}
