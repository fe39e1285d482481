//! The rows of `hbase:meta`, read and written through the region server that serves them.

use std::sync::Arc;

use bytes::BytesMut;
use cell::codec::Codec;
use cell::mutation::Mutation;
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use cell::{Cell, KeyValue};
use wire::exception::{Answer, JavaException};
use wire::meta::{self, MetaRow, RegionStateText, TableState, row};
use wire::service::{CellRequest, ClientService};

use crate::connections::Connections;
use crate::integrity::{self, Integrity};
use crate::location::MetaLocation;

/// Rows fetched by one call.
const ROWS_PER_CALL: u32 = 1000;

/// `hbase:meta`, wherever it is.
pub struct MetaTable {
    location: Arc<MetaLocation>,
    connections: Arc<dyn Connections>,
    integrity: Arc<Integrity>,
}

/// What `hbase:meta` holds.
#[derive(Debug, Default)]
pub struct Content {
    /// Tables and their states.
    pub tables: Vec<(TableName, TableState)>,
    /// Regions of all tables, with split parents.
    pub regions: Vec<MetaRow>,
}

impl MetaTable {
    /// `hbase:meta` at `location`. Edits that `integrity` refuses are not written.
    pub fn new(
        location: Arc<MetaLocation>,
        connections: Arc<dyn Connections>,
        integrity: Arc<Integrity>,
    ) -> MetaTable {
        MetaTable { location, connections, integrity }
    }

    /// Where it is.
    pub fn location(&self) -> &MetaLocation {
        &self.location
    }

    /// All tables and regions.
    ///
    /// # Errors
    /// What the server answered.
    pub async fn read_all(&self) -> Answer<Content> {
        let mut content = Content::default();
        for cells in scan_rows(&*self.client().await, &RegionInfo::meta()).await? {
            content.add_row(&cells);
        }
        Ok(content)
    }

    /// The regions of a table, with split parents.
    ///
    /// # Errors
    /// What the server answered.
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

    /// Whether the regions of a table still cover each row once after an edit; see [`integrity::check_edit`].
    ///
    /// # Errors
    /// The violation as `DoNotRetryIOException`; what the server answered.
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

    /// The same right before the edit is written. A violation is logged and kept for the pages: an earlier check should
    /// have found it.
    async fn require_whole(
        &self,
        table: &TableName,
        removed: &[RegionInfo],
        added: &[RegionInfo],
    ) -> Answer<()> {
        self.check_edit(table, removed, added).await.inspect_err(|error| {
            if error.do_not_retry {
                self.integrity.note_refused(&error.message);
            }
        })
    }

    /// A table's state; `None` if there is no such table.
    ///
    /// # Errors
    /// What the server answered.
    pub async fn table_state(&self, table: &TableName) -> Answer<Option<TableState>> {
        let get = proto::Get {
            row: meta::table_row(table),
            column: vec![proto::Column { family: meta::TABLE.into(), qualifier: vec![meta::STATE.into()] }],
            ..proto::Get::default()
        };
        let request = proto::GetRequest { region: wire::convert::region_specifier(&RegionInfo::meta()), get };
        let reply = self.client().await.get(request.into()).await?;
        let cells = cells_of(reply.cell_bytes())?;
        Ok(row::parse_table_state(cells.iter().map(|cell| cell.view(0))))
    }

    /// A table that is new, or has new regions in the place of those that are `gone`: the rows of its regions, closed,
    /// and its own, ENABLING; all at one moment.
    ///
    /// # Errors
    /// What the server answered.
    pub async fn put_table(
        &self,
        table: &TableName,
        regions: &[RegionInfo],
        gone: &[RegionInfo],
    ) -> Answer<()> {
        self.require_whole(table, gone, regions).await?;
        let mut rows: Vec<_> =
            regions.iter().map(|region| row::put_region(region, RegionStateText::Closed)).collect();
        rows.extend(gone.iter().map(row::delete_region));
        rows.push(row::put_table_state(table, TableState::Enabling));
        self.write(&rows).await
    }

    /// New regions, closed, in the place of those that are `gone`, of a table whose state stays.
    ///
    /// # Errors
    /// What the server answered.
    pub async fn replace_regions(
        &self,
        table: &TableName,
        regions: &[RegionInfo],
        gone: &[RegionInfo],
    ) -> Answer<()> {
        self.require_whole(table, gone, regions).await?;
        let mut rows: Vec<_> =
            regions.iter().map(|region| row::put_region(region, RegionStateText::Closed)).collect();
        rows.extend(gone.iter().map(row::delete_region));
        self.write(&rows).await
    }

    /// The row of a region; `None` if there is none.
    ///
    /// # Errors
    /// What the server answered.
    pub async fn region_row(&self, region: &RegionInfo) -> Answer<Option<MetaRow>> {
        let get = proto::Get {
            row: meta::region_row(region),
            column: vec![proto::Column { family: meta::INFO.into(), qualifier: Vec::new() }],
            ..proto::Get::default()
        };
        let request = proto::GetRequest { region: wire::convert::region_specifier(&RegionInfo::meta()), get };
        let reply = self.client().await.get(request.into()).await?;
        let cells = cells_of(reply.cell_bytes())?;
        Ok(MetaRow::parse(cells.iter().map(|cell| cell.view(0))))
    }

