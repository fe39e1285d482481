//! Queries over a fake cluster return the same results as DataFusion over the same rows in memory,
//! and plans show what is pushed down.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use clap::Parser;
use client::ClientOptions;
use datafusion::arrow::array::{
    Array, AsArray, Float64Array, Int16Array, Int32Array, Int64Array, StringArray, TimestampMillisecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Schema, TimeUnit};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
use datafusion::datasource::MemTable;

use crate::catalog::Catalog;
use crate::export::{ExportArguments, StoredArguments};
use crate::fake_cluster::{Cells, FakeCluster, Shared};
use crate::import::files::Format;
use crate::session::{self, Sender};
use crate::statements::{Engine, Outcome, user_message};
use crate::{Arguments, RETRIES_MAX};

/// Number of rows in the table.
const ROWS: i64 = 300;
/// The start of 2024, in milliseconds.
const START_MS: i64 = 1_704_067_200_000;

const DECLARATION: &str = "CREATE EXTERNAL TABLE t (id VARCHAR PRIMARY KEY, a BIGINT, b DOUBLE, c VARCHAR, at TIMESTAMP, \
                           i INT, n SMALLINT, part VARCHAR) STORED AS GRAMPUS LOCATION 't' OPTIONS \
                           ('i' 'f:i bytes_long', 'n' 'f:n bytes_long', 'part' 'row part 2 by |')";

/// A row: id, a, b, c, at, i, n.
type Record = (String, Option<i64>, Option<f64>, Option<String>, Option<i64>, Option<i32>, Option<i16>);

fn records() -> Vec<Record> {
    let mut records: Vec<Record> = (0..ROWS)
        .map(|at| {
            let mixed = (at.wrapping_mul(2_654_435_761) >> 7) & 0xffff;
            let unless = |part: i64| mixed % part != 0;
            (
                format!("{:03}|{}", at, ["red", "green", "blue"][(mixed % 3) as usize]),
                unless(7).then_some(mixed - 30_000),
                unless(5).then_some(mixed as f64 / 8.0 - 3000.0),
                unless(6).then(|| ["ash", "birch", "cedar", "fir", "o'ak"][(mixed % 5) as usize].to_string()),
                unless(11).then_some(START_MS + at * 3_600_000),
                unless(4).then_some((mixed % 10) as i32),
                unless(9).then_some((mixed % 4) as i16 - 2),
            )
        })
        .collect();
    // Sums to more than 64 bits.
    records[5].1 = Some(i64::MAX - 3);
    records
}

fn cells(record: &Record) -> Cells {
    let (_, a, b, c, at, i, n) = record;
    let long = |value: &i64| Bytes::copy_from_slice(&value.to_be_bytes());
    let all: BTreeMap<&'static str, Option<Bytes>> = [
        ("a", a.as_ref().map(long)),
        ("b", b.map(|value| Bytes::copy_from_slice(&value.to_be_bytes()))),
        ("c", c.as_ref().map(|text| Bytes::copy_from_slice(text.as_bytes()))),
        ("at", at.as_ref().map(long)),
        ("i", i.map(|value| long(&value.into()))),
        ("n", n.map(|value| long(&value.into()))),
        // A row exists even if all its declared columns are null.
        ("other", Some(Bytes::from_static(b"x"))),
    ]
    .into();
    let present = all.into_iter().filter_map(|(name, value)| Some((("f".into(), name.into()), value?)));
    present.collect()
}

fn in_memory(records: &[Record]) -> MemTable {
    let times = DataType::Timestamp(TimeUnit::Millisecond, None);
    let field = |name: &str, data_type: DataType| Field::new(name, data_type, name != "id");
    let schema = Arc::new(Schema::new(vec![
        field("id", DataType::Utf8),
        field("a", DataType::Int64),
        field("b", DataType::Float64),
        field("c", DataType::Utf8),
        field("at", times),
        field("i", DataType::Int32),
        field("n", DataType::Int16),
        field("part", DataType::Utf8),
    ]));
    let part = |record: &Record| record.0.split('|').nth(1).map(str::to_string);
    let batch = RecordBatch::try_new(
        Arc::clone(&schema),
        vec![
            Arc::new(StringArray::from_iter_values(records.iter().map(|record| &record.0))),
            Arc::new(Int64Array::from_iter(records.iter().map(|record| record.1))),
            Arc::new(Float64Array::from_iter(records.iter().map(|record| record.2))),
            Arc::new(StringArray::from_iter(records.iter().map(|record| record.3.as_ref()))),
            Arc::new(TimestampMillisecondArray::from_iter(records.iter().map(|record| record.4))),
            Arc::new(Int32Array::from_iter(records.iter().map(|record| record.5))),
            Arc::new(Int16Array::from_iter(records.iter().map(|record| record.6))),
            Arc::new(StringArray::from_iter(records.iter().map(part))),
        ],
    );
    MemTable::try_new(schema, vec![vec![batch.unwrap()]]).unwrap()
}

