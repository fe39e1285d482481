//! Ranges are as narrow as possible, and never too narrow.

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
/// A range without rows.
const NOTHING: (&str, &str) = ("\\x00", "\\x00\\x00");
const WHOLE: &str = "CREATE EXTERNAL TABLE t (id VARCHAR PRIMARY KEY, n BIGINT) STORED AS GRAMPUS LOCATION 't' \
    OPTIONS ('n' 'row bytes_long')";

/// The ranges of a condition, in the form `a..c e..`.
fn ranges(declaration: &str, condition: &Expr) -> String {
    let declaration = declared(declaration, &["f"]).unwrap();
    let mut parts = Vec::new();
    for part in datafusion::logical_expr::utils::split_conjunction(condition) {
        parts.push(translate(part, &declaration).unwrap_or_else(|| panic!("{part} is not translated")));
    }
    let shown = |range: &RowRange| format!("{}..{}", range.start.escape_ascii(), range.stop.escape_ascii());
    row_ranges(&all(parts).unwrap(), &declaration).iter().map(shown).collect::<Vec<_>>().join(" ")
}

fn check_all(declaration: &str, condition: Expr, expected: &str) {
    assert_eq!(ranges(declaration, &condition), expected, "{condition}");
}

/// Checks a condition with one range.
fn check(declaration: &str, condition: Expr, start: &str, stop: &str) {
    check_all(declaration, condition, &format!("{start}..{stop}"));
}

#[test]
fn ranges_of_whole_keys() {
    check(WHOLE, col("id").eq(lit("k")), "k", "k\\x00");
    check(WHOLE, col("id").gt(lit("k")), "k\\x00", "");
    check(WHOLE, col("id").gt_eq(lit("k")).and(col("id").lt(lit("m"))), "k", "m");
    check(WHOLE, col("id").lt_eq(lit("m")), "", "m\\x00");
    check(WHOLE, lit("m").lt(col("id")), "m\\x00", "");
    check(WHOLE, col("id").like(lit("ab%c")), "ab", "ac");
    check(WHOLE, col("id").like(lit("\u{ff}%")), "\\xc3\\xbf", "\\xc3\\xc0");
    check(WHOLE, col("id").like(lit("%a")), "", "");
    check_all(WHOLE, col("id").in_list(vec![lit("c"), lit("a")], false), "a..a\\x00 c..c\\x00");
    check(WHOLE, col("id").in_list(vec![lit("c"), lit("a")], true), "", "");
    check(WHOLE, col("id").not_eq(lit("k")), "", "");
    check_all(WHOLE, col("id").eq(lit("l")).or(col("id").eq(lit("k"))), "k..k\\x00 l..l\\x00");
    check(WHOLE, col("id").eq(lit("l")).or(col("id").gt(lit("k"))), "k\\x00", "");
    check_all(WHOLE, col("id").eq(lit("l")).or(col("id").gt(lit("m"))), "l..l\\x00 m\\x00..");
    check(WHOLE, col("id").eq(lit("l")).or(col("n").not_eq(lit(1_i64))), "", "");
    // The stricter of two bounds counts. A contradiction still queries one row that most likely
    // does not exist.
    check(WHOLE, col("id").gt(lit("c")).and(col("id").lt(lit("b"))), NOTHING.0, NOTHING.1);
    check(WHOLE, col("id").gt(lit("c")).and(col("id").gt(lit("b"))), "c\\x00", "");
    check(WHOLE, col("id").between(lit("b"), lit("c")), "b", "c\\x00");
}

#[test]
fn ranges_of_numbers_as_keys() {
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
    // Negative numbers sort after the others in two's complement.
    check_all(
        WHOLE,
        col("n").lt(lit(10_i64)),
        &format!("{}..{zeros}\\x00\\t\\x00 \\x80{zeros}\\x00..{}\\x00", "\\x00".repeat(8), "\\xff".repeat(8)),
    );
}

