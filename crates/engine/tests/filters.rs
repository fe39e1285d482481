//! Filters on a region: which cells each passes, forward and reversed, in memory and in files.
//!
//! Expected results come from a predicate on the cells of an unfiltered scan. For filters that
//! depend on more than single cells, they are what HBase 2.5.10 returned for the same query and
//! rows.

use std::sync::Arc;

use crate::common::world::{Opened, open_table, options, run};
use bytes::Bytes;
use cell::cell::CellType;
use cell::filter::{
    BitwiseOp, Column, Comparator, Compare, CompareOp, Filter, FuzzyKey, ListOperator, PageStart, Pattern,
    RowRange, SingleColumnValue,
};
use cell::mutation::Mutation;
use cell::query::{CellSelection, FamilyColumns, Scan};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{Cell, KeyValue};
use engine::Error;
use fs::memory::MemoryFs;

const ROWS: usize = 9;

/// Nine rows with the families `f` (three versions) and `g`. Every fourth row has one more column.
async fn world() -> Opened {
    let table = TableDescriptor::new(TableName::parse("t").unwrap())
        .with_family(FamilyDescriptor::new("f").with("VERSIONS", "3").with("BLOCKSIZE", "64"))
        .with_family(FamilyDescriptor::new("g").with("DATA_BLOCK_ENCODING", "FAST_DIFF"));
    let opened =
        open_table(&base::testing::env(3), Arc::new(MemoryFs::new()), options(), &table).await.unwrap();
    for row in 0..ROWS {
        let name = format!("r{row}");
        let cell = |family: &str, qualifier: &str, timestamp, value: String| {
            let (family, qualifier) = (family.as_bytes(), qualifier.as_bytes());
            KeyValue::new(name.as_bytes(), family, qualifier, timestamp, CellType::Put, value.as_bytes())
        };
        let mut cells = vec![
            cell("f", "a", 10, format!("old{row}")),
            cell("f", "a", 20, format!("v{}", row % 3)),
            cell("f", "b", 15, format!("{row}")),
            cell("f", "ab", 30, "x".into()),
            cell("g", "c", 10, format!("c{}", row % 2)),
        ];
        if row % 4 == 0 {
            cells.push(cell("f", "only", 40, "there".into()));
        }
        opened.region.batch(vec![Mutation::put(name.clone(), cells)]).await.remove(0).unwrap();
    }
    opened
}

fn scan(filter: Option<Filter>, reversed: bool) -> Scan {
    let selection = CellSelection { filter: filter.map(Arc::new), ..CellSelection::default() };
    Scan { selection, reversed, ..Scan::default() }
}

fn text(cell: &Cell<'_>) -> String {
    format!(
        "{}/{}:{}@{}={}",
        cell.row().escape_ascii(),
        cell.family().escape_ascii(),
        cell.qualifier().escape_ascii(),
        cell.timestamp(),
        cell.value.escape_ascii()
    )
}

async fn found(opened: &Opened, filter: &Filter, reversed: bool) -> Vec<String> {
    let list = opened.region.scan_all(&scan(Some(filter.clone()), reversed)).await.unwrap();
    list.cells.iter().map(|(cell, _)| text(&cell.view(0))).collect()
}

fn compare(op: CompareOp, comparator: Comparator) -> Compare {
    Compare { op, comparator }
}

fn binary(op: CompareOp, value: &'static str) -> Compare {
    compare(op, Comparator::Binary(value.into()))
}

fn column(family: &'static str, qualifier: &'static str) -> Column {
    Column { family: family.into(), qualifier: qualifier.into() }
}

fn regex(source: &str) -> Comparator {
    let pattern =
        Pattern { source: source.into(), flags: 0x20, charset: "UTF-8".into(), engine: String::new() };
    Comparator::Regex(pattern)
}

fn range(start: &'static str, start_inclusive: bool, stop: &'static str, stop_inclusive: bool) -> RowRange {
    RowRange { start: start.into(), start_inclusive, stop: stop.into(), stop_inclusive }
}

fn value(op: CompareOp, value: &'static str) -> Filter {
    Filter::Value(binary(op, value))
}

