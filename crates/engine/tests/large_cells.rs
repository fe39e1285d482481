//! Large values, which a sink may retain without copying: which values are offered, and that
//! results are the same.

use std::sync::Arc;

use crate::common::world::{Opened, open_table, options, run};
use bytes::Bytes;
use cell::cell::CellType;
use cell::filter::Filter;
use cell::mutation::Mutation;
use cell::query::{CellSelection, Get, Scan};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{Cell, KeyValue};
use engine::Region;
use engine::scanner::{CellList, Limits, ResultEnd, ResultSink, drive};
use fs::FileSystem;
use fs::memory::MemoryFs;

/// Rows and the lengths of their values. The first four share a block, of which `d` is more than
/// half. `e` has its own block.
const ROWS: [(&str, usize); 5] = [("a", 100), ("b", 3000), ("c", 40_000), ("d", 200_000), ("e", 70_000)];

/// Retains all large values.
#[derive(Default)]
struct RetainingSink {
    list: CellList,
    retained: Vec<Bytes>,
}

impl ResultSink for RetainingSink {
    fn begin_result(&mut self, continues_row: bool) {
        self.list.begin_result(continues_row);
    }
    fn cell(&mut self, cell: &Cell<'_>) {
        self.list.cell(cell);
    }
    fn large_cell(&mut self, cell: &Cell<'_>, value: Bytes) {
        assert_eq!(value, cell.value);
        self.list.cell(cell);
        self.retained.push(value);
    }
    fn end_result(&mut self, end: ResultEnd) {
        self.list.end_result(end);
    }
    fn rollback_row(&mut self) {
        self.list.rollback_row();
    }
    fn bytes(&self) -> usize {
        self.list.bytes()
    }
}

async fn opened(attributes: &[(&str, &str)]) -> Opened {
    let fs: Arc<dyn FileSystem> = Arc::new(MemoryFs::new());
    let named = |family: FamilyDescriptor, (name, value): &(&str, &str)| family.with(name, value);
    let family = attributes.iter().fold(FamilyDescriptor::new("f"), named);
    let table = TableDescriptor::new(TableName::parse("t").unwrap()).with_family(family);
    let opened = open_table(&base::testing::env(5), fs, options(), &table).await.unwrap();
    for (row, len) in ROWS {
        let value: Vec<u8> = (0..len).map(|at| (at * 7 % 251) as u8).collect();
        let cell = KeyValue::new(row.as_bytes(), b"f", b"q", 1, CellType::Put, &value);
        opened
            .region
            .batch(vec![Mutation::put(row.as_bytes().to_vec(), vec![cell])])
            .await
            .remove(0)
            .unwrap();
    }
    opened
}

/// Lengths of the values that may be retained, by Gets of all rows and by a scan. Checks that
/// results equal those of a copying sink.
async fn retained(region: &Region, selection: CellSelection) -> [Vec<usize>; 2] {
    let mut of_gets = Vec::new();
    let mut gotten = Vec::new();
    for (row, _) in ROWS {
        let get = Get { row: row.into(), selection: selection.clone().into(), existence_only: false };
        let mut sink = RetainingSink::default();
        region.row_reader(&get.selection).read(&get, &mut sink).await.unwrap();
        assert_eq!(sink.list.cells, region.get(&get).await.unwrap().cells);
        gotten.extend(sink.list.cells);
        of_gets.extend(sink.retained.iter().map(Bytes::len));
    }
    let mut scanner = region.scanner(&Scan { selection, ..Scan::default() }).unwrap();
    let mut sink = RetainingSink::default();
    drive(&mut scanner, &mut Limits::default(), &mut sink).await.unwrap();
    assert_eq!(sink.list.cells, gotten);
    [of_gets, sink.retained.iter().map(Bytes::len).collect()]
}

#[test]
fn large_values_of_files_can_be_retained() {
    run(async {
        for encoding in ["NONE", "FAST_DIFF", "ROW_INDEX_V1"] {
            for compression in ["NONE", "SNAPPY"] {
                let attributes = [("DATA_BLOCK_ENCODING", encoding), ("COMPRESSION", compression)];
                let opened = opened(&attributes).await;
                let none: [Vec<usize>; 2] = Default::default();
                let all = CellSelection::default;
                assert_eq!(retained(&opened.region, all()).await, none, "memstores offer none");
                opened.region.flush().await.unwrap();
                let [of_gets, of_scan] = retained(&opened.region, all()).await;
                assert_eq!((&of_gets, &of_scan), (&vec![200_000, 70_000], &of_gets), "{attributes:?}");
                let keys = CellSelection {
                    filter: Some(Arc::new(Filter::KeyOnly { len_as_val: true })),
                    ..CellSelection::default()
                };
                assert_eq!(
                    retained(&opened.region, keys).await,
                    none,
                    "the filter has replaced the values, so none may be kept"
                );
            }
        }
    });
}
