//! `docs/metrics.md`, made from the declarations.

use std::collections::BTreeMap;
use std::fmt::Write;

use ::master::instruments::{AssignmentInstruments, SnapshotInstruments};
use base::history::Series;
use base::metrics::{Declared, Declares, Kind, Unit};
use engine::instruments::{ServerInstruments, TableLatencies, TableWork};
use fs::measured::{FileInstruments, ReadInstruments};
use regionserver::clock_jumps::ClockInstruments;
use regionserver::instruments::{AdminInstruments, RequestInstruments};
use regionserver::pauses::PauseInstruments;
use regionserver::users::UserTimes;
use rpc::server::CallInstruments;
use wal::{LogInstruments, NoReplicas, TableFigures};

use crate::history;

use super::{absent, connections, master, process, region_server, regions, sums, tables, users};

const HEAD: &str = "\
<!-- Made from the declarations in the crates; a test says how to make it anew. -->

# Metrics

Both roles answer `/jmx` on their page ports (16010 and 16030) as HBase does: beans and attributes have HBase's names, so that
dashboards and exporters that know HBase find what they look for. `?qry=PATTERN` chooses beans, `?get=BEAN::ATTRIBUTE` one
attribute, `?description=true` adds what this page says, `?callback=NAME` calls a function with it.

`/prometheus` has the same for Prometheus, with names as HBase 2.6 makes them: `blockCacheHitCount` of `RegionServer,sub=Server` is
`server_block_cache_hit_count`, calls (`sub=IPC`) begin with their server's name, tags are labels. `?qry=PART` chooses metrics with this
part in their names, `?description=true` adds `# HELP`. What HBase has no name for begins with `grampus_`: the bean `sub=Grampus`, and
times once more as summaries in seconds, since HBase's are whole milliseconds: `Get` of `RegionServer,sub=Server` is
`grampus_server_get_seconds` too. [grafana.json](grafana.json) is a dashboard of these for Grafana (Dashboards, New, Import).

Names of beans begin with `Hadoop:service=HBase,name=`, which is left out here. Each bean has the tags `Context` and `Hostname`.
What kind an attribute is says which names it has:

| kind | names | meaning |
|---|---|---|
| counter | `NAME` | grows while the process lives |
| gauge | `NAME` | the value of this moment |
| tag | `tag.NAME` | a text |
| meter | `NAME_count`, `NAME_mean_rate`, `_1min_rate`, `_5min_rate`, `_15min_rate` | how often, and how often in a second |
| histogram | `NAME_num_ops`; `NAME_min`, `_max`, `_mean`, `_25th_percentile`, `_median`, `_75th_percentile`, `_90th_percentile`, `_95th_percentile`, `_98th_percentile`, `_99th_percentile`, `_99.9th_percentile` | how many ever; the others tell of the last interval of ten seconds or more, from look to look, within three in a hundred |
| times | as a histogram; `NAME_TimeRangeCount_A-B` | in milliseconds; how many of the interval took more than A and up to B, where there were any |
| sizes | as a histogram; `NAME_SizeRangeCount_A-B` | in bytes; the same of sizes |

Attributes of a region begin with `Namespace_NS_table_T_region_R_metric_`, those of a table with `Namespace_NS_table_T_metric_`, where R
is the region's encoded name; of a store and of a family there is `_store_F` or `_columnfamily_F` before `_metric_`. In `sub=WAL` a
table's begin with its name. They go when the last region goes. Those of a user begin with `User_U_metric_`. What regions have
together stands in `RegionServer,sub=Server`, and for each table in `RegionServer,sub=Tables`.

On `/jmx` there are also the beans that a Java virtual machine has, as far as those who watch servers read them:
`java.lang:type=Memory` (the heap is the memory of the process), `Runtime`, `OperatingSystem`, `Threading`, and a
`GarbageCollector` that never collects.

