//! Options of the gateway.

use std::time::Duration;

use crate::csrf::CsrfOptions;

/// Options of a gateway. The defaults are those of HBase, and of Grampus for the limits that HBase
/// does not have.
#[derive(Clone, Debug)]
pub struct RestOptions {
    /// Whether changes are refused (`hbase.rest.readonly`).
    pub read_only: bool,
    /// Maximum number of requests that are executed concurrently (`hbase.rest.threads.max`).
    pub requests_max: usize,
    /// Maximum number of requests that wait for execution; `None` for as many as there are
    /// connections (`hbase.rest.task.queue.size`).
    pub waiting_max: Option<usize>,
    /// Time after which an idle connection is closed; `None` for never
    /// (`hbase.rest.thread.idle.timeout`).
    pub idle_time: Option<Duration>,
    /// Rows in one frame of a stateless scan in protobuf, and in one call to a server
    /// (`hbase.rest.scan.fetchsize`).
    pub fetch_rows: u32,
    /// Maximum number of open scanners (`hbase.rest.scannercache.size`).
    pub scanners_max: usize,
    /// Maximum number of open scanners of one client address.
    pub scanners_per_client_max: usize,
    /// Time after which an unused scanner is closed (`hbase.rest.scannercache.expire.time`).
    pub scanner_time: Duration,
    /// Whether the method OPTIONS is allowed (`hbase.rest.http.allow.options.method`).
    pub allows_options: bool,
    /// Protection against forged requests of browsers (`hbase.rest.csrf.enabled`).
    pub csrf: Option<CsrfOptions>,
    /// Maximum size of the body of a request in bytes, after decompression.
    pub request_bytes_max: usize,
    /// Maximum size of a response that is assembled in memory, in bytes.
    pub response_bytes_max: usize,
    /// Memory in bytes for all bodies together.
    pub memory_bytes: usize,
    /// Maximum number of connections. Another one replaces the one that has waited longest for its
    /// client.
    pub connections_max: usize,
    /// Host names of this server that requests may use, in addition to addresses and `localhost`;
    /// `*` allows any.
    pub hosts: Vec<String>,
}

impl Default for RestOptions {
    fn default() -> RestOptions {
        RestOptions {
            read_only: false,
            requests_max: 100,
            waiting_max: None,
            idle_time: Some(Duration::from_secs(60)),
            fetch_rows: 10,
            scanners_max: 10_000,
            scanners_per_client_max: 1_000,
            scanner_time: Duration::from_secs(3600),
            allows_options: true,
            csrf: None,
            request_bytes_max: 64 << 20,
            response_bytes_max: 64 << 20,
            memory_bytes: 256 << 20,
            connections_max: 1_000,
            hosts: Vec::new(),
        }
    }
}
