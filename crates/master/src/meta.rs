//! The rows of `hbase:meta`, read and written through the region server on which it is online.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::BytesMut;
use cell::codec::Codec;
use cell::mutation::Mutation;
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use cell::{Cell, KeyValue};
use proto::exception::{Answer, JavaException};
use wire::meta::{self, MetaRegionState, MetaRow, TableState, row};
use wire::service::{CellRequest, ClientService};

use crate::connections::Connections;
use crate::integrity::{self, Integrity};
use crate::location::MetaLocation;

/// Rows fetched per call.
const ROWS_PER_CALL: u32 = 1000;

/// Reads and writes `hbase:meta` on the server where it is online.
pub struct MetaTable {
    location: Arc<MetaLocation>,
    connections: Arc<dyn Connections>,
    integrity: Arc<Integrity>,
    // When this master became active. The server refuses writes of a master that was replaced.
    active_since_ms: u64,
}

/// The contents of `hbase:meta`.
#[derive(Debug, Default)]
pub struct MetaContent {
    /// Tables and their states.
    pub tables: Vec<(TableName, TableState)>,
    /// Regions of all tables, including split parents.
    pub regions: Vec<MetaRow>,
}

impl MetaTable {
    /// Creates access to `hbase:meta` at `location`. Edits that would create holes or overlaps of
    /// regions are not written. `integrity` stores them.
    pub fn new(
        location: Arc<MetaLocation>,
        connections: Arc<dyn Connections>,
        integrity: Arc<Integrity>,
        active_since_ms: u64,
    ) -> MetaTable {
        MetaTable { location, connections, integrity, active_since_ms }
    }

    /// The location of `hbase:meta`.
    pub fn location(&self) -> &MetaLocation {
        &self.location
    }

    /// Reads all tables and regions.
    ///
    /// # Errors
    /// The server's error.
    pub async fn read_all(&self) -> Answer<MetaContent> {
        let mut content = MetaContent::default();
        for cells in scan_rows(&*self.client().await, &RegionInfo::meta()).await? {
            content.add_row(&cells);
        }
        Ok(content)
    }

    /// The regions of a table, including split parents.
    ///
    /// # Errors
    /// The server's error.
    pub async fn regions_of(&self, table: &TableName) -> Answer<Vec<RegionInfo>> {
        let (first, after) = meta::region_rows(table);
        let scan = proto::Scan { start_row: Some(first), stop_row: Some(after), ..proto::Scan::default() };
        let rows = scan_rows_in(&*self.client().await, &RegionInfo::meta(), scan).await?;
        let row = |cells: &Vec<KeyValue>| MetaRow::parse(cells.iter().map(|cell| cell.view(0)));
        Ok(rows
            .iter()
            .filter_map(row)
            .map(|row| row.region)
            .filter(|region| region.table == *table)
            .collect())
    }

    /// Checks that no other master became active later.
    ///
    /// # Errors
    /// The refusal, which is not final, or the server's error.
    pub(crate) async fn check_active(&self) -> Answer<()> {
        let message = proto::MultiRequest {
            grampus_master_active_time: Some(self.active_since_ms as i64),
            ..proto::MultiRequest::default()
        };
        self.client().await.multi(message.into()).await.map(drop)
    }

    /// Checks that the regions of a table cover each row exactly once after an edit; see
    /// [`integrity::check_edit`].
    ///
    /// # Errors
    /// The violation as `DoNotRetryIOException`, or the server's error.
    pub async fn check_edit(
        &self,
        table: &TableName,
        removed: &[RegionInfo],
        added: &[RegionInfo],
    ) -> Answer<()> {
        let current = self.regions_of(table).await?;
        integrity::check_edit(&current, removed, added)
            .map_err(|violation| JavaException::do_not_retry(format!("table {table}: refused: {violation}")))
    }

    /// The check of [`MetaTable::check_edit`], directly before the edit is written. A violation is
    /// logged and shown on the status page, because an earlier check should have found it.
    async fn check_before_write(
        &self,
        table: &TableName,
        removed: &[RegionInfo],
        added: &[RegionInfo],
    ) -> Answer<()> {
        self.check_edit(table, removed, added).await.inspect_err(|error| {
            if error.do_not_retry {
                self.integrity.record_refused(&error.message);
            }
        })
    }

