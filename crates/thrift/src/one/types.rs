//! The structs of the service, and the arguments of its methods. Field numbers are those of
//! HBase's `Hbase.thrift`.

use std::collections::BTreeMap;

use bytes::Bytes;
use client::Row as ClientRow;

use crate::protocol::Kind;
use crate::value::{Encode, records};
use crate::writer::Writer;

type Attributes = BTreeMap<Bytes, Bytes>;

records! {
    /// A family of a table (`ColumnDescriptor`).
    Family {
        1 name: Bytes,
        2 max_versions: i32 = 3,
        3 compression: String = "NONE".into(),
        4 in_memory: bool,
        5 bloom_filter: String = "NONE".into(),
        6 bloom_filter_vector_size: i32,
        7 bloom_filter_hashes: i32,
        8 block_cache: bool,
        9 ttl_s: i32 = i32::MAX,
    }
    /// A region and its server (`TRegionInfo`).
    RegionInfo {
        1 start_key: Bytes,
        2 end_key: Bytes,
        3 id: i64,
        4 name: Bytes,
        5 version: i8 = 1,
        6 server: Option<Bytes>,
        7 port: Option<i32>,
    }
    /// A put or delete of a column.
    Mutation { 1 is_delete: bool, 2 column: Bytes, 3 value: Bytes, 4 uses_wal: bool = true }
    /// The mutations of a row.
    BatchMutation { 1 row: Bytes, 2 mutations: Vec<Mutation> }
    /// An increment of a column.
    TIncrement { 1 table: Bytes, 2 row: Bytes, 3 column: Bytes, 4 amount: i64 }
    /// Values to append to columns.
    TAppend { 1 table: Bytes, 2 row: Bytes, 3 columns: Vec<Bytes>, 4 values: Vec<Bytes> }
    /// A scan.
    TScan {
        1 start: Option<Bytes>,
        2 stop: Option<Bytes>,
        3 timestamp: Option<i64>,
        4 columns: Option<Vec<Bytes>>,
        5 caching: Option<i32>,
        6 filter: Option<Bytes>,
        7 batch: Option<i32>,
        8 sort_columns: Option<bool>,
        9 reversed: Option<bool>,
        10 cache_blocks: Option<bool>,
    }

    /// Arguments of methods of a table.
    TableArgument { 1 table: Bytes }
    /// Arguments of `getRegionInfo`.
    Region { 1 row: Bytes }
    /// Arguments of `createTable`.
    CreateTable { 1 table: Bytes, 2 families: Vec<Family> }
    /// Arguments of `get`.
    GetColumn { 1 table: Bytes, 2 row: Bytes, 3 column: Bytes }
    /// Arguments of `getVer`.
    GetVersions { 1 table: Bytes, 2 row: Bytes, 3 column: Bytes, 4 versions: i32 }
    /// Arguments of `getVerTs`.
    GetColumnAt { 1 table: Bytes, 2 row: Bytes, 3 column: Bytes, 4 timestamp: i64, 5 versions: i32 }
    /// Arguments of `getRow`.
    Row { 1 table: Bytes, 2 row: Bytes }
    /// Arguments of `getRowWithColumns`.
    RowColumns { 1 table: Bytes, 2 row: Bytes, 3 columns: Option<Vec<Bytes>> }
    /// Arguments of `getRowTs`.
    RowAt { 1 table: Bytes, 2 row: Bytes, 3 timestamp: i64 }
    /// Arguments of `getRowWithColumnsTs`.
    RowColumnsAt { 1 table: Bytes, 2 row: Bytes, 3 columns: Option<Vec<Bytes>>, 4 timestamp: i64 }
    /// Arguments of `getRows`.
    Rows { 1 table: Bytes, 2 rows: Vec<Bytes> }
    /// Arguments of `getRowsWithColumns`.
    RowsColumns { 1 table: Bytes, 2 rows: Vec<Bytes>, 3 columns: Option<Vec<Bytes>> }
    /// Arguments of `getRowsTs`.
    RowsAt { 1 table: Bytes, 2 rows: Vec<Bytes>, 3 timestamp: i64 }
    /// Arguments of `getRowsWithColumnsTs`.
    RowsColumnsAt { 1 table: Bytes, 2 rows: Vec<Bytes>, 3 columns: Option<Vec<Bytes>>, 4 timestamp: i64 }
    /// Arguments of `mutateRow`.
    MutateRow { 1 table: Bytes, 2 row: Bytes, 3 mutations: Vec<Mutation>, 4 attributes: Attributes }
    /// Arguments of `mutateRowTs`.
    MutateRowAt {
        1 table: Bytes,
        2 row: Bytes,
        3 mutations: Vec<Mutation>,
        4 timestamp: i64,
        5 attributes: Attributes,
    }
    /// Arguments of `mutateRows`.
    MutateRows { 1 table: Bytes, 2 batches: Vec<BatchMutation>, 3 attributes: Attributes }
    /// Arguments of `mutateRowsTs`.
    MutateRowsAt { 1 table: Bytes, 2 batches: Vec<BatchMutation>, 3 timestamp: i64, 4 attributes: Attributes }
    /// Arguments of `deleteAll` and, with a timestamp, `deleteAllTs`.
    DeleteColumn { 1 table: Bytes, 2 row: Bytes, 3 column: Bytes, 4 timestamp: Option<i64> }
    /// Arguments of `deleteAllRow` and, with a timestamp, `deleteAllRowTs`.
    DeleteRow { 1 table: Bytes, 2 row: Bytes, 3 timestamp: Option<i64> }
    /// Arguments of `atomicIncrement`.
    AtomicIncrement { 1 table: Bytes, 2 row: Bytes, 3 column: Bytes, 4 value: i64 }
    /// Arguments of `increment`.
    Increment { 1 increment: TIncrement }
    /// Arguments of `incrementRows`.
    Increments { 1 increments: Vec<TIncrement> }
    /// Arguments of `append`.
    Append { 1 append: TAppend }
    /// Arguments of `checkAndPut`.
    CheckAndPut {
        1 table: Bytes,
        2 row: Bytes,
        3 column: Bytes,
        5 value: Option<Bytes>,
        6 put: Mutation,
        7 attributes: Attributes,
    }
    /// Arguments of `scannerGet` and `scannerClose`.
    ScannerId { 1 id: i32 }
    /// Arguments of `scannerGetList`.
    ScannerRows { 1 id: i32, 2 rows: i32 }
    /// Arguments of `scannerOpenWithScan`.
    OpenScan { 1 table: Bytes, 2 scan: TScan, 3 attributes: Attributes }
    /// Arguments of `scannerOpen`.
    OpenScanner { 1 table: Bytes, 2 start: Bytes, 3 columns: Option<Vec<Bytes>>, 4 attributes: Attributes }
    /// Arguments of `scannerOpenTs`.
    OpenScannerAt {
        1 table: Bytes,
        2 start: Bytes,
        3 columns: Option<Vec<Bytes>>,
        4 timestamp: i64,
        5 attributes: Attributes,
    }
    /// Arguments of `scannerOpenWithStop`.
    OpenScannerWithStop {
        1 table: Bytes,
        2 start: Bytes,
        3 stop: Bytes,
        4 columns: Option<Vec<Bytes>>,
        5 attributes: Attributes,
    }
    /// Arguments of `scannerOpenWithStopTs`.
    OpenScannerWithStopAt {
        1 table: Bytes,
        2 start: Bytes,
        3 stop: Bytes,
        4 columns: Option<Vec<Bytes>>,
        5 timestamp: i64,
        6 attributes: Attributes,
    }
    /// Arguments of `scannerOpenWithPrefix`.
    OpenPrefix { 1 table: Bytes, 2 prefix: Bytes, 3 columns: Option<Vec<Bytes>>, 4 attributes: Attributes }
}