/// A new directory for the files of a test.
pub(crate) fn directory(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("grampus-sql-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// An export of the table `t` as CSV, one part at a time.
pub(crate) fn csv_export(file: PathBuf) -> ExportArguments {
    ExportArguments {
        table: "t".into(),
        file,
        format: Some(Format::Csv),
        options: Vec::new(),
        parallel: Some(1),
        stored: StoredArguments::default(),
    }
}

/// An engine over the records in four regions, with the same rows in memory as `memory.public.t`.
pub(crate) async fn engine() -> (Engine, Arc<FakeCluster>) {
    let records = records();
    let rows = records.iter().map(|record| (Bytes::from(record.0.clone()), cells(record))).collect();
    let splits = ["050", "120|m", "200"].map(Bytes::from).to_vec();
    let cluster = Arc::new(FakeCluster { rows, splits, ..FakeCluster::default() });
    let shared = Shared(Arc::clone(&cluster));
    let env = base::testing::env(7);
    let catalog = Arc::new(Catalog::new(Arc::new(shared.clone()), Arc::new(shared), env));
    let context = session::context(&catalog, 64 << 20, Sender::User).unwrap();
    let memory = MemoryCatalogProvider::new();
    let schema = MemorySchemaProvider::new();
    schema.register_table("t".into(), Arc::new(in_memory(&records))).unwrap();
    memory.register_schema("public", Arc::new(schema)).unwrap();
    context.register_catalog("memory", Arc::new(memory));
    let engine = Engine { context, catalog };
    run(&engine, DECLARATION).await.unwrap();
    (engine, cluster)
}

async fn run(engine: &Engine, sql: &str) -> Result<Vec<RecordBatch>, String> {
    let mut batches = Vec::new();
    for statement in Engine::parse(sql).map_err(|error| user_message(&error))? {
        match engine.run(statement).await.map_err(|error| user_message(&error))? {
            Outcome::Done(_) => {}
            Outcome::Rows(rows) => batches = rows.collect().await.map_err(|error| user_message(&error))?,
        }
    }
    Ok(batches)
}

/// Rows as sorted text; floating-point numbers with the digits that do not depend on the order of
/// summation.
fn texts(batches: &[RecordBatch]) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let value = |column: usize| {
                let array = batch.column(column);
                match array.as_primitive_opt::<Float64Type>().filter(|reals| !reals.is_null(row)) {
                    Some(reals) => format!("{:.9e}", reals.value(row)),
                    None => array_value_to_string(array, row).unwrap(),
                }
            };
            rows.push((0..batch.num_columns()).map(value).collect::<Vec<_>>().join(" | "));
        }
    }
    rows.sort();
    rows
}

async fn explained(engine: &Engine, sql: &str) -> String {
    let batches = run(engine, &format!("EXPLAIN {sql}")).await.unwrap();
    let plans = batches.iter().flat_map(|batch| {
        (0..batch.num_rows()).map(move |row| array_value_to_string(batch.column(1), row).unwrap())
    });
    plans.last().unwrap()
}

/// What is pushed down for a query.
#[derive(Debug, PartialEq)]
enum Pushed {
    /// The whole aggregate.
    Aggregate,
    /// The whole condition.
    Filter,
    /// Only the columns.
    Scan,
}

