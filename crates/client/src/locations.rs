//! Locations of regions: looked up in `hbase:meta` as Java's client does, and cached until they
//! prove wrong.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cell::EndKey;
use cell::query::{CellSelection, FamilyColumns, Get, Scan};
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use proto::{GetRequest, GetResponse, RegionSpecifier, ScanRequest, ScanResponse};
use wire::convert;
use wire::meta::{self, MetaRow, TableState};

use crate::Client;
use crate::connections::{HIGH_PRIORITY, OutgoingCall};
use crate::error::{Error, Reaction, Result};
use crate::message::{Cells, Row};
use crate::retry::Retry;

/// Number of `hbase:meta` rows to read for one lookup: the region's row, and a few that may have to
/// be skipped.
const LOOKUP_ROWS: u32 = 5;

/// A region and the server that serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The region.
    pub region: RegionInfo,
    /// Its server.
    pub server: ServerName,
    /// Sequence id at which the region was opened there. The greater of two is newer.
    pub seq_num: i64,
    // Cached, because computing the name requires a hash.
    specifier: RegionSpecifier,
}

impl Location {
    /// `region` at `server`, where it was opened with the sequence id `seq_num`.
    pub fn new(region: RegionInfo, server: ServerName, seq_num: i64) -> Location {
        Location { specifier: convert::region_specifier(&region), region, server, seq_num }
    }

    /// The region's full name.
    pub(crate) fn name(&self) -> &Bytes {
        &self.specifier.value
    }

    /// The region specifier for messages.
    pub(crate) fn specifier(&self) -> RegionSpecifier {
        self.specifier.clone()
    }
}

/// Which region to locate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Position {
    /// The region that contains the row.
    At(Bytes),
    /// The region that ends at or after the row and begins before it, for reversed scans that have
    /// read the row.
    Before(Bytes),
    /// The table's last region.
    Last,
}

#[derive(Default)]
pub(crate) struct Locations {
    tables: Mutex<HashMap<TableName, Regions>>,
    meta: Mutex<Option<ServerName>>,
    // Serializes lookups in hbase:meta. A task that waits usually finds the location cached
    // afterwards, or this failure.
    last_failure: tokio::sync::Mutex<Option<LookupFailure>>,
}

/// The last lookup that failed because `hbase:meta` was not reachable.
struct LookupFailure {
    ended: Duration,
    error: Error,
}

/// The known regions of a table, keyed by start key.
#[derive(Default)]
struct Regions(BTreeMap<Bytes, Arc<Location>>);

impl Regions {
    fn find(&self, position: &Position) -> Option<Arc<Location>> {
        match position {
            Position::At(row) => {
                let (_, location) = self.0.range(..=row.clone()).next_back()?;
                location.region.contains(row).then(|| Arc::clone(location))
            }
            Position::Before(row) => {
                let (_, location) = self.0.range(..row.clone()).next_back()?;
                (EndKey(&location.region.end_key) >= EndKey(row)).then(|| Arc::clone(location))
            }
            Position::Last => {
                let (_, location) = self.0.last_key_value()?;
                location.region.end_key.is_empty().then(|| Arc::clone(location))
            }
        }
    }

    /// Adds a location and removes all locations whose ranges overlap it.
    fn insert(&mut self, location: Arc<Location>) {
        let range = location.region.range();
        self.0.retain(|_, known| !known.region.range().overlaps(&range));
        self.0.insert(range.start, location);
    }
}

impl Locations {
    fn find(&self, table: &TableName, position: &Position) -> Option<Arc<Location>> {
        self.tables().get(table)?.find(position)
    }

    fn insert(&self, location: Arc<Location>) {
        self.tables().entry(location.region.table.clone()).or_default().insert(location);
    }

    fn forget(&self, location: &Location) {
        if location.region.table.is_meta() {
            self.meta().take();
        }
        if let Some(regions) = self.tables().get_mut(&location.region.table) {
            // Another task may have cached a newer location since.
            regions.0.retain(|_, known| **known != *location);
        }
    }

