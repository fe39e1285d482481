//! Long responses: written by separate threads, so that no request waits for them, and sent while
//! they are written.

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

/// Maximum number of chunks that wait for a client.
const CHUNKS_WAITING: usize = 16;
/// If a client takes no chunk for this long, its response is aborted, because there are few
/// writers.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for the whole response. It keeps a very slow client from blocking a writer.
const RESPONSE_LIMIT: Duration = Duration::from_secs(60);

/// A part of a response.
enum Chunk {
    Text(Bytes),
    End,
}

/// A response that `write` produces on a thread of `writers`.
pub(crate) fn streamed(
    writers: &Pool,
    clock: Arc<dyn Clock>,
    content_type: &'static str,
    write: impl FnOnce(Chunks) + Send + 'static,
) -> Response {
    let (send, receive) = mpsc::channel(CHUNKS_WAITING);
    let (runtime, end) = (Handle::current(), clock.monotonic() + RESPONSE_LIMIT);
    let sender = Arc::new(ChunkSender { send, clock, end, runtime, is_in_time: AtomicBool::new(true) });
    writers.execute(move || {
        let text_sender = sender.clone();
        write(Chunks::new(move |text| text_sender.send_chunk(Chunk::Text(text.into()))));
        sender.send_chunk(Chunk::End);
    });
    let chunks = stream::unfold(Some(receive), async |receive| {
        let mut receive = receive?;
        match receive.recv().await {
            Some(Chunk::Text(text)) => Some((Ok(text), Some(receive))),
            Some(Chunk::End) => None,
            None => Some((Err(io::Error::other("the client reads too slowly")), None)),
        }
    });
    ([(header::CONTENT_TYPE, content_type)], Body::from_stream(chunks)).into_response()
}

/// Sends chunks to a client. The calling thread may block.
struct ChunkSender {
    send: mpsc::Sender<Chunk>,
    clock: Arc<dyn Clock>,
    // The monotonic time by which the response must be complete.
    end: Duration,
    runtime: Handle,
    is_in_time: AtomicBool,
}

impl ChunkSender {
    /// Sends a chunk. Returns whether this chunk and all earlier ones were sent in time. A client
    /// that was too slow gets no more chunks and no end, so that its response is aborted instead of
    /// looking complete.
    fn send_chunk(&self, chunk: Chunk) -> bool {
        if !self.is_in_time.load(Relaxed) {
            return false;
        }
        // A chunk takes about a third of a millisecond to write. Yield, so that a thread that
        // serves clients need not wait for the remaining chunks.
        std::thread::yield_now();
        let is_in_time = self.runtime.block_on(async {
            let limit = STALL_LIMIT.min(self.end.saturating_sub(self.clock.monotonic()));
            tokio::select! {
                biased;
                sent = self.send.send(chunk), if !limit.is_zero() => sent.is_ok(),
                () = self.clock.sleep(limit) => false,
            }
        });
        self.is_in_time.store(is_in_time, Relaxed);
        is_in_time
    }
}

#[cfg(test)]
mod tests {
    use base::metrics::{Jmx, JmxOptions, Reader};
    use base::testing::TestClock;
    use futures_util::StreamExt;

    use super::*;

    /// Writes several megabytes: far more than the queue for a client holds.
    fn write(out: Chunks) {
        let mut jmx = Jmx::new(JmxOptions::default(), out);
        for _ in 0..50_000 {
            jmx.begin("a bean of many", "with a type as long as this");
            jmx.end();
        }
        jmx.finish();
    }

    #[tokio::test]
    async fn a_reader_that_continues_gets_the_whole_page() {
        let clock = Arc::new(TestClock::new());
        let response = streamed(&Pool::new("pages", 1), clock, "text/plain", write);
        let mut chunks = response.into_body().into_data_stream();
        let (mut text, mut count) = (Vec::new(), 0);
        while let Some(chunk) = chunks.next().await {
            text.extend_from_slice(&chunk.unwrap());
            count += 1;
        }
        assert!(text.ends_with(b"]\n}") && text.len() > 4_000_000, "{}", text.len());
        assert!(count > 2 * CHUNKS_WAITING, "{count}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_reader_gets_a_truncated_response() {
        let writers = Pool::new("pages", 1);
        let response = streamed(&writers, Arc::new(TestClock::new()), "text/plain", write);
        // The writer has finished when its thread takes the next job. The paused clock advances
        // while all other tasks are idle.
        writers.run(|| ()).await;
        let chunks: Vec<_> = response.into_body().into_data_stream().collect().await;
        assert_eq!(chunks.len(), CHUNKS_WAITING + 1);
        assert!(chunks.last().unwrap().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_very_slow_reader_does_not_occupy_a_thread() {
        let (writers, clock) = (Pool::new("pages", 1), Arc::new(TestClock::new()));
        let response = streamed(&writers, clock.clone(), "text/plain", write);
        let next = writers.run(|| ());
        let mut chunks = response.into_body().into_data_stream();
        let received = async {
            let mut last = None;
            while let Some(chunk) = chunks.next().await {
                last = Some(chunk);
                clock.sleep(STALL_LIMIT / 2).await;
            }
            last
        };
        let (last, ()) = tokio::join!(received, next);
        assert!(last.unwrap().is_err());
    }
}
