//! Sends metrics as lines of Graphite's plaintext protocol over TCP. Paths are those of Hadoop's
//! `GraphiteSink`: `PREFIX.CONTEXT.RECORD.TAG=VALUE.….METRIC VALUE SECONDS`.
//!
//! While there is no connection, a bounded backlog keeps the newest lines, which are sent later
//! with their original timestamps. After a failure the sink waits for a pause, which doubles with
//! each failure, and then reconnects in the next period. A connection that accepts no data is
//! dropped.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Duration;

use base::env::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::push::{Push, Transport};
use crate::record::{RecordHeader, RecordPart, Records, put_number};

/// Approximate size in bytes of one write.
const CHUNK_LEN: usize = 64 << 10;
/// Maximum size in bytes of the lines that wait for a connection.
const BACKLOG_BYTES_MAX: usize = 4 << 20;
/// Connect timeout.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Timeout of one write.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// Timeout for all metrics of one period.
const PUSH_LIMIT: Duration = Duration::from_secs(60);
/// The pauses after a failure: the first and the longest.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The target and the path prefix of a Graphite sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphiteOptions {
    /// Graphite's host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The prefix of paths; may be empty.
    pub prefix: String,
}

/// The sink.
pub(crate) struct GraphiteSink {
    options: GraphiteOptions,
    connection: Option<Box<dyn Stream>>,
    backlog: Backlog,
    // The earliest time of the next connection attempt.
    retry_at: Duration,
    pause: Duration,
}

/// Complete lines that wait for a connection, the oldest first.
#[derive(Default)]
struct Backlog {
    chunks: VecDeque<Vec<u8>>,
    bytes: usize,
    lost_bytes: u64,
}

impl Backlog {
    fn put(&mut self, chunk: Vec<u8>) {
        self.bytes += chunk.len();
        self.chunks.push_back(chunk);
        while self.bytes > BACKLOG_BYTES_MAX {
            let oldest = self.chunks.pop_front().map_or(0, |chunk| chunk.len());
            self.bytes -= oldest;
            self.lost_bytes += oldest as u64;
        }
    }

    fn return_chunk(&mut self, chunk: Vec<u8>) {
        self.bytes += chunk.len();
        self.chunks.push_front(chunk);
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let chunk = self.chunks.pop_front()?;
        self.bytes -= chunk.len();
        Some(chunk)
    }
}

impl GraphiteSink {
    pub(crate) fn new(options: GraphiteOptions) -> GraphiteSink {
        GraphiteSink {
            options,
            connection: None,
            backlog: Backlog::default(),
            retry_at: Duration::ZERO,
            pause: PAUSE_MIN,
        }
    }

    /// Connects if there is no open connection.
    fn connect(&mut self, push: &Push<'_>) -> Result<(), String> {
        if let Some(mut connection) = self.connection.take() {
            if !is_closed(push, &mut *connection) {
                self.connection = Some(connection);
                return Ok(());
            }
            // The connection worked until now: reconnect without a pause.
        } else if push.now() < self.retry_at {
            return Err("not connected".to_owned());
        }
        let GraphiteOptions { host, port, .. } = &self.options;
        let connected = push.wait(CONNECT_LIMIT, push.env().net.connect(host, *port));
        match connected {
            Some(Ok(connection)) => {
                self.connection = Some(connection);
                Ok(())
            }
            Some(Err(error)) => Err(self.failed(push, &error.to_string())),
            None => Err(self.failed(push, "connection timed out")),
        }
    }

    /// Records that there is no connection; returns the error message.
    fn failed(&mut self, push: &Push<'_>, why: &str) -> String {
        self.connection = None;
        self.retry_at = push.now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        let GraphiteOptions { host, port, .. } = &self.options;
        match self.backlog.lost_bytes {
            0 => format!("{host}:{port}: {why}"),
            lost => format!(
                "{host}:{port}: {why}; {lost} bytes of lines were dropped because the backlog was full"
            ),
        }
    }

