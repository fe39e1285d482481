//! `/conf`: the options in force.

use crate::section::{Column, Section, Table};
use crate::{Page, Value};

/// Key, value, and where the value comes from.
type Setting = (String, String, String);

/// For programs, in the form of Hadoop's servlet.
pub(crate) fn json(settings: Vec<Setting>) -> serde_json::Value {
    let properties: Vec<serde_json::Value> = settings
        .into_iter()
        .map(|(key, value, source)| {
            serde_json::json!({"key": key, "value": value, "isFinal": false, "resource": source})
        })
        .collect();
    serde_json::json!({ "properties": properties })
}

/// For people.
pub(crate) fn page(settings: &[Setting]) -> Page {
    let columns = ["Key", "Value", "From"].map(Column::text).to_vec();
    let rows = settings.iter().map(|(key, value, source)| {
        vec![Value::whole_key(key.as_bytes()), Value::key(value.as_bytes()), Value::text(source)]
    });
    Page {
        title: "Configuration".into(),
        subtitle: "The options in force, and where each value comes from.".into(),
        up: None,
        sections: vec![Section::Table(Table::new("Options", columns).with_rows(rows))],
    }
}
