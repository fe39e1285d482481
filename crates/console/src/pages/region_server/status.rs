//! The status page of a region server.

use std::time::Duration;

use base::history::{Unit, Window};
use proto::get_region_info_response::CompactionState;
use regionserver::schedule::compactions::Pool;
use web::section::{Column, Facts, Plots, Row, Section, Table, Tile};
use web::{Level, Page, Query, Refusal, Value, address};

use super::snapshot::{RegionSnapshot, Sums};
use super::{REGION, RegionServerPages, tiers};
use crate::pages::common::region_value;
use crate::pages::plots::{note, plot, span, tile, times};

/// Maximum number of active regions shown.
const ACTIVE_MAX: usize = 50;

impl RegionServerPages {
    /// The status page.
    pub(super) fn status(&self, query: &Query) -> Result<Page, Refusal> {
        let (all, window) = (RegionSnapshot::all(&self.server), self.context.window());
        let (sums, volumes) = (Sums::new(&all), self.server.tiers());
        let [tables, regions] = self.regions(selected_regions(&all, query)?, &all, query)?;
        let mut sections = vec![
            Section::Findings(self.findings(&all, &window)),
            Section::Tiles(self.tiles(&window, &sums)),
            Section::Plots(plots(&window)),
            self.newest_slow(),
            Section::HeatMap(self.hot_regions()),
            Section::Table(self.hot_rows()),
            Section::Shares(self.shares(&all)),
            Section::Facts(self.work(&all)),
            Section::Table(self.active_regions(&all)),
            Section::Facts(self.logs_and_connections()),
        ];
        sections.extend(self.second_level_cache().map(Section::Facts));
        sections.extend(tiers::table(&volumes).map(Section::Table));
        sections.extend([tables, regions]);
        Ok(Page {
            title: format!("Region server {}", self.server.name().host),
            subtitle: self.subtitle(),
            up: None,
            sections,
        })
    }

    fn subtitle(&self) -> String {
        let up = Value::duration(self.context.now_ms().saturating_sub(self.server.name().start_code));
        let name = self.server.name();
        format!(
            "{name} · version {} · up {} · cluster {}",
            env!("CARGO_PKG_VERSION"),
            up.as_text(),
            self.identity.cluster_id
        )
    }

