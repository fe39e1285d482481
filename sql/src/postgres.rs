//! PostgreSQL's protocol: for psql, DBeaver, Grafana, and drivers of all languages.
//!
//! datafusion-postgres implements queries, parameters, cursors, SET, SHOW, and clients' queries of
//! `pg_catalog`. This module adds statements that PostgreSQL lacks (`CREATE EXTERNAL TABLE`),
//! completion tags that name the change (`DROP TABLE`), and errors with PostgreSQL's codes.
//!
//! There is no authentication and no encryption.
#![allow(clippy::disallowed_methods, reason = "pgwire requires tokio's sockets")]

mod cancel;

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use base::env::{Env, TaskClass};
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion_postgres::{DfSessionService, Parser};
use futures_util::Sink;
use os::service_manager;
use pgwire::api::auth::StartupHandler;
use pgwire::api::auth::noop::NoopStartupHandler;
use pgwire::api::cancel::{CancelHandler, DefaultCancelHandler};
use pgwire::api::portal::{Format, Portal};
use pgwire::api::query::{ExtendedQueryHandler, SimpleQueryHandler};
use pgwire::api::results::{FieldInfo, Response, Tag};
use pgwire::api::stmt::QueryParser;
use pgwire::api::store::PortalStore;
use pgwire::api::{ClientInfo, ClientPortalStore, ConnectionManager, PgWireServerHandlers, Type};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use tokio::net::TcpListener;

use crate::statements::{Engine, Outcome, is_show_tables, user_message};
use cancel::cancellable;

/// PostgreSQL's code for numeric_value_out_of_range.
const OUT_OF_RANGE: &str = "22003";

/// A prepared statement: its text, and the parsed statement with its plan.
type Prepared = (String, Option<(Statement, LogicalPlan)>);

/// Serves clients until the process ends.
///
/// # Errors
/// A message: cannot listen on the address.
pub async fn serve(engine: Engine, env: &Env, address: SocketAddr) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot listen on {address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let local = listener.local_addr().map_err(failed)?;
    println!("grampus-sql listens on {local}: psql -h {} -p {}", local.ip(), local.port());
    service_manager::send_state(service_manager::READY);
    let connections = Arc::new(ConnectionManager::new());
    loop {
        let (socket, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                eprintln!("grampus-sql: cannot accept a connection: {error}");
                env.clock.sleep(std::time::Duration::from_millis(50)).await;
                continue;
            }
        };
        // Each connection has its own session: SET affects only one connection.
        let handlers = Arc::new(Handlers::new(engine.new_session(), Arc::clone(&connections)));
        env.spawn(TaskClass::Connection, async move {
            if let Err(error) = pgwire::tokio::process_socket(socket, None, handlers).await {
                eprintln!("grampus-sql: {peer}: {error}");
            }
        });
    }
}

struct Handlers {
    service: Arc<Service>,
    startup: Arc<Startup>,
    cancel: Arc<DefaultCancelHandler>,
}

impl Handlers {
    fn new(engine: Engine, connections: Arc<ConnectionManager>) -> Handlers {
        Handlers {
            service: Arc::new(Service::new(engine)),
            cancel: Arc::new(DefaultCancelHandler::new(Arc::clone(&connections))),
            startup: Arc::new(Startup { connections }),
        }
    }
}

impl PgWireServerHandlers for Handlers {
    fn simple_query_handler(&self) -> Arc<impl SimpleQueryHandler> {
        Arc::clone(&self.service)
    }

    fn extended_query_handler(&self) -> Arc<impl ExtendedQueryHandler> {
        Arc::clone(&self.service)
    }

    fn startup_handler(&self) -> Arc<impl StartupHandler> {
        Arc::clone(&self.startup)
    }

    fn cancel_handler(&self) -> Arc<impl CancelHandler> {
        Arc::clone(&self.cancel)
    }
}

/// Accepts every client.
struct Startup {
    connections: Arc<ConnectionManager>,
}

#[async_trait]
impl NoopStartupHandler for Startup {
    fn connection_manager(&self) -> Option<Arc<ConnectionManager>> {
        Some(Arc::clone(&self.connections))
    }
}

struct Service {
    engine: Engine,
    inner: DfSessionService,
    preparer: Arc<Preparer>,
}

/// Parses and plans statements for later execution, possibly with parameters.
struct Preparer {
    engine: Engine,
    inner: Arc<Parser>,
}

impl Service {
    fn new(engine: Engine) -> Service {
        let inner = DfSessionService::new(Arc::new(engine.context.clone()));
        let preparer = Arc::new(Preparer { engine: engine.clone(), inner: inner.query_parser() });
        Service { engine, inner, preparer }
    }

    async fn run_in_engine(&self, statement: DataFusionStatement) -> PgWireResult<Response> {
        match self.engine.run(statement).await.map_err(|error| coded(&error))? {
            Outcome::Done(name) => Ok(Response::Execution(Tag::new(name))),
            Outcome::Rows(rows) => {
                let rows = arrow_pg::datatypes::df::encode_dataframe(rows, &Format::UnifiedText, None).await;
                let rows = rows.map_err(readable)?;
                Ok(Response::Query(rows))
            }
        }
    }
}

