//! What the lines of the table are: namespaces, tables, regions, servers, users or clients.
//!
//! Lines of users and clients aggregate records of users' clients; all others aggregate records of
//! regions. A filter on a field that the mode lacks applies to the records before aggregation.

use std::fmt;

use clap::ValueEnum;

use super::cluster::Sample;
use super::field::Field;
use super::filter::Filter;
use super::record::{Record, distinct, sums};
use super::value::Value;

/// What a line is. The letters are hbtop's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Namespaces
    #[value(alias = "n")]
    Namespace,
    /// Tables
    #[value(alias = "t")]
    Table,
    /// Regions
    #[value(alias = "r")]
    Region,
    /// Region servers
    #[value(alias = "s", alias = "server", alias = "region-server")]
    RegionServer,
    /// Users
    #[value(alias = "u")]
    User,
    /// Client hosts
    #[value(alias = "c")]
    Client,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Namespace => "Namespace",
            Mode::Table => "Table",
            Mode::Region => "Region",
            Mode::RegionServer => "RegionServer",
            Mode::User => "User",
            Mode::Client => "Client",
        })
    }
}

const HIDDEN: bool = false;
const SHOWN: bool = true;

/// Sums over regions, and whether each is shown by default.
const OF_REGIONS: [(Field, bool); 9] = [
    (Field::RegionCount, SHOWN),
    (Field::Requests, SHOWN),
    (Field::Reads, SHOWN),
    (Field::FilteredReads, SHOWN),
    (Field::Writes, SHOWN),
    (Field::StoreFileSize, SHOWN),
    (Field::UncompressedStoreFileSize, HIDDEN),
    (Field::StoreFiles, SHOWN),
    (Field::MemstoreSize, SHOWN),
];

const OF_CLIENTS: [(Field, bool); 4] =
    [(Field::Requests, SHOWN), (Field::Reads, SHOWN), (Field::Writes, SHOWN), (Field::FilteredReads, SHOWN)];

const OF_A_REGION: [(Field, bool); 22] = [
    (Field::RegionName, HIDDEN),
    (Field::Namespace, SHOWN),
    (Field::Table, SHOWN),
    (Field::StartCode, HIDDEN),
    (Field::ReplicaId, HIDDEN),
    (Field::Region, SHOWN),
    (Field::RegionServer, SHOWN),
    (Field::LongRegionServer, HIDDEN),
    (Field::Requests, SHOWN),
    (Field::Reads, SHOWN),
    (Field::FilteredReads, SHOWN),
    (Field::Writes, SHOWN),
    (Field::StoreFileSize, SHOWN),
    (Field::UncompressedStoreFileSize, HIDDEN),
    (Field::StoreFiles, SHOWN),
    (Field::MemstoreSize, SHOWN),
    (Field::Locality, SHOWN),
    (Field::StartKey, HIDDEN),
    (Field::CompactingCells, HIDDEN),
    (Field::CompactedCells, HIDDEN),
    (Field::CompactionProgress, HIDDEN),
    (Field::LastMajorCompaction, HIDDEN),
];

impl Mode {
    /// All modes, and the letters that choose them.
    pub(super) const ALL: [(char, Mode); 6] = [
        ('n', Mode::Namespace),
        ('t', Mode::Table),
        ('r', Mode::Region),
        ('s', Mode::RegionServer),
        ('u', Mode::User),
        ('c', Mode::Client),
    ];

    /// The fields of the mode in hbtop's order, and whether each is shown by default.
    pub(super) fn fields(self) -> Vec<(Field, bool)> {
        let with = |first: &[(Field, bool)], rest: &[(Field, bool)]| [first, rest].concat();
        match self {
            Mode::Namespace => with(&[(Field::Namespace, SHOWN)], &OF_REGIONS),
            Mode::Table => with(&[(Field::Namespace, SHOWN), (Field::Table, SHOWN)], &OF_REGIONS),
            Mode::Region => OF_A_REGION.to_vec(),
            Mode::RegionServer => {
                let names = [(Field::RegionServer, SHOWN), (Field::LongRegionServer, HIDDEN)];
                let heap = [(Field::UsedHeap, SHOWN), (Field::MaxHeap, SHOWN)];
                with(&with(&names, &OF_REGIONS), &heap)
            }
            Mode::User => with(&[(Field::User, SHOWN), (Field::ClientCount, SHOWN)], &OF_CLIENTS),
            Mode::Client => with(&[(Field::Client, SHOWN), (Field::UserCount, SHOWN)], &OF_CLIENTS),
        }
    }

