//! Random cells, distributed randomly over memory and files, scanned with all options. The results
//! are compared with a model that applies the retention rules to one sorted list.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

pub(super) const FAMILIES: [&str; 2] = ["f", "g"];
const QUALIFIERS: [&str; 4] = ["", "p", "q", "qq"];
pub(super) const ROWS: [&str; 5] = ["a", "ab", "b", "c", "d"];

/// One step of a program.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Write(Write),
    /// Writes the memory of a family to a file.
    Flush(usize),
    /// Turns the memory of a family into a snapshot, if it has none.
    Freeze(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Write {
    row: usize,
    family: usize,
    qualifier: usize,
    timestamp: i64,
    kind: CellType,
    own_ttl: Option<i64>,
}

/// Attributes of a family.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    max_versions: u32,
    min_versions: u32,
    /// The oldest timestamp that has not expired.
    oldest: Option<i64>,
    keep_deleted: bool,
}

impl Rules {
    /// The same rules without limits of versions.
    pub(super) fn without_limits(self) -> Rules {
        Rules { keep_deleted: false, max_versions: 100, min_versions: 0, ..self }
    }
}

pub(super) type Cells = Vec<(KeyValue, u64)>;

fn writes() -> impl Strategy<Value = Write> {
    let kind = prop_oneof![
        8 => Just(CellType::Put),
        1 => Just(CellType::Delete),
        1 => Just(CellType::DeleteColumn),
        1 => Just(CellType::DeleteFamily),
        1 => Just(CellType::DeleteFamilyVersion),
    ];
    let own_ttl = prop_oneof![6 => Just(None), 1 => (990..1000i64).prop_map(Some)];
    (0..ROWS.len(), 0..FAMILIES.len(), 0..QUALIFIERS.len(), 1..9i64, kind, own_ttl).prop_map(
        |(row, family, qualifier, timestamp, kind, own_ttl)| Write {
            row,
            family,
            // Markers of the family have no column.
            qualifier: if matches!(kind, CellType::DeleteFamily | CellType::DeleteFamilyVersion) {
                0
            } else {
                qualifier
            },
            timestamp,
            kind,
            own_ttl: own_ttl.filter(|_| kind == CellType::Put),
        },
    )
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => writes().prop_map(Step::Write),
        1 => (0..FAMILIES.len()).prop_map(Step::Flush),
        1 => (0..FAMILIES.len()).prop_map(Step::Freeze),
    ];
    proptest::collection::vec(step, 1..60)
}

pub(super) fn rules() -> impl Strategy<Value = Rules> {
    let oldest = prop_oneof![2 => Just(None), 1 => (1..9i64).prop_map(Some)];
    (1..4u32, 0..3u32, oldest, proptest::bool::weighted(0.2)).prop_map(
        |(max_versions, min_versions, oldest, keep_deleted)| Rules {
            max_versions,
            min_versions,
            oldest,
            keep_deleted,
        },
    )
}

pub(super) fn scans() -> impl Strategy<Value = Scan> {
    let bound = || proptest::option::of(proptest::sample::select(vec!["a", "aa", "b", "c", "e"]));
    let columns = proptest::option::of(proptest::collection::btree_map(
        0..FAMILIES.len(),
        proptest::option::of(proptest::collection::btree_set(0..QUALIFIERS.len(), 1..4)),
        1..3,
    ));
    let range = || proptest::option::of((0..9i64, 0..9i64).prop_map(|(from, to)| TimeRange { from, to }));
    let rows = (bound(), any::<bool>(), bound(), any::<bool>(), any::<bool>(), proptest::bool::weighted(0.2));
    let cells = (columns, range(), range(), 1..4u32, proptest::option::of(0..4u32), 0..3u32);
    let how = (0..4u32, proptest::bool::weighted(0.15), proptest::option::of(0..60u64));
    (rows, cells, how).prop_map(|(rows, cells, how)| {
        let (start, include_start_row, stop, include_stop_row, reversed, single) = rows;
        let (columns, range, own_range, max_versions, store_limit, store_offset) = cells;
        let (batch, raw, read_point) = how;
        let columns =
            columns.filter(|_| !raw).into_iter().flatten().map(|(family, qualifiers)| FamilyColumns {
                family: FAMILIES[family].into(),
                qualifiers: qualifiers
                    .map(|set| set.into_iter().map(|at| Bytes::from(QUALIFIERS[at])).collect()),
            });
        let mut scan = Scan {
            start_row: start.unwrap_or("").into(),
            include_start_row,
            stop_row: stop.unwrap_or("").into(),
            include_stop_row,
            reversed,
            batch,
            raw,
            read_point,
            selection: CellSelection {
                columns: columns.collect(),
                time_range: range.unwrap_or(TimeRange::ALL),
                family_time_ranges: own_range.map(|range| (Bytes::from("g"), range)).into_iter().collect(),
                max_versions,
                store_limit,
                store_offset,
                cache_blocks: true,
                ..CellSelection::default()
            },
        };
        if single && !scan.start_row.is_empty() {
            scan.stop_row = scan.start_row.clone();
            (scan.include_start_row, scan.include_stop_row, scan.reversed) = (true, true, false);
        }
        scan
    })
}

