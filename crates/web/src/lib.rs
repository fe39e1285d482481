//! The HTTP pages of both roles: status pages, `/history`, `/jmx`, `/prometheus` and `/conf`.
//!
//! The server passes what to show as plain values ([`RoleInfo`], [`Page`]); this crate does not
//! call a role. Long responses are written by low-priority threads, so a page does not slow down a
//! request. Paths are HBase's.
//!
//! * [`connections`]: HTTP connections and their limits; [`body`]: bodies of requests;
//!   [`HostGuard`]: permitted host names;
//! * [`section`]: the parts of a page; [`Value`]: a value in them;
//! * [`Query`]: the query string of a URL; [`Refusal`]: an error page.
//!
//! This crate knows nothing about regions, RPC, or the origin of metrics.

pub mod body;
mod configuration;
pub mod connections;
mod guard;
mod history;
mod meter;
mod object_name;
pub mod open_connections;
mod page;
mod query;
mod refusal;
pub mod section;
mod streamed;
mod units;
mod value;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Query as LooseQuery, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use base::env::{Env, Listener};
use base::history::{History, Moment};
use base::metrics::{Chunks, Jmx, JmxOptions, Prometheus, PrometheusOptions, Registry};
use base::pool::Pool;

pub use guard::Guard as HostGuard;
use page::RequestUrl;
pub use page::{Frame, Page};
pub use query::{Query, address};
pub use refusal::Refusal;
use streamed::streamed;
pub use value::{Level, Value};

const JSON_TYPE: &str = "application/json; charset=utf8";
const JAVASCRIPT_TYPE: &str = "application/javascript; charset=utf8";
const PROMETHEUS_TYPE: &str = "text/plain;charset=utf-8";
/// Threads that write long responses, and the number of such responses written concurrently.
const WRITERS: usize = 2;
/// Threads that render pages. They are separate from the writers, which wait for clients.
const RENDERERS: usize = 1;

/// The information of a role, queried for every page.
pub trait RoleInfo: Send + Sync + 'static {
    /// HBase's path of the status page: `/master-status` or `/rs-status`.
    fn status_path(&self) -> &'static str;
    /// Paths of all pages that [`RoleInfo::page`] serves, including the status page.
    fn paths(&self) -> &'static [&'static str];
    /// The parts that all pages share.
    fn frame(&self) -> Frame;
    /// The content of a page, or the address to redirect to.
    ///
    /// # Errors
    /// The reason why there is no such page.
    fn page(&self, path: &str, query: &Query) -> Result<PageContent, Refusal>;
    /// The time series of the last hour.
    fn history(&self) -> &History;
    /// The beans of `/jmx`.
    fn metrics(&self) -> &Registry;
    /// The effective options: key, value, and source of the value.
    fn configuration(&self) -> Vec<(String, String, String)>;
}

/// The content at an address.
pub enum PageContent {
    /// A page.
    Page(Page),
    /// A redirect to another address.
    Redirect(String),
}

/// Settings for serving the pages of a role.
#[derive(Clone, Debug)]
pub struct PageOptions {
    /// Maximum number of concurrent connections; see [`connections::ConnectionLimits`].
    pub connections_max: usize,
    /// Host names of this server that requests may use; `*` allows any.
    pub hosts: Vec<String>,
}

/// Serves the pages of one role on `listener` until the task is dropped.
pub async fn serve(env: Env, listener: Box<dyn Listener>, info: Arc<dyn RoleInfo>, options: PageOptions) {
    let mut router = Router::new()
        .route("/", get(root))
        .route("/favicon.ico", get(icon))
        .route("/history", get(history_json))
        .route("/jmx", get(jmx))
        .route("/prometheus", get(prometheus))
        .route("/conf", get(conf))
        .fallback(unknown);
    for path in info.paths() {
        router = router.route(path, get(page));
    }
    let writers = Pool::background("pages", WRITERS);
    let renderers = Pool::background("status", RENDERERS);
    let router = router.with_state(Arc::new(Role { info, writers, renderers }));
    let guard = Arc::new(HostGuard::new(&options.hosts));
    let limits = connections::ConnectionLimits::of_pages(options.connections_max);
    let service_of = move |_: connections::ConnectedClient| guard.clone().before(router.clone());
    connections::accept_all(env, listener, service_of, limits).await;
}

/// The information to show, and the threads that render and write.
struct Role {
    info: Arc<dyn RoleInfo>,
    writers: Pool,
    renderers: Pool,
}

type RoleState = State<Arc<Role>>;

impl Role {
    /// Beans as a long response.
    fn beans(
        &self,
        content_type: &'static str,
        write: impl FnOnce(&Registry, Chunks) + Send + 'static,
    ) -> Response {
        let info = self.info.clone();
        let clock = info.metrics().clock().clone();
        streamed(&self.writers, clock, content_type, move |out| write(info.metrics(), out))
    }

    /// Renders the page that `find` returns, on a thread for that.
    async fn render(
        &self,
        uri: &Uri,
        find: impl FnOnce(&dyn RoleInfo, &Query) -> Result<PageContent, Refusal> + Send + 'static,
    ) -> Response {
        let (info, uri) = (self.info.clone(), uri.clone());
        let render = move || {
            let path = uri.path();
            let frame = info.frame();
            let response =
                Query::parse(uri.query().unwrap_or("")).and_then(|query| match find(&*info, &query)? {
                    PageContent::Page(page) => {
                        Ok(Html(page.render(&frame, &RequestUrl { path, query: &query })?).into_response())
                    }
                    PageContent::Redirect(address) => Ok(Redirect::temporary(&address).into_response()),
                });
            response.unwrap_or_else(|refusal| {
                let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
                (status, Html(refusal.render(&frame, path))).into_response()
            })
        };
        let mut response = self.renderers.run(render).await;
        // Metrics change, so a browser must not show an old copy of the page.
        response.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
        response
    }
}