What HBase has and Grampus has not is there as 0, and listed at the end of each bean.

## Metrics that are sent

The same metrics go, once in a period, to whoever is named in the options (the section of this name in
[config.md](config.md)), or in `hadoop-metrics2-hbase.properties` beside `hbase-site.xml`, which HBase's users have:
sinks of the classes `FileSink`, `StatsDSink`, `GraphiteSink` and `PrometheusMetricsSink` (for which there is nothing
to do), with their keys, `period`, `context` and filters by glob or regular expression. The log says at the start what
was understood; what is not known is ignored with a warning, a value that cannot be meant stops the start.

A bean is a record. Its context is its tag `Context`; its name is the bean's part (`Server`, `WAL`, `Regions`), for
calls (`sub=IPC`) the server's (`RegionServer`, `Master`). Its tags are those of the bean, then `Context` and
`Hostname`; of `JvmMetrics` and `UgiMetrics` `Context` is the first. So all of it is named as HBase's sinks name it:

| sink | what is sent |
|---|---|
| file | `MILLISECONDS CONTEXT.RECORD: TAG=TEXT, …, METRIC=VALUE, …`, a line a record, behind what is in the file. Moved away by logrotate or removed, it is made anew |
| StatsD | `[HOST.]SERVICE.CONTEXT.RECORD.METRIC:VALUE\\|TYPE` in datagrams of at most 1432 bytes, HOST without its domain, SERVICE the tag `ProcessName` where there is one |
| Graphite | `PREFIX.CONTEXT.RECORD.TAG=TEXT.….METRIC VALUE SECONDS` over TCP |

