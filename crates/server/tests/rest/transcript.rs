//! The recorded responses of HBase's REST server, and those that differ on purpose.

use std::fs;
use std::io::Read;
use std::path::Path;

use regex::bytes::Regex;
use serde_json::{Map, Value};

use crate::http::{Connection, Response};

/// What is replaced in bodies before they are compared; the same list as in
/// `compat/rest/exchange.py`.
const REPLACEMENTS: [(&str, &str); 9] = [
    (
        r"(?-u)\b1[7-9](?:0000000[1-9]|000000[1-9]|00000[1-9]|0000[1-9]|000[1-9]|00[1-9]|0[1-9]|[1-9])\d*\b",
        "0",
    ),
    (r"(?-u)[0-9a-f]{32}", "MD5"),
    (r"(?-u)(?:localhost|127\.0\.0\.1):\d{5}", "HOST:PORT"),
    (r"(?-u)\bgrampus\b", "SERVLET"),
    (r#"(?-u),"hbase\.store\.file-tracker\.impl":"DEFAULT""#, ""),
    (r#"(?-u) hbase\.store\.file-tracker\.impl="DEFAULT""#, ""),
    (r"(?-u), hbase\.store\.file-tracker\.impl => 'DEFAULT'", ""),
    (r"(?-u)\x12\x28\x0a\x1dhbase\.store\.file-tracker\.impl\x12\x07DEFAULT", ""),
    (r"(?s-u)^((?:Bad request|Not found|Forbidden|Unavailable)\r\n[\w.$]+(?:Exception|Error)).*$", "$1"),
];

/// Exchanges whose bodies depend on the server, its load or its clock.
const VOLATILE: &str = "^(?:(?:book )?(?:version|status)|regions of t, protobuf|append with results)";

/// A request with the expected response.
pub struct Exchange {
    line: Map<String, Value>,
    expected: Map<String, Value>,
    /// Whether Grampus differs from HBase on purpose.
    pub is_difference: bool,
}

fn load(name: &str) -> Vec<Map<String, Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../compat/rest").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let object = |line| match serde_json::from_str(line).unwrap() {
        Value::Object(members) => members,
        other => panic!("not an object: {other}"),
    };
    text.lines().map(object).collect()
}

fn text_of<'a>(line: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    line.get(name)?.as_str()
}

/// All recorded exchanges, in order.
///
/// # Panics
/// If a difference has no reason, or no request.
pub fn exchanges() -> Vec<Exchange> {
    let mut differences = load("differences.jsonl");
    let exchanges = load("transcript.jsonl").into_iter().map(|line| {
        let is_of_line = |difference: &Map<String, Value>| difference["name"] == line["name"];
        let difference = differences.iter().position(is_of_line).map(|at| differences.swap_remove(at));
        let is_difference = difference.is_some();
        let expected = difference.unwrap_or_else(|| line.clone());
        let why = text_of(&expected, "why");
        assert!(!is_difference || why.is_some_and(|why| !why.is_empty()), "{}: no reason", line["name"]);
        Exchange { line, expected, is_difference }
    });
    let exchanges: Vec<Exchange> = exchanges.collect();
    assert!(differences.is_empty(), "differences of unknown requests: {differences:?}");
    exchanges
}

impl Exchange {
    pub fn name(&self) -> &str {
        text_of(&self.line, "name").unwrap()
    }

    /// Sends the request. `scanner` is the id of the last scanner, which is updated.
    pub fn send(&self, connection: &mut Connection, scanner: &mut String) -> Response {
        let path = text_of(&self.line, "path").unwrap().replace("{id}", scanner);
        let headers = self.line["request_headers"].as_object().unwrap();
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();
        let body = body_of(&self.line, "request_body");
        let mut response = connection.request(text_of(&self.line, "method").unwrap(), &path, &headers, &body);
        for (name, value) in &mut response.headers {
            if name == "location" && value.contains("/scanner/") {
                *scanner = value.rsplit('/').next().unwrap().to_owned();
                *value = value.replace(scanner.as_str(), "ID");
            }
            if name == "x-timestamp" {
                *value = String::from_utf8(normalized(value.clone().into_bytes())).unwrap();
            }
        }
        response
    }

    /// The difference of a response from the expected one, as text for people.
    pub fn difference(&self, response: &Response) -> Option<String> {
        let expected_headers = self.expected["headers"].as_object().unwrap();
        let mut found_body = response.body.clone();
        if response.header("content-encoding") == Some("gzip") {
            found_body.clear();
            flate2::read::GzDecoder::new(&response.body[..]).read_to_end(&mut found_body).unwrap();
        }
        let expected_body = body_of(&self.expected, "body");
        let is_volatile = Regex::new(VOLATILE).unwrap().is_match(self.name().as_bytes());
        let found_body = if is_volatile { expected_body.clone() } else { normalized(found_body) };
        let headers = expected_headers.iter().filter(|(name, value)| response.header(name) != value.as_str());
        let mut wrong: Vec<String> = headers
            .map(|(name, value)| format!("{name}: {value}, found {:?}", response.header(name)))
            .collect();
        // A header that HBase does not send must not be sent either, if clients act on it.
        for name in [
            "allow",
            "cache-control",
            "content-encoding",
            "content-type",
            "location",
            "x-row",
            "x-column",
            "x-timestamp",
        ] {
            if response.header(name).is_some() && !expected_headers.contains_key(name) {
                wrong.push(format!("{name}: {:?} is not expected", response.header(name)));
            }
        }
        if self.expected["status"] != response.status {
            wrong.push(format!("status {}, found {}", self.expected["status"], response.status));
        }
        if !is_same(&expected_body, &found_body) {
            let (expected, found) = (expected_body.escape_ascii(), found_body.escape_ascii());
            wrong.push(format!("body:\n    {expected}\n    {found}"));
        }
        (!wrong.is_empty()).then(|| format!("{}: {}", self.name(), wrong.join("; ")))
    }
}

/// Whether bodies are equal, in JSON apart from the order of members.
fn is_same(expected: &[u8], found: &[u8]) -> bool {
    let json = |body: &[u8]| serde_json::from_slice::<Value>(body).ok();
    expected == found || json(expected).is_some_and(|expected| Some(expected) == json(found))
}

fn normalized(mut body: Vec<u8>) -> Vec<u8> {
    for (pattern, replacement) in REPLACEMENTS {
        body = Regex::new(pattern).unwrap().replace_all(&body, replacement.as_bytes()).into_owned();
    }
    body
}

fn body_of(line: &Map<String, Value>, name: &str) -> Vec<u8> {
    match (text_of(line, name), text_of(line, &format!("{name}64"))) {
        (Some(text), _) => text.as_bytes().to_vec(),
        (None, Some(encoded)) => decoded(encoded),
        (None, None) => Vec::new(),
    }
}

/// Decodes base64.
fn decoded(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut out, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let digit = DIGITS.iter().position(|digit| *digit == byte).unwrap();
        bits = (bits << 6 | u32::try_from(digit).unwrap()) & 0xfff;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count & 0xff) as u8);
        }
    }
    out
}
