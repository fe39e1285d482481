//! Compresses responses for clients that accept gzip.

use std::io::Write;

use base::pool::Pool;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::StreamExt;
use hyper::header::{self, HeaderMap, HeaderValue};

use crate::reply::{Content, Reply};

/// Contents up to this size are compressed on the connection's thread.
const SMALL_BYTES: usize = 32 << 10;

/// Whether a client accepts gzip.
pub(crate) fn is_accepted(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

/// Compresses the content of a response.
pub(crate) async fn compress(reply: Reply, pool: &Pool) -> Reply {
    let content = match reply.content {
        Content::Whole(bytes) if bytes.is_empty() => {
            return Reply { content: Content::Whole(bytes), ..reply };
        }
        Content::Whole(bytes) if bytes.len() <= SMALL_BYTES => Content::Whole(compressed(&bytes)),
        Content::Whole(bytes) => Content::Whole(pool.run(move || compressed(&bytes)).await),
        Content::Parts(parts) => {
            let encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
            let state = (parts, encoder);
            let compressed = futures_util::stream::unfold(state, |(mut parts, encoder)| async move {
                let mut encoder = encoder?;
                let written = match parts.next().await {
                    Some(Ok(part)) => encoder.write_all(&part).map(|()| std::mem::take(encoder.get_mut())),
                    Some(Err(error)) => Err(error),
                    None => return Some((encoder.finish().map(Bytes::from), (parts, None))),
                };
                Some((written.map(Bytes::from), (parts, Some(encoder))))
            });
            Content::Parts(compressed.boxed())
        }
    };
    let mut reply = Reply { content, ..reply };
    reply.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    reply
}

fn compressed(content: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("writing to memory does not fail");
    encoder.finish().expect("writing to memory does not fail").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_must_be_accepted() {
        let accepts = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
            is_accepted(&headers)
        };
        assert!(accepts("gzip") && accepts("deflate, GZIP;q=0.5"));
        assert!(!accepts("deflate") && !accepts("gzip;q=0") && !is_accepted(&HeaderMap::new()));
    }
}
