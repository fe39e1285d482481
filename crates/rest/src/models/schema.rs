//! The schema of a table: families and attributes, as their descriptors store them.

use bytes::Bytes;
use cell::schema::{FAMILY_DEFAULTS, FamilyDescriptor, TableDescriptor, TableName};
use prost::Message;
use proto::rest as pb;

use super::{Invalid, Model, lossy};
use crate::media::Media;
use crate::reply::{Failure, ILLEGAL_ARGUMENT};
use crate::{json, xml};

/// The attribute that HBase computes and never stores.
const IS_META: &str = "IS_META";

/// Names and values, in order.
type Attributes = Vec<(String, String)>;

/// A table's schema. The name of a request's schema is ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchemaModel {
    pub(crate) name: String,
    pub(crate) attributes: Attributes,
    pub(crate) families: Vec<FamilyModel>,
}

/// A family of a schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FamilyModel {
    pub(crate) name: String,
    pub(crate) attributes: Attributes,
}

impl SchemaModel {
    /// The schema of an existing table.
    pub(crate) fn of(table: &TableDescriptor) -> SchemaModel {
        let mut attributes = vec![(IS_META.to_owned(), table.name.is_meta().to_string())];
        attributes
            .extend(stored(&table.attributes, &table.configuration).filter(|(name, _)| name != IS_META));
        let families = table.families.values().map(|family| FamilyModel {
            name: lossy(&family.name),
            attributes: in_display_order(stored(&family.attributes, &family.configuration).collect()),
        });
        SchemaModel { name: table.name.to_string(), attributes, families: families.collect() }
    }

    /// The descriptor of a table with this schema.
    ///
    /// # Errors
    /// If the name of a family is not valid.
    pub(crate) fn descriptor(&self, name: TableName) -> Result<TableDescriptor, Failure> {
        let mut table = TableDescriptor::new(name);
        for (name, value) in self.attributes.iter().filter(|(name, _)| name != IS_META) {
            table.attributes.insert(name.clone().into(), value.clone().into());
        }
        for family in &self.families {
            table = table.with_family(family.descriptor()?);
        }
        Ok(table)
    }

    /// Decodes a body.
    ///
    /// # Errors
    /// [`Invalid`].
    pub(crate) fn decode(media: Media, body: &Bytes) -> Result<SchemaModel, Invalid> {
        match media {
            Media::Json => of_json(body),
            Media::Xml => {
                let mut schema = SchemaModel::default();
                xml::read(body, "TableSchema", &mut schema).map_err(|_| Invalid::Malformed)?;
                Ok(schema)
            }
            _ => pb::TableSchema::decode(body.clone()).map(of_protobuf).map_err(|_| Invalid::Unreadable),
        }
    }

    fn attribute(&self, name: &str) -> Option<&str> {
        value_of(&self.attributes, name)
    }
}

impl FamilyModel {
    /// The descriptor of a family with these attributes, and HBase's defaults for all others.
    ///
    /// # Errors
    /// If the name is not valid.
    pub(crate) fn descriptor(&self) -> Result<FamilyDescriptor, Failure> {
        if self.name.is_empty()
            || self.name.starts_with('.')
            || self.name.contains([':', '/', '\\'])
            || self.name.contains(char::is_control)
        {
            let message = format!("Illegal family name: {}", self.name.escape_default());
            return Err(Failure::exception(ILLEGAL_ARGUMENT, &message));
        }
        let mut family = FamilyDescriptor::new(self.name.clone());
        for (name, value) in &self.attributes {
            family = family.with(name, value);
        }
        family.complete();
        Ok(family)
    }
}

fn value_of<'a>(attributes: &'a [(String, String)], name: &str) -> Option<&'a str> {
    attributes.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
}

fn set(attributes: &mut Attributes, name: &str, value: String) {
    match attributes.iter_mut().find(|(found, _)| found == name) {
        Some((_, found)) => *found = value,
        None => attributes.push((name.to_owned(), value)),
    }
}

