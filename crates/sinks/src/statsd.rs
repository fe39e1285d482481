//! Metrics as datagrams to StatsD, named as Hadoop's `StatsDSink` names them:
//! `[HOST.]SERVICE.CONTEXT.RECORD.METRIC:VALUE|TYPE`.
//!
//! Gauges are sent as `g`, and counters as `c` with all that was counted so far, which is what Hadoop sends. A
//! datagram has as many lines as a packet takes; what the network loses is lost.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base::metrics::Number;

use crate::push::{Look, Medium};
use crate::record::{Behaviour, HOSTNAME, Head, Part, Records, put_number};

/// Bytes of a datagram: what an Ethernet takes in one packet, less the heads of protocols, tunnels' among them.
const DATAGRAM_LEN_MAX: usize = 1432;
/// Datagrams between two pauses, so that many do not come faster than they are taken.
const BURST: u32 = 32;
const PAUSE: Duration = Duration::from_millis(1);
/// How long a name is taken to have the same address: nothing tells of datagrams that go to a host which is gone.
const ADDRESS_LIFE_MS: u64 = 60_000;
/// The tag by which Hadoop tells processes of one service apart.
const PROCESS_NAME: &str = "ProcessName";

/// Where datagrams go.
pub trait Datagrams: Send {
    /// Sends one.
    ///
    /// # Errors
    /// The system's; of an earlier one, as that nobody listens there.
    fn send(&mut self, datagram: &[u8]) -> io::Result<()>;
}

/// Makes sockets for datagrams.
pub trait Udp: Send + Sync + 'static {
    /// A socket to `host`, whose address is looked up, by a thread that may wait.
    ///
    /// # Errors
    /// The system's.
    fn connect(&self, host: &str, port: u16) -> io::Result<Box<dyn Datagrams>>;
}

/// What is to be sent where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatsdOptions {
    /// Where StatsD is.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What stands for the service; if nothing, the role's name.
    pub service: Option<String>,
    /// Whether the name of this host is left out.
    pub skips_hostname: bool,
    /// The name of this host where a record has none.
    pub hostname: Option<String>,
}

/// The sink.
pub(crate) struct StatsdSink {
    options: StatsdOptions,
    udp: Arc<dyn Udp>,
    // Where the last period's went without an error, and when that was made.
    socket: Option<(Box<dyn Datagrams>, u64)>,
}

impl StatsdSink {
    pub(crate) fn new(options: StatsdOptions, udp: Arc<dyn Udp>) -> StatsdSink {
        StatsdSink { options, udp, socket: None }
    }
}

impl Medium for StatsdSink {
    fn push(&mut self, look: &Look<'_>) -> Result<(), String> {
        let StatsdOptions { host, port, .. } = &self.options;
        let at = |error: io::Error| format!("{host}:{port}: {error}");
        let is_young = |(_, made_ms): &(_, u64)| look.at_ms.abs_diff(*made_ms) < ADDRESS_LIFE_MS;
        let (mut socket, made_ms) = match self.socket.take().filter(is_young) {
            Some(socket) => socket,
            None => (self.udp.connect(host, *port).map_err(at)?, look.at_ms),
        };
        let mut lines = Lines {
            options: &self.options,
            look,
            prefix: String::new(),
            line: Vec::new(),
            datagram: Vec::with_capacity(DATAGRAM_LEN_MAX),
            sent: 0,
            socket: &mut *socket,
            failed: None,
        };
        look.records(&mut lines);
        lines.send();
        match lines.failed {
            None => {
                self.socket = Some((socket, made_ms));
                Ok(())
            }
            Some(error) => Err(at(error)),
        }
    }
}

