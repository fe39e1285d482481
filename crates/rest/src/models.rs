//! The bodies of requests and responses, in each of their forms.

pub(crate) mod cells;
pub(crate) mod cluster;
pub(crate) mod namespaces;
pub(crate) mod scanner;
pub(crate) mod schema;
pub(crate) mod tables;

use bytes::Bytes;
use hyper::StatusCode;

use crate::media::Media;
use crate::reply::{Failure, Reply};

/// A body of a response that has every form.
pub(crate) trait Model {
    /// Appends the JSON form.
    fn json_to(&self, out: &mut Vec<u8>);
    /// Appends the XML form, without the declaration.
    fn xml_to(&self, out: &mut Vec<u8>);
    /// The protobuf form.
    fn protobuf(&self) -> Vec<u8>;
    /// The form for people.
    fn text(&self) -> String;

    /// The response in a media type.
    fn reply(&self, media: Media) -> Reply {
        let mut out = Vec::new();
        match media {
            Media::Json => self.json_to(&mut out),
            Media::Xml => {
                out.extend_from_slice(crate::xml::DECLARATION.as_bytes());
                self.xml_to(&mut out);
            }
            Media::Protobuf | Media::ProtobufIetf => out = self.protobuf(),
            Media::Text | Media::Octets => out = self.text().into_bytes(),
        }
        Reply::of(media, out)
    }
}

/// Why a body is not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// It is not well-formed: status 400.
    Malformed,
    /// It is well-formed but not of the expected model, or not readable: status 500, as in HBase.
    Unreadable,
    /// It is empty.
    Empty,
    /// It has too many parts: status 413.
    TooLarge,
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Failure {
        match invalid {
            Invalid::Malformed => Failure::Page(StatusCode::BAD_REQUEST),
            Invalid::Unreadable => Failure::Page(StatusCode::INTERNAL_SERVER_ERROR),
            Invalid::Empty => Failure::exception(crate::reply::NULL_POINTER, ""),
            Invalid::TooLarge => Failure::Page(StatusCode::PAYLOAD_TOO_LARGE),
        }
    }
}

/// Bytes as text, for the forms that have no bytes.
pub(crate) fn lossy(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