#[test]
fn ranges_of_fixed_length_parts() {
    check(COMPOSITE, col("region").eq(lit("de")), "de", "df");
    let day = |sign: &str, last: &str| format!("de{sign}\\x00\\x00{last}");
    let known = || col("region").eq(lit("de"));
    check(COMPOSITE, known().and(col("day").eq(lit(5_i32))), &day("\\x80", "\\x05"), &day("\\x80", "\\x06"));
    let two = known().and(col("day").gt_eq(lit(5_i32))).and(col("day").lt(lit(7_i32)));
    check(COMPOSITE, two, &day("\\x80", "\\x05"), &day("\\x80", "\\x07"));
    let all =
        known().and(col("day").eq(lit(-1_i32))).and(col("kind").eq(lit("k"))).and(col("rest").gt(lit("m")));
    check(COMPOSITE, all, "de\\x7f\\xff\\xff\\xffkm\\x00", "de\\x7f\\xff\\xff\\xffl");
    // A part gives no limits without the parts before it.
    check(COMPOSITE, col("day").eq(lit(5_i32)), "", "");
    check(COMPOSITE, col("region").lt(lit("dea")), "", "df");
    check(COMPOSITE, col("region").lt(lit("d")), "", "d");
    check(COMPOSITE, col("region").lt_eq(lit("de")), "", "df");
    check(COMPOSITE, col("region").gt(lit("de")), "df", "");
    // A fixed-length column has no values of another length.
    check(COMPOSITE, col("region").eq(lit("d")).and(col("tail").eq(lit("x"))), NOTHING.0, NOTHING.1);
    let several = col("region").in_list(vec![lit("fr"), lit("de")], false).and(col("day").eq(lit(5_i32)));
    check_all(
        COMPOSITE,
        several,
        "de\\x80\\x00\\x00\\x05..de\\x80\\x00\\x00\\x06 fr\\x80\\x00\\x00\\x05..fr\\x80\\x00\\x00\\x06",
    );
    let either = known().and(col("day").lt(lit(0_i32)).or(col("day").gt(lit(9_i32))));
    check_all(COMPOSITE, either, "de\\x00\\x00\\x00\\x00..de\\x80 de\\x80\\x00\\x00\\n..df");
}

#[test]
fn ranges_of_parts_between_separators() {
    check(PARTED, col("a").eq(lit("x")), "x", "x}");
    check(PARTED, col("a").eq(lit("x")).and(col("b").eq(lit("y"))), "x|y", "x|y}");
    check(PARTED, col("a").eq(lit("x")).and(col("b").like(lit("y%"))), "x|y", "x|z");
    check(PARTED, col("a").eq(lit("x")).and(col("b").gt(lit("y"))), "x|y", "x}");
    check(PARTED, col("a").gt_eq(lit("x")), "x", "");
    // "a!" is greater than "a", but "a|z" is greater than "a!".
    check(PARTED, col("a").lt(lit("a!")).and(col("a").gt(lit(""))), "", "}");
    check(PARTED, col("a").lt(lit("a!")).and(col("a").gt_eq(lit("a"))), "a", "a}");
    check(PARTED, col("a").lt_eq(lit("a!")).and(col("a").gt(lit("a"))), "a", "a}");
    check(PARTED, col("a").between(lit("b"), lit("c")), "b", "c}");
    // Text has several representations of a number.
    check(
        PARTED,
        col("a").eq(lit("x")).and(col("b").eq(lit("y"))).and(col("n").eq(lit(1_i32))),
        "x|y",
        "x|y}",
    );
}

const ORDERED: &str = "CREATE EXTERNAL TABLE t (shard INT, price DECIMAL(10,2), name VARCHAR, x DOUBLE) STORED AS GRAMPUS \
    LOCATION 't' OPTIONS ('shard' 'row[0..5] ordered_int32', 'price' 'row[5..] ordered_decimal', 'name' 'row[5..] \
    ordered_string', 'x' 'row[5..14] ordered_float64')";