/// Metrics on their way into datagrams.
struct Lines<'a> {
    options: &'a StatsdOptions,
    look: &'a Look<'a>,
    prefix: String,
    line: Vec<u8>,
    datagram: Vec<u8>,
    sent: u32,
    socket: &'a mut dyn Datagrams,
    // The first error: one datagram that is lost is no reason to keep the others back.
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
            self.look.pause(PAUSE);
        }
    }

    /// Puts the line to the others of a datagram.
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

    fn metric(&mut self, name: &str, behaviour: Behaviour, value: Number) {
        let kind = match behaviour {
            Behaviour::Counter => "|c",
            Behaviour::Gauge => "|g",
        };
        // A sign makes a gauge's value a change of it: one below 0 is set to 0 first.
        let is_negative = match value {
            Number::Int(value) => value < 0,
            Number::Float(value) => value < 0.0,
        };
        if is_negative && behaviour == Behaviour::Gauge {
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

    /// What the names of a record's metrics begin with.
    fn set_prefix(&mut self, head: &Head) {
        let mut prefix = Vec::new();
        let host = head.tag(HOSTNAME).filter(|host| !host.is_empty());
        let host = host.or(self.options.hostname.as_deref());
        if let Some(host) = host.filter(|_| !self.options.skips_hostname) {
            put_plain(&mut prefix, &short_name(host));
            prefix.push(b'.');
        }
        // The process's own name counts more than the configured one, in Hadoop too.
        let service = head.tag(PROCESS_NAME).or(self.options.service.as_deref()).unwrap_or(self.look.role());
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
    fn put(&mut self, part: Part<'_>) {
        if part.is_first {
            self.set_prefix(part.head);
        }
        part.metrics.iter().for_each(|(name, behaviour, value)| self.metric(name, behaviour, value));
    }
}

/// A host's name without its domain; an address stays whole, without the dots that would make it several parts of a
/// name.
fn short_name(host: &str) -> String {
    match host.parse::<IpAddr>() {
        Ok(_) => host.replace(['.', ':'], "-"),
        Err(_) => host.split('.').next().unwrap_or(host).to_owned(),
    }
}

/// Text without what means something in a line.
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
    use crate::testing::{Testing, look, registry};

    /// Keeps what it is sent.
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
        sink.push(&look(registry, 1)).unwrap();
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
        assert_eq!(changed[2], "host.hbase.regionserver.Server.calls:4|c", "all so far, as Hadoop sends it");
        let without = StatsdOptions { skips_hostname: true, service: None, ..options() };
        assert_eq!(lines_of(without, &registry).await[0], "RegionServer.regionserver.Server.load:0|g");
    }

    #[test]
    fn names_mean_nothing_to_statsd() {
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
        sink.push(&look(&registry, 1)).unwrap();
        let state = net.0.lock().unwrap();
        let lens: Vec<_> = state.datagrams.iter().map(Vec::len).collect();
        assert!(lens.len() > 40 && lens.iter().all(|len| *len <= DATAGRAM_LEN_MAX), "{lens:?}");
        let lines: usize = state.datagrams.iter().map(|of| of.split(|byte| *byte == b'\n').count()).sum();
        assert_eq!(lines, 2003);
    }

    #[tokio::test]
    async fn nobody_there_costs_an_error_and_no_more() {
        let (registry, net) = (registry(), Net::default());
        registry.add_many(2000);
        net.0.lock().unwrap().fails = true;
        let mut sink = StatsdSink::new(options(), Arc::new(net.clone()));
        let error = sink.push(&look(&registry, 1)).unwrap_err();
        assert!(error.starts_with("statsd:8125: "), "{error}");
        assert!(net.0.lock().unwrap().datagrams.len() > 40, "the others are sent all the same");
        net.0.lock().unwrap().fails = false;
        sink.push(&look(&registry, 2)).unwrap();
        sink.push(&look(&registry, 3)).unwrap();
        assert_eq!(net.0.lock().unwrap().sockets, 2, "looked up again after an error");
        sink.push(&look(&registry, 2 + ADDRESS_LIFE_MS)).unwrap();
        assert_eq!(net.0.lock().unwrap().sockets, 3, "and after a while");
        let mut absent = StatsdSink::new(StatsdOptions { host: "absent".into(), ..options() }, Arc::new(net));
        assert!(absent.push(&look(&registry, 1)).is_err());
    }
}
