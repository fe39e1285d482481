//! Responses: contents, errors as HBase words them, and the error pages of its HTTP server.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use base::budget::BudgetShare;
use bytes::Bytes;
use client::Error;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use proto::exception::class;

use crate::media::{self, Media};

/// The body of a response.
pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// A response, before headers of the connection are added.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) content: Content,
    /// The memory of the content.
    pub(crate) memory: Option<BudgetShare>,
}

/// The content of a response.
pub(crate) enum Content {
    /// In memory.
    Whole(Bytes),
    /// Produced while it is sent. An error ends the connection, so that the client sees it.
    Parts(BoxStream<'static, io::Result<Bytes>>),
}

impl Reply {
    pub(crate) fn empty(status: StatusCode) -> Reply {
        Reply { status, headers: HeaderMap::new(), content: Content::Whole(Bytes::new()), memory: None }
    }

    pub(crate) fn of(media: Media, content: impl Into<Bytes>) -> Reply {
        Reply::typed(media.name(), Content::Whole(content.into()))
    }

    pub(crate) fn typed(media: &'static str, content: Content) -> Reply {
        let mut reply = Reply { content, ..Reply::empty(StatusCode::OK) };
        reply.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
        reply
    }

    /// The response to a request that has created the resource at `location`.
    pub(crate) fn created(location: &str) -> Reply {
        Reply::empty(StatusCode::CREATED).with(header::LOCATION, location)
    }