fn stored<'a>(
    attributes: &'a cell::schema::Attributes,
    configuration: &'a cell::schema::Configuration,
) -> impl Iterator<Item = (String, String)> + 'a {
    let settings = configuration.iter().map(|(name, value)| (name.clone(), value.clone()));
    attributes.iter().map(|(name, value)| (lossy(name), lossy(value))).chain(settings)
}

/// The attributes that every family has first, in HBase's order.
fn in_display_order(mut attributes: Attributes) -> Attributes {
    let position = |name: &str| FAMILY_DEFAULTS.iter().position(|(known, _)| *known == name);
    attributes.sort_by_key(|(name, _)| position(name).unwrap_or(FAMILY_DEFAULTS.len()));
    attributes
}

fn of_json(body: &[u8]) -> Result<SchemaModel, Invalid> {
    let mut reader = json::Reader::new(body);
    if reader.peek().is_none() {
        return Err(Invalid::Empty);
    }
    let mut schema = SchemaModel::default();
    let read = reader.object(|reader, name| match name {
        "ColumnSchema" if reader.null() => Ok(()),
        "ColumnSchema" => reader.array(|reader| {
            let mut family = FamilyModel::default();
            reader.object(|reader, name| {
                let value = reader.scalar()?;
                match name {
                    "name" => family.name = value,
                    name => set(&mut family.attributes, name, value),
                }
                Ok(())
            })?;
            schema.families.push(family);
            Ok(())
        }),
        name => {
            let value = reader.scalar()?;
            match name {
                "name" => schema.name = value,
                name => set(&mut schema.attributes, name, value),
            }
            Ok(())
        }
    });
    read.and_then(|()| reader.end()).map_err(|_| Invalid::Unreadable)?;
    Ok(schema)
}

impl xml::Handler for SchemaModel {
    fn start(&mut self, path: &[String], attributes: &[(String, String)]) -> Result<(), xml::NotXml> {
        let name = attributes.iter().find(|(name, _)| name == "name").map(|(_, value)| value.clone());
        let others = attributes.iter().filter(|(name, _)| name != "name").cloned().collect();
        match path {
            [_] => (self.name, self.attributes) = (name.unwrap_or_default(), others),
            [_, family] if family == "ColumnSchema" => {
                self.families.push(FamilyModel { name: name.unwrap_or_default(), attributes: others });
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, _: &[String], _: &str) -> Result<(), xml::NotXml> {
        Ok(())
    }
}

fn of_protobuf(message: pb::TableSchema) -> SchemaModel {
    let mut attributes = Attributes::new();
    for attribute in message.attrs {
        set(&mut attributes, &attribute.name, attribute.value);
    }
    if let Some(read_only) = message.read_only {
        set(&mut attributes, "READONLY", read_only.to_string());
    }
    let family = |family: pb::ColumnSchema| {
        let mut attributes = Attributes::new();
        for attribute in family.attrs {
            set(&mut attributes, &attribute.name, attribute.value);
        }
        let fields = [
            ("TTL", family.ttl.map(|ttl| ttl.to_string())),
            ("VERSIONS", family.max_versions.map(|versions| versions.to_string())),
            ("COMPRESSION", family.compression),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                set(&mut attributes, name, value);
            }
        }
        FamilyModel { name: family.name.unwrap_or_default(), attributes }
    };
    let families = message.columns.into_iter().map(family).collect();
    SchemaModel { name: message.name.unwrap_or_default(), attributes, families }
}

impl Model for SchemaModel {
    fn json_to(&self, out: &mut Vec<u8>) {
        let members_to = |out: &mut Vec<u8>, attributes: &Attributes| {
            for (name, value) in attributes {
                json::member_to(out, b',', name);
                json::quote_to(out, value);
            }
        };
        json::member_to(out, b'{', "name");
        json::quote_to(out, &self.name);
        json::member_to(out, b',', "ColumnSchema");
        json::array_to(out, &self.families, |out, family| {
            json::member_to(out, b'{', "name");
            json::quote_to(out, &family.name);
            members_to(out, &family.attributes);
            out.push(b'}');
        });
        members_to(out, &self.attributes);
        out.push(b'}');
    }

