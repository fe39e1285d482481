//! The status page of a master.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::history::{Unit, Window};
use cell::region::ServerName;
use cell::schema::{NamespaceDescriptor, TableDescriptor};
use web::section::{Column, Facts, Pager, Plots, Section, Table, Tile};
use web::{Level, Page, Query, Refusal, Value, address};

use super::cluster::{Cluster, TableSums, mebibytes, server_url};
use super::health::LONG_IN_TRANSITION;
use super::{MasterPages, STATUS, TABLE};
use crate::pages::common::region_value;
use crate::pages::plots::{note, plot, span, tile, times};

/// Rows per page.
const ROWS: usize = 100;
/// Maximum number of regions in transition shown, longest first.
const TRANSITIONS_MAX: usize = 100;

impl MasterPages {
    /// The status page.
    pub(super) fn status(&self, query: &Query) -> Result<Page, Refusal> {
        let (cluster, window) = (Cluster::collect(&self.master), self.context.window());
        let name = self.master.server_name();
        let up = Value::duration(self.context.now_ms().saturating_sub(name.start_code));
        let mut sections = vec![
            Section::Findings(self.findings(&cluster, &window)),
            Section::Tiles(self.tiles(&cluster, &window)),
            Section::Plots(plots(&window)),
            Section::Table(self.servers(&cluster)),
        ];
        sections.extend(self.dead_servers().map(Section::Table));
        sections.extend([
            Section::Table(self.transitions()),
            Section::Table(self.running_procedures()),
            Section::Table(self.tables(&cluster, query)?),
            Section::Table(self.namespaces()),
            Section::Facts(self.facts()),
        ]);
        Ok(Page {
            title: format!("Master {}", name.host),
            subtitle: format!("{name} · version {} · up {}", env!("CARGO_PKG_VERSION"), up.as_text()),
            up: None,
            sections,
        })
    }

    /// The servers that died, if there are any.
    fn dead_servers(&self) -> Option<Table> {
        let context = self.master.context();
        let recovering: BTreeMap<ServerName, usize> = context.recoveries.list().into_iter().collect();
        let mut dead: BTreeSet<ServerName> = context.servers.dead().into_iter().collect();
        dead.extend(recovering.keys().cloned());
        if dead.is_empty() {
            return None;
        }
        let columns = vec![
            Column::text("Server"),
            Column::text("Recovery"),
            Column::number("To open").titled("Regions that no other server has opened yet"),
            Column::number("To flush").titled("Regions whose edits are still only in the logs of the server"),
        ];
        let rows = dead.iter().map(|server| {
            let to_open = context.assignment.crashed_regions(server).len();
            let state = match recovering.contains_key(server) {
                true => Value::text("in progress").with_level(Level::Warning),
                false => Value::text("completed"),
            };
            vec![
                Value::text(server.to_string()),
                state,
                Value::count(to_open as u64),
                Value::count(recovering.get(server).copied().unwrap_or(0) as u64),
            ]
        });
        Some(Table::new("Dead region servers", columns).with_rows(rows))
    }

    fn tiles(&self, cluster: &Cluster, window: &Window) -> Vec<Tile> {
        let times = self.master.context().assignment.transition_times();
        let is_stuck = times.iter().any(|since| *since > LONG_IN_TRANSITION);
        let count = |label: &str, count: usize, name: &str, note: String| {
            Tile::new(label, Some(count as f64), Unit::Count, note).with_history(window.of(name))
        };
        let tables = self.master.context().tables.all().len();
        vec![
            count("Region servers", cluster.servers.len(), "servers", "live".into())
                .with_level(if cluster.servers.is_empty() { Level::Bad } else { Level::Good }),
            count("Regions", cluster.regions.len(), "regions", format!("of {tables} tables")),
            count("In transition", times.len(), "in_transition", "opening, closing, moving".into())
                .with_level(if is_stuck { Level::Bad } else { Level::Good }),
            tile(window, "Procedures", "procedures", Unit::Count, "running"),
            tile(window, "Reads", "reads", Unit::PerSecond, "rows, all servers"),
            tile(window, "Writes", "writes", Unit::PerSecond, "mutations, all servers"),
            tile(window, "Master call p99", "call_p99", Unit::Microseconds, "tables, status, assignment"),
            tile(window, "Memory", "resident_bytes", Unit::Bytes, "of this process"),
        ]
    }

