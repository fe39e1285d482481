//! Sends metrics as datagrams to StatsD, with the names of Hadoop's `StatsDSink`:
//! `[HOST.]SERVICE.CONTEXT.RECORD.METRIC:VALUE|TYPE`.
//!
//! Gauges are sent as `g`, and counters as `c` with their total value, as in Hadoop. A datagram
//! contains as many lines as fit into a packet. Packets lost in the network are not resent.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base::metrics::Number;

use crate::push::{Push, Transport};
use crate::record::{HOSTNAME, MetricKind, RecordHeader, RecordPart, Records, put_number};

/// Maximum size in bytes of a datagram: an Ethernet packet minus the headers of protocols,
/// including those of tunnels.
const DATAGRAM_LEN_MAX: usize = 1432;
/// Number of datagrams between two pauses, so that they do not arrive faster than they are
/// processed.
const BURST: u32 = 32;
const PAUSE: Duration = Duration::from_millis(1);
/// How long a resolved address is used: no error reports that datagrams go to a host that is gone.
const ADDRESS_LIFE_MS: u64 = 60_000;
/// The tag by which Hadoop distinguishes processes of one service.
const PROCESS_NAME: &str = "ProcessName";

/// A datagram socket.
pub trait Datagrams: Send {
    /// Sends one datagram.
    ///
    /// # Errors
    /// The operating system's. It may belong to an earlier datagram, for example if the port was
    /// closed.
    fn send(&mut self, datagram: &[u8]) -> io::Result<()>;
}

/// Creates datagram sockets.
pub trait Udp: Send + Sync + 'static {
    /// Opens a socket to `host`, whose address is resolved. Called on a thread that may block.
    ///
    /// # Errors
    /// The operating system's.
    fn connect(&self, host: &str, port: u16) -> io::Result<Box<dyn Datagrams>>;
}

/// The target and the name format of a StatsD sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatsdOptions {
    /// StatsD's host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The service part of names; `None` means the role's name.
    pub service: Option<String>,
    /// Whether the host name is omitted.
    pub skips_hostname: bool,
    /// The host name if a record has none.
    pub hostname: Option<String>,
}

/// The sink.
pub(crate) struct StatsdSink {
    options: StatsdOptions,
    udp: Arc<dyn Udp>,
    // The socket of the last period, if it had no error, and the time at which it was created.
    socket: Option<(Box<dyn Datagrams>, u64)>,
}

impl StatsdSink {
    pub(crate) fn new(options: StatsdOptions, udp: Arc<dyn Udp>) -> StatsdSink {
        StatsdSink { options, udp, socket: None }
    }
}

impl Transport for StatsdSink {
    fn push(&mut self, push: &Push<'_>) -> Result<(), String> {
        let StatsdOptions { host, port, .. } = &self.options;
        let at = |error: io::Error| format!("{host}:{port}: {error}");
        let is_young = |(_, created_ms): &(_, u64)| push.at_ms.abs_diff(*created_ms) < ADDRESS_LIFE_MS;
        let (mut socket, created_ms) = match self.socket.take().filter(is_young) {
            Some(socket) => socket,
            None => (self.udp.connect(host, *port).map_err(at)?, push.at_ms),
        };
        let mut lines = Lines {
            options: &self.options,
            push,
            prefix: String::new(),
            line: Vec::new(),
            datagram: Vec::with_capacity(DATAGRAM_LEN_MAX),
            sent: 0,
            socket: &mut *socket,
            failed: None,
        };
        push.records(&mut lines);
        lines.send();
        match lines.failed {
            None => {
                self.socket = Some((socket, created_ms));
                Ok(())
            }
            Some(error) => Err(at(error)),
        }
    }
}

/// Packs metrics into datagrams.
struct Lines<'a> {
    options: &'a StatsdOptions,
    push: &'a Push<'a>,
    prefix: String,
    line: Vec<u8>,
    datagram: Vec<u8>,
    sent: u32,
    socket: &'a mut dyn Datagrams,
    // The first error. The loss of one datagram does not prevent sending the others.
    failed: Option<io::Error>,
}

