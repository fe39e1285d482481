//! A request whose body has been received.

use std::net::IpAddr;

use base::budget::BudgetShare;
use bytes::Bytes;
use cell::schema::TableName;
use hyper::header::{self, HeaderMap};
use hyper::{Method, StatusCode};

use crate::media::{self, Media};
use crate::reply::{Failure, ILLEGAL_ARGUMENT, Result};
use crate::row_spec::KeyEncoding;

/// A request.
pub(crate) struct Call {
    pub(crate) method: Method,
    /// The undecoded path.
    pub(crate) path: String,
    /// Decoded names and values.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The address of the client.
    pub(crate) peer: IpAddr,
    /// The memory of the body.
    pub(crate) memory: BudgetShare,
}

impl Call {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(crate) fn accept(&self) -> Option<&str> {
        accept(&self.headers)
    }

    /// The media type of the response.
    ///
    /// # Errors
    /// 406 if the client accepts none of `offered`.
    pub(crate) fn response_media(&self, offered: &[Media]) -> Result<Media> {
        media::best(self.accept(), offered).ok_or(Failure::Page(StatusCode::NOT_ACCEPTABLE))
    }

    /// The media type of the body. A body without a type is a single value, if that is accepted.
    ///
    /// # Errors
    /// 415 if it is none of `accepted`.
    pub(crate) fn body_media(&self, accepted: &[Media]) -> Result<Media> {
        let media = self.header("content-type").map_or(Some(Media::Octets), Media::of_name);
        let media = media.filter(|media| accepted.contains(media));
        media.ok_or(Failure::Page(StatusCode::UNSUPPORTED_MEDIA_TYPE))
    }

    /// The first value of a name in the query.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// All values of a name in the query.
    pub(crate) fn parameters<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.query.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// A number in the query.
    ///
    /// # Errors
    /// An error page with `status` if the value is not a number.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str, status: StatusCode) -> Result<Option<T>> {
        self.parameter(name).map(|text| text.parse().map_err(|_| Failure::Page(status))).transpose()
    }

    /// The encoding of keys in the path.
    ///
    /// # Errors
    /// 500 if it is unknown.
    pub(crate) fn key_encoding(&self) -> Result<KeyEncoding> {
        let name = self.header("encoding").or_else(|| self.parameter("e"));
        KeyEncoding::of_name(name).ok_or(Failure::Page(StatusCode::INTERNAL_SERVER_ERROR))
    }

    /// The URL of the request without its query, as the client addressed it.
    pub(crate) fn url(&self) -> String {
        let host = self.header("host").unwrap_or("localhost");
        format!("http://{host}{}", self.path)
    }
}

/// The `Accept` header.
pub(crate) fn accept(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::ACCEPT).and_then(|value| value.to_str().ok())
}

/// The table of a path.
///
/// # Errors
/// 400 if the name is not valid.
pub(crate) fn table_name(name: &str) -> Result<TableName> {
    TableName::parse(name).map_err(|illegal| Failure::exception(ILLEGAL_ARGUMENT, &illegal.0))
}
