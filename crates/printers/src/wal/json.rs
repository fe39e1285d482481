//! An edit as a JSON object, with the names, the order and the escapes of HBase's printer.

use std::fmt::Write as _;
use std::io::Write;

use base::text::to_string_binary;
use cell::Cell;
use wal::Entry;

use super::text::shown_tags;
use super::{LogForm, heap_bytes};
use crate::Error;
use crate::hfile::type_name;

/// The namespace of a table whose name states none, and that of HBase's own tables.
const DEFAULT_NAMESPACE: &str = "default";
const SYSTEM_NAMESPACE: &str = "hbase";

pub(super) fn print(
    out: &mut dyn Write,
    form: LogForm,
    entry: &Entry,
    cells: &[Cell<'_>],
) -> Result<(), Error> {
    let actions: Vec<String> = cells.iter().map(|cell| action(form, cell)).collect();
    write!(
        out,
        "{{\"sequence\":\"{}\",\"region\":{},\"actions\":[{}],\"table\":{}}}",
        entry.key.seq_id,
        string(&String::from_utf8_lossy(&entry.key.region)),
        actions.join(","),
        table(&String::from_utf8_lossy(&entry.key.table))
    )?;
    Ok(())
}

fn action(form: LogForm, cell: &Cell<'_>) -> String {
    let row = string(&to_string_binary(cell.row()));
    if form.rows_only {
        return format!("{{\"row\":{row}}}");
    }
    let mut action = format!(
        "{{\"qualifier\":{},\"vlen\":{},\"row\":{row}",
        string(&to_string_binary(cell.qualifier())),
        cell.value.len()
    );
    let tags: Vec<String> = shown_tags(cell).map(|tag| string(&tag)).collect();
    if !tags.is_empty() {
        action += &format!(",\"tag\":[{}]", tags.join(","));
    }
    action += &format!(
        ",\"type\":{},\"family\":{}",
        string(&type_name(cell.type_code())),
        string(&to_string_binary(cell.family()))
    );
    if form.values {
        action += &format!(",\"value\":{}", string(&to_string_binary(cell.value)));
    }
    action +=
        &format!(",\"timestamp\":\"{}\",\"total_size_sum\":\"{}\"}}", cell.timestamp(), heap_bytes(cell));
    action
}

/// The fields of HBase's `TableName`.
fn table(name: &str) -> String {
    let (namespace, qualifier) = name.split_once(':').unwrap_or((DEFAULT_NAMESPACE, name));
    let bytes = |text: &str| {
        // Java's bytes are signed.
        let bytes: Vec<String> = text.bytes().map(|byte| byte.cast_signed().to_string()).collect();
        format!("[{}]", bytes.join(","))
    };
    format!(
        "{{\"name\":{},\"nameAsString\":{},\"namespace\":{},\"namespaceAsString\":{},\"qualifier\":{},\
         \"qualifierAsString\":{},\"systemTable\":{},\"hashCode\":{}}}",
        bytes(name),
        string(name),
        bytes(namespace),
        string(namespace),
        bytes(qualifier),
        string(qualifier),
        namespace == SYSTEM_NAMESPACE,
        java_hash(name)
    )
}

/// The hash code of a Java string.
fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// A JSON string. Characters with a meaning in HTML are escaped, too.
fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '<' | '>' | '&' | '=' | '\'' | '\0'..='\x1f' => {
                write!(quoted, "\\u{:04x}", u32::from(char)).expect("writing to a String cannot fail");
            }
            _ => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}
