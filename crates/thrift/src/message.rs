//! Messages: a method's name, a sequence number, and a struct.

use bytes::Bytes;

use crate::protocol::{Fault, Protocol};
use crate::reader::Reader;
use crate::value::{Encode, records};
use crate::writer::Writer;

/// The version of the binary protocol, in the first two bytes of a message.
const BINARY_VERSION: u32 = 0x8001_0000;
/// The first byte of a compact message, and the version in its second one.
const COMPACT_ID: u8 = 0x82;
const COMPACT_VERSION: u8 = 1;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Reply = 2,
    Exception = 3,
}

/// The header of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// The method.
    pub name: Bytes,
    /// Identifies the call; repeated in the response.
    pub sequence: i32,
}

impl MessageHeader {
    /// Reads the header of a call. The kind is ignored, as in HBase.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn decode(reader: &mut Reader<'_>) -> Result<MessageHeader, Fault> {
        match reader.protocol() {
            Protocol::Binary => {
                let version = u32::from_be_bytes(reader.fixed()?);
                if version & 0xffff_0000 != BINARY_VERSION {
                    return Err(Fault::Invalid("Bad version in readMessageBegin"));
                }
                Ok(MessageHeader { name: reader.binary()?, sequence: reader.i32()? })
            }
            Protocol::OldBinary => {
                let name = reader.binary()?;
                reader.byte()?;
                Ok(MessageHeader { name, sequence: reader.i32()? })
            }
            Protocol::Compact => {
                let [id, version] = reader.fixed()?;
                if id != COMPACT_ID || version & 0x1f != COMPACT_VERSION {
                    return Err(Fault::Invalid("Bad version in readMessageBegin"));
                }
                let sequence = reader.varint()? as i32;
                Ok(MessageHeader { sequence, name: reader.binary()? })
            }
        }
    }

    fn encode(&self, kind: MessageKind, protocol: Protocol, writer: &mut Writer) {
        match protocol {
            Protocol::Compact => {
                writer.raw(&[COMPACT_ID, (kind as u8) << 5 | COMPACT_VERSION]);
                writer.varint(self.sequence.cast_unsigned().into());
                writer.binary(&[&self.name]);
            }
            _ => {
                writer.raw(&(BINARY_VERSION | kind as u32).to_be_bytes());
                writer.binary(&[&self.name]);
                writer.i32(self.sequence);
            }
        }
    }

    /// A response: `reserved` bytes, and a struct that `fields` writes.
    pub(crate) fn reply(
        &self,
        protocol: Protocol,
        reserved: usize,
        fields: impl FnOnce(&mut Writer),
    ) -> Vec<u8> {
        let mut writer = Writer::new(protocol, reserved);
        self.encode(MessageKind::Reply, protocol, &mut writer);
        let outer = writer.begin_struct();
        fields(&mut writer);
        writer.end_struct(outer);
        writer.finish()
    }

    /// A response that reports a failed call.
    pub(crate) fn exception(
        &self,
        protocol: Protocol,
        reserved: usize,
        exception: &ApplicationException,
    ) -> Vec<u8> {
        let mut writer = Writer::new(protocol, reserved);
        self.encode(MessageKind::Exception, protocol, &mut writer);
        exception.encode(&mut writer);
        writer.finish()
    }
}

records! {
    /// Why a call has no result (`TApplicationException`).
    ApplicationException { 1 message: Option<String>, 2 kind: i32 }
}

impl ApplicationException {
    /// Codes of `TApplicationException`.
    pub(crate) const UNKNOWN_METHOD: i32 = 1;
    pub(crate) const INTERNAL_ERROR: i32 = 6;
    pub(crate) const PROTOCOL_ERROR: i32 = 7;

    pub(crate) fn new(kind: i32, message: String) -> ApplicationException {
        ApplicationException { message: Some(message), kind }
    }
}
