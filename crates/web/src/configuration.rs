//! `/conf`: the effective options.

use crate::section::{Column, Section, Table};
use crate::{Page, Value};

/// Key, value, and source of the value.
type Setting = (String, String, String);

/// JSON for programs, in the format of Hadoop's servlet.
pub(crate) fn json(settings: Vec<Setting>) -> serde_json::Value {
    let properties: Vec<serde_json::Value> = settings
        .into_iter()
        .map(|(key, value, source)| {
            serde_json::json!({"key": key, "value": value, "isFinal": false, "resource": source})
        })
        .collect();
    serde_json::json!({ "properties": properties })
}

/// The page for people.
pub(crate) fn page(settings: &[Setting]) -> Page {
    let columns = ["Key", "Value", "Source"].map(Column::text).to_vec();
    let rows = settings.iter().map(|(key, value, source)| {
        vec![Value::whole_key(key.as_bytes()), Value::key(value.as_bytes()), Value::text(source)]
    });
    Page {
        title: "Configuration".into(),
        subtitle: "The effective options and their sources.".into(),
        up: None,
        sections: vec![Section::Table(Table::new("Options", columns).with_rows(rows))],
    }
}
