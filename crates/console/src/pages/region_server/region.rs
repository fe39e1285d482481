//! The page of one region.

use base::history::Unit;
use engine::Region;
use engine::region::{RegionMetrics, StoreMetrics};
use web::section::{Column, Facts, Row, Section, Table, Tile};
use web::{Page, Query, Refusal, Value};

use super::{RegionServerPages, STATUS};

impl RegionServerPages {
    /// The page of the region that the query names by its full or encoded name.
    pub(super) fn region(&self, query: &Query) -> Result<Page, Refusal> {
        let name =
            query.get("name").ok_or_else(|| Refusal::bad("Missing parameter: “name” of the region."))?;
        let region = self.server.regions().find(name.as_bytes());
        let region = region.map_err(|_| Refusal::missing(format!("Region {name} is not served here.")))?;
        let (metrics, table) = (region.metrics(), region.info().table.to_string());
        let of_table = Query::default().with("table", Some(&table)).append_to(STATUS) + "#regions";
        Ok(Page {
            title: format!("Region of {table}"),
            subtitle: region.name().to_string(),
            up: Some((format!("Regions of {table}"), of_table)),
            sections: vec![
                Section::Tiles(tiles(&metrics)),
                Section::Facts(range(&region)),
                Section::Table(stores(&metrics, self.context.now_ms())),
                Section::Facts(requests(&metrics)),
                Section::Facts(self.maintenance(&region, &metrics)),
                Section::Table(files(&region)),
            ],
        })
    }

    fn maintenance(&self, region: &Region, metrics: &RegionMetrics) -> Facts {
        let state = self.server.schedule().compactions().state(region);
        Facts::new("Flushes and compactions")
            .and("State", Value::text(format!("{:?}", region.state()).to_uppercase()))
            .and("Being flushed", yes_or_no(metrics.is_flushing))
            .and("Being compacted", Value::text(state.as_str_name().to_lowercase().replace('_', " ")))
            .and("Flushes", Value::count(metrics.flushes))
            .and("Last flush, or open", Value::ago(metrics.last_flush_ms, self.context.now_ms()))
            .and("Compactions", Value::count(metrics.compactions))
            .and("Failed compactions", Value::count(metrics.compactions_failed))
            .and("Files compacted", Value::count(metrics.compacted_files))
            .and("Bytes compacted", Value::bytes(metrics.compacted_bytes))
            .and("Sequence id at open", Value::count(metrics.open_seq_id))
            .and("Read point", Value::count(metrics.read_point))
            .and("Flushed up to sequence id", Value::count(metrics.flushed_seq_id))
    }
}

fn yes_or_no(is_so: bool) -> Value {
    Value::text(if is_so { "yes" } else { "no" })
}

fn tiles(metrics: &RegionMetrics) -> Vec<Tile> {
    let bytes: u64 = metrics.stores.iter().map(|store| store.file_bytes).sum();
    let files: usize = metrics.stores.iter().map(|store| store.files).sum();
    let count =
        |label: &str, count: u64, note: String| Tile::new(label, Some(count as f64), Unit::Count, note);
    vec![
        count("Rows read", metrics.read_requests, "since it was opened".into()),
        count("Mutations", metrics.write_requests, "since it was opened".into()),
        Tile::new(
            "Memstore",
            Some(metrics.memstore_bytes as f64),
            Unit::Bytes,
            format!("{} of cells", Value::bytes(metrics.memstore_data_bytes).as_text()),
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
        .and("Created", Value::moment(if info.table.is_meta() { 0 } else { info.region_id }))
        .and("References files of other regions", yes_or_no(region.has_references()))
        .and("Splittable", yes_or_no(region.is_splittable()))
}

fn requests(metrics: &RegionMetrics) -> Facts {
    Facts::new("Requests since it was opened")
        .and("Gets", Value::count(metrics.gets))
        .and("Scan calls", Value::count(metrics.scans))
        .and("Rows rejected by filters", Value::count(metrics.filtered_reads))
        .and("Batches with puts", Value::count(metrics.puts))
        .and("Batches with deletes", Value::count(metrics.deletes))
        .and("Increments", Value::count(metrics.increments))
        .and("Appends", Value::count(metrics.appends))
}

fn stores(metrics: &RegionMetrics, now_ms: u64) -> Table {
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
        "Reference files",
    ];
    columns.extend(heads.map(Column::number));
    Table::new("Stores", columns).with_rows(metrics.stores.iter().map(|store| store_values(store, now_ms)))
}

fn store_values(store: &StoreMetrics, now_ms: u64) -> Vec<Value> {
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
    let mut table = Table::new("Files", vec![Column::text("Path in the root directory")]);
    for family in region.table().families.keys() {
        // A family that the region does not know yet has no files here.
        let paths = region.store_files(family).unwrap_or_default();
        if !paths.is_empty() {
            table.rows.push(Row::Group(Value::key(family), String::new()));
        }
        let rows = paths.iter().map(|path| Row::Values(vec![Value::whole_key(path.to_string().as_bytes())]));
        table.rows.extend(rows);
    }
    table.empty_text = "No store files. Cells, if any, are in memstores.".into();
    table
}
