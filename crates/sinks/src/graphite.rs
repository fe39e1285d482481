//! Metrics as lines of Graphite's plain protocol over TCP, with paths as Hadoop's `GraphiteSink` makes them:
//! `PREFIX.CONTEXT.RECORD.TAG=VALUE.….METRIC VALUE SECONDS`.
//!
//! While nobody is there the newest lines are kept, as many as a bound allows, and sent when somebody is: they tell
//! their time. A connection is tried again at a period after a pause that doubles; one that takes nothing is given up.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Duration;

use base::env::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::push::{Look, Medium};
use crate::record::{Head, Part, Records, put_number};

/// Bytes that are sent at once, about.
const CHUNK_LEN: usize = 64 << 10;
/// Bytes of lines that wait for a connection.
const BACKLOG_BYTES_MAX: usize = 4 << 20;
/// How long a connection may take to come about.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long some lines may take.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// How long all of a look may.
const LOOK_LIMIT: Duration = Duration::from_secs(60);
/// The pause after the first failure, and the longest.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// What is to be sent where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphiteOptions {
    /// Where Graphite is.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What paths begin with; may be empty.
    pub prefix: String,
}

/// The sink.
pub(crate) struct GraphiteSink {
    options: GraphiteOptions,
    connection: Option<Box<dyn Stream>>,
    backlog: Backlog,
    // No connection is tried before.
    retry_at: Duration,
    pause: Duration,
}

/// Whole lines that wait, the oldest first.
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

    fn put_back(&mut self, chunk: Vec<u8>) {
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

    /// Whether there is a connection now.
    fn connect(&mut self, look: &Look<'_>) -> Result<(), String> {
        if let Some(mut connection) = self.connection.take() {
            if !is_closed(look, &mut *connection) {
                self.connection = Some(connection);
                return Ok(());
            }
            // It was there a moment ago: no pause.
        } else if look.now() < self.retry_at {
            return Err("not connected".to_owned());
        }
        let GraphiteOptions { host, port, .. } = &self.options;
        let connected = look.wait(CONNECT_LIMIT, look.env().net.connect(host, *port));
        match connected {
            Some(Ok(connection)) => {
                self.connection = Some(connection);
                Ok(())
            }
            Some(Err(error)) => Err(self.failed(look, &error.to_string())),
            None => Err(self.failed(look, "no connection in time")),
        }
    }

    /// Notes that there is no connection; says why.
    fn failed(&mut self, look: &Look<'_>, why: &str) -> String {
        self.connection = None;
        self.retry_at = look.now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        let GraphiteOptions { host, port, .. } = &self.options;
        match self.backlog.lost_bytes {
            0 => format!("{host}:{port}: {why}"),
            lost => format!("{host}:{port}: {why}; {lost} bytes of lines found no room meanwhile"),
        }
    }

    /// Sends lines over the connection there is.
    fn send(&mut self, look: &Look<'_>, end: Duration, chunk: &[u8]) -> Result<(), String> {
        let Some(connection) = &mut self.connection else { return Err("not connected".to_owned()) };
        let limit = STALL_LIMIT.min(end.saturating_sub(look.now()));
        // A thread that serves clients should not wait for all that are left.
        std::thread::yield_now();
        match look.wait(limit, connection.write_all(chunk)) {
            Some(Ok(())) => {
                self.pause = PAUSE_MIN;
                Ok(())
            }
            Some(Err(error)) => Err(self.failed(look, &error.to_string())),
            None => Err(self.failed(look, "it takes too little")),
        }
    }

    fn send_backlog(&mut self, look: &Look<'_>, end: Duration) -> Result<(), String> {
        while let Some(chunk) = self.backlog.take() {
            if let Err(error) = self.send(look, end, &chunk) {
                self.backlog.put_back(chunk);
                return Err(error);
            }
        }
        self.backlog.lost_bytes = 0;
        Ok(())
    }
}

/// Whether the other side has closed: it says nothing otherwise.
fn is_closed(look: &Look<'_>, connection: &mut dyn Stream) -> bool {
    let mut said = [0; 64];
    match look.wait(Duration::ZERO, connection.read(&mut said)) {
        None => false,
        Some(read) => !read.is_ok_and(|read| read > 0),
    }
}