    fn tiles(&self, window: &Window, sums: &Sums) -> Vec<Tile> {
        let schedule = self.server.schedule();
        let waiting = schedule.compactions().waiting();
        let resident = base::memory::resident_bytes();
        let full = resident.is_some_and(|bytes| bytes > self.identity.memory.total);
        let past = |name: &str| window.of(name).to_vec();
        let of_memory = Value::bytes(self.identity.memory.total);
        vec![
            tile(
                window,
                "Reads",
                "reads",
                Unit::PerSecond,
                format!("{} since opened", count_text(sums.reads)),
            ),
            tile(
                window,
                "Writes",
                "writes",
                Unit::PerSecond,
                format!("{} since opened", count_text(sums.writes)),
            ),
            tile(window, "Get p99", "get_p99", Unit::Microseconds, median_text(window, "get_p50")),
            tile(window, "Put p99", "put_p99", Unit::Microseconds, batch_p99_text(window)),
            tile(window, "Scan p99", "scan_p99", Unit::Microseconds, median_text(window, "scan_p50")),
            tile(
                window,
                "Cache hits",
                "cache_hit_percent",
                Unit::Percent,
                cache_text(&self.server.cache_stats()),
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
            .with_level(if full { Level::Warning } else { Level::Good }),
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

    fn work(&self, regions: &[RegionSnapshot]) -> Facts {
        let compactions = self.server.schedule().compactions();
        let running = regions.iter().filter(|one| one.metrics.is_flushing).count();
        let waiting = self.server.schedule().flushes().saturating_sub(running);
        let count = |count: usize| Value::count(count as u64);
        let backlog = |backlog: Option<Duration>, first: &str| match backlog {
            Some(backlog) => Value::duration(backlog.as_millis() as u64),
            None => Value::text(format!("unknown before the first {first}")),
        };
        Facts::new("Flushes and compactions")
            .and("Flushes running", count(running))
            .and("Flushes waiting", count(waiting))
            .and("Time to flush all memstores", backlog(self.server.memstore_backlog(), "large flush"))
            .and("Compactions running", count(compactions.running()))
            .and("Time to compact all stores", backlog(self.server.compaction_backlog(), "compaction"))
            .and("Long compactions waiting", count(compactions.waiting_in(Pool::Long)))
            .and("Short compactions waiting", count(compactions.waiting_in(Pool::Short)))
            .and(
                "Flushes since the regions were opened",
                Value::count(regions.iter().map(|one| one.metrics.flushes).sum()),
            )
    }

    /// Regions that are being flushed or compacted, or are selected for it.
    fn active_regions(&self, regions: &[RegionSnapshot]) -> Table {
        let what = |one: &RegionSnapshot| {
            let compaction = match self.server.schedule().compactions().state(&one.region) {
                CompactionState::None => "",
                CompactionState::Minor => "minor compaction",
                CompactionState::Major => "major compaction",
                CompactionState::MajorAndMinor => "major and minor compaction",
            };
            let all = [if one.metrics.is_flushing { "flush" } else { "" }, compaction];
            all.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
        };
        let active_regions: Vec<_> =
            regions.iter().map(|one| (one, what(one))).filter(|(_, what)| !what.is_empty()).collect();
        let columns = vec![
            Column::text("Region"),
            Column::text("Table"),
            Column::text("Activity"),
            Column::number("Memstore"),
            Column::number("Files"),
            Column::number("Size"),
        ];
        let rows = active_regions.iter().take(ACTIVE_MAX).map(|(one, what)| {
            Row::Values(vec![
                region_value(one.region.info()).linked(address(REGION, "name", one.region.encoded_name())),
                Value::key(one.table().to_string().as_bytes()),
                Value::text(what),
                Value::bytes(one.metrics.memstore_bytes),
                Value::count(one.files()),
                Value::bytes(one.file_bytes()),
            ])
        });
        let mut table = Table::new("Regions being flushed or compacted", columns);
        table.rows = rows.collect();
        table.empty_text = "No region is being flushed or compacted, or is selected for it.".into();
        let more = active_regions.len().saturating_sub(ACTIVE_MAX);
        table.note = (more > 0).then(|| format!("And {more} more."));
        table
    }

    fn logs_and_connections(&self) -> Facts {
        let (log, cache) = (self.server.user_log_statistics(), self.server.cache_stats());
        Facts::new("Logs, cache and connections")
            .and("Log files", Value::count(log.logs))
            .and("Edits written to logs", Value::count(log.edits))
            .and("Commit groups, one sync each", Value::count(log.groups))
            .and("Written to logs", Value::bytes(log.bytes))
            .and("Queued for the log", Value::bytes(log.queued_bytes))
            .and("Log rolls", Value::count(log.rolls))
            .and("Block cache hits", Value::count(cache.hits))
            .and("Block cache misses", Value::count(cache.misses))
            .and("Cached blocks", Value::count(cache.entries))
            .and("Evicted blocks", Value::count(cache.evictions))
            .and("Connections", Value::count(self.identity.shared.connections() as u64))
            .and("Open scanners", Value::count(self.server.scanners().open_count() as u64))
    }

    /// The second level of the block cache; `None` if there is none.
    fn second_level_cache(&self) -> Option<Facts> {
        let cache = self.server.second_level_cache_stats()?;
        let state = if cache.is_enabled { "in use" } else { "disabled: the SSD does not respond" };
        let facts = Facts::new("Second-level block cache")
            .and("State", Value::text(state))
            .and("Size", Value::bytes(cache.capacity_bytes))
            .and("Used", Value::bytes(cache.used_bytes))
            .and("Memory of the index", Value::bytes(cache.memory_bytes))
            .and("Cached blocks", Value::count(cache.blocks))
            .and("Hits", Value::count(cache.hits))
            .and("Misses", Value::count(cache.misses))
            .and("Evicted blocks", Value::count(cache.evictions))
            .and("Blocks written", Value::count(cache.writes))
            .and("Used blocks copied", Value::count(cache.copies))
            .and("Blocks dropped", Value::count(cache.dropped_blocks()))
            .and("Bytes written (wear)", Value::bytes(cache.written_bytes))
            .and("Damaged records", Value::count(cache.mismatches))
            .and("Errors and timeouts", Value::count(cache.read_errors + cache.timeouts));
        Some(facts)
    }
}

/// The regions that the page lists.
fn selected_regions<'a>(
    regions: &'a [RegionSnapshot],
    query: &Query,
) -> Result<Vec<&'a RegionSnapshot>, Refusal> {
    let Some(name) = query.get("table") else { return Ok(regions.iter().collect()) };
    let table = crate::pages::common::table_of(name)?;
    let of_table: Vec<&RegionSnapshot> = regions.iter().filter(|one| *one.table() == table).collect();
    if of_table.is_empty() {
        return Err(Refusal::missing(format!("No region of the table {name} is served here.")));
    }
    Ok(of_table)
}

fn plots(window: &Window) -> Plots {
    let plots = vec![
        plot(window, "Rows per second", Unit::PerSecond, &[("read", "reads"), ("written", "writes")]),
        times(window, "Get", "get"),
        times(window, "Scan call", "scan"),
        times(window, "Single-row put", "put"),
        times(window, "Batch put", "put_batch"),
        times(window, "Log sync", "sync"),
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
            "Failed calls",
            Unit::PerSecond,
            &[
                ("failed", "failed_calls"),
                ("rejected", "refused_calls"),
                ("writes rejected", "refused_writes"),
            ],
        ),
        plot(window, "CPU cores", Unit::Cores, &[("busy", "cpu")]),
    ];
    Plots { heading: "History".into(), note: note(window), span: span(window), plots }
}

fn count_text(count: u64) -> String {
    Value::quantity(count as f64, Unit::Count).as_text().to_owned()
}

fn median_text(window: &Window, name: &str) -> String {
    match window.last(name) {
        Some(value) => format!("p50 {}", Value::quantity(value, Unit::Microseconds).as_text()),
        None => "no recent calls".to_owned(),
    }
}

/// Puts are single or in batches. Next to the single p99 in the tile, this shows the p99 of
/// batches.
fn batch_p99_text(window: &Window) -> String {
    match window.last("put_batch_p99") {
        Some(value) => format!("batch {}", Value::quantity(value, Unit::Microseconds).as_text()),
        None => median_text(window, "put_p50"),
    }
}

fn cache_text(cache: &cache::Stats) -> String {
    format!("{} cached", Value::bytes(cache.weight_bytes).as_text())
}
