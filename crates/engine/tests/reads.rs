//! What reads count per store: where the cells of rows were, and lookups in Bloom filters.

use std::sync::Arc;

use crate::common::world::{Opened, open_table, options, run};
use cell::KeyValue;
use cell::cell::CellType;
use cell::mutation::Mutation;
use cell::query::{CellSelection, FamilyColumns, Get, MultiGet, Scan};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use engine::Region;
use engine::region::StoreMetrics;
use fs::FileSystem;
use fs::memory::MemoryFs;

/// A region of one family with this kind of Bloom filter.
async fn opened(bloom: &str) -> Opened {
    let fs: Arc<dyn FileSystem> = Arc::new(MemoryFs::new());
    let family = FamilyDescriptor::new("f").with("BLOOMFILTER", bloom);
    let table = TableDescriptor::new(TableName::parse("t").unwrap()).with_family(family);
    open_table(&base::testing::env(3), fs, options(), &table).await.unwrap()
}

async fn put(region: &Region, row: &str, qualifier: &str) {
    change(region, cell(row, qualifier, 1, CellType::Put), None).await;
}

fn cell(row: &str, qualifier: &str, timestamp: i64, kind: CellType) -> KeyValue {
    let value: &[u8] = if kind == CellType::Put { b"value" } else { b"" };
    KeyValue::new(row.as_bytes(), b"f", qualifier.as_bytes(), timestamp, kind, value)
}

async fn change(region: &Region, cell: KeyValue, ttl_ms: Option<i64>) {
    let (row, kind) = (cell.view(0).row().to_vec(), cell.view(0).kind());
    let change = match kind {
        CellType::Put => Mutation::put(row, vec![cell]),
        _ => Mutation::delete(row, vec![cell]),
    };
    region.batch(vec![Mutation { ttl_ms, ..change }]).await.remove(0).unwrap();
}

/// Writes rows into a separate file.
async fn file(region: &Region, rows: &[&str], qualifier: &str) {
    for row in rows {
        put(region, row, qualifier).await;
    }
    region.flush().await.unwrap();
}

fn get_of(row: &str, qualifiers: &[&str]) -> Get {
    let qualifiers = (!qualifiers.is_empty())
        .then(|| qualifiers.iter().map(|name| name.as_bytes().to_vec().into()).collect());
    let columns = vec![FamilyColumns { family: "f".into(), qualifiers }];
    let selection = CellSelection { columns, ..CellSelection::default() };
    Get { row: row.as_bytes().to_vec().into(), selection: selection.into(), existence_only: false }
}

async fn get(region: &Region, row: &str, qualifiers: &[&str]) -> usize {
    region.get(&get_of(row, qualifiers)).await.unwrap().cells.len()
}

fn of(region: &Region) -> StoreMetrics {
    region.metrics().stores.remove(0)
}

/// Numbers of rows read from memstores only, and with at least one cell from a file.
fn rows(region: &Region) -> (u64, u64) {
    (of(region).memstore_reads, of(region).mixed_reads)
}

/// Filter lookups, lookups that excluded a file, and files without a filter.
fn filters(region: &Region) -> (u64, u64, u64) {
    let store = of(region);
    (store.filter_lookups, store.filter_negatives, store.filters_missing)
}

#[test]
fn rows_are_counted_by_where_their_cells_are_stored() {
    run(async {
        let region = opened("ROW").await.region;
        put(&region, "a", "q").await;
        assert_eq!(get(&region, "a", &[]).await, 1);
        assert_eq!(get(&region, "none", &[]).await, 0);
        assert_eq!(rows(&region), (1, 0), "a missing row is not counted");
        file(&region, &["b"], "q").await;
        put(&region, "b", "r").await;
        put(&region, "c", "q").await;
        assert_eq!(get(&region, "a", &[]).await, 1);
        assert_eq!(get(&region, "b", &[]).await, 2);
        assert_eq!(rows(&region), (1, 2));
        assert_eq!(get(&region, "b", &["r"]).await, 1);
        assert_eq!(get(&region, "c", &[]).await, 1);
        assert_eq!(rows(&region), (3, 2));
        assert_eq!(region.scan_all(&Scan::default()).await.unwrap().results.len(), 3);
        assert_eq!(rows(&region), (4, 4), "one row of three is in memory only");
        region.flush().await.unwrap();
        assert_eq!(region.scan_all(&Scan::default()).await.unwrap().results.len(), 3);
        assert_eq!(rows(&region), (4, 7));
    });
}

#[test]
fn gets_of_a_batch_are_counted_when_it_is_read() {
    run(async {
        let region = opened("ROW").await.region;
        file(&region, &["a", "b"], "q").await;
        put(&region, "c", "q").await;
        assert_eq!(get(&region, "a", &[]).await, 1);
        let mut gets = MultiGet::new(get_of("a", &["q"]), "bcd".into());
        (0..3).for_each(|at| gets.push(at..at + 1));
        let mut reader = region.batch_reader(&gets);
        let mut list = engine::scanner::CellList::default();
        for at in 0..gets.len() {
            assert!(reader.try_read(at, &mut list).unwrap(), "all blocks are cached");
        }
        drop(reader);
        assert_eq!(rows(&region), (1, 3));
    });
}

