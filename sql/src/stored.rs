//! The tables of a root directory without a server: the source of rows of `grampus export
//! --directory`.
//!
//! Regions are opened one by one as they are read, and their blocks go through a small cache, so
//! memory does not grow with the table. Nothing is written to the directory.

mod place;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adoption::file_lists::DetectedTracker;
use adoption::stored;
use analytics::{ScannedBatch, ScannedRows};
use async_trait::async_trait;
use base::env::Env;
use bytes::Bytes;
use cell::KeyValue;
use cell::query::{CellSelection, FamilyColumns, Scan};
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use client::Row;
use client::columns::RowRange;
use columnar::{Batch, Partial, Values, Vector};
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use engine::scanner::BlockLoader;
use engine::stored::{StoredRegion, StoredRegions};
use fs::FilePath;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use layout::RootDir;
use proto::grampus::{self as message, AggregateRequest, SelectRequest, SelectResponse};
use wire::convert::columns::request::{self, RowQuery};
use wire::convert::columns::value_message;

pub use place::Place;

use crate::declaration::Declaration;
use crate::source::{ProgressCallback, RequestUpdater, Source};
use crate::system_table::{self, Declarations};

/// Bytes of blocks that are cached. Exports read each block once.
const CACHE_BYTES: u64 = 64 << 20;

/// Which rows of a directory are read.
#[derive(Debug, Clone)]
pub struct StoredOptions {
    /// The root directory.
    pub place: Place,
    /// Read this snapshot and not the current rows.
    pub snapshot: Option<String>,
    /// Read tables although logs have edits that are not in store files.
    pub flushed: bool,
}

impl StoredOptions {
    /// Identifies the rows, for the list of parts of an export.
    pub fn origin(&self) -> String {
        let directory = self.place.absolute().escape_default().to_string();
        match &self.snapshot {
            Some(snapshot) => format!("snapshot {snapshot} of {directory}"),
            None => format!("directory {directory}"),
        }
    }
}

/// The tables of a root directory.
#[derive(Clone)]
pub struct Stored(Arc<Shared>);

struct Shared {
    options: StoredOptions,
    stored: StoredRegions,
    tables: tokio::sync::Mutex<HashMap<TableName, Arc<Table>>>,
    declarations: Mutex<BTreeMap<String, Declaration>>,
    /// Messages about declarations that were skipped.
    unreadable: Vec<String>,
}

/// The regions of a table or of a snapshot of it.
struct Table {
    table: Arc<TableDescriptor>,
    regions: Vec<RegionInfo>,
    stored: StoredRegions,
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stored({:?})", self.0.options)
    }
}

fn failed(error: impl ToString) -> DataFusionError {
    DataFusionError::External(error.to_string().into())
}

impl Stored {
    /// Opens a directory, and reads the declarations that its own table has.
    ///
    /// # Errors
    /// A message: it is no root directory, or cannot be read here.
    pub async fn open(options: StoredOptions, env: &Env) -> Result<Stored, String> {
        let stored = StoredRegions {
            env: env.clone(),
            fs: options.place.open(env).await?,
            root: RootDir::new(FilePath::root()),
            tracker: Arc::new(DetectedTracker),
            loader: Arc::new(BlockLoader::new(CACHE_BYTES)),
            mob: Arc::default(),
        };
        let (declarations, unreadable) = declarations(&stored).await.map_err(|error| error.to_string())?;
        let declarations = declarations.into_iter().map(|one| (one.name.clone(), one)).collect();
        Ok(Stored(Arc::new(Shared {
            options,
            stored,
            tables: tokio::sync::Mutex::default(),
            declarations: Mutex::new(declarations),
            unreadable,
        })))
    }

    fn declared(&self) -> MutexGuard<'_, BTreeMap<String, Declaration>> {
        self.0.declarations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The regions of a table, which are read once.
    async fn table(&self, name: &TableName) -> Result<Arc<Table>> {
        let mut tables = self.0.tables.lock().await;
        if let Some(table) = tables.get(name) {
            return Ok(Arc::clone(table));
        }
        let table = match &self.0.options.snapshot {
            Some(snapshot) => self.snapshot(snapshot, name).await?,
            None => self.current(name).await?,
        };
        let table = Arc::new(table);
        tables.insert(name.clone(), Arc::clone(&table));
        Ok(table)
    }

