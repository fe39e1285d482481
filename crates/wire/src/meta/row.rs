//! Parses a region's row, and builds mutations of rows.

use std::collections::BTreeMap;

use bytes::Bytes;
use cell::mutation::Mutation;
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use cell::{Cell, CellType, KeyValue, LATEST_TIMESTAMP};
use proto::magic::{with_magic, without_magic};

use crate::meta::{
    INFO, MERGE_PREFIX, MetaRegionState, OPEN_SEQ_NUM, REGION_INFO, SERVER, SERVER_NAME, SPLIT_A, SPLIT_B,
    START_CODE, STATE, TABLE, TableState, region_row, table_row,
};

/// The contents of a region's row in `hbase:meta` (of its default replica).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaRow {
    /// The region.
    pub region: RegionInfo,
    /// The host and port of the server that serves the region or served it last.
    pub server: Option<(String, u16)>,
    /// The start code of that server.
    pub start_code: Option<u64>,
    /// The region's highest sequence id when that server opened it.
    pub open_seq_num: Option<i64>,
    /// The server that is to open the region.
    pub target: Option<ServerName>,
    /// The region's state.
    pub state: Option<MetaRegionState>,
    /// Its daughters, if it was split.
    pub daughters: Vec<RegionInfo>,
    /// The regions that were merged into it and are not cleaned up yet.
    pub merged_from: Vec<RegionInfo>,
}

impl MetaRow {
    /// Parses the cells of one row; of several versions of a column, the first counts. Returns
    /// `None` without a readable `info:regioninfo`: such a row belongs to a table, or clients skip
    /// it too. Other unreadable columns count as absent.
    pub fn parse<'a>(cells: impl IntoIterator<Item = Cell<'a>>) -> Option<MetaRow> {
        let mut region = None;
        let mut seen = Columns::default();
        for cell in cells.into_iter().filter(|cell| cell.family() == INFO) {
            match cell.qualifier() {
                REGION_INFO if region.is_none() => region = parse_region(cell.value),
                qualifier => seen.take(qualifier, cell.value),
            }
        }
        Some(MetaRow {
            region: region?,
            server: seen.server,
            start_code: seen.start_code.map(i64::cast_unsigned),
            open_seq_num: seen.open_seq_num,
            target: seen.target,
            state: seen.state,
            daughters: seen.split_a.into_iter().chain(seen.split_b).collect(),
            merged_from: seen.merged_from.into_values().collect(),
        })
    }

    /// The name of the server that serves the region or served it last.
    pub fn server_name(&self) -> Option<ServerName> {
        let (host, port) = self.server.clone()?;
        Some(ServerName { host, port, start_code: self.start_code? })
    }

    /// Whether the region was split and is offline, so that clients skip its row.
    pub fn is_split_parent(&self) -> bool {
        self.region.split && self.region.offline
    }
}

/// The columns of a row that have been read so far.
#[derive(Default)]
struct Columns {
    server: Option<(String, u16)>,
    start_code: Option<i64>,
    open_seq_num: Option<i64>,
    target: Option<ServerName>,
    state: Option<MetaRegionState>,
    split_a: Option<RegionInfo>,
    split_b: Option<RegionInfo>,
    merged_from: BTreeMap<Vec<u8>, RegionInfo>,
}

impl Columns {
    fn take(&mut self, qualifier: &[u8], value: &[u8]) {
        match qualifier {
            SERVER => keep_first(&mut self.server, || parse_server(value)),
            START_CODE => keep_first(&mut self.start_code, || parse_long(value)),
            OPEN_SEQ_NUM => keep_first(&mut self.open_seq_num, || parse_long(value)),
            SERVER_NAME => {
                keep_first(&mut self.target, || ServerName::parse(std::str::from_utf8(value).ok()?))
            }
            STATE => keep_first(&mut self.state, || MetaRegionState::parse(value)),
            SPLIT_A => keep_first(&mut self.split_a, || parse_region(value)),
            SPLIT_B => keep_first(&mut self.split_b, || parse_region(value)),
            _ if is_merge_qualifier(qualifier) => {
                if let Some(region) = parse_region(value) {
                    self.merged_from.entry(qualifier.to_vec()).or_insert(region);
                }
            }
            _ => {}
        }
    }
}

/// Source: HBase `CatalogFamilyFormat.isMergeQualifierPrefix`.
fn is_merge_qualifier(qualifier: &[u8]) -> bool {
    qualifier.starts_with(MERGE_PREFIX)
}

fn keep_first<T>(field: &mut Option<T>, value: impl FnOnce() -> Option<T>) {
    if field.is_none() {
        *field = value();
    }
}

/// Parses a region in a column of `hbase:meta`; `None` if the value is not a region.
pub fn parse_region(value: &[u8]) -> Option<RegionInfo> {
    let message: proto::RegionInfo = without_magic(&Bytes::copy_from_slice(value)).ok()?;
    RegionInfo::try_from(&message).ok()
}

