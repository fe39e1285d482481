//! Long answers: written on a thread of their own, so that no request of a client waits for them, and sent while they are written.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use base::env::Clock;
use base::metrics::Chunks;
use base::pool::Pool;
use bytes::Bytes;
use futures_util::stream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// Pieces that wait for a client at most.
const PIECES_WAITING: usize = 16;
/// A client that takes no piece for so long has its answer broken off: there are few threads that write.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// The same for the answer as a whole, so that nobody keeps a thread by taking very little.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// What is on its way to a client.
enum Piece {
    Text(Bytes),
    End,
}

/// An answer that `write` makes, on a thread of `writers`.
pub(crate) fn streamed(
    writers: &Pool,
    clock: Arc<dyn Clock>,
    content_type: &'static str,
    write: impl FnOnce(Chunks) + Send + 'static,
) -> Response {
    let (send, receive) = mpsc::channel(PIECES_WAITING);
    let (runtime, end) = (Handle::current(), clock.monotonic() + ANSWER_LIMIT);
    let to_client = Arc::new(ToClient { send, clock, end, runtime, is_in_time: AtomicBool::new(true) });
    writers.execute(move || {
        let of_text = to_client.clone();
        write(Chunks::new(move |text| of_text.put(Piece::Text(text.into()))));
        to_client.put(Piece::End);
    });
    let pieces = stream::unfold(Some(receive), async |receive| {
        let mut receive = receive?;
        match receive.recv().await {
            Some(Piece::Text(text)) => Some((Ok(text), Some(receive))),
            Some(Piece::End) => None,
            None => Some((Err(io::Error::other("the client took too little")), None)),
        }
    });
    ([(header::CONTENT_TYPE, content_type)], Body::from_stream(pieces)).into_response()
}

/// Where pieces go, for a thread that may wait.
struct ToClient {
    send: mpsc::Sender<Piece>,
    clock: Arc<dyn Clock>,
    // Of the time for the answer, by the monotonic clock.
    end: Duration,
    runtime: Handle,
    is_in_time: AtomicBool,
}

impl ToClient {
    /// Whether the piece found room in time, as all before it. A client that was too slow gets nothing more, and no end, so that its
    /// answer is broken off instead of looking whole.
    fn put(&self, piece: Piece) -> bool {
        if !self.is_in_time.load(Relaxed) {
            return false;
        }
        // A piece is a third of a millisecond's work. A thread that serves clients should not wait for all that are left.
        std::thread::yield_now();
        let is_in_time = self.runtime.block_on(async {
            let limit = STALL_LIMIT.min(self.end.saturating_sub(self.clock.monotonic()));
            tokio::select! {
                biased;
                sent = self.send.send(piece), if !limit.is_zero() => sent.is_ok(),
                () = self.clock.sleep(limit) => false,
            }
        });
        self.is_in_time.store(is_in_time, Relaxed);
        is_in_time
    }
}

#[cfg(test)]
mod tests {
    use base::metrics::{Jmx, JmxOptions, Show};
    use base::testing::TestClock;
    use futures_util::StreamExt;

    use super::*;

    /// Writes some megabytes: far more than waits for a client.
    fn write(out: Chunks) {
        let mut jmx = Jmx::new(JmxOptions::default(), out);
        for _ in 0..50_000 {
            jmx.begin("a bean of many", "with a type as long as this");
            jmx.end();
        }
        jmx.finish();
    }

    #[tokio::test]
    async fn who_reads_on_gets_all() {
        let clock = Arc::new(TestClock::new());
        let answer = streamed(&Pool::new("pages", 1), clock, "text/plain", write);
        let mut pieces = answer.into_body().into_data_stream();
        let (mut text, mut count) = (Vec::new(), 0);
        while let Some(piece) = pieces.next().await {
            text.extend_from_slice(&piece.unwrap());
            count += 1;
        }
        assert!(text.ends_with(b"]\n}") && text.len() > 4_000_000, "{}", text.len());
        assert!(count > 2 * PIECES_WAITING, "{count}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_stalls_is_told_that_it_is_not_all() {
        let writers = Pool::new("pages", 1);
        let answer = streamed(&writers, Arc::new(TestClock::new()), "text/plain", write);
        // The writer is at its end when its thread takes the next job. Time passes as nobody else has anything to do.
        writers.run(|| ()).await;
        let pieces: Vec<_> = answer.into_body().into_data_stream().collect().await;
        assert_eq!(pieces.len(), PIECES_WAITING + 1);
        assert!(pieces.last().unwrap().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_very_little_does_not_keep_a_thread() {
        let (writers, clock) = (Pool::new("pages", 1), Arc::new(TestClock::new()));
        let answer = streamed(&writers, clock.clone(), "text/plain", write);
        let next = writers.run(|| ());
        let mut pieces = answer.into_body().into_data_stream();
        let taken = async {
            let mut last = None;
            while let Some(piece) = pieces.next().await {
                last = Some(piece);
                clock.sleep(STALL_LIMIT / 2).await;
            }
            last
        };
        let (last, ()) = tokio::join!(taken, next);
        assert!(last.unwrap().is_err());
    }
}
