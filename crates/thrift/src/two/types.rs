//! The structs of the service, and the arguments of its methods. Field numbers are those of
//! HBase's `hbase.thrift`. Enumerations are integers.

use std::collections::BTreeMap;

use bytes::Bytes;
use client::Row;

use crate::protocol::Kind;
use crate::value::{Encode, records};
use crate::writer::Writer;

type Attributes = BTreeMap<Bytes, Bytes>;
type Settings = BTreeMap<String, String>;

/// `TDeleteType`: one version of a column.
pub(super) const DELETE_COLUMN: i32 = 0;
/// `TDeleteType`: all versions of a column.
pub(super) const DELETE_COLUMNS: i32 = 1;
/// `TDeleteType`: a family.
pub(super) const DELETE_FAMILY: i32 = 2;
/// `TDeleteType`: one version of a family.
pub(super) const DELETE_FAMILY_VERSION: i32 = 3;

records! {
    /// A range of timestamps.
    TTimeRange { 1 min: i64, 2 max: i64 }
    /// A family, or a column.
    TColumn { 1 family: Bytes, 2 qualifier: Option<Bytes>, 3 timestamp: Option<i64> }
    /// A column to increment.
    TColumnIncrement { 1 family: Bytes, 2 qualifier: Bytes, 3 amount: i64 = 1 }
    /// A cell of a request.
    TColumnValue { 1 family: Bytes, 2 qualifier: Bytes, 3 value: Bytes, 4 timestamp: Option<i64> }
    /// A read of a row.
    TGet {
        1 row: Bytes,
        2 columns: Option<Vec<TColumn>>,
        3 timestamp: Option<i64>,
        4 time_range: Option<TTimeRange>,
        5 max_versions: Option<i32>,
        6 filter: Option<Bytes>,
        11 cache_blocks: Option<bool>,
        12 store_limit: Option<i32>,
        13 store_offset: Option<i32>,
        14 existence_only: Option<bool>,
        15 filter_message: Option<Bytes>,
    }
    /// A put.
    TPut {
        1 row: Bytes,
        2 cells: Vec<TColumnValue>,
        3 timestamp: Option<i64>,
        5 attributes: Attributes,
        6 durability: Option<i32>,
    }
    /// A delete.
    TDelete {
        1 row: Bytes,
        2 columns: Option<Vec<TColumn>>,
        3 timestamp: Option<i64>,
        4 kind: i32 = DELETE_COLUMNS,
        6 attributes: Option<Attributes>,
        7 durability: Option<i32>,
    }
    /// A put or a delete.
    TMutation { 1 put: Option<TPut>, 2 delete: Option<TDelete> }
    /// Changes of a row.
    TRowMutations { 1 row: Bytes, 2 mutations: Vec<TMutation> }
    /// An increment.
    TIncrement {
        1 row: Bytes,
        2 columns: Vec<TColumnIncrement>,
        4 attributes: Attributes,
        5 durability: Option<i32>,
        7 returns_results: Option<bool>,
    }
    /// An append.
    TAppend {
        1 row: Bytes,
        2 columns: Vec<TColumnValue>,
        3 attributes: Attributes,
        4 durability: Option<i32>,
        6 returns_results: Option<bool>,
    }
    /// A scan.
    TScan {
        1 start: Option<Bytes>,
        2 stop: Option<Bytes>,
        3 columns: Option<Vec<TColumn>>,
        4 caching: Option<i32>,
        5 max_versions: i32 = 1,
        6 time_range: Option<TTimeRange>,
        7 filter: Option<Bytes>,
        8 batch: Option<i32>,
        9 attributes: Attributes,
        11 reversed: Option<bool>,
        12 cache_blocks: Option<bool>,
        13 family_time_ranges: BTreeMap<Bytes, TTimeRange>,
        15 limit: Option<i32>,
        18 filter_message: Option<Bytes>,
    }
    /// A region.
    THRegionInfo {
        1 id: i64,
        2 table: Bytes,
        3 start_key: Bytes,
        4 end_key: Bytes,
        5 offline: bool,
        6 split: bool,
        7 replica: i32,
    }
    /// A server.
    TServerName { 1 host: String, 2 port: Option<i32>, 3 start_code: Option<i64> }
    /// A region and its server.
    THRegionLocation { 1 server: TServerName, 2 region: THRegionInfo }
    /// The name of a table.
    TTableName { 1 namespace: Option<Bytes>, 2 qualifier: Bytes }
    /// A namespace.
    TNamespaceDescriptor { 1 name: String, 2 configuration: Option<Settings> }
    /// A table.
    TTableDescriptor {
        1 name: TTableName,
        2 families: Option<Vec<TColumnFamilyDescriptor>>,
        3 attributes: Option<Attributes>,
        4 durability: Option<i32>,
    }
    /// A family.
    TColumnFamilyDescriptor {
        1 name: Bytes,
        2 attributes: Option<Attributes>,
        3 configuration: Option<Settings>,
        4 block_bytes: Option<i32>,
        5 bloom_filter: Option<i32>,
        6 compression: Option<i32>,
        7 replicas: Option<i16>,
        8 block_encoding: Option<i32>,
        9 keep_deleted_cells: Option<i32>,
        10 max_versions: Option<i32>,
        11 min_versions: Option<i32>,
        12 scope: Option<i32>,
        13 ttl_s: Option<i32>,
        14 block_cache: Option<bool>,
        15 cache_blooms_on_write: Option<bool>,
        16 cache_data_on_write: Option<bool>,
        17 cache_indexes_on_write: Option<bool>,
        18 compress_tags: Option<bool>,
        19 evict_blocks_on_close: Option<bool>,
        20 in_memory: Option<bool>,
    }

    /// Arguments of `exists` and `get`.
    GetArguments { 1 table: Bytes, 2 get: TGet }
    /// Arguments of `existsAll` and `getMultiple`.
    GetsArguments { 1 table: Bytes, 2 gets: Vec<TGet> }
    /// Arguments of `put`.
    PutArguments { 1 table: Bytes, 2 put: TPut }
    /// Arguments of `putMultiple`.
    PutsArguments { 1 table: Bytes, 2 puts: Vec<TPut> }
    /// Arguments of `deleteSingle`.
    DeleteArguments { 1 table: Bytes, 2 delete: TDelete }
    /// Arguments of `deleteMultiple`.
    DeletesArguments { 1 table: Bytes, 2 deletes: Vec<TDelete> }
    /// Arguments of `checkAndPut`.
    CheckAndPut { 1 table: Bytes, 2 row: Bytes, 3 family: Bytes, 4 qualifier: Bytes, 5 value: Option<Bytes>, 6 put: TPut }
    /// Arguments of `checkAndDelete`.
    CheckAndDelete {
        1 table: Bytes,
        2 row: Bytes,
        3 family: Bytes,
        4 qualifier: Bytes,
        5 value: Option<Bytes>,
        6 delete: TDelete,
    }
    /// Arguments of `checkAndMutate`.
    CheckAndMutate {
        1 table: Bytes,
        2 row: Bytes,
        3 family: Bytes,
        4 qualifier: Bytes,
        5 operator: Option<i32>,
        6 value: Option<Bytes>,
        7 mutations: TRowMutations,
    }
    /// Arguments of `mutateRow`.
    MutateRow { 1 table: Bytes, 2 mutations: TRowMutations }
    /// Arguments of `increment`.
    IncrementArguments { 1 table: Bytes, 2 increment: TIncrement }
    /// Arguments of `append`.
    AppendArguments { 1 table: Bytes, 2 append: TAppend }
    /// Arguments of `openScanner`.
    OpenScanner { 1 table: Bytes, 2 scan: TScan }
    /// Arguments of `getScannerRows` and `closeScanner`.
    ScannerRows { 1 id: i32, 2 rows: i32 = 1 }
    /// Arguments of `getScannerResults`.
    ScannerResults { 1 table: Bytes, 2 scan: TScan, 3 rows: i32 = 1 }
    /// Arguments of `getRegionLocation` and `getAllRegionLocations`.
    RegionLocation { 1 table: Bytes, 2 row: Bytes, 3 reload: bool }
    /// Arguments of methods of a table, and of `truncateTable`.
    TableArgument { 1 table: TTableName, 2 preserve_splits: bool }
    /// Arguments of `getTableDescriptors`.
    Tables { 1 tables: Vec<TTableName> }
    /// Arguments of `isTableAvailableWithSplit`.
    TableSplits { 1 table: TTableName, 2 split_keys: Option<Vec<Bytes>> }
    /// Arguments of `getTableDescriptorsByPattern` and `getTableNamesByPattern`.
    Pattern { 1 regex: Option<String>, 2 with_system: bool }
    /// Arguments of methods of a namespace.
    NamespaceName { 1 name: String }
    /// Arguments of `createNamespace` and `modifyNamespace`.
    NamespaceArgument { 1 namespace: TNamespaceDescriptor }
    /// Arguments of `createTable` and `modifyTable`.
    TableDefinition { 1 table: TTableDescriptor, 2 split_keys: Option<Vec<Bytes>> }
    /// Arguments of `addColumnFamily` and `modifyColumnFamily`.
    FamilyDefinition { 1 table: TTableName, 2 family: TColumnFamilyDescriptor }
    /// Arguments of `deleteColumnFamily`.
    FamilyName { 1 table: TTableName, 2 family: Bytes }
}