fn parse_server(value: &[u8]) -> Option<(String, u16)> {
    let (host, port) = std::str::from_utf8(value).ok()?.rsplit_once(':')?;
    Some((host.to_string(), port.parse().ok()?))
}

fn parse_long(value: &[u8]) -> Option<i64> {
    value.try_into().ok().map(i64::from_be_bytes)
}

/// The state in a table's row; `None` if the row has no readable state.
pub fn parse_table_state<'a>(cells: impl IntoIterator<Item = Cell<'a>>) -> Option<TableState> {
    let mut states = cells.into_iter().filter(|cell| cell.family() == TABLE && cell.qualifier() == STATE);
    TableState::from_bytes(states.next()?.value)
}

/// Writes a region and its state, for a new region or a changed descriptor.
pub fn put_region(region: &RegionInfo, state: MetaRegionState) -> Mutation {
    put(region, |row| vec![region_info_cell(row, region), state_cell(row, state)])
}

/// Records that `server` is about to open the region.
pub fn put_opening(region: &RegionInfo, server: &ServerName) -> Mutation {
    put(region, |row| {
        vec![
            region_info_cell(row, region),
            info_cell(row, SERVER_NAME, server.to_string().as_bytes()),
            state_cell(row, MetaRegionState::Opening),
        ]
    })
}

/// Records that `server` serves the region, which it opened with sequence id `open_seq_num`.
pub fn put_open(region: &RegionInfo, server: &ServerName, open_seq_num: i64) -> Mutation {
    put(region, |row| {
        vec![
            region_info_cell(row, region),
            info_cell(row, SERVER, format!("{}:{}", server.host, server.port).as_bytes()),
            info_cell(row, START_CODE, &server.start_code.to_be_bytes()),
            info_cell(row, OPEN_SEQ_NUM, &open_seq_num.to_be_bytes()),
            state_cell(row, MetaRegionState::Open),
        ]
    })
}

/// Records a new state of the region; its location stays the same.
pub fn put_state(region: &RegionInfo, state: MetaRegionState) -> Mutation {
    put(region, |row| vec![region_info_cell(row, region), state_cell(row, state)])
}

/// The open sequence number of a region that was never opened (HBase: "openSeqNum = 1 is fine").
const FIRST_OPEN_SEQ_NUM: i64 = 1;

/// Records that the region was split: it is offline, and its row names its daughters.
pub fn put_split_parent(parent: &RegionInfo, daughters: &[RegionInfo; 2]) -> Mutation {
    let parent = RegionInfo { split: true, offline: true, ..parent.clone() };
    put(&parent, |row| {
        vec![
            region_info_cell(row, &parent),
            region_cell(row, SPLIT_A, &daughters[0]),
            region_cell(row, SPLIT_B, &daughters[1]),
        ]
    })
}

/// Records a daughter or merged region that no server has opened yet. A merged region names its
/// `parents`.
pub fn put_new_region(region: &RegionInfo, parents: &[RegionInfo]) -> Mutation {
    put(region, |row| {
        let mut cells = vec![
            region_info_cell(row, region),
            info_cell(row, OPEN_SEQ_NUM, &FIRST_OPEN_SEQ_NUM.to_be_bytes()),
            state_cell(row, MetaRegionState::Closed),
        ];
        let parents = parents.iter().enumerate();
        cells.extend(parents.map(|(at, parent)| region_cell(row, &merge_qualifier(at), parent)));
        cells
    })
}

/// Removes the references to the regions that were merged into this one.
pub fn delete_merge_parents(region: &RegionInfo, parents: usize) -> Mutation {
    let row = region_row(region);
    let cells = (0..parents).map(|at| {
        KeyValue::new(&row, INFO, &merge_qualifier(at), LATEST_TIMESTAMP, CellType::DeleteColumn, b"")
    });
    Mutation::delete(row.clone(), cells.collect())
}

fn merge_qualifier(at: usize) -> Vec<u8> {
    [MERGE_PREFIX, format!("{at:04}").as_bytes()].concat()
}

/// Deletes the region's row.
pub fn delete_region(region: &RegionInfo) -> Mutation {
    Mutation::delete(region_row(region), Vec::new())
}

/// Deletes what a split recorded in the row of its parent, which exists again.
pub fn delete_daughters(parent: &RegionInfo) -> Mutation {
    let row = region_row(parent);
    let delete = |column| KeyValue::new(&row, INFO, column, LATEST_TIMESTAMP, CellType::DeleteColumn, b"");
    let cells = [SPLIT_A, SPLIT_B].map(delete).into();
    Mutation::delete(row, cells)
}

/// Writes the table's state.
pub fn put_table_state(table: &TableName, state: TableState) -> Mutation {
    let row = table_row(table);
    let cell = KeyValue::new(&row, TABLE, STATE, LATEST_TIMESTAMP, CellType::Put, &state.to_bytes());
    Mutation::put(row, vec![cell])
}