fn file_kinds() -> impl Strategy<Value = FileKind> {
    let encoding = prop_oneof![
        Just(BlockEncoding::None),
        Just(BlockEncoding::Prefix),
        Just(BlockEncoding::Diff),
        Just(BlockEncoding::FastDiff),
        Just(BlockEncoding::RowIndexV1)
    ];
    let bloom = prop_oneof![Just(BloomType::None), Just(BloomType::Row), Just(BloomType::RowCol)];
    // Some of these rows leave one half empty.
    let split_row = proptest::option::of(proptest::sample::select(vec!["", "a", "aba", "b", "c", "d", "e"]));
    (1..300u32, encoding, bloom, split_row).prop_map(|(block_bytes, encoding, bloom, split_row)| FileKind {
        block_bytes,
        encoding,
        bloom,
        split_row,
    })
}

/// The model: the result of a scan of `cells`, row by row.
struct Model<'a> {
    rules: &'a [Rules],
    cells: &'a Cells,
}

impl Model<'_> {
    fn scan(&self, scan: &Scan) -> Vec<Cells> {
        let mut rows: BTreeMap<Vec<u8>, ()> = BTreeMap::new();
        for (cell, _) in self.cells {
            rows.insert(cell.view(0).row().to_vec(), ());
        }
        let mut rows: Vec<_> = rows.into_keys().filter(|row| in_rows(scan, row)).collect();
        if scan.reversed {
            rows.reverse();
        }
        let results = rows.iter().map(|row| {
            let families = FAMILIES.iter().zip(self.rules);
            families
                .flat_map(|(family, rules)| self.row_of_family(scan, row, family.as_bytes(), rules))
                .collect()
        });
        results.filter(|cells: &Cells| !cells.is_empty()).collect()
    }

    fn row_of_family(&self, scan: &Scan, row: &[u8], family: &[u8], rules: &Rules) -> Cells {
        let Some(wanted) = scan.selection.qualifiers_of(family) else {
            return Vec::new();
        };
        let read_point = scan.read_point.unwrap_or(u64::MAX);
        let seen = |(cell, seq_id): &&(KeyValue, u64)| {
            let cell = cell.view(*seq_id);
            cell.row() == row && cell.family() == family && *seq_id <= read_point
        };
        let mut cells: Cells = self.cells.iter().filter(seen).cloned().collect();
        cells.sort_by(|left, right| CellOrder::Plain.compare(&left.0.view(left.1), &right.0.view(right.1)));
        let range = scan.selection.time_range_of(family);
        let mut passed = Vec::new();
        for qualifier in QUALIFIERS.map(str::as_bytes) {
            if wanted.is_some_and(|wanted| !wanted.iter().any(|name| name == qualifier)) {
                continue;
            }
            let column: Cells =
                cells.iter().filter(|(cell, _)| cell.view(0).qualifier() == qualifier).cloned().collect();
            match scan.raw {
                true => passed.extend(raw_column(&column, range, scan.selection.max_versions)),
                false => {
                    let max = scan.selection.max_versions.min(rules.max_versions);
                    passed.extend(column_of(&cells, &column, rules, range, max, wanted.is_some()));
                }
            }
        }
        // The limit is checked after a cell is returned, so at least one is.
        let offset = scan.selection.store_offset as usize;
        let limit = scan.selection.store_limit.map_or(usize::MAX, |limit| (limit as usize).max(1));
        passed.into_iter().skip(offset).take(limit).collect()
    }
}

fn in_rows(scan: &Scan, row: &[u8]) -> bool {
    let (low, include_low, high, include_high) = match scan.reversed {
        false => (&scan.start_row, scan.include_start_row, &scan.stop_row, scan.include_stop_row),
        true => (&scan.stop_row, scan.include_stop_row, &scan.start_row, scan.include_start_row),
    };
    (low.is_empty() || row > &low[..] || (include_low && row == &low[..]))
        && (high.is_empty() || row < &high[..] || (include_high && row == &high[..]))
}

