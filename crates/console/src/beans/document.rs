//! Generates `docs/metrics.md` from the declarations.

use std::collections::BTreeMap;
use std::fmt::Write;

use ::master::instruments::{AssignmentInstruments, RecoveryInstruments, SnapshotInstruments};
use base::history::Series;
use base::metrics::{Declared, Declares, Kind, Unit};
use engine::instruments::{MobInstruments, ServerInstruments, TableLatencies, TableWork};
use fs::measured::{FileInstruments, ReadInstruments};
use regionserver::clock_jumps::ClockInstruments;
use regionserver::instruments::{AdminInstruments, RequestInstruments};
use regionserver::pauses::PauseInstruments;
use regionserver::replication_sink::SinkInstruments;
use regionserver::users::UserTimes;
use rpc::server::CallInstruments;
use wal::{LogInstruments, NoSlowSyncRolls, TableMetrics};

use crate::history;

use super::{absent, connections, master, process, region_server, regions, sums, tables, users, volumes};

const HEAD: &str = "\
<!-- Generated from the declarations in the crates: REGENERATE=1 cargo test -p console@0.1.0 document -->

# Metrics

Both roles serve `/jmx` on their page ports (16010 and 16030), as HBase does. Beans and attributes have HBase's names, so dashboards
and exporters for HBase work unchanged.

| parameter of `/jmx` | meaning |
|---|---|
| `?qry=PATTERN` | only beans that match the pattern |
| `?get=BEAN::ATTRIBUTE` | one attribute |
| `?description=true` | with the descriptions on this page |
| `?callback=NAME` | as a call of this JavaScript function (JSONP) |

`/prometheus` serves the same metrics to Prometheus, named as by HBase 2.6: `blockCacheHitCount` of `RegionServer,sub=Server` is
`server_block_cache_hit_count`, names of call metrics (`sub=IPC`) start with their server's name, and tags are labels. `?qry=PART`
selects the metrics whose names contain this part; `?description=true` adds `# HELP`.

Metrics without an HBase name start with `grampus_`. They are the bean `sub=Grampus`, and all latencies a second time as summaries in
seconds, because HBase's are in whole milliseconds: `Get` of `RegionServer,sub=Server` is also `grampus_server_get_seconds`.
[grafana.json](grafana.json) is a Grafana dashboard of these metrics (Dashboards, New, Import).

Names of beans start with `Hadoop:service=HBase,name=`, which is omitted here. Each bean has the tags `Context` and `Hostname`. The
kind of an attribute determines its names:

| kind | names | meaning |
|---|---|---|
| counter | `NAME` | total since the start of the process |
| gauge | `NAME` | current value |
| tag | `tag.NAME` | text |
| meter | `NAME_count`, `NAME_mean_rate`, `_1min_rate`, `_5min_rate`, `_15min_rate` | number of events, and events per second |
| histogram | `NAME_num_ops`; `NAME_min`, `_max`, `_mean`, `_25th_percentile`, `_median`, `_75th_percentile`, `_90th_percentile`, `_95th_percentile`, `_98th_percentile`, `_99th_percentile`, `_99.9th_percentile` | `_num_ops` is the total number of values. The others cover the last interval between two reads, of at least ten seconds, and are accurate to 3 % |
| times | as a histogram; `NAME_TimeRangeCount_A-B` | in milliseconds; the number of values in the interval above A and up to B, shown if it is not 0 |
| sizes | as a histogram; `NAME_SizeRangeCount_A-B` | in bytes; likewise |

Attributes of a region start with `Namespace_NS_table_T_region_R_metric_`, where R is the region's encoded name; those of a table start
with `Namespace_NS_table_T_metric_`. Attributes of a store have `_store_F` before `_metric_`, those of a column family
`_columnfamily_F`. In `sub=WAL`, attributes of a table start with the table's name. All of these disappear with the table's last region
on the server. Attributes of a user start with `User_U_metric_`. Sums over regions are in `RegionServer,sub=Server`, and for each table
in `RegionServer,sub=Tables`.

