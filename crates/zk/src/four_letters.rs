//! ZooKeeper's four-letter words: short queries in place of a session, sent by monitoring and by
//! HBase's `zk_dump`. The response is text; then the server closes the connection.
//!
//! Source: ZooKeeper 3.8, `org.apache.zookeeper.server.command`; the formats were compared with a
//! running 3.8.4.

use std::fmt::Write;
use std::net::SocketAddr;

/// The ZooKeeper version whose formats these are.
const VERSION: &str = concat!("3.8.4-grampus-", env!("CARGO_PKG_VERSION"));

/// A four-letter word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// Whether the server runs.
    Ruok,
    /// Statistics of the server.
    Srvr,
    /// Statistics of the server and its connections.
    Stat,
    /// Statistics for programs.
    Mntr,
    /// Whether the server is read-only.
    Isro,
    /// Configuration.
    Conf,
    /// Environment of the process.
    Envi,
    /// Connections.
    Cons,
    /// Sessions and ephemeral znodes.
    Dump,
    /// Number of watches.
    Wchs,
    /// Watches by session.
    Wchc,
    /// Watches by path.
    Wchp,
    /// Size of logs and snapshots.
    Dirs,
    /// Reset the statistics of connections.
    Crst,
    /// Reset the statistics of the server and its connections.
    Srst,
}

const WORDS: [(&[u8; 4], Word); 15] = [
    (b"ruok", Word::Ruok),
    (b"srvr", Word::Srvr),
    (b"stat", Word::Stat),
    (b"mntr", Word::Mntr),
    (b"isro", Word::Isro),
    (b"conf", Word::Conf),
    (b"envi", Word::Envi),
    (b"cons", Word::Cons),
    (b"dump", Word::Dump),
    (b"wchs", Word::Wchs),
    (b"wchc", Word::Wchc),
    (b"wchp", Word::Wchp),
    (b"dirs", Word::Dirs),
    (b"crst", Word::Crst),
    (b"srst", Word::Srst),
];

impl Word {
    /// The word in place of a frame's length, if it is one.
    pub fn of(len: u32) -> Option<Word> {
        let bytes = len.to_be_bytes();
        WORDS.iter().find(|(word, _)| **word == bytes).map(|(_, word)| *word)
    }
}

/// A connection, as four-letter words report it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// Id and timeout in milliseconds; `None` without a session.
    pub(crate) session: Option<(i64, i32)>,
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

/// What four-letter words report about the endpoint.
#[derive(Debug)]
pub(crate) struct EndpointReport {
    pub(crate) zxid: i64,
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) rejected: u64,
    pub(crate) znodes: u64,
    pub(crate) data_bytes: u64,
    /// Paths of ephemeral znodes, by session.
    pub(crate) ephemerals: Vec<(i64, Vec<String>)>,
    pub(crate) peers: Vec<Peer>,
    pub(crate) up_ms: u64,
    pub(crate) port: u16,
    pub(crate) connections_max: usize,
    pub(crate) session_ms: (u128, u128),
}

impl EndpointReport {
    /// The response to a word.
    pub(crate) fn format(&self, word: Word) -> String {
        let mut out = String::new();
        // Writing to a `String` cannot fail.
        let _ = match word {
            Word::Ruok => write!(out, "imok"),
            Word::Isro => write!(out, "rw"),
            Word::Srvr => self.server(&mut out, false),
            Word::Stat => self.server(&mut out, true),
            Word::Mntr => self.monitor(&mut out),
            Word::Conf => self.settings(&mut out),
            Word::Envi => {
                writeln!(out, "Environment:\nzookeeper.version={VERSION}\nos.name={}", std::env::consts::OS)
            }
            Word::Cons => self.peers(&mut out).and_then(|()| writeln!(out)),
            Word::Dump => self.sessions(&mut out),
            // Watches are accepted and never fire; none is stored.
            Word::Wchs => writeln!(out, "0 connections watching 0 paths\nTotal watches:0"),
            Word::Wchc | Word::Wchp => writeln!(out),
            // Znodes are in memory.
            Word::Dirs => writeln!(out, "datadir_size: 0\nlogdir_size: 0"),
            Word::Crst => writeln!(out, "Connection stats reset."),
            Word::Srst => writeln!(out, "Server stats reset."),
        };
        out
    }

