//! The connection header: the user, the requested service, the codec and the client's version.
//!
//! `int32 length | ConnectionHeader`, sent once, directly after the preamble. It has no response.

use bytes::BytesMut;

use crate::fields::{Fields, Malformed, put_bytes, put_number};

/// Maximum size in bytes of a header.
pub const HEADER_LEN_MAX: usize = 16 * 1024;

/// The encoding of cells in a cell block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// Without tags; the codec that every client requests.
    KeyValue,
    /// With tags.
    KeyValueWithTags,
}

impl Codec {
    /// The Java class of the codec.
    pub fn class(self) -> &'static str {
        match self {
            Codec::KeyValue => "org.apache.hadoop.hbase.codec.KeyValueCodec",
            Codec::KeyValueWithTags => "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags",
        }
    }

    /// The codec of a Java class; `None` if the class is unknown.
    pub fn of_class(class: &str) -> Option<Codec> {
        [Codec::KeyValue, Codec::KeyValueWithTags].into_iter().find(|codec| codec.class() == class)
    }
}

/// The version that a client states.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientVersion {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
    /// The complete version text, such as `2.5.10`.
    pub text: String,
}

/// A decoded connection header; its values have not been checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnectionHeader {
    /// The user on whose behalf calls are made.
    pub effective_user: Option<String>,
    /// The connecting user, if it is a different one.
    pub real_user: Option<String>,
    /// The service, without its package.
    pub service_name: Option<String>,
    /// Java class of the codec; absent means no cell blocks.
    pub codec_class: Option<String>,
    /// Java class of the compressor of cell blocks; absent means none.
    pub compressor_class: Option<String>,
    /// The client's version; only HBase's own clients send one.
    pub version: Option<ClientVersion>,
}

impl ConnectionHeader {
    /// Decodes a header (without its length).
    ///
    /// # Errors
    /// [`Malformed`] if it is not protobuf, too long or has text that is not UTF-8.
    pub fn decode(bytes: &[u8]) -> Result<ConnectionHeader, Malformed> {
        if bytes.len() > HEADER_LEN_MAX {
            return Err(Malformed("connection header too long"));
        }
        let mut header = ConnectionHeader::default();
        let mut fields = Fields::of(bytes);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => header.decode_user(value.bytes()?)?,
                2 => header.service_name = Some(value.text()?.to_string()),
                3 => header.codec_class = Some(value.text()?.to_string()),
                4 => header.compressor_class = Some(value.text()?.to_string()),
                5 => header.version = Some(decode_version(value.bytes()?)?),
                _ => {}
            }
        }
        Ok(header)
    }

    fn decode_user(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let mut fields = Fields::of(bytes);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => self.effective_user = Some(value.text()?.to_string()),
                2 => self.real_user = Some(value.text()?.to_string()),
                _ => {}
            }
        }
        // The schema requires it: a call must have a user.
        if self.effective_user.is_none() {
            return Err(Malformed("a user without a name"));
        }
        Ok(())
    }

    /// Encodes the header (without its length).
    pub fn encode(&self) -> BytesMut {
        let mut out = BytesMut::new();
        if let Some(effective) = &self.effective_user {
            let mut user = BytesMut::new();
            put_bytes(&mut user, 1, effective.as_bytes());
            put_text(&mut user, 2, &self.real_user);
            put_bytes(&mut out, 1, &user);
        }
        put_text(&mut out, 2, &self.service_name);
        put_text(&mut out, 3, &self.codec_class);
        put_text(&mut out, 4, &self.compressor_class);
        if let Some(version) = &self.version {
            put_bytes(&mut out, 5, &encode_version(version));
        }
        out
    }
}

fn put_text(out: &mut BytesMut, field: u32, text: &Option<String>) {
    if let Some(text) = text {
        put_bytes(out, field, text.as_bytes());
    }
}

// VersionInfo: 1 version, 2 url, 3 revision, 4 user, 5 date, 6 src_checksum, 7 major, 8 minor.
// Clients before 1.4 do not send the numbers; they are then parsed from the text.
fn decode_version(bytes: &[u8]) -> Result<ClientVersion, Malformed> {
    let (mut text, mut major, mut minor) = ("", None, None);
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => text = value.text()?,
            7 => major = Some(value.u32()?),
            8 => minor = Some(value.u32()?),
            _ => {}
        }
    }
    let mut parts = text.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
    let (text_major, text_minor) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    Ok(ClientVersion {
        major: major.unwrap_or(text_major),
        minor: minor.unwrap_or(text_minor),
        text: text.to_string(),
    })
}

fn encode_version(version: &ClientVersion) -> BytesMut {
    let mut out = BytesMut::new();
    put_bytes(&mut out, 1, version.text.as_bytes());
    // The schema requires these fields; their values are irrelevant.
    for field in 2..=6 {
        put_bytes(&mut out, field, b"");
    }
    put_number(&mut out, 7, u64::from(version.major));
    put_number(&mut out, 8, u64::from(version.minor));
    out
}
