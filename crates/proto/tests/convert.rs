//! Compares regions, servers and tables with the bytes that HBase writes.

#![allow(clippy::unwrap_used)] // Helpers of the tests below.

use bytes::Bytes;
use cell::region::{RegionInfo, ServerName};
use cell::schema::{FamilyDescriptor, NamespaceDescriptor, TableDescriptor, TableName};
use prost::Message;
use proto::convert::Invalid;
use proto::magic::{with_magic, with_magic_delimited, without_magic, without_magic_delimited};

fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect::<Vec<u8>>()
        .into()
}

fn region(table: &str, start: &'static str, end: &'static str) -> RegionInfo {
    RegionInfo::new(TableName::parse(table).unwrap(), start.into(), end.into(), 1_700_000_000_000)
}

/// Values of info:regioninfo written by HBase 2.5.10.
#[test]
fn regions_are_written_as_hbase_writes_them() {
    let cases = [
        (
            region("tbl", "", ""),
            "50425546 0880d095ffbc31 120e 0a0764656661756c74 120374626c 1a00 2200 2800 3000 3800",
        ),
        (
            RegionInfo { replica_id: 1, ..region("tbl", "", "") },
            "50425546 0880d095ffbc31 120e 0a0764656661756c74 120374626c 1a00 2200 2800 3000 3801",
        ),
        (
            region("ns1:tbl", "g", "p"),
            "50425546 0880d095ffbc31 120a 0a036e7331 120374626c 1a0167 220170 2800 3000 3800",
        ),
        (RegionInfo::meta(), "50425546 0801 120d 0a056862617365 12046d657461 1a00 2200 2800 3000 3800"),
        (region("ns:tbl", "b", "d"), "504255460880d095ffbc3112090a026e73120374626c1a0162220164280030003800"),
    ];
    for (region, bytes) in cases {
        let message = proto::RegionInfo::from(&region);
        assert_eq!(with_magic(&message), hex(bytes), "{region:?}");
        let read: proto::RegionInfo = without_magic(&hex(bytes)).unwrap();
        assert_eq!(RegionInfo::try_from(&read), Ok(region));
    }
}

/// A .regioninfo file written by HBase 2.5.10.
#[test]
fn region_files_are_delimited() {
    let bytes = hex("504255461e0880d095ffbc3112090a026e73120374626c1a0162220164280030003800");
    let region = region("ns:tbl", "b", "d");
    assert_eq!(with_magic_delimited(&proto::RegionInfo::from(&region)), bytes);
    let read: proto::RegionInfo = without_magic_delimited(&bytes).unwrap();
    assert_eq!(RegionInfo::try_from(&read), Ok(region));
}

#[test]
fn servers_are_written_as_hbase_writes_them() {
    let server = ServerName { host: "h1".into(), port: 16020, start_code: 1_700_000_000_000 };
    let message = proto::ServerName::from(&server);
    assert_eq!(message.encode_to_vec(), hex("0a02683110947d1880d095ffbc31"));
    assert_eq!(ServerName::try_from(&message), Ok(server));
    let port_too_large = proto::ServerName { port: Some(65536), ..message };
    assert_eq!(ServerName::try_from(&port_too_large), Err(Invalid("port 65536".into())));
}

#[test]
fn tables_keep_every_attribute() {
    let mut table = TableDescriptor::new(TableName::parse("ns:t").unwrap())
        .with_family(FamilyDescriptor::new("cf").with("VERSIONS", "3").with("of its own", "\u{fc}"))
        .with_family(FamilyDescriptor::new("a"));
    table.attributes.insert(Bytes::from_static(b"\xff"), Bytes::from_static(b"\x00not text"));
    table.configuration.insert("hbase.store.file-tracker.impl".into(), "DEFAULT".into());
    let message = proto::TableSchema::from(&table);
    let read = proto::TableSchema::decode(Bytes::from(message.encode_to_vec())).unwrap();
    assert_eq!(TableDescriptor::try_from(&read), Ok(table));
}

#[test]
fn impossible_messages_are_refused() {
    let nameless = proto::TableSchema::default();
    assert!(TableDescriptor::try_from(&nameless).is_err());
    let illegal = proto::TableName { namespace: "default".into(), qualifier: "../up".into() };
    assert!(TableName::try_from(&illegal).is_err());
    let not_text =
        proto::TableName { namespace: "default".into(), qualifier: Bytes::from_static(b"\xff\xfe") };
    assert!(TableName::try_from(&not_text).is_err());
    let family = proto::ColumnFamilySchema { name: vec![b'f'; 128].into(), ..Default::default() };
    assert!(FamilyDescriptor::try_from(&family).is_err());
    let namespace = proto::NamespaceDescriptor { name: "a/b".into(), ..Default::default() };
    assert!(NamespaceDescriptor::try_from(&namespace).is_err());
    let replica = proto::RegionInfo { replica_id: Some(-1), ..(&region("t", "", "")).into() };
    assert!(RegionInfo::try_from(&replica).is_err());
}
