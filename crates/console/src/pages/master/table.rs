//! The page of a table.

use std::cmp::Reverse;

use base::history::Unit;
use cell::schema::{FAMILY_DEFAULTS, FamilyDescriptor, TableDescriptor, TableName};
use master::assignment::RegionState;
use web::section::{Column, Facts, Pager, Section, Table, Tile};
use web::{Level, Page, Query, Refusal, Value, address};
use wire::meta::TableState;

use super::cluster::{Cluster, RegionEntry, ReportedLoad, mebibytes};
use super::{MasterPages, STATUS, TABLE};
use crate::pages::common::{bound, region_value, table_of};
use crate::pages::region_server::REGION;

/// Rows per page.
const ROWS: usize = 100;

type Key = fn(&ReportedLoad) -> u64;

/// Sort orders of regions other than by key: word in the URL, column head, sort key (highest
/// first).
const SORTS: &[(&str, &str, Key)] = &[
    ("reads", "Reads", |load| load.reads),
    ("writes", "Writes", |load| load.writes),
    ("memstore", "Memstore", |load| load.memstore_mib),
    ("files", "Files", |load| load.files),
    ("size", "Size", |load| load.file_mib),
];
const SORT_NAMES: &[&str] = &["name", "reads", "writes", "memstore", "files", "size"];

impl MasterPages {
    /// The page of the table that the query names.
    pub(super) fn table(&self, query: &Query) -> Result<Page, Refusal> {
        let name =
            query.get("name").ok_or_else(|| Refusal::bad("Missing parameter: “name” of the table."))?;
        let name = table_of(name)?;
        let descriptor = self.master.context().tables.descriptor(&name);
        let descriptor = descriptor.ok_or_else(|| Refusal::missing(format!("There is no table {name}.")))?;
        let cluster = Cluster::collect(&self.master);
        let sums = cluster.by_table().get(&name).copied().unwrap_or_default();
        let count =
            |label: &str, count: u64, note: &str| Tile::new(label, Some(count as f64), Unit::Count, note);
        let size = mebibytes(sums.load.file_mib, sums.regions);
        let files = Tile::new(
            "Files",
            Some(sums.load.files as f64),
            Unit::Count,
            format!("{} in total", size.as_text()),
        );
        let is_short = self.is_enabled(&name) && sums.open < sums.regions;
        let mut findings = self.failed_regions(Some(&name));
        findings.extend(self.faults(Some(&name)));
        let findings = (!findings.is_empty()).then_some(Section::Findings(findings));
        let sections = vec![
            Section::Tiles(vec![
                count("Regions", sums.regions, "total"),
                count("Open", sums.open, "of all regions").with_level(if is_short {
                    Level::Bad
                } else {
                    Level::Good
                }),
                count("Rows read", sums.load.reads, "since the regions were opened"),
                count("Mutations", sums.load.writes, "since the regions were opened"),
                files,
            ]),
            Section::Facts(self.table_facts(&descriptor)),
            Section::Table(families(&descriptor)),
            Section::Table(regions(&cluster, &name, query)?),
        ];
        Ok(Page {
            title: format!("Table {name}"),
            subtitle: format!("Namespace {}", name.namespace()),
            up: Some(("All tables".into(), format!("{STATUS}#tables"))),
            sections: findings.into_iter().chain(sections).collect(),
        })
    }

    /// Whether the table is enabled, so that its regions should be open.
    pub(super) fn is_enabled(&self, table: &TableName) -> bool {
        self.master.context().tables.state(table) == Some(TableState::Enabled)
    }

    /// The table's state in HBase's terms.
    pub(super) fn table_state(&self, table: &TableName) -> Value {
        match self.master.context().tables.state(table) {
            Some(state) => {
                let level = if state == TableState::Enabled { Level::Good } else { Level::Warning };
                Value::text(format!("{state:?}").to_uppercase()).with_level(level)
            }
            None => Value::none(),
        }
    }

    fn table_facts(&self, table: &TableDescriptor) -> Facts {
        let mut facts = Facts::new("Attributes").and("State", self.table_state(&table.name));
        for (name, value) in &table.attributes {
            facts = facts.and(&name.escape_ascii().to_string(), Value::key(value));
        }
        for (key, value) in &table.configuration {
            facts = facts.and(key, Value::key(value.as_bytes()));
        }
        facts
    }
}

