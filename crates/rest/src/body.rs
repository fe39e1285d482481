//! Receives the body of a request within limits of size, memory and time.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use base::budget::{Budget, BudgetShare};
use base::env::Env;
use base::pool::Pool;
use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};

use crate::reply::{Failure, Result};

/// If a client sends nothing for this long, the request fails.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for a body, in addition to the time that its bytes take at [`BYTES_PER_SECOND_MIN`].
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// The slowest accepted transfer of a long body.
const BYTES_PER_SECOND_MIN: u64 = 64 << 10;
/// Step in which decompressed bytes are counted.
const STEP_BYTES: usize = 64 << 10;

/// Bytes of a refused body that are read, and how long this takes at most.
const DISCARDED_BYTES_MAX: usize = 16 << 20;
const DISCARD_LIMIT: Duration = Duration::from_secs(2);

const TOO_LARGE: Failure = Failure::Page(StatusCode::PAYLOAD_TOO_LARGE);
const NO_MEMORY: Failure = Failure::Page(StatusCode::SERVICE_UNAVAILABLE);

/// Receives bodies.
pub(crate) struct BodyReader {
    pub(crate) env: Env,
    pub(crate) pool: Arc<Pool>,
    pub(crate) budget: Arc<Budget>,
    /// Maximum size, also after decompression.
    pub(crate) bytes_max: usize,
}

impl BodyReader {
    /// Receives a body. Its memory is held by the returned share.
    ///
    /// # Errors
    /// 413 if it is too large, 408 if it is too slow, 503 if there is no memory, 400 if the client
    /// aborts it, 500 if it cannot be decompressed.
    pub(crate) async fn read(&self, mut body: Incoming, is_gzip: bool) -> Result<(Bytes, BudgetShare)> {
        let mut share = BudgetShare::of(&self.budget);
        let received = match body.size_hint().lower() > self.bytes_max as u64 {
            true => Err(TOO_LARGE),
            false => self.receive(&mut body, &mut share).await,
        };
        let received = match received {
            Ok(received) => received,
            Err(failure) => {
                discard(&self.env, body).await;
                return Err(failure);
            }
        };
        if !is_gzip {
            return Ok((received, share));
        }
        let bytes_max = self.bytes_max;
        // Even a short body may expand to a long one.
        self.pool.run(move || decompressed(&received, share, bytes_max)).await
    }

    async fn receive(&self, body: &mut Incoming, share: &mut BudgetShare) -> Result<Bytes> {
        let clock = &self.env.clock;
        let (started, mut received) = (clock.monotonic(), BytesMut::new());
        let mut first = Bytes::new();
        loop {
            let Some(frame) = self.env.timeout(STALL_LIMIT, body.frame()).await else {
                return Err(Failure::Page(StatusCode::REQUEST_TIMEOUT));
            };
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|_| Failure::Page(StatusCode::BAD_REQUEST))?;
            let Ok(data) = frame.into_data() else { continue };
            let total = received.len() + first.len() + data.len();
            if total > self.bytes_max {
                return Err(TOO_LARGE);
            }
            if !share.take_large(data.len()) {
                return Err(NO_MEMORY);
            }
            let allowed = TIME_LIMIT + Duration::from_secs(total as u64 / BYTES_PER_SECOND_MIN);
            if clock.monotonic().saturating_sub(started) > allowed {
                return Err(Failure::Page(StatusCode::REQUEST_TIMEOUT));
            }
            // Most bodies arrive in one piece, which is not copied.
            if first.is_empty() && received.is_empty() {
                first = data;
            } else {
                received.extend_from_slice(&std::mem::take(&mut first));
                received.extend_from_slice(&data);
            }
        }
        Ok(if received.is_empty() { first } else { received.freeze() })
    }
}

/// Reads the rest of the body of a refused request, within limits. A connection whose request was
/// not read to its end is closed. A client that still sends would then not see the response, and
/// its next request would fail.
pub(crate) async fn discard(env: &Env, mut body: Incoming) {
    let read = async {
        let mut len = 0;
        while let Some(Ok(frame)) = body.frame().await {
            len += frame.data_ref().map_or(0, Bytes::len);
            if len > DISCARDED_BYTES_MAX {
                return;
            }
        }
    };
    // After the limit, the connection is closed.
    let _ = env.timeout(DISCARD_LIMIT, read).await;
}

fn decompressed(compressed: &[u8], mut share: BudgetShare, bytes_max: usize) -> Result<(Bytes, BudgetShare)> {
    let mut decoder = MultiGzDecoder::new(compressed);
    let mut out = Vec::new();
    loop {
        if !share.take_large(STEP_BYTES) {
            return Err(NO_MEMORY);
        }
        let read = decoder.by_ref().take(STEP_BYTES as u64).read_to_end(&mut out);
        match read {
            Ok(0) => return Ok((out.into(), share)),
            Ok(_) if out.len() > bytes_max => return Err(TOO_LARGE),
            Ok(_) => {}
            Err(_) => return Err(Failure::Page(StatusCode::INTERNAL_SERVER_ERROR)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn expansion_is_bounded() {
        let budget = Budget::new(8 << 20);
        let read = |data: &[u8], max| {
            decompressed(data, BudgetShare::of(&budget), max).map(|(bytes, _)| bytes.len())
        };
        let compressed = gzip(&vec![0; 1 << 20]);
        assert_eq!(read(&compressed, 2 << 20), Ok(1 << 20));
        assert_eq!(read(&compressed, 1 << 19), Err(TOO_LARGE));
        assert_eq!(read(&gzip(&vec![0; 32 << 20]), 64 << 20), Err(NO_MEMORY));
        assert!(read(b"not gzip", 100).is_err());
        assert_eq!(budget.used(), 0);
    }
}