async fn root(State(role): RoleState) -> Redirect {
    Redirect::temporary(role.info.status_path())
}

async fn icon() -> Response {
    ([(header::CONTENT_TYPE, "image/svg+xml")], page::ICON_SVG).into_response()
}

async fn page(State(role): RoleState, uri: Uri) -> Response {
    let path = uri.path().to_owned();
    role.render(&uri, move |info, query| info.page(&path, query)).await
}

async fn unknown(State(role): RoleState, uri: Uri) -> Response {
    let refusal = Refusal::missing(format!("Page {} does not exist.", uri.path()));
    role.render(&uri, |_, _| Err(refusal)).await
}

/// `/history[?series=NAME,…]`: the time series of the last hour, for programs.
async fn history_json(State(role): RoleState, uri: Uri) -> Response {
    let info = role.info.clone();
    let render = move || {
        let query = Query::parse(uri.query().unwrap_or(""))?;
        let window = info.history().window(Moment::of(&**info.metrics().clock()));
        history::json(&window, query.get("series"))
    };
    match role.renderers.run(render).await {
        Ok(text) => ([(header::CONTENT_TYPE, JSON_TYPE)], text).into_response(),
        Err(Refusal { status, reason }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
            json(status, &serde_json::json!({"result": "ERROR", "message": reason}))
        }
    }
}

/// `/jmx[?qry=PATTERN]` and `/jmx?get=BEAN::ATTRIBUTE`, with `description=true` and
/// `callback=FUNCTION`, as in Hadoop's servlet.
async fn jmx(State(role): RoleState, LooseQuery(query): LooseQuery<HashMap<String, String>>) -> Response {
    let descriptions = query.get("description").is_some_and(|value| value == "true");
    let callback = query.get("callback").filter(|callback| is_name(callback)).cloned();
    let content_type = if callback.is_some() { JAVASCRIPT_TYPE } else { JSON_TYPE };
    let Some(wanted) = query.get("get") else {
        let pattern = query.get("qry").cloned();
        let options = JmxOptions { only: None, descriptions, callback };
        return role.beans(content_type, move |beans, out| {
            let mut jmx = Jmx::new(options, out);
            beans.show(
                &|name| pattern.as_ref().is_none_or(|pattern| object_name::matches(pattern, name)),
                &mut jmx,
            );
            jmx.finish();
        });
    };
    let Some((bean, attribute)) = wanted.split_once("::").filter(|(_, rest)| !rest.contains("::")) else {
        let error = serde_json::json!({"result": "ERROR", "message": "query format is not as expected."});
        return json(StatusCode::BAD_REQUEST, &error);
    };
    let (info, bean) = (role.info.clone(), bean.to_owned());
    let options = JmxOptions { only: Some(attribute.to_owned()), descriptions, callback };
    let read = role.writers.run(move || {
        let mut attributes = 0;
        let text = Chunks::collected(|out| {
            let mut jmx = Jmx::new(options, out);
            info.metrics().show(&|name| object_name::matches(&bean, name), &mut jmx);
            attributes = jmx.attributes();
            jmx.finish();
        });
        (attributes, text)
    });
    match read.await {
        (0, _) => {
            let error =
                serde_json::json!({"beans": [], "result": "ERROR", "message": "No beans matching query."});
            json(StatusCode::NOT_FOUND, &error)
        }
        (_, text) => ([(header::CONTENT_TYPE, content_type)], text).into_response(),
    }
}

/// Whether `callback` is a plain function name (JSONP). Other text could inject script code into
/// the response.
fn is_name(callback: &str) -> bool {
    callback.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte))
}

/// `/prometheus[?qry=PART][&description=true]`: all metrics, or those whose names contain PART, as
/// in HBase 2.6.
async fn prometheus(
    State(role): RoleState,
    LooseQuery(query): LooseQuery<HashMap<String, String>>,
) -> Response {
    let options = PrometheusOptions {
        containing: query.get("qry").cloned(),
        descriptions: query.get("description").is_some_and(|value| value == "true"),
    };
    role.beans(PROMETHEUS_TYPE, move |beans, out| {
        let mut prometheus = Prometheus::new(options, out);
        beans.show(&|_| true, &mut prometheus);
        prometheus.finish();
    })
}

/// The effective options: a page for browsers, JSON for other clients and for `?format=json`, as in
/// Hadoop's servlet.
async fn conf(State(role): RoleState, uri: Uri, headers: HeaderMap) -> Response {
    let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok()).unwrap_or("");
    let wants_json = uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "format=json"));
    if accepted.contains("text/html") && !wants_json {
        return role
            .render(&uri, |info, _| Ok(PageContent::Page(configuration::page(&info.configuration()))))
            .await;
    }
    json(StatusCode::OK, &configuration::json(role.info.configuration()))
}

fn json(status: StatusCode, value: &serde_json::Value) -> Response {
    let text = serde_json::to_string_pretty(value).expect("the value contains only strings and numbers");
    (status, [(header::CONTENT_TYPE, JSON_TYPE)], text).into_response()
}
