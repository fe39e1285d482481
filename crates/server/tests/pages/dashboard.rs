//! The Grafana dashboard uses only existing metrics.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::{PORTS, Server, TempDir};
use crate::get;

const DASHBOARD: &str = include_str!("../../../../docs/grafana.json");

/// The queries of all panels.
fn queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// The metrics in a query: the names before braces.
fn metrics(query: &str) -> impl Iterator<Item = &str> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let before_braces = query.split('{').rev().skip(1);
    before_braces.map(move |text| text.rsplit(|letter| !is_of_name(letter)).next().unwrap())
}

#[test]
fn all_queried_metrics_exist() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let shown = [PORTS[2], PORTS[4]].map(|port| get(port + server.offset, "/prometheus").2).concat();
    let shown: BTreeSet<&str> = shown.lines().filter_map(|line| Some(line.split_once('{')?.0)).collect();
    let queries = queries();
    let asked: BTreeSet<&str> = queries.iter().flat_map(|query| metrics(query)).collect();
    assert!(asked.len() > 40, "{asked:?}");
    let missing: Vec<_> = asked.difference(&shown).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
