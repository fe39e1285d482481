//! Lists of tables, and the regions of a table.

use bytes::Bytes;
use prost::Message;
use proto::rest as pb;

use super::{Model, lossy};
use crate::{base64, json, xml};

/// Names of tables.
pub(crate) struct TableList(pub(crate) Vec<String>);

impl Model for TableList {
    fn json_to(&self, out: &mut Vec<u8>) {
        json::member_to(out, b'{', "table");
        json::array_to(out, &self.0, |out, name| {
            json::member_to(out, b'{', "name");
            json::quote_to(out, name);
            out.push(b'}');
        });
        out.push(b'}');
    }

    fn xml_to(&self, out: &mut Vec<u8>) {
        if self.0.is_empty() {
            out.extend_from_slice(b"<TableList/>");
            return;
        }
        out.extend_from_slice(b"<TableList>");
        for name in &self.0 {
            out.extend_from_slice(b"<table");
            xml::attribute_to(out, "name", name);
            out.extend_from_slice(b"/>");
        }
        out.extend_from_slice(b"</TableList>");
    }

    fn protobuf(&self) -> Vec<u8> {
        pb::TableList { name: self.0.clone() }.encode_to_vec()
    }

    fn text(&self) -> String {
        self.0.iter().map(|name| format!("{name}\n")).collect()
    }
}

/// The regions of a table.
pub(crate) struct TableInfo {
    pub(crate) name: String,
    pub(crate) regions: Vec<RegionModel>,
}

/// A region of a table.
pub(crate) struct RegionModel {
    pub(crate) name: Bytes,
    pub(crate) id: i64,
    pub(crate) start_key: Bytes,
    pub(crate) end_key: Bytes,
    /// `host:port`.
    pub(crate) location: String,
}

impl Model for TableInfo {
    fn json_to(&self, out: &mut Vec<u8>) {
        json::member_to(out, b'{', "name");
        json::quote_to(out, &self.name);
        json::member_to(out, b',', "Region");
        json::array_to(out, &self.regions, |out, region| {
            out.extend_from_slice(format!("{{\"id\":{}", region.id).as_bytes());
            let members = [
                ("startKey", base64::encode(&region.start_key)),
                ("endKey", base64::encode(&region.end_key)),
                ("location", region.location.clone()),
                ("name", lossy(&region.name)),
            ];
            for (name, value) in members {
                json::member_to(out, b',', name);
                json::quote_to(out, &value);
            }
            out.push(b'}');
        });
        out.push(b'}');
    }

    fn xml_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<TableInfo");
        xml::attribute_to(out, "name", &self.name);
        out.push(b'>');
        for region in &self.regions {
            out.extend_from_slice(b"<Region");
            xml::attribute_to(out, "endKey", &base64::encode(&region.end_key));
            xml::attribute_to(out, "id", &region.id.to_string());
            xml::attribute_to(out, "location", &region.location);
            xml::attribute_to(out, "name", &lossy(&region.name));
            xml::attribute_to(out, "startKey", &base64::encode(&region.start_key));
            out.extend_from_slice(b"/>");
        }
        out.extend_from_slice(b"</TableInfo>");
    }

    fn protobuf(&self) -> Vec<u8> {
        let region = |region: &RegionModel| pb::table_info::Region {
            name: lossy(&region.name),
            start_key: Some(region.start_key.clone()),
            end_key: Some(region.end_key.clone()),
            id: Some(region.id),
            location: Some(region.location.clone()),
        };
        pb::TableInfo { name: self.name.clone(), regions: self.regions.iter().map(region).collect() }
            .encode_to_vec()
    }

    fn text(&self) -> String {
        let region = |region: &RegionModel| {
            format!(
                "{} [\n  id={}\n  startKey='{}'\n  endKey='{}'\n  location='{}'\n]\n\n",
                lossy(&region.name),
                region.id,
                lossy(&region.start_key),
                lossy(&region.end_key),
                region.location
            )
        };
        self.regions.iter().map(region).collect()
    }
}
