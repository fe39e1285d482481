//! Layer 7: the pages of both roles: status pages, `/history`, `/jmx`, `/prometheus` and `/conf`.
//!
//! The server hands in what is to be shown as plain values ([`Facts`], [`Page`]); nothing here asks a role for
//! anything. What takes long to write is written by threads of low priority, so a page does not slow down a request.
//! HBase's paths are kept.
//!
//! * [`section`]: the parts of a page; [`Value`]: a value in them;
//! * [`Query`]: what stands behind the question mark of an address; [`Refusal`]: why a page is not shown.
//!
//! Knows nothing about: regions, RPC, how the figures come about.

mod configuration;
mod guard;
mod history;
mod listener;
mod object_name;
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

use page::Asked;
pub use page::{Frame, Page};
pub use query::{Query, address};
pub use refusal::Refusal;
use streamed::streamed;
pub use value::{Level, Value};

const JSON_TYPE: &str = "application/json; charset=utf8";
const JAVASCRIPT_TYPE: &str = "application/javascript; charset=utf8";
const PROMETHEUS_TYPE: &str = "text/plain;charset=utf-8";
/// Threads that write long answers, and so how many are written at once.
const WRITERS: usize = 2;
/// Threads that make pages: others than those that write long answers, which wait for clients.
const PAGE_MAKERS: usize = 1;

/// What a role tells the world about itself; asked anew for each page.
pub trait Facts: Send + Sync + 'static {
    /// HBase's path of the status page: `/master-status` or `/rs-status`.
    fn status_path(&self) -> &'static str;
    /// Paths of all pages that [`Facts::page`] knows, the status page among them.
    fn paths(&self) -> &'static [&'static str];
    /// What all pages have in common.
    fn frame(&self) -> Frame;
    /// The content of a page, or where it is to be found.
    ///
    /// # Errors
    /// Why there is no such page.
    fn page(&self, path: &str, query: &Query) -> Result<Found, Refusal>;
    /// The last hour.
    fn history(&self) -> &History;
    /// The beans of `/jmx`.
    fn metrics(&self) -> &Registry;
    /// The options in force: key, value, and where the value comes from.
    fn configuration(&self) -> Vec<(String, String, String)>;
}

/// What there is at an address.
pub enum Found {
    /// A page.
    Page(Page),
    /// Something that is elsewhere.
    Elsewhere(String),
}

/// How the pages of a role are served.
#[derive(Clone, Debug)]
pub struct PageOptions {
    /// Connections at a time; more are closed immediately.
    pub connections_max: usize,
    /// Names of this server, for which browsers may ask; `*` stands for any.
    pub hosts: Vec<String>,
}

/// Serves the pages of one role on `listener` until the task is dropped.
pub async fn serve(env: Env, listener: Box<dyn Listener>, facts: Arc<dyn Facts>, options: PageOptions) {
    let mut router = Router::new()
        .route("/", get(root))
        .route("/favicon.ico", get(icon))
        .route("/history", get(history_json))
        .route("/jmx", get(jmx))
        .route("/prometheus", get(prometheus))
        .route("/conf", get(conf))
        .fallback(unknown);
    for path in facts.paths() {
        router = router.route(path, get(page));
    }
    let writers = Pool::background("pages", WRITERS);
    let makers = Pool::background("status", PAGE_MAKERS);
    let router = router.with_state(Arc::new(Role { facts, writers, makers }));
    let guard = guard::Guard::new(&options.hosts);
    listener::accept_all(env, listener, router, guard, options.connections_max).await;
}

/// What the pages are about, and who writes them.
struct Role {
    facts: Arc<dyn Facts>,
    writers: Pool,
    makers: Pool,
}

type OfRole = State<Arc<Role>>;

impl Role {
    /// Beans as a long answer.
    fn beans(
        &self,
        content_type: &'static str,
        write: impl FnOnce(&Registry, Chunks) + Send + 'static,
    ) -> Response {
        let facts = self.facts.clone();
        let clock = facts.metrics().clock().clone();
        streamed(&self.writers, clock, content_type, move |out| write(facts.metrics(), out))
    }