    fn xml_to(&self, out: &mut Vec<u8>) {
        let start_to = |out: &mut Vec<u8>, element: &str, name: &str, attributes: &Attributes| {
            out.push(b'<');
            out.extend_from_slice(element.as_bytes());
            xml::attribute_to(out, "name", name);
            // A name that XML does not allow would make the whole document unreadable.
            for (name, value) in attributes.iter().filter(|(name, _)| xml::is_name(name) && name != "name") {
                xml::attribute_to(out, name, value);
            }
        };
        start_to(out, "TableSchema", &self.name, &self.attributes);
        out.push(b'>');
        for family in &self.families {
            start_to(out, "ColumnSchema", &family.name, &family.attributes);
            out.extend_from_slice(b"/>");
        }
        out.extend_from_slice(b"</TableSchema>");
    }

    fn protobuf(&self) -> Vec<u8> {
        let family = |family: &FamilyModel| {
            let number = |name: &str| value_of(&family.attributes, name).and_then(|value| value.parse().ok());
            let attribute = |(name, value): &(String, String)| pb::column_schema::Attribute {
                name: name.clone(),
                value: value.clone(),
            };
            pb::ColumnSchema {
                name: Some(family.name.clone()),
                attrs: family.attributes.iter().map(attribute).collect(),
                ttl: number("TTL"),
                max_versions: number("VERSIONS"),
                compression: value_of(&family.attributes, "COMPRESSION").map(str::to_owned),
            }
        };
        let attribute = |(name, value): &(String, String)| pb::table_schema::Attribute {
            name: name.clone(),
            value: value.clone(),
        };
        pb::TableSchema {
            name: Some(self.name.clone()),
            attrs: self.attributes.iter().map(attribute).collect(),
            columns: self.families.iter().map(family).collect(),
            in_memory: None,
            read_only: self.attribute("READONLY").map(|value| value == "true"),
        }
        .encode_to_vec()
    }

    fn text(&self) -> String {
        let listed = |attributes: &Attributes| {
            attributes.iter().map(|(name, value)| format!(", {name} => '{value}'")).collect::<String>()
        };
        let families = self
            .families
            .iter()
            .map(|family| format!("{{ NAME => '{}'{} }}", family.name, listed(&family.attributes)));
        let families: Vec<String> = families.collect();
        format!(
            "{{ NAME=> '{}'{}, COLUMNS => [ {} ] }}",
            self.name,
            listed(&self.attributes),
            families.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_schemas_are_read() {
        let family = FamilyModel { name: "f".into(), attributes: vec![("VERSIONS".into(), "3".into())] };
        let attributes = vec![("IS_META".into(), "false".into()), ("MAX_FILESIZE".into(), "5".into())];
        let schema = SchemaModel { name: "t".into(), attributes, families: vec![family] };
        for media in [Media::Json, Media::Xml, Media::Protobuf] {
            let crate::reply::Content::Whole(body) = schema.reply(media).content else {
                panic!("a whole body")
            };
            assert_eq!(SchemaModel::decode(media, &body).unwrap(), schema, "{media:?}");
        }
        let text = "{ NAME=> 't', IS_META => 'false', MAX_FILESIZE => '5', COLUMNS => [ { NAME => 'f', VERSIONS => '3' } ] }";
        assert_eq!(schema.text(), text);
        let table = schema.descriptor(TableName::parse("u").unwrap()).unwrap();
        assert_eq!((table.name.to_string().as_str(), table.attribute("IS_META")), ("u", None));
        assert_eq!(SchemaModel::of(&table).attributes, schema.attributes);
    }

    #[test]
    fn names_of_families_are_checked() {
        for name in ["", "a:b", ".a", "a/b", "a\nb"] {
            let family = FamilyModel { name: name.into(), ..FamilyModel::default() };
            assert!(family.descriptor().is_err(), "{name:?}");
        }
    }
}
