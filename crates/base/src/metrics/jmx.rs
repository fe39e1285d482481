//! Beans as the JSON of `/jmx`.

use std::io::Write;

use crate::metrics::{Chunks, Name, Number, Plain, Reader};

/// Options of a `/jmx` query.
#[derive(Clone, Debug, Default)]
pub struct JmxOptions {
    /// Show only this attribute of each bean, in addition to the bean's name.
    pub only: Option<String>,
    /// Show the description of each attribute.
    pub descriptions: bool,
    /// JSONP: wrap the response in a call of this JavaScript function.
    pub callback: Option<String>,
}

/// Writes beans attribute by attribute and stores only the text.
pub struct Jmx {
    options: JmxOptions,
    out: Chunks,
    beans: usize,
    attributes: usize,
}

impl Jmx {
    /// A response without beans, written to `out`.
    pub fn new(options: JmxOptions, mut out: Chunks) -> Jmx {
        if let Some(function) = &options.callback {
            out.text.extend_from_slice(function.as_bytes());
            out.text.push(b'(');
        }
        out.text.extend_from_slice(b"{\n  \"beans\": [");
        Jmx { options, out, beans: 0, attributes: 0 }
    }

    /// Number of attributes written so far, except a bean's name and type.
    pub fn attributes(&self) -> usize {
        self.attributes
    }

    /// Completes the response.
    pub fn finish(mut self) {
        self.out.text.extend_from_slice(if self.beans == 0 { b"]\n}" } else { b"\n  ]\n}" });
        if self.options.callback.is_some() {
            self.out.text.extend_from_slice(b");");
        }
        self.out.finish();
    }

    /// Begins a member of the bean. Returns false if the query does not request it.
    fn member(&mut self, tag: &str, name: Name<'_>) -> bool {
        let is_wanted = self
            .options
            .only
            .as_deref()
            .is_none_or(|only| only.strip_prefix(tag).is_some_and(|only| name.is(only)));
        if !is_wanted {
            return false;
        }
        self.attributes += 1;
        self.out.emit_full();
        self.out.text.extend_from_slice(b",\n      \"");
        self.out.text.extend_from_slice(tag.as_bytes());
        name.pieces().iter().for_each(|piece| put_escaped(&mut self.out.text, piece));
        self.out.text.extend_from_slice(b"\": ");
        true
    }

    fn value(&mut self, tag: &str, name: Name<'_>, put: impl FnOnce(&mut Vec<u8>)) {
        if !self.member(tag, name) {
            return;
        }
        if !self.options.descriptions || name.help.is_empty() {
            return put(&mut self.out.text);
        }
        self.out.text.extend_from_slice(b"{\n        \"description\": \"");
        put_escaped(&mut self.out.text, name.help);
        self.out.text.extend_from_slice(b"\",\n        \"value\": ");
        put(&mut self.out.text);
        self.out.text.extend_from_slice(b"\n      }");
    }
}

impl Reader for Jmx {
    fn begin(&mut self, bean: &str, modeler_type: &str) {
        let separator: &[u8] = if self.beans == 0 { b"\n    {" } else { b",\n    {" };
        self.out.text.extend_from_slice(separator);
        self.out.emit_full();
        self.beans += 1;
        self.out.text.extend_from_slice(b"\n      \"name\": ");
        put_text(&mut self.out.text, bean);
        self.out.text.extend_from_slice(b",\n      \"modelerType\": ");
        put_text(&mut self.out.text, modeler_type);
    }

    fn tag(&mut self, name: Name<'_>, text: &str) {
        self.value("tag.", name, |out| put_text(out, text));
    }

    fn counter(&mut self, name: Name<'_>, value: u64) {
        self.gauge(name, value.into());
    }

    fn gauge(&mut self, name: Name<'_>, value: Number) {
        self.value("", name, |out| put_number(out, value));
    }

    fn plain(&mut self, name: Name<'_>, value: Plain<'_>) {
        self.value("", name, |out| match value {
            Plain::Text(text) => put_text(out, text),
            Plain::Number(number) => put_number(out, number),
            Plain::Flag(flag) => out.extend_from_slice(if flag { b"true" } else { b"false" }),
            Plain::Numbers(numbers) => put_numbers(out, numbers),
        });
    }

    fn end(&mut self) {
        self.out.text.extend_from_slice(b"\n    }");
    }
}

