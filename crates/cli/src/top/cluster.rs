//! One sample of the cluster: the master's status, as a summary and as records of regions, servers
//! and users' clients.

use bytes::Bytes;
use cell::region::{ServerName, encoded_name_of};

use super::field::Field;
use super::rates::{Counters, RateTracker, Rates};
use super::record::Record;
use super::value::Value;
use crate::shell::text::{binary, ruby_time};

/// The sections of the master's status that are needed.
pub(super) const OPTIONS: [proto::Option; 5] = [
    proto::Option::HbaseVersion,
    proto::Option::ClusterId,
    proto::Option::LiveServers,
    proto::Option::DeadServers,
    proto::Option::RegionsInTransition,
];

/// The cluster as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Summary {
    pub(super) now_ms: u64,
    pub(super) version: String,
    pub(super) cluster_id: String,
    pub(super) live_servers: usize,
    pub(super) dead_servers: usize,
    pub(super) regions: usize,
    pub(super) regions_in_transition: usize,
    pub(super) requests_per_second: f64,
}

impl Summary {
    /// Regions per server, on average.
    pub(super) fn average_load(&self) -> f64 {
        match self.live_servers {
            0 => 0.0,
            servers => self.regions as f64 / servers as f64,
        }
    }
}

/// One sample of the cluster.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Sample {
    pub(super) summary: Summary,
    /// A record for each region.
    pub(super) regions: Vec<Record>,
    /// Records of the servers' own values.
    pub(super) servers: Vec<Record>,
    /// A record for each combination of user, client host and server.
    pub(super) clients: Vec<Record>,
}

/// Samples the cluster repeatedly, and stores the previous counters.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    regions: RateTracker,
    clients: RateTracker,
}

impl Sampler {
    /// Converts `status`, as of `now_ms`, to a sample. Computes rates since the previous one.
    pub(super) fn sample(&mut self, status: &proto::ClusterStatus, now_ms: u64) -> Sample {
        let mut sample = Sample::default();
        let mut requests_per_second = 0.0;
        for live in &status.live_servers {
            let server = Server::of(live, now_ms);
            let mut counted = 0.0;
            for load in &live.server_load.region_loads {
                let (record, rates) = self.region(&server, load);
                sample.regions.push(record);
                counted += rates.requests();
            }
            for user in &live.server_load.user_loads {
                sample.clients.extend(self.users(&server, user));
            }
            // If a server does not report its rate, the rates of its regions are added up.
            requests_per_second += live.server_load.number_of_requests.map_or(counted, |rate| rate as f64);
            sample.servers.push(server.record(&live.server_load));
        }
        self.regions.end_sample();
        self.clients.end_sample();
        sample.summary = Summary { requests_per_second, ..summary(status, now_ms, sample.regions.len()) };
        sample
    }

    fn region(&mut self, server: &Server, load: &proto::RegionLoad) -> (Record, Rates) {
        let name = &load.region_specifier.value;
        let counters = Counters {
            reads: load.read_requests_count(),
            filtered_reads: load.filtered_read_requests_count(),
            writes: load.write_requests_count(),
        };
        // A region that moved counts from 0 on its new server, and may exceed its old counter soon.
        // Therefore the key contains the server.
        let key = [server.long.as_bytes(), b"/", name].concat();
        let rates = self.regions.rates(key, server.report_ms, counters);
        let mut record = Record::of(region_names(name));
        for (field, value) in server.names().into_iter().chain(rate_values(&rates)).chain(sizes(load)) {
            record.set(field, value);
        }
        record.set(Field::RegionCount, Value::Count(1));
        (record, rates)
    }

    fn users(&mut self, server: &Server, user: &proto::UserLoad) -> Vec<Record> {
        let mut records = Vec::new();
        for client in &user.client_metrics {
            let counters = Counters {
                reads: client.read_requests_count(),
                filtered_reads: client.filtered_requests_count(),
                writes: client.write_requests_count(),
            };
            let key = format!("{}\0{}\0{}", server.long, user.user_name, client.host_name);
            let rates = self.clients.rates(key.into_bytes(), server.report_ms, counters);
            let names = [(Field::User, text(&user.user_name)), (Field::Client, text(&client.host_name))];
            records.push(Record::of(names.into_iter().chain(rate_values(&rates))));
        }
        records
    }
}

/// A server's names.
struct Server {
    short: String,
    long: String,
    /// Time of the server's report.
    report_ms: u64,
}

impl Server {
    fn of(live: &proto::LiveServerInfo, now_ms: u64) -> Server {
        let report_ms = live.server_load.report_end_time.unwrap_or(now_ms);
        match ServerName::try_from(&live.server) {
            Ok(name) => {
                Server { short: format!("{}:{}", name.host, name.port), long: name.to_string(), report_ms }
            }
            Err(_) => Server {
                short: live.server.host_name.clone(),
                long: live.server.host_name.clone(),
                report_ms,
            },
        }
    }

