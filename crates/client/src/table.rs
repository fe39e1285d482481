//! One table: reads and writes of rows.

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

use crate::connections::{HIGH_PRIORITY, Outgoing};
use crate::error::{Error, Result};
use crate::locations::{Location, Position};
use crate::message::{Cells, Row};
use crate::retry::Retry;
use crate::scanner::{ScanOptions, Scanner};
use crate::{Action, Client, batch};

/// A method of a service that regions have beside HBase's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// The service's name; with its package, where that is not `hbase.pb`.
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

    /// Its name.
    pub fn name(&self) -> &TableName {
        &self.name
    }

    /// Reads a row; one without cells if there is none.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get(&self, get: &Get) -> Result<Row> {
        let (response, cells) = self.get_response(get).await?;
        Cells::of(cells).row(&response.result.unwrap_or_default())
    }

    /// Whether a row has any of the cells asked for.
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

    /// Puts into or deletes from one row; durable when it returns.
    ///
    /// # Errors
    /// [`Error`]. After [`Error::Connection`] or [`Error::Exhausted`] it may have been done or not.
    pub async fn mutate(&self, mutation: &Mutation) -> Result<()> {
        self.apply(mutation).await.map(|_| ())
    }

    /// Increments or appends in one row, and gives back the new cells. It gets a nonce if it has none, so that trying
    /// again changes nothing twice.
    ///
    /// # Errors
    /// [`Error`], as of [`Table::mutate`].
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

    /// Calls an endpoint of the region that holds `row` (`ExecService`). The request is made for each try, for the region
    /// that is asked then.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Remote`] with `UnknownProtocolException` where the table has no such endpoint.
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
            .map_err(|error| Error::Malformed(format!("the answer of {service}.{method}: {error}")))
    }

    /// Calls the server of a row's region until it answers.
    pub(crate) async fn at_row<M: prost::Message, R: prost::Message + Default>(
        &self,
        row: &Bytes,
        method: &'static str,
        cells: CellBlock,
        request: impl Fn(&Location) -> M,
    ) -> Result<(R, Bytes)> {
        self.at_row_until(row, method, cells, request, |response, cells| Ok((response, cells))).await
    }

    /// The same, until `read` finds no error in the answer that is worth another try.
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
            let error = match self.client.locate(&self.name, &position).await {
                Ok(location) => {
                    let message = request(&location);
                    let call = Outgoing {
                        cells: cells.clone(),
                        priority: self.priority(),
                        ..Outgoing::new("ClientService", method, &message)
                    };
                    let tried = match self.client.call_region(&location, call).await {
                        // What the server says of the region inside of an answer is learnt from too.
                        Ok((response, cells)) => {
                            read(response, cells).inspect_err(|error| self.client.learn(&location, error))
                        }
                        Err(error) => Err(error),
                    };
                    match tried {
                        Ok(answer) => return Ok(answer),
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

    /// Gets and mutations of any rows, each for itself; the outcomes in their order, mutations give empty rows.
    pub async fn batch(&self, actions: Vec<Action>) -> Vec<Result<Row>> {
        batch::run(&self.client, &self.name, actions).await
    }

    /// Mutations of any rows, each for itself.
    ///
    /// # Errors
    /// The first one's that failed; others may have been done.
    pub async fn mutate_all(&self, mutations: Vec<Mutation>) -> Result<()> {
        let outcomes = self.batch(mutations.into_iter().map(Action::Mutate).collect()).await;
        outcomes.into_iter().collect::<Result<Vec<_>>>().map(|_| ())
    }

    /// Reads rows in order.
    pub fn scan(&self, scan: Scan) -> Scanner {
        self.scan_with(scan, ScanOptions::default())
    }

    /// Reads rows in order, with other options than the usual.
    pub fn scan_with(&self, scan: Scan, options: ScanOptions) -> Scanner {
        Scanner::new(self.client.clone(), self.name.clone(), scan, options)
    }

    /// Its regions and where they are, in order, as `hbase:meta` has them now; those without a server are left out. What
    /// is learnt so is remembered, so that who asks all of them next need not look for each.
    ///
    /// # Errors
    /// [`Error::TableNotFound`] and others.
    pub async fn regions(&self) -> Result<Vec<Arc<Location>>> {
        if self.name.is_meta() {
            return Ok(vec![self.client.locate(&self.name, &Position::Last).await?]);
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
        self.client.remember(&located);
        Ok(located)
    }
}
