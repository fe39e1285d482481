//! Connections: receives requests and sends responses.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, Listener, TaskClass};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use web::body::discard;
use web::connections::{ConnectedClient, ConnectionLimits, accept_all};
use web::open_connections::ConnectionActivity;

use crate::body::BodyReader;
use crate::call::{Call, accept};
use crate::compression;
use crate::escape;
use crate::gateway::{Gateway, Refused};
use crate::reply::{Body, Content, Failure, Reply, Result};
use crate::route::Route;

/// Maximum size of the header of a request: long lists of rows are in the URL. HBase's limit is
/// 64 KiB.
const HEADER_BYTES_MAX: usize = 128 << 10;
/// Time limit for a client that reads nothing of a response.
const STALL_LIMIT: Duration = Duration::from_secs(30);
/// Maximum duration of a connection. Clients then open another one.
const CONNECTION_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// The pause between searches for unused scanners.
const CLEANING_PERIOD: Duration = Duration::from_secs(10);

/// The headers of all responses.
const SAFETY_HEADERS: [(HeaderName, &str); 3] = [
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_XSS_PROTECTION, "1; mode=block"),
];

/// Serves the REST API on `listener` until the task is dropped.
pub async fn serve(env: Env, listener: Box<dyn Listener>, gateway: Arc<Gateway>) {
    let limits = ConnectionLimits {
        connections_max: gateway.options.connections_max,
        header_time: gateway.options.idle_time.unwrap_or(CONNECTION_LIMIT).max(Duration::from_secs(1)),
        stall_time: STALL_LIMIT,
        connection_time: CONNECTION_LIMIT,
        header_bytes_max: HEADER_BYTES_MAX,
        title_case_headers: true,
        class: TaskClass::Connection,
    };
    let hosts = Arc::new(web::HostGuard::new(&gateway.options.hosts));
    let cleaned = gateway.clone();
    let service_of = move |client: ConnectedClient| Service {
        gateway: gateway.clone(),
        hosts: hosts.clone(),
        peer: client.address.ip(),
        activity: client.activity,
    };
    let clock = env.clock.clone();
    let accepting = accept_all(env, listener, service_of, limits);
    let cleaning = async {
        loop {
            clock.sleep(CLEANING_PERIOD).await;
            cleaned.close_expired_scanners();
        }
    };
    tokio::join!(accepting, cleaning);
}

/// The service of one connection.
#[derive(Clone)]
struct Service {
    gateway: Arc<Gateway>,
    hosts: Arc<web::HostGuard>,
    peer: IpAddr,
    activity: Arc<ConnectionActivity>,
}

impl hyper::service::Service<Request<Incoming>> for Service {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, std::result::Result<Response<Body>, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.respond(request).await.into_response()) })
    }
}

impl Service {
    async fn respond(&self, request: Request<Incoming>) -> Reply {
        if !self.hosts.admits(request.headers()) {
            let text = "This server does not serve requests for this host name (see grampus.info.hosts).\n";
            return Reply {
                status: StatusCode::MISDIRECTED_REQUEST,
                ..Reply::of(crate::media::Media::Text, text)
            };
        }
        let (parts, body) = request.into_parts();
        let (method, headers) = (parts.method, parts.headers);
        let path = parts.uri.path().to_owned();
        let query = escape::query(parts.uri.query().unwrap_or(""));
        if !escape::is_valid_path(&path) {
            let page = "<h1>Bad Message 400</h1><pre>reason: Bad Request</pre>";
            let reply = Reply::typed("text/html;charset=iso-8859-1", Content::Whole(page.into()));
            return Reply { status: StatusCode::BAD_REQUEST, ..reply };
        }
        // HBase's HTTP server refuses this method before its filters run.
        if method == Method::TRACE {
            return Reply::empty(StatusCode::FORBIDDEN);
        }
        let is_compressed = compression::is_accepted(&headers);
        let has_page = matches!(method, Method::GET | Method::HEAD | Method::POST);
        let accepted = accept(&headers).map(str::to_owned);
        let reply = self.execute(method, &path, query, headers, body).await;
        let reply = reply.unwrap_or_else(|refused| {
            let reply = refused.failure.reply(&path, accepted.as_deref(), has_page);
            match refused.allow {
                Some(allow) => reply.with(header::ALLOW, allow),
                None => reply,
            }
        });
        let reply =
            if is_compressed { compression::compress(reply, &self.gateway.pool).await } else { reply };
        with_safety_headers(reply)
    }

    async fn execute(
        &self,
        method: Method,
        path: &str,
        query: Option<Vec<(String, String)>>,
        headers: HeaderMap,
        body: Incoming,
    ) -> std::result::Result<Reply, Box<Refused>> {
        let route = match self.gateway.check(&method, path, &headers) {
            Ok(route) => route,
            Err(refused) => {
                discard(&self.gateway.env, body).await;
                return Err(refused);
            }
        };
        let run = async {
            let query = query.ok_or(Failure::Page(StatusCode::BAD_REQUEST))?;
            let (body, memory) = self.receive(&route, &headers, body).await?;
            let _execution = self.activity.execute();
            let peer = self.peer;
            let mut call = Call { method, path: path.to_owned(), query, headers, body, peer, memory };
            self.gateway.execute(route, &mut call).await
        };
        run.await.map_err(|failure| Box::new(Refused { failure, allow: None }))
    }

    async fn receive(
        &self,
        route: &Route<'_>,
        headers: &HeaderMap,
        body: Incoming,
    ) -> Result<(bytes::Bytes, base::budget::BudgetShare)> {
        let coding = headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes);
        let is_gzip = match coding {
            None | Some(b"" | b"identity") => false,
            Some(coding) if coding.eq_ignore_ascii_case(b"gzip") => true,
            Some(_) => {
                discard(&self.gateway.env, body).await;
                return Err(Failure::Page(StatusCode::UNSUPPORTED_MEDIA_TYPE));
            }
        };
        let reader = BodyReader {
            env: self.gateway.env.clone(),
            pool: self.gateway.pool.clone(),
            budget: self.gateway.budget.clone(),
            bytes_max: self.gateway.body_bytes_max(route),
        };
        reader.read(body, is_gzip).await
    }
}

fn with_safety_headers(mut reply: Reply) -> Reply {
    for (name, value) in SAFETY_HEADERS {
        reply.headers.insert(name, HeaderValue::from_static(value));
    }
    reply
}
