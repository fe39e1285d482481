//! Options of a gateway.

use std::time::Duration;

/// The service of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// `Hbase`, known as Thrift 1.
    One,
    /// `THBaseService`, known as Thrift 2.
    Two,
}

/// Options of a gateway. The defaults are those of HBase, and of Grampus for the limits that HBase
/// does not have.
#[derive(Clone, Debug)]
pub struct ThriftOptions {
    /// The service.
    pub service: Service,
    /// Whether changes are refused (`hbase.thrift.readonly`). HBase has this only for Thrift 2.
    pub read_only: bool,
    /// Maximum number of calls that are executed concurrently (`hbase.thrift.maxWorkerThreads`).
    pub calls_max: usize,
    /// Maximum number of calls that wait for execution (`hbase.thrift.maxQueuedRequests`).
    pub waiting_max: usize,
    /// Time after which an idle connection is closed; `None` for never
    /// (`hbase.thrift.server.socket.read.timeout`).
    pub idle_time: Option<Duration>,
    /// Maximum size of a frame in bytes
    /// (`hbase.regionserver.thrift.framed.max_frame_size_in_mb`).
    pub frame_bytes_max: usize,
    /// Maximum size of other messages in bytes.
    pub request_bytes_max: usize,
    /// Maximum size of the cells in one response in bytes.
    pub response_bytes_max: usize,
    /// Memory in bytes for all requests, responses and scanners together.
    pub memory_bytes: usize,
    /// Maximum number of open scanners.
    pub scanners_max: usize,
    /// Maximum number of open scanners of one client address.
    pub scanners_per_client_max: usize,
    /// Time after which an unused scanner is closed (`hbase.client.scanner.timeout.period`).
    pub scanner_time: Duration,
    /// Maximum number of connections. Another one replaces the one that has waited longest for its
    /// client.
    pub connections_max: usize,
    /// Host names of this server that HTTP requests may use, in addition to addresses and
    /// `localhost`; `*` allows any.
    pub hosts: Vec<String>,
}

/// Maximum duration of a connection. Clients then open another one.
pub(crate) const CONNECTION_LIMIT: Duration = Duration::from_secs(24 * 3600);

impl ThriftOptions {
    /// The defaults for a service.
    pub fn new(service: Service) -> ThriftOptions {
        ThriftOptions {
            service,
            read_only: false,
            calls_max: 1000,
            waiting_max: 1000,
            idle_time: Some(Duration::from_secs(60)),
            frame_bytes_max: 2 << 20,
            request_bytes_max: 64 << 20,
            response_bytes_max: 64 << 20,
            memory_bytes: 256 << 20,
            scanners_max: 10_000,
            scanners_per_client_max: 1_000,
            scanner_time: Duration::from_secs(60),
            connections_max: 1_000,
            hosts: Vec::new(),
        }
    }

    /// Time limit for a client that sends nothing.
    pub(crate) fn idle_limit(&self) -> Duration {
        self.idle_time.unwrap_or(CONNECTION_LIMIT)
    }
}
