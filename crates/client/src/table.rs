//! A table: reads and writes of rows.

use std::sync::Arc;

use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::{Get, Scan};
use cell::schema::TableName;
use proto::{
    CoprocessorServiceCall, CoprocessorServiceRequest, CoprocessorServiceResponse, GetRequest, GetResponse,
    MutateResponse,
};
use rpc::CellBlock;
use wire::convert;

use crate::connections::{HIGH_PRIORITY, OutgoingCall};
use crate::error::{Error, Result};
use crate::locations::{Location, Position};
use crate::message::{Cells, Row};
use crate::retry::Retry;
use crate::scanner::{ScanOptions, Scanner};
use crate::{Action, Client, batch};

/// A method of a region's endpoint service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// The service's name, with its package unless that is `hbase.pb`.
    pub service: &'static str,
    /// The method's name.
    pub method: &'static str,
}

/// A table. Cheap to clone.
#[derive(Clone)]
pub struct Table {
    client: Client,
    name: TableName,
}

impl Table {
    pub(crate) fn new(client: Client, name: TableName) -> Table {
        Table { client, name }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The table's name.
    pub fn name(&self) -> &TableName {
        &self.name
    }

    /// Reads a row; returns an empty row if it does not exist.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get(&self, get: &Get) -> Result<Row> {
        let (response, cells) = self.get_response(get).await?;
        Cells::of(cells).row(&response.result.unwrap_or_default())
    }

