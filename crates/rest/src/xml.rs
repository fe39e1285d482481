//! XML: a reader by events, without DTDs and entities of the document, and text for the writers.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

/// Maximum nesting depth of elements.
const DEPTH_MAX: usize = 32;
/// The beginning of every document.
pub(crate) const DECLARATION: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>"#;

/// The text is not well-formed XML, or not the expected document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotXml;

/// Receives the parts of a document. `path` has the names of the open elements, outermost first.
pub(crate) trait Handler {
    /// An element begins.
    fn start(&mut self, path: &[String], attributes: &[(String, String)]) -> Result<(), NotXml>;
    /// An element has ended; `text` is its own text.
    fn end(&mut self, path: &[String], text: &str) -> Result<(), NotXml>;
}

/// Reads a document whose outermost element is `root`.
///
/// # Errors
/// [`NotXml`], also of the handler.
pub(crate) fn read(document: &[u8], root: &str, handler: &mut impl Handler) -> Result<(), NotXml> {
    let mut reader = Reader::from_reader(document);
    let mut open = OpenElements { root, path: Vec::new(), text: Vec::new(), handler };
    let mut roots = 0;
    loop {
        let event = reader.read_event().map_err(|_| NotXml)?;
        match event {
            Event::Eof => break,
            Event::Start(element) => {
                roots += usize::from(open.path.is_empty());
                open.start(&element)?;
            }
            Event::Empty(element) => {
                roots += usize::from(open.path.is_empty());
                open.start(&element)?;
                open.end()?;
            }
            Event::End(_) => open.end()?,
            Event::Text(text) => open.add(&text.decode().map_err(|_| NotXml)?)?,
            Event::CData(text) => open.add(&text.decode().map_err(|_| NotXml)?)?,
            Event::GeneralRef(reference) => {
                let resolved = match reference.resolve_char_ref().map_err(|_| NotXml)? {
                    Some(character) => character.to_string(),
                    None => {
                        let name = reference.decode().map_err(|_| NotXml)?;
                        resolve_predefined_entity(&name).ok_or(NotXml)?.to_owned()
                    }
                };
                open.add(&resolved)?;
            }
            Event::DocType(_) => return Err(NotXml),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
    if roots == 1 && open.path.is_empty() { Ok(()) } else { Err(NotXml) }
}

struct OpenElements<'a, H> {
    root: &'a str,
    path: Vec<String>,
    text: Vec<String>,
    handler: &'a mut H,
}

impl<H: Handler> OpenElements<'_, H> {
    fn start(&mut self, element: &BytesStart<'_>) -> Result<(), NotXml> {
        if self.path.len() == DEPTH_MAX {
            return Err(NotXml);
        }
        let name = std::str::from_utf8(element.local_name().into_inner()).map_err(|_| NotXml)?.to_owned();
        if self.path.is_empty() && name != self.root {
            return Err(NotXml);
        }
        let mut attributes = Vec::new();
        for attribute in element.attributes() {
            let attribute = attribute.map_err(|_| NotXml)?;
            let key = std::str::from_utf8(attribute.key.as_ref()).map_err(|_| NotXml)?.to_owned();
            let value = attribute.unescape_value().map_err(|_| NotXml)?.into_owned();
            if key != "xmlns" && !key.starts_with("xmlns:") {
                attributes.push((key, value));
            }
        }
        self.path.push(name);
        self.text.push(String::new());
        self.handler.start(&self.path, &attributes)
    }

    fn add(&mut self, text: &str) -> Result<(), NotXml> {
        match self.text.last_mut() {
            Some(own) => own.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err(NotXml),
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), NotXml> {
        let text = self.text.pop().ok_or(NotXml)?;
        self.handler.end(&self.path, &text)?;
        self.path.pop();
        Ok(())
    }
}

/// Appends ` name="value"`.
pub(crate) fn attribute_to(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(b' ');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"=\"");
    text_to(out, value);
    out.push(b'"');
}

/// Appends text, escaped as JAXB does.
pub(crate) fn text_to(out: &mut Vec<u8>, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.extend_from_slice(b"&amp;"),
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            '"' => out.extend_from_slice(b"&quot;"),
            '\t' | '\n' | '\r' => out.extend_from_slice(format!("&#{};", character as u32).as_bytes()),
            // XML cannot express these characters.
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.extend_from_slice("\u{fffd}".as_bytes()),
            other => out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Whether `name` can be the name of an attribute.
pub(crate) fn is_name(name: &str) -> bool {
    let is_start = |c: char| c.is_alphabetic() || c == '_' || c == ':';
    let is_part = |c: char| is_start(c) || c.is_numeric() || c == '-' || c == '.';
    name.starts_with(is_start) && name.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Vec<String>);

    impl Handler for Seen {
        fn start(&mut self, path: &[String], attributes: &[(String, String)]) -> Result<(), NotXml> {
            self.0.push(format!("{} {attributes:?}", path.join("/")));
            Ok(())
        }

        fn end(&mut self, _: &[String], text: &str) -> Result<(), NotXml> {
            self.0.push(text.to_owned());
            Ok(())
        }
    }

    fn seen(document: &str) -> Result<Vec<String>, NotXml> {
        let mut seen = Seen::default();
        read(document.as_bytes(), "a", &mut seen).map(|()| seen.0)
    }

    #[test]
    fn elements_attributes_and_text_are_read() {
        let document = format!("{DECLARATION}\n<a x='1&amp;'><b/>t&lt;&#65;<![CDATA[<]]></a>\n");
        let expected = ["a [(\"x\", \"1&\")]", "a/b []", "", "t<A<"];
        assert_eq!(seen(&document).unwrap(), expected);
    }

    #[test]
    fn other_documents_are_refused() {
        let deep = "<a>".repeat(100) + &"</a>".repeat(100);
        for document in [
            "",
            "x",
            "<a",
            "<a>",
            "<b/>",
            "<a/><a/>",
            "<a></b>",
            "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>",
            "<a>&e;</a>",
            &deep,
        ] {
            assert_eq!(seen(document), Err(NotXml), "{document}");
        }
    }

    #[test]
    fn text_is_escaped() {
        let mut out = Vec::new();
        attribute_to(&mut out, "n", "a<b>&\"\n\u{1}ä");
        assert_eq!(String::from_utf8(out).unwrap(), " n=\"a&lt;b&gt;&amp;&quot;&#10;\u{fffd}ä\"");
    }
}
