//! Random steps on a region against a model: whatever is written, deleted, flushed, compacted and reopened in whatever
//! order, a scan of all versions shows what HBase's rules say.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

mod common;

use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use cell::cell::CellType;
use cell::condition::{ColumnTest, Condition, Test};
use cell::filter::CompareOp;
use cell::mutation::Mutation;
use cell::query::{CellSelection, FamilyColumns, Get, TimeRange};
use cell::{KeyValue, LATEST_TIMESTAMP};
use common::model::Model;
use common::world::{self, Opened, difference, open, options, scan, shown, table};
use engine::region::CompactionKind;
use fs::memory::MemoryFs;
use proptest::prelude::*;

const FAMILIES: [&[u8]; 2] = [b"f", b"g"];
const QUALIFIERS: [&[u8]; 3] = [b"", b"a", b"b"];
const ROWS: [&[u8]; 4] = [b"r0", b"r1", b"r1\x00", b"r2"];

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<Change>),
    Atomic { row: usize, condition: Option<(Target, CompareOp, &'static str)>, parts: Vec<(Target, Part)> },
    Flush,
    FlushFamily(usize),
    Compact { family: usize, major: bool },
    Reopen { clean: bool },
    Get { row: usize, family: usize, qualifier: usize, versions: u32 },
}

/// A mutation: its row and its cells; a delete without cells deletes the row.
#[derive(Clone, Debug)]
enum Change {
    Put(usize, Vec<Target>),
    Delete(usize, Vec<(Target, CellType)>),
    DeleteRow(usize, i64),
}

/// What a change of one row does to a column.
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
    timestamp: i64,
}

fn timestamp() -> impl Strategy<Value = i64> {
    prop_oneof![1 => Just(LATEST_TIMESTAMP), 2 => 1..6i64]
}

fn target() -> impl Strategy<Value = Target> {
    (0..FAMILIES.len(), 0..QUALIFIERS.len(), timestamp()).prop_map(|(family, qualifier, timestamp)| Target {
        family,
        qualifier,
        timestamp,
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
        1 => (row, timestamp()).prop_map(|(row, timestamp)| Change::DeleteRow(row, timestamp)),
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

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..ROWS.len(), prop::option::of(condition()), prop::collection::vec((target(), part()), 1..4))
            .prop_map(|(row, condition, parts)| Step::Atomic { row, condition, parts }),
        10 => prop::collection::vec(change(), 1..4).prop_map(Step::Write),
        3 => Just(Step::Flush),
        1 => (0..FAMILIES.len()).prop_map(Step::FlushFamily),
        2 => (0..FAMILIES.len(), any::<bool>()).prop_map(|(family, major)| Step::Compact { family, major }),
        2 => any::<bool>().prop_map(|clean| Step::Reopen { clean }),
        3 => (0..ROWS.len(), 0..FAMILIES.len(), 0..QUALIFIERS.len(), 1..4u32)
            .prop_map(|(row, family, qualifier, versions)| Step::Get { row, family, qualifier, versions }),
    ]
}

/// A region, its model, and what both stand on.
struct Pair {
    env: Env,
    fs: MemoryFs,
    opened: Opened,
    model: Model,
    written: u32,
    last_seq_id: u64,
    last_nonce: u64,
    // The last change with a nonce, as long as the log has it.
    in_log: Option<Vec<Mutation>>,
}

impl Pair {
    async fn new() -> Pair {
        let (env, fs) = (base::testing::env(1), MemoryFs::new());
        let opened = open(&env, Arc::new(fs.clone()), options()).await.unwrap();
        Pair {
            env,
            fs,
            opened,
            model: Model::new(&table()),
            written: 0,
            last_seq_id: 0,
            last_nonce: 0,
            in_log: None,
        }
    }

    async fn apply(&mut self, step: &Step) {
        tokio::time::advance(Duration::from_millis(1)).await;
        if !matches!(step, Step::Reopen { clean: false } | Step::Get { .. } | Step::Compact { .. }) {
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
            Step::Compact { family, major } => {
                let kind = if *major { CompactionKind::Major } else { CompactionKind::Minor };
                self.opened.region.compact(Some(FAMILIES[*family]), kind).await.unwrap();
                self.model.compact(*family, *major);
            }
            Step::Reopen { clean } => self.reopen(*clean).await,
            Step::Get { row, family, qualifier, versions } => {
                self.get(*row, *family, *qualifier, *versions).await
            }
        }
    }