fn is_own_ttl_expired(cell: &KeyValue) -> bool {
    let cell = cell.view(0);
    let ttl = cell.tags.get(3..).map(|ttl| i64::from_be_bytes(ttl.try_into().unwrap()));
    ttl.is_some_and(|ttl| cell.timestamp() + ttl < NOW_MS)
}

/// Raw scans: all versions and markers of a column, only the newest write of each timestamp and
/// type.
fn raw_column(column: &Cells, range: TimeRange, max_versions: u32) -> Cells {
    let (mut passed, mut count, mut last) = (Cells::new(), 0, None);
    for (cell, seq_id) in column {
        let view = cell.view(*seq_id);
        if !range.contains(view.timestamp())
            || is_own_ttl_expired(cell)
            || last == Some((view.timestamp(), view.kind()))
        {
            continue;
        }
        count += u32::from(view.kind() == CellType::Put);
        if count > max_versions {
            break;
        }
        last = Some((view.timestamp(), view.kind()));
        passed.push((cell.clone(), *seq_id));
    }
    passed
}

/// The versions of a column that are alive and wanted. `family` has all cells of the column's row
/// and family.
fn column_of(
    family: &Cells,
    column: &Cells,
    rules: &Rules,
    range: TimeRange,
    max: u32,
    explicit: bool,
) -> Cells {
    let expired = |timestamp: i64| rules.oldest.is_some_and(|oldest| timestamp < oldest);
    let hidden = |put: cell::Cell<'_>| {
        family.iter().any(|(marker, _)| {
            let marker = marker.view(0);
            let (at, same_column) = (marker.timestamp(), marker.qualifier() == put.qualifier());
            let counts = match rules.keep_deleted {
                true => range.contains(at),
                false => range.is_all() || at >= range.from,
            };
            counts
                && match marker.kind() {
                    CellType::DeleteFamily => at >= put.timestamp(),
                    CellType::DeleteFamilyVersion => at == put.timestamp(),
                    CellType::DeleteColumn => same_column && at >= put.timestamp(),
                    CellType::Delete => same_column && at == put.timestamp(),
                    _ => false,
                }
        })
    };
    let (mut passed, mut count, mut last) = (Cells::new(), 0, None);
    for (cell, seq_id) in column {
        let put = cell.view(*seq_id);
        let timestamp = put.timestamp();
        if put.kind() != CellType::Put {
            continue;
        }
        if rules.min_versions == 0 && expired(timestamp) {
            break;
        }
        if is_own_ttl_expired(cell) || hidden(put) || !range.contains(timestamp) || last == Some(timestamp) {
            continue;
        }
        count += 1;
        if !explicit && (count > max || (count > rules.min_versions && expired(timestamp))) {
            break;
        }
        last = Some(timestamp);
        passed.push((cell.clone(), *seq_id));
        if explicit && (count >= max || (count >= rules.min_versions && expired(timestamp))) {
            break;
        }
    }
    passed
}

/// Runs the steps. Returns the region and all cells that were written.
pub(super) fn build(rules: &[Rules], steps: &[Step], kind: FileKind) -> (TestRegion, Cells) {
    let families = FAMILIES.iter().zip(rules).map(|(name, rules)| {
        let family = FamilyDescriptor::new(*name)
            .with("VERSIONS", &rules.max_versions.to_string())
            .with("MIN_VERSIONS", &rules.min_versions.to_string());
        if rules.keep_deleted { family.with("KEEP_DELETED_CELLS", "TRUE") } else { family }
    });
    let mut region = TestRegion::new(families.collect());
    region.kind = kind;
    for (store, rules) in region.stores.iter_mut().zip(rules) {
        store.rules.ttl_ms = rules.oldest.map(|oldest| NOW_MS - oldest);
    }
    let mut cells = Cells::new();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Write(write) => {
                let tags = write.own_ttl.map_or(Vec::new(), ttl_tag);
                let cell = KeyValue::with_tags(
                    ROWS[write.row].as_bytes(),
                    FAMILIES[write.family].as_bytes(),
                    QUALIFIERS[write.qualifier].as_bytes(),
                    write.timestamp,
                    write.kind,
                    if write.kind == CellType::Put { format!("v{at}") } else { String::new() }.as_bytes(),
                    &tags,
                );
                let seq_id = at as u64 + 1;
                region.insert(&cell, seq_id);
                cells.push((cell, seq_id));
            }
            Step::Flush(at) => region.flush(*at),
            Step::Freeze(at) if region.stores[*at].view.snapshot.is_none() => region.freeze(*at),
            Step::Freeze(_) => {}
        }
    }
    (region, cells)
}