    /// A page that `make` finds, on a thread for that.
    async fn made(
        &self,
        uri: &Uri,
        make: impl FnOnce(&dyn Facts, &Query) -> Result<Found, Refusal> + Send + 'static,
    ) -> Response {
        let (facts, uri) = (self.facts.clone(), uri.clone());
        let made = move || {
            let path = uri.path();
            let frame = facts.frame();
            let answer =
                Query::parse(uri.query().unwrap_or("")).and_then(|query| match make(&*facts, &query)? {
                    Found::Page(page) => {
                        Ok(Html(page.render(&frame, &Asked { path, query: &query })?).into_response())
                    }
                    Found::Elsewhere(address) => Ok(Redirect::temporary(&address).into_response()),
                });
            answer.unwrap_or_else(|refusal| {
                let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
                (status, Html(refusal.render(&frame, path))).into_response()
            })
        };
        let mut answer = self.makers.run(made).await;
        // Figures of this moment: whoever comes back to a page wants those of that one.
        answer.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
        answer
    }
}

async fn root(State(role): OfRole) -> Redirect {
    Redirect::temporary(role.facts.status_path())
}

async fn icon() -> Response {
    ([(header::CONTENT_TYPE, "image/svg+xml")], page::ICON_SVG).into_response()
}

async fn page(State(role): OfRole, uri: Uri) -> Response {
    let path = uri.path().to_owned();
    role.made(&uri, move |facts, query| facts.page(&path, query)).await
}

async fn unknown(State(role): OfRole, uri: Uri) -> Response {
    let refusal = Refusal::missing(format!("There is no page {} here.", uri.path()));
    role.made(&uri, |_, _| Err(refusal)).await
}

/// `/history[?series=NAME,…]`: the last hour, for programs.
async fn history_json(State(role): OfRole, uri: Uri) -> Response {
    let facts = role.facts.clone();
    let told = move || {
        let query = Query::parse(uri.query().unwrap_or(""))?;
        let window = facts.history().window(Moment::of(&**facts.metrics().clock()));
        history::json(&window, query.get("series"))
    };
    match role.makers.run(told).await {
        Ok(text) => ([(header::CONTENT_TYPE, JSON_TYPE)], text).into_response(),
        Err(Refusal { status, what }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
            json(status, &serde_json::json!({"result": "ERROR", "message": what}))
        }
    }
}

/// `/jmx[?qry=PATTERN]` and `/jmx?get=BEAN::ATTRIBUTE`, with `description=true` and `callback=FUNCTION`, as Hadoop's
/// servlet answers them.
async fn jmx(State(role): OfRole, LooseQuery(query): LooseQuery<HashMap<String, String>>) -> Response {
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
    let (facts, bean) = (role.facts.clone(), bean.to_owned());
    let options = JmxOptions { only: Some(attribute.to_owned()), descriptions, callback };
    let look = role.writers.run(move || {
        let mut attributes = 0;
        let text = Chunks::collected(|out| {
            let mut jmx = Jmx::new(options, out);
            facts.metrics().show(&|name| object_name::matches(&bean, name), &mut jmx);
            attributes = jmx.attributes();
            jmx.finish();
        });
        (attributes, text)
    });
    match look.await {
        (0, _) => {
            let error =
                serde_json::json!({"beans": [], "result": "ERROR", "message": "No beans matching query."});
            json(StatusCode::NOT_FOUND, &error)
        }
        (_, text) => ([(header::CONTENT_TYPE, content_type)], text).into_response(),
    }
}

/// Whether a page of another origin may have its answer as a call of this function, and not as a call of anything else.
fn is_name(callback: &str) -> bool {
    callback.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte))
}

/// `/prometheus[?qry=PART][&description=true]`: all metrics, or those with this part in their names, as HBase 2.6
/// answers.
async fn prometheus(State(role): OfRole, LooseQuery(query): LooseQuery<HashMap<String, String>>) -> Response {
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

/// The options in force: a page for browsers, JSON for all others and for `?format=json`, as Hadoop's servlet has both.
async fn conf(State(role): OfRole, uri: Uri, headers: HeaderMap) -> Response {
    let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok()).unwrap_or("");
    let asks_for_json = uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "format=json"));
    if accepted.contains("text/html") && !asks_for_json {
        return role
            .made(&uri, |facts, _| Ok(Found::Page(configuration::page(&facts.configuration()))))
            .await;
    }
    json(StatusCode::OK, &configuration::json(role.facts.configuration()))
}

fn json(status: StatusCode, value: &serde_json::Value) -> Response {
    let text = serde_json::to_string_pretty(value).expect("a value made of strings and numbers");
    (status, [(header::CONTENT_TYPE, JSON_TYPE)], text).into_response()
}