impl Lines<'_> {
    fn send(&mut self) {
        if self.datagram.is_empty() {
            return;
        }
        if let Err(error) = self.socket.send(&self.datagram) {
            self.failed.get_or_insert(error);
        }
        self.datagram.clear();
        self.sent += 1;
        if self.sent.is_multiple_of(BURST) {
            self.push.pause(PAUSE);
        }
    }

    /// Appends the line to the current datagram.
    fn put_line(&mut self) {
        if !self.datagram.is_empty() {
            if self.datagram.len() + 1 + self.line.len() > DATAGRAM_LEN_MAX {
                self.send();
            } else {
                self.datagram.push(b'\n');
            }
        }
        self.datagram.extend_from_slice(&self.line);
    }

    fn metric(&mut self, name: &str, behaviour: MetricKind, value: Number) {
        let kind = match behaviour {
            MetricKind::Counter => "|c",
            MetricKind::Gauge => "|g",
        };
        // A signed value would change a gauge instead of setting it. So for a negative value the
        // gauge is set to 0 first.
        let is_negative = match value {
            Number::Int(value) => value < 0,
            Number::Float(value) => value < 0.0,
        };
        if is_negative && behaviour == MetricKind::Gauge {
            self.begin_line(name);
            self.line.extend_from_slice(b"0|g\n");
        } else {
            self.line.clear();
        }
        self.put_name(name);
        put_number(&mut self.line, value);
        self.line.extend_from_slice(kind.as_bytes());
        self.put_line();
    }

    fn begin_line(&mut self, name: &str) {
        self.line.clear();
        self.put_name(name);
    }

    fn put_name(&mut self, name: &str) {
        self.line.extend_from_slice(self.prefix.as_bytes());
        put_plain(&mut self.line, name);
        self.line.push(b':');
    }

    /// Sets the name prefix of a record's metrics.
    fn set_prefix(&mut self, head: &RecordHeader) {
        let mut prefix = Vec::new();
        let host = head.tag(HOSTNAME).filter(|host| !host.is_empty());
        let host = host.or(self.options.hostname.as_deref());
        if let Some(host) = host.filter(|_| !self.options.skips_hostname) {
            put_plain(&mut prefix, &short_name(host));
            prefix.push(b'.');
        }
        // The process's own name overrides the configured one, as in Hadoop.
        let service = head.tag(PROCESS_NAME).or(self.options.service.as_deref()).unwrap_or(self.push.role());
        put_plain(&mut prefix, service);
        prefix.push(b'.');
        put_plain(&mut prefix, &head.context);
        prefix.push(b'.');
        put_plain(&mut prefix, &head.record.replace('.', "-"));
        prefix.push(b'.');
        self.prefix = String::from_utf8_lossy(&prefix).into_owned();
    }
}

impl Records for Lines<'_> {
    fn put(&mut self, part: RecordPart<'_>) {
        if part.is_first {
            self.set_prefix(part.head);
        }
        part.metrics.iter().for_each(|(name, behaviour, value)| self.metric(name, behaviour, value));
    }
}

/// A host's name without its domain. An IP address is kept completely; its dots and colons are
/// replaced, because they would split the name.
fn short_name(host: &str) -> String {
    match host.parse::<IpAddr>() {
        Ok(_) => host.replace(['.', ':'], "-"),
        Err(_) => host.split('.').next().unwrap_or(host).to_owned(),
    }
}

