//! Which server has which region: looked up in `hbase:meta` as Java's client does it, remembered until it proves wrong.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use cell::EndKey;
use cell::query::{CellSelection, FamilyColumns, Get, Scan};
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use proto::{GetRequest, GetResponse, RegionSpecifier, ScanRequest, ScanResponse};
use wire::convert;
use wire::meta::{self, MetaRow, TableState};

use crate::Client;
use crate::connections::{HIGH_PRIORITY, Outgoing};
use crate::error::{Error, Reaction, Result};
use crate::message::{Cells, Row};

/// Rows of `hbase:meta` asked for at a time when one region is looked for: the one, and a few that are passed over.
const LOOKUP_ROWS: u32 = 5;

/// A region and where it is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The region.
    pub region: RegionInfo,
    /// Its server.
    pub server: ServerName,
    /// Its highest sequence id when it was opened there; tells which of two locations is newer.
    pub seq_num: i64,
    // A name has a hash in it, which is not to be made for each call.
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

    /// How messages say which region is meant.
    pub(crate) fn specifier(&self) -> RegionSpecifier {
        self.specifier.clone()
    }
}

/// From where the region of a row is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Position {
    /// The region that holds the row.
    At(Bytes),
    /// The region that ends with the row, for reversed scans that have had it.
    Before(Bytes),
    /// The table's last region.
    Last,
}

#[derive(Default)]
pub(crate) struct Locations {
    known: Mutex<HashMap<TableName, Regions>>,
    meta: Mutex<Option<ServerName>>,
    // One asks hbase:meta at a time; who comes meanwhile mostly finds what it needs when it is its turn.
    asking: tokio::sync::Mutex<()>,
}

/// The known regions of a table, by start key.
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

    /// Takes a location in, in place of all whose ranges it overlaps.
    fn insert(&mut self, location: Arc<Location>) {
        let range = location.region.range();
        self.0.retain(|_, known| !known.region.range().overlaps(&range));
        self.0.insert(range.start, location);
    }
}

impl Locations {
    fn find(&self, table: &TableName, position: &Position) -> Option<Arc<Location>> {
        self.known().get(table)?.find(position)
    }

    fn insert(&self, location: Arc<Location>) {
        self.known().entry(location.region.table.clone()).or_default().insert(location);
    }

    fn forget(&self, location: &Location) {
        if location.region.table.is_meta() {
            self.meta().take();
        }
        if let Some(regions) = self.known().get_mut(&location.region.table) {
            // Somebody else may have learnt better since.
            regions.0.retain(|_, known| **known != *location);
        }
    }

    fn forget_server(&self, host: &str, port: u16) {
        let is_there = |server: &ServerName| server.host == host && server.port == port;
        self.meta().take_if(|server| is_there(server));
        for regions in self.known().values_mut() {
            regions.0.retain(|_, known| !is_there(&known.server));
        }
    }

    pub(crate) fn forget_table(&self, table: &TableName) {
        self.known().remove(table);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<TableName, Regions>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn meta(&self) -> MutexGuard<'_, Option<ServerName>> {
        self.meta.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    /// The region at `position`: as remembered, else as `hbase:meta` has it.
    pub(crate) async fn locate(&self, table: &TableName, position: &Position) -> Result<Arc<Location>> {
        let locations = &self.shared.locations;
        if table.is_meta() {
            return self.locate_meta().await;
        }
        if let Some(location) = locations.find(table, position) {
            return Ok(location);
        }
        let _turn = locations.asking.lock().await;
        if let Some(location) = locations.find(table, position) {
            return Ok(location);
        }
        let location = Arc::new(self.look_up(table, position).await?);
        locations.insert(Arc::clone(&location));
        Ok(location)
    }

    async fn locate_meta(&self) -> Result<Arc<Location>> {
        let known = self.shared.locations.meta().clone();
        let server = match known {
            Some(server) => server,
            None => {
                let server = self.shared.registry.meta(self.env(), self.connections()).await?;
                *self.shared.locations.meta() = Some(server.clone());
                server
            }
        };
        Ok(Arc::new(Location::new(RegionInfo::meta(), server, -1)))
    }

    /// Reads `hbase:meta` backwards from where the region's row would be.
    async fn look_up(&self, table: &TableName, position: &Position) -> Result<Location> {
        let (first, behind) = meta::region_rows(table);
        let start_row = match position {
            Position::At(row) => meta::lookup_row(table, row),
            Position::Before(row) => row_before(table, row),
            Position::Last => behind,
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
                return usable(found, table, position);
            }
        }
        Err(Error::TableNotFound(table.clone()))
    }

    /// One call: opens a scanner, takes `rows` rows, closes it.
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
        let call = Outgoing { priority: HIGH_PRIORITY, ..Outgoing::new("ClientService", "Scan", &request) };
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

    /// All regions of a table that are not split, in order, and where they are, as `hbase:meta` has them now.
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

    /// Takes in where regions are.
    pub(crate) fn remember(&self, located: &[Arc<Location>]) {
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
        let call = Outgoing { priority: HIGH_PRIORITY, ..Outgoing::new("ClientService", "Get", &request) };
        let (response, cells): (GetResponse, Bytes) = self.call_region(&location, call).await?;
        let row = Cells::of(cells).row(&response.result.unwrap_or_default())?;
        Ok(meta::row::parse_table_state(row.cells.iter().map(|cell| cell.view(0))))
    }

    /// Calls the server of a region, and forgets what a failure shows to be wrong.
    pub(crate) async fn call_region<M: prost::Message, R: prost::Message + Default>(
        &self,
        location: &Location,
        call: Outgoing<'_, M>,
    ) -> Result<(R, Bytes)> {
        let ServerName { host, port, .. } = &location.server;
        let answer = self.connections().call(host, *port, call).await;
        if let Err(error) = &answer {
            self.learn(location, error);
        }
        answer
    }

    /// Forgets or corrects where a region is, after its server failed.
    pub(crate) fn learn(&self, location: &Location, error: &Error) {
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
            | Reaction::Again
            | Reaction::AgainLater
            | Reaction::AgainNow
            | Reaction::Reopen => {}
        }
    }

    /// After a region was not where it was thought to be: a disabled table is nowhere, and waiting does not help.
    pub(crate) async fn refuse_if_disabled(&self, table: &TableName, error: &Error) -> Result<()> {
        let nowhere = matches!(error, Error::NoRegion { .. })
            || error.is_class(wire::exception::class::NOT_SERVING_REGION);
        if !nowhere || table.is_meta() {
            return Ok(());
        }
        // If even that is not to be had, the next try will tell.
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

/// `table,row,`: behind all regions that begin before `row`, before those that begin with it.
fn row_before(table: &TableName, row: &[u8]) -> Bytes {
    let mut key = table.to_string().into_bytes();
    key.push(b',');
    key.extend_from_slice(row);
    key.push(b',');
    key.into()
}

fn usable(found: MetaRow, table: &TableName, position: &Position) -> Result<Location> {
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
        return nowhere(format!("hbase:meta has a hole behind {}", found.region.encoded_name()));
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
    fn regions_are_found_by_the_rows_they_hold_and_end_with() {
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
    fn a_new_region_takes_the_place_of_those_it_overlaps() {
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