#[async_trait]
impl SimpleQueryHandler for Service {
    async fn do_query<C>(&self, client: &mut C, query: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let Some(statements) = engine_statements(query) else {
            self.engine.catalog.refresh().await.map_err(|error| coded(&error))?;
            let responses =
                SimpleQueryHandler::do_query(&self.inner, client, query).await.map_err(readable)?;
            return Ok(cancellable(client, responses).await);
        };
        let mut responses = Vec::new();
        for statement in statements {
            if runs_in_engine(&statement) {
                responses.push(self.run_in_engine(statement).await?);
            } else {
                let text = statement.to_string();
                let more = SimpleQueryHandler::do_query(&self.inner, client, &text).await;
                responses.extend(more.map_err(readable)?);
            }
        }
        Ok(cancellable(client, responses).await)
    }
}

#[async_trait]
impl ExtendedQueryHandler for Service {
    type Statement = Prepared;
    type QueryParser = Preparer;

    fn query_parser(&self) -> Arc<Preparer> {
        Arc::clone(&self.preparer)
    }

    async fn do_query<C>(
        &self,
        client: &mut C,
        portal: &Portal<Prepared>,
        max_rows: usize,
    ) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if let Some(statements) = engine_statements(&portal.statement.statement.0)
            && let Some(statement) = statements.into_iter().next()
        {
            return self.run_in_engine(statement).await;
        }
        let response = ExtendedQueryHandler::do_query(&self.inner, client, portal, max_rows).await;
        let responses = cancellable(client, vec![response.map_err(readable)?]).await;
        Ok(responses.into_iter().next().unwrap_or(Response::EmptyQuery))
    }
}

#[async_trait]
impl QueryParser for Preparer {
    type Statement = Prepared;

    async fn parse_sql<C>(
        &self,
        client: &C,
        sql: &str,
        types: &[Option<Type>],
    ) -> PgWireResult<Option<Prepared>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        self.engine.catalog.refresh().await.map_err(|error| coded(&error))?;
        match engine_statements(sql) {
            // It is planned when it runs: it has no parameters and returns no rows.
            Some(_) => Ok(Some((sql.to_string(), None))),
            None => self.inner.parse_sql(client, sql, types).await.map_err(readable),
        }
    }

    fn get_parameter_types(&self, statement: &Prepared) -> PgWireResult<Vec<Type>> {
        self.inner.get_parameter_types(statement)
    }

    fn get_result_schema(
        &self,
        statement: &Prepared,
        format: Option<&Format>,
    ) -> PgWireResult<Vec<FieldInfo>> {
        self.inner.get_result_schema(statement, format)
    }
}

/// All statements of a query, if at least one of them is handled here.
fn engine_statements(sql: &str) -> Option<Vec<DataFusionStatement>> {
    // A statement that only PostgreSQL's dialect has is not handled here either.
    let statements = Engine::parse(sql).ok()?;
    statements.iter().any(runs_in_engine).then(|| statements.into())
}

fn runs_in_engine(statement: &DataFusionStatement) -> bool {
    match statement {
        DataFusionStatement::CreateExternalTable(_) => true,
        // Files of this machine are never written.
        DataFusionStatement::CopyTo(_) => true,
        DataFusionStatement::Statement(inner) => {
            matches!(
                **inner,
                Statement::Drop { .. } | Statement::CreateSchema { .. } | Statement::CreateDatabase { .. }
            ) || is_show_tables(statement)
        }
        _ => false,
    }
}

/// Converts an error of datafusion-postgres to a readable one.
fn readable(error: PgWireError) -> PgWireError {
    match error {
        PgWireError::ApiError(inner) => match inner.downcast::<DataFusionError>() {
            Ok(error) => coded(&error),
            Err(inner) => match inner.downcast::<ParserError>() {
                Ok(error) => coded(&DataFusionError::SQL(error, None)),
                Err(inner) => user_error("XX000", inner.to_string()),
            },
        },
        PgWireError::UserError(info) if info.code == OUT_OF_RANGE && info.message.starts_with("Numeric") => user_error(
            OUT_OF_RANGE,
            "a DECIMAL of the result has more than 28 digits, which this protocol server does not support; CAST(.. AS VARCHAR) \
             returns all of them"
                .to_string(),
        ),
        other => other,
    }
}

/// Converts an error, with PostgreSQL's code for errors of its kind.
fn coded(error: &DataFusionError) -> PgWireError {
    let text = user_message(error);
    let code = match error.find_root() {
        DataFusionError::SQL(..) => "42601",
        DataFusionError::Plan(_) if text.contains("table '") && text.contains("not found") => "42P01",
        DataFusionError::SchemaError(..) => "42703",
        DataFusionError::ArrowError(error, _) => match **error {
            ArrowError::DivideByZero => "22012",
            ArrowError::CastError(_) | ArrowError::ParseError(_) => "22P02",
            _ => "XX000",
        },
        DataFusionError::Plan(_) => "42000",
        DataFusionError::NotImplemented(_) => "0A000",
        DataFusionError::ResourcesExhausted(_) => "53200",
        DataFusionError::External(_) => "58000",
        _ => "XX000",
    };
    user_error(code, text)
}

fn user_error(code: &str, text: String) -> PgWireError {
    PgWireError::UserError(Box::new(ErrorInfo::new("ERROR".to_string(), code.to_string(), text)))
}