    /// Whether a row has any of the selected cells.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn exists(&self, get: &Get) -> Result<bool> {
        let get = Get { existence_only: true, ..get.clone() };
        let (response, _) = self.get_response(&get).await?;
        Ok(response.result.is_some_and(|result| result.exists()))
    }

    async fn get_response(&self, get: &Get) -> Result<(GetResponse, Bytes)> {
        let message = convert::to_proto::get(get);
        self.at_row(&get.row, "Get", CellBlock::new(), |location| GetRequest {
            region: location.specifier(),
            get: message.clone(),
        })
        .await
    }

    /// Applies a put or delete to one row. The change is durable when this returns.
    ///
    /// # Errors
    /// [`Error`]. After [`Error::Connection`] or [`Error::Exhausted`] the change may have been
    /// applied.
    pub async fn mutate(&self, mutation: &Mutation) -> Result<()> {
        self.apply(mutation).await.map(|_| ())
    }

    /// Applies an increment or append to one row; returns the new cells. A mutation without a nonce
    /// gets one, so that a retry does not apply it twice.
    ///
    /// # Errors
    /// [`Error`], as for [`Table::mutate`].
    pub async fn read_modify_write(&self, mutation: Mutation) -> Result<Row> {
        let named = match mutation.nonce {
            (0, 0) => Mutation { nonce: self.client.nonce(), ..mutation },
            _ => mutation,
        };
        let (response, cells) = self.apply(&named).await?;
        match &response.result {
            Some(result) => Cells::of(cells).row(result),
            None => Ok(Row::default()),
        }
    }

    async fn apply(&self, mutation: &Mutation) -> Result<(MutateResponse, Bytes)> {
        let (response, cells) = self.mutate_on(None, mutation).await?;
        match response.processed {
            Some(false) => Err(Error::Malformed("a mutation without a condition was not processed".into())),
            _ => Ok((response, cells)),
        }
    }

    /// Calls an endpoint of the region that contains `row` (`ExecService`). `request` builds the
    /// message for each attempt, for the region located then.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Remote`] with `UnknownProtocolException` if the table has no such
    /// endpoint.
    pub async fn call_endpoint<M: prost::Message, R: prost::Message + Default>(
        &self,
        row: &Bytes,
        endpoint: Endpoint,
        request: impl Fn(&Location) -> M,
    ) -> Result<R> {
        let call = |location: &Location| CoprocessorServiceRequest {
            region: location.specifier(),
            call: CoprocessorServiceCall {
                row: row.clone(),
                service_name: endpoint.service.to_string(),
                method_name: endpoint.method.to_string(),
                request: request(location).encode_to_vec().into(),
            },
        };
        let (response, _): (CoprocessorServiceResponse, Bytes) =
            self.at_row(row, "ExecService", CellBlock::new(), call).await?;
        let Endpoint { service, method } = endpoint;
        R::decode(response.value.value.unwrap_or_default())
            .map_err(|error| Error::Malformed(format!("response of {service}.{method}: {error}")))
    }

    /// Calls the server of a row's region, with retries.
    pub(crate) async fn at_row<M: prost::Message, R: prost::Message + Default>(
        &self,
        row: &Bytes,
        method: &'static str,
        cells: CellBlock,
        request: impl Fn(&Location) -> M,
    ) -> Result<(R, Bytes)> {
        self.at_row_until(row, method, cells, request, |response, cells| Ok((response, cells))).await
    }

    /// Like [`at_row`](Self::at_row). Also retries if `read` returns a retryable error for the
    /// response.
    pub(crate) async fn at_row_until<M: prost::Message, R: prost::Message + Default, T>(
        &self,
        row: &Bytes,
        method: &'static str,
        cells: CellBlock,
        request: impl Fn(&Location) -> M,
        read: impl Fn(R, Bytes) -> Result<T>,
    ) -> Result<T> {
        let mut retry = Retry::new(self.client.env(), self.client.options());
        let position = Position::At(row.clone());
        loop {
            let error = match self.client.locate(&self.name, &position, &retry).await {
                Ok(location) => {
                    let message = request(&location);
                    let call = OutgoingCall {
                        cells: cells.clone(),
                        priority: self.priority(),
                        ..OutgoingCall::new("ClientService", method, &message)
                    };
                    let tried = match self.client.call_region(&location, call).await {
                        // Errors inside a response also update the cached location.
                        Ok((response, cells)) => read(response, cells)
                            .inspect_err(|error| self.client.update_on_error(&location, error)),
                        Err(error) => Err(error),
                    };
                    match tried {
                        Ok(response) => return Ok(response),
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            self.client.refuse_if_disabled(&self.name, &error).await?;
            retry.pause(error).await?;
        }
    }

    pub(crate) fn priority(&self) -> u32 {
        if self.name.is_system() { HIGH_PRIORITY } else { 0 }
    }

    /// Runs independent gets and mutations of any rows. Returns their outcomes in order; puts and
    /// deletes return empty rows. Increments and appends get nonces, as in
    /// [`read_modify_write`](Self::read_modify_write). If mutations have nonces already, these must
    /// be of one nonce group.
    pub async fn batch(&self, actions: Vec<Action>) -> Vec<Result<Row>> {
        batch::run(&self.client, &self.name, actions).await
    }

    /// Applies independent mutations of any rows.
    ///
    /// # Errors
    /// The first error; other mutations may have been applied.
    pub async fn mutate_all(&self, mutations: Vec<Mutation>) -> Result<()> {
        let outcomes = self.batch(mutations.into_iter().map(Action::Mutate).collect()).await;
        outcomes.into_iter().collect::<Result<Vec<_>>>().map(|_| ())
    }

    /// Scans rows in order.
    pub fn scan(&self, scan: Scan) -> Scanner {
        self.scan_with(scan, ScanOptions::default())
    }

    /// Scans rows in order, with options.
    pub fn scan_with(&self, scan: Scan, options: ScanOptions) -> Scanner {
        Scanner::new(self.client.clone(), self.name.clone(), scan, options)
    }

    /// The region that contains `row`, and its server: from the cache unless `reload`.
    ///
    /// # Errors
    /// [`Error::TableNotFound`] and others.
    pub async fn location(&self, row: &Bytes, reload: bool) -> Result<Arc<Location>> {
        if reload {
            self.client.forget_locations(&self.name);
        }
        let mut retry = Retry::new(self.client.env(), self.client.options());
        self.client.locate_opened(&self.name, &Position::At(row.clone()), &mut retry).await
    }

    /// The table's regions and their locations in order, from `hbase:meta`. Regions without a
    /// server are omitted. The locations are cached for later calls.
    ///
    /// # Errors
    /// [`Error::TableNotFound`] and others.
    pub async fn regions(&self) -> Result<Vec<Arc<Location>>> {
        if self.name.is_meta() {
            let retry = Retry::new(self.client.env(), self.client.options());
            return Ok(vec![self.client.locate(&self.name, &Position::Last, &retry).await?]);
        }
        let rows = self.client.meta_rows(&self.name).await?;
        if rows.is_empty() {
            return Err(Error::TableNotFound(self.name.clone()));
        }
        let located = rows.into_iter().filter_map(|row| {
            let server = row.server_name()?;
            Some(Arc::new(Location::new(row.region, server, row.open_seq_num.unwrap_or(-1))))
        });
        let located: Vec<Arc<Location>> = located.collect();
        self.client.cache_locations(&located);
        Ok(located)
    }
}
