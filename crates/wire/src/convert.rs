//! Requests and results: protobuf messages and cell blocks to and from the types of `cell`.
//!
//! * [`from_proto`]: decodes client requests with HBase's checks, and results as a client reads
//!   them;
//! * [`to_proto`]: encodes the same requests for our own client and master;
//! * [`columns`]: typed columns, conditions and groups, for Grampus' own endpoint;
//! * [`result`]: `Result` messages, with their cells in a cell block or inside.
//!
//! A request that needs an unsupported feature is [`Refused`] with an explicit error, never
//! answered incorrectly.

pub mod columns;
pub mod field;
pub mod from_proto;
mod from_proto_condition;
mod from_proto_mutation;
pub mod gets;
pub mod mutations;
pub mod result;
pub mod to_proto;

use cell::mutation::CellFault;
use cell::region::{RegionInfo, encoded_name_of};
use proto::region_specifier::RegionSpecifierType;

use proto::exception::{JavaException, class};

/// Why a request is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A feature that HBase has and this server does not have yet.
    #[error("{0} is not supported")]
    Unsupported(String),
    /// A request of 1.x clients that HBase 2 does not support either.
    #[error("{0}")]
    Obsolete(&'static str),
    /// The request is invalid.
    #[error("{0}")]
    Malformed(String),
    /// A cell is of another row than its mutation.
    #[error("{0}")]
    WrongRow(String),
}

impl Refused {
    fn malformed(message: impl Into<String>) -> Refused {
        Refused::Malformed(message.into())
    }
}

impl From<CellFault> for Refused {
    fn from(fault: CellFault) -> Refused {
        match fault {
            CellFault::WrongRow(what) => Refused::WrongRow(what),
            CellFault::Invalid(what) => Refused::Malformed(what),
        }
    }
}

impl From<Refused> for JavaException {
    fn from(refused: Refused) -> JavaException {
        match &refused {
            Refused::Unsupported(what) => JavaException::unsupported(what),
            // asynchbase checks for this class and then uses reversed scans.
            Refused::Obsolete(what) => JavaException::new(class::UNKNOWN_PROTOCOL, *what),
            Refused::Malformed(what) => JavaException::do_not_retry(what),
            Refused::WrongRow(what) => JavaException::new(class::FAILED_SANITY_CHECK, what),
        }
    }
}

/// Specifies a region by its name.
pub fn region_specifier(region: &RegionInfo) -> proto::RegionSpecifier {
    proto::RegionSpecifier { r#type: RegionSpecifierType::RegionName.into(), value: region.name() }
}

/// The encoded name of the specified region. Accepts names and encoded names, whichever type the
/// specifier states.
pub fn specified_region(specifier: &proto::RegionSpecifier) -> Option<&str> {
    encoded_name_of(&specifier.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::schema::TableName;

    #[test]
    fn regions_are_found_by_name_and_by_encoded_name() {
        let region = RegionInfo::new(TableName::parse("t").unwrap(), "a".into(), "b".into(), 7);
        let encoded = region.encoded_name();
        assert_eq!(specified_region(&region_specifier(&region)), Some(encoded.as_str()));
        let by_encoded = proto::RegionSpecifier {
            r#type: RegionSpecifierType::EncodedRegionName.into(),
            value: encoded.clone().into(),
        };
        assert_eq!(specified_region(&by_encoded), Some(encoded.as_str()));
        assert_eq!(specified_region(&region_specifier(&RegionInfo::meta())), Some("1588230740"));
        assert_eq!(specified_region(&proto::RegionSpecifier::default()), None);
    }
}
