//! The rows of `hbase:meta`, read and written through the region server on which it is online.

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

/// Access to `hbase:meta`, on whichever server it is.
pub struct MetaTable {
    location: Arc<MetaLocation>,
    connections: Arc<dyn Connections>,
    integrity: Arc<Integrity>,
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
    /// Access to `hbase:meta` at `location`. Edits that would violate `integrity` are not written.
    pub fn new(
        location: Arc<MetaLocation>,
        connections: Arc<dyn Connections>,
        integrity: Arc<Integrity>,
    ) -> MetaTable {
        MetaTable { location, connections, integrity }
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

    /// The same check, directly before the edit is written. A violation is logged and shown on the
    /// status page, because an earlier check should have found it.
    async fn require_whole(
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

    /// Writes a table that is new, or whose regions `gone` are replaced: the rows of its regions as
    /// closed, and its own row as ENABLING, in one write.
    ///
    /// # Errors
    /// The server's error.
    pub async fn put_table(
        &self,
        table: &TableName,
        regions: &[RegionInfo],
        gone: &[RegionInfo],
    ) -> Answer<()> {
        self.require_whole(table, gone, regions).await?;
        let mut rows: Vec<_> =
            regions.iter().map(|region| row::put_region(region, MetaRegionState::Closed)).collect();
        rows.extend(gone.iter().map(row::delete_region));
        rows.push(row::put_table_state(table, TableState::Enabling));
        self.write(&rows).await
    }

    /// Replaces the regions `gone` of a table with new, closed ones. The state of the table does
    /// not change.
    ///
    /// # Errors
    /// The server's error.
    pub async fn replace_regions(
        &self,
        table: &TableName,
        regions: &[RegionInfo],
        gone: &[RegionInfo],
    ) -> Answer<()> {
        self.require_whole(table, gone, regions).await?;
        let mut rows: Vec<_> =
            regions.iter().map(|region| row::put_region(region, MetaRegionState::Closed)).collect();
        rows.extend(gone.iter().map(row::delete_region));
        self.write(&rows).await
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

    /// Records a split: marks the parent's row and adds the daughters' rows in one write.
    ///
    /// # Errors
    /// The server's error. It is unknown then whether the split was written.
    pub async fn put_split(&self, parent: &RegionInfo, daughters: &[RegionInfo; 2]) -> Answer<()> {
        let [low, high] = daughters;
        self.require_whole(&parent.table, std::slice::from_ref(parent), daughters).await?;
        self.write(&[
            row::put_split_parent(parent, daughters),
            row::put_new_region(low, &[]),
            row::put_new_region(high, &[]),
        ])
        .await
    }

    /// Records a merge: replaces the rows of the parents with that of the new region in one write.
    /// The new row names `ancestors`, the regions to whose files the new region refers: the
    /// parents, and regions to whose files a parent still refers.
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
        self.require_whole(&merged.table, parents, std::slice::from_ref(merged)).await?;
        let mut rows = vec![row::put_new_region(merged, ancestors)];
        rows.extend(parents.iter().map(row::delete_region));
        self.write(&rows).await
    }

    /// Adds a new, closed region to an existing table.
    ///
    /// # Errors
    /// The server's error.
    pub async fn add_region(&self, region: &RegionInfo) -> Answer<()> {
        self.require_whole(&region.table, &[], std::slice::from_ref(region)).await?;
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
        self.require_whole(table, regions, &[]).await?;
        let rows: Vec<_> = regions.iter().map(row::delete_region).collect();
        self.write(&rows).await
    }

    /// Removes a deleted table: the rows of its regions, and then its own row.
    ///
    /// # Errors
    /// The server's error.
    pub async fn remove_table(&self, table: &TableName, regions: &[RegionInfo]) -> Answer<()> {
        self.require_whole(table, regions, &[]).await?;
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
        self.write_each(regions, |region| row::put_opening(region, server)).await
    }

    /// Records that regions are open on `server`. For `hbase:meta` itself, the znode is updated for
    /// clients.
    ///
    /// # Errors
    /// The error of the server of `hbase:meta`.
    pub async fn set_open(
        &self,
        regions: &[RegionInfo],
        server: &ServerName,
        open_seq_num: u64,
    ) -> Answer<()> {
        if regions.iter().any(|region| region.table.is_meta()) {
            self.location.publish(server).await?;
        }
        let open_seq_num = i64::try_from(open_seq_num).unwrap_or(i64::MAX);
        self.write_each(regions, |region| row::put_open(region, server, open_seq_num)).await
    }

    /// Writes the new state of regions, if nothing else has changed.
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
        write_rows(&*self.client().await, &RegionInfo::meta(), rows).await
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

/// The table in whose row a cell is.
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

/// Writes rows of one region with one `Multi`, and returns when all are durable.
///
/// # Errors
/// The first exception among the results.
pub(crate) async fn write_rows(
    client: &dyn ClientService,
    region: &RegionInfo,
    rows: &[Mutation],
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
    let message =
        proto::MultiRequest { region_action: vec![region_action], ..proto::MultiRequest::default() };
    let reply = client.multi(CellRequest { message, cells: cells.freeze() }).await?;
    for result in &reply.message.region_action_result {
        let of_actions = result.result_or_exception.iter().filter_map(|entry| entry.exception.as_ref());
        if let Some(exception) = result.exception.as_ref().into_iter().chain(of_actions).next() {
            return Err(JavaException::from_pair(exception));
        }
    }
    Ok(())
}
