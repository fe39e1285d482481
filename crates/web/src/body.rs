//! Receives the bodies of requests within limits of size, memory and time.

use std::time::Duration;

use base::budget::BudgetShare;
use base::env::Env;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

/// If a client sends nothing for this long, the request fails.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for a body, in addition to the time that its bytes take at [`BYTES_PER_SECOND_MIN`].
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// The slowest accepted transfer of a long body.
const BYTES_PER_SECOND_MIN: u64 = 64 << 10;
/// Maximum bytes of a refused body that are read.
const DISCARDED_BYTES_MAX: usize = 16 << 20;
/// Time limit for reading a refused body.
const DISCARD_LIMIT: Duration = Duration::from_secs(2);

/// Why a body is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyRefusal {
    /// It is larger than allowed.
    TooLarge,
    /// The client sends too slowly.
    TooSlow,
    /// There is no memory for it now.
    NoMemory,
    /// The client aborted it.
    Incomplete,
}

/// Receives a body of at most `bytes_max` bytes, whose memory is taken from `memory`.
///
/// # Errors
/// [`BodyRefusal`], after the rest of the body was [discarded](discard).
pub async fn receive(
    env: &Env,
    mut body: Incoming,
    bytes_max: usize,
    memory: &mut BudgetShare,
) -> Result<Bytes, BodyRefusal> {
    let received = match body.size_hint().lower() > bytes_max as u64 {
        true => Err(BodyRefusal::TooLarge),
        false => collect(env, &mut body, bytes_max, memory).await,
    };
    if received.is_err() {
        discard(env, body).await;
    }
    received
}

async fn collect(
    env: &Env,
    body: &mut Incoming,
    bytes_max: usize,
    memory: &mut BudgetShare,
) -> Result<Bytes, BodyRefusal> {
    let started = env.clock.monotonic();
    let (mut first, mut received) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = env.timeout(STALL_LIMIT, body.frame()).await.ok_or(BodyRefusal::TooSlow)? {
        let Ok(data) = frame.map_err(|_| BodyRefusal::Incomplete)?.into_data() else { continue };
        let total = received.len() + first.len() + data.len();
        if total > bytes_max {
            return Err(BodyRefusal::TooLarge);
        }
        if !memory.take_large(data.len()) {
            return Err(BodyRefusal::NoMemory);
        }
        let allowed = TIME_LIMIT + Duration::from_secs(total as u64 / BYTES_PER_SECOND_MIN);
        if env.clock.monotonic().saturating_sub(started) > allowed {
            return Err(BodyRefusal::TooSlow);
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

/// Reads the rest of the body of a refused request, within limits. A connection whose request was
/// not read to its end is closed. A client that still sends would then not see the response, and
/// its next request would fail.
pub async fn discard(env: &Env, mut body: Incoming) {
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
