//! The protocols, their types, and faults of messages.

/// A form of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Binary; messages begin with a version.
    Binary,
    /// Binary; messages begin with the length of the method's name. Old clients send this.
    OldBinary,
    /// Compact.
    Compact,
}

impl Protocol {
    /// The protocol of a message, by its first byte.
    ///
    /// # Errors
    /// If no message begins with this byte.
    pub fn of(first: u8) -> Result<Protocol, Fault> {
        match first {
            0x80 => Ok(Protocol::Binary),
            0x82 => Ok(Protocol::Compact),
            // The name of a method is shorter than 16 MiB.
            0 => Ok(Protocol::OldBinary),
            _ => Err(Fault::Invalid("unknown protocol")),
        }
    }

    pub(crate) fn is_compact(self) -> bool {
        self == Protocol::Compact
    }
}

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It ends early.
    Truncated,
    /// It is not in the protocol.
    Invalid(&'static str),
    /// It is longer than allowed.
    TooLong,
    /// It is nested too deeply.
    TooDeep,
    /// There is no memory for it now.
    NoMemory,
}

impl Fault {
    /// A short description.
    pub fn text(self) -> &'static str {
        match self {
            Fault::Truncated => "the message is truncated",
            Fault::Invalid(reason) => reason,
            Fault::TooLong => "the message is too long",
            Fault::TooDeep => "the message is nested too deeply",
            Fault::NoMemory => "out of memory for requests; retry",
        }
    }
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A truth value.
    Bool,
    /// A signed byte.
    Byte,
    /// A floating-point number.
    Double,
    /// A 16-bit integer.
    I16,
    /// A 32-bit integer, also an enumeration.
    I32,
    /// A 64-bit integer.
    I64,
    /// Bytes or text.
    Binary,
    /// A struct, union or exception.
    Struct,
    /// A map.
    Map,
    /// A set.
    Set,
    /// A list.
    List,
}

/// The codes of all types, for the binary and for the compact protocol.
const CODES: [(Kind, u8, u8); 11] = [
    (Kind::Bool, 2, 1),
    (Kind::Byte, 3, 3),
    (Kind::Double, 4, 7),
    (Kind::I16, 6, 4),
    (Kind::I32, 8, 5),
    (Kind::I64, 10, 6),
    (Kind::Binary, 11, 8),
    (Kind::Struct, 12, 12),
    (Kind::Map, 13, 11),
    (Kind::Set, 14, 10),
    (Kind::List, 15, 9),
];

/// The compact type of a field that is false, and of elements that are truth values in some
/// clients' messages.
pub(crate) const COMPACT_FALSE: u8 = 2;

impl Kind {
    pub(crate) fn code(self, protocol: Protocol) -> u8 {
        let (_, binary, compact) = CODES[self as usize];
        if protocol.is_compact() { compact } else { binary }
    }

    pub(crate) fn of_code(code: u8, protocol: Protocol) -> Result<Kind, Fault> {
        let compact = protocol.is_compact();
        if compact && code == COMPACT_FALSE {
            return Ok(Kind::Bool);
        }
        let has_code = |entry: &&(Kind, u8, u8)| code == if compact { entry.2 } else { entry.1 };
        CODES.iter().find(has_code).map(|entry| entry.0).ok_or(Fault::Invalid("unknown type"))
    }
}