/// A cell's value and timestamp (`TCell`).
struct CellResult<'a>(cell::Cell<'a>);

impl Encode for CellResult<'_> {
    const KIND: Kind = Kind::Struct;

    fn encode(&self, writer: &mut Writer) {
        let outer = writer.begin_struct();
        writer.field(Kind::Binary, 1);
        writer.binary(&[self.0.value]);
        self.0.timestamp().encode_field(2, writer);
        writer.end_struct(outer);
    }
}

/// Cells as a list of `TCell`.
pub(super) struct CellResults<'a>(pub(super) &'a ClientRow);

impl Encode for CellResults<'_> {
    const KIND: Kind = Kind::List;

    fn encode(&self, writer: &mut Writer) {
        writer.elements(Kind::Struct, self.0.cells.len());
        for cell in &self.0.cells {
            CellResult(cell.view(0)).encode(writer);
        }
    }
}

/// Rows as a list of `TRowResult`, without the empty ones.
pub(super) struct RowResults<'a> {
    pub(super) rows: &'a [ClientRow],
    /// Whether columns are a list in the order of the scan, or a map.
    pub(super) has_sorted_columns: bool,
}

impl Encode for RowResults<'_> {
    const KIND: Kind = Kind::List;

    fn encode(&self, writer: &mut Writer) {
        let rows = || self.rows.iter().filter(|row| !row.is_empty());
        writer.elements(Kind::Struct, rows().count());
        for row in rows() {
            let outer = writer.begin_struct();
            writer.field(Kind::Binary, 1);
            writer.binary(&[row.key()]);
            if self.has_sorted_columns {
                writer.field(Kind::List, 3);
                encode_list(row, writer);
            } else {
                writer.field(Kind::Map, 2);
                encode_map(row, writer);
            }
            writer.end_struct(outer);
        }
    }
}

