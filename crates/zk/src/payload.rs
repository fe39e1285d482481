//! The content of HBase's znodes: a prefix that names the writer, `PBUF`, and a message.
//!
//! ```text
//! 0xff | int32 id length | id (its last 8 bytes are random) | "PBUF" | message
//! ```
//!
//! HBase's own clients accept values without the prefix. gohbase and asynchbase do not, so it is
//! always written.
//!
//! Source: HBase `RecoverableZooKeeper.appendMetaData`, `ProtobufMagic`.

mod java_date;

use base::env::Random;
use bytes::{BufMut, Bytes, BytesMut};
use cell::region::ServerName;
use proto::magic::{self, MAGIC};
use proto::region_state::State as RegionState;

use self::java_date::java_date;

const PREFIX: u8 = 0xff;
const SALT_LEN: usize = 8;
/// Maximum length of an id, in bytes, that the strictest client accepts.
pub const ID_LEN_MAX: usize = 65_000;
/// `RpcServer.CURRENT_VERSION`, published by masters and region servers.
const RPC_VERSION: u32 = 0;
/// The version of HBase that the servers are compatible with, and its major and minor number.
const HBASE_VERSION: (&str, u32, u32) = ("2.6.4", 2, 6);

/// Why bytes are not a payload of HBase.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Undecodable {
    /// The prefix is truncated, or has an impossible length.
    #[error("the prefix of a znode is truncated or too long")]
    Prefix,
    /// The rest is not the expected message.
    #[error("a znode {0}")]
    Message(#[from] magic::Undecodable),
    /// The message lacks a required part.
    #[error("a znode's message has no usable {0}")]
    Missing(&'static str),
}

/// The payload of `message`, written by `writer` (such as `master:16000`).
pub fn encode(writer: &str, random: &dyn Random, message: &impl prost::Message) -> Bytes {
    let mut salt = [0; SALT_LEN];
    random.fill(&mut salt);
    encode_salted(writer, &salt, message)
}

fn encode_salted(writer: &str, salt: &[u8; SALT_LEN], message: &impl prost::Message) -> Bytes {
    let writer = &writer.as_bytes()[..writer.len().min(ID_LEN_MAX - SALT_LEN)];
    let body = magic::with_magic(message);
    let id_len = writer.len() + SALT_LEN;
    let mut out = BytesMut::with_capacity(5 + id_len + body.len());
    out.put_u8(PREFIX);
    out.put_u32(id_len as u32);
    out.put_slice(writer);
    out.put_slice(salt);
    out.put_slice(&body);
    out.freeze()
}

/// The bytes after the prefix. Without a prefix, all bytes, as in HBase's clients.
///
/// # Errors
/// [`Undecodable::Prefix`].
pub fn strip_prefix(data: &Bytes) -> Result<Bytes, Undecodable> {
    if data.first() != Some(&PREFIX) {
        return Ok(data.clone());
    }
    let len = data[1..].first_chunk::<4>().map(|len| u32::from_be_bytes(*len) as usize);
    let end = len.filter(|len| *len <= ID_LEN_MAX).map(|len| 5 + len).filter(|end| *end <= data.len());
    Ok(data.slice(end.ok_or(Undecodable::Prefix)?..))
}

/// The message of a payload.
///
/// # Errors
/// [`Undecodable`].
pub fn decode<M: prost::Message + Default>(data: &Bytes) -> Result<M, Undecodable> {
    let body = strip_prefix(data)?;
    debug_assert_eq!(MAGIC.len(), 4);
    Ok(magic::without_magic(&body)?)
}

/// The value of `hbaseid`.
pub fn cluster_id(writer: &str, random: &dyn Random, id: &str) -> Bytes {
    encode(writer, random, &proto::ClusterId { cluster_id: id.to_string() })
}

/// The value of `master` (and of a child of `backup-masters`).
pub fn master(writer: &str, random: &dyn Random, server: &ServerName, info_port: u16) -> Bytes {
    let master = proto::Master {
        master: server.into(),
        rpc_version: Some(RPC_VERSION),
        info_port: Some(u32::from(info_port)),
    };
    encode(writer, random, &master)
}

/// The value of `rs/<server>`, whose status pages are at `info_port`.
pub fn region_server(writer: &str, random: &dyn Random, info_port: u16) -> Bytes {
    let version = proto::VersionInfo {
        version: HBASE_VERSION.0.to_string(),
        revision: concat!("grampus-", env!("CARGO_PKG_VERSION")).to_string(),
        version_major: Some(HBASE_VERSION.1),
        version_minor: Some(HBASE_VERSION.2),
        // Required, but a build does not record them.
        ..proto::VersionInfo::default()
    };
    let info = proto::RegionServerInfo { info_port: Some(i32::from(info_port)), version_info: Some(version) };
    encode(writer, random, &info)
}

/// The value of `running`: the cluster has been up since `start_ms` (milliseconds since the epoch).
pub fn running(writer: &str, random: &dyn Random, start_ms: u64) -> Bytes {
    encode(writer, random, &proto::ClusterUp { start_date: java_date(start_ms) })
}

/// The value of `meta-region-server` while `hbase:meta` is open on `server`.
pub fn meta_region_server(writer: &str, random: &dyn Random, server: &ServerName) -> Bytes {
    meta_region_server_in_state(writer, random, server, RegionState::Open)
}

/// The value of `meta-region-server` while `hbase:meta` is in `state` on `server`. Clients use only
/// an open one.
pub fn meta_region_server_in_state(
    writer: &str,
    random: &dyn Random,
    server: &ServerName,
    state: RegionState,
) -> Bytes {
    let location = proto::MetaRegionServer {
        server: server.into(),
        rpc_version: Some(RPC_VERSION),
        state: Some(state as i32),
    };
    encode(writer, random, &location)
}

/// The cluster id, from the value of `hbaseid`.
///
/// # Errors
/// [`Undecodable`].
pub fn read_cluster_id(data: &Bytes) -> Result<String, Undecodable> {
    Ok(decode::<proto::ClusterId>(data)?.cluster_id)
}

/// The active master, from the value of `master`.
///
/// # Errors
/// [`Undecodable`].
pub fn read_master(data: &Bytes) -> Result<ServerName, Undecodable> {
    server_name(&decode::<proto::Master>(data)?.master)
}

/// The active master and the port of its status pages (0: none), from the value of `master`.
///
/// # Errors
/// [`Undecodable`].
pub fn read_master_pages(data: &Bytes) -> Result<(ServerName, u16), Undecodable> {
    let master = decode::<proto::Master>(data)?;
    let port = u16::try_from(master.info_port()).unwrap_or(0);
    Ok((server_name(&master.master)?, port))
}

/// The port of the status pages and the version, from the value of `rs/<server>`.
///
/// # Errors
/// [`Undecodable`].
pub fn read_region_server(data: &Bytes) -> Result<proto::RegionServerInfo, Undecodable> {
    decode(data)
}

/// The start of the cluster as its master wrote it, from the value of `running`.
///
/// # Errors
/// [`Undecodable`].
pub fn read_running(data: &Bytes) -> Result<String, Undecodable> {
    Ok(decode::<proto::ClusterUp>(data)?.start_date)
}

/// The location of `hbase:meta`, from the value of `meta-region-server`; `None` while it is not
/// open.
///
/// # Errors
/// [`Undecodable`].
pub fn read_meta_region_server(data: &Bytes) -> Result<Option<ServerName>, Undecodable> {
    let (server, state) = read_meta_region_server_in_state(data)?;
    Ok((state == RegionState::Open).then_some(server))
}

/// The location of `hbase:meta` and its state there, from the value of `meta-region-server`.
///
/// # Errors
/// [`Undecodable`].
pub fn read_meta_region_server_in_state(data: &Bytes) -> Result<(ServerName, RegionState), Undecodable> {
    let location: proto::MetaRegionServer = decode(data)?;
    // Old writers omit the state: they only wrote the location while the region was open.
    let state = location.state.map_or(Ok(RegionState::Open), RegionState::try_from);
    let state = state.map_err(|_| Undecodable::Missing("state"))?;
    Ok((server_name(&location.server)?, state))
}

fn server_name(message: &proto::ServerName) -> Result<ServerName, Undecodable> {
    let port = message.port.and_then(|port| u16::try_from(port).ok());
    match port {
        Some(port) if !message.host_name.is_empty() => Ok(ServerName {
            host: message.host_name.clone(),
            port,
            start_code: message.start_code.unwrap_or(0),
        }),
        _ => Err(Undecodable::Missing("server name")),
    }
}

#[cfg(test)]
mod tests {
    use base::testing::SeededRandom;

    use super::*;

    fn hex(text: &str) -> Bytes {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    const SALT: [u8; 8] = [0x2e, 0x9b, 0x7c, 0xc5, 0xfe, 0xee, 0xfb, 0x4f];
    const PREFIX_HEX: &str = "ff 00000014 6d61737465723a3336303030 2e9b7cc5feeefb4f 50425546";

    /// Values from the ZooKeeper of a running HBase 2.5.10.
    #[test]
    fn values_are_those_of_hbase() {
        let id = proto::ClusterId { cluster_id: "13591670-ef77-46d1-96d0-7e145ff708e4".into() };
        let written = encode_salted("master:36000", &SALT, &id);
        let text: String = id.cluster_id.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(written, hex(&format!("{PREFIX_HEX} 0a24 {text}")));
        assert_eq!(read_cluster_id(&written).unwrap(), id.cluster_id);

        let master = hex(&format!(
            "{PREFIX_HEX} 0a16 0a096c6f63616c686f7374 10a09902 18d7f5a0db9f34 1000 18ffffffff0f"
        ));
        let server = read_master(&master).unwrap();
        assert_eq!((server.host.as_str(), server.port), ("localhost", 36000));
        let again =
            proto::Master { master: (&server).into(), rpc_version: Some(0), info_port: Some(u32::MAX) };
        assert_eq!(encode_salted("master:36000", &SALT, &again), master);

        let meta =
            hex(&format!("{PREFIX_HEX} 0a16 0a096c6f63616c686f7374 10b49902 188affa0db9f34 1000 1803"));
        let server = read_meta_region_server(&meta).unwrap().unwrap();
        assert_eq!((server.host.as_str(), server.port), ("localhost", 36020));
        let location =
            proto::MetaRegionServer { server: (&server).into(), rpc_version: Some(0), state: Some(3) };
        assert_eq!(encode_salted("master:36000", &SALT, &location), meta);
    }

    #[test]
    fn a_value_without_prefix_is_read_too() {
        let bare = magic::with_magic(&proto::ClusterId { cluster_id: "x".into() });
        assert_eq!(read_cluster_id(&bare).unwrap(), "x");
    }

    #[test]
    fn a_meta_region_that_is_not_open_has_no_server() {
        let server = ServerName { host: "h".into(), port: 1, start_code: 2 };
        let opening = proto::MetaRegionServer { server: (&server).into(), rpc_version: None, state: Some(2) };
        assert_eq!(read_meta_region_server(&encode_salted("w", &SALT, &opening)).unwrap(), None);
        let random = SeededRandom::new(1);
        for state in [RegionState::Offline, RegionState::Opening, RegionState::Open, RegionState::Closing] {
            let data = meta_region_server_in_state("w", &random, &server, state);
            assert_eq!(read_meta_region_server_in_state(&data), Ok((server.clone(), state)));
            let open = (state == RegionState::Open).then(|| server.clone());
            assert_eq!(read_meta_region_server(&data), Ok(open));
        }
        // Old writers omit the state. One that does not exist is not read as open.
        let with_state = |state| {
            let location = proto::MetaRegionServer { server: (&server).into(), rpc_version: None, state };
            read_meta_region_server_in_state(&encode_salted("w", &SALT, &location))
        };
        assert_eq!(with_state(None), Ok((server.clone(), RegionState::Open)));
        assert_eq!(with_state(Some(99)), Err(Undecodable::Missing("state")));
    }

    #[test]
    fn a_region_server_has_a_port_and_a_version() {
        let data = region_server("regionserver:16020", &SeededRandom::new(1), 16030);
        assert_eq!(strip_prefix(&data).unwrap()[..8], *hex("50425546 08 9e7d 12"));
        let info = read_region_server(&data).unwrap();
        let version = info.version_info.unwrap();
        assert_eq!(
            (info.info_port, version.version_major, version.version_minor),
            (Some(16030), Some(2), Some(6))
        );
        assert!(version.version.starts_with("2.6."));
        // As HBase writes it without status pages.
        let none = proto::RegionServerInfo { info_port: Some(-1), version_info: None };
        assert_eq!(read_region_server(&encode_salted("w", &SALT, &none)), Ok(none));
    }

    #[test]
    fn a_running_cluster_has_a_start_date_as_java_prints_it() {
        let data = running("master:16000", &SeededRandom::new(1), 1_700_000_000_999);
        assert_eq!(strip_prefix(&data).unwrap()[..6], *hex("50425546 0a 1c"));
        assert_eq!(read_running(&data).unwrap(), "Tue Nov 14 22:13:20 UTC 2023");
    }

    #[test]
    fn truncated_values_are_refused_at_every_length() {
        let server = ServerName { host: "localhost".into(), port: 16020, start_code: 1 };
        let location =
            proto::MetaRegionServer { server: (&server).into(), rpc_version: Some(0), state: Some(3) };
        let whole = encode_salted("master:16000", &SALT, &location);
        for len in 0..whole.len() {
            let read = read_meta_region_server(&whole.slice(..len));
            assert_ne!(read.ok().flatten().filter(|_| len < whole.len() - 4), Some(server.clone()), "{len}");
        }
        assert_eq!(strip_prefix(&hex("ff ffffffff 00")), Err(Undecodable::Prefix));
        assert_eq!(strip_prefix(&hex("ff 0000")), Err(Undecodable::Prefix));
    }
}
