//! Namespaces and their properties.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use proto::rest as pb;

use super::{Invalid, Model};
use crate::media::Media;
use crate::{json, xml};

/// Names of namespaces.
pub(crate) struct Namespaces(pub(crate) Vec<String>);

impl Model for Namespaces {
    fn json_to(&self, out: &mut Vec<u8>) {
        json::member_to(out, b'{', "Namespace");
        json::array_to(out, &self.0, |out, name| json::quote_to(out, name));
        out.push(b'}');
    }

    fn xml_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<Namespaces>");
        for name in &self.0 {
            out.extend_from_slice(b"<Namespace>");
            xml::text_to(out, name);
            out.extend_from_slice(b"</Namespace>");
        }
        out.extend_from_slice(b"</Namespaces>");
    }

    fn protobuf(&self) -> Vec<u8> {
        pb::Namespaces { namespace: self.0.clone() }.encode_to_vec()
    }

    fn text(&self) -> String {
        self.0.iter().map(|name| format!("{name}\n")).collect()
    }
}

/// A namespace and its properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamespaceModel {
    pub(crate) name: String,
    pub(crate) properties: BTreeMap<String, String>,
}

impl NamespaceModel {
    /// Decodes the properties of a namespace; an empty body has none.
    ///
    /// # Errors
    /// [`Invalid`].
    pub(crate) fn decode_properties(media: Media, body: &Bytes) -> Result<BTreeMap<String, String>, Invalid> {
        if body.is_empty() {
            return Ok(BTreeMap::new());
        }
        match media {
            Media::Json => of_json(body),
            Media::Xml => {
                let mut entries = Entries::default();
                xml::read(body, "NamespaceProperties", &mut entries).map_err(|_| Invalid::Malformed)?;
                Ok(entries.found)
            }
            _ => {
                let message =
                    pb::NamespaceProperties::decode(body.clone()).map_err(|_| Invalid::Unreadable)?;
                Ok(message.props.into_iter().map(|property| (property.key, property.value)).collect())
            }
        }
    }
}

fn of_json(body: &[u8]) -> Result<BTreeMap<String, String>, Invalid> {
    let (mut reader, mut properties) = (json::Reader::new(body), BTreeMap::new());
    let read = reader.object(|reader, name| match name {
        "properties" if reader.null() => Ok(()),
        "properties" => reader.object(|reader, key| {
            properties.insert(key.to_owned(), reader.scalar()?);
            Ok(())
        }),
        _ => Err(json::NotJson),
    });
    read.and_then(|()| reader.end()).map_err(|_| Invalid::Unreadable)?;
    Ok(properties)
}

#[derive(Default)]
struct Entries {
    found: BTreeMap<String, String>,
    key: String,
    value: String,
}

impl xml::Handler for Entries {
    fn start(&mut self, _: &[String], _: &[(String, String)]) -> Result<(), xml::NotXml> {
        Ok(())
    }

    fn end(&mut self, path: &[String], text: &str) -> Result<(), xml::NotXml> {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        match names[..] {
            [_, "properties", "entry", "key"] => self.key = text.to_owned(),
            [_, "properties", "entry", "value"] => self.value = text.to_owned(),
            [_, "properties", "entry"] => {
                self.found.insert(std::mem::take(&mut self.key), std::mem::take(&mut self.value));
            }
            _ => {}
        }
        Ok(())
    }
}

impl Model for NamespaceModel {
    fn json_to(&self, out: &mut Vec<u8>) {
        json::member_to(out, b'{', "properties");
        if self.properties.is_empty() {
            out.extend_from_slice(b"null}");
            return;
        }
        for (at, (key, value)) in self.properties.iter().enumerate() {
            out.push(if at == 0 { b'{' } else { b',' });
            json::name_to(out, key);
            json::quote_to(out, value);
        }
        out.extend_from_slice(b"}}");
    }

    fn xml_to(&self, out: &mut Vec<u8>) {
        if self.properties.is_empty() {
            out.extend_from_slice(b"<NamespaceProperties/>");
            return;
        }
        out.extend_from_slice(b"<NamespaceProperties><properties>");
        for (key, value) in &self.properties {
            out.extend_from_slice(b"<entry><key>");
            xml::text_to(out, key);
            out.extend_from_slice(b"</key><value>");
            xml::text_to(out, value);
            out.extend_from_slice(b"</value></entry>");
        }
        out.extend_from_slice(b"</properties></NamespaceProperties>");
    }

    fn protobuf(&self) -> Vec<u8> {
        let property = |(key, value): (&String, &String)| pb::namespace_properties::Property {
            key: key.clone(),
            value: value.clone(),
        };
        pb::NamespaceProperties { props: self.properties.iter().map(property).collect() }.encode_to_vec()
    }

    fn text(&self) -> String {
        let properties = self.properties.iter().map(|(key, value)| format!(", {key} => '{value}'"));
        format!("{{NAME => '{}'{}}}", self.name, properties.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_properties_are_read() {
        let properties =
            BTreeMap::from([("k".to_owned(), "a & \"b\"".to_owned()), ("l".to_owned(), String::new())]);
        let model = NamespaceModel { name: "n".into(), properties };
        let mut json = Vec::new();
        model.json_to(&mut json);
        let mut document = Vec::new();
        model.xml_to(&mut document);
        for (media, body) in
            [(Media::Json, json), (Media::Xml, document), (Media::Protobuf, model.protobuf())]
        {
            assert_eq!(
                NamespaceModel::decode_properties(media, &body.into()).unwrap(),
                model.properties,
                "{media:?}"
            );
        }
        assert_eq!(model.text(), "{NAME => 'n', k => 'a & \"b\"', l => ''}");
    }
}