/// Appends text, replacing characters that have a meaning in a line.
fn put_plain(out: &mut Vec<u8>, text: &str) {
    let plain = |byte: u8| match byte {
        b':' | b'|' | b'@' | b'#' | 0..=b' ' => b'_',
        byte => byte,
    };
    out.extend(text.bytes().map(plain));
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::testing::{Testing, registry, test_push};

    /// Records the datagrams that it receives.
    #[derive(Clone, Default)]
    struct Net(Arc<Mutex<State>>);

    #[derive(Default)]
    struct State {
        datagrams: Vec<Vec<u8>>,
        sockets: u32,
        fails: bool,
    }

    impl Udp for Net {
        fn connect(&self, host: &str, _: u16) -> io::Result<Box<dyn Datagrams>> {
            if host == "absent" {
                return Err(io::ErrorKind::NotFound.into());
            }
            self.0.lock().unwrap().sockets += 1;
            Ok(Box::new(self.clone()))
        }
    }

    impl Datagrams for Net {
        fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
            let mut state = self.0.lock().unwrap();
            state.datagrams.push(datagram.to_vec());
            if state.fails { Err(io::ErrorKind::ConnectionRefused.into()) } else { Ok(()) }
        }
    }

    fn options() -> StatsdOptions {
        StatsdOptions {
            host: "statsd".into(),
            port: 8125,
            service: Some("hbase".into()),
            skips_hostname: false,
            hostname: None,
        }
    }

    async fn lines_of(options: StatsdOptions, registry: &Testing) -> Vec<String> {
        let net = Net::default();
        let mut sink = StatsdSink::new(options, Arc::new(net.clone()));
        sink.push(&test_push(registry, 1)).unwrap();
        let datagrams = std::mem::take(&mut net.0.lock().unwrap().datagrams);
        let text = |datagram: Vec<u8>| String::from_utf8(datagram).unwrap();
        datagrams.into_iter().flat_map(|of| text(of).lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    #[tokio::test]
    async fn lines_are_hadoops() {
        let registry = registry();
        registry.counted.calls.add(3);
        let expected = |head: &str| {
            ["load:0|g", "load:-1.5|g", "calls:3|c"].map(|line| format!("{head}.regionserver.Server.{line}"))
        };
        assert_eq!(lines_of(options(), &registry).await, expected("host.hbase"));
        registry.counted.calls.add(1);
        let changed = lines_of(options(), &registry).await;
        assert_eq!(changed[2], "host.hbase.regionserver.Server.calls:4|c", "the total, as Hadoop sends it");
        let without = StatsdOptions { skips_hostname: true, service: None, ..options() };
        assert_eq!(lines_of(without, &registry).await[0], "RegionServer.regionserver.Server.load:0|g");
    }

    #[test]
    fn names_are_escaped_for_statsd() {
        let mut out = Vec::new();
        put_plain(&mut out, "master:store.a b|c@d#e\n");
        assert_eq!(out, b"master_store.a_b_c_d_e_");
        assert_eq!(short_name("rs1.example.org"), "rs1");
        assert_eq!(short_name("10.0.0.7"), "10-0-0-7");
    }

    #[tokio::test]
    async fn a_datagram_fits_into_a_packet() {
        let registry = registry();
        registry.add_many(2000);
        let net = Net::default();
        let mut sink = StatsdSink::new(options(), Arc::new(net.clone()));
        sink.push(&test_push(&registry, 1)).unwrap();
        let state = net.0.lock().unwrap();
        let lens: Vec<_> = state.datagrams.iter().map(Vec::len).collect();
        assert!(lens.len() > 40 && lens.iter().all(|len| *len <= DATAGRAM_LEN_MAX), "{lens:?}");
        let lines: usize = state.datagrams.iter().map(|of| of.split(|byte| *byte == b'\n').count()).sum();
        assert_eq!(lines, 2003);
    }

    #[tokio::test]
    async fn a_missing_server_costs_only_an_error() {
        let (registry, net) = (registry(), Net::default());
        registry.add_many(2000);
        net.0.lock().unwrap().fails = true;
        let mut sink = StatsdSink::new(options(), Arc::new(net.clone()));
        let error = sink.push(&test_push(&registry, 1)).unwrap_err();
        assert!(error.starts_with("statsd:8125: "), "{error}");
        assert!(net.0.lock().unwrap().datagrams.len() > 40, "the other datagrams are sent anyway");
        net.0.lock().unwrap().fails = false;
        sink.push(&test_push(&registry, 2)).unwrap();
        sink.push(&test_push(&registry, 3)).unwrap();
        assert_eq!(net.0.lock().unwrap().sockets, 2, "the address is resolved again after an error");
        sink.push(&test_push(&registry, 2 + ADDRESS_LIFE_MS)).unwrap();
        assert_eq!(net.0.lock().unwrap().sockets, 3, "and after a while");
        let mut absent = StatsdSink::new(StatsdOptions { host: "absent".into(), ..options() }, Arc::new(net));
        assert!(absent.push(&test_push(&registry, 1)).is_err());
    }
}