/// A row as `TResult`.
pub(super) struct RowResult<'a>(pub(super) &'a Row);

impl Encode for RowResult<'_> {
    const KIND: Kind = Kind::Struct;

    fn encode(&self, writer: &mut Writer) {
        let outer = writer.begin_struct();
        if !self.0.is_empty() {
            writer.field(Kind::Binary, 1);
            writer.binary(&[self.0.key()]);
        }
        writer.field(Kind::List, 2);
        writer.elements(Kind::Struct, self.0.cells.len());
        for cell in &self.0.cells {
            encode_cell(&cell.view(0), writer);
        }
        // Whether the row is from a replica, and whether it is incomplete.
        false.encode_field(3, writer);
        false.encode_field(4, writer);
        writer.end_struct(outer);
    }
}

/// A cell as `TColumnValue`.
fn encode_cell(cell: &cell::Cell<'_>, writer: &mut Writer) {
    let outer = writer.begin_struct();
    for (id, part) in [(1, cell.family()), (2, cell.qualifier()), (3, cell.value)] {
        writer.field(Kind::Binary, id);
        writer.binary(&[part]);
    }
    cell.timestamp().encode_field(4, writer);
    if !cell.tags.is_empty() {
        writer.field(Kind::Binary, 5);
        writer.binary(&[cell.tags]);
    }
    cell.type_code().cast_signed().encode_field(6, writer);
    writer.end_struct(outer);
}

/// Rows as a list of `TResult`, including the empty ones.
pub(super) struct RowResults<'a>(pub(super) &'a [Row]);

impl Encode for RowResults<'_> {
    const KIND: Kind = Kind::List;

    fn encode(&self, writer: &mut Writer) {
        writer.elements(Kind::Struct, self.0.len());
        for row in self.0 {
            RowResult(row).encode(writer);
        }
    }
}