    /// Whether the lines of the mode have the field.
    pub(super) fn has(self, field: Field) -> bool {
        self.fields().iter().any(|(own, _)| *own == field)
    }

    /// The lines that pass the filters.
    pub(super) fn records(self, sample: &Sample, filters: &[Filter]) -> Vec<Record> {
        let (own, before): (Vec<_>, Vec<_>) = filters.iter().partition(|filter| self.has(filter.field));
        let base = match self {
            Mode::User | Mode::Client => &sample.clients,
            _ => &sample.regions,
        };
        let base: Vec<Record> =
            base.iter().filter(|record| before.iter().all(|filter| filter.passes(record))).cloned().collect();
        let mut lines = self.lines(sample, base, !before.is_empty());
        lines.retain(|record| own.iter().all(|filter| filter.passes(record)));
        lines
    }

    fn lines(self, sample: &Sample, base: Vec<Record>, is_part: bool) -> Vec<Record> {
        let fields: Vec<Field> = self.fields().into_iter().map(|(field, _)| field).collect();
        match self {
            Mode::Namespace => sums(&base, &[Field::Namespace], &fields),
            Mode::Table => sums(&base, &[Field::Namespace, Field::Table], &fields),
            Mode::Region => base,
            Mode::RegionServer => servers(sample, base, &fields, is_part),
            Mode::User => counted(&base, (Field::User, Field::Client, Field::ClientCount), &fields),
            Mode::Client => counted(&base, (Field::Client, Field::User, Field::UserCount), &fields),
        }
    }

    /// The mode and filters that show the details of a line. `None` for a region.
    pub(super) fn drill_down(self, line: &Record) -> Option<(Mode, Vec<Filter>)> {
        let (mode, keys): (Mode, &[Field]) = match self {
            Mode::Namespace => (Mode::Table, &[Field::Namespace]),
            Mode::Table => (Mode::Region, &[Field::Namespace, Field::Table]),
            Mode::RegionServer => (Mode::Region, &[Field::LongRegionServer]),
            Mode::User => (Mode::Client, &[Field::User]),
            Mode::Client => (Mode::User, &[Field::Client]),
            Mode::Region => return None,
        };
        let filter = |key: &Field| line.get(*key).map(|value| Filter::equal(*key, value.clone()));
        Some((mode, keys.iter().filter_map(filter).collect()))
    }
}

/// Sums by server, and the servers' own values. A server without regions has a line too, unless a
/// filter selected only part of the regions (`is_part`).
fn servers(sample: &Sample, base: Vec<Record>, fields: &[Field], is_part: bool) -> Vec<Record> {
    let mut regions = base;
    if !is_part {
        regions.extend(sample.servers.iter().map(|server| {
            let mut none = server.clone();
            none.set(Field::RegionCount, Value::Count(0));
            none
        }));
    }
    let mut lines = sums(&regions, &[Field::LongRegionServer], fields);
    for line in &mut lines {
        let name = line.get(Field::LongRegionServer);
        let server = sample.servers.iter().find(|server| server.get(Field::LongRegionServer) == name);
        // Heap sizes belong to the server, so they are not summed over regions.
        for field in [Field::UsedHeap, Field::MaxHeap] {
            if let Some(value) = server.and_then(|server| server.get(field)) {
                line.set(field, value.clone());
            }
        }
    }
    lines
}