    fn server(&self, out: &mut String, with_peers: bool) -> std::fmt::Result {
        writeln!(out, "Zookeeper version: {VERSION}")?;
        if with_peers {
            writeln!(out, "Clients:")?;
            self.peers(out)?;
            writeln!(out)?;
        }
        let EndpointReport { received, sent, zxid, znodes, .. } = self;
        writeln!(out, "Latency min/avg/max: 0/0.0/0\nReceived: {received}\nSent: {sent}")?;
        writeln!(out, "Connections: {}\nOutstanding: 0\nZxid: 0x{zxid:x}", self.peers.len())?;
        writeln!(out, "Mode: standalone\nNode count: {znodes}")
    }

    fn peers(&self, out: &mut String) -> std::fmt::Result {
        for Peer { address, session, received, sent } in &self.peers {
            let interest = u8::from(session.is_some());
            write!(out, " /{address}[{interest}](queued=0,recved={received},sent={sent}")?;
            if let Some((id, timeout_ms)) = session {
                write!(out, ",sid=0x{id:x},to={timeout_ms}")?;
            }
            writeln!(out, ")")?;
        }
        Ok(())
    }

    fn monitor(&self, out: &mut String) -> std::fmt::Result {
        let ephemerals: usize = self.ephemerals.iter().map(|(_, paths)| paths.len()).sum();
        let sessions = self.peers.iter().filter(|peer| peer.session.is_some()).count();
        writeln!(out, "zk_version\t{VERSION}\nzk_server_state\tstandalone")?;
        for (name, value) in [
            ("ephemerals_count", ephemerals as u64),
            ("num_alive_connections", self.peers.len() as u64),
            ("avg_latency", 0),
            ("min_latency", 0),
            ("max_latency", 0),
            ("outstanding_requests", 0),
            ("znode_count", self.znodes),
            ("global_sessions", sessions as u64),
            ("packets_sent", self.sent),
            ("packets_received", self.received),
            ("watch_count", 0),
            ("approximate_data_size", self.data_bytes),
            ("connection_rejected", self.rejected),
            ("uptime", self.up_ms),
        ] {
            writeln!(out, "zk_{name}\t{value}")?;
        }
        Ok(())
    }

    fn settings(&self, out: &mut String) -> std::fmt::Result {
        let (min, max) = self.session_ms;
        writeln!(out, "clientPort={}\nsecureClientPort=-1\ntickTime=2000", self.port)?;
        writeln!(out, "maxClientCnxns={}\nminSessionTimeout={min}", self.connections_max)?;
        writeln!(out, "maxSessionTimeout={max}\nserverId=0")
    }

    fn sessions(&self, out: &mut String) -> std::fmt::Result {
        let sessions: Vec<i64> =
            self.peers.iter().filter_map(|peer| peer.session.map(|(id, _)| id)).collect();
        writeln!(out, "SessionTracker dump:\nSession Sets (1)/({}):", sessions.len())?;
        for id in sessions {
            writeln!(out, "\t0x{id:x}")?;
        }
        writeln!(out, "ephemeral nodes dump:\nSessions with Ephemerals ({}):", self.ephemerals.len())?;
        for (session, paths) in &self.ephemerals {
            writeln!(out, "0x{session:x}:")?;
            for path in paths {
                writeln!(out, "\t{path}")?;
            }
        }
        writeln!(out, "Connections dump:\nConnections Sets (1)/({}):", self.peers.len())?;
        for Peer { address, session, .. } in &self.peers {
            writeln!(out, "\tip: /{address} sessionId: 0x{:x}", session.map_or(0, |(id, _)| id))?;
        }
        Ok(())
    }
}