/// Deletes the table's row.
pub fn delete_table(table: &TableName) -> Mutation {
    Mutation::delete(table_row(table), Vec::new())
}

fn put(region: &RegionInfo, cells: impl FnOnce(&[u8]) -> Vec<KeyValue>) -> Mutation {
    let row = region_row(region);
    let mut cells = cells(&row);
    cells.sort_by(|left, right| left.view(0).qualifier().cmp(right.view(0).qualifier()));
    debug_assert!(
        cells.windows(2).all(|pair| pair[0].view(0).qualifier() != pair[1].view(0).qualifier()),
        "a row is written with one cell per column"
    );
    Mutation::put(row, cells)
}

fn info_cell(row: &[u8], qualifier: &[u8], value: &[u8]) -> KeyValue {
    KeyValue::new(row, INFO, qualifier, LATEST_TIMESTAMP, CellType::Put, value)
}

fn region_info_cell(row: &[u8], region: &RegionInfo) -> KeyValue {
    let owner = RegionInfo { replica_id: 0, ..region.clone() };
    info_cell(row, REGION_INFO, &with_magic(&proto::RegionInfo::from(&owner)))
}

fn region_cell(row: &[u8], qualifier: &[u8], region: &RegionInfo) -> KeyValue {
    info_cell(row, qualifier, &with_magic(&proto::RegionInfo::from(region)))
}

fn state_cell(row: &[u8], state: MetaRegionState) -> KeyValue {
    info_cell(row, STATE, state.as_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region() -> RegionInfo {
        RegionInfo::new(TableName::parse("ns1:t").unwrap(), "g".into(), "p".into(), 1_700_000_000_000)
    }

    fn server() -> ServerName {
        ServerName { host: "h1".into(), port: 16020, start_code: 1_700_000_000_123 }
    }

    fn parse(mutations: &[Mutation]) -> Option<MetaRow> {
        MetaRow::parse(mutations.iter().flat_map(|mutation| &mutation.cells).map(|cell| cell.view(0)))
    }

    #[test]
    fn an_open_region_is_read_back() {
        let row = parse(&[put_open(&region(), &server(), 42)]).unwrap();
        assert_eq!(row.region, region());
        assert_eq!(row.server_name(), Some(server()));
        assert_eq!((row.open_seq_num, row.state), (Some(42), Some(MetaRegionState::Open)));
        assert!(!row.is_split_parent());
    }

    #[test]
    fn the_newest_cell_counts() {
        let closing = put_state(&region(), MetaRegionState::Closing);
        let row =
            parse(&[closing, put_opening(&region(), &server()), put_open(&region(), &server(), 2)]).unwrap();
        assert_eq!(row.state, Some(MetaRegionState::Closing));
        assert_eq!(row.target, Some(server()));
        assert_eq!(row.server_name(), Some(server()), "the server's columns stay");
    }

    #[test]
    fn parents_and_children_name_each_other() {
        let half = |start: &'static str, end: &'static str| {
            RegionInfo::new(region().table, start.into(), end.into(), 1_700_000_000_001)
        };
        let daughters = [half("g", "k"), half("k", "p")];
        let parent = parse(&[put_split_parent(&region(), &daughters)]).unwrap();
        assert!(parent.is_split_parent());
        assert_eq!(parent.daughters, daughters);
        let new = put_new_region(&region(), &daughters);
        let merged = parse(std::slice::from_ref(&new)).unwrap();
        assert_eq!(merged.merged_from, daughters);
        assert_eq!((merged.open_seq_num, merged.state), (Some(1), Some(MetaRegionState::Closed)));
        let gone = delete_merge_parents(&region(), 2);
        let names = |mutation: &Mutation| -> Vec<Vec<u8>> {
            let names = mutation.cells.iter().map(|cell| cell.view(0).qualifier().to_vec());
            names.filter(|name| is_merge_qualifier(name)).collect()
        };
        assert_eq!(names(&gone), names(&new));
    }

    #[test]
    fn cells_are_in_order_and_of_the_row() {
        for mutation in [put_open(&region(), &server(), 42), put_opening(&region(), &server())] {
            assert!(mutation.cells.is_sorted_by(|a, b| a.view(0).qualifier() < b.view(0).qualifier()));
            assert!(mutation.cells.iter().all(|cell| cell.view(0).row() == mutation.row));
        }
    }

    #[test]
    fn rows_without_a_region_are_skipped() {
        assert_eq!(parse(&[]), None);
        let state = put_table_state(&region().table, TableState::Enabling);
        assert_eq!(parse(std::slice::from_ref(&state)), None);
        let cells = state.cells.iter().map(|cell| cell.view(0));
        assert_eq!(parse_table_state(cells), Some(TableState::Enabling));
        let row = region_row(&region());
        let rubbish = Mutation::put(row.clone(), vec![info_cell(&row, REGION_INFO, b"rubbish")]);
        assert_eq!(parse(&[rubbish]), None);
    }
}