    async fn snapshot(&self, snapshot: &str, name: &TableName) -> Result<Table> {
        let found = stored::snapshot(&self.0.stored, snapshot).await.map_err(failed)?;
        if found.table.name != *name {
            return plan_err!("snapshot {snapshot} is of table {}, not of {name}", found.table.name);
        }
        Ok(Table { table: found.table, regions: found.regions, stored: found.stored })
    }

    async fn current(&self, name: &TableName) -> Result<Table> {
        let stored = &self.0.stored;
        let table = stored.root.read_table_descriptor(&*stored.fs, name).await.map_err(failed)?;
        let table = Arc::new(table);
        let regions = stored::regions(stored, name).await.map_err(failed)?;
        if !self.0.options.flushed {
            let unflushed = stored::regions_with_edits(stored, &table, &regions).await.map_err(failed)?;
            if !unflushed.is_empty() {
                return plan_err!(
                    "logs have edits of {} regions of table {name} that are not in store files: start and stop the \
                     server, or use --flushed to export without them",
                    unflushed.len()
                );
            }
        }
        Ok(Table { table, regions, stored: stored.clone() })
    }
}

/// The declarations in the directory's own table, if it has one.
async fn declarations(stored: &StoredRegions) -> adoption::Result<(Vec<Declaration>, Vec<String>)> {
    let name = system_table::name();
    if stored.root.find_table_descriptor(&*stored.fs, &name).await?.is_none() {
        return Ok(<(Vec<Declaration>, Vec<String>)>::default());
    }
    let table = stored::open(stored, &name).await?;
    let mut rows = Vec::new();
    for region in &table.regions {
        let list = region.scan_all(&Scan::default()).await?;
        let cells: Vec<KeyValue> = list.cells.into_iter().map(|(cell, _)| cell).collect();
        let same_row = |one: &KeyValue, other: &KeyValue| one.view(0).row() == other.view(0).row();
        rows.extend(cells.chunk_by(same_row).map(|cells| Row { cells: cells.to_vec() }));
    }
    Ok(system_table::read_all(&name, &rows))
}

#[async_trait]
impl Source for Stored {
    async fn regions(&self, table: &TableName, ranges: &[RowRange]) -> Result<Vec<Vec<RowRange>>> {
        let table = self.table(table).await?;
        let parts = table.regions.iter().map(|region| {
            let bounds = RowRange { start: region.start_key.clone(), stop: region.end_key.clone() };
            ranges.iter().filter_map(|range| range.intersection(&bounds)).collect::<Vec<_>>()
        });
        Ok(parts.filter(|parts| !parts.is_empty()).collect())
    }

    fn select(
        &self,
        table: &TableName,
        request: SelectRequest,
        range: RowRange,
        // The plan nodes above evaluate all conditions again.
        _: RequestUpdater,
    ) -> BoxStream<'static, Result<SelectResponse>> {
        let (stored, table) = (self.clone(), table.clone());
        let selection = async move { StoredSelection::new(&stored, &table, request, &range).await };
        let responses = stream::once(selection).flat_map(|selection| match selection {
            Ok(selection) => stream::try_unfold(selection, |mut selection| async {
                let response = selection.next().await?;
                Ok(response.map(|response| (response, selection)))
            })
            .boxed(),
            Err(error) => stream::once(std::future::ready(Err(error))).boxed(),
        });
        responses.boxed()
    }

    async fn aggregate(
        &self,
        _: &TableName,
        _: &AggregateRequest,
        _: &[RowRange],
        _: usize,
        _: ProgressCallback<'_>,
    ) -> Result<Partial> {
        plan_err!("a directory can be exported, but not queried: start a server for it")
    }
}

#[async_trait]
impl Declarations for Stored {
    async fn load(&self) -> client::Result<(Vec<Declaration>, Vec<String>)> {
        Ok((self.declared().values().cloned().collect(), self.0.unreadable.clone()))
    }

    /// Only this process sees the declaration.
    async fn store(&self, declaration: &Declaration) -> client::Result<()> {
        self.declared().insert(declaration.name.clone(), declaration.clone());
        Ok(())
    }

    async fn remove(&self, name: &str) -> client::Result<()> {
        self.declared().remove(name);
        Ok(())
    }

    async fn families(&self, table: &TableName) -> client::Result<Vec<Bytes>> {
        match self.table(table).await {
            Ok(found) => Ok(found.table.families.keys().cloned().collect()),
            Err(error) => Err(client::Error::Malformed(crate::statements::user_message(&error))),
        }
    }
}