Each volume of the [storage tiers](tiers.md) has a bean `RegionServer,sub=Grampus,volume=N`, with the tags `Tier`, `Class` and
`Directory`. In `/prometheus` these are the labels of `grampus_volume_total` and the others:
`grampus_volume_free{tier=\"fast\",class=\"nvme\",directory=\"/nvme0/grampus\"}`. `/jmx` also has `volumeFailure`, the reason why a
volume failed. StatsD has no labels, so there the metrics of all volumes have the same names.

`/jmx` also has the beans of a Java virtual machine that monitoring tools read: `java.lang:type=Memory` (the heap is the memory of the
process), `Runtime`, `OperatingSystem`, `Threading`, and a `GarbageCollector` that never collects.

Attributes of HBase that have no meaning in Grampus are 0 or empty. They are listed at the end of each bean.

Metrics can also be pushed to a file, StatsD, Graphite or OpenTelemetry: see [sinks.md](sinks.md).

";

const PAST: &str = "\
## History

Both roles keep the last hour of selected metrics in memory: 360 samples, one every ten seconds (`grampus.history.period`). The status
pages plot them, and `/history` returns them as JSON: `period_ms` is the time between two values, `end_ms` the time of the last one.
Each entry of `series` has a `name`, `unit`, `help` and 360 `values`, oldest first. A value is `null` if there is no measurement: before
the start, while the machine was asleep, or if no request gave a latency. `?series=NAME,NAME` selects series. Latencies cover the
interval since the previous sample; reads of the same histograms through `/jmx` do not affect them.

";

/// Attributes that have values.
const SHOWN: &[&[Declared]] = &[
    region_server::ServerMetrics::DECLARED,
    sums::Sums::DECLARED,
    RequestInstruments::DECLARED,
    AdminInstruments::DECLARED,
    SinkInstruments::DECLARED,
    ServerInstruments::DECLARED,
    region_server::CacheMetrics::DECLARED,
    region_server::SecondLevelMetrics::DECLARED,
    region_server::SecondLevelWrites::DECLARED,
    region_server::BlockKindMetrics::DECLARED,
    region_server::MobFileMetrics::DECLARED,
    MobInstruments::DECLARED,
    ReadInstruments::DECLARED,
    PauseInstruments::DECLARED,
    ClockInstruments::DECLARED,
    regions::RegionAttributes::DECLARED,
    tables::AllTables::DECLARED,
    tables::TableAttributes::DECLARED,
    regions::StoreAttributes::DECLARED,
    TableWork::DECLARED,
    TableLatencies::DECLARED,
    region_server::MemoryMetrics::DECLARED,
    CallInstruments::DECLARED,
    connections::ConnectionMetrics::DECLARED,
    connections::LostConnections::DECLARED,
    region_server::MemoryLimits::DECLARED,
    region_server::DiskMetrics::DECLARED,
    volumes::VolumeMetrics::DECLARED,
    volumes::VolumeTraffic::DECLARED,
    users::UsageMetrics::DECLARED,
    users::AllUsers::DECLARED,
    UserTimes::DECLARED,
    LogInstruments::DECLARED,
    TableMetrics::DECLARED,
    FileInstruments::DECLARED,
    region_server::FileFaults::DECLARED,
    region_server::CorruptFiles::DECLARED,
    master::RegionServerNames::DECLARED,
    master::MasterIdentity::DECLARED,
    master::MasterMetrics::DECLARED,
    master::AssignmentMetrics::DECLARED,
    AssignmentInstruments::DECLARED,
    master::BalancerMetrics::DECLARED,
    SnapshotInstruments::DECLARED,
    RecoveryInstruments::DECLARED,
    process::ProcessMetrics::DECLARED,
    process::SinkMetrics::DECLARED,
];