    fn servers(&self, cluster: &Cluster) -> Table {
        let mut columns = vec![Column::text("Server"), Column::text("Version")];
        columns.extend(["Regions", "Reads", "Writes", "Memory", "Files", "Size"].map(Column::number));
        columns.push(Column::number("Local").titled("Share of the files' bytes on the server's host"));
        columns.extend(["Up", "Reported"].map(Column::number));
        let now_ms = self.context.now_ms();
        let now = self.master.context().env.clock.monotonic();
        let decommissioned = self.master.context().servers.decommissioned();
        let rows = cluster.servers.iter().map(|(server, load)| {
            let mark = if decommissioned.contains(server) { " (decommissioned)" } else { "" };
            let name = Value::text(format!("{}:{}{mark}", server.host, server.port));
            let name = name.titled(server.to_string());
            let mut sums = super::cluster::ReportedLoad::default();
            load.region_loads
                .iter()
                .for_each(|region| sums.add(super::cluster::ReportedLoad::from_report(region)));
            vec![
                match server_url(server, load) {
                    Some(pages) => name.linked(pages + "/"),
                    None => name,
                },
                version(load),
                Value::count(load.region_loads.len() as u64),
                Value::count(sums.reads),
                Value::count(sums.writes),
                mebibytes(load.used_heap_mb().into(), 0),
                Value::count(sums.files),
                mebibytes(sums.file_mib, load.region_loads.len() as u64),
                local_share(load),
                Value::duration(now_ms.saturating_sub(server.start_code)),
                match self.master.context().servers.received(server) {
                    Some(at) => {
                        Value::ago(now_ms.saturating_sub(now.saturating_sub(at).as_millis() as u64), now_ms)
                    }
                    None => Value::none(),
                },
            ]
        });
        let mut table = Table::new("Region servers", columns).with_rows(rows);
        table.note = Some("Requests are those of open regions, counted since each was opened.".into());
        table.empty_text = "No live region servers.".into();
        table
    }

    fn transitions(&self) -> Table {
        let mut columns = vec![
            Column::text("Region"),
            Column::text("Table"),
            Column::text("State"),
            Column::number("Duration"),
        ];
        columns.push(Column::text("Reason").titled("Why the region could not be opened"));
        let transitions = self.master.context().assignment.regions_in_transition();
        let rows = transitions.iter().take(TRANSITIONS_MAX).map(|(region, state, took)| {
            let level = if *took > LONG_IN_TRANSITION { Level::Bad } else { Level::Warning };
            vec![
                region_value(region),
                Value::key(region.table.to_string().as_bytes()),
                Value::text(state.to_string()).with_level(level),
                Value::duration(took.as_millis() as u64),
                match self.master.context().assignment.failure(region) {
                    Some(failure) => Value::text(failure.reason).titled(attempts(failure.attempts)),
                    None => Value::none(),
                },
            ]
        });
        let mut table = Table::new("Regions in transition", columns).with_rows(rows);
        let more = transitions.len().saturating_sub(TRANSITIONS_MAX);
        table.note = (more > 0).then(|| format!("And {more} more, in transition for a shorter time."));
        table.empty_text = "No regions in transition.".into();
        table
    }

    fn tables(&self, cluster: &Cluster, query: &Query) -> Result<Table, Refusal> {
        let (tables, sums) = (self.master.context().tables.all(), cluster.by_table());
        let (pager, shown) = Pager::paginate(STATUS, query, "page", (tables.len(), ROWS))?;
        let mut columns = vec![Column::text("Table"), Column::text("State")];
        columns
            .extend(["Regions", "Open", "Reads", "Writes", "Memstore", "Files", "Size"].map(Column::number));
        columns.push(Column::text("Families"));
        let rows = tables[shown].iter().map(|table| {
            let sums = sums.get(&table.name).copied().unwrap_or_default();
            self.table_values(table, sums)
        });
        let mut section = Table::new("Tables", columns).with_rows(rows);
        section.pager = Some(pager);
        Ok(section)
    }

