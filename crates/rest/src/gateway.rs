//! The gateway: its resources, and which of them executes a request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::budget::Budget;
use base::env::Env;
use base::pool::Pool;
use client::Client;
use hyper::header::{self, HeaderMap};
use hyper::{Method, StatusCode};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::call::{Call, table_name};
use crate::media::Media;
use crate::options::RestOptions;
use crate::reply::{Content, Failure, Reply, Result};
use crate::route::Route;
use crate::scanners::Scanners;

/// Time limit for waiting until a request may be executed.
const WAIT_LIMIT: Duration = Duration::from_secs(30);
/// Threads that decompress and parse large bodies.
const THREADS: usize = 2;
/// Maximum size of bodies that describe a table, namespace or scanner.
pub(crate) const DESCRIPTION_BYTES_MAX: usize = 1 << 20;

/// The description of this API, also in `docs/rest-openapi.json`.
const OPENAPI: &str = include_str!("../../../docs/rest-openapi.json");

/// The REST API of one cluster.
pub struct Gateway {
    pub(crate) env: Env,
    pub(crate) client: Client,
    pub(crate) options: RestOptions,
    pub(crate) scanners: Scanners,
    pub(crate) budget: Arc<Budget>,
    pub(crate) pool: Arc<Pool>,
    permits: Semaphore,
    waiting: AtomicUsize,
}

impl Gateway {
    /// A gateway for the cluster of `client`.
    pub fn new(env: Env, client: Client, options: RestOptions) -> Arc<Gateway> {
        Arc::new(Gateway {
            scanners: Scanners::new(&options),
            budget: Budget::new(options.memory_bytes),
            pool: Arc::new(Pool::background("rest", THREADS)),
            permits: Semaphore::new(options.requests_max.clamp(1, Semaphore::MAX_PERMITS)),
            waiting: AtomicUsize::new(0),
            env,
            client,
            options,
        })
    }

