//! The recorded responses of HBase's Thrift servers, and those that differ on purpose.

use std::fs;
use std::path::Path;

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::wire::Connection;

/// What is replaced in text before it is compared; the same list as in
/// `compat/thrift/exchange.py`.
const REPLACEMENTS: [(&str, &str); 6] = [
    (r"(?s)\n\s*at .*", ""),
    (r"(?s) in table '[\w:]+', \{.*", ""),
    (r"(?s): \d+ times?(?:, servers with issues: .*)?$", ""),
    (r"(?s)Failed after attempts=.*", "Failed after attempts"),
    (r"\b1[6-9]\d{11}\b", "TIME"),
    (r"[0-9a-f]{32}", "MD5"),
];
/// The id of the last opened scanner, in recorded calls and responses.
const SCANNER: i32 = 0x5ca7_7e12;

/// A call with the expected response.
pub struct Exchange {
    line: Map<String, Value>,
    expected: Value,
    /// Whether Grampus differs from HBase on purpose.
    pub is_difference: bool,
}

fn load(name: &str) -> Vec<Map<String, Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../compat/thrift").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let object = |line| match serde_json::from_str(line).unwrap() {
        Value::Object(members) => members,
        other => panic!("not an object: {other}"),
    };
    text.lines().map(object).collect()
}

/// All recorded exchanges, in order.
///
/// # Panics
/// If a difference has no reason, or no call.
pub fn exchanges() -> Vec<Exchange> {
    let mut differences = load("differences.jsonl");
    let exchanges = load("transcript.jsonl").into_iter().map(|line| {
        let is_of_line = |difference: &Map<String, Value>| difference["name"] == line["name"];
        let difference = differences.iter().position(is_of_line).map(|at| differences.swap_remove(at));
        let is_difference = difference.is_some();
        let expected = difference.unwrap_or_else(|| line.clone());
        let why = expected.get("why").and_then(Value::as_str);
        assert!(!is_difference || why.is_some_and(|why| !why.is_empty()), "{}: no reason", line["name"]);
        // The entries of maps are sorted as here.
        Exchange { expected: normalized(expected["response"].clone()), line, is_difference }
    });
    let exchanges: Vec<Exchange> = exchanges.collect();
    assert!(differences.is_empty(), "differences of unknown calls: {differences:?}");
    exchanges
}

impl Exchange {
    /// `one` or `two`.
    pub fn service(&self) -> &str {
        self.line["service"].as_str().unwrap()
    }

    /// Sends the call; returns the difference of the response from the expected one, as text for
    /// people. `scanner` is the id of the last scanner, which is updated.
    pub fn difference(&self, connection: &mut Connection, scanner: &mut i32) -> Option<String> {
        let message = replaced(&bytes_of(self.line["call"].as_str().unwrap()), *scanner);
        let mut response = connection.call(&message).unwrap_or_else(|_| {
            connection.reopen();
            json!({"closed": true})
        });
        let method = self.line["method"].as_str().unwrap();
        if (method.starts_with("scannerOpen") || method == "openScanner")
            && let Some(result) = response.pointer_mut("/reply/0")
        {
            *scanner = result.as_i64().unwrap() as i32;
            *result = json!("SCANNER");
        }
        let mut found = normalized(response);
        if self.line["shape"] == json!(true) {
            found = shape(&found);
        }
        let is_equal = found == self.expected;
        (!is_equal)
            .then(|| format!("{}\n  expected: {}\n  found:    {found}", self.line["name"], self.expected))
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn replaced(message: &[u8], scanner: i32) -> Vec<u8> {
    let (from, to) = (SCANNER.to_be_bytes(), scanner.to_be_bytes());
    let mut message = message.to_vec();
    for at in 0..message.len().saturating_sub(3) {
        if message[at..at + 4] == from {
            message[at..at + 4].copy_from_slice(&to);
        }
    }
    message
}

/// Replaces what differs from run to run.
fn normalized(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Map<String, Value> =
                members.into_iter().map(|(name, member)| (name, normalized(member))).collect();
            // The entries of a map have no order.
            if let Some(Value::Array(entries)) = members.get_mut("map") {
                entries.sort_by_key(Value::to_string);
            }
            Value::Object(members)
        }
        Value::Array(elements) => elements.into_iter().map(normalized).collect(),
        Value::String(mut text) => {
            for (pattern, replacement) in REPLACEMENTS {
                text = Regex::new(pattern).unwrap().replace_all(&text, replacement).into_owned();
            }
            // An exception of a server has its class in its message, too.
            let is_repeated = |(first, rest): &(&str, &str)| {
                rest.starts_with(first) && rest[first.len()..].starts_with(": ")
            };
            match text.split_once(": ").filter(is_repeated) {
                Some((_, rest)) => json!(rest),
                None => json!(text),
            }
        }
        Value::Number(number) => match number.as_i64() {
            Some(1_600_000_000_001..=1_999_999_999_998) => json!("TIME"),
            _ => Value::Number(number),
        },
        other => other,
    }
}

/// Only the structure of a response, for values of a server; the names are Python's.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), shape(member))).collect()
        }
        Value::Array(elements) => elements.iter().map(shape).collect(),
        Value::String(_) => json!("str"),
        Value::Number(_) => json!("int"),
        Value::Bool(_) => json!("bool"),
        Value::Null => json!("NoneType"),
    }
}
