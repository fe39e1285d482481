//! Receives the body of a request, and decompresses it.

use std::io::Read;
use std::sync::Arc;

use base::budget::{Budget, BudgetShare};
use base::env::Env;
use base::pool::Pool;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use hyper::StatusCode;
use hyper::body::Incoming;
use web::body::{self, BodyRefusal};

use crate::reply::{Failure, Result};

/// Step in which decompressed bytes are counted.
const STEP_BYTES: usize = 64 << 10;

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
    pub(crate) async fn read(&self, body: Incoming, is_gzip: bool) -> Result<(Bytes, BudgetShare)> {
        let mut share = BudgetShare::of(&self.budget);
        let received = body::receive(&self.env, body, self.bytes_max, &mut share).await?;
        if !is_gzip {
            return Ok((received, share));
        }
        let bytes_max = self.bytes_max;
        // Even a short body may expand to a long one.
        self.pool.run(move || decompressed(&received, share, bytes_max)).await
    }
}

impl From<BodyRefusal> for Failure {
    fn from(refusal: BodyRefusal) -> Failure {
        match refusal {
            BodyRefusal::TooLarge => TOO_LARGE,
            BodyRefusal::TooSlow => Failure::Page(StatusCode::REQUEST_TIMEOUT),
            BodyRefusal::NoMemory => NO_MEMORY,
            BodyRefusal::Incomplete => Failure::Page(StatusCode::BAD_REQUEST),
        }
    }
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