#[test]
fn ranges_of_ordered_bytes_of_both_directions() {
    check_all(
        ORDERED,
        col("shard").eq(lit(1_i32)),
        "+\\x80\\x00\\x00\\x01..+\\x80\\x00\\x00\\x02 \\xd4\\x7f\\xff\\xff\\xfe..\\xd4\\x7f\\xff\\xff\\xff",
    );
    check_all(
        ORDERED,
        col("shard").gt_eq(lit(1_i32)).and(col("shard").lt(lit(256_i32))),
        "+\\x80\\x00\\x00\\x01..+\\x80\\x00\\x01 \\xd4\\x7f\\xff\\xff\\x00..\\xd4\\x7f\\xff\\xff\\xff",
    );
    let (up, down) = ("+\\x80\\x00\\x00\\x01", "\\xd4\\x7f\\xff\\xff\\xfe");
    let named = col("shard").eq(lit(1_i32)).and(col("name").eq(lit("ab")));
    let (up_name, down_name) = ("4ab\\x00..", "\\xcb\\x9e\\x9d\\xff..");
    let both = |shard: &str| {
        format!("{shard}{up_name}{shard}4ab\\x00\\x00 {shard}{down_name}{shard}\\xcb\\x9e\\x9d\\xff\\x00")
    };
    check_all(ORDERED, named, &format!("{} {}", both(up), both(down)));
    let priced = col("shard").eq(lit(1_i32)).and(
        col("price").gt(Expr::Literal(datafusion::scalar::ScalarValue::Decimal128(Some(100), 10, 2), None)),
    );
    let greater = |shard: &str| format!("{shard}\\x18\\x02\\x00..{shard}\\' {shard}\\xd9..{shard}\\xe7\\xfd");
    check_all(ORDERED, priced, &format!("{} {}", greater(up), greater(down)));
}

#[test]
fn many_ranges_are_merged() {
    let many = |count: i32| (0..count).map(|number| lit(i64::from(2 * number))).collect::<Vec<_>>();
    let count = |condition: Expr| ranges(WHOLE, &condition).matches("..").count();
    assert_eq!(count(col("n").in_list(many(60), false)), 60);
    let most = count(col("n").in_list(many(10_000), false));
    assert!((32..=RANGES_MAX).contains(&most), "{most}");
    // Two lists of 40 values have 1600 combinations; the ranges of the second part are merged.
    let days = (0..40).map(lit).collect();
    let regions = (10..50).map(|number| lit(number.to_string())).collect();
    let both = col("region").in_list(regions, false).and(col("day").in_list(days, false));
    assert_eq!(ranges(COMPOSITE, &both).matches("..").count(), 40);
}

/// Splits a row into its parts, for an independent evaluation.
fn parts(row: &[u8]) -> Vec<Option<String>> {
    let mut parts: Vec<Option<String>> =
        row.split(|byte| *byte == b'|').map(|part| Some(String::from_utf8_lossy(part).to_string())).collect();
    parts.resize(2, None);
    parts
}

#[test]
fn every_matching_row_is_in_the_ranges() {
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
            let ranges = row_ranges(&all(predicates.to_vec()).unwrap(), &declaration);
            for row in &rows {
                let values = parts(row.as_bytes());
                let matches = |at: usize, operator, bound| {
                    values[at].as_deref().is_some_and(|value| holds(operator, value, bound))
                };
                if matches(0, one, a) && matches(1, two, b) {
                    inside += 1;
                    let row = row.as_bytes();
                    let is_in = |range: &RowRange| {
                        row >= &range.start[..] && (range.stop.is_empty() || row < &range.stop[..])
                    };
                    assert!(ranges.iter().any(is_in), "{row:?} {ranges:?}");
                }
            }
        }
    }
    assert!(inside > 1000, "{inside}");
}

#[test]
fn casts_that_change_values_are_not_removed() {
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
        let shown = found
            .as_ref()
            .map(|found| crate::predicate::display::PredicateDisplay(found, &declaration).to_string());
        assert_eq!(shown.as_deref(), expected, "{expr}");
    }
}