impl Medium for GraphiteSink {
    fn push(&mut self, look: &Look<'_>) -> Result<(), String> {
        let end = look.now() + LOOK_LIMIT;
        let ready = self.connect(look).and_then(|()| self.send_backlog(look, end));
        let text = Vec::with_capacity(CHUNK_LEN + 1024);
        let mut lines = Lines { sink: self, look, end, path: Vec::new(), text, failed: ready.err() };
        look.records(&mut lines);
        lines.hand_on();
        match lines.failed {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }
}

/// Metrics on their way into the connection, or what waits for one.
struct Lines<'a> {
    sink: &'a mut GraphiteSink,
    look: &'a Look<'a>,
    end: Duration,
    path: Vec<u8>,
    text: Vec<u8>,
    failed: Option<String>,
}

impl Lines<'_> {
    fn hand_on(&mut self) {
        if self.text.is_empty() {
            return;
        }
        if self.failed.is_none() {
            self.failed = self.sink.send(self.look, self.end, &self.text).err();
        }
        if self.failed.is_some() {
            self.sink.backlog.put(self.text.clone());
        }
        self.text.clear();
    }

    /// The path of a record, with the dot at its end.
    fn set_path(&mut self, head: &Head) {
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
    fn put(&mut self, part: Part<'_>) {
        if part.is_first {
            self.set_path(part.head);
        }
        let seconds = self.look.at_ms / 1000;
        for (name, _, value) in part.metrics.iter() {
            self.text.extend_from_slice(&self.path);
            // Hadoop makes dots of blanks here.
            name.split(' ').enumerate().for_each(|(at, word)| {
                if at > 0 {
                    self.text.push(b'.');
                }
                put_plain(&mut self.text, word);
            });
            self.text.push(b' ');
            put_number(&mut self.text, value);
            let written: io::Result<()> = writeln!(self.text, " {seconds}");
            written.expect("memory takes what is written");
            if self.text.len() >= CHUNK_LEN {
                self.hand_on();
            }
        }
    }
}

/// Text without what would end a path.
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
    use crate::testing::{Testing, look_in, registry};

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }

    /// Pushes at a time from a thread that may wait.
    async fn push(
        env: &Env,
        sink: GraphiteSink,
        registry: &Arc<Testing>,
        at_ms: u64,
    ) -> (GraphiteSink, Result<(), String>) {
        let (env, registry, runtime) = (env.clone(), registry.clone(), tokio::runtime::Handle::current());
        let mut sink = sink;
        let job = move || {
            // The paused clock is the runtime's.
            let _entered = runtime.enter();
            let pushed = sink.push(&look_in(&registry, at_ms, &env, Some(&runtime)));
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
    async fn what_was_not_taken_is_sent_when_somebody_is_there_again() {
        let (env, registry) = (env(1), Arc::new(registry()));
        let listener = env.net.listen(address(0)).await.unwrap();
        let port = listener.local_addr().port();
        let (sink, pushed) = push(&env, sink(port, ""), &registry, 1_000).await;
        pushed.unwrap();
        drop((accept(&*listener).await, listener));
        // The peer has gone: noticed before anything is lost.
        let (sink, pushed) = push(&env, sink, &registry, 2_000).await;
        assert!(pushed.unwrap_err().starts_with(&format!("graphite:{port}: ")));
        let (sink, pushed) = push(&env, sink, &registry, 3_000).await;
        assert_eq!(pushed.unwrap_err(), "not connected", "not tried before the pause is over");
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
    async fn a_peer_that_takes_nothing_is_given_up() {
        let (env, registry) = (env(1), Arc::new(registry()));
        registry.add_many(20_000);
        let listener = env.net.listen(address(0)).await.unwrap();
        let (mut sink, pushed) = push(&env, sink(listener.local_addr().port(), ""), &registry, 1_000).await;
        assert!(pushed.unwrap_err().ends_with("it takes too little"));
        assert!(sink.connection.is_none() && sink.backlog.bytes > 1 << 20);
        for at in 0..5 {
            (sink, _) = push(&env, sink, &registry, at).await;
        }
        assert!(sink.backlog.bytes <= BACKLOG_BYTES_MAX && sink.backlog.lost_bytes > 0);
    }
}