    /// The state of a table; `None` if the table does not exist.
    ///
    /// # Errors
    /// The server's error.
    pub async fn table_state(&self, table: &TableName) -> Answer<Option<TableState>> {
        let get = proto::Get {
            row: meta::table_row(table),
            column: vec![proto::Column { family: meta::TABLE.into(), qualifier: vec![meta::STATE.into()] }],
            ..proto::Get::default()
        };
        let request = proto::GetRequest { region: wire::convert::region_specifier(&RegionInfo::meta()), get };
        let reply = self.client().await.get(request.into()).await?;
        let cells = cells_of(reply.cells)?;
        Ok(row::parse_table_state(cells.iter().map(|cell| cell.view(0))))
    }

    /// Writes a new table, or a table whose regions `replaced` get successors: the rows of its new
    /// regions as closed, and its own row as ENABLING, in one write.
    ///
    /// # Errors
    /// The server's error.
    pub async fn put_table(
        &self,
        table: &TableName,
        regions: &[RegionInfo],
        replaced: &[RegionInfo],
    ) -> Answer<()> {
        self.check_before_write(table, replaced, regions).await?;
        let mut rows = rows_of_replaced(regions, replaced);
        rows.push(row::put_table_state(table, TableState::Enabling));
        self.write(&rows).await
    }

    /// Removes the regions `replaced` of a table and adds new, closed ones in one write. The state
    /// of the table does not change.
    ///
    /// # Errors
    /// The server's error.
    pub async fn replace_regions(
        &self,
        table: &TableName,
        regions: &[RegionInfo],
        replaced: &[RegionInfo],
    ) -> Answer<()> {
        self.check_before_write(table, replaced, regions).await?;
        self.write(&rows_of_replaced(regions, replaced)).await
    }

    /// The row of a region; `None` if there is none.
    ///
    /// # Errors
    /// The server's error.
    pub async fn region_row(&self, region: &RegionInfo) -> Answer<Option<MetaRow>> {
        let get = proto::Get {
            row: meta::region_row(region),
            column: vec![proto::Column { family: meta::INFO.into(), qualifier: Vec::new() }],
            ..proto::Get::default()
        };
        let request = proto::GetRequest { region: wire::convert::region_specifier(&RegionInfo::meta()), get };
        let reply = self.client().await.get(request.into()).await?;
        let cells = cells_of(reply.cells)?;
        Ok(MetaRow::parse(cells.iter().map(|cell| cell.view(0))))
    }

    /// Records a split: marks the row of the parent and adds the rows of the daughters in one
    /// write.
    ///
    /// # Errors
    /// The server's error. It is unknown then whether the split was written.
    pub async fn put_split(&self, parent: &RegionInfo, daughters: &[RegionInfo; 2]) -> Answer<()> {
        let [low, high] = daughters;
        self.check_before_write(&parent.table, std::slice::from_ref(parent), daughters).await?;
        self.write(&[
            row::put_split_parent(parent, daughters),
            row::put_new_region(low, &[]),
            row::put_new_region(high, &[]),
        ])
        .await
    }

    /// Records a merge: replaces the rows of the parents with the row of the new region in one
    /// write. The new row names `ancestors`, to whose files the new region refers: the parents, and
    /// regions to whose files a parent still refers.
    ///
    /// # Errors
    /// The server's error. It is unknown then whether the merge was written.
    pub async fn put_merged(
        &self,
        parents: &[RegionInfo],
        ancestors: &[RegionInfo],
        merged: &RegionInfo,
    ) -> Answer<()> {
        debug_assert!(ancestors.starts_with(parents), "the parents of a merge are among its ancestors");
        self.check_before_write(&merged.table, parents, std::slice::from_ref(merged)).await?;
        let mut rows = vec![row::put_new_region(merged, ancestors)];
        rows.extend(parents.iter().map(row::delete_region));
        self.write(&rows).await
    }