/// Sums by `key`. Stores the number of distinct values of `other` in `count`.
fn counted(base: &[Record], (key, other, count): (Field, Field, Field), fields: &[Field]) -> Vec<Record> {
    let numbers = distinct(base, key, other);
    let mut lines = sums(base, &[key], fields);
    for line in &mut lines {
        let number = numbers.get(&line.text(key)).copied().unwrap_or_default();
        line.set(count, Value::Count(number));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::cluster::tests::{region, sample, server};
    use super::super::value::Case;
    use super::*;

    fn shown(records: &[Record], fields: &[Field]) -> Vec<String> {
        let line = |record: &Record| -> String {
            fields.iter().map(|field| record.text(*field)).collect::<Vec<_>>().join(" ")
        };
        records.iter().map(line).collect()
    }

    fn two_servers() -> Sample {
        let first = server("a", &[region("t", "", 10, 1), region("t", "m", 20, 2), region("n:u", "", 1, 4)]);
        let second = server("b", &[region("t", "x", 5, 8)]);
        sample(&[first, second, server("idle", &[])])
    }

    #[test]
    fn lines_are_sums_over_regions() {
        let sample = two_servers();
        let all = |mode: Mode, fields: &[Field]| shown(&mode.records(&sample, &[]), fields);
        let sums = [Field::RegionCount, Field::StoreFiles];
        assert_eq!(
            all(Mode::Namespace, &[&[Field::Namespace][..], &sums].concat()),
            ["default 3 11", "n 1 4"]
        );
        assert_eq!(all(Mode::Table, &[&[Field::Table][..], &sums].concat()), ["t 3 11", "u 1 4"]);
        let of_servers = [Field::RegionServer, Field::RegionCount, Field::StoreFiles, Field::UsedHeap];
        assert_eq!(
            all(Mode::RegionServer, &of_servers),
            ["a:16020 3 7 100.0MB", "b:16020 1 8 100.0MB", "idle:16020 0  100.0MB"]
        );
        assert_eq!(all(Mode::Region, &[Field::Table, Field::StartKey]), ["t ", "t m", "u ", "t x"]);
    }

    #[test]
    fn users_and_clients_count_each_other() {
        let mut busy = server("a", &[]);
        busy.server_load.user_loads = vec![user("ann", &["h1", "h2"]), user("bob", &["h2"])];
        let sample = sample(&[busy]);
        let users = Mode::User.records(&sample, &[]);
        assert_eq!(shown(&users, &[Field::User, Field::ClientCount]), ["ann 2", "bob 1"]);
        let clients = Mode::Client.records(&sample, &[]);
        assert_eq!(shown(&clients, &[Field::Client, Field::UserCount]), ["h1 1", "h2 2"]);
        let (mode, filters) = Mode::Client.drill_down(&clients[1]).unwrap();
        assert_eq!(
            shown(&mode.records(&sample, &filters), &[Field::User, Field::ClientCount]),
            ["ann 1", "bob 1"]
        );
    }

    fn user(name: &str, hosts: &[&str]) -> proto::UserLoad {
        let client = |host: &&str| proto::ClientMetrics { host_name: host.to_string(), ..Default::default() };
        proto::UserLoad { user_name: name.into(), client_metrics: hosts.iter().map(client).collect() }
    }

    #[test]
    fn filters_on_other_fields_apply_to_the_aggregated_records() {
        let sample = two_servers();
        let filters = [Filter::parse("TABLE==t", &[Field::Table], Case::Matters).unwrap()];
        let servers = Mode::RegionServer.records(&sample, &filters);
        assert_eq!(shown(&servers, &[Field::RegionServer, Field::RegionCount]), ["a:16020 2", "b:16020 1"]);
    }

    #[test]
    fn drill_down_shows_what_the_line_aggregates() {
        let sample = two_servers();
        let steps = [
            (Mode::Namespace, 0, Mode::Table, vec!["t"]),
            (Mode::Table, 0, Mode::Region, vec!["t", "t", "t"]),
            (Mode::RegionServer, 0, Mode::Region, vec!["t", "t", "u"]),
        ];
        for (from, line, to, tables) in steps {
            let (mode, filters) = from.drill_down(&from.records(&sample, &[])[line]).unwrap();
            assert_eq!(mode, to);
            assert_eq!(shown(&mode.records(&sample, &filters), &[Field::Table]), tables);
        }
        assert!(Mode::Region.drill_down(&Mode::Region.records(&sample, &[])[0]).is_none());
    }
}
