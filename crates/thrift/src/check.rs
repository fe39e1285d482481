//! Decodes untrusted messages without executing them, for fuzzing.

use std::fmt::Debug;

use base::budget::BudgetShare;
use bytes::Bytes;

use crate::message::MessageHeader;
use crate::protocol::{Fault, Protocol};
use crate::reader::Reader;
use crate::value::{Decode, Encode};
use crate::writer::Writer;
use crate::{one, two};

/// Decodes a call as the arguments of those methods that together have every struct. Decoded
/// arguments must have the same value after they are encoded and decoded again.
///
/// # Panics
/// If it has another value.
pub fn check_message(message: &Bytes, memory: &mut BudgetShare) {
    one::check_arguments(message, memory);
    two::check_arguments(message, memory);
}

/// Decodes a call with arguments `T`.
pub(crate) fn check<T: Decode + Encode + PartialEq + Debug>(message: &Bytes, memory: &mut BudgetShare) {
    let Ok((protocol, arguments)) = decode::<T>(message, memory) else { return };
    let mut writer = Writer::new(protocol, 0);
    arguments.encode(&mut writer);
    let again = T::decode(&mut Reader::new(protocol, writer.finish().into(), memory));
    // Encoded arguments have no unknown fields, but defaults, so they may need more memory.
    if again != Err(Fault::NoMemory) {
        assert_eq!(again, Ok(arguments));
    }
}

fn decode<T: Decode>(message: &Bytes, memory: &mut BudgetShare) -> Result<(Protocol, T), Fault> {
    let protocol = Protocol::of(*message.first().ok_or(Fault::Truncated)?)?;
    let mut reader = Reader::new(protocol, message.clone(), memory);
    MessageHeader::decode(&mut reader)?;
    Ok((protocol, T::decode(&mut reader)?))
}