/// One row per family. The last column lists settings with nondefault values that have no own
/// column.
fn families(table: &TableDescriptor) -> Table {
    let shown =
        ["VERSIONS", "TTL", "COMPRESSION", "DATA_BLOCK_ENCODING", "BLOOMFILTER", "IN_MEMORY", "BLOCKSIZE"];
    let mut columns = vec![Column::text("Family")];
    columns.extend(shown.map(Column::text));
    columns.push(Column::text("Other nondefault settings"));
    let attribute = |family: &FamilyDescriptor, name: &str| {
        let usual = FAMILY_DEFAULTS.iter().find(|(of, _)| *of == name).map_or("", |(_, usual)| usual);
        let own = family.attributes.get(name.as_bytes());
        own.map_or(usual.to_owned(), |value| value.escape_ascii().to_string())
    };
    let rows = table.families.values().map(|family| {
        let mut values = vec![Value::key(&family.name)];
        values.extend(shown.iter().map(|name| Value::text(attribute(family, name))));
        values.push(Value::key(unusual(family, &shown).as_bytes()));
        values
    });
    Table::new("Families", columns).with_rows(rows)
}

/// Attributes and settings with nondefault values that have no own column.
fn unusual(family: &FamilyDescriptor, shown: &[&str]) -> String {
    let is_usual = |name: &[u8], value: &[u8]| {
        let is_shown = shown.iter().any(|of| of.as_bytes() == name);
        is_shown
            || FAMILY_DEFAULTS.iter().any(|(of, usual)| of.as_bytes() == name && usual.as_bytes() == value)
    };
    let attributes = family.attributes.iter().filter(|(name, value)| !is_usual(name, value));
    let attributes =
        attributes.map(|(name, value)| format!("{}={}", name.escape_ascii(), value.escape_ascii()));
    let settings = family.configuration.iter().map(|(key, value)| format!("{key}={value}"));
    attributes.chain(settings).collect::<Vec<_>>().join(", ")
}

fn regions(cluster: &Cluster, table: &TableName, query: &Query) -> Result<Table, Refusal> {
    let mut of_table: Vec<&RegionEntry> =
        cluster.regions.iter().filter(|entry| entry.region.table == *table).collect();
    let sort = query.word("sort", SORT_NAMES)?.unwrap_or("name");
    if let Some((_, _, key)) = SORTS.iter().find(|(word, ..)| *word == sort) {
        of_table.sort_by_key(|entry| Reverse(key(&entry.load)));
    }
    let (pager, shown) = Pager::paginate(TABLE, query, "page", (of_table.len(), ROWS))?;
    let rows = of_table[shown].iter().map(|entry| values(cluster, entry));
    let mut section = Table::new("Regions", columns(query, sort)).with_rows(rows);
    section.note = Some(
        "From the last reports of the servers. Requests are counted since the region was opened.".into(),
    );
    section.pager = Some(pager);
    Ok(section)
}

fn columns(query: &Query, sort: &str) -> Vec<Column> {
    let link = |word: &str| query.with("page", None).with("sort", Some(word)).append_to(TABLE) + "#regions";
    let mut columns = vec![
        Column::text("Region").sorted(link("name"), sort == "name"),
        Column::text("State"),
        Column::text("Server"),
        Column::text("Start key"),
        Column::text("End key"),
    ];
    let numbers = SORTS.iter().map(|(word, head, _)| Column::number(head).sorted(link(word), *word == sort));
    columns.extend(numbers);
    columns
}

fn values(cluster: &Cluster, entry: &RegionEntry) -> Vec<Value> {
    let name = region_value(&entry.region);
    let is_open = matches!(entry.state, RegionState::Open(_));
    let server = entry.server();
    vec![
        match cluster.pages_url(entry) {
            Some(pages) => name.linked(address(&format!("{pages}{REGION}"), "name", &entry.encoded)),
            None => name,
        },
        Value::text(entry.state.to_string()).with_level(if is_open { Level::Good } else { Level::Warning }),
        server.map_or(Value::none(), |server| {
            Value::text(format!("{}:{}", server.host, server.port)).titled(server.to_string())
        }),
        bound(&entry.region.start_key),
        bound(&entry.region.end_key),
        Value::count(entry.load.reads),
        Value::count(entry.load.writes),
        mebibytes(entry.load.memstore_mib, 1),
        Value::count(entry.load.files),
        mebibytes(entry.load.file_mib, 1),
    ]
}
