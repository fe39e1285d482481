//! What the pages of both roles have.

use std::sync::Arc;

use base::config::Config;
use base::env::Clock;
use base::history::{History, Moment, Window};
use base::metrics::Registry;
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use web::section::Finding;
use web::{Frame, Refusal, Value};

/// The options in force, as `/conf` shows them.
pub(super) type Configuration = Vec<(String, String, String)>;

/// Where the pages of the roles are, as browsers find them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peers {
    pub(crate) master: Option<String>,
    pub(crate) region_server: Option<String>,
}

impl Peers {
    /// The address of the pages of `server` at a port.
    pub(crate) fn address(server: &ServerName, port: u16) -> String {
        // Addresses of version 6 have colons themselves.
        match server.host.contains(':') {
            true => format!("http://[{}]:{port}", server.host),
            false => format!("http://{}:{port}", server.host),
        }
    }
}

/// What the pages of a role are made with, whatever role it is.
pub(crate) struct Common {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) metrics: Arc<Registry>,
    pub(super) history: Arc<History>,
    configuration: Configuration,
    frame: Frame,
}

impl Common {
    /// The pages of the `role` of `server`, its status page at a path; `others` are ways to more pages.
    pub(crate) fn new(
        (metrics, history): (Arc<Registry>, Arc<History>),
        config: &Config,
        (role, server): (&str, &ServerName),
        (status, others): (&str, &[(&str, &str)]),
    ) -> Common {
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
        Common { clock: metrics.clock().clone(), metrics, history, configuration, frame }
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

/// That errors were logged in the time that is kept, if some were.
pub(super) fn errors_logged(window: &Window) -> Option<Finding> {
    let known = || window.of("errors").iter().filter(|value| !value.is_nan());
    let errors = known().next_back()? - known().next()?;
    let what = format!("Errors that were logged in the last hour: {errors}. The log says which.");
    (errors > 0.0).then(|| Finding::warning(what))
}

/// A region by its encoded name, all of its name in the title.
pub(super) fn region_value(region: &RegionInfo) -> Value {
    Value::key(region.encoded_name().as_bytes()).titled(region.name().escape_ascii().to_string())
}

/// The first row of a region, or the row behind its last one.
pub(super) fn bound(key: &[u8]) -> Value {
    if key.is_empty() { Value::none().titled("no bound") } else { Value::key(key) }
}

/// The table that an address names.
pub(super) fn table_of(name: &str) -> Result<TableName, Refusal> {
    TableName::parse(name).map_err(|_| Refusal::bad(format!("“{name}” cannot be the name of a table.")))
}
