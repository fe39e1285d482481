//! Calls as bodies of HTTP requests.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::BoxFuture;
use base::budget::BudgetShare;
use base::env::Stream;
use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use web::HostGuard;
use web::body::{self, BodyRefusal};
use web::open_connections::ConnectionActivity;

use crate::gateway::Gateway;
use crate::server::HEADER_BYTES_MAX;

/// The media type of calls and responses.
const MEDIA_TYPE: &str = "application/x-thrift";

/// The service of one connection.
#[derive(Clone)]
pub(crate) struct HttpCalls {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) hosts: Arc<HostGuard>,
    pub(crate) peer: IpAddr,
    pub(crate) activity: Arc<ConnectionActivity>,
}

/// The status of a refused request, and the reason.
type Refused = (StatusCode, &'static str);

impl hyper::service::Service<Request<Incoming>> for HttpCalls {
    type Response = Response<HeldBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<HeldBody>, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.respond(request).await.unwrap_or_else(refusal)) })
    }
}

impl HttpCalls {
    async fn respond(&self, request: Request<Incoming>) -> Result<Response<HeldBody>, Refused> {
        self.check(&request)?;
        let mut memory = BudgetShare::of(&self.gateway.budget);
        let message = self.receive(request.into_body(), &mut memory).await?;
        let _execution = self.activity.execute();
        let response = self.gateway.respond(message, &mut memory, self.peer, 0).await;
        let response = response.ok_or((StatusCode::BAD_REQUEST, "the body is no Thrift call"))?;
        Ok(typed(MEDIA_TYPE, HeldBody { bytes: Some(response.into()), _memory: Some(memory) }))
    }

    /// Refuses requests that no Thrift client sends, but that a browser sends for a page of another
    /// site.
    fn check(&self, request: &Request<Incoming>) -> Result<(), Refused> {
        if !self.hosts.admits(request.headers()) {
            let reason = "this server does not serve requests for this host name (see grampus.info.hosts)";
            return Err((StatusCode::MISDIRECTED_REQUEST, reason));
        }
        let header_bytes = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len();
        if request.headers().iter().map(header_bytes).sum::<usize>() > HEADER_BYTES_MAX {
            return Err((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too long"));
        }
        // As in HBase, whose client tests check this.
        if request.method() == Method::TRACE {
            return Err((StatusCode::FORBIDDEN, "TRACE is not supported"));
        }
        if request.method() != Method::POST {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "calls are sent with POST"));
        }
        let media = request.headers().get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        let media = media.split(|byte| *byte == b';').next().unwrap_or_default();
        if !media.trim_ascii().eq_ignore_ascii_case(MEDIA_TYPE.as_bytes()) {
            let reason = "the header Content-Type must be application/x-thrift";
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
        }
        Ok(())
    }

    async fn receive(&self, body: Incoming, memory: &mut BudgetShare) -> Result<Bytes, Refused> {
        let bytes_max = self.gateway.options.request_bytes_max;
        let received = body::receive(&self.gateway.env, body, bytes_max, memory).await;
        received.map_err(|refusal| match refusal {
            BodyRefusal::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "the message is too long"),
            BodyRefusal::TooSlow => (StatusCode::REQUEST_TIMEOUT, "the client sends too slowly"),
            BodyRefusal::NoMemory => (StatusCode::SERVICE_UNAVAILABLE, "out of memory for requests; retry"),
            BodyRefusal::Incomplete => (StatusCode::BAD_REQUEST, "the body is incomplete"),
        })
    }
}

fn refusal((status, reason): Refused) -> Response<HeldBody> {
    let body = HeldBody { bytes: Some(format!("{reason}\n").into()), _memory: None };
    let mut response = typed("text/plain; charset=utf-8", body);
    *response.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

fn typed(media: &'static str, body: HeldBody) -> Response<HeldBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A response, whose memory is released when the client has received it.
pub(crate) struct HeldBody {
    bytes: Option<Bytes>,
    _memory: Option<BudgetShare>,
}

impl Body for HeldBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// A stream whose first bytes were read already.
pub(crate) struct Rewound {
    pub(crate) read: Bytes,
    pub(crate) stream: Box<dyn Stream>,
}

impl AsyncRead for Rewound {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let len = self.read.len().min(buffer.remaining());
        buffer.put_slice(&self.read[..len]);
        self.read.advance(len);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
