//! What the pages of both roles show: figures of this moment, as values.

use std::sync::Arc;

use base::config::{Config, MemoryParts};
use base::metrics::Registry;
use master::Master;
use master::assignment::RegionState;
use regionserver::RegionServer;
use rpc::server::Shared;
use web::{Facts, Section, StatusPage};

use crate::standalone::Limits;

/// The options in force, as `/conf` shows them.
type Configuration = Vec<(String, String, String)>;

fn configuration(config: &Config) -> Configuration {
    let settings = config.settings().iter();
    settings.map(|setting| (setting.key.clone(), setting.text.clone(), setting.origin.to_string())).collect()
}

fn links(status: &str) -> Vec<(String, String)> {
    [("Status", status), ("Metrics", "/jmx"), ("Configuration", "/conf")]
        .map(|(text, address)| (text.to_string(), address.to_string()))
        .to_vec()
}

/// The master's pages.
pub struct MasterPages {
    master: Arc<Master>,
    metrics: Arc<Registry>,
    configuration: Configuration,
}

impl MasterPages {
    /// The pages of `master`, whose beans are `metrics`.
    pub(crate) fn new(master: Arc<Master>, metrics: Arc<Registry>, config: &Config) -> MasterPages {
        MasterPages { master, metrics, configuration: configuration(config) }
    }

    fn tables(&self) -> Section {
        let context = self.master.context();
        let rows = context.tables.all().into_iter().map(|table| {
            let regions = context.assignment.regions_of(&table.name);
            let open = regions.iter().filter(|(_, state)| matches!(state, RegionState::Open(_))).count();
            let state = context.tables.state(&table.name).map_or(String::new(), |state| format!("{state:?}"));
            let families: Vec<_> =
                table.families.keys().map(|family| family.escape_ascii().to_string()).collect();
            vec![
                table.name.to_string(),
                state,
                regions.len().to_string(),
                open.to_string(),
                families.join(", "),
            ]
        });
        Section::Table {
            heading: "Tables".into(),
            columns: ["Name", "State", "Regions", "Open", "Families"].map(String::from).to_vec(),
            rows: rows.collect(),
        }
    }

    fn servers(&self) -> Section {
        let rows = self.master.context().servers.live().into_iter().map(|(server, load)| {
            vec![
                server.to_string(),
                load.region_loads.len().to_string(),
                load.total_number_of_requests().to_string(),
                load.used_heap_mb().to_string(),
            ]
        });
        Section::Table {
            heading: "Region servers".into(),
            columns: ["Server", "Regions", "Requests", "Memory (MB)"].map(String::from).to_vec(),
            rows: rows.collect(),
        }
    }
}

impl Facts for MasterPages {
    fn status_path(&self) -> &'static str {
        "/master-status"
    }

    fn status(&self) -> StatusPage {
        let facts = vec![
            ("Cluster".to_string(), self.master.cluster_id().to_string()),
            ("Version".to_string(), env!("CARGO_PKG_VERSION").to_string()),
            (
                "Initialized".to_string(),
                if self.master.is_initialized() { "yes" } else { "not yet" }.to_string(),
            ),
        ];
        StatusPage {
            title: "Grampus master".into(),
            subtitle: self.master.server_name().to_string(),
            links: links(self.status_path()),
            sections: vec![Section::Facts { heading: "Master".into(), facts }, self.servers(), self.tables()],
        }
    }

    fn metrics(&self) -> &Registry {
        &self.metrics
    }

    fn configuration(&self) -> Configuration {
        self.configuration.clone()
    }
}

/// The region server's pages.
pub struct RegionServerPages {
    server: Arc<RegionServer>,
    memory: MemoryParts,
    shared: Arc<Shared>,
    metrics: Arc<Registry>,
    configuration: Configuration,
}

impl RegionServerPages {
    /// The pages of `server`, whose beans are `metrics`.
    pub(crate) fn new(
        server: Arc<RegionServer>,
        metrics: Arc<Registry>,
        config: &Config,
        limits: &Limits,
    ) -> RegionServerPages {
        let (memory, shared) = (limits.memory, limits.shared.clone());
        RegionServerPages { server, memory, shared, metrics, configuration: configuration(config) }
    }

    fn regions(&self) -> Section {
        let rows = self.server.regions().all().into_iter().map(|region| {
            let figures = region.figures();
            let files: usize = figures.stores.iter().map(|store| store.files).sum();
            let file_bytes: u64 = figures.stores.iter().map(|store| store.file_bytes).sum();
            vec![
                region.name().to_string(),
                figures.read_requests.to_string(),
                figures.write_requests.to_string(),
                (figures.memstore_bytes >> 10).to_string(),
                files.to_string(),
                (file_bytes >> 10).to_string(),
            ]
        });
        Section::Table {
            heading: "Regions".into(),
            columns: ["Region", "Reads", "Writes", "Memstore (KiB)", "Files", "Files (KiB)"]
                .map(String::from)
                .to_vec(),
            rows: rows.collect(),
        }
    }
}

impl Facts for RegionServerPages {
    fn status_path(&self) -> &'static str {
        "/rs-status"
    }

    fn status(&self) -> StatusPage {
        let (log, cache) = (self.server.log_figures(), self.server.cache_stats());
        let fact = |name: &str, value: String| (name.to_string(), value);
        let facts = vec![
            fact("Version", env!("CARGO_PKG_VERSION").into()),
            fact("Memory", self.memory.to_string()),
            fact("Memstores", used(self.server.memstore_bytes(), self.memory.memstores)),
            fact("Cached blocks", used(cache.weight_bytes, self.memory.cache)),
            fact("Requests", used(self.shared.requests().used() as u64, self.memory.requests)),
            fact("Answers", used(self.shared.answers().used() as u64, self.memory.answers)),
            fact("Connections", self.shared.connections().to_string()),
            fact("Block cache hits and misses", format!("{} and {}", cache.hits, cache.misses)),
            fact("Open scanners", self.server.scanners().open_count().to_string()),
            fact("Logs kept", log.logs.to_string()),
            fact("Edits and commit groups", format!("{} in {}", log.edits, log.groups)),
            fact("Flushes under way", self.server.schedule().flushes().to_string()),
            fact("Compactions under way", self.server.schedule().compactions().running().to_string()),
            fact("Compactions waiting", self.server.schedule().compactions().waiting().to_string()),
        ];
        StatusPage {
            title: "Grampus region server".into(),
            subtitle: self.server.name().to_string(),
            links: links(self.status_path()),
            sections: vec![Section::Facts { heading: "Server".into(), facts }, self.regions()],
        }
    }

    fn metrics(&self) -> &Registry {
        &self.metrics
    }

    fn configuration(&self) -> Configuration {
        self.configuration.clone()
    }
}

fn used(bytes: u64, limit: u64) -> String {
    format!("{} KiB of {} MiB", bytes >> 10, limit >> 20)
}
