//! The page of a table.

use std::cmp::Reverse;

use base::history::Unit;
use cell::schema::{FAMILY_DEFAULTS, FamilyDescriptor, TableDescriptor, TableName};
use master::assignment::RegionState;
use web::section::{Column, Facts, Pager, Section, Table, Tile};
use web::{Level, Page, Query, Refusal, Value, address};
use wire::meta::TableState;

use super::cluster::{Cluster, Known, Load, mebibytes};
use super::{MasterPages, STATUS, TABLE};
use crate::pages::common::{bound, region_value, table_of};
use crate::pages::region_server::REGION;

/// Rows of a page.
const ROWS: usize = 100;

type Key = fn(&Load) -> u64;

/// What regions are sorted by besides their keys.
const SORTS: &[(&str, &str, Key)] = &[
    ("reads", "Reads", |load| load.reads),
    ("writes", "Writes", |load| load.writes),
    ("memstore", "Memstore", |load| load.memstore_mib),
    ("files", "Files", |load| load.files),
    ("size", "Size", |load| load.file_mib),
];
const WORDS: &[&str] = &["name", "reads", "writes", "memstore", "files", "size"];

impl MasterPages {
    /// The page of the table that the query names.
    pub(super) fn table(&self, query: &Query) -> Result<Page, Refusal> {
        let name =
            query.get("name").ok_or_else(|| Refusal::bad("Which table? The address has no “name” in it."))?;
        let name = table_of(name)?;
        let descriptor = self.master.context().tables.descriptor(&name);
        let descriptor = descriptor.ok_or_else(|| Refusal::missing(format!("There is no table {name}.")))?;
        let cluster = Cluster::of(&self.master);
        let sums = cluster.by_table().get(&name).copied().unwrap_or_default();
        let count =
            |label: &str, count: u64, note: &str| Tile::new(label, Some(count as f64), Unit::Count, note);
        let size = mebibytes(sums.load.file_mib, sums.regions);
        let files = Tile::new(
            "Files",
            Some(sums.load.files as f64),
            Unit::Count,
            format!("{} together", size.as_text()),
        );
        let is_short = self.is_enabled(&name) && sums.open < sums.regions;
        let mut findings = self.failed(Some(&name));
        findings.extend(self.faults(Some(&name)));
        let findings = (!findings.is_empty()).then_some(Section::Findings(findings));
        let sections = vec![
            Section::Tiles(vec![
                count("Regions", sums.regions, "in all"),
                count("Open", sums.open, "of them").at(if is_short { Level::Bad } else { Level::Good }),
                count("Rows read", sums.load.reads, "since its regions were opened"),
                count("Mutations", sums.load.writes, "since its regions were opened"),
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

    /// Whether its regions are to be open.
    pub(super) fn is_enabled(&self, table: &TableName) -> bool {
        self.master.context().tables.state(table) == Some(TableState::Enabled)
    }

    /// HBase's word for its state.
    pub(super) fn table_state(&self, table: &TableName) -> Value {
        match self.master.context().tables.state(table) {
            Some(state) => {
                let level = if state == TableState::Enabled { Level::Good } else { Level::Warning };
                Value::text(format!("{state:?}").to_uppercase()).at(level)
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

/// A row for each family; attributes that are not at their defaults stand out by being shown.
fn families(table: &TableDescriptor) -> Table {
    let shown =
        ["VERSIONS", "TTL", "COMPRESSION", "DATA_BLOCK_ENCODING", "BLOOMFILTER", "IN_MEMORY", "BLOCKSIZE"];
    let mut columns = vec![Column::text("Family")];
    columns.extend(shown.map(Column::text));
    columns.push(Column::text("Other than usual"));
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

/// Attributes and settings that are neither shown in columns nor at their defaults.
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
    let mut of_table: Vec<&Known> =
        cluster.regions.iter().filter(|known| known.region.table == *table).collect();
    let sort = query.word("sort", WORDS)?.unwrap_or("name");
    if let Some((_, _, key)) = SORTS.iter().find(|(word, ..)| *word == sort) {
        of_table.sort_by_key(|known| Reverse(key(&known.load)));
    }
    let (pager, shown) = Pager::cut(TABLE, query, "page", (of_table.len(), ROWS))?;
    let rows = of_table[shown].iter().map(|known| values(cluster, known));
    let mut section = Table::new("Regions", columns(query, sort)).with_rows(rows);
    section.note = Some("As servers last reported. Requests are counted since a region was opened.".into());
    section.pager = Some(pager);
    Ok(section)
}

fn columns(query: &Query, sort: &str) -> Vec<Column> {
    let link = |word: &str| query.with("page", None).with("sort", Some(word)).behind(TABLE) + "#regions";
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

fn values(cluster: &Cluster, known: &Known) -> Vec<Value> {
    let name = region_value(&known.region);
    let is_open = matches!(known.state, RegionState::Open(_));
    let server = known.server();
    vec![
        match cluster.pages_of(known) {
            Some(pages) => name.linked(address(&format!("{pages}{REGION}"), "name", &known.encoded)),
            None => name,
        },
        Value::text(known.state.to_string()).at(if is_open { Level::Good } else { Level::Warning }),
        server.map_or(Value::none(), |server| {
            Value::text(format!("{}:{}", server.host, server.port)).titled(server.to_string())
        }),
        bound(&known.region.start_key),
        bound(&known.region.end_key),
        Value::count(known.load.reads),
        Value::count(known.load.writes),
        mebibytes(known.load.memstore_mib, 1),
        Value::count(known.load.files),
        mebibytes(known.load.file_mib, 1),
    ]
}
