//! A call: its arguments and its response.

use std::net::IpAddr;

use crate::failure::Result;
use crate::message::MessageHeader;
use crate::reader::Reader;
use crate::value::{Decode, Encode};

/// A call that is being executed.
pub(crate) struct Call<'a> {
    pub(crate) reader: Reader<'a>,
    pub(crate) header: MessageHeader,
    /// The address of the client.
    pub(crate) peer: IpAddr,
    /// Bytes before the response, for the length of a frame.
    pub(crate) reserved: usize,
}

impl Call<'_> {
    /// The arguments.
    ///
    /// # Errors
    /// If they are not in the protocol, or there is no memory for them.
    pub(crate) fn arguments<T: Decode>(&mut self) -> Result<T> {
        Ok(T::decode(&mut self.reader)?)
    }

    /// Takes memory for the response. Its cells exist twice: as they were read, and encoded.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn take_memory(&mut self, bytes: usize) -> Result<()> {
        Ok(self.reader.take_memory(bytes.saturating_mul(2))?)
    }

    /// As [`take_memory`](Self::take_memory), even if there is none. A change that was applied must
    /// not be reported as failed: the client would apply it again.
    pub(crate) fn force_memory(&mut self, bytes: usize) {
        self.reader.force_memory(bytes.saturating_mul(2));
    }

    /// The response with a result.
    pub(crate) fn reply<T: Encode>(&self, result: &T) -> Vec<u8> {
        self.header.reply(self.reader.protocol(), self.reserved, |writer| result.encode_field(0, writer))
    }

    /// The response of a method without a result.
    pub(crate) fn done(&self) -> Vec<u8> {
        self.header.reply(self.reader.protocol(), self.reserved, |_| {})
    }
}
