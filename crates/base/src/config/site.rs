//! Parses `hbase-site.xml` as Hadoop's `Configuration` does.
//!
//! Input is bounded: a file of at most [`FILE_BYTES_MAX`], no inline document type, no entities
//! except XML's five, no inclusion of other files.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

/// Configurations of real clusters are about a hundredth of this size.
pub(super) const FILE_BYTES_MAX: u64 = 4 << 20;
// Hadoop's files are three levels deep; nested `configuration`s add some.
const DEPTH_MAX: usize = 16;

/// A `<property>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Property {
    pub(super) key: String,
    pub(super) value: String,
    /// A later file of the same start may not change the value.
    pub(super) is_final: bool,
}

/// A syntax error and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    pub(super) line: usize,
    pub(super) what: String,
}

/// The properties of a file, in file order.
pub(super) fn parse(text: &str) -> Result<Vec<Property>, Malformed> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader::from_str(text);
    let mut site = Site::default();
    loop {
        let failed = |reader: &Reader<&[u8]>, what: String| {
            let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX).min(text.len());
            Malformed { line: 1 + text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count(), what }
        };
        let event = reader.read_event().map_err(|error| failed(&reader, error.to_string()))?;
        if matches!(event, Event::Eof) {
            return site.finish().map_err(|what| failed(&reader, what));
        }
        site.take(event).map_err(|what| failed(&reader, what))?;
    }
}

#[derive(Default)]
struct Site {
    // Names of the open elements.
    open: Vec<Vec<u8>>,
    has_root: bool,
    // Text of the innermost open element so far.
    text: String,
    key: Option<String>,
    value: Option<String>,
    is_final: bool,
    properties: Vec<Property>,
}

type Parsed = Result<(), String>;

