//! The status page of a region server.

use base::history::{Unit, Window};
use proto::get_region_info_response::CompactionState;
use regionserver::schedule::compactions::Pool;
use web::section::{Column, Facts, Plots, Row, Section, Table, Tile};
use web::{Level, Page, Query, Refusal, Value, address};

use super::served::{Served, Sums};
use super::{REGION, RegionServerPages};
use crate::pages::common::region_value;
use crate::pages::plots::{note, plot, span, tile, times};

/// Regions at work that are shown.
const AT_WORK_MAX: usize = 50;

impl RegionServerPages {
    /// The status page.
    pub(super) fn status(&self, query: &Query) -> Result<Page, Refusal> {
        let (served, window) = (Served::all(&self.server), self.common.window());
        let sums = Sums::of(&served);
        let [tables, regions] = self.regions(served_of(&served, query)?, &served, query)?;
        Ok(Page {
            title: format!("Region server {}", self.server.name().host),
            subtitle: self.subtitle(),
            up: None,
            sections: vec![
                Section::Findings(self.findings(&served, &window)),
                Section::Tiles(self.tiles(&window, &sums)),
                Section::Plots(plots(&window)),
                self.newest_slow(),
                Section::HeatMap(self.hot_regions()),
                Section::Table(self.hot_rows()),
                Section::Shares(self.shares(&served)),
                Section::Facts(self.work(&served)),
                Section::Table(self.at_work(&served)),
                Section::Facts(self.logs_and_connections()),
                tables,
                regions,
            ],
        })
    }

    fn subtitle(&self) -> String {
        let up = Value::duration(self.common.now_ms().saturating_sub(self.server.name().start_code));
        let name = self.server.name();
        format!(
            "{name} · version {} · up {} · cluster {}",
            env!("CARGO_PKG_VERSION"),
            up.as_text(),
            self.cluster_id
        )
    }

    fn tiles(&self, window: &Window, sums: &Sums) -> Vec<Tile> {
        let schedule = self.server.schedule();
        let waiting = schedule.compactions().waiting();
        let resident = base::memory::resident_bytes();
        let full = resident.is_some_and(|bytes| bytes > self.memory.total);
        let past = |name: &str| window.of(name).to_vec();
        let of_memory = Value::bytes(self.memory.total);
        vec![
            tile(window, "Reads", "reads", Unit::PerSecond, format!("{} since opened", short(sums.reads))),
            tile(window, "Writes", "writes", Unit::PerSecond, format!("{} since opened", short(sums.writes))),
            tile(window, "Get p99", "get_p99", Unit::Microseconds, half(window, "get_p50")),
            tile(window, "Put p99", "put_p99", Unit::Microseconds, batches(window)),
            tile(window, "Scan p99", "scan_p99", Unit::Microseconds, half(window, "scan_p50")),
            tile(
                window,
                "Cache hits",
                "cache_hit_percent",
                Unit::Percent,
                cached(&self.server.cache_stats()),
            ),
            Tile {
                past: past("resident_bytes"),
                ..Tile::new(
                    "Memory",
                    resident.map(|bytes| bytes as f64),
                    Unit::Bytes,
                    format!("of {}", of_memory.as_text()),
                )
            }
            .at(if full { Level::Warning } else { Level::Good }),
            Tile {
                past: past("flushes"),
                ..Tile::new("Flushes", Some(schedule.flushes() as f64), Unit::Count, "running or waiting")
            },
            Tile {
                past: past("compactions_waiting"),
                ..Tile::new(
                    "Compactions waiting",
                    Some(waiting as f64),
                    Unit::Count,
                    format!("{} running", schedule.compactions().running()),
                )
            },
            Tile::new(
                "Regions",
                Some(sums.regions as f64),
                Unit::Count,
                format!("{} in files", Value::bytes(sums.file_bytes).as_text()),
            ),
        ]
    }

    fn work(&self, served: &[Served]) -> Facts {
        let compactions = self.server.schedule().compactions();
        let running = served.iter().filter(|one| one.figures.is_flushing).count();
        let waiting = self.server.schedule().flushes().saturating_sub(running);
        let count = |count: usize| Value::count(count as u64);
        Facts::new("Flushes and compactions")
            .and("Flushes under way", count(running))
            .and("Flushes waiting", count(waiting))
            .and("Compactions under way", count(compactions.running()))
            .and("Long compactions waiting", count(compactions.waiting_in(Pool::Long)))
            .and("Other compactions waiting", count(compactions.waiting_in(Pool::Short)))
            .and(
                "Flushes since the regions were opened",
                Value::count(served.iter().map(|one| one.figures.flushes).sum()),
            )
    }

