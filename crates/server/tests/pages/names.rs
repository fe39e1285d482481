//! Compares the names and kinds of our `/jmx` attributes with all those of HBase.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::common::{PORTS, Server, TempDir};
use crate::jmx;

/// HBase's [`Attribute`]s, one per line, separated by tabs.
const HBASE: &str = include_str!("hbase_beans.txt");

/// The page that describes each attribute.
const DOCUMENT: &str = include_str!("../../../../docs/metrics.md");

const HISTOGRAM: [&str; 12] = [
    "_num_ops",
    "_min",
    "_max",
    "_mean",
    "_25th_percentile",
    "_median",
    "_75th_percentile",
    "_90th_percentile",
    "_95th_percentile",
    "_98th_percentile",
    "_99th_percentile",
    "_99.9th_percentile",
];
const METER: [&str; 5] = ["_count", "_mean_rate", "_1min_rate", "_5min_rate", "_15min_rate"];

/// The bean's name without the common prefix, the attribute's name, and its kind of value.
type Attribute = (String, String, &'static str);

fn listed(text: &'static str) -> BTreeSet<Attribute> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parts = lines.map(|line| line.split('\t').collect::<Vec<_>>());
    parts.map(|parts| (parts[0].to_owned(), parts[1].to_owned(), parts[2])).collect()
}

/// The attributes that a server shows.
fn shown(answer: &Value) -> BTreeSet<Attribute> {
    let beans = answer["beans"].as_array().unwrap().iter().map(|bean| bean.as_object().unwrap());
    let ours = beans.filter_map(|bean| {
        let record = bean["name"].as_str().unwrap().strip_prefix("Hadoop:service=HBase,name=")?;
        Some(attributes(bean).map(move |(name, kind)| (record.to_owned(), name, kind)))
    });
    ours.flatten().collect()
}

/// The attributes of a bean. If all attributes of a histogram or meter exist, one more entry stands
/// for them together.
fn attributes(bean: &Map<String, Value>) -> impl Iterator<Item = (String, &'static str)> {
    let own = bean.iter().filter(|(name, _)| *name != "name" && *name != "modelerType");
    own.flat_map(move |(name, value)| {
        let all_of = |suffixes: &[&str], first: &str| {
            let name = name.strip_suffix(first)?;
            suffixes.iter().all(|suffix| bean.contains_key(&format!("{name}{suffix}"))).then_some(name)
        };
        let mut found = vec![(general(name), kind_of(value))];
        found.extend(all_of(&HISTOGRAM, "_num_ops").map(|name| (general(name), "histogram")));
        found.extend(all_of(&METER, "_count").map(|name| (general(name), "meter")));
        found
    })
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "text",
        Value::Number(number) if number.is_f64() => "fraction",
        Value::Number(_) => "whole",
        other => panic!("no kind of attribute: {other}"),
    }
}

/// The name without its table, region and family, or user.
fn general(name: &str) -> String {
    if let Some((_, end)) = name.strip_prefix("Namespace_").and_then(|name| name.split_once("_metric_")) {
        let of = match name {
            _ if name.contains("_region_") && name.contains("_store_") => "R_cf_",
            _ if name.contains("_region_") => "R_",
            _ if name.contains("_columnfamily_") => "T_cf_",
            _ => "T_",
        };
        return format!("{of}{end}");
    }
    if let Some((_, end)) = name.strip_prefix("User_").and_then(|name| name.split_once("_metric_")) {
        return format!("U_{end}");
    }
    match name.rsplit_once('.') {
        Some((_, end @ ("appendCount" | "appendSize"))) => format!("T.{end}"),
        _ => name.to_owned(),
    }
}

/// Whether `name` is `known`, or one of the names of the histogram or meter `known`.
fn is_part_of(name: &str, known: &str) -> bool {
    let Some(end) = name.strip_prefix(known) else { return false };
    let is_range = end.starts_with("_TimeRangeCount_") || end.starts_with("_SizeRangeCount_");
    end.is_empty() || is_range || HISTOGRAM.contains(&end) || METER.contains(&end)
}

fn lines<'a>(attributes: impl Iterator<Item = &'a Attribute>) -> String {
    attributes.map(|(bean, name, kind)| format!("{bean}\t{name}\t{kind}\n")).collect()
}

/// Checks that the metrics page has a line for each attribute.
fn check_documented(shown: &BTreeSet<Attribute>) {
    let has_line = |name: &str| DOCUMENT.contains(&format!("\n| `{name}` |"));
    let is_documented = |name: &str| {
        let name =
            ["R_cf_", "T_cf_", "R_", "T_", "U_"].iter().find_map(|of| name.strip_prefix(of)).unwrap_or(name);
        let of_range = name.split_once("_TimeRange").or(name.split_once("_SizeRange"));
        let name = of_range.map_or(name, |(name, _)| name);
        let ends = HISTOGRAM.iter().chain(&METER).filter_map(|end| name.strip_suffix(end));
        has_line(name.trim_start_matches("tag.")) || ends.into_iter().any(has_line)
    };
    let of_each = ["tag.Context", "tag.Hostname", "T.appendCount", "T.appendSize"];
    let undocumented =
        shown.iter().filter(|(_, name, _)| !of_each.contains(&name.as_str()) && !is_documented(name));
    let undocumented = lines(undocumented);
    assert!(undocumented.is_empty(), "not in docs/metrics.md:\n{undocumented}");
}

#[test]
fn no_hbase_metric_is_missing() {
    let dir = TempDir::new();
    let with_users = ["--set", "hbase.regionserver.user.metrics.enabled=true"];
    let server = Server::start_with(&dir.join("data"), &with_users);
    assert!(server.shell("create 'names', 'f'\nput 'names', 'r', 'f:q', 'v'").status.success());
    let mut ours = shown(&jmx(PORTS[2] + server.offset, ""));
    ours.extend(shown(&jmx(PORTS[4] + server.offset, "")));
    check_documented(&ours);
    let hbase = listed(HBASE);
    let lacking = lines(hbase.difference(&ours));
    assert!(lacking.is_empty(), "missing, or of another kind:\n{lacking}");
    let added = |(bean, name, _): &&Attribute| {
        let known = hbase.iter().any(|(of, known, _)| of == bean && is_part_of(name, known));
        !known && !bean.ends_with("sub=Grampus") && name != "tag.Hostname"
    };
    let added = lines(ours.iter().filter(added));
    assert!(added.is_empty(), "what HBase does not have belongs into sub=Grampus:\n{added}");
}
