//! The parts that the pages of both roles share.

use std::sync::Arc;

use base::config::Config;
use base::env::Clock;
use base::history::{History, Moment, Window};
use base::metrics::Registry;
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use web::section::Finding;
use web::{Frame, Refusal, Value};

/// The effective options as `/conf` shows them: key, value, origin.
pub(super) type Configuration = Vec<(String, String, String)>;

/// URLs of the pages of both roles, for links.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    /// URL of the master's pages.
    pub master: Option<String>,
    /// URL of the region server's pages.
    pub region_server: Option<String>,
}

impl Peers {
    /// The URL of the pages of `server` at a port, without a path.
    pub fn address(server: &ServerName, port: u16) -> String {
        // IPv6 addresses contain colons, so they need brackets.
        match server.host.contains(':') {
            true => format!("http://[{}]:{port}", server.host),
            false => format!("http://{}:{port}", server.host),
        }
    }
}

/// The role-independent parts of a role's pages.
pub(crate) struct PageContext {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) metrics: Arc<Registry>,
    pub(super) history: Arc<History>,
    configuration: Configuration,
    frame: Frame,
}

impl PageContext {
    /// The pages of `role` at `server`, with the status page at the path `status` and links to
    /// `others`.
    pub(crate) fn new(
        (metrics, history): (Arc<Registry>, Arc<History>),
        config: &Config,
        (role, server): (&str, &ServerName),
        (status, others): (&str, &[(&str, &str)]),
    ) -> PageContext {
        let settings = config.settings().iter();
        let configuration = settings
            .map(|setting| (setting.key.clone(), setting.text.clone(), setting.origin.to_string()))
            .collect();
        let of_role = [
            ("Metrics", "/jmx"),
            ("Prometheus", "/prometheus"),
            ("Configuration", "/conf"),
            ("History", "/history"),
        ];
        let own = [("Status", status)];
        let links = own.iter().chain(others).chain(&of_role);
        let links = links.map(|(text, address)| ((*text).to_owned(), (*address).to_owned())).collect();
        let frame =
            Frame { role: role.to_owned(), server: format!("{}:{}", server.host, server.port), links };
        PageContext { clock: metrics.clock().clone(), metrics, history, configuration, frame }
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    pub(super) fn window(&self) -> Window {
        self.history.window(Moment::of(&*self.clock))
    }

    pub(super) fn configuration(&self) -> Configuration {
        self.configuration.clone()
    }

    pub(super) fn frame(&self) -> Frame {
        self.frame.clone()
    }
}

/// A warning if errors were logged in the last hour.
pub(super) fn errors_logged(window: &Window) -> Option<Finding> {
    let values = || window.of("errors").iter().filter(|value| !value.is_nan());
    let errors = values().next_back()? - values().next()?;
    let what = format!("Errors logged in the last hour: {errors}. See the log.");
    (errors > 0.0).then(|| Finding::warning(what))
}

/// A region's encoded name, with the full name as a tooltip.
pub(super) fn region_value(region: &RegionInfo) -> Value {
    Value::key(region.encoded_name().as_bytes()).titled(region.name().escape_ascii().to_string())
}

/// The start key or the end key of a region.
pub(super) fn bound(key: &[u8]) -> Value {
    if key.is_empty() { Value::none().titled("no bound") } else { Value::key(key) }
}

/// Parses a table name from a URL.
pub(super) fn table_of(name: &str) -> Result<TableName, Refusal> {
    TableName::parse(name).map_err(|_| Refusal::bad(format!("“{name}” is not a valid table name.")))
}