    /// Regions that are flushed or compacted.
    fn at_work(&self, served: &[Served]) -> Table {
        let what = |one: &Served| {
            let compaction = match self.server.schedule().compactions().state(&one.region) {
                CompactionState::None => "",
                CompactionState::Minor => "minor compaction",
                CompactionState::Major => "major compaction",
                CompactionState::MajorAndMinor => "major and minor compaction",
            };
            let all = [if one.figures.is_flushing { "flush" } else { "" }, compaction];
            all.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
        };
        let at_work: Vec<_> =
            served.iter().map(|one| (one, what(one))).filter(|(_, what)| !what.is_empty()).collect();
        let columns = vec![
            Column::text("Region"),
            Column::text("Table"),
            Column::text("At work"),
            Column::number("Memstore"),
            Column::number("Files"),
            Column::number("Size"),
        ];
        let rows = at_work.iter().take(AT_WORK_MAX).map(|(one, what)| {
            Row::Values(vec![
                region_value(one.region.info()).linked(address(REGION, "name", one.region.encoded_name())),
                Value::key(one.table().to_string().as_bytes()),
                Value::text(what),
                Value::bytes(one.figures.memstore_bytes),
                Value::count(one.files()),
                Value::bytes(one.file_bytes()),
            ])
        });
        let mut table = Table::new("Regions at work", columns);
        table.rows = rows.collect();
        table.nothing = "No region is being flushed or compacted, or selected to be.".into();
        let more = at_work.len().saturating_sub(AT_WORK_MAX);
        table.note = (more > 0).then(|| format!("And {more} more."));
        table
    }

    fn logs_and_connections(&self) -> Facts {
        let (log, cache) = (self.server.log_figures(), self.server.cache_stats());
        Facts::new("Logs, cache and connections")
            .and("Logs kept", Value::count(log.logs))
            .and("Edits in logs", Value::count(log.edits))
            .and("Commit groups, one sync each", Value::count(log.groups))
            .and("Written to logs", Value::bytes(log.bytes))
            .and("Waiting for the log", Value::bytes(log.queued_bytes))
            .and("Logs begun anew", Value::count(log.rolls))
            .and("Block cache hits", Value::count(cache.hits))
            .and("Block cache misses", Value::count(cache.misses))
            .and("Cached blocks", Value::count(cache.entries))
            .and("Blocks that made room", Value::count(cache.evictions))
            .and("Connections", Value::count(self.shared.connections() as u64))
            .and("Open scanners", Value::count(self.server.scanners().open_count() as u64))
    }
}

/// The regions that the page is to list.
fn served_of<'a>(served: &'a [Served], query: &Query) -> Result<Vec<&'a Served>, Refusal> {
    let Some(name) = query.get("table") else { return Ok(served.iter().collect()) };
    let table = crate::pages::common::table_of(name)?;
    let of_table: Vec<&Served> = served.iter().filter(|one| *one.table() == table).collect();
    if of_table.is_empty() {
        return Err(Refusal::missing(format!("No region of the table {name} is served here.")));
    }
    Ok(of_table)
}

fn plots(window: &Window) -> Plots {
    let plots = vec![
        plot(window, "Rows in a second", Unit::PerSecond, &[("read", "reads"), ("written", "writes")]),
        times(window, "Get", "get"),
        times(window, "Scan, each call", "scan"),
        times(window, "Put of one row", "put"),
        times(window, "Puts made together", "put_batch"),
        times(window, "Sync of the log", "sync"),
        plot(window, "Network", Unit::BytesPerSecond, &[("in", "bytes_in"), ("out", "bytes_out")]),
        plot(
            window,
            "Memory",
            Unit::Bytes,
            &[("process", "resident_bytes"), ("cache", "cache_bytes"), ("memstores", "memstore_bytes")],
        ),
        plot(window, "Block cache hits", Unit::Percent, &[("hits", "cache_hit_percent")]),
        plot(
            window,
            "Queues",
            Unit::Count,
            &[
                ("flushes", "flushes"),
                ("compactions waiting", "compactions_waiting"),
                ("running", "compactions"),
            ],
        ),
        plot(
            window,
            "Calls that failed",
            Unit::PerSecond,
            &[("failed", "failed_calls"), ("no room", "refused_calls"), ("writes refused", "refused_writes")],
        ),
        plot(window, "Processors", Unit::Cores, &[("busy", "cpu")]),
    ];
    Plots { heading: "The past".into(), note: note(window), span: span(window), plots }
}

fn short(count: u64) -> String {
    Value::figure(count as f64, Unit::Count).as_text().to_owned()
}

fn half(window: &Window, name: &str) -> String {
    match window.last(name) {
        Some(value) => format!("p50 {}", Value::figure(value, Unit::Microseconds).as_text()),
        None => "none at present".to_owned(),
    }
}

/// Puts are made one by one or together; whoever looks at the one should know of the other.
fn batches(window: &Window) -> String {
    match window.last("put_batch_p99") {
        Some(value) => format!("together {}", Value::figure(value, Unit::Microseconds).as_text()),
        None => half(window, "put_p50"),
    }
}

fn cached(cache: &cache::Stats) -> String {
    format!("{} cached", Value::bytes(cache.weight_bytes).as_text())
}
