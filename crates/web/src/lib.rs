//! Layer 6: the pages of both roles: a status page, `/jmx`, `/prometheus` and `/conf`.
//!
//! The server hands in what is to be shown as plain values ([`Facts`]); nothing here asks a role for anything, so a
//! page cannot slow down a request. HBase's paths are kept: `/master-status`, `/rs-status`, `/jmx`, `/prometheus`, `/conf`.
//!
//! Knows nothing about: regions, RPC, how the figures come about.

mod listener;
mod page;
mod streamed;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use base::env::Listener;
use base::metrics::{Chunks, Jmx, JmxOptions, Prometheus, PrometheusOptions, Registry};
use base::pool::Pool;
use serde_json::Value;

pub use page::{Section, StatusPage};
use streamed::streamed;

const JSON_TYPE: &str = "application/json; charset=utf8";
const JAVASCRIPT_TYPE: &str = "application/javascript; charset=utf8";
const PROMETHEUS_TYPE: &str = "text/plain;charset=utf-8";
/// Threads that write long answers, and so how many are written at once.
const WRITERS: usize = 2;

/// What a role tells the world about itself; asked anew for each page.
pub trait Facts: Send + Sync + 'static {
    /// HBase's path of the status page: `/master-status` or `/rs-status`.
    fn status_path(&self) -> &'static str;
    /// The content of the status page.
    fn status(&self) -> StatusPage;
    /// The beans of `/jmx`.
    fn metrics(&self) -> &Registry;
    /// The options in force: key, value, and where the value comes from.
    fn configuration(&self) -> Vec<(String, String, String)>;
}

/// Serves the pages of one role on `listener` until the task is dropped.
pub async fn serve(listener: Box<dyn Listener>, facts: Arc<dyn Facts>) {
    let router = Router::new()
        .route("/", get(root))
        .route(facts.status_path(), get(status))
        .route("/jmx", get(jmx))
        .route("/prometheus", get(prometheus))
        .route("/conf", get(conf))
        .with_state(Arc::new(Role { facts, writers: Pool::background("pages", WRITERS) }));
    // Never returns: an accept error is passed over by the listener.
    let _ = axum::serve(listener::Connections(listener), router).await;
}

/// What the pages are about, and who writes the long ones.
struct Role {
    facts: Arc<dyn Facts>,
    writers: Pool,
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
}

async fn root(State(role): OfRole) -> Redirect {
    Redirect::temporary(role.facts.status_path())
}

async fn status(State(role): OfRole) -> Html<String> {
    Html(role.facts.status().render())
}

/// `/jmx[?qry=PATTERN]` and `/jmx?get=BEAN::ATTRIBUTE`, with `description=true` and `callback=FUNCTION`, as Hadoop's
/// servlet answers them.
async fn jmx(State(role): OfRole, Query(query): Query<HashMap<String, String>>) -> Response {
    let descriptions = query.get("description").is_some_and(|value| value == "true");
    let callback = query.get("callback").filter(|callback| is_name(callback)).cloned();
    let content_type = if callback.is_some() { JAVASCRIPT_TYPE } else { JSON_TYPE };
    let Some(wanted) = query.get("get") else {
        let pattern = query.get("qry").cloned();
        let options = JmxOptions { only: None, descriptions, callback };
        return role.beans(content_type, move |beans, out| {
            let mut jmx = Jmx::new(options, out);
            beans.show(&|name| pattern.as_ref().is_none_or(|pattern| matches(pattern, name)), &mut jmx);
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
            facts.metrics().show(&|name| name == bean, &mut jmx);
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

/// `/prometheus[?qry=PART][&description=true]`: all metrics, or those with this part in their names, as HBase 2.6 answers.
async fn prometheus(State(role): OfRole, Query(query): Query<HashMap<String, String>>) -> Response {
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

async fn conf(State(role): OfRole) -> Response {
    let properties: Vec<Value> = role
        .facts
        .configuration()
        .into_iter()
        .map(|(key, value, source)| {
            serde_json::json!({"key": key, "value": value, "isFinal": false, "resource": source})
        })
        .collect();
    json(StatusCode::OK, &serde_json::json!({ "properties": properties }))
}

fn json(status: StatusCode, value: &Value) -> Response {
    let text = serde_json::to_string_pretty(value).expect("a value made of strings and numbers");
    (status, [(header::CONTENT_TYPE, JSON_TYPE)], text).into_response()
}

/// Whether `name` fits a JMX pattern: `*` stands for any text, `?` for one character.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // The classic two-pointer match: on a mismatch go back to the last star and let it take one more character.
    let (mut at, mut star, mut named, mut taken) = (0, None, 0, 0);
    while named < name.len() {
        if at < pattern.len() && (pattern[at] == '?' || pattern[at] == name[named]) && pattern[at] != '*' {
            at += 1;
            named += 1;
        } else if at < pattern.len() && pattern[at] == '*' {
            star = Some(at);
            taken = named;
            at += 1;
        } else if let Some(last) = star {
            at = last + 1;
            taken += 1;
            named = taken;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_of_jmx_queries() {
        assert!(matches("Hadoop:*", "Hadoop:service=HBase,name=Master,sub=Server"));
        assert!(matches("*:service=HBase,*", "Hadoop:service=HBase,name=Master,sub=Server"));
        assert!(matches("java.lang:type=Memor?", "java.lang:type=Memory"));
        assert!(!matches("Hadoop:service=HBase", "Hadoop:service=HBase,name=Master"));
        assert!(!matches("", "x"));
        assert!(matches("**", ""));
    }
}