    fn names(&self) -> [(Field, Value); 2] {
        [(Field::RegionServer, text(&self.short)), (Field::LongRegionServer, text(&self.long))]
    }

    fn record(&self, load: &proto::ServerLoad) -> Record {
        let heaps = [
            (Field::UsedHeap, megabytes(load.used_heap_mb())),
            (Field::MaxHeap, megabytes(load.max_heap_mb())),
        ];
        Record::of(self.names().into_iter().chain(heaps))
    }
}

fn summary(status: &proto::ClusterStatus, now_ms: u64, regions: usize) -> Summary {
    let version = status.hbase_version.as_ref().map(|version| version.version.as_str());
    let cluster_id = status.cluster_id.as_ref().map(|id| id.cluster_id.as_str());
    Summary {
        now_ms,
        version: binary(version.unwrap_or_default().as_bytes()),
        cluster_id: binary(cluster_id.unwrap_or_default().as_bytes()),
        live_servers: status.live_servers.len(),
        dead_servers: status.dead_servers.len(),
        regions,
        regions_in_transition: status.regions_in_transition.len(),
        requests_per_second: 0.0,
    }
}

/// A name chosen by users, escaped so that it is safe on a terminal.
fn text(shown: &str) -> Value {
    Value::Text(binary(shown.as_bytes()))
}

fn megabytes(size: u32) -> Value {
    Value::Megabytes(f64::from(size))
}

fn rate_values(rates: &Rates) -> [(Field, Value); 4] {
    [
        (Field::Requests, Value::Rate(rates.requests())),
        (Field::Reads, Value::Rate(rates.reads)),
        (Field::FilteredReads, Value::Rate(rates.filtered_reads)),
        (Field::Writes, Value::Rate(rates.writes)),
    ]
}

fn sizes(load: &proto::RegionLoad) -> [(Field, Value); 9] {
    let (compacting, compacted) = (load.total_compacting_k_vs(), load.current_compacted_k_vs());
    let progress = if compacting == 0 { 0.0 } else { 100.0 * compacted as f64 / compacting as f64 };
    [
        (Field::StoreFileSize, megabytes(load.storefile_size_mb())),
        (Field::UncompressedStoreFileSize, megabytes(load.store_uncompressed_size_mb())),
        (Field::StoreFiles, Value::Count(u64::from(load.storefiles()))),
        (Field::MemstoreSize, megabytes(load.mem_store_size_mb())),
        (Field::Locality, Value::Share(f64::from(load.data_locality()))),
        (Field::CompactingCells, Value::Count(compacting)),
        (Field::CompactedCells, Value::Count(compacted)),
        (Field::CompactionProgress, Value::Percent(progress)),
        (Field::LastMajorCompaction, Value::Text(format_time(load.last_major_compaction_ts()))),
    ]
}

/// A time in UTC; empty for 0, which means never.
fn format_time(ms: u64) -> String {
    match i64::try_from(ms) {
        Ok(0) | Err(_) => String::new(),
        Ok(ms) => ruby_time(ms),
    }
}

/// Splits a region's full name: `table,start key,region id[_replica][.encoded.]`. A start key may
/// contain commas.
fn region_names(name: &Bytes) -> [(Field, Value); 7] {
    let first = name.iter().position(|byte| *byte == b',').unwrap_or(name.len());
    let last = name.iter().rposition(|byte| *byte == b',').unwrap_or(name.len());
    let table = &name[..first];
    let (namespace, qualifier) = match table.iter().position(|byte| *byte == b':') {
        Some(at) => (&table[..at], &table[at + 1..]),
        None => (&b"default"[..], table),
    };
    let start_key = name.get(first + 1..last).unwrap_or_default();
    let id = name.get(last + 1..).unwrap_or_default();
    let id = id.split(|byte| *byte == b'.').next().unwrap_or_default();
    let mut id = id.splitn(2, |byte| *byte == b'_');
    let shown = |bytes: &[u8]| Value::Text(binary(bytes));
    [
        (Field::RegionName, shown(name)),
        (Field::Namespace, shown(namespace)),
        (Field::Table, shown(qualifier)),
        (Field::StartKey, shown(start_key)),
        (Field::StartCode, shown(id.next().unwrap_or_default())),
        (Field::ReplicaId, shown(id.next().unwrap_or_default())),
        (Field::Region, Value::Text(encoded_name_of(name).unwrap_or_default().to_string())),
    ]
}

#[cfg(test)]
pub(crate) mod tests {
    use cell::region::RegionInfo;
    use cell::schema::TableName;

    use super::*;