    /// Sends lines over the open connection.
    fn send(&mut self, push: &Push<'_>, end: Duration, chunk: &[u8]) -> Result<(), String> {
        let Some(connection) = &mut self.connection else { return Err("not connected".to_owned()) };
        let limit = STALL_LIMIT.min(end.saturating_sub(push.now()));
        // A thread that serves clients should not wait until all chunks are sent.
        std::thread::yield_now();
        match push.wait(limit, connection.write_all(chunk)) {
            Some(Ok(())) => {
                self.pause = PAUSE_MIN;
                Ok(())
            }
            Some(Err(error)) => Err(self.failed(push, &error.to_string())),
            None => Err(self.failed(push, "write timed out")),
        }
    }

    fn send_backlog(&mut self, push: &Push<'_>, end: Duration) -> Result<(), String> {
        while let Some(chunk) = self.backlog.take() {
            if let Err(error) = self.send(push, end, &chunk) {
                self.backlog.return_chunk(chunk);
                return Err(error);
            }
        }
        self.backlog.lost_bytes = 0;
        Ok(())
    }
}

/// Whether the server has closed the connection. It never sends anything otherwise.
fn is_closed(push: &Push<'_>, connection: &mut dyn Stream) -> bool {
    let mut buffer = [0; 64];
    match push.wait(Duration::ZERO, connection.read(&mut buffer)) {
        None => false,
        Some(read) => !read.is_ok_and(|read| read > 0),
    }
}

impl Transport for GraphiteSink {
    fn push(&mut self, push: &Push<'_>) -> Result<(), String> {
        let end = push.now() + PUSH_LIMIT;
        let ready = self.connect(push).and_then(|()| self.send_backlog(push, end));
        let text = Vec::with_capacity(CHUNK_LEN + 1024);
        let mut lines = Lines { sink: self, push, end, path: Vec::new(), text, failed: ready.err() };
        push.records(&mut lines);
        lines.flush();
        match lines.failed {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }
}

/// Sends metrics over the connection, or adds them to the backlog.
struct Lines<'a> {
    sink: &'a mut GraphiteSink,
    push: &'a Push<'a>,
    end: Duration,
    path: Vec<u8>,
    text: Vec<u8>,
    failed: Option<String>,
}

impl Lines<'_> {
    fn flush(&mut self) {
        if self.text.is_empty() {
            return;
        }
        if self.failed.is_none() {
            self.failed = self.sink.send(self.push, self.end, &self.text).err();
        }
        if self.failed.is_some() {
            self.sink.backlog.put(self.text.clone());
        }
        self.text.clear();
    }

    /// Sets the path of a record, including the trailing dot.
    fn set_path(&mut self, head: &RecordHeader) {
        self.path.clear();
        let prefix = &self.sink.options.prefix;
        if !prefix.is_empty() {
            put_plain(&mut self.path, prefix);
            self.path.push(b'.');
        }
        put_plain(&mut self.path, &head.context);
        self.path.push(b'.');
        put_plain(&mut self.path, &head.record);
        self.path.push(b'.');
        for (name, text) in &head.tags {
            put_plain(&mut self.path, name);
            self.path.push(b'=');
            put_plain(&mut self.path, text);
            self.path.push(b'.');
        }
    }
}

impl Records for Lines<'_> {
    fn put(&mut self, part: RecordPart<'_>) {
        if part.is_first {
            self.set_path(part.head);
        }
        let seconds = self.push.at_ms / 1000;
        for (name, _, value) in part.metrics.iter() {
            self.text.extend_from_slice(&self.path);
            // Hadoop replaces blanks by dots here.
            name.split(' ').enumerate().for_each(|(at, word)| {
                if at > 0 {
                    self.text.push(b'.');
                }
                put_plain(&mut self.text, word);
            });
            self.text.push(b' ');
            put_number(&mut self.text, value);
            let written: io::Result<()> = writeln!(self.text, " {seconds}");
            written.expect("writing to memory cannot fail");
            if self.text.len() >= CHUNK_LEN {
                self.flush();
            }
        }
    }
}