fn put_number(out: &mut Vec<u8>, number: Number) {
    let written = match number {
        Number::Int(value) => write!(out, "{value}"),
        // Rust's debug format: with a decimal point, and lossless.
        Number::Float(value) => write!(out, "{value:?}"),
    };
    written.expect("writing to memory cannot fail");
}

fn put_numbers(out: &mut Vec<u8>, numbers: &[(&str, Number)]) {
    for (at, (name, number)) in numbers.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"{\n        " } else { b",\n        " });
        put_text(out, name);
        out.extend_from_slice(b": ");
        put_number(out, *number);
    }
    out.extend_from_slice(if numbers.is_empty() { b"{}" } else { b"\n      }" });
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    put_escaped(out, text);
    out.push(b'"');
}

/// Almost no name needs escaping in JSON.
fn put_escaped(out: &mut Vec<u8>, text: &str) {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        return out.extend_from_slice(text.as_bytes());
    }
    let quoted = serde_json::to_string(text).expect("a string serializes to JSON");
    out.extend_from_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::testing::text_of;

    fn name(name: &'static str) -> Name<'static> {
        Name { prefix: "", name, suffix: "", help: "What it is." }
    }

    fn shown(options: JmxOptions) -> (serde_json::Value, String, usize) {
        let mut attributes = 0;
        let text = text_of(|out| attributes = show(Jmx::new(options, out)));
        (serde_json::from_str(&text).unwrap(), text, attributes)
    }

    fn show(mut jmx: Jmx) -> usize {
        jmx.begin("Hadoop:service=HBase,name=RegionServer,sub=Server", "RegionServer,sub=Server");
        jmx.tag(name("Context"), "region\"server\"");
        jmx.counter(name("requests"), u64::MAX);
        jmx.plain(name("Usage"), Plain::Numbers(&[("used", 1_u64.into()), ("max", 2.5.into())]));
        jmx.plain(name("Verbose"), Plain::Flag(false));
        jmx.gauge(Name { prefix: "t\n", suffix: "_mean", ..name("Get") }, 2.0.into());
        jmx.end();
        jmx.begin("empty", "none");
        jmx.end();
        let attributes = jmx.attributes();
        jmx.finish();
        attributes
    }

    #[test]
    fn beans_are_as_hbase_shows_them() {
        let (value, text, attributes) = shown(JmxOptions::default());
        let expected = serde_json::json!({"beans": [{
            "name": "Hadoop:service=HBase,name=RegionServer,sub=Server",
            "modelerType": "RegionServer,sub=Server",
            "tag.Context": "region\"server\"",
            "requests": i64::MAX,
            "Usage": {"used": 1, "max": 2.5},
            "Verbose": false,
            "t\nGet_mean": 2.0,
        }, {"name": "empty", "modelerType": "none"}]});
        assert_eq!((value, attributes), (expected, 5));
        assert!(text.starts_with("{\n  \"beans\": [\n    {\n      \"name\": \"Hadoop:service"), "{text}");
        let end = "    },\n    {\n      \"name\": \"empty\",\n      \"modelerType\": \"none\"\n    }\n  ]\n}";
        assert!(text.ends_with(end), "{text}");
        assert!(text.contains("\"t\\nGet_mean\": 2.0"), "a double keeps its point");
        let none = text_of(|out| Jmx::new(JmxOptions::default(), out).finish());
        assert_eq!(none, "{\n  \"beans\": []\n}");
    }

    #[test]
    fn one_attribute_is_shown_alone() {
        for (only, found) in
            [("requests", 1), ("tag.Context", 1), ("Context", 0), ("t\nGet_mean", 1), ("Get_mean", 0)]
        {
            let options = JmxOptions { only: Some(only.to_owned()), ..JmxOptions::default() };
            let (value, _, attributes) = shown(options);
            assert_eq!(attributes, found, "{only}");
            assert_eq!(value["beans"][0].as_object().unwrap().len(), 2 + found);
        }
    }

    #[test]
    fn descriptions_go_with_their_values() {
        let options = JmxOptions { descriptions: true, ..JmxOptions::default() };
        let (value, _, _) = shown(options);
        let expected = serde_json::json!({"description": "What it is.", "value": i64::MAX});
        assert_eq!(value["beans"][0]["requests"], expected);
    }
}