    pub(crate) fn with(mut self, name: HeaderName, value: &str) -> Reply {
        // A value that cannot be in a header is omitted: it comes from the request's own path.
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    /// Clients must not use a cached response.
    pub(crate) fn uncached(self) -> Reply {
        self.with(header::CACHE_CONTROL, "no-cache")
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let body = match self.content {
            Content::Whole(bytes) => WholeBody { bytes: Some(bytes), _memory: self.memory }.boxed_unsync(),
            Content::Parts(parts) => StreamBody::new(parts.map(|part| part.map(Frame::data))).boxed_unsync(),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// A body in memory, which is released when the client has received it.
struct WholeBody {
    bytes: Option<Bytes>,
    _memory: Option<BudgetShare>,
}

impl hyper::body::Body for WholeBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let bytes = self.bytes.take().filter(|bytes| !bytes.is_empty());
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.as_ref().is_none_or(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The resource answers with this text.
    Text(StatusCode, String),
    /// The HTTP server answers with an error page.
    Page(StatusCode),
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// The class of `IllegalArgumentException`.
pub(crate) const ILLEGAL_ARGUMENT: &str = "java.lang.IllegalArgumentException";
/// The class of `NullPointerException`.
pub(crate) const NULL_POINTER: &str = "java.lang.NullPointerException";

impl Failure {
    pub(crate) fn not_found() -> Failure {
        Failure::line(StatusCode::NOT_FOUND, "Not found")
    }

    pub(crate) fn line(status: StatusCode, line: &str) -> Failure {
        Failure::Text(status, format!("{line}\r\n"))
    }

    /// 400 with a reason.
    pub(crate) fn bad(reason: &str) -> Failure {
        match reason {
            "" => Failure::line(StatusCode::BAD_REQUEST, "Bad request"),
            reason => Failure::line(StatusCode::BAD_REQUEST, &format!("Bad request: {reason}")),
        }
    }

    /// 400 for a Java exception of the gateway itself.
    pub(crate) fn exception(class: &str, message: &str) -> Failure {
        Failure::with_exception(StatusCode::BAD_REQUEST, "Bad request", class, message)
    }

    /// 503 for a Java exception of the gateway itself.
    pub(crate) fn unavailable(class: &str, message: &str) -> Failure {
        Failure::with_exception(StatusCode::SERVICE_UNAVAILABLE, "Unavailable", class, message)
    }

    fn with_exception(status: StatusCode, line: &str, class: &str, message: &str) -> Failure {
        // Only the first line: servers append a stack trace.
        let message = message.lines().next().unwrap_or("");
        let separator = if message.is_empty() { "" } else { ": " };
        Failure::Text(status, format!("{line}\r\n{class}{separator}{message}\r\n"))
    }

    /// The failure of a call to the cluster.
    pub(crate) fn of(error: &Error) -> Failure {
        let (status, line) = if error.is_class(class::ACCESS_DENIED) {
            (StatusCode::FORBIDDEN, "Forbidden")
        } else if is_missing(error) {
            (StatusCode::NOT_FOUND, "Not found")
        } else if error.java_class() == ILLEGAL_ARGUMENT {
            (StatusCode::BAD_REQUEST, "Bad request")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "Unavailable")
        };
        Failure::with_exception(status, line, error.java_class(), &error.java_message())
    }

    /// The response. `accept` decides on the form of an error page, which only some methods have.
    pub(crate) fn reply(self, url: &str, accept: Option<&str>, has_page: bool) -> Reply {
        match self {
            Failure::Text(status, text) => Reply { status, ..Reply::of(Media::Text, text) },
            Failure::Page(status) if !has_page => Reply::empty(status),
            Failure::Page(status) => error_page(status, url, accept),
        }
    }
}

/// Whether the table or family of a call does not exist.
pub(crate) fn is_missing(error: &Error) -> bool {
    matches!(last(error), Error::TableNotFound(_))
        || error.is_class(class::TABLE_NOT_FOUND)
        || error.is_class(class::NO_SUCH_COLUMN_FAMILY)
}

/// Whether the table of a call is disabled.
pub(crate) fn is_disabled(error: &Error) -> bool {
    matches!(last(error), Error::TableNotEnabled(_)) || error.is_class(class::TABLE_NOT_ENABLED)
}

fn last(error: &Error) -> &Error {
    match error {
        Error::Exhausted { last: inner, .. } => last(inner),
        other => other,
    }
}

/// The error pages of HBase's HTTP server, in the form that the client accepts.
fn error_page(status: StatusCode, url: &str, accept: Option<&str>) -> Reply {
    let phrase = match status {
        StatusCode::INTERNAL_SERVER_ERROR => "Request failed.",
        status => status.canonical_reason().unwrap_or("Error"),
    };
    let code = status.as_u16();
    let form = media::best_name(accept.unwrap_or("*/*"), &["text/html", "text/plain", "application/json"]);
    let reply = match form {
        Some(0) => {
            let row = |name: &str, value: &str| format!("<tr><th>{name}:</th><td>{value}</td></tr>\n");
            let rows = [
                row("URI", &html(url)),
                row("STATUS", &code.to_string()),
                row("MESSAGE", phrase),
                row("SERVLET", "grampus"),
            ];
            let page = format!(
                "<html>\n<head>\n<meta http-equiv=\"Content-Type\" content=\"text/html;charset=ISO-8859-1\"/>\n\
                 <title>Error {code} {phrase}</title>\n</head>\n<body><h2>HTTP ERROR {code} {phrase}</h2>\n<table>\n{}\
                 </table>\n\n</body>\n</html>\n",
                rows.concat()
            );
            Reply::typed("text/html;charset=iso-8859-1", Content::Whole(page.into()))
        }
        Some(1) => {
            let page = format!(
                "HTTP ERROR {code} {phrase}\nURI: {url}\nSTATUS: {code}\nMESSAGE: {phrase}\nSERVLET: grampus\n"
            );
            Reply::typed("text/plain;charset=iso-8859-1", Content::Whole(page.into()))
        }
        Some(_) => {
            let mut page = b"{\n\"servlet\":\"grampus\",\n\"message\":".to_vec();
            crate::json::quote_to(&mut page, phrase);
            page.extend_from_slice(b",\n\"url\":");
            crate::json::quote_to(&mut page, url);
            page.extend_from_slice(format!(",\n\"status\":\"{code}\"\n}}").as_bytes());
            Reply::typed("application/json", Content::Whole(page.into()))
        }
        None => Reply::empty(status),
    };
    Reply { status, ..reply }.with(header::CACHE_CONTROL, "must-revalidate,no-cache,no-store")
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