/// Columns as a list of `TColumn`.
fn encode_list(row: &ClientRow, writer: &mut Writer) {
    writer.elements(Kind::Struct, row.cells.len());
    for cell in &row.cells {
        let cell = cell.view(0);
        let outer = writer.begin_struct();
        writer.field(Kind::Binary, 1);
        writer.binary(&[cell.family(), b":", cell.qualifier()]);
        CellResult(cell).encode_field(2, writer);
        writer.end_struct(outer);
    }
}

/// Columns as a map. As in HBase, the last cell of a column replaces the others, and names are in
/// the order of signed bytes.
fn encode_map(row: &ClientRow, writer: &mut Writer) {
    fn signed(bytes: &[u8]) -> impl Iterator<Item = i8> {
        bytes.iter().map(|byte| byte.cast_signed())
    }
    let mut columns: Vec<cell::Cell<'_>> = Vec::with_capacity(row.cells.len());
    for cell in row.cells.iter().map(|cell| cell.view(0)) {
        match columns.last_mut() {
            Some(last) if (last.family(), last.qualifier()) == (cell.family(), cell.qualifier()) => {
                *last = cell;
            }
            _ => columns.push(cell),
        }
    }
    let order = |cell: &cell::Cell<'_>, other: &cell::Cell<'_>| {
        let name = |bytes: (&[u8], &[u8])| [bytes.0, b":", bytes.1].concat();
        let names = (name((cell.family(), cell.qualifier())), name((other.family(), other.qualifier())));
        signed(&names.0).cmp(signed(&names.1))
    };
    let is_ascii = columns.iter().all(|cell| cell.family().is_ascii() && cell.qualifier().is_ascii());
    // Cells are in this order already, unless families differ in length or bytes are negative.
    let has_one_family = columns.windows(2).all(|pair| pair[0].family() == pair[1].family());
    if !(is_ascii && has_one_family) {
        columns.sort_by(order);
    }
    writer.pairs((Kind::Binary, Kind::Struct), columns.len());
    for cell in columns {
        writer.binary(&[cell.family(), b":", cell.qualifier()]);
        CellResult(cell).encode(writer);
    }
}
