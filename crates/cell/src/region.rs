//! Regions, servers and their names.

use std::fmt;

use bytes::Bytes;
use md5::{Digest, Md5};

use crate::range::KeyRange;
use crate::schema::TableName;

/// The encoded name of the first and only region of `hbase:meta` (fixed in HBase).
pub const META_ENCODED_NAME: &str = "1588230740";

/// A region: the range of rows `[start_key, end_key)` of a table; an empty key means no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionInfo {
    /// The table.
    pub table: TableName,
    /// First row; empty for the first region.
    pub start_key: Bytes,
    /// First row after the region; empty for the last region.
    pub end_key: Bytes,
    /// Creation time in milliseconds. Distinguishes regions with equal start keys.
    pub region_id: u64,
    /// Replica number; 0 for the primary, which owns the files.
    pub replica_id: u32,
    /// Whether the region is not served (a split parent).
    pub offline: bool,
    /// Whether the region was split into daughters.
    pub split: bool,
}

impl RegionInfo {
    /// A region that is online, not split and not a replica.
    pub fn new(table: TableName, start_key: Bytes, end_key: Bytes, region_id: u64) -> RegionInfo {
        RegionInfo { table, start_key, end_key, region_id, replica_id: 0, offline: false, split: false }
    }

    /// The one region of `hbase:meta`.
    pub fn meta() -> RegionInfo {
        RegionInfo::new(TableName::meta(), Bytes::new(), Bytes::new(), 1)
    }

    /// `table,start key,region id[_replica]`: the part of the name that is hashed for the encoded
    /// name.
    fn hashed_name(&self) -> Vec<u8> {
        let mut name = self.table.to_string().into_bytes();
        name.push(b',');
        name.extend_from_slice(&self.start_key);
        name.push(b',');
        name.extend_from_slice(self.region_id.to_string().as_bytes());
        if self.replica_id > 0 {
            name.extend_from_slice(format!("_{:04X}", self.replica_id).as_bytes());
        }
        name
    }

    /// The full name: `table,start key,region id.encoded.`, or `hbase:meta,,1` for meta.
    pub fn name(&self) -> Bytes {
        let mut name = self.hashed_name();
        if !self.table.is_meta() {
            name.push(b'.');
            name.extend_from_slice(self.encoded_name().as_bytes());
            name.push(b'.');
        }
        name.into()
    }

    /// The name of the region's directory: 32 hex digits, or [`META_ENCODED_NAME`].
    pub fn encoded_name(&self) -> String {
        if self.table.is_meta() && self.replica_id == 0 {
            return META_ENCODED_NAME.to_string();
        }
        md5_hex(self.hashed_name())
    }

    /// The rows of this region.
    pub fn range(&self) -> KeyRange {
        KeyRange { start: self.start_key.clone(), end: self.end_key.clone() }
    }

    /// Whether daughters have replaced this region in a split. Its row stays in `hbase:meta` until
    /// its files are archived; it serves no rows.
    pub fn is_split_parent(&self) -> bool {
        self.split && self.offline
    }

    /// Whether `row` lies in this region.
    pub fn contains(&self, row: &[u8]) -> bool {
        let order = self.table.order();
        // An empty key is not compared: CPUs are slow to compare zero bytes at a dangling address.
        (self.start_key.is_empty() || order.compare_rows(&self.start_key, row).is_le())
            && (self.end_key.is_empty() || order.compare_rows(row, &self.end_key).is_lt())
    }
}

/// The MD5 hash of `bytes`, in hexadecimal.
pub fn md5_hex(bytes: impl AsRef<[u8]>) -> String {
    Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes of an encoded name: an MD5 hash in hexadecimal.
const ENCODED_NAME_LEN: usize = 32;

/// The encoded name within a region's full name: the part between its last two dots. Also accepts
/// meta's old form and a name that is already encoded.
pub fn encoded_name_of(name: &[u8]) -> Option<&str> {
    std::str::from_utf8(encoded_bytes_of(name)?).ok()
}

/// Like [`encoded_name_of`], as bytes, which are letters and digits.
pub fn encoded_bytes_of(name: &[u8]) -> Option<&[u8]> {
    if name == b"hbase:meta,,1" {
        return Some(META_ENCODED_NAME.as_bytes());
    }
    if let Some(cut) = name.strip_suffix(b".") {
        // Fast path without a search: its position in every name except those of meta's old form.
        if let Some((rest, encoded)) = cut.split_last_chunk::<ENCODED_NAME_LEN>()
            && rest.last() == Some(&b'.')
            && is_alphanumeric(encoded)
        {
            return Some(encoded);
        }
        let last = &cut[cut.iter().rposition(|byte| *byte == b'.')? + 1..];
        return is_alphanumeric(last).then_some(last);
    }
    is_alphanumeric(name).then_some(name)
}

/// Whether `bytes` is not empty and contains only letters and digits.
fn is_alphanumeric(bytes: &[u8]) -> bool {
    // No early exit, so that the compiler can vectorize the loop.
    bytes.iter().fold(!bytes.is_empty(), |plain, byte| plain & byte.is_ascii_alphanumeric())
}

/// A server's identity: host, port and start time. Displayed as `host,port,start code`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName {
    /// Host name in lower case, as clients resolve it.
    pub host: String,
    /// RPC port.
    pub port: u16,
    /// Start time in milliseconds since the epoch.
    pub start_code: u64,
}

impl ServerName {
    /// Parses `host,port,start code`.
    pub fn parse(text: &str) -> Option<ServerName> {
        let mut parts = text.rsplitn(3, ',');
        let start_code = parts.next()?.parse().ok()?;
        let port = parts.next()?.parse().ok()?;
        let host = parts.next().filter(|host| !host.is_empty())?.to_string();
        Some(ServerName { host, port, start_code })
    }

    /// The name for use in file names, as Java's `URLEncoder` writes it: commas as `%2C`.
    pub fn url_encoded(&self) -> String {
        self.to_string().replace(',', "%2C").replace(':', "%3A")
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.host, self.port, self.start_code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(table: &str, start: &'static str, end: &'static str) -> RegionInfo {
        RegionInfo::new(TableName::parse(table).unwrap(), start.into(), end.into(), 1_700_000_000_000)
    }

    /// Names that HBase 2.5.10 generated.
    #[test]
    fn names_are_those_of_hbase() {
        assert_eq!(region("tbl", "", "").name(), "tbl,,1700000000000.a2331f8e4bb5d76a5eee741e708341a5.");
        assert_eq!(
            region("ns1:tbl", "g", "p").name(),
            "ns1:tbl,g,1700000000000.52ff2a502c1b62e147ef165a0803d6b2."
        );
        let replica = RegionInfo { replica_id: 1, ..region("tbl", "", "") };
        assert_eq!(replica.name(), "tbl,,1700000000000_0001.69b13b3b642a9629ec6da3bd71774e05.");
        assert_eq!(RegionInfo::meta().name(), "hbase:meta,,1");
        assert_eq!(RegionInfo::meta().encoded_name(), "1588230740");
    }

    #[test]
    fn encoded_names_are_found_in_full_names() {
        let name = region("tbl", "a.b", "").name();
        assert_eq!(encoded_name_of(&name), Some(region("tbl", "a.b", "").encoded_name().as_str()));
        assert_eq!(encoded_name_of(b"hbase:meta,,1"), Some("1588230740"));
        assert_eq!(encoded_name_of(b""), None);
        assert_eq!(encoded_name_of(b"."), None);
    }
}