    /// The load of a region, with these numbers of read requests and store files.
    pub(crate) fn region(table: &str, start: &str, reads: u64, files: u32) -> proto::RegionLoad {
        let table = TableName::parse(table).unwrap();
        let region = RegionInfo::new(table, Bytes::from(start.to_string()), Bytes::new(), 1_700_000_000_000);
        proto::RegionLoad {
            region_specifier: proto::RegionSpecifier { r#type: 1, value: region.name() },
            read_requests_count: Some(reads),
            storefiles: Some(files),
            ..Default::default()
        }
    }

    /// A server that reports these regions.
    pub(crate) fn server(host: &str, regions: &[proto::RegionLoad]) -> proto::LiveServerInfo {
        let name = ServerName { host: host.into(), port: 16020, start_code: 7 };
        let server_load = proto::ServerLoad {
            region_loads: regions.to_vec(),
            used_heap_mb: Some(100),
            max_heap_mb: Some(200),
            report_end_time: Some(1_000),
            ..Default::default()
        };
        proto::LiveServerInfo { server: (&name).into(), server_load }
    }

    pub(crate) fn status(servers: &[proto::LiveServerInfo]) -> proto::ClusterStatus {
        proto::ClusterStatus {
            hbase_version: Some(proto::HBaseVersionFileContent { version: "2.6.4".into() }),
            cluster_id: Some(proto::ClusterId { cluster_id: "the-id".into() }),
            live_servers: servers.to_vec(),
            ..Default::default()
        }
    }

    /// A first sample.
    pub(crate) fn sample(servers: &[proto::LiveServerInfo]) -> Sample {
        Sampler::default().sample(&status(servers), 1_700_000_000_000)
    }

    /// The same servers a second later, with `reads` more read requests per region.
    pub(crate) fn later(servers: &[proto::LiveServerInfo], reads: u64) -> Vec<proto::LiveServerInfo> {
        let mut servers = servers.to_vec();
        for server in &mut servers {
            server.server_load.report_end_time = Some(2_000);
            for region in &mut server.server_load.region_loads {
                region.read_requests_count = Some(region.read_requests_count() + reads);
            }
        }
        servers
    }

    #[test]
    fn the_summary_counts_servers_and_regions() {
        let servers = [server("a", &[region("t", "", 0, 0), region("t", "m", 0, 0)]), server("b", &[])];
        let mut sampler = Sampler::default();
        sampler.sample(&status(&servers), 5);
        let mut changed = status(&later(&servers, 30));
        changed.dead_servers = vec![(&ServerName { host: "d".into(), port: 1, start_code: 1 }).into()];
        let Summary { requests_per_second, regions, live_servers, dead_servers, .. } =
            sampler.sample(&changed, 5).summary;
        assert_eq!((live_servers, dead_servers, regions), (2, 1, 2));
        // 30 for each of two regions; the servers do not report their rates.
        assert_eq!(requests_per_second, 60.0);
        assert_eq!(sampler.sample(&changed, 5).summary.average_load(), 1.0);
        changed.live_servers[0].server_load.number_of_requests = Some(7);
        assert_eq!(sampler.sample(&changed, 5).summary.requests_per_second, 7.0);
    }

    #[test]
    fn names_of_regions_are_parsed_and_escaped() {
        let fields = [Field::Namespace, Field::Table, Field::StartKey, Field::StartCode, Field::ReplicaId];
        let check = |name: &'static [u8], expected: [&str; 5]| {
            let record = Record::of(region_names(&Bytes::from_static(name)));
            assert_eq!(fields.map(|field| record.text(field)), expected.map(String::from), "{name:?}");
        };
        check(
            b"n:t,a,b\x1b[2J\xff,17_0001.0123456789abcdef0123456789abcdef.",
            ["n", "t", r"a,b\x1B[2J\xFF", "17", "0001"],
        );
        check(b"hbase:meta,,1", ["hbase", "meta", "", "1", ""]);
        check(b"nonsense", ["default", "nonsense", "", "", ""]);
        check(b"", ["default", "", "", "", ""]);
    }

    #[test]
    fn progress_is_that_of_compactions_that_run() {
        let load = proto::RegionLoad {
            total_compacting_k_vs: Some(200),
            current_compacted_k_vs: Some(50),
            last_major_compaction_ts: Some(1_700_000_000_000),
            ..region("t", "", 0, 0)
        };
        let record = Record::of(sizes(&load));
        assert_eq!(record.text(Field::CompactionProgress), "25.00%");
        assert_eq!(record.text(Field::LastMajorCompaction), "2023-11-14 22:13:20 UTC");
        let record = Record::of(sizes(&region("t", "", 0, 0)));
        assert_eq!(record.text(Field::CompactionProgress), "0.00%");
        assert_eq!(record.text(Field::LastMajorCompaction), "");
    }
}