    async fn write(&mut self, changes: &[Change]) {
        let mutations: Vec<Mutation> = changes.iter().map(|change| self.mutation(change)).collect();
        let now = self.env.clock.now_ms();
        for result in self.opened.region.batch(mutations.clone()).await {
            result.unwrap();
        }
        self.last_seq_id = self.opened.region.mvcc().read_point();
        assert_eq!(self.env.clock.now_ms(), now, "time passes in between steps only");
        self.model.apply(&mutations, now as i64);
    }

    /// A change of one row, sent twice under one nonce.
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
        let now = self.env.clock.now_ms() as i64;
        let expected = self.model.change(condition.as_ref(), &mutations, now);
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
            Change::DeleteRow(row, timestamp) => {
                let delete = Mutation::delete(Bytes::from_static(ROWS[*row]), Vec::new());
                Mutation { timestamp: *timestamp, ..delete }
            }
        }
    }

    fn cell(&mut self, row: usize, target: &Target, kind: CellType) -> KeyValue {
        self.written += 1;
        let of_family = matches!(kind, CellType::DeleteFamily | CellType::DeleteFamilyVersion);
        let qualifier = if of_family { b"" } else { QUALIFIERS[target.qualifier] };
        let value = if kind == CellType::Put { format!("v{}", self.written) } else { String::new() };
        KeyValue::new(ROWS[row], FAMILIES[target.family], qualifier, target.timestamp, kind, value.as_bytes())
    }

    async fn reopen(&mut self, clean: bool) {
        if clean {
            self.opened.region.close().await.unwrap();
            self.model.flush();
        } else {
            self.opened.region.abandon();
        }
        self.opened.log.close().await;
        self.opened = open(&self.env, Arc::new(self.fs.clone()), options()).await.unwrap();
        // Ids of markers may be used again, those of cells never.
        assert!(self.opened.region.open_seq_id() > self.last_seq_id, "sequence ids never go back");
        // What the log has was done: sent again it changes nothing, as the next scan shows.
        if let Some(mutations) = self.in_log.clone() {
            assert!(self.opened.region.change(None, mutations).await.unwrap().matched);
        }
    }

    async fn get(&self, row: usize, family: usize, qualifier: usize, versions: u32) {
        let columns = FamilyColumns {
            family: Bytes::from_static(FAMILIES[family]),
            qualifiers: Some(vec![Bytes::from_static(QUALIFIERS[qualifier])]),
        };
        let selection =
            CellSelection { columns: vec![columns], max_versions: versions, ..CellSelection::default() };
        let get = Get { row: Bytes::from_static(ROWS[row]), selection, existence_only: false };
        let list = self.opened.region.get(&get).await.unwrap();
        let found: Vec<_> = list.cells.iter().map(|(cell, _)| shown(&cell.view(0))).collect();
        let is_wanted = |shown: &common::model::Shown| {
            (&shown.0[..], &shown.1[..], &shown.2[..]) == (ROWS[row], FAMILIES[family], QUALIFIERS[qualifier])
        };
        let expected: Vec<_> =
            self.model.scan().into_iter().filter(is_wanted).take(versions as usize).collect();
        assert_eq!(found, expected, "a get of one column");
    }

    async fn check(&self, step: &Step) {
        let (found, expected) = (scan(&self.opened.region).await.unwrap(), self.model.scan());
        assert!(found == expected, "after {step:?}: {}", difference(&found, &expected));
        for (at, store) in self.opened.region.figures().stores.iter().enumerate() {
            assert_eq!(store.files, self.model.file_count(at), "files after {step:?}");
        }
    }
}

/// `PROPTEST_CASES`, or 200.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn region_agrees_with_model(steps in prop::collection::vec(step(), 1..40)) {
        world::run(async {
            let mut pair = Pair::new().await;
            for step in &steps {
                pair.apply(step).await;
                pair.check(step).await;
            }
        });
    }
}