/// Divides the results of a scan into rows, and checks that the results are marked correctly as
/// cuts.
fn rows_of(scan: &Scan, list: &CellList) -> Vec<Cells> {
    let mut rows: Vec<Cells> = Vec::new();
    let mut cells = list.cells.iter();
    let mut continues_row = false;
    for (count, partial) in &list.results {
        let result: Cells = cells.by_ref().take(*count).cloned().collect();
        assert!(!result.is_empty(), "no result is empty");
        assert!(
            scan.batch == 0 || result.len() <= scan.batch as usize,
            "a result is not larger than the batch"
        );
        let row = result[0].0.view(0).row().to_vec();
        let same = rows.last().is_some_and(|last| last[0].0.view(0).row() == row);
        assert!(!same || continues_row, "only a partial result is continued");
        match rows.last_mut().filter(|_| same) {
            Some(last) => last.extend(result),
            None => rows.push(result),
        }
        continues_row = *partial;
    }
    rows
}

pub(super) fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(400);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// A small random number generator, so that one seed determines a series of decisions.
pub(super) fn dice(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

/// Random limits of a call, up to these maxima.
pub(super) fn limits(results_max: u64, bytes_max: u64, dice: &mut impl FnMut() -> u64) -> Limits {
    Limits {
        results: 1 + dice() % results_max,
        rows: 1 + dice() % results_max,
        bytes: 1 + dice() % bytes_max,
        partials: dice().is_multiple_of(2),
        deadline: None,
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn scans_agree_with_the_model(
        steps in steps(),
        rules in proptest::collection::vec(rules(), FAMILIES.len()),
        scans in proptest::collection::vec(scans(), 1..6),
        kind in file_kinds(),
        seed: u64,
    ) {
        let (region, cells) = build(&rules, &steps, kind);
        let model = Model { rules: &rules, cells: &cells };
        let mut dice = dice(seed);
        for scan in &scans {
            let expected = model.scan(scan);
            let list = region.scan(scan);
            prop_assert_eq!(&rows_of(scan, &list), &expected, "{:?}", scan);

            // The same in many calls, with random limits and blocks that are supplied one by one.
            let mut scanner = region.scanner(scan);
            let mut list = CellList::default();
            loop {
                let limits = limits(4, 200, &mut dice);
                let (results, mut left) = (list.results.len(), limits.clone());
                let progress = call(&mut scanner, &mut left, &mut list, |offset| (offset ^ dice()).is_multiple_of(2));
                prop_assert!((list.results.len() - results) as u64 <= limits.results);
                let last_partial = list.results.last().is_some_and(|(_, partial)| *partial);
                prop_assert!(!progress.mid_row || last_partial);
                if progress.stopped == Stopped::Exhausted {
                    break;
                }
                prop_assert!(list.results.len() > results || progress.mid_row || left.rows == 0, "no progress");
            }
            prop_assert_eq!(&rows_of(scan, &list), &expected, "in calls: {:?}", scan);
        }
    }

    /// A compaction of all cells does not change what a reader at its read point or later sees in a
    /// scan over all timestamps.
    ///
    /// As in HBase, there is an exception: a marker that comes too late for the compaction could
    /// make a version beyond the limit visible again. So versions are limited only if there is no
    /// such marker.
    #[test]
    fn compactions_change_no_visible_cell(
        steps in steps(),
        rules in proptest::collection::vec(rules(), FAMILIES.len()),
        kind in file_kinds(),
        reader in proptest::option::of(0..60u64),
        retention in prop_oneof![Just(Retention::Minor), Just(Retention::Major)],
    ) {
        let adapted = |rules: Rules| match reader {
            Some(_) => rules.without_limits(),
            None => Rules { keep_deleted: false, ..rules },
        };
        let rules: Vec<Rules> = rules.into_iter().map(adapted).collect();
        let (mut region, _) = build(&rules, &steps, kind);
        let smallest_read_point = reader.unwrap_or(u64::MAX).min(region.last_seq_id);
        for at in 0..FAMILIES.len() {
            region.flush(at);
            let read = |region: &TestRegion| -> Vec<Cells> {
                let scan = |read_point| Scan { read_point: Some(read_point), ..all_versions() };
                (smallest_read_point..=region.last_seq_id).map(|point| region.scan(&scan(point)).cells).collect()
            };
            let before = read(&region);
            region.compact(at, retention, smallest_read_point);
            prop_assert_eq!(read(&region), before);
        }
    }
}