    fn table_values(&self, table: &Arc<TableDescriptor>, sums: TableSums) -> Vec<Value> {
        let name = table.name.to_string();
        let families: Vec<_> =
            table.families.keys().map(|family| family.escape_ascii().to_string()).collect();
        let open = Value::count(sums.open);
        let is_enabled = self.is_enabled(&table.name);
        vec![
            Value::key(name.as_bytes()).linked(address(TABLE, "name", &name)),
            self.table_state(&table.name),
            Value::count(sums.regions),
            if is_enabled && sums.open < sums.regions { open.with_level(Level::Warning) } else { open },
            Value::count(sums.load.reads),
            Value::count(sums.load.writes),
            mebibytes(sums.load.memstore_mib, sums.regions),
            Value::count(sums.load.files),
            mebibytes(sums.load.file_mib, sums.regions),
            Value::key(families.join(", ").as_bytes()),
        ]
    }

    fn namespaces(&self) -> Table {
        let context = self.master.context();
        let columns = vec![Column::text("Namespace"), Column::number("Tables"), Column::text("Settings")];
        let rows = context.namespaces.all().into_iter().map(|NamespaceDescriptor { name, configuration }| {
            let tables = context.tables.count_in(&name);
            let settings: Vec<_> =
                configuration.iter().map(|(key, value)| format!("{key}={value}")).collect();
            vec![
                Value::key(name.as_bytes()),
                Value::count(tables as u64),
                Value::key(settings.join(", ").as_bytes()),
            ]
        });
        Table::new("Namespaces", columns).with_rows(rows)
    }

    fn facts(&self) -> Facts {
        let resident = base::memory::resident_bytes().map_or(Value::none(), Value::bytes);
        Facts::new("Master")
            .and("Server", Value::text(self.master.server_name().to_string()))
            .and("Cluster", Value::text(self.master.cluster_id()))
            .and("Version", Value::text(env!("CARGO_PKG_VERSION")))
            .and("Started", Value::moment(self.master.server_name().start_code))
            .and("Ready for clients", Value::moment(self.master.initialized_ms()))
            .and("Memory of this process", resident)
    }
}

fn attempts(count: u32) -> String {
    format!("Failed attempts: {count}")
}

fn plots(window: &Window) -> Plots {
    let plots = vec![
        plot(
            window,
            "Rows per second, all servers",
            Unit::PerSecond,
            &[("read", "reads"), ("written", "writes")],
        ),
        times(window, "Calls to the master", "call"),
        plot(window, "Regions in transition", Unit::Count, &[("regions", "in_transition")]),
        plot(window, "Procedures", Unit::Count, &[("running", "procedures")]),
        plot(window, "Regions", Unit::Count, &[("regions", "regions")]),
        plot(window, "CPU cores", Unit::Cores, &[("busy", "cpu")]),
    ];
    Plots { heading: "History".into(), note: note(window), span: span(window), plots }
}

/// The version that a server reported; servers are not all updated at the same time.
fn version(load: &proto::ServerLoad) -> Value {
    match &load.grampus_version {
        Some(version) => Value::text(version.as_str()),
        None => Value::none(),
    }
}

/// The share of the bytes of a server's regions that is on its host; no value if the storage
/// belongs to no host, or there are no files.
fn local_share(load: &proto::ServerLoad) -> Value {
    let sum = |bytes: fn(&proto::RegionLoad) -> u64| load.region_loads.iter().map(bytes).sum::<u64>();
    match sum(proto::RegionLoad::blocks_total_weight) {
        0 => Value::none(),
        total => {
            let local = sum(proto::RegionLoad::blocks_local_weight);
            Value::quantity(100.0 * local as f64 / total as f64, Unit::Percent)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_server() {
        let load = |version: Option<&str>| proto::ServerLoad {
            grampus_version: version.map(str::to_string),
            ..proto::ServerLoad::default()
        };
        assert_eq!(version(&load(Some("0.0.1"))).as_text(), "0.0.1");
        assert_eq!(version(&load(None)).as_text(), Value::none().as_text());
    }
}