    /// A region was split: its row says so, and its daughters have theirs, all at one moment.
    ///
    /// # Errors
    /// What the server answered; whether it was written is not known then.
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

    /// Regions were merged: their rows are replaced by that of the new region in one write. The new row names `ancestors`,
    /// whose files the region refers to: the parents, and regions whose files a parent still refers to.
    ///
    /// # Errors
    /// What the server answered; whether it was written is not known then.
    pub async fn put_merged(
        &self,
        parents: &[RegionInfo],
        ancestors: &[RegionInfo],
        merged: &RegionInfo,
    ) -> Answer<()> {
        self.require_whole(&merged.table, parents, std::slice::from_ref(merged)).await?;
        let mut rows = vec![row::put_new_region(merged, ancestors)];
        rows.extend(parents.iter().map(row::delete_region));
        self.write(&rows).await
    }

    /// A region that is new in a table which is there already, closed.
    ///
    /// # Errors
    /// What the server answered.
    pub async fn add_region(&self, region: &RegionInfo) -> Answer<()> {
        self.require_whole(&region.table, &[], std::slice::from_ref(region)).await?;
        self.write(&[row::put_region(region, RegionStateText::Closed)]).await
    }

    /// The regions that were merged into `merged` are gone.
    ///
    /// # Errors
    /// What the server answered.
    pub async fn forget_merge_parents(&self, merged: &RegionInfo, parents: usize) -> Answer<()> {
        self.write(&[row::delete_merge_parents(merged, parents)]).await
    }

    /// Parents of splits whose files are archived.
    ///
    /// # Errors
    /// What the server answered.
    pub async fn remove_regions(&self, table: &TableName, regions: &[RegionInfo]) -> Answer<()> {
        self.require_whole(table, regions, &[]).await?;
        let rows: Vec<_> = regions.iter().map(row::delete_region).collect();
        self.write(&rows).await
    }

    /// A table that is gone: its regions' rows, and last its own.
    ///
    /// # Errors
    /// What the server answered.
    pub async fn remove_table(&self, table: &TableName, regions: &[RegionInfo]) -> Answer<()> {
        self.require_whole(table, regions, &[]).await?;
        let rows: Vec<_> = regions.iter().map(row::delete_region).collect();
        self.write(&rows).await?;
        self.write(&[row::delete_table(table)]).await
    }

    /// A table's new state.
    ///
    /// # Errors
    /// What the server answered.
    pub async fn set_table_state(&self, table: &TableName, state: TableState) -> Answer<()> {
        self.write(&[row::put_table_state(table, state)]).await
    }

    /// Regions that `server` is asked to open. `hbase:meta` itself has no row.
    ///
    /// # Errors
    /// What the server of `hbase:meta` answered.
    pub async fn set_opening(&self, regions: &[RegionInfo], server: &ServerName) -> Answer<()> {
        self.write_each(regions, |region| row::put_opening(region, server)).await
    }

    /// Regions that are served by `server` now. For `hbase:meta` itself clients are told by its znode.
    ///
    /// # Errors
    /// What the server of `hbase:meta` answered.
    pub async fn set_open(
        &self,
        regions: &[RegionInfo],
        server: &ServerName,
        open_seq_num: u64,
    ) -> Answer<()> {
        if regions.iter().any(|region| region.table.is_meta()) {
            self.location.moved_to(server).await?;
        }
        let open_seq_num = i64::try_from(open_seq_num).unwrap_or(i64::MAX);
        self.write_each(regions, |region| row::put_open(region, server, open_seq_num)).await
    }

    /// Regions' new state, where only that changed.
    ///
    /// # Errors
    /// What the server of `hbase:meta` answered.
    pub async fn set_state(&self, regions: &[RegionInfo], state: RegionStateText) -> Answer<()> {
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

    /// Writes rows by one `Multi`.
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

impl Content {
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

/// The table whose row a cell is of.
fn table_of(cell: Cell<'_>) -> Option<TableName> {
    TableName::parse(std::str::from_utf8(cell.row()).ok()?).ok()
}

pub(crate) fn cells_of(block: bytes::Bytes) -> Answer<Vec<KeyValue>> {
    Codec::KeyValue
        .read(block)
        .collect::<Result<_, _>>()
        .map_err(|error| JavaException::io(format!("unreadable cells from hbase:meta: {error}")))
}

/// All rows of a region.
///
/// # Errors
/// What the server answered.
pub(crate) async fn scan_rows(client: &dyn ClientService, region: &RegionInfo) -> Answer<Vec<Vec<KeyValue>>> {
    scan_rows_in(client, region, proto::Scan::default()).await
}

/// The rows of a region that a scan selects.
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
        let mut cells = cells_of(reply.cell_bytes())?.into_iter();
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

/// Writes rows of one region by one `Multi`, and returns when all are durable.
///
/// # Errors
/// The first exception among the answers.
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
