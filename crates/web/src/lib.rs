//! Layer 6: the pages of both roles: a status page, `/jmx`, `/prometheus` and `/conf`.
//!
//! The server hands in what is to be shown as plain values ([`Facts`]); nothing here asks a role for anything, so a
//! page cannot slow down a request. HBase's paths are kept: `/master-status`, `/rs-status`, `/jmx`, `/prometheus`, `/conf`.
//!
//! Knows nothing about: regions, RPC, how the figures come about.

mod listener;
mod page;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use base::env::Listener;
use base::metrics::{Jmx, JmxOptions, Prometheus, PrometheusOptions, Registry};
use serde_json::Value;

pub use page::{Section, StatusPage};

const JSON_TYPE: &str = "application/json; charset=utf8";

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
        .with_state(facts);
    // Never returns: an accept error is passed over by the listener.
    let _ = axum::serve(listener::Connections(listener), router).await;
}

type Role = State<Arc<dyn Facts>>;

async fn root(State(facts): Role) -> Redirect {
    Redirect::temporary(facts.status_path())
}

async fn status(State(facts): Role) -> Html<String> {
    Html(facts.status().render())
}

/// `/jmx[?qry=PATTERN]` and `/jmx?get=BEAN::ATTRIBUTE`, with `description=true` and `callback=FUNCTION`, as Hadoop's
/// servlet answers them.
async fn jmx(State(facts): Role, Query(query): Query<HashMap<String, String>>) -> Response {
    let descriptions = query.get("description").is_some_and(|value| value == "true");
    let Some(wanted) = query.get("get") else {
        let pattern = query.get("qry");
        let mut jmx = Jmx::new(JmxOptions { only: None, descriptions });
        facts.metrics().show(&|name| pattern.is_none_or(|pattern| matches(pattern, name)), &mut jmx);
        return shown(jmx.finish(), query.get("callback"));
    };
    let Some((bean, attribute)) = wanted.split_once("::").filter(|(_, rest)| !rest.contains("::")) else {
        let error = serde_json::json!({"result": "ERROR", "message": "query format is not as expected."});
        return json(StatusCode::BAD_REQUEST, &error);
    };
    let mut jmx = Jmx::new(JmxOptions { only: Some(attribute.to_owned()), descriptions });
    facts.metrics().show(&|name| name == bean, &mut jmx);
    if jmx.attributes() == 0 {
        let error =
            serde_json::json!({"beans": [], "result": "ERROR", "message": "No beans matching query."});
        return json(StatusCode::NOT_FOUND, &error);
    }
    shown(jmx.finish(), query.get("callback"))
}

/// JSON, or a call of the function that a page of another origin wants it in.
fn shown(json: Vec<u8>, callback: Option<&String>) -> Response {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte);
    match callback.filter(|callback| callback.bytes().all(is_of_name)) {
        None => ([(header::CONTENT_TYPE, JSON_TYPE)], json).into_response(),
        Some(callback) => {
            let called = [callback.as_bytes(), b"(", &json, b");"].concat();
            ([(header::CONTENT_TYPE, "application/javascript; charset=utf8")], called).into_response()
        }
    }
}

/// `/prometheus[?qry=PART][&description=true]`: all metrics, or those with this part in their names, as HBase 2.6 answers.
async fn prometheus(State(facts): Role, Query(query): Query<HashMap<String, String>>) -> Response {
    let options = PrometheusOptions {
        containing: query.get("qry").cloned(),
        descriptions: query.get("description").is_some_and(|value| value == "true"),
    };
    let mut prometheus = Prometheus::new(options);
    facts.metrics().show(&|_| true, &mut prometheus);
    ([(header::CONTENT_TYPE, "text/plain;charset=utf-8")], prometheus.finish()).into_response()
}

async fn conf(State(facts): Role) -> Response {
    let properties: Vec<Value> = facts
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