To StatsD gauges go as `g`. **Counters go as `c` with all that was counted since the start**, not with what came since
the last time, although StatsD adds up what it gets: this is what Hadoop's StatsDSink sends, so that the figure a
dashboard has of a flush interval is the count itself, of which it takes the derivative. A daemon that adds up for good
(collectd's `statsd` plugin) shows sums of counts, as with HBase; its rates are of use from Graphite or Prometheus.
Where Hadoop sends what a receiver cannot read, names differ: `:`, `|`, `@`, `#` and blanks in StatsD's are `_`, as are
blanks in Graphite's tags; a HOST that is an address has `-` for its dots; a gauge below 0 is set to 0 first, since a
sign means a change; without `service.name` SERVICE is the role, where Hadoop writes `null`; without `metrics_prefix` a
path has no dot before it.

A sink that cannot send costs a line in the log, told once until it can again, and its own thread, which is of low
priority; nobody waits for it. What Graphite does not take waits for it, the newest 4 MiB, and has its time with it; it
is tried again after pauses of up to a minute. A file gets nothing of periods in which it cannot be written. Where
regions are many, most of all metrics are theirs: `grampus.sink.regions` leaves them out, filters anything else.

A build with `--features otlp` (of crate `server`) sends to a collector of OpenTelemetry too, by OTLP over HTTP, plain:
the options are those of OpenTelemetry's agent for Java, as HBase's users give them to it
(`otel.exporter.otlp.endpoint` and others in [config.md](config.md)). Metrics are `hbase.CONTEXT.RECORD.METRIC`,
counters as sums since the start, all others as gauges; tags of a record are attributes. With `otel.traces.sampler.arg`
above 0 that part of calls is traced, by two spans as in HBase: `RpcServer.process`, from the arrival of a request to
the end of its call, and below it one by the name of service and method (`hbase.pb.ClientService/Get`), from its
beginning, with `rpc.system` (`HBASE_RPC`), `rpc.service` and `rpc.method`, and what went wrong as an event. A
client's trace that comes with a request is gone on with, as it says; what a call does in regions has no spans.

";

const PAST: &str = "\
## The past

Both roles keep the last hour of a few figures in process: a sample every ten seconds (`grampus.history.period`), 360 of them. The
status pages draw them, and `/history` tells them as JSON: `period_ms` is the time between two values, `end_ms` when the last was
taken, and each of `series` has its `name`, `unit`, `help` and 360 `values`, the oldest first. A value is `null` where nothing is
known: before the start, while the machine slept, where there was no request whose time could be told. `?series=NAME,NAME` chooses
some. Times are of the interval since the sample before, however often others look at the same histograms by `/jmx`.

";

/// What is shown.
const SHOWN: &[&[Declared]] = &[
    region_server::ServerFigures::DECLARED,
    sums::Sums::DECLARED,
    RequestInstruments::DECLARED,
    AdminInstruments::DECLARED,
    ServerInstruments::DECLARED,
    region_server::CacheFigures::DECLARED,
    region_server::KindFigures::DECLARED,
    ReadInstruments::DECLARED,
    PauseInstruments::DECLARED,
    ClockInstruments::DECLARED,
    regions::OneRegion::DECLARED,
    tables::AllTables::DECLARED,
    tables::OneTable::DECLARED,
    regions::OneStore::DECLARED,
    TableWork::DECLARED,
    TableLatencies::DECLARED,
    region_server::MemoryFigures::DECLARED,
    CallInstruments::DECLARED,
    connections::ConnectionFigures::DECLARED,
    connections::LostConnections::DECLARED,
    region_server::MemoryLimits::DECLARED,
    region_server::DiskFigures::DECLARED,
    users::UsageFigures::DECLARED,
    users::AllUsers::DECLARED,
    UserTimes::DECLARED,
    LogInstruments::DECLARED,
    TableFigures::DECLARED,
    FileInstruments::DECLARED,
    region_server::FileFaults::DECLARED,
    region_server::CorruptFiles::DECLARED,
    master::LiveServers::DECLARED,
    master::MasterFigures::DECLARED,
    master::AssignmentFigures::DECLARED,
    AssignmentInstruments::DECLARED,
    master::BalancerFigures::DECLARED,
    SnapshotInstruments::DECLARED,
    process::ProcessFigures::DECLARED,
    process::SinkFigures::DECLARED,
];

/// What is shown as 0.
const ABSENT: &[&[Declared]] = &[
    absent::OtherTiers::DECLARED,
    absent::Distribution::DECLARED,
    absent::Mobs::DECLARED,
    absent::Unblocked::DECLARED,
    absent::Handlers::DECLARED,
    absent::Tuner::DECLARED,
    NoReplicas::DECLARED,
    absent::Replication::DECLARED,
    regions::NotOfRegions::DECLARED,
    tables::NotOfTables::DECLARED,
    users::NotOfUsers::DECLARED,
    absent::Plans::DECLARED,
    absent::Inconsistencies::DECLARED,
    absent::Balancing::DECLARED,
    absent::LogSplits::DECLARED,
    absent::OldProcedures::DECLARED,
    absent::SpaceQuotas::DECLARED,
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
    let _ = writeln!(text, "Those of a {role}:\n\n| series | unit | meaning |\n|---|---|---|");
    for Series { name, unit, help } in series {
        let _ = writeln!(text, "| `{name}` | {} | {help} |", unit.name());
    }
    text.push('\n');
}

fn both_roles(bean: &str) -> &'static str {
    match bean {
        "RegionServer,sub=IPC" => "\nThe master has the same as `Master,sub=IPC`.\n",
        "RegionServer,sub=Grampus" => {
            "\nOf these the master has what connections are about, as `Master,sub=Grampus`.\n"
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
        Unit::PerSecond => "a second",
        Unit::Percent => "%",
        Unit::Share => "of 1",
    }
}

#[test]
#[allow(clippy::disallowed_methods)] // A page of the repository, no data.
fn the_page_is_up_to_date() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let expected = document();
    if std::env::var_os("REGENERATE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/metrics.md is old: REGENERATE=1 cargo test -p server --bin grampus document"
    );
}
