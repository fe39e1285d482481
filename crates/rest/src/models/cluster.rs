//! Versions, and the status of the cluster.

use bytes::Bytes;
use client::admin::ClusterStatus;
use prost::Message;
use proto::rest as pb;

use super::{Model, lossy};
use crate::{base64, json, xml};

/// The version of HBase's REST API (`RESTServlet.VERSION_STRING`).
const API_VERSION: &str = "0.0.3";

/// The version of this server.
pub(crate) struct ServerVersion;

impl ServerVersion {
    /// Names and values, in the order of HBase's protobuf message.
    fn members() -> [(&'static str, String); 7] {
        let version = env!("CARGO_PKG_VERSION");
        [
            ("REST", API_VERSION.into()),
            ("JVM", "none".into()),
            ("OS", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
            ("Server", format!("grampus/{version}")),
            ("Jersey", String::new()),
            ("Version", version.into()),
            ("Revision", String::new()),
        ]
    }
}

impl Model for ServerVersion {
    fn json_to(&self, out: &mut Vec<u8>) {
        for (at, (name, value)) in ServerVersion::members().into_iter().enumerate() {
            out.push(if at == 0 { b'{' } else { b',' });
            json::name_to(out, name);
            json::quote_to(out, &value);
        }
        out.push(b'}');
    }

    fn xml_to(&self, out: &mut Vec<u8>) {
        let mut members = ServerVersion::members();
        members.sort();
        out.extend_from_slice(b"<Version");
        for (name, value) in members {
            xml::attribute_to(out, name, &value);
        }
        out.extend_from_slice(b"/>");
    }

    fn protobuf(&self) -> Vec<u8> {
        let [rest, jvm, os, server, jersey, version, revision] =
            ServerVersion::members().map(|(_, value)| Some(value));
        pb::Version {
            rest_version: rest,
            jvm_version: jvm,
            os_version: os,
            server_version: server,
            jersey_version: jersey,
            version,
            revision,
        }
        .encode_to_vec()
    }

    fn text(&self) -> String {
        let [rest, others @ ..] = ServerVersion::members();
        let others = others.into_iter().map(|(name, value)| format!(" [{name}: {value}]"));
        format!("rest {}{}\n", rest.1, others.collect::<String>())
    }
}

/// The version of the cluster.
pub(crate) struct ClusterVersion(pub(crate) String);

impl Model for ClusterVersion {
    fn json_to(&self, out: &mut Vec<u8>) {
        json::member_to(out, b'{', "Version");
        json::quote_to(out, &self.0);
        out.push(b'}');
    }

    fn xml_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<ClusterVersion");
        xml::attribute_to(out, "Version", &self.0);
        out.extend_from_slice(b"/>");
    }

    fn protobuf(&self) -> Vec<u8> {
        self.0.clone().into_bytes()
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

/// The status of the cluster.
pub(crate) struct StatusModel<'a>(pub(crate) &'a ClusterStatus);

/// Numbers of a region in the order of HBase's JSON: name, and value.
fn numbers(region: &proto::RegionLoad) -> [(&'static str, u64); 12] {
    [
        ("stores", region.stores().into()),
        ("storefiles", region.storefiles().into()),
        ("storefileSizeMB", region.storefile_size_mb().into()),
        ("storefileIndexSizeKB", region.storefile_index_size_kb()),
        ("readRequestsCount", region.read_requests_count()),
        ("writeRequestsCount", region.write_requests_count()),
        ("rootIndexSizeKB", region.root_index_size_kb().into()),
        ("totalStaticIndexSizeKB", region.total_static_index_size_kb().into()),
        ("totalStaticBloomSizeKB", region.total_static_bloom_size_kb().into()),
        ("totalCompactingKVs", region.total_compacting_k_vs()),
        ("currentCompactedKVs", region.current_compacted_k_vs()),
        ("memStoreSizeMB", region.mem_store_size_mb().into()),
    ]
}

fn name_of(region: &proto::RegionLoad) -> Bytes {
    region.region_specifier.value.clone()
}

impl StatusModel<'_> {
    fn regions(&self) -> usize {
        self.0.servers.iter().map(|server| server.regions.len()).sum()
    }

    fn requests(&self) -> u64 {
        let of_region =
            |region: &proto::RegionLoad| region.read_requests_count() + region.write_requests_count();
        self.0.servers.iter().flat_map(|server| &server.regions).map(of_region).sum()
    }

    /// Regions of each live server on average.
    fn average_load(&self) -> f64 {
        self.regions() as f64 / self.0.servers.len().max(1) as f64
    }

    fn dead(&self) -> Vec<String> {
        self.0.dead_servers.iter().map(ToString::to_string).collect()
    }
}

impl Model for StatusModel<'_> {
    fn json_to(&self, out: &mut Vec<u8>) {
        json::member_to(out, b'{', "LiveNodes");
        json::array_to(out, &self.0.servers, |out, server| {
            json::member_to(out, b'{', "name");
            json::quote_to(out, &format!("{}:{}", server.server.host, server.server.port));
            let numbers_of_server = format!(
                ",\"startCode\":{},\"requests\":{},\"heapSizeMB\":{},\"maxHeapSizeMB\":{},\"Region\":",
                server.server.start_code, server.requests, server.used_heap_mb, server.max_heap_mb
            );
            out.extend_from_slice(numbers_of_server.as_bytes());
            json::array_to(out, &server.regions, |out, region| {
                json::member_to(out, b'{', "name");
                json::quote_to(out, &base64::encode(&name_of(region)));
                for (name, number) in numbers(region) {
                    out.extend_from_slice(format!(",\"{name}\":{number}").as_bytes());
                }
                out.push(b'}');
            });
            out.push(b'}');
        });
        json::member_to(out, b',', "DeadNodes");
        json::array_to(out, self.dead(), |out, name| json::quote_to(out, &name));
        let (regions, requests, load) = (self.regions(), self.requests(), self.average_load());
        let rest = format!(",\"regions\":{regions},\"requests\":{requests},\"averageLoad\":{load:?}}}");
        out.extend_from_slice(rest.as_bytes());
    }

    fn xml_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<ClusterStatus");
        xml::attribute_to(out, "averageLoad", &format!("{:?}", self.average_load()));
        xml::attribute_to(out, "regions", &self.regions().to_string());
        xml::attribute_to(out, "requests", &self.requests().to_string());
        out.push(b'>');
        element_to(out, "DeadNodes", self.dead(), |out, name| {
            out.extend_from_slice(b"<Node>");
            xml::text_to(out, &name);
            out.extend_from_slice(b"</Node>");
        });
        element_to(out, "LiveNodes", &self.0.servers, |out, server| {
            out.extend_from_slice(b"<Node");
            xml::attribute_to(out, "heapSizeMB", &server.used_heap_mb.to_string());
            xml::attribute_to(out, "maxHeapSizeMB", &server.max_heap_mb.to_string());
            xml::attribute_to(out, "name", &format!("{}:{}", server.server.host, server.server.port));
            xml::attribute_to(out, "requests", &server.requests.to_string());
            xml::attribute_to(out, "startCode", &server.server.start_code.to_string());
            out.push(b'>');
            for region in &server.regions {
                region_xml_to(out, region);
            }
            out.extend_from_slice(b"</Node>");
        });
        out.extend_from_slice(b"</ClusterStatus>");
    }