/// The rows of one range, response by response.
struct StoredSelection {
    table: Arc<Table>,
    query: RowQuery,
    returned: Vec<usize>,
    rows_left: u64,
    /// The regions that were not begun, with their parts of the range.
    pending: VecDeque<(RegionInfo, RowRange)>,
    current: Option<OpenRegion>,
}

/// The region that is being read.
struct OpenRegion {
    rows: ScannedRows,
    /// Keeps its files open.
    _region: StoredRegion,
}

impl StoredSelection {
    async fn new(
        stored: &Stored,
        table: &TableName,
        request: SelectRequest,
        range: &RowRange,
    ) -> Result<StoredSelection> {
        let rows = request.rows.as_ref().ok_or_else(|| failed("the request does not say which rows"))?;
        let query = request::rows(rows).map_err(failed)?;
        let table = stored.table(table).await?;
        let part = |region: &RegionInfo| {
            let bounds = RowRange { start: region.start_key.clone(), stop: region.end_key.clone() };
            range.intersection(&bounds).map(|part| (region.clone(), part))
        };
        let pending = table.regions.iter().filter_map(part).collect();
        Ok(StoredSelection {
            returned: request.give.iter().map(|at| *at as usize).collect(),
            rows_left: request.limit.unwrap_or(u64::MAX),
            table,
            query,
            pending,
            current: None,
        })
    }

    async fn next(&mut self) -> Result<Option<SelectResponse>> {
        while self.rows_left > 0 {
            if self.current.is_none() {
                let Some((region, range)) = self.pending.pop_front() else { return Ok(None) };
                self.current = Some(self.open(region, range).await.map_err(failed)?);
            }
            let batch = match &mut self.current {
                Some(open) => open.rows.next().await.map_err(failed)?,
                None => None,
            };
            match batch {
                Some(batch) => return Ok(Some(self.response(&batch))),
                None => self.current = None,
            }
        }
        Ok(None)
    }

    async fn open(&self, region: RegionInfo, range: RowRange) -> engine::error::Result<OpenRegion> {
        let region = self.table.stored.open(Arc::clone(&self.table.table), region).await?;
        let whole = |family: &Bytes| FamilyColumns { family: family.clone(), qualifiers: None };
        let mut columns: Vec<FamilyColumns> = self.query.families.iter().map(whole).collect();
        columns.sort_by(|left, right| left.family.cmp(&right.family));
        let selection =
            CellSelection { columns, time_range: self.query.time_range, ..CellSelection::default() };
        let scan = Scan { start_row: range.start, stop_row: range.stop, selection, ..Scan::default() };
        let rows = ScannedRows::new(region.scanner(&scan)?, &self.query.columns);
        Ok(OpenRegion { rows, _region: region })
    }

    fn response(&mut self, batch: &ScannedBatch) -> SelectResponse {
        let mut selected = Vec::new();
        let rows = Batch { len: batch.len, columns: &batch.vectors, rows: None };
        rows.select(self.query.predicate.as_ref(), &mut selected);
        selected.truncate(usize::try_from(self.rows_left).unwrap_or(usize::MAX));
        self.rows_left -= selected.len() as u64;
        let vectors = self.returned.iter().map(|at| vector_message(&batch.vectors[*at], &selected));
        SelectResponse {
            rows: Some(selected.len() as u64),
            vector: vectors.collect(),
            ..SelectResponse::default()
        }
    }
}

/// Some values of a column as a message.
pub fn vector_message(column: &Vector, rows: &[u32]) -> message::Vector {
    let mut vector = message::Vector::default();
    let mut present = vec![0_u8; rows.len().div_ceil(8)];
    for (at, row) in rows.iter().enumerate() {
        let row = *row as usize;
        present[at / 8] |= u8::from(column.has(row)) << (at % 8);
        match column.values() {
            Values::Whole(values) => vector.whole.push(values[row]),
            Values::Real(values) => vector.real.push(values[row]),
            Values::Decimal(_) => {
                let value = value_message(&column.get(row));
                vector.decimal.push(value.decimal.unwrap_or_default());
            }
            Values::Raw(_) => vector.raw.push(value_message(&column.get(row)).raw.unwrap_or_default()),
        }
    }
    vector.present = Some(present.into());
    vector
}

#[cfg(test)]
mod tests;
