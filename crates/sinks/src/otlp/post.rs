//! Posts a request to a collector: one connection per request.

use std::fmt;

use base::env::Env;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;

/// Maximum bytes of a response that are read.
const RESPONSE_LEN_MAX: usize = 64 << 10;
/// Source: the OTLP specification.
const PORT_DEFAULT: u16 = 4318;

/// The address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
    // The path prefix, without a trailing slash.
    base: String,
}

impl Endpoint {
    /// Parses `http://HOST[:PORT][/PATH]`.
    ///
    /// # Errors
    /// A message that states the expected format.
    pub fn parse(url: &str) -> Result<Endpoint, String> {
        let expected = || "expected http://HOST:PORT, such as http://localhost:4318".to_owned();
        let rest = match url.split_once("://") {
            Some(("http", rest)) => rest,
            Some(("https", _)) => {
                let instead = "send to a local collector that forwards the data";
                return Err(format!("https is not supported; {instead}"));
            }
            _ => return Err(expected()),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        // The port follows the last colon, unless that colon is inside an address in brackets.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().map_err(|_| expected())?),
            _ => (authority, PORT_DEFAULT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '@' | '?' | '#');
        if host.is_empty() || port == 0 || !host.chars().chain(path.chars()).all(is_plain) {
            return Err(expected());
        }
        Ok(Endpoint { host: host.to_owned(), port, base: path.trim_end_matches('/').to_owned() })
    }

    fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.base)
    }
}

/// Posts `message` to `path` of `to`; an error is one line.
pub(super) async fn post(env: &Env, to: &Endpoint, path: &str, message: Vec<u8>) -> Result<(), String> {
    let describe = |error: &dyn fmt::Display| format!("{to}: {error}");
    let stream = env.net.connect(&to.host, to.port).await.map_err(|error| describe(&error))?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| describe(&error))?;
    let request = Request::post(format!("{}{path}", to.base))
        .header(HOST, to.authority())
        .header(CONTENT_TYPE, "application/x-protobuf")
        .body(Full::new(Bytes::from(message)))
        .map_err(|error| describe(&error))?;
    let exchange = async move {
        let response = sender.send_request(request).await.map_err(|error| describe(&error))?;
        let status = response.status();
        // Read the response to its end: some collectors treat an early close as an absent client.
        let _ = Limited::new(response.into_body(), RESPONSE_LEN_MAX).collect().await;
        if status.is_success() {
            Ok(())
        } else {
            Err(describe(&format_args!("collector responded {status}")))
        }
    };
    // The connection ends when the exchange drops the sender.
    let (exchanged, _) = tokio::join!(exchange, connection);
    exchanged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_urls() {
        let check = |url: &str, shown: &str| assert_eq!(Endpoint::parse(url).unwrap().to_string(), shown);
        check("http://localhost:4318", "http://localhost:4318");
        check("http://collector", "http://collector:4318");
        check("http://h:1/otlp/", "http://h:1/otlp");
        check("http://[::1]:4318/", "http://[::1]:4318");
        check("http://[::1]", "http://[::1]:4318");
        assert!(Endpoint::parse("https://h").unwrap_err().starts_with("https is not supported"));
        for url in
            ["", "h:4318", "http://", "http://:1", "http://h:x", "http://h:0", "http://a b", "http://u@h"]
        {
            assert!(Endpoint::parse(url).is_err(), "{url}");
        }
    }
}