    fn protobuf(&self) -> Vec<u8> {
        let small = |number: u32| Some(i32::try_from(number).unwrap_or(i32::MAX));
        let large = |number: u64| Some(i64::try_from(number).unwrap_or(i64::MAX));
        let region = |region: &proto::RegionLoad| pb::storage_cluster_status::Region {
            name: name_of(region),
            stores: small(region.stores()),
            storefiles: small(region.storefiles()),
            storefile_size_mb: small(region.storefile_size_mb()),
            mem_store_size_mb: small(region.mem_store_size_mb()),
            storefile_index_size_kb: large(region.storefile_index_size_kb()),
            read_requests_count: large(region.read_requests_count()),
            write_requests_count: large(region.write_requests_count()),
            root_index_size_kb: small(region.root_index_size_kb()),
            total_static_index_size_kb: small(region.total_static_index_size_kb()),
            total_static_bloom_size_kb: small(region.total_static_bloom_size_kb()),
            total_compacting_k_vs: large(region.total_compacting_k_vs()),
            current_compacted_k_vs: large(region.current_compacted_k_vs()),
        };
        let node = |server: &client::admin::ServerStatus| pb::storage_cluster_status::Node {
            name: format!("{}:{}", server.server.host, server.server.port),
            start_code: large(server.server.start_code),
            requests: large(server.requests),
            heap_size_mb: small(server.used_heap_mb),
            max_heap_size_mb: small(server.max_heap_mb),
            regions: server.regions.iter().map(region).collect(),
        };
        pb::StorageClusterStatus {
            live_nodes: self.0.servers.iter().map(node).collect(),
            dead_nodes: self.dead(),
            regions: i32::try_from(self.regions()).ok(),
            requests: large(self.requests()),
            average_load: Some(self.average_load()),
        }
        .encode_to_vec()
    }