type Passes = fn(&Cell<'_>) -> bool;

/// Filters that decide by single cells, with equivalent predicates.
fn of_cells() -> Vec<(Filter, Passes)> {
    use CompareOp::*;
    vec![
        (Filter::All, |_| false),
        (Filter::Prefix(Some("r2".into())), |cell| cell.row() == b"r2"),
        (Filter::Prefix(None), |_| false),
        (Filter::InclusiveStop("r4".into()), |cell| cell.row() <= &b"r4"[..]),
        (Filter::Row(binary(Equal, "r5")), |cell| cell.row() == b"r5"),
        (Filter::Row(binary(Greater, "r6")), |cell| cell.row() > &b"r6"[..]),
        (Filter::Row(binary(NotEqual, "r1")), |cell| cell.row() != b"r1"),
        (Filter::Row(binary(LessOrEqual, "r1")), |cell| cell.row() <= &b"r1"[..]),
        (Filter::Row(compare(Equal, regex("r[13]$"))), |cell| matches!(cell.row(), b"r1" | b"r3")),
        (Filter::RandomRow { probability: 1.5 }, |_| true),
        (Filter::RandomRow { probability: -1.0 }, |_| false),
        (
            Filter::FuzzyRow(vec![FuzzyKey { key: Bytes::from_static(b"\x005"), fixed: vec![false, true] }]),
            |cell| cell.row() == b"r5",
        ),
        (
            Filter::MultiRowRange(vec![range("r1", true, "r3", false), range("r6", false, "r7", true)]),
            |cell| matches!(cell.row(), b"r1" | b"r2" | b"r7"),
        ),
        (Filter::Family(binary(Equal, "g")), |cell| cell.family() == b"g"),
        (Filter::Qualifier(binary(LessOrEqual, "ab")), |cell| cell.qualifier() <= &b"ab"[..]),
        (Filter::ColumnPrefix("a".into()), |cell| cell.qualifier().starts_with(b"a")),
        (Filter::MultipleColumnPrefix(vec!["b".into(), "on".into()]), |cell| {
            cell.qualifier() == b"b" || cell.qualifier() == b"only"
        }),
        (
            Filter::ColumnRange {
                min: Some("a".into()),
                min_inclusive: false,
                max: Some("b".into()),
                max_inclusive: true,
            },
            |cell| matches!(cell.qualifier(), b"ab" | b"b"),
        ),
        (value(Equal, "v1"), |cell| cell.value == b"v1"),
        (value(NotEqual, "x"), |cell| cell.value != b"x"),
        (Filter::Value(compare(Equal, Comparator::BinaryPrefix("c".into()))), |cell| {
            cell.value.starts_with(b"c")
        }),
        (Filter::Value(compare(Equal, Comparator::Substring("her".into()))), |cell| cell.value == b"there"),
        (Filter::Row(compare(Equal, regex("^(?!r1)r[13]$"))), |cell| cell.row() == b"r3"),
        (Filter::Value(compare(Equal, regex("^v[02]$"))), |cell| matches!(cell.value, b"v0" | b"v2")),
        (Filter::Value(compare(NotEqual, Comparator::Null)), |_| true),
        (
            Filter::Value(compare(Equal, Comparator::BinaryComponent { value: "1".into(), offset: 1 })),
            |cell| cell.value.get(1) == Some(&b'1'),
        ),
        (Filter::Value(compare(Equal, Comparator::Bit { value: "c1".into(), op: BitwiseOp::Xor })), |cell| {
            cell.value.len() == 2 && cell.value != b"c1"
        }),
        (Filter::ColumnValue { column: column("f", "a"), compare: binary(Equal, "v2") }, |cell| {
            cell.qualifier() == b"a" && cell.value == b"v2"
        }),
        (Filter::FirstKeyOnly, |cell| cell.qualifier() == b"a"),
    ]
}

#[test]
fn filters_of_cells_pass_what_their_predicate_passes() {
    run(async {
        let opened = world().await;
        for flushed in [false, true] {
            if flushed {
                opened.region.flush().await.unwrap();
            }
            for reversed in [false, true] {
                let all = opened.region.scan_all(&scan(None, reversed)).await.unwrap();
                for (filter, passes) in of_cells() {
                    if matches!((&filter, reversed), (Filter::InclusiveStop(_), true)) {
                        continue; // Reversed, it stops at the same row from above: see `of_rows`.
                    }
                    // A value too short for the component is an error of the whole scan.
                    if matches!(
                        &filter,
                        Filter::Value(Compare { comparator: Comparator::BinaryComponent { .. }, .. })
                    ) {
                        let scanned = opened.region.scan_all(&scan(Some(filter), reversed)).await;
                        assert!(matches!(scanned, Err(Error::BadRequest { .. })));
                        continue;
                    }
                    // Reads other families on demand, which HBase cannot do in reverse.
                    if reversed && matches!(filter, Filter::ColumnValue { .. }) {
                        let scanned = opened.region.scan_all(&scan(Some(filter), true)).await;
                        assert!(matches!(scanned, Err(Error::BadRequest { .. })));
                        continue;
                    }
                    let expected = all.cells.iter().map(|(cell, _)| cell.view(0)).filter(passes);
                    let expected: Vec<String> = expected.map(|cell| text(&cell)).collect();
                    let found = found(&opened, &filter, reversed).await;
                    assert_eq!(found, expected, "{filter:?} reversed {reversed} flushed {flushed}");
                }
            }
        }
    });
}

/// Filters that depend on rows or counts, and lists of filters, with the rows that HBase returned.
fn of_rows() -> Vec<(Filter, bool, &'static str)> {
    use CompareOp::*;
    let single = |qualifier, value, filter_if_missing, latest_version_only| SingleColumnValue {
        column: column("f", qualifier),
        compare: binary(Equal, value),
        filter_if_missing,
        latest_version_only,
    };
    let list = |operator, filters| Filter::List { operator, filters };
    let (all, one) = (ListOperator::MustPassAll, ListOperator::MustPassOne);
    let prefix = || Filter::ColumnPrefix("a".into());
    vec![
        (Filter::Page { page_size: 2 }, false, "r0*5 r1*4"),
        (Filter::Page { page_size: 2 }, true, "r8*5 r7*4"),
        (Filter::InclusiveStop("r4".into()), true, "r8*5 r7*4 r6*4 r5*4 r4*5"),
        (Filter::SingleColumnValue(single("a", "v1", false, true)), false, "r1*4 r4*5 r7*4"),
        (
            Filter::SingleColumnValue(single("only", "there", false, true)),
            false,
            "r0*5 r1*4 r2*4 r3*4 r4*5 r5*4 r6*4 r7*4 r8*5",
        ),
        (Filter::SingleColumnValue(single("only", "there", true, true)), false, "r0*5 r4*5 r8*5"),
        (Filter::SingleColumnValueExclude(single("a", "v1", false, true)), false, "r1*3 r4*4 r7*3"),
        (Filter::Skip(Box::new(value(NotEqual, "v1"))), false, "r0*5 r2*4 r3*4 r5*4 r6*4 r8*5"),
        (Filter::WhileMatch(Box::new(value(NotEqual, "v2"))), false, "r0*5 r1*4"),
        (
            Filter::ColumnPagination { limit: 1, from: PageStart::Column("b".into()) },
            true,
            "r8*1 r7*1 r6*1 r5*1 r4*1 r3*1 r2*1 r1*1 r0*1",
        ),
        (list(all, vec![prefix(), value(Equal, "v1")]), false, "r1*1 r4*1 r7*1"),
        (
            list(one, vec![prefix(), value(Equal, "v1")]),
            false,
            "r0*2 r1*2 r2*2 r3*2 r4*2 r5*2 r6*2 r7*2 r8*2",
        ),
        (list(all, vec![value(Equal, "v1"), Filter::Page { page_size: 2 }]), false, "r1*1 r4*1"),
        (
            list(one, vec![list(all, vec![prefix(), value(Equal, "v1")]), Filter::Row(binary(Equal, "r8"))]),
            false,
            "r1*1 r4*1 r7*1 r8*5",
        ),
    ]
}

/// The rows with their numbers of cells: `r0*5 r1*4`.
fn counted(cells: &[String]) -> String {
    let mut rows: Vec<(&str, usize)> = Vec::new();
    for cell in cells {
        let row = cell.split('/').next().unwrap();
        match rows.last_mut() {
            Some((last, count)) if *last == row => *count += 1,
            _ => rows.push((row, 1)),
        }
    }
    rows.iter().map(|(row, count)| format!("{row}*{count}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn filters_of_rows_behave_as_in_hbase() {
    run(async {
        let opened = world().await;
        for flushed in [false, true] {
            if flushed {
                opened.region.flush().await.unwrap();
            }
            for (filter, reversed, expected) in of_rows() {
                let found = found(&opened, &filter, reversed).await;
                assert_eq!(counted(&found), expected, "{filter:?} flushed {flushed}");
            }
        }
    });
}

/// A row shorter than the fuzzy key passes if its bytes match, but the hint from the previous row
/// skips it. That also holds when the version rules would skip to the next row anyway, because the
/// column has only one version.
#[test]
fn a_hint_is_followed_after_the_last_version_of_the_last_column() {
    run(async {
        let table =
            TableDescriptor::new(TableName::parse("t").unwrap()).with_family(FamilyDescriptor::new("f"));
        let opened =
            open_table(&base::testing::env(3), Arc::new(MemoryFs::new()), options(), &table).await.unwrap();
        for row in ["tcx", "td"] {
            let cell = KeyValue::new(row.as_bytes(), b"f", b"c", 7, CellType::Put, b"v");
            opened.region.batch(vec![Mutation::put(row, vec![cell])]).await.remove(0).unwrap();
        }
        let key = FuzzyKey { key: Bytes::from_static(b"t\0a"), fixed: vec![true, false, true] };
        let mut scan = scan(Some(Filter::FuzzyRow(vec![key])), false);
        let all = opened.region.scan_all(&scan).await.unwrap();
        let family = Bytes::from_static(b"f");
        scan.selection.columns =
            vec![FamilyColumns { family, qualifiers: Some(vec![Bytes::from_static(b"c")]) }];
        let of_column = opened.region.scan_all(&scan).await.unwrap();
        assert_eq!((all.cells.len(), of_column.cells.len()), (0, 0));
    });
}

#[test]
fn values_are_omitted_or_replaced_by_their_length() {
    run(async {
        let opened = world().await;
        let cells = found(&opened, &Filter::KeyOnly { len_as_val: false }, false).await;
        assert!(cells.iter().all(|cell| cell.ends_with('=')) && cells.len() == ROWS * 4 + 3);
        let cells = found(&opened, &Filter::KeyOnly { len_as_val: true }, false).await;
        assert_eq!(cells[0], "r0/f:a@20=\\x00\\x00\\x00\\x02");
    });
}

#[test]
fn older_versions_pass_if_newer_ones_do_not() {
    run(async {
        let opened = world().await;
        assert_eq!(found(&opened, &value(CompareOp::Equal, "old4"), false).await, ["r4/f:a@10=old4"]);
        let filter = Filter::Timestamps { timestamps: vec![10, 40], can_hint: false };
        let cells = found(&opened, &filter, false).await;
        assert_eq!(cells[..3], ["r0/f:a@10=old0", "r0/f:only@40=there", "r0/g:c@10=c0"]);
    });
}

#[test]
fn filters_of_complete_rows_exclude_batches() {
    run(async {
        let opened = world().await;
        let judged = Filter::Skip(Box::new(value(CompareOp::Equal, "x")));
        let in_batches = |filter| Scan { batch: 4096, ..scan(Some(filter), false) };
        let refused = opened.region.scan_all(&in_batches(judged)).await.err().unwrap();
        assert!(matches!(refused, Error::Incompatible { .. }), "{refused}");
        assert!(opened.region.scan_all(&in_batches(value(CompareOp::Equal, "x"))).await.is_ok());
    });
}

#[test]
fn invalid_expressions_are_rejected() {
    run(async {
        let opened = world().await;
        for source in ["(", "a**", "[a", "(?<=(a|b)*)c"] {
            let filter = Filter::Row(compare(CompareOp::Equal, regex(source)));
            let refused = opened.region.scan_all(&scan(Some(filter), false)).await.err().unwrap();
            assert!(matches!(refused, Error::BadRequest { .. }), "{source}: {refused}");
        }
    });
}