    /// Adds a new, closed region to an existing table.
    ///
    /// # Errors
    /// The server's error.
    pub async fn add_region(&self, region: &RegionInfo) -> Answer<()> {
        self.check_before_write(&region.table, &[], std::slice::from_ref(region)).await?;
        self.write(&[row::put_region(region, MetaRegionState::Closed)]).await
    }

    /// Removes the names of merge parents from the row of `merged`, after the parents were removed.
    ///
    /// # Errors
    /// The server's error.
    pub async fn forget_merge_parents(&self, merged: &RegionInfo, parents: usize) -> Answer<()> {
        self.write(&[row::delete_merge_parents(merged, parents)]).await
    }

    /// Removes the rows of regions, such as split parents whose files are archived.
    ///
    /// # Errors
    /// The server's error.
    pub async fn remove_regions(&self, table: &TableName, regions: &[RegionInfo]) -> Answer<()> {
        self.check_before_write(table, regions, &[]).await?;
        let rows: Vec<_> = regions.iter().map(row::delete_region).collect();
        self.write(&rows).await
    }

    /// Removes a deleted table: the rows of its regions, and then its own row.
    ///
    /// # Errors
    /// The server's error.
    pub async fn remove_table(&self, table: &TableName, regions: &[RegionInfo]) -> Answer<()> {
        self.check_before_write(table, regions, &[]).await?;
        let rows: Vec<_> = regions.iter().map(row::delete_region).collect();
        self.write(&rows).await?;
        self.write(&[row::delete_table(table)]).await
    }

    /// Writes the new state of a table.
    ///
    /// # Errors
    /// The server's error.
    pub async fn set_table_state(&self, table: &TableName, state: TableState) -> Answer<()> {
        self.write(&[row::put_table_state(table, state)]).await
    }

    /// Records that `server` was requested to open regions. `hbase:meta` itself has no row.
    ///
    /// # Errors
    /// The error of the server of `hbase:meta`.
    pub async fn set_opening(&self, regions: &[RegionInfo], server: &ServerName) -> Answer<()> {
        if regions.iter().any(|region| region.table.is_meta()) {
            self.location.record_opening(server).await?;
        }
        self.write_each(regions, |region| row::put_opening(region, server)).await
    }

    /// Records that regions are open on `server`. `hbase:meta` itself has no row: its location is
    /// published in a znode.
    ///
    /// # Errors
    /// The error of the server of `hbase:meta`.
    pub async fn set_open(
        &self,
        regions: &[RegionInfo],
        server: &ServerName,
        open_seq_num: u64,
    ) -> Answer<()> {
        let open_seq_num = i64::try_from(open_seq_num).unwrap_or(i64::MAX);
        if regions.iter().any(|region| region.table.is_meta()) {
            self.location.publish(server, open_seq_num).await?;
        }
        self.write_each(regions, |region| row::put_open(region, server, open_seq_num)).await
    }

    /// Writes the new state of regions, without any other change of their rows.
    ///
    /// # Errors
    /// The error of the server of `hbase:meta`.
    pub async fn set_state(&self, regions: &[RegionInfo], state: MetaRegionState) -> Answer<()> {
        self.write_each(regions, |region| row::put_state(region, state)).await
    }

    async fn write_each(
        &self,
        regions: &[RegionInfo],
        change: impl Fn(&RegionInfo) -> Mutation,
    ) -> Answer<()> {
        let rows: Vec<_> = regions.iter().filter(|region| !region.table.is_meta()).map(change).collect();
        self.write(&rows).await
    }

    /// Writes rows with one `Multi`.
    async fn write(&self, rows: &[Mutation]) -> Answer<()> {
        if rows.is_empty() {
            return Ok(());
        }
        write_rows(&*self.client().await, &RegionInfo::meta(), rows, self.active_since_ms).await
    }

    async fn client(&self) -> Arc<dyn ClientService> {
        self.connections.client(&self.location.wait().await)
    }
}

impl MetaContent {
    fn add_row(&mut self, cells: &[KeyValue]) {
        let views = || cells.iter().map(|cell| cell.view(0));
        if let Some(row) = MetaRow::parse(views()) {
            self.regions.push(row);
        } else if let Some(state) = row::parse_table_state(views())
            && let Some(table) = views().next().and_then(table_of)
        {
            self.tables.push((table, state));
        }
    }
}

