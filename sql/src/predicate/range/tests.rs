//! Ranges are as narrow as can be, and never too narrow.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, col, lit};

use super::*;
use crate::declaration::tests::declared;
use crate::predicate::{all, translate};

const COMPOSITE: &str = "CREATE EXTERNAL TABLE t (region VARCHAR, day INT, kind VARCHAR, rest VARCHAR, tail VARCHAR) \
    STORED AS GRAMPUS LOCATION 't' OPTIONS ('region' 'row[0..2]', 'day' 'row[2..6] phoenix_integer', 'kind' 'row[6..7]', \
    'rest' 'row[7..]', 'tail' 'row[2..]')";
const PARTED: &str = "CREATE EXTERNAL TABLE t (a VARCHAR, b VARCHAR, n INT) STORED AS GRAMPUS LOCATION 't' OPTIONS \
    ('a' 'row part 1 by |', 'b' 'row part 2 by |', 'n' 'row part 3 by | text_long')";
const WHOLE: &str = "CREATE EXTERNAL TABLE t (id VARCHAR PRIMARY KEY, n BIGINT) STORED AS GRAMPUS LOCATION 't' \
    OPTIONS ('n' 'row bytes_long')";

fn range(declaration: &str, condition: Expr) -> (String, String) {
    let declaration = declared(declaration, &["f"]).unwrap();
    let mut parts = Vec::new();
    for part in datafusion::logical_expr::utils::split_conjunction(&condition) {
        parts.push(translate(part, &declaration).unwrap());
    }
    let RowRange { start, stop } = of(&all(parts).unwrap(), &declaration);
    (start.escape_ascii().to_string(), stop.escape_ascii().to_string())
}

fn check(declaration: &str, condition: Expr, start: &str, stop: &str) {
    assert_eq!(range(declaration, condition.clone()), (start.to_string(), stop.to_string()), "{condition}");
}

#[test]
fn of_whole_keys() {
    check(WHOLE, col("id").eq(lit("k")), "k", "k\\x00");
    check(WHOLE, col("id").gt(lit("k")), "k\\x00", "");
    check(WHOLE, col("id").gt_eq(lit("k")).and(col("id").lt(lit("m"))), "k", "m");
    check(WHOLE, col("id").lt_eq(lit("m")), "", "m\\x00");
    check(WHOLE, lit("m").lt(col("id")), "m\\x00", "");
    check(WHOLE, col("id").like(lit("ab%c")), "ab", "ac");
    check(WHOLE, col("id").like(lit("\u{ff}%")), "\\xc3\\xbf", "\\xc3\\xc0");
    check(WHOLE, col("id").like(lit("%a")), "", "");
    check(WHOLE, col("id").in_list(vec![lit("c"), lit("a")], false), "a", "c\\x00");
    check(WHOLE, col("id").in_list(vec![lit("c"), lit("a")], true), "", "");
    check(WHOLE, col("id").not_eq(lit("k")), "", "");
    check(WHOLE, col("id").eq(lit("l")).or(col("id").eq(lit("k"))), "k", "l\\x00");
    check(WHOLE, col("id").eq(lit("l")).or(col("id").gt(lit("k"))), "", "");
    // The narrower of two bounds; what contradicts itself is left to the server.
    check(WHOLE, col("id").gt(lit("c")).and(col("id").gt(lit("b"))), "c\\x00", "");
    check(WHOLE, col("id").between(lit("b"), lit("c")), "b", "c\\x00");
}

#[test]
fn of_numbers_as_keys() {
    let zeros = "\\x00".repeat(6);
    check(
        WHOLE,
        col("n").eq(lit(258_i64)),
        &format!("{zeros}\\x01\\x02"),
        &format!("{zeros}\\x01\\x02\\x00"),
    );
    let (start, stop) =
        (format!("{zeros}\\x00\\x05"), format!("{zeros}\\x00\\x09\\x00").replace("\\x09", "\\t"));
    check(WHOLE, col("n").gt(lit(4_i64)).and(col("n").lt(lit(10_i64))), &start, &stop);
    // Negative numbers are behind the others in two's complement.
    check(WHOLE, col("n").lt(lit(10_i64)), "", "");
}

#[test]
fn of_parts_of_a_length() {
    check(COMPOSITE, col("region").eq(lit("de")), "de", "df");
    let day = |sign: &str, last: &str| format!("de{sign}\\x00\\x00{last}");
    let known = || col("region").eq(lit("de"));
    check(COMPOSITE, known().and(col("day").eq(lit(5_i32))), &day("\\x80", "\\x05"), &day("\\x80", "\\x06"));
    let two = known().and(col("day").gt_eq(lit(5_i32))).and(col("day").lt(lit(7_i32)));
    check(COMPOSITE, two, &day("\\x80", "\\x05"), &day("\\x80", "\\x07"));
    let all =
        known().and(col("day").eq(lit(-1_i32))).and(col("kind").eq(lit("k"))).and(col("rest").gt(lit("m")));
    check(COMPOSITE, all, "de\\x7f\\xff\\xff\\xffkm\\x00", "de\\x7f\\xff\\xff\\xffl");
    // Without what is before it, a part says nothing.
    check(COMPOSITE, col("day").eq(lit(5_i32)), "", "");
    check(COMPOSITE, col("region").lt(lit("dea")), "", "df");
    check(COMPOSITE, col("region").lt(lit("d")), "", "d");
    check(COMPOSITE, col("region").lt_eq(lit("de")), "", "df");
    // No value has another length.
    check(COMPOSITE, col("region").eq(lit("d")).and(col("tail").eq(lit("x"))), "d", "e");
}