/// Attributes that are always 0 or empty.
const ABSENT: &[&[Declared]] = &[
    absent::NoTrailersAndPools::DECLARED,
    absent::NoRemoteFiles::DECLARED,
    absent::NoBlockedWrites::DECLARED,
    absent::NoHandlers::DECLARED,
    absent::NoTuner::DECLARED,
    NoSlowSyncRolls::DECLARED,
    absent::NoReplication::DECLARED,
    regions::AbsentRegionMetrics::DECLARED,
    tables::AbsentTableMetrics::DECLARED,
    users::AbsentUserMetrics::DECLARED,
    absent::NoNormalizer::DECLARED,
    absent::NoInconsistencies::DECLARED,
    absent::NoBalancing::DECLARED,
    absent::NoLogSplits::DECLARED,
    absent::NoProcedureLogs::DECLARED,
    absent::NoSpaceQuotas::DECLARED,
    process::NoVirtualMachine::DECLARED,
    process::NoLogins::DECLARED,
    process::NoSinks::DECLARED,
];

/// The text of `docs/metrics.md`.
fn document() -> String {
    let mut beans: BTreeMap<&str, (Vec<&Declared>, Vec<&Declared>)> = BTreeMap::new();
    SHOWN.iter().copied().flatten().for_each(|of| beans.entry(of.bean).or_default().0.push(of));
    ABSENT.iter().copied().flatten().for_each(|of| beans.entry(of.bean).or_default().1.push(of));
    let mut text = HEAD.to_owned();
    for (bean, (shown, absent)) in beans {
        let _ = writeln!(text, "## `{bean}`\n{}", both_roles(bean));
        put_table(&mut text, &shown);
        if !absent.is_empty() {
            let _ = writeln!(text, "Always 0 or empty:\n");
            put_table(&mut text, &absent);
        }
    }
    text.push_str(PAST);
    let series = history::region_server::SERIES.iter().map(|(series, _)| series);
    put_series(&mut text, "region server", series);
    put_series(&mut text, "master", history::master::SERIES.iter().map(|(series, _)| series));
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn put_series<'a>(text: &mut String, role: &str, series: impl Iterator<Item = &'a Series>) {
    let _ = writeln!(text, "Series of a {role}:\n\n| series | unit | meaning |\n|---|---|---|");
    for Series { name, unit, help } in series {
        let _ = writeln!(text, "| `{name}` | {} | {help} |", unit.name());
    }
    text.push('\n');
}

fn both_roles(bean: &str) -> &'static str {
    match bean {
        "RegionServer,sub=IPC" => "\nThe master has the same attributes in `Master,sub=IPC`.\n",
        "RegionServer,sub=Grampus,volume=N" => {
            "\nOne bean for each volume. Counters are totals since the start.\n"
        }
        "RegionServer,sub=Grampus" => {
            "\nThe master has the attributes about connections in `Master,sub=Grampus`.\n"
        }
        _ => "",
    }
}

fn put_table(text: &mut String, attributes: &[&Declared]) {
    if attributes.is_empty() {
        return;
    }
    let _ = writeln!(text, "| attribute | kind | unit | meaning |\n|---|---|---|---|");
    for of in attributes {
        let _ = writeln!(text, "| `{}` | {} | {} | {} |", of.name, kind(of.kind), unit(of.unit), of.help);
    }
    text.push('\n');
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Tag => "tag",
        Kind::Histogram => "histogram",
        Kind::Times => "times",
        Kind::Sizes => "sizes",
        Kind::Meter => "meter",
    }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "",
        Unit::Bytes => "bytes",
        Unit::Mebibytes => "MiB",
        Unit::Milliseconds => "ms",
        Unit::AverageMilliseconds => "ms on average",
        Unit::EpochMilliseconds => "ms since 1970",
        Unit::PerSecond => "per second",
        Unit::Percent => "%",
        Unit::Share => "0 to 1",
    }
}

#[test]
#[allow(clippy::disallowed_methods)] // A file of the repository, not of a data directory.
fn the_page_is_up_to_date() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let expected = document();
    if std::env::var_os("REGENERATE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/metrics.md is out of date; run: REGENERATE=1 cargo test -p console@0.1.0 document"
    );
}