/// The table to whose row a cell belongs.
fn table_of(cell: Cell<'_>) -> Option<TableName> {
    TableName::parse(std::str::from_utf8(cell.row()).ok()?).ok()
}

pub(crate) fn cells_of(block: bytes::Bytes) -> Answer<Vec<KeyValue>> {
    Codec::KeyValue
        .read(block)
        .collect::<Result<_, _>>()
        .map_err(|error| JavaException::io(format!("unreadable cells from hbase:meta: {error}")))
}

/// Reads all rows of a region.
///
/// # Errors
/// The server's error.
pub(crate) async fn scan_rows(client: &dyn ClientService, region: &RegionInfo) -> Answer<Vec<Vec<KeyValue>>> {
    scan_rows_in(client, region, proto::Scan::default()).await
}

/// Reads the rows of a region that a scan selects.
async fn scan_rows_in(
    client: &dyn ClientService,
    region: &RegionInfo,
    scan: proto::Scan,
) -> Answer<Vec<Vec<KeyValue>>> {
    let mut rows = Vec::new();
    let mut request = proto::ScanRequest {
        region: Some(wire::convert::region_specifier(region)),
        scan: Some(scan),
        number_of_rows: Some(ROWS_PER_CALL),
        ..proto::ScanRequest::default()
    };
    loop {
        let reply = client.scan(request.into()).await?;
        let mut cells = cells_of(reply.cells)?.into_iter();
        for count in &reply.message.cells_per_result {
            rows.push(cells.by_ref().take(*count as usize).collect());
        }
        if !reply.message.more_results_in_region() || !reply.message.more_results() {
            return Ok(rows);
        }
        request = proto::ScanRequest {
            scanner_id: reply.message.scanner_id,
            number_of_rows: Some(ROWS_PER_CALL),
            ..proto::ScanRequest::default()
        };
    }
}

/// Writes rows of one region with one `Multi`, and returns when all are durable. `active_since_ms`
/// is the time at which the writing master became active; the write is refused if another master
/// became active later.
///
/// # Errors
/// The first exception among the results.
pub(crate) async fn write_rows(
    client: &dyn ClientService,
    region: &RegionInfo,
    rows: &[Mutation],
    active_since_ms: u64,
) -> Answer<()> {
    let mut cells = BytesMut::new();
    let action = rows
        .iter()
        .enumerate()
        .map(|(index, mutation)| proto::Action {
            index: Some(index as u32),
            mutation: Some(wire::convert::to_proto::mutation_in_block(mutation, &mut cells)),
            ..proto::Action::default()
        })
        .collect();
    let region_action = proto::RegionAction {
        region: wire::convert::region_specifier(region),
        action,
        ..proto::RegionAction::default()
    };
    let message = proto::MultiRequest {
        region_action: vec![region_action],
        grampus_master_active_time: Some(active_since_ms as i64),
        ..proto::MultiRequest::default()
    };
    let reply = client.multi(CellRequest { message, cells: cells.freeze() }).await?;
    for result in &reply.message.region_action_result {
        let of_actions = result.result_or_exception.iter().filter_map(|entry| entry.exception.as_ref());
        if let Some(exception) = result.exception.as_ref().into_iter().chain(of_actions).next() {
            return Err(JavaException::from_pair(exception));
        }
    }
    Ok(())
}

/// The changes that replace the regions `replaced` with `regions`, which are closed. A snapshot
/// restores a region that was split since: it is in both lists, as a parent and as a region.
fn rows_of_replaced(regions: &[RegionInfo], replaced: &[RegionInfo]) -> Vec<Mutation> {
    let mut rows: Vec<_> =
        regions.iter().map(|region| row::put_region(region, MetaRegionState::Closed)).collect();
    let names: HashSet<_> = regions.iter().map(RegionInfo::name).collect();
    rows.extend(replaced.iter().map(|region| match names.contains(&region.name()) {
        true => row::delete_daughters(region),
        false => row::delete_region(region),
    }));
    rows
}
