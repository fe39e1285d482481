//! Requests and results: protobuf messages and cell blocks to and from the types of `cell`.
//!
//! * [`from_proto`]: what a client asks for, checked as HBase checks it, and results as a client reads them;
//! * [`to_proto`]: the same requests as our own client and master send them;
//! * [`columns`]: typed columns, conditions and what is found of groups, for Grampus' own endpoint;
//! * [`result`]: `Result` messages, with their cells in a cell block or inside.
//!
//! A request that asks for something that is not there yet is [`Refused`] in so many words, never answered wrongly.

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

use crate::exception::{JavaException, class};

/// Why a request is not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// HBase can do this, this server cannot yet.
    #[error("{0} is not supported")]
    Unsupported(String),
    /// HBase 2 cannot do this either: a request of 1.x clients.
    #[error("{0}")]
    Obsolete(&'static str),
    /// The request makes no sense.
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
            // asynchbase looks for this class and then uses reversed scans.
            Refused::Obsolete(what) => JavaException::new(class::UNKNOWN_PROTOCOL, *what),
            Refused::Malformed(what) => JavaException::do_not_retry(what),
            Refused::WrongRow(what) => JavaException::new(class::FAILED_SANITY_CHECK, what),
        }
    }
}

/// The specifier of a region, by its name.
pub fn region_specifier(region: &RegionInfo) -> proto::RegionSpecifier {
    proto::RegionSpecifier { r#type: RegionSpecifierType::RegionName.into(), value: region.name() }
}

/// The encoded name of the region that is meant. Names and encoded names are both taken, whichever the type says.
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