    fn forget_server(&self, host: &str, port: u16) {
        let is_on_server = |server: &ServerName| server.host == host && server.port == port;
        self.meta().take_if(|server| is_on_server(server));
        for regions in self.tables().values_mut() {
            regions.0.retain(|_, known| !is_on_server(&known.server));
        }
    }

    pub(crate) fn forget_table(&self, table: &TableName) {
        self.tables().remove(table);
    }

    fn tables(&self) -> MutexGuard<'_, HashMap<TableName, Regions>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn meta(&self) -> MutexGuard<'_, Option<ServerName>> {
        self.meta.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    /// Forgets the cached locations of a table.
    pub(crate) fn forget_locations(&self, table: &TableName) {
        match table.is_meta() {
            true => drop(self.shared.locations.meta().take()),
            false => self.shared.locations.forget_table(table),
        }
    }

    /// The location of the region at `position`, from the cache or, until the deadline of `retry`,
    /// from `hbase:meta`.
    pub(crate) async fn locate(
        &self,
        table: &TableName,
        position: &Position,
        retry: &Retry<'_>,
    ) -> Result<Arc<Location>> {
        match self.cached_location(table, position) {
            Some(location) => Ok(location),
            None if table.is_meta() => retry.within(self.locate_meta()).await,
            None => retry.within(self.load_location(table, position)).await,
        }
    }

    /// The location of a region of a user table, if it is cached.
    pub(crate) fn cached_location(&self, table: &TableName, position: &Position) -> Option<Arc<Location>> {
        self.shared.locations.find(table, position)
    }

    /// Looks a region up, unless a lookup for which this one waited has loaded it, or has failed.
    async fn load_location(&self, table: &TableName, position: &Position) -> Result<Arc<Location>> {
        let (locations, clock) = (&self.shared.locations, &self.env().clock);
        let began = clock.monotonic();
        let mut last_failure = locations.last_failure.lock().await;
        if let Some(location) = locations.find(table, position) {
            return Ok(location);
        }
        if let Some(failure) = last_failure.as_ref().filter(|failure| failure.ended > began) {
            return Err(failure.error.clone());
        }
        let found = self.look_up(table, position).await.inspect_err(|error| {
            if error.stops_lookups() {
                *last_failure = Some(LookupFailure { ended: clock.monotonic(), error: error.clone() });
            }
        });
        let location = Arc::new(found?);
        locations.insert(Arc::clone(&location));
        Ok(location)
    }

    /// Like [`locate`](Self::locate), but retries while the region is being opened, split or moved.
    pub(crate) async fn locate_opened(
        &self,
        table: &TableName,
        position: &Position,
        retry: &mut Retry<'_>,
    ) -> Result<Arc<Location>> {
        loop {
            match self.locate(table, position, retry).await {
                Ok(location) => return Ok(location),
                Err(error) => retry.pause(error).await?,
            }
        }
    }

    async fn locate_meta(&self) -> Result<Arc<Location>> {
        let cached = self.shared.locations.meta().clone();
        let server = match cached {
            Some(server) => server,
            None => {
                let server = self.shared.registry.meta(self.env(), self.connections()).await?;
                *self.shared.locations.meta() = Some(server.clone());
                server
            }
        };
        Ok(Arc::new(Location::new(RegionInfo::meta(), server, -1)))
    }

    /// Scans `hbase:meta` backwards from the position of the row's region.
    async fn look_up(&self, table: &TableName, position: &Position) -> Result<Location> {
        let (first, end) = meta::region_rows(table);
        let start_row = match position {
            Position::At(row) => meta::lookup_row(table, row),
            Position::Before(row) => row_before(table, row),
            Position::Last => end,
        };
        let scan = Scan {
            start_row,
            stop_row: first,
            include_stop_row: true,
            reversed: true,
            selection: family(meta::INFO),
            ..Scan::default()
        };
        for row in self.scan_meta_once(&scan, LOOKUP_ROWS).await? {
            let Some(found) = parse(&row) else { continue };
            if found.region.table == *table && !found.is_split_parent() {
                return to_location(found, table, position);
            }
        }
        Err(Error::TableNotFound(table.clone()))
    }

    /// Opens a scanner, reads up to `rows` rows and closes it, all in one call.
    async fn scan_meta_once(&self, scan: &Scan, rows: u32) -> Result<Vec<Row>> {
        let location = self.locate_meta().await?;
        let request = ScanRequest {
            region: Some(location.specifier()),
            scan: Some(convert::to_proto::scan(scan)),
            number_of_rows: Some(rows),
            close_scanner: Some(true),
            client_handles_partials: Some(false),
            client_handles_heartbeats: Some(false),
            ..ScanRequest::default()
        };
        let call =
            OutgoingCall { priority: HIGH_PRIORITY, ..OutgoingCall::new("ClientService", "Scan", &request) };
        let (response, cells): (ScanResponse, Bytes) = self.call_region(&location, call).await?;
        let mut cells = Cells::of(cells);
        let mut found = Vec::new();
        for count in &response.cells_per_result {
            found.push(Row { cells: cells.take(*count as usize)? });
        }
        for result in &response.results {
            found.push(cells.row(result)?);
        }
        Ok(found)
    }

    /// The regions of a table in order, except split ones, with their locations from `hbase:meta`.
    pub(crate) async fn meta_rows(&self, table: &TableName) -> Result<Vec<MetaRow>> {
        let (start_row, stop_row) = meta::region_rows(table);
        let scan = Scan { start_row, stop_row, selection: family(meta::INFO), ..Scan::default() };
        let mut scanner = self.table(TableName::meta()).scan(scan);
        let mut rows = Vec::new();
        while let Some(row) = scanner.next().await? {
            rows.extend(parse(&row).filter(|row| row.region.table == *table && !row.is_split_parent()));
        }
        Ok(rows)
    }

    /// Adds locations to the cache.
    pub(crate) fn cache_locations(&self, located: &[Arc<Location>]) {
        for location in located {
            self.shared.locations.insert(Arc::clone(location));
        }
    }

    /// The state of a table, `None` if it does not exist.
    pub(crate) async fn table_state(&self, table: &TableName) -> Result<Option<TableState>> {
        let location = self.locate_meta().await?;
        let get =
            Get { row: meta::table_row(table), selection: family(meta::TABLE).into(), existence_only: false };
        let request = GetRequest { region: location.specifier(), get: convert::to_proto::get(&get) };
        let call =
            OutgoingCall { priority: HIGH_PRIORITY, ..OutgoingCall::new("ClientService", "Get", &request) };
        let (response, cells): (GetResponse, Bytes) = self.call_region(&location, call).await?;
        let row = Cells::of(cells).row(&response.result.unwrap_or_default())?;
        Ok(meta::row::parse_table_state(row.cells.iter().map(|cell| cell.view(0))))
    }

    /// Calls the server of a region. On failure, updates the cached locations.
    pub(crate) async fn call_region<M: prost::Message, R: prost::Message + Default>(
        &self,
        location: &Location,
        call: OutgoingCall<'_, M>,
    ) -> Result<(R, Bytes)> {
        let ServerName { host, port, .. } = &location.server;
        let response = self.connections().call(host, *port, call).await;
        if let Err(error) = &response {
            self.update_on_error(location, error);
        }
        response
    }

    /// Updates the cached locations after an error.
    pub(crate) fn update_on_error(&self, location: &Location, error: &Error) {
        let locations = &self.shared.locations;
        match error.reaction() {
            Reaction::Relocate => locations.forget(location),
            Reaction::ServerGone => locations.forget_server(&location.server.host, location.server.port),
            Reaction::Moved(server, seq_num)
                if seq_num >= location.seq_num && !location.region.table.is_meta() =>
            {
                locations.insert(Arc::new(Location::new(location.region.clone(), server, seq_num)));
            }
            Reaction::Moved(..) => locations.forget(location),
            Reaction::Fail
            | Reaction::Retry
            | Reaction::RetryOverloaded
            | Reaction::RetryImmediately
            | Reaction::Reopen => {}
        }
    }

    /// Returns an error if a region was not found because its table is disabled. Retries are
    /// useless then.
    pub(crate) async fn refuse_if_disabled(&self, table: &TableName, error: &Error) -> Result<()> {
        let nowhere = matches!(error, Error::NoRegion { .. })
            || error.is_class(proto::exception::class::NOT_SERVING_REGION);
        if !nowhere || table.is_meta() {
            return Ok(());
        }
        // If the state cannot be read, the next attempt decides.
        match self.table_state(table).await {
            Ok(Some(TableState::Disabled | TableState::Disabling)) => {
                Err(Error::TableNotEnabled(table.clone()))
            }
            _ => Ok(()),
        }
    }
}

fn family(name: &'static [u8]) -> CellSelection {
    let columns = vec![FamilyColumns { family: Bytes::from_static(name), qualifiers: None }];
    CellSelection { columns, ..CellSelection::default() }
}

fn parse(row: &Row) -> Option<MetaRow> {
    MetaRow::parse(row.cells.iter().map(|cell| cell.view(0)))
}

/// `table,row,`: sorts after all regions that begin before `row`, and before those that begin with
/// it.
fn row_before(table: &TableName, row: &[u8]) -> Bytes {
    let mut key = table.to_string().into_bytes();
    key.push(b',');
    key.extend_from_slice(row);
    key.push(b',');
    key.into()
}

fn to_location(found: MetaRow, table: &TableName, position: &Position) -> Result<Location> {
    let row = match position {
        Position::At(row) | Position::Before(row) => row.clone(),
        Position::Last => Bytes::new(),
    };
    let nowhere = |reason: String| Err(Error::NoRegion { table: table.clone(), row: row.clone(), reason });
    let end = &found.region.end_key;
    let reaches = match position {
        Position::At(row) => found.region.contains(row),
        Position::Before(row) => EndKey(end) >= EndKey(row),
        Position::Last => end.is_empty(),
    };
    if !reaches {
        return nowhere(format!("hbase:meta has a hole after region {}", found.region.encoded_name()));
    }
    if found.region.offline {
        return nowhere(format!("region {} is offline", found.region.encoded_name()));
    }
    match found.server_name() {
        Some(server) => Ok(Location::new(found.region, server, found.open_seq_num.unwrap_or(-1))),
        None => nowhere(format!("region {} has no server", found.region.encoded_name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(start: &'static str, end: &'static str, port: u16) -> Arc<Location> {
        let table = TableName::parse("t").unwrap();
        let region = RegionInfo::new(table, start.into(), end.into(), 1);
        let server = ServerName { host: "h".into(), port, start_code: 1 };
        Arc::new(Location::new(region, server, 1))
    }

    fn ports(locations: &Locations, positions: &[Position]) -> Vec<Option<u16>> {
        let table = TableName::parse("t").unwrap();
        positions
            .iter()
            .map(|position| locations.find(&table, position).map(|found| found.server.port))
            .collect()
    }

    #[test]
    fn regions_are_found_by_their_rows_and_end_rows() {
        let locations = Locations::default();
        for (start, end, port) in [("", "g", 1), ("g", "p", 2), ("p", "", 3)] {
            locations.insert(location(start, end, port));
        }
        let at = |row: &'static str| Position::At(row.into());
        let before = |row: &'static str| Position::Before(row.into());
        assert_eq!(
            ports(&locations, &[at(""), at("f"), at("g"), at("p"), at("z")]),
            [1, 1, 2, 3, 3].map(Some)
        );
        assert_eq!(ports(&locations, &[before("g"), before("p"), before("h")]), [1, 2, 2].map(Some));
        assert_eq!(ports(&locations, &[before(""), Position::Last]), [None, Some(3)]);
        locations.forget_server("h", 2);
        assert_eq!(ports(&locations, &[at("h"), before("p"), at("a")]), [None, None, Some(1)]);
    }

    #[test]
    fn a_new_region_replaces_those_that_it_overlaps() {
        let locations = Locations::default();
        for (start, end, port) in [("", "g", 1), ("g", "p", 2), ("p", "", 3)] {
            locations.insert(location(start, end, port));
        }
        locations.insert(location("g", "", 4));
        let rows = ["a", "g", "p", "z"].map(|row| Position::At(row.into()));
        assert_eq!(ports(&locations, &rows), [1, 4, 4, 4].map(Some));
        locations.insert(location("g", "k", 5));
        assert_eq!(ports(&locations, &rows), [Some(1), Some(5), None, None]);
    }
}