/// Appends text, replacing characters that would end a path.
fn put_plain(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().map(|byte| if byte <= b' ' { b'_' } else { byte }));
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Arc;

    use base::env::{Env, Listener};
    use base::pool::Pool;
    use base::testing::env;
    use tokio::io::{AsyncBufReadExt, BufReader};

    use super::*;
    use crate::testing::{Testing, registry, test_push_in};

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }

    /// Pushes once, on a thread that may block.
    async fn push(
        env: &Env,
        sink: GraphiteSink,
        registry: &Arc<Testing>,
        at_ms: u64,
    ) -> (GraphiteSink, Result<(), String>) {
        let (env, registry, runtime) = (env.clone(), registry.clone(), tokio::runtime::Handle::current());
        let mut sink = sink;
        let job = move || {
            // The paused clock belongs to the runtime.
            let _entered = runtime.enter();
            let pushed = sink.push(&test_push_in(&registry, at_ms, &env, Some(&runtime)));
            (sink, pushed)
        };
        Pool::new("test", 1).run(job).await
    }

    async fn accept(listener: &dyn Listener) -> BufReader<Box<dyn Stream>> {
        BufReader::new((listener.accept().await.unwrap().open)().unwrap())
    }

    async fn line(from: &mut BufReader<Box<dyn Stream>>) -> String {
        let mut line = String::new();
        from.read_line(&mut line).await.unwrap();
        line
    }

    fn sink(port: u16, prefix: &str) -> GraphiteSink {
        GraphiteSink::new(GraphiteOptions { host: "graphite".into(), port, prefix: prefix.into() })
    }

    const PATH: &str = "regionserver.Server.serverName=h,1,2.Context=regionserver.Hostname=host";

    #[tokio::test]
    async fn lines_are_hadoops() {
        let (env, registry) = (env(1), Arc::new(registry()));
        let listener = env.net.listen(address(0)).await.unwrap();
        let sink = sink(listener.local_addr().port(), "my prefix");
        registry.counted.calls.add(3);
        let (sink, pushed) = push(&env, sink, &registry, 17_999).await;
        pushed.unwrap();
        let mut peer = accept(&*listener).await;
        assert_eq!(line(&mut peer).await, format!("my_prefix.{PATH}.load -1.5 17\n"));
        assert_eq!(line(&mut peer).await, format!("my_prefix.{PATH}.calls 3 17\n"));
        let (_, pushed) = push(&env, sink, &registry, 27_000).await;
        pushed.unwrap();
        assert!(line(&mut peer).await.ends_with("load -1.5 27\n"), "over the same connection");
    }

    #[tokio::test(start_paused = true)]
    async fn unsent_records_are_sent_after_a_reconnect() {
        let (env, registry) = (env(1), Arc::new(registry()));
        let listener = env.net.listen(address(0)).await.unwrap();
        let port = listener.local_addr().port();
        let (sink, pushed) = push(&env, sink(port, ""), &registry, 1_000).await;
        pushed.unwrap();
        drop((accept(&*listener).await, listener));
        // The server has closed: this is noticed before any line is lost.
        let (sink, pushed) = push(&env, sink, &registry, 2_000).await;
        assert!(pushed.unwrap_err().starts_with(&format!("graphite:{port}: ")));
        let (sink, pushed) = push(&env, sink, &registry, 3_000).await;
        assert_eq!(pushed.unwrap_err(), "not connected", "no attempt before the pause has ended");
        let listener = env.net.listen(address(port)).await.unwrap();
        env.clock.sleep(PAUSE_MIN).await;
        let (_, pushed) = push(&env, sink, &registry, 4_000).await;
        pushed.unwrap();
        let mut peer = accept(&*listener).await;
        for seconds in [2, 3, 4] {
            assert_eq!(line(&mut peer).await, format!("{PATH}.load -1.5 {seconds}\n"));
            assert_eq!(line(&mut peer).await, format!("{PATH}.calls 0 {seconds}\n"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_is_disconnected() {
        let (env, registry) = (env(1), Arc::new(registry()));
        registry.add_many(20_000);
        let listener = env.net.listen(address(0)).await.unwrap();
        let (mut sink, pushed) = push(&env, sink(listener.local_addr().port(), ""), &registry, 1_000).await;
        assert!(pushed.unwrap_err().ends_with("write timed out"));
        assert!(sink.connection.is_none() && sink.backlog.bytes > 1 << 20);
        for at in 0..5 {
            (sink, _) = push(&env, sink, &registry, at).await;
        }
        assert!(sink.backlog.bytes <= BACKLOG_BYTES_MAX && sink.backlog.lost_bytes > 0);
    }
}
