//! The page of one region.

use base::history::Unit;
use engine::Region;
use engine::region::{RegionFigures, StoreFigures};
use web::section::{Column, Facts, Row, Section, Table, Tile};
use web::{Page, Query, Refusal, Value};

use super::{RegionServerPages, STATUS};

impl RegionServerPages {
    /// The page of the region that the query names, by its full or its encoded name.
    pub(super) fn region(&self, query: &Query) -> Result<Page, Refusal> {
        let name = query
            .get("name")
            .ok_or_else(|| Refusal::bad("Which region? The address has no “name” in it."))?;
        let region = self.server.regions().find(name.as_bytes());
        let region =
            region.map_err(|_| Refusal::missing(format!("The region {name} is not served here.")))?;
        let (figures, table) = (region.figures(), region.info().table.to_string());
        let of_table = Query::default().with("table", Some(&table)).behind(STATUS) + "#regions";
        Ok(Page {
            title: format!("Region of {table}"),
            subtitle: region.name().to_string(),
            up: Some((format!("Regions of {table}"), of_table)),
            sections: vec![
                Section::Tiles(tiles(&figures)),
                Section::Facts(range(&region)),
                Section::Table(stores(&figures, self.common.now_ms())),
                Section::Facts(requests(&figures)),
                Section::Facts(self.upkeep(&region, &figures)),
                Section::Table(files(&region)),
            ],
        })
    }

    fn upkeep(&self, region: &Region, figures: &RegionFigures) -> Facts {
        let state = self.server.schedule().compactions().state(region);
        Facts::new("Flushes and compactions")
            .and("State", Value::text(format!("{:?}", region.state()).to_uppercase()))
            .and("Being flushed", yes(figures.is_flushing))
            .and("Being compacted", Value::text(state.as_str_name().to_lowercase().replace('_', " ")))
            .and("Flushes", Value::count(figures.flushes))
            .and("Last flush, or opened", Value::ago(figures.last_flush_ms, self.common.now_ms()))
            .and("Compactions", Value::count(figures.compactions))
            .and("Compactions that failed", Value::count(figures.compactions_failed))
            .and("Files compacted", Value::count(figures.compacted_files))
            .and("Bytes compacted", Value::bytes(figures.compacted_bytes))
            .and("Sequence id at open", Value::count(figures.open_seq_id))
            .and("Newest write that is read", Value::count(figures.read_point))
            .and("Flushed up to", Value::count(figures.flushed_seq_id))
    }
}

fn yes(is_so: bool) -> Value {
    Value::text(if is_so { "yes" } else { "no" })
}

fn tiles(figures: &RegionFigures) -> Vec<Tile> {
    let bytes: u64 = figures.stores.iter().map(|store| store.file_bytes).sum();
    let files: usize = figures.stores.iter().map(|store| store.files).sum();
    let count =
        |label: &str, count: u64, note: String| Tile::new(label, Some(count as f64), Unit::Count, note);
    vec![
        count("Rows read", figures.read_requests, "since it was opened".into()),
        count("Mutations", figures.write_requests, "since it was opened".into()),
        Tile::new(
            "Memstore",
            Some(figures.memstore_bytes as f64),
            Unit::Bytes,
            format!("{} of cells", Value::bytes(figures.memstore_data_bytes).as_text()),
        ),
        Tile::new(
            "In files",
            Some(bytes as f64),
            Unit::Bytes,
            if files == 1 { "1 file".into() } else { format!("{files} files") },
        ),
    ]
}

fn range(region: &Region) -> Facts {
    let key = |key: &[u8]| if key.is_empty() { Value::text("no bound") } else { Value::whole_key(key) };
    let info = region.info();
    Facts::new("Range")
        .and("Start key", key(&info.start_key))
        .and("End key", key(&info.end_key))
        .and("Encoded name", Value::whole_key(region.encoded_name().as_bytes()))
        .and("Made", Value::moment(if info.table.is_meta() { 0 } else { info.region_id }))
        .and("Refers to files of others", yes(region.has_references()))
        .and("May be split", yes(region.is_splittable()))
}

fn requests(figures: &RegionFigures) -> Facts {
    Facts::new("Requests since it was opened")
        .and("Gets", Value::count(figures.gets))
        .and("Calls of scans", Value::count(figures.scans))
        .and("Rows kept back by filters", Value::count(figures.filtered_reads))
        .and("Changes with puts", Value::count(figures.puts))
        .and("Changes with deletes", Value::count(figures.deletes))
        .and("Increments", Value::count(figures.increments))
        .and("Appends", Value::count(figures.appends))
}

fn stores(figures: &RegionFigures, now_ms: u64) -> Table {
    let mut columns = vec![Column::text("Family")];
    let heads = [
        "Memstore",
        "Files",
        "Size",
        "Cells",
        "Indexes",
        "Bloom filters",
        "Oldest file",
        "Newest file",
        "Refer to others",
    ];
    columns.extend(heads.map(Column::number));
    Table::new("Stores", columns).with_rows(figures.stores.iter().map(|store| store_values(store, now_ms)))
}

fn store_values(store: &StoreFigures, now_ms: u64) -> Vec<Value> {
    vec![
        Value::key(&store.family),
        Value::bytes(store.memstore_bytes),
        Value::count(store.files as u64),
        Value::bytes(store.file_bytes),
        Value::count(store.file_cells),
        Value::bytes(store.index_bytes),
        Value::bytes(store.bloom_bytes),
        Value::ago(store.oldest_file_ms, now_ms),
        Value::ago(store.newest_file_ms, now_ms),
        Value::count(store.reference_files as u64),
    ]
}

/// The files of all stores, oldest first.
fn files(region: &Region) -> Table {
    let mut table = Table::new("Files", vec![Column::text("Path below the root directory")]);
    for family in region.table().families.keys() {
        // A family that the region does not know yet has no files here.
        let paths = region.store_files(family).unwrap_or_default();
        if !paths.is_empty() {
            table.rows.push(Row::Group(Value::key(family), String::new()));
        }
        let rows = paths.iter().map(|path| Row::Values(vec![Value::whole_key(path.to_string().as_bytes())]));
        table.rows.extend(rows);
    }
    table.nothing = "All cells are in memstores, or there are none.".into();
    table
}