#[test]
fn filter_lookups_are_counted() {
    run(async {
        let region = opened("ROW").await.region;
        file(&region, &["a", "c", "e"], "q").await;
        assert_eq!(get(&region, "c", &[]).await, 1);
        assert_eq!(filters(&region), (1, 0, 0), "blocks must be loaded, so the filter is checked");
        assert_eq!(get(&region, "c", &[]).await, 1);
        assert_eq!(
            filters(&region),
            (1, 0, 0),
            "if its blocks are cached, the only file is searched without its filter"
        );
        file(&region, &["a", "b", "e"], "q").await;
        assert_eq!(get(&region, "c", &["q"]).await, 1);
        assert_eq!(filters(&region), (3, 1, 0), "one of two files has the row");
        assert_eq!(get(&region, "c", &["q", "r", "s"]).await, 1);
        assert_eq!(
            filters(&region),
            (5, 2, 0),
            "a row filter is checked once, however many columns are requested"
        );
        assert_eq!(get(&region, "z", &[]).await, 0);
        assert_eq!(filters(&region), (5, 2, 0), "after the last row of all files");
        assert_eq!(region.scan_all(&Scan::default()).await.unwrap().results.len(), 4);
        assert_eq!(filters(&region), (5, 2, 0), "scans check no filters");
    });
}

#[test]
fn column_filters_are_checked_for_the_column_and_for_family_markers() {
    run(async {
        let region = opened("ROWCOL").await.region;
        file(&region, &["a", "c", "e"], "q").await;
        file(&region, &["a", "c", "e"], "r").await;
        assert_eq!(get(&region, "c", &["q"]).await, 1);
        assert_eq!(filters(&region), (3, 2, 0), "one lookup in the file with the column, two in the other");
        assert_eq!(get(&region, "c", &[]).await, 2);
        assert_eq!(filters(&region), (3, 2, 0), "a column filter cannot exclude a row");
    });
}

#[test]
fn files_without_filters_are_counted_where_one_would_be_checked() {
    run(async {
        let region = opened("NONE").await.region;
        file(&region, &["a", "c", "e"], "q").await;
        file(&region, &["a", "b", "e"], "q").await;
        assert_eq!(get(&region, "c", &["q", "r"]).await, 1);
        assert_eq!(filters(&region), (0, 0, 2));
        assert_eq!(get(&region, "b", &[]).await, 1);
        assert_eq!(filters(&region), (0, 0, 4));
    });
}

/// The timestamps that a Get of column `q` of row `b` returns, and the number of filter lookups.
async fn timestamps_and_files(region: &Region) -> (Vec<i64>, u64) {
    let before = filters(region).0;
    let row = region.get(&get_of("b", &["q"])).await.unwrap();
    let timestamps = row.cells.iter().map(|(cell, _)| cell.view(0).timestamp()).collect();
    (timestamps, filters(region).0 - before)
}

#[test]
fn files_are_not_read_if_memory_has_a_cell_newer_than_all_of_theirs() {
    run(async {
        let region = opened("ROW").await.region;
        for timestamp in [7, 8] {
            for row in ["a", "b", "c"] {
                change(&region, cell(row, "q", timestamp, CellType::Put), None).await;
            }
            region.flush().await.unwrap();
        }
        assert_eq!(timestamps_and_files(&region).await, (vec![8], 2));
        change(&region, cell("b", "q", 6, CellType::Put), None).await;
        assert_eq!(timestamps_and_files(&region).await, (vec![8], 2), "an older version in memory");
        change(&region, cell("b", "q", 8, CellType::Put), None).await;
        assert_eq!(timestamps_and_files(&region).await, (vec![8], 2), "as new as the one in a file");
        change(&region, cell("b", "r", 20, CellType::Put), None).await;
        assert_eq!(timestamps_and_files(&region).await, (vec![8], 2), "another column, after it");
        change(&region, cell("b", "p", 20, CellType::Put), None).await;
        change(&region, cell("b", "q", 9, CellType::Put), None).await;
        assert_eq!(timestamps_and_files(&region).await, (vec![9], 0), "newest; another column before it");
        assert_eq!(get(&region, "b", &["q", "r"]).await, 2);
        assert_eq!(get(&region, "b", &["q", "s"]).await, 1);
        change(&region, cell("b", "q", 10, CellType::Put), Some(1)).await;
        assert_eq!(timestamps_and_files(&region).await, (vec![9], 2), "an expired cell");
        change(&region, cell("b", "q", 10, CellType::DeleteColumn), None).await;
        assert_eq!(timestamps_and_files(&region).await, (vec![], 2), "all are deleted");
        change(&region, cell("b", "q", 11, CellType::Put), None).await;
        assert_eq!(timestamps_and_files(&region).await, (vec![11], 0), "a newer put");
        change(&region, cell("b", "", 12, CellType::DeleteFamily), None).await;
        assert_eq!(timestamps_and_files(&region).await, (vec![], 2), "the family is deleted");
    });
}