const QUERIES: &[(Pushed, &str)] = &[
    (Pushed::Aggregate, "SELECT count(*) FROM t"),
    (Pushed::Aggregate, "SELECT count(*), count(a), count(c), sum(a), min(a), max(a) FROM t"),
    (Pushed::Aggregate, "SELECT avg(b), sum(b), min(b), max(b), min(c), max(c), min(at), max(at) FROM t"),
    (Pushed::Aggregate, "SELECT c, count(*), sum(i), avg(i), min(n), max(n) FROM t GROUP BY c"),
    (Pushed::Aggregate, "SELECT part, i, count(*) FROM t GROUP BY part, i"),
    (
        Pushed::Aggregate,
        "SELECT part, stddev(b), var_pop(b), var_samp(n), stddev_pop(i) FROM t GROUP BY part",
    ),
    (
        Pushed::Aggregate,
        "SELECT c, sum(a) AS s FROM t WHERE i = 3 GROUP BY c HAVING sum(n) > -100 ORDER BY s",
    ),
    (Pushed::Aggregate, "SELECT sum(i) FROM t WHERE i IN (1, 2, 30) AND c <> 'fir'"),
    (Pushed::Aggregate, "SELECT count(*) FROM t WHERE a > 1000 OR c LIKE 'b%' OR b IS NULL"),
    (Pushed::Aggregate, "SELECT count(*) FROM t WHERE NOT (a > 1000 AND c = 'ash')"),
    (Pushed::Aggregate, "SELECT count(*) FROM t WHERE c NOT IN ('ash', 'fir') AND n BETWEEN -1 AND 1"),
    (Pushed::Aggregate, "SELECT count(*) FROM t WHERE i > 2.5 AND n <= 0.5"),
    (Pushed::Aggregate, "SELECT count(*) FROM t WHERE i > n"),
    (Pushed::Aggregate, "SELECT count(*) FROM t WHERE at >= TIMESTAMP '2024-01-05 00:00:00'"),
    (Pushed::Aggregate, "SELECT count(*) FROM t WHERE at >= '2024-01-05' AND at < '2024-01-07'"),
    (Pushed::Aggregate, "SELECT min(id), max(id), count(*) FROM t WHERE id >= '100' AND id < '150'"),
    (Pushed::Aggregate, "SELECT count(*) FROM t WHERE id LIKE '01%'"),
    (Pushed::Aggregate, "SELECT count(*) FROM t WHERE c LIKE '%a%' AND c NOT LIKE '_ir'"),
    (Pushed::Aggregate, "SELECT c FROM t GROUP BY c"),
    (Pushed::Aggregate, "SELECT DISTINCT part, n FROM t"),
    (Pushed::Aggregate, "SELECT count(DISTINCT c) FROM t"),
    (Pushed::Aggregate, "SELECT sum(a), count(*) FROM t WHERE id = 'none'"),
    (Pushed::Aggregate, "SELECT c, sum(a) FROM t WHERE id = 'none' GROUP BY c"),
    (Pushed::Aggregate, "SELECT x, sum(y) FROM (SELECT c AS x, i AS y FROM t WHERE b > 0) GROUP BY x"),
    (Pushed::Aggregate, "SELECT s / k FROM (SELECT sum(b) AS s, count(b) AS k FROM t)"),
    (Pushed::Aggregate, "SELECT at, count(*) FROM t WHERE at IS NOT NULL GROUP BY at ORDER BY at LIMIT 400"),
    (Pushed::Aggregate, "SELECT count(*) FROM t WHERE c = 'o''ak'"),
    (Pushed::Aggregate, "SELECT count(*) FROM t WHERE part = 'red' AND a = -29999"),
    (
        Pushed::Aggregate,
        "SELECT count(*), sum(a) FROM t WHERE id IN ('010|red', '011|red', '055|green', '201|blue')",
    ),
    (
        Pushed::Aggregate,
        "SELECT part, count(*) FROM t WHERE id < '020' OR (id > '100' AND id < '130') GROUP BY part",
    ),
    (Pushed::Filter, "SELECT id, part FROM t WHERE (id < '020' OR id > '190') AND part = 'red'"),
    (Pushed::Filter, "SELECT * FROM t WHERE a < 0"),
    (Pushed::Filter, "SELECT id, b FROM t WHERE c = 'ash' AND i = 5"),
    (Pushed::Filter, "SELECT sum(a % 100), count(*) FROM t WHERE i = 5"),
    (Pushed::Filter, "SELECT date_trunc('day', at), count(*) FROM t WHERE n = 1 GROUP BY 1"),
    (
        Pushed::Filter,
        "SELECT c, count(*) FILTER (WHERE i > 3), count(DISTINCT n), sum(i) FROM t WHERE b > 0 GROUP BY c",
    ),
    (Pushed::Filter, "SELECT c, median(i) FROM t WHERE b IS NOT NULL GROUP BY c"),
    (Pushed::Filter, "SELECT c, part, sum(i) FROM t WHERE n <> 0 GROUP BY ROLLUP (c, part)"),
    (Pushed::Filter, "SELECT x.c, y.part FROM t x JOIN t y ON x.id = y.id WHERE x.i = 3 AND y.n = 1"),
    (Pushed::Filter, "SELECT id, row_number() OVER (ORDER BY id) FROM t WHERE i = 2"),
    (Pushed::Filter, "SELECT id FROM t WHERE c = (SELECT min(c) FROM t) AND i = 1"),
    (Pushed::Scan, "SELECT count(*) FROM t WHERE upper(c) = 'ASH'"),
    (Pushed::Scan, "SELECT count(*) FROM t WHERE a + i > 100"),
    (Pushed::Scan, "SELECT count(*) FROM t WHERE c ILIKE 'A%'"),
    (Pushed::Scan, "SELECT sum(i) FROM t WHERE CAST(b AS BIGINT) = 12"),
    (Pushed::Scan, "SELECT * FROM t"),
    (Pushed::Scan, "SELECT id, length(c) FROM t ORDER BY id DESC LIMIT 3"),
    // The id makes the order unique.
    (Pushed::Scan, "SELECT id, a FROM t ORDER BY a DESC, id LIMIT 5"),
    (Pushed::Scan, "SELECT id, a FROM t ORDER BY a DESC NULLS LAST, id DESC LIMIT 5"),
    (Pushed::Scan, "SELECT id, b FROM t ORDER BY b NULLS FIRST, id LIMIT 80"),
    (Pushed::Scan, "SELECT id, c, i FROM t ORDER BY c, i NULLS FIRST, id LIMIT 7"),
    (Pushed::Scan, "SELECT id, at FROM t ORDER BY at DESC NULLS LAST, id LIMIT 4 OFFSET 3"),
    (Pushed::Scan, "SELECT id, n FROM t ORDER BY n + i DESC NULLS LAST, id LIMIT 4"),
    (Pushed::Filter, "SELECT id, a FROM t WHERE i <> 3 OR b < 0 ORDER BY a, id LIMIT 6"),
    (
        Pushed::Scan,
        "SELECT id, a FROM (SELECT id, a FROM t ORDER BY id LIMIT 120) ORDER BY a DESC, id LIMIT 4",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn results_equal_those_of_the_same_rows_in_memory() {
    let (engine, _) = engine().await;
    for (pushed, query) in QUERIES {
        let found = texts(&run(&engine, query).await.unwrap_or_else(|error| panic!("{query}: {error}")));
        let same = query.replace("FROM t", "FROM memory.public.t").replace("JOIN t", "JOIN memory.public.t");
        let expected = texts(&run(&engine, &same).await.unwrap());
        assert_eq!(found, expected, "{query}");
        let plan = explained(&engine, query).await;
        let did = match (plan.contains("GrampusAggregate"), plan.contains("FilterExec")) {
            (true, false) => Pushed::Aggregate,
            (_, false) if plan.contains("predicate=") => Pushed::Filter,
            _ => Pushed::Scan,
        };
        // HAVING filters the few groups; of two steps, either may be pushed down.
        if !query.contains("HAVING") && !query.contains("(SELECT min") {
            assert_eq!(did, *pushed, "{query}\n{plan}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_that_servers_do_not_support_are_evaluated_here() {
    let (engine, _) = engine().await;
    let listed = |count: i32| (0..count).map(|value| value.to_string()).collect::<Vec<_>>().join(", ");
    for (query, is_pushed) in [
        (format!("SELECT count(*) FROM t WHERE a IN ({})", listed(3_000)), true),
        (format!("SELECT count(*) FROM t WHERE a IN ({})", listed(10_000)), false),
        (format!("SELECT count(*) FROM t WHERE a IN ({})", listed(20_000)), false),
        (format!("SELECT count(*) FROM t WHERE a IN ({0}) AND i IN ({0})", listed(10_000)), false),
        (format!("SELECT count(*) FROM t WHERE c LIKE '{}%'", "a".repeat(5000)), false),
        ("SELECT count(*) FROM t WHERE a = 9007199254740991.0".to_string(), true),
        ("SELECT count(*) FROM t WHERE a = 9007199254740992.0".to_string(), false),
    ] {
        run(&engine, &query).await.unwrap();
        let plan = explained(&engine, &query).await;
        assert_eq!(plan.contains("GrampusAggregate"), is_pushed, "{}\n{plan}", &query[..60]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn approximations_are_near() {
    let (engine, _) = engine().await;
    let query = "SELECT approx_distinct(at), approx_percentile_cont(0.9) WITHIN GROUP (ORDER BY b), approx_median(i) FROM t";
    assert!(explained(&engine, query).await.contains("approx_distinct(at), approx_percentile(b, 0.9)"));
    let batches = run(&engine, query).await.unwrap();
    let exact = run(
        &engine,
        "SELECT count(DISTINCT at), percentile_cont(0.9) WITHIN GROUP (ORDER BY b), median(i) FROM t",
    )
    .await
    .unwrap();
    for column in 0..3 {
        let number = |batches: &[RecordBatch]| {
            array_value_to_string(batches[0].column(column), 0).unwrap().parse::<f64>().unwrap()
        };
        let (about, exact) = (number(&batches), number(&exact));
        assert!((about - exact).abs() <= exact.abs() * 0.05, "{about} for {exact}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_show_the_work_of_the_servers() {
    let (engine, _) = engine().await;
    for (query, expected) in [
        (
            "SELECT c, sum(a), count(*) FROM t WHERE i = 3 GROUP BY c",
            "GrampusAggregate: table=t, group_by=[c], aggregates=[sum(a), count(*)], predicate=i = 3, rows=[..), regions=4",
        ),
        (
            "SELECT count(*) FROM t WHERE id >= '060' AND id < '100'",
            "group_by=[], aggregates=[count(*)], predicate=id >= '060' AND id < '100', rows=[060..100), regions=1",
        ),
        ("SELECT count(*) FROM t WHERE id = '060|red'", "rows=[060|red..060|red\\x00), regions=1"),
        (
            "SELECT count(*) FROM t WHERE id IN ('010', '055')",
            "rows=[010..010\\x00) [055..055\\x00), regions=2",
        ),
        ("SELECT count(*) FROM t WHERE id LIKE '20%'", "rows=[20..21), regions=2"),
        ("SELECT b FROM t LIMIT 7", "GrampusScan: table=t, columns=[b], rows=[..), regions=4, limit=7"),
        (
            "SELECT c FROM t WHERE (a > 5 OR c LIKE 'x''y%') AND b IS NOT NULL",
            "columns=[c], predicate=b IS NOT NULL AND (a > 5 OR c LIKE 'x''y%')",
        ),
        ("SELECT c FROM t WHERE at < '2024-01-02'", "predicate=at < '2024-01-02T00:00:00'"),
        ("SELECT c FROM t WHERE NOT (i = 1 AND n = 2)", "predicate=i != 1 OR n != 2"),
        ("SELECT avg(i), stddev(b) FROM t", "aggregates=[avg(i), stddev_samp(b)]"),
    ] {
        let plan = explained(&engine, query).await;
        assert!(plan.contains(expected), "{query}\n{plan}\nlacks {expected}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_returned_in_key_order() {
    let (engine, cluster) = engine().await;
    let query = "SELECT id, a FROM t WHERE id > '045' ORDER BY id LIMIT 100";
    let plan = explained(&engine, query).await;
    assert!(plan.contains("fetch=100") && !plan.contains("SortExec"), "{plan}");
    cluster.requests.lock().unwrap().clear();
    let ids = run(&engine, "SELECT id FROM t WHERE id > '045' ORDER BY id LIMIT 100").await.unwrap();
    let ids: Vec<String> = ids
        .iter()
        .flat_map(|batch| {
            (0..batch.num_rows()).map(|row| array_value_to_string(batch.column(0), row).unwrap())
        })
        .collect();
    let expected: Vec<String> = cluster
        .rows
        .keys()
        .map(|key| String::from_utf8(key.to_vec()).unwrap())
        .filter(|id| id.as_str() > "045")
        .take(100)
        .collect();
    assert_eq!(ids, expected);
    // The reverse order is sorted here.
    let plan = explained(&engine, "SELECT id FROM t ORDER BY id DESC LIMIT 3").await;
    assert!(plan.contains("TopK(fetch=3)"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_after_the_limit_are_not_requested() {
    let (engine, cluster) = engine().await;
    // One region at a time, so that it is known which requests contain earlier results.
    run(&engine, "SET datafusion.execution.target_partitions = 1").await.unwrap();
    for (query, first, last) in [
        ("SELECT id, a FROM t WHERE i <> 4 ORDER BY a DESC NULLS LAST LIMIT 2", 1, 2),
        ("SELECT id, a FROM t ORDER BY a LIMIT 2", 0, 1),
        ("SELECT id, b FROM t ORDER BY b LIMIT 1", 0, 1),
        ("SELECT id, at, n FROM t ORDER BY at DESC NULLS LAST, n LIMIT 2", 0, 3),
    ] {
        assert!(explained(&engine, query).await.contains("narrowed by what was found"), "{query}");
        cluster.requests.lock().unwrap().clear();
        run(&engine, query).await.unwrap();
        let comparisons = |rows: &proto::grampus::Rows| {
            rows.predicate.iter().map(|all| format!("{all:?}").matches("comparison: Some").count()).sum()
        };
        let requests: Vec<usize> = cluster.requests.lock().unwrap().iter().map(comparisons).collect();
        assert_eq!((requests.len(), requests[0], requests[3]), (4, first, last), "{query}: {requests:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_aggregates_and_columns_are_requested_once() {
    let (engine, cluster) = engine().await;
    cluster.requests.lock().unwrap().clear();
    run(&engine, "SELECT c, var_pop(b), stddev(b), var_samp(b) FROM t WHERE b > 1 AND c <> '' GROUP BY c")
        .await
        .unwrap();
    let requests = cluster.requests.lock().unwrap();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].column.len(), 2);
    assert_eq!(requests[0].family, ["f"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_declared_shown_and_dropped() {
    let (engine, cluster) = engine().await;
    let tables = texts(&run(&engine, "SHOW TABLES").await.unwrap());
    assert_eq!(tables, ["t | BASE TABLE"]);
    let again = run(&engine, DECLARATION).await.unwrap_err();
    assert!(again.contains("already declared"), "{again}");
    let replaced = DECLARATION.replace("CREATE", "CREATE OR REPLACE").replace("n SMALLINT", "n INT");
    run(&engine, &replaced).await.unwrap();
    // An invalid declaration leaves the previous one in place.
    let wrong = replaced.replace("f:i", "g:i");
    assert!(run(&engine, &wrong).await.unwrap_err().contains("no family 'g'"));
    run(&engine, &DECLARATION.replace("TABLE t", "TABLE IF NOT EXISTS t")).await.unwrap();
    let stored = cluster.declarations.lock().unwrap()["t"].clone();
    assert_eq!(stored.columns[6].sql_type.to_string(), "INT");
    // The printed declaration is equivalent to the original.
    run(&engine, "DROP TABLE t").await.unwrap();
    assert!(cluster.declarations.lock().unwrap().is_empty());
    let dropped = run(&engine, "SELECT * FROM t").await.unwrap_err();
    assert!(dropped.contains("CREATE EXTERNAL TABLE declares"), "{dropped}");
    run(&engine, &stored.to_sql()).await.unwrap();
    assert_eq!(cluster.declarations.lock().unwrap()["t"], stored);
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_statements_are_rejected_with_alternatives() {
    let (engine, _) = engine().await;
    for (sql, expected) in [
        ("INSERT INTO t (id) VALUES ('x')", "only reads"),
        ("DELETE FROM t WHERE a = 1", "only reads"),
        ("UPDATE t SET a = 1", "only reads"),
        ("CREATE VIEW v AS SELECT 1", "views and tables of queries are not supported"),
        ("CREATE TABLE v AS SELECT 1", "views and tables of queries are not supported"),
        ("CREATE EXTERNAL TABLE u (a INT) STORED AS GRAMPUS LOCATION 'u'", "there is no table u"),
        ("CREATE EXTERNAL TABLE u (a INT) STORED AS GRAMPUS LOCATION 'a b'", "is not a table name"),
        ("CREATE EXTERNAL TABLE u (a INT) STORED AS HBASE LOCATION 't'", "STORED AS GRAMPUS"),
        ("CREATE EXTERNAL TABLE other.u (a INT) STORED AS GRAMPUS LOCATION 't'", "in the schema public"),
        ("DROP TABLE u", "not declared"),
        ("DROP SCHEMA public CASCADE", "only reads"),
        ("CREATE SCHEMA s", "only reads"),
        ("CREATE DATABASE d", "only reads"),
        ("SELECT a / 0 FROM t", "division by zero"),
        ("SELECT a FROM t WHERE a = 'x'", "Cannot cast"),
        ("SELECT nothing FROM t", "nothing"),
        ("SELEC 1", "Expected"),
    ] {
        let error = run(&engine, sql).await.expect_err(sql);
        assert!(error.contains(expected), "{sql}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::disallowed_methods, reason = "files of the user's, not of the store's")]
async fn the_user_can_copy_rows_to_files() {
    let (engine, _) = engine().await;
    let dir = std::env::temp_dir().join(format!("grampus-copy-{}", std::process::id()));
    for format in ["parquet", "csv", "json", "arrow"] {
        let place = dir.join(format);
        let copy = format!("COPY (SELECT * FROM t) TO '{}/' STORED AS {format}", place.display());
        let count = run(&engine, &copy).await.unwrap();
        assert_eq!(texts(&count), [ROWS.to_string()], "{format}");
        let read = match format {
            "parquet" => {
                engine.context.read_parquet(place.to_str().unwrap(), Default::default()).await.unwrap()
            }
            "csv" => engine.context.read_csv(place.to_str().unwrap(), Default::default()).await.unwrap(),
            "arrow" => engine.context.read_arrow(place.to_str().unwrap(), Default::default()).await.unwrap(),
            _ => engine.context.read_json(place.to_str().unwrap(), Default::default()).await.unwrap(),
        };
        assert_eq!(read.count().await.unwrap(), ROWS as usize, "{format}");
    }
    // Parquet keeps the types.
    let file = dir.join("one.parquet");
    run(&engine, &format!("COPY t TO '{}'", file.display())).await.unwrap();
    let back = engine.context.read_parquet(file.to_str().unwrap(), Default::default()).await.unwrap();
    let direct = run(&engine, "SELECT * FROM t").await.unwrap();
    assert_eq!(texts(&back.collect().await.unwrap()), texts(&direct));
    std::fs::remove_dir_all(dir).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_cannot_write_files() {
    let (engine, _) = engine().await;
    let context = session::context(&engine.catalog, 64 << 20, Sender::Clients).unwrap();
    let engine = Engine { context, ..engine };
    for sql in ["COPY t TO '/nowhere/t.csv'", "EXPLAIN ANALYZE COPY (SELECT 1) TO '/nowhere/t.csv'"] {
        let error = run(&engine, sql).await.expect_err(sql);
        assert!(error.contains("only possible in the shell"), "{sql}: {error}");
    }
}

/// A join of a few rows with themselves produced billions of rows and occupied its thread, so a
/// cancel request had to wait for all of them.
#[tokio::test]
#[allow(
    clippy::disallowed_methods,
    reason = "stands for a connection's select, and no environment is available"
)]
async fn a_large_join_can_be_cancelled() {
    let (engine, _) = engine().await;
    for condition in ["a.id > b.id AND c.id > d.id AND a.i > d.i", "true"] {
        let query = format!(
            "SELECT count(*) FROM t a, t b, t c, t d WHERE {condition} AND a.a + b.a + c.a + d.a <> 1"
        );
        let query = run(&engine, &query);
        // On one thread, so the timeout can only fire if the query yields.
        let cancelled = tokio::time::timeout(std::time::Duration::from_millis(200), query).await;
        assert!(cancelled.is_err(), "the query finished before it was cancelled");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_of_one_session() {
    let (engine, _) = engine().await;
    let other = engine.new_session();
    run(&other, "SET datafusion.execution.batch_size = 17").await.unwrap();
    let size = |engine: &Engine| engine.context.state().config().batch_size();
    assert_eq!((size(&other), size(&engine) == 17), (17, false));
    // Tables are shared.
    run(&other, "DROP TABLE t").await.unwrap();
    assert!(run(&engine, "SELECT * FROM t").await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_beyond_the_memory_end_the_query() {
    let (engine, _) = engine().await;
    let context = session::context(&engine.catalog, 4096, Sender::User).unwrap();
    let engine = Engine { context, ..engine };
    let error = run(&engine, "SELECT id, count(*) FROM t GROUP BY id").await.unwrap_err();
    assert!(error.contains("--memory"), "{error}");
}

#[test]
fn only_the_shell_gives_up_early() {
    let retries = |options: &[&str]| {
        let arguments = Arguments::parse_from([&["grampus-sql"][..], options].concat());
        arguments.client_options().retries_max
    };
    assert_eq!(retries(&[]), RETRIES_MAX);
    assert_eq!(retries(&["--listen", "127.0.0.1:5432"]), ClientOptions::default().retries_max);
}
