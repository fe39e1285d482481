//! Checks and headers of all pages: the permitted host names, and what browsers may do with a page.
//!
//! A page of another site can make its own host name resolve to this server's address, and then
//! read the pages through the user's browser (DNS rebinding). It cannot change the `Host` header,
//! which still contains its name. Therefore only requests for this server's names are answered: IP
//! addresses, `localhost`, the server's own names, and those that the operator configures.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base::BoxFuture;
use hyper::body::Incoming;
use hyper_util::service::TowerToHyperService;

/// The pages are HTML with an inline style sheet and inline drawings. Browsers must not load, run,
/// frame or send anything else.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'";

/// The host names for which pages are served.
pub struct Guard {
    names: Vec<String>,
    any: bool,
}

impl Guard {
    /// A guard that permits `names`, IP addresses and `localhost`; `*` in `names` permits any name.
    pub fn new(names: &[String]) -> Guard {
        let any = names.iter().any(|name| name == "*");
        Guard { names: names.iter().map(|name| name.to_ascii_lowercase()).collect(), any }
    }

    /// Wraps `router`, so that this guard checks its requests first.
    pub(crate) fn before(self: Arc<Guard>, router: Router) -> Guarded {
        Guarded { guard: self, inner: TowerToHyperService::new(router) }
    }

    /// Whether a request with these headers is served.
    pub fn admits(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).map(HeaderValue::to_str);
        match host {
            // HTTP/1.0 clients may send no `Host` header. Browsers always send one.
            None => true,
            Some(Ok(host)) => self.permits(host),
            Some(Err(_)) => false,
        }
    }

    fn permits(&self, host: &str) -> bool {
        let name = without_port(host).to_ascii_lowercase();
        let name = name.strip_suffix('.').unwrap_or(&name);
        let is_address = name.parse::<Ipv4Addr>().is_ok()
            || name
                .strip_prefix('[')
                .and_then(|name| name.strip_suffix(']'))
                .is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok());
        self.any
            || is_address
            || name == "localhost"
            || name.ends_with(".localhost")
            || self.names.iter().any(|permitted| permitted == name)
    }
}

/// The host in a `Host` header; IPv6 addresses keep their brackets.
fn without_port(host: &str) -> &str {
    match (host.rfind(':'), host.rfind(']')) {
        (Some(colon), Some(bracket)) if colon < bracket => host,
        (Some(colon), _) => &host[..colon],
        (None, _) => host,
    }
}

/// The pages, protected by a [`Guard`].
pub(crate) struct Guarded {
    guard: Arc<Guard>,
    inner: TowerToHyperService<Router>,
}

impl hyper::service::Service<Request<Incoming>> for Guarded {
    type Response = Response;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<'static, Result<Response, Self::Error>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        if !self.guard.admits(request.headers()) {
            let text = "This server does not serve pages for this host name (see grampus.info.hosts).\n";
            let refused = with_headers((StatusCode::MISDIRECTED_REQUEST, text).into_response());
            return Box::pin(std::future::ready(Ok(refused)));
        }
        let response = hyper::service::Service::call(&self.inner, request.map(Body::new));
        Box::pin(async move { response.await.map(with_headers) })
    }
}

fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let set = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in set {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_of_this_server_are_accepted() {
        let guard = Guard::new(&["Db1.example.com".to_owned()]);
        for permitted in [
            "localhost",
            "localhost:16010",
            "LOCALHOST",
            "127.0.0.1:16010",
            "10.1.2.3",
            "[::1]:16010",
            "[fe80::1]",
            "db1.example.com:16030",
            "db1.example.com.",
        ] {
            assert!(guard.permits(permitted), "{permitted}");
        }
        for foreign in [
            "evil.example",
            "evil.example:16010",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
            "[::1",
            "::1]",
        ] {
            assert!(!guard.permits(foreign), "{foreign}");
        }
        assert!(Guard::new(&["*".to_owned()]).permits("evil.example"));
    }
}
