//! The tables and regions of a region server, as tables.

use std::cmp::Reverse;

use cell::schema::TableName;
use web::section::{Column, Filter, Pager, Row, Section, Table};
use web::{Query, Refusal, Value, address};

use super::snapshot::{RegionSnapshot, Sums};
use super::{REGION, RegionServerPages, STATUS};
use crate::pages::common::{bound, region_value};

/// Rows per page.
const ROWS: usize = 100;
/// Maximum number of tables that the filter field offers.
const OFFERED_MAX: usize = 200;

/// The value that regions are sorted by, highest first.
type Key = fn(&RegionSnapshot) -> u64;

const SORTS: &[(&str, &str, Key)] = &[
    ("reads", "Reads", |one| one.metrics.read_requests),
    ("writes", "Writes", |one| one.metrics.write_requests),
    ("memstore", "Memstore", |one| one.metrics.memstore_bytes),
    ("files", "Files", RegionSnapshot::files),
    ("size", "Size", RegionSnapshot::file_bytes),
];
const SORT_NAMES: &[&str] = &["name", "reads", "writes", "memstore", "files", "size"];

impl RegionServerPages {
    /// The table list of `all` regions, and the list of the `chosen` regions.
    pub(super) fn regions(
        &self,
        mut chosen: Vec<&RegionSnapshot>,
        all: &[RegionSnapshot],
        query: &Query,
    ) -> Result<[Section; 2], Refusal> {
        let tables = Sums::by_table(all);
        let sort = query.word("sort", SORT_NAMES)?.unwrap_or("name");
        if let Some((_, _, key)) = SORTS.iter().find(|(word, ..)| *word == sort) {
            chosen.sort_by_key(|one| Reverse(key(one)));
        }
        let (pager, rows) = Pager::paginate(STATUS, query, "page", (chosen.len(), ROWS))?;
        let is_grouped = sort == "name";
        let mut table = Table::new("Regions", columns(query, sort));
        table.rows = rows_of(&chosen[rows], is_grouped);
        table.note = Some("Requests are counted since the region was opened here.".into());
        table.empty_text = "No region is served here.".into();
        table.filter = Some(Filter {
            path: STATUS.into(),
            query: query.with("page", None),
            name: "table".into(),
            label: "Table".into(),
            offered: tables.keys().take(OFFERED_MAX).map(TableName::to_string).collect(),
        });
        table.pager = Some(pager);
        Ok([tables_section(&tables.into_iter().collect::<Vec<_>>(), query)?, Section::Table(table)])
    }
}

fn tables_section(tables: &[(TableName, Sums)], query: &Query) -> Result<Section, Refusal> {
    let (pager, shown) = Pager::paginate(STATUS, query, "tables", (tables.len(), ROWS))?;
    let mut columns = vec![Column::text("Table"), Column::number("Regions")];
    columns.extend(SORTS.iter().map(|(_, head, _)| Column::number(head)));
    let rows = tables[shown].iter().map(|(table, sums)| {
        let name = table.to_string();
        let of_table = query.with("page", None).with("table", Some(&name)).append_to(STATUS) + "#regions";
        vec![
            Value::key(name.as_bytes()).linked(of_table),
            Value::count(sums.regions),
            Value::count(sums.reads),
            Value::count(sums.writes),
            Value::bytes(sums.memstore_bytes),
            Value::count(sums.files),
            Value::bytes(sums.file_bytes),
        ]
    });
    let mut section = Table::new("Tables", columns).with_rows(rows);
    section.pager = Some(pager);
    Ok(Section::Table(section))
}

/// The column heads, with links that sort.
fn columns(query: &Query, sort: &str) -> Vec<Column> {
    let link = |word: &str| query.with("page", None).with("sort", Some(word)).append_to(STATUS) + "#regions";
    let mut columns = vec![
        Column::text("Region").sorted(link("name"), sort == "name"),
        Column::text("Start key").titled("Lower bound of the region's rows (inclusive)"),
    ];
    if sort != "name" {
        columns.push(Column::text("Table"));
    }
    let numbers = SORTS.iter().map(|(word, head, _)| Column::number(head).sorted(link(word), *word == sort));
    columns.extend(numbers);
    columns
}

/// The rows of the list. If `is_grouped`, the regions are sorted by table, and each table gets a
/// heading.
fn rows_of(regions: &[&RegionSnapshot], is_grouped: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut table: Option<&TableName> = None;
    for one in regions {
        if is_grouped && table != Some(one.table()) {
            table = Some(one.table());
            rows.push(Row::Group(Value::key(one.table().to_string().as_bytes()), String::new()));
        }
        rows.push(Row::Values(values(one, is_grouped)));
    }
    rows
}

fn values(one: &RegionSnapshot, is_grouped: bool) -> Vec<Value> {
    let info = one.region.info();
    let mut values = vec![
        region_value(info).linked(address(REGION, "name", one.region.encoded_name())),
        bound(&info.start_key),
    ];
    if !is_grouped {
        values.push(Value::key(info.table.to_string().as_bytes()));
    }
    values.extend([
        Value::count(one.metrics.read_requests),
        Value::count(one.metrics.write_requests),
        Value::bytes(one.metrics.memstore_bytes),
        Value::count(one.files()),
        Value::bytes(one.file_bytes()),
    ]);
    values
}