impl Site {
    fn take(&mut self, event: Event<'_>) -> Parsed {
        match event {
            Event::Start(element) => self.start(&element),
            Event::Empty(element) => self.start(&element).and_then(|()| self.end()),
            Event::End(_) => self.end(),
            Event::Text(text) => {
                let text = text.xml_content().map_err(|error| error.to_string())?;
                self.add_text(&text)
            }
            Event::CData(text) => {
                let text = text.xml_content().map_err(|error| error.to_string())?;
                self.add_text(&text)
            }
            Event::GeneralRef(reference) => {
                let character = resolve(&reference)?;
                self.add_text(&character)
            }
            // An inline entity list would be in brackets.
            Event::DocType(text) if text.contains(&b'[') => {
                Err("an inline document type is not accepted".to_owned())
            }
            Event::DocType(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::Eof => Ok(()),
        }
    }

    fn start(&mut self, element: &BytesStart<'_>) -> Parsed {
        let name = element.name();
        let name = name.as_ref();
        match name {
            _ if self.open.len() >= DEPTH_MAX => return Err(format!("more than {DEPTH_MAX} elements deep")),
            b"configuration" => {}
            _ if self.open.is_empty() => {
                return Err("the outermost element must be <configuration>".to_owned());
            }
            b"property" => {
                (self.key, self.value, self.is_final) = (None, None, false);
                self.take_attributes(element)?;
            }
            b"include" | b"xi:include" => return Err("inclusion of other files is not supported".to_owned()),
            // Hadoop skips unknown elements, and so does this parser.
            _ => {}
        }
        if self.open.is_empty() && self.has_root {
            return Err("content after the end of <configuration>".to_owned());
        }
        self.has_root = true;
        self.text.clear();
        self.open.push(name.to_vec());
        Ok(())
    }

    // `<property name="…" value="…" final="true"/>`, Hadoop's short form.
    fn take_attributes(&mut self, element: &BytesStart<'_>) -> Parsed {
        for attribute in element.attributes() {
            let attribute = attribute.map_err(|error| error.to_string())?;
            let value = attribute.unescape_value().map_err(|error| error.to_string())?.into_owned();
            match attribute.key.as_ref() {
                b"name" => self.key = Some(value.trim().to_owned()),
                b"value" => self.value = Some(value),
                b"final" => self.is_final = value.trim() == "true",
                _ => {}
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Parsed {
        let name = self.open.pop().ok_or("end tag without a start tag")?;
        let text = std::mem::take(&mut self.text);
        let in_property = self.open.last().is_some_and(|parent| parent == b"property");
        match name.as_slice() {
            b"name" if in_property => self.key = Some(text.trim().to_owned()),
            b"value" if in_property => self.value = Some(text),
            b"final" if in_property => self.is_final = text.trim() == "true",
            b"property" => {
                // As in Hadoop, a property without a name or a value is ignored.
                if let (Some(key), Some(value)) = (self.key.take(), self.value.take()) {
                    self.properties.push(Property { key, value, is_final: self.is_final });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add_text(&mut self, text: &str) -> Parsed {
        if self.open.is_empty() && !text.trim().is_empty() {
            return Err("text outside of <configuration>".to_owned());
        }
        self.text.push_str(text);
        Ok(())
    }

    fn finish(self) -> Result<Vec<Property>, String> {
        if let Some(open) = self.open.last() {
            return Err(format!("<{}> has no end tag", String::from_utf8_lossy(open)));
        }
        if !self.has_root {
            return Err("no <configuration>".to_owned());
        }
        Ok(self.properties)
    }
}

fn resolve(reference: &BytesRef<'_>) -> Result<String, String> {
    if let Some(character) = reference.resolve_char_ref().map_err(|error| error.to_string())? {
        return Ok(character.to_string());
    }
    let name = reference.decode().map_err(|error| error.to_string())?;
    let known = resolve_predefined_entity(&name).ok_or_else(|| format!("entity &{name}; is not accepted"))?;
    Ok(known.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(inside: &str, expected: &[(&str, &str, bool)]) {
        let found = parse(&format!("<configuration>{inside}</configuration>")).unwrap();
        let found: Vec<_> = found.iter().map(|p| (&*p.key, &*p.value, p.is_final)).collect();
        assert_eq!(found, expected, "{inside}");
    }

    fn refused(text: &str) -> Malformed {
        parse(text).unwrap_err()
    }

    #[test]
    fn a_hand_written_file_is_read() {
        let text = "\u{feff}<?xml version=\"1.0\"?>\n<?xml-stylesheet type=\"text/xsl\" href=\"configuration.xsl\"?>\n\
            <!-- Licensed -->\n<configuration>\n  <property>\n    <name> hbase.rootdir </name>\n    \
            <value>file:///data</value>\n    <description>Where &lt;all&gt; is.</description>\n  </property>\n\
            <property><name>a</name><value>1</value><final>true</final></property>\n</configuration>\n";
        let found = parse(text).unwrap();
        let plain = Property { key: "hbase.rootdir".into(), value: "file:///data".into(), is_final: false };
        assert_eq!(found, [plain, Property { key: "a".into(), value: "1".into(), is_final: true }]);
    }

    #[test]
    fn forms_of_a_property() {
        check("", &[]);
        check("<property><name>a</name><value>b</value></property>", &[("a", "b", false)]);
        check("<property><value>b</value><name>a</name></property>", &[("a", "b", false)]);
        check("<property name='a' value='b &amp; c' final='true'/>", &[("a", "b & c", true)]);
        check("<property name='a'><value>b</value></property>", &[("a", "b", false)]);
        check("<property><name>a</name><value/></property>", &[("a", "", false)]);
        check("<property><name>a</name></property>", &[]);
        check("<property><value>b</value></property>", &[]);
        check("<property><name>a</name><value>x<!-- y -->z</value></property>", &[("a", "xz", false)]);
        check("<property><name>a</name><value><![CDATA[<b>&]]></value></property>", &[("a", "<b>&", false)]);
        check(
            "<property><name>a</name><value>&lt;&#65;&#x42;&amp;</value></property>",
            &[("a", "<AB&", false)],
        );
        check(
            "<property><name>a</name><value>b</value><final> true </final></property>",
            &[("a", "b", true)],
        );
        check("<property><name>a</name><value>b</value><final>yes</final></property>", &[("a", "b", false)]);
        check("<other><name>a</name><value>b</value></other>", &[]);
        check("<configuration><property name='a' value='b'/></configuration>", &[("a", "b", false)]);
        // The value of an earlier property is not used for the next one.
        check("<property name='a' value='b'/><property><name>c</name></property>", &[("a", "b", false)]);
    }

    #[test]
    fn entities_and_inclusions_are_refused() {
        let bomb = "<!DOCTYPE c [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>\n<configuration/>";
        assert!(refused(bomb).what.contains("document type"));
        let outside =
            "<!DOCTYPE c [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><configuration>&x;</configuration>";
        assert!(refused(outside).what.contains("document type"));
        let unknown =
            "<configuration>\n<property><name>a</name>\n<value>&x;</value></property></configuration>";
        assert_eq!(refused(unknown), Malformed { line: 3, what: "entity &x; is not accepted".to_owned() });
        assert!(parse("<configuration><property name='a' value='&x;'/></configuration>").is_err());
        assert!(refused("<configuration>&#0;</configuration>").line == 1);
        assert!(parse("<configuration>&#x110000;</configuration>").is_err());
        assert_eq!(parse("<!DOCTYPE configuration><configuration/>"), Ok(vec![]));
        assert!(
            refused("<configuration><xi:include href='/etc/passwd'/></configuration>")
                .what
                .contains("inclusion")
        );
    }

    #[test]
    fn broken_files_are_refused() {
        for text in [
            "",
            "   ",
            "no xml",
            "<configuration>",
            "<configuration></property>",
            "<configuration><property></configuration>",
            "</configuration>",
            "<config/>",
            "<configuration/><configuration/>",
            "<configuration/>more",
            "<configuration><property name='a' name='b'/></configuration>",
            "<configuration><property name=a/></configuration>",
            "<configuration><!-- </configuration>",
            "<configuration><![CDATA[ </configuration>",
            "<configuration>&lt</configuration>",
            "<configuration>a & b</configuration>",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(refused(&"<configuration>".repeat(100_000)).what.contains("deep"));
    }

    #[test]
    fn every_truncated_file_is_refused_or_read() {
        let text = "<?xml version='1.0'?><configuration><property name='é'><value>&lt;<![CDATA[x]]></value></property>\
            <!-- c --></configuration>";
        for at in 0..text.len() {
            if text.is_char_boundary(at) {
                assert!(parse(&text[..at]).is_err(), "cut at {at}");
            }
        }
        // Any result is allowed for a replaced byte, but no panic.
        for at in 0..text.len() {
            for byte in [b'<', b'>', b'&', b'\'', b'[', b'/', b'!', 0, b' '] {
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] = byte;
                if let Ok(text) = String::from_utf8(bytes) {
                    let _ = parse(&text);
                }
            }
        }
    }
}
