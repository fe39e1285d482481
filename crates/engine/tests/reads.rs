//! What reads tell of the stores they read: where rows were, and what Bloom filters were asked.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

mod common;

use std::sync::Arc;

use cell::KeyValue;
use cell::cell::CellType;
use cell::mutation::Mutation;
use cell::query::{CellSelection, FamilyColumns, Get, GetsAlike, Scan};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use common::world::{Opened, open_table, options, run};
use engine::Region;
use engine::region::StoreFigures;
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
    let cell = KeyValue::new(row.as_bytes(), b"f", qualifier.as_bytes(), 1, CellType::Put, b"value");
    region.batch(vec![Mutation::put(row.as_bytes().to_vec(), vec![cell])]).await.remove(0).unwrap();
}

/// Writes rows into a file of their own.
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

fn of(region: &Region) -> StoreFigures {
    region.figures().stores.remove(0)
}

/// Rows from memory and from files.
fn rows(region: &Region) -> (u64, u64) {
    (of(region).memstore_reads, of(region).mixed_reads)
}

/// Looks into filters, those that said no, and files without one.
fn filters(region: &Region) -> (u64, u64, u64) {
    let store = of(region);
    (store.filter_looks, store.filter_negatives, store.filters_missing)
}

#[test]
fn rows_are_counted_by_where_their_cells_are() {
    run(async {
        let region = opened("ROW").await.region;
        put(&region, "a", "q").await;
        assert_eq!(get(&region, "a", &[]).await, 1);
        assert_eq!(get(&region, "none", &[]).await, 0);
        assert_eq!(rows(&region), (1, 0), "a row that is not there counts nowhere");
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
        let mut gets = GetsAlike::new(get_of("a", &["q"]), "bcd".into());
        (0..3).for_each(|at| gets.push(at..at + 1));
        let mut reads = region.reads(&gets);
        let mut list = engine::scanner::CellList::default();
        for at in 0..gets.len() {
            assert!(reads.get_now(at, &mut list), "all is in memory");
        }
        drop(reads);
        assert_eq!(rows(&region), (1, 3));
    });
}

#[test]
fn filters_are_counted_as_often_as_they_are_asked() {
    run(async {
        let region = opened("ROW").await.region;
        file(&region, &["a", "c", "e"], "q").await;
        assert_eq!(get(&region, "c", &[]).await, 1);
        assert_eq!(filters(&region), (1, 0, 0), "blocks have to be loaded, so the filter is asked");
        assert_eq!(get(&region, "c", &[]).await, 1);
        assert_eq!(
            filters(&region),
            (1, 0, 0),
            "the only file is searched at once where its blocks are there"
        );
        file(&region, &["a", "b", "e"], "q").await;
        assert_eq!(get(&region, "c", &["q"]).await, 1);
        assert_eq!(filters(&region), (3, 1, 0), "one of two files has the row");
        assert_eq!(get(&region, "c", &["q", "r", "s"]).await, 1);
        assert_eq!(
            filters(&region),
            (5, 2, 0),
            "a filter of rows is asked once, whatever columns are wanted"
        );
        assert_eq!(get(&region, "z", &[]).await, 0);
        assert_eq!(filters(&region), (5, 2, 0), "behind the last row of all files");
        assert_eq!(region.scan_all(&Scan::default()).await.unwrap().results.len(), 4);
        assert_eq!(filters(&region), (5, 2, 0), "scans ask no filters");
    });
}

#[test]
fn filters_of_columns_are_looked_into_for_the_column_and_for_markers_of_the_family() {
    run(async {
        let region = opened("ROWCOL").await.region;
        file(&region, &["a", "c", "e"], "q").await;
        file(&region, &["a", "c", "e"], "r").await;
        assert_eq!(get(&region, "c", &["q"]).await, 1);
        assert_eq!(filters(&region), (3, 2, 0), "one look where it is, two where it is not");
        assert_eq!(get(&region, "c", &[]).await, 2);
        assert_eq!(filters(&region), (3, 2, 0), "a filter of columns says nothing of a row");
    });
}

#[test]
fn files_without_filters_are_counted_where_one_would_be_asked() {
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