    /// Checks a request before its body is read: method, path, and CSRF protection.
    ///
    /// # Errors
    /// Why it is refused, or the response to the method OPTIONS.
    pub(crate) fn check<'a>(
        &self,
        method: &Method,
        path: &'a str,
        headers: &HeaderMap,
    ) -> std::result::Result<Route<'a>, Box<Refused>> {
        let refused = |failure: Failure| Box::new(Refused { failure, allow: None });
        if *method == Method::OPTIONS && !self.options.allows_options {
            return Err(refused(Failure::Page(StatusCode::FORBIDDEN)));
        }
        if self.options.csrf.as_ref().is_some_and(|csrf| !csrf.admits(method, headers)) {
            return Err(refused(Failure::Page(StatusCode::BAD_REQUEST)));
        }
        let route = Route::parse(path).ok_or_else(|| refused(Failure::Page(StatusCode::NOT_FOUND)))?;
        let allowed = route.allowed();
        let name = if *method == Method::HEAD { "GET" } else { method.as_str() };
        if *method == Method::OPTIONS {
            let failure = Failure::Text(StatusCode::OK, String::new());
            return Err(Box::new(Refused { failure, allow: Some(allowed) }));
        }
        if !allowed.split(',').any(|word| word == name) {
            let failure = Failure::Page(StatusCode::METHOD_NOT_ALLOWED);
            return Err(Box::new(Refused { failure, allow: Some(allowed) }));
        }
        Ok(route)
    }

    /// The maximum size of the body of a request.
    pub(crate) fn body_bytes_max(&self, route: &Route<'_>) -> usize {
        match route {
            Route::Rows(..) => self.options.request_bytes_max,
            _ => self.options.request_bytes_max.min(DESCRIPTION_BYTES_MAX),
        }
    }

    /// Executes a request.
    ///
    /// # Errors
    /// [`Failure`].
    pub(crate) async fn execute(&self, route: Route<'_>, call: &mut Call) -> Result<Reply> {
        let _permit = self.permit().await?;
        let is_read = matches!(call.method, Method::GET | Method::HEAD);
        if !is_read && self.options.read_only {
            return Err(Failure::line(StatusCode::FORBIDDEN, "Forbidden"));
        }
        let method = call.method.clone();
        match (route, method.as_str()) {
            (Route::OpenApi, _) => Ok(Reply::typed(Media::Json.name(), Content::Whole(OPENAPI.into()))),
            (Route::Version, _) => self.version(call),
            (Route::ClusterVersion, _) => self.cluster_version(call).await,
            (Route::ClusterStatus, _) => self.cluster_status(call).await,
            (Route::Tables, _) => self.tables(call).await,
            (Route::Namespaces, _) => self.namespaces(call).await,
            (Route::NamespaceTables(name), "GET" | "HEAD") => self.namespace_tables(call, &name).await,
            (Route::Namespace(name), "GET" | "HEAD") => self.namespace(call, &name).await,
            // HBase applies changes of the list of tables to the namespace.
            (Route::Namespace(name) | Route::NamespaceTables(name), "DELETE") => {
                self.delete_namespace(&name).await
            }
            (Route::Namespace(name) | Route::NamespaceTables(name), method) => {
                self.put_namespace(call, name, method == "POST").await
            }
            (Route::Exists(table), _) => self.exists(&table_name(&table)?).await,
            (Route::Regions(table), _) => self.regions(call, table_name(&table)?).await,
            (Route::Schema(table), "GET" | "HEAD") => self.schema(call, &table_name(&table)?).await,
            (Route::Schema(table), "DELETE") => self.delete_table(&table_name(&table)?).await,
            (Route::Schema(table), method) => {
                self.put_schema(call, table_name(&table)?, method == "POST").await
            }
            (Route::Scanners(table), _) => self.open_scanner(call, table_name(&table)?),
            (Route::Scanner(id), "DELETE") => self.close_scanner(&id),
            (Route::Scanner(id), _) => self.next_of_scanner(call, &id).await,
            (Route::MultiGet(table, columns), _) => self.multi_get(call, table_name(&table)?, &columns).await,
            (Route::Scan(table, prefix), _) => self.scan(call, table_name(&table)?, &prefix).await,
            (Route::Rows(table, spec), "GET" | "HEAD") => {
                self.get_rows(call, table_name(&table)?, spec).await
            }
            (Route::Rows(table, spec), "DELETE") => self.delete_row(call, table_name(&table)?, spec).await,
            (Route::Rows(table, spec), _) => self.update(call, table_name(&table)?, spec).await,
        }
    }

    /// Waits until the request may be executed.
    async fn permit(&self) -> Result<SemaphorePermit<'_>> {
        let busy = || Failure::line(StatusCode::SERVICE_UNAVAILABLE, "Unavailable: too many requests");
        if let Ok(permit) = self.permits.try_acquire() {
            return Ok(permit);
        }
        let waiting = Waiting::start(&self.waiting);
        if self.options.waiting_max.is_some_and(|max| waiting.before >= max) {
            return Err(busy());
        }
        let permit = self.env.timeout(WAIT_LIMIT, self.permits.acquire()).await;
        permit.and_then(|permit| permit.ok()).ok_or_else(busy)
    }
}

/// Why a request is not executed, and the `Allow` header.
pub(crate) struct Refused {
    pub(crate) failure: Failure,
    pub(crate) allow: Option<&'static str>,
}

/// A waiting request; no longer counted when dropped.
struct Waiting<'a> {
    count: &'a AtomicUsize,
    before: usize,
}

impl<'a> Waiting<'a> {
    fn start(count: &'a AtomicUsize) -> Waiting<'a> {
        Waiting { count, before: count.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Cells that wait for the next request.
pub(crate) type CellQueue = VecDeque<cell::KeyValue>;

/// The header with the timestamp of a value.
pub(crate) const X_TIMESTAMP: header::HeaderName = header::HeaderName::from_static("x-timestamp");