    fn text(&self) -> String {
        let (live, dead) = (&self.0.servers, self.dead());
        let mut text = format!(
            "{} live servers, {} dead servers, {:.4} average load\n\n",
            live.len(),
            dead.len(),
            self.average_load()
        );
        if !live.is_empty() {
            text += &format!("{} live servers\n", live.len());
        }
        for server in live {
            let name = &server.server;
            text += &format!("    {}:{} {}\n", name.host, name.port, name.start_code);
            text += &format!("        requests={}, regions={}\n", server.requests, server.regions.len());
            text += &format!(
                "        heapSizeMB={}\n        maxHeapSizeMB={}\n\n",
                server.used_heap_mb, server.max_heap_mb
            );
            server.regions.iter().for_each(|region| text += &region_text(region));
            text.push('\n');
        }
        if !dead.is_empty() {
            text += &format!("\n{} dead servers\n", dead.len());
            dead.iter().for_each(|name| text += &format!("    {name}\n"));
        }
        text
    }
}

fn element_to<T>(
    out: &mut Vec<u8>,
    name: &str,
    children: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    let mut children = children.into_iter().peekable();
    if children.peek().is_none() {
        out.extend_from_slice(format!("<{name}/>").as_bytes());
        return;
    }
    out.extend_from_slice(format!("<{name}>").as_bytes());
    children.for_each(|child| write(out, child));
    out.extend_from_slice(format!("</{name}>").as_bytes());
}

fn region_xml_to(out: &mut Vec<u8>, region: &proto::RegionLoad) {
    let name = ("name", base64::encode(&name_of(region)));
    let numbers = numbers(region).into_iter().map(|(name, number)| (name, number.to_string()));
    let mut attributes: Vec<(&str, String)> = numbers.chain([name]).collect();
    attributes.sort();
    out.extend_from_slice(b"<Region");
    for (name, value) in attributes {
        xml::attribute_to(out, name, &value);
    }
    out.extend_from_slice(b"/>");
}

/// The numbers in the order and with the names of HBase's text form.
fn region_text(region: &proto::RegionLoad) -> String {
    const NAMES: [(&str, &str); 12] = [
        ("stores", "stores"),
        ("storefiles", "storefiless"),
        ("storefileSizeMB", "storefileSizeMB"),
        ("memStoreSizeMB", "memstoreSizeMB"),
        ("storefileIndexSizeKB", "storefileIndexSizeKB"),
        ("readRequestsCount", "readRequestsCount"),
        ("writeRequestsCount", "writeRequestsCount"),
        ("rootIndexSizeKB", "rootIndexSizeKB"),
        ("totalStaticIndexSizeKB", "totalStaticIndexSizeKB"),
        ("totalStaticBloomSizeKB", "totalStaticBloomSizeKB"),
        ("totalCompactingKVs", "totalCompactingKVs"),
        ("currentCompactedKVs", "currentCompactedKVs"),
    ];
    let numbers = numbers(region);
    let line = |(name, shown): (&str, &str)| {
        let number = numbers.iter().find(|(found, _)| *found == name).map_or(0, |(_, number)| *number);
        format!("            {shown}={number}\n")
    };
    format!("        {}\n{}", lossy(&name_of(region)), NAMES.map(line).concat())
}