#[test]
fn of_parts_between_separators() {
    check(PARTED, col("a").eq(lit("x")), "x", "x}");
    check(PARTED, col("a").eq(lit("x")).and(col("b").eq(lit("y"))), "x|y", "x|y}");
    check(PARTED, col("a").eq(lit("x")).and(col("b").like(lit("y%"))), "x|y", "x|z");
    check(PARTED, col("a").eq(lit("x")).and(col("b").gt(lit("y"))), "x|y", "x}");
    check(PARTED, col("a").gt_eq(lit("x")), "x", "");
    // "a!" is more than "a", and yet "a|z" is more than "a!".
    check(PARTED, col("a").lt(lit("a!")), "", "");
    // Text has several ways to write a number.
    check(
        PARTED,
        col("a").eq(lit("x")).and(col("b").eq(lit("y"))).and(col("n").eq(lit(1_i32))),
        "x|y",
        "x|y}",
    );
}

/// What a row is taken apart to, to be looked at by hand.
fn parts(row: &[u8]) -> Vec<Option<String>> {
    let mut parts: Vec<Option<String>> =
        row.split(|byte| *byte == b'|').map(|part| Some(String::from_utf8_lossy(part).to_string())).collect();
    parts.resize(2, None);
    parts
}

#[test]
fn no_row_that_matches_is_outside() {
    let letters = ["a", "a!", "a|", "b", "", "ab"];
    let rows: Vec<String> = letters
        .iter()
        .flat_map(|one| letters.iter().flat_map(move |two| [format!("{one}|{two}"), format!("{one}{two}")]))
        .collect();
    let declaration = declared(PARTED, &["f"]).unwrap();
    let holds = |operator: usize, value: &str, bound: &str| match operator {
        0 => value == bound,
        1 => value < bound,
        2 => value <= bound,
        3 => value > bound,
        _ => value >= bound,
    };
    let expr = |operator: usize, column: &str, bound: &str| match operator {
        0 => col(column).eq(lit(bound)),
        1 => col(column).lt(lit(bound)),
        2 => col(column).lt_eq(lit(bound)),
        3 => col(column).gt(lit(bound)),
        _ => col(column).gt_eq(lit(bound)),
    };
    let mut inside = 0;
    for (one, two) in (0..5).flat_map(|one| (0..5).map(move |two| (one, two))) {
        for (a, b) in letters.iter().flat_map(|a| letters.iter().map(move |b| (*a, *b))) {
            let predicates =
                [expr(one, "a", a), expr(two, "b", b)].map(|expr| translate(&expr, &declaration).unwrap());
            let RowRange { start, stop } = of(&all(predicates.to_vec()).unwrap(), &declaration);
            for row in &rows {
                let values = parts(row.as_bytes());
                let matches = |at: usize, operator, bound| {
                    values[at].as_deref().is_some_and(|value| holds(operator, value, bound))
                };
                if matches(0, one, a) && matches(1, two, b) {
                    inside += 1;
                    let row = row.as_bytes();
                    assert!(
                        row >= &start[..] && (stop.is_empty() || row < &stop[..]),
                        "{row:?} {start:?} {stop:?}"
                    );
                }
            }
        }
    }
    assert!(inside > 1000, "{inside}");
}

#[test]
fn casts_that_change_values_are_not_looked_through() {
    let declaration = declared(
        "CREATE EXTERNAL TABLE t (i INT, d DECIMAL(10,2), at TIMESTAMP, b BIGINT) STORED AS GRAMPUS LOCATION 't'",
        &["f"],
    )
    .unwrap();
    let cast = |name: &str, to: DataType| datafusion::logical_expr::cast(col(name), to);
    use datafusion::scalar::ScalarValue::{Decimal128, TimestampNanosecond, TimestampSecond};
    let decimal =
        |unscaled: i128, digits, scale| Expr::Literal(Decimal128(Some(unscaled), digits, scale), None);
    let seconds = DataType::Timestamp(datafusion::arrow::datatypes::TimeUnit::Second, None);
    let nanos = DataType::Timestamp(datafusion::arrow::datatypes::TimeUnit::Nanosecond, None);
    for (expr, expected) in [
        (cast("i", DataType::Int64).gt(lit(5_i64)), Some("i > 5")),
        (cast("b", DataType::Int32).gt(lit(5_i32)), None),
        (cast("i", DataType::Float64).gt(lit(5.5)), Some("i > 5")),
        (cast("i", DataType::Float64).gt_eq(lit(5.5)), Some("i > 5")),
        (cast("i", DataType::Float64).lt(lit(-5.5)), Some("i <= -6")),
        (cast("i", DataType::Float64).eq(lit(5.5)), None),
        (cast("i", DataType::Float64).eq(lit(5.0)), Some("i = 5")),
        (cast("b", DataType::Float64).eq(lit(1e17)), None),
        (col("d").eq(decimal(150, 10, 2)), Some("d = 1.50")),
        (cast("d", DataType::Decimal128(13, 3)).lt(decimal(1505, 13, 3)), Some("d <= 1.50")),
        (cast("d", DataType::Decimal128(10, 0)).eq(decimal(1, 10, 0)), None),
        (cast("at", seconds).eq(Expr::Literal(TimestampSecond(Some(1), None), None)), None),
        (
            cast("at", nanos).lt(Expr::Literal(TimestampNanosecond(Some(1_000_000), None), None)),
            Some("at < '1970-01-01T00:00:00.001'"),
        ),
    ] {
        let found = translate(&expr, &declaration);
        let shown =
            found.as_ref().map(|found| crate::predicate::shown::Shown(found, &declaration).to_string());
        assert_eq!(shown.as_deref(), expected, "{expr}");
    }
}
