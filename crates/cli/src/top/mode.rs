//! What the lines of the table are: namespaces, tables, regions, servers, users or clients.
//!
//! All but the last two are made of records of regions, those of records of users' clients. A filter of a field that a
//! mode does not have is asked of the records that its lines are made of.

use std::fmt;

use clap::ValueEnum;

use super::cluster::Look;
use super::field::Field;
use super::filter::Filter;
use super::record::{Record, distinct, sums};
use super::value::Value;

/// What a line is. Letters are hbtop's.
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
    /// Hosts of clients
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

/// What there is of sums over regions, and whether it is shown if nobody says otherwise.
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
    /// All of them, with the letters that choose them.
    pub(super) const ALL: [(char, Mode); 6] = [
        ('n', Mode::Namespace),
        ('t', Mode::Table),
        ('r', Mode::Region),
        ('s', Mode::RegionServer),
        ('u', Mode::User),
        ('c', Mode::Client),
    ];

    /// Its fields in hbtop's order, and which are shown if nobody says otherwise.
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

    /// Whether its lines have the field.
    pub(super) fn has(self, field: Field) -> bool {
        self.fields().iter().any(|(own, _)| *own == field)
    }

    /// Its lines that pass the filters.
    pub(super) fn records(self, look: &Look, filters: &[Filter]) -> Vec<Record> {
        let (own, before): (Vec<_>, Vec<_>) = filters.iter().partition(|filter| self.has(filter.field));
        let base = match self {
            Mode::User | Mode::Client => &look.clients,
            _ => &look.regions,
        };
        let base: Vec<Record> =
            base.iter().filter(|record| before.iter().all(|filter| filter.passes(record))).cloned().collect();
        let mut lines = self.lines(look, base, !before.is_empty());
        lines.retain(|record| own.iter().all(|filter| filter.passes(record)));
        lines
    }

    fn lines(self, look: &Look, base: Vec<Record>, is_part: bool) -> Vec<Record> {
        let fields: Vec<Field> = self.fields().into_iter().map(|(field, _)| field).collect();
        match self {
            Mode::Namespace => sums(&base, &[Field::Namespace], &fields),
            Mode::Table => sums(&base, &[Field::Namespace, Field::Table], &fields),
            Mode::Region => base,
            Mode::RegionServer => servers(look, base, &fields, is_part),
            Mode::User => counted(&base, (Field::User, Field::Client, Field::ClientCount), &fields),
            Mode::Client => counted(&base, (Field::Client, Field::User, Field::UserCount), &fields),
        }
    }

    /// Where a closer look at a line leads: the mode, and the filters that leave what the line was made of.
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

/// Sums by server, with what servers tell of themselves. One without regions has a line too, unless only a part of
/// the regions is asked for.
fn servers(look: &Look, base: Vec<Record>, fields: &[Field], is_part: bool) -> Vec<Record> {
    let mut regions = base;
    if !is_part {
        regions.extend(look.servers.iter().map(|server| {
            let mut none = server.clone();
            none.set(Field::RegionCount, Value::Count(0));
            none
        }));
    }
    let mut lines = sums(&regions, &[Field::LongRegionServer], fields);
    for line in &mut lines {
        let name = line.get(Field::LongRegionServer);
        let server = look.servers.iter().find(|server| server.get(Field::LongRegionServer) == name);
        // Heaps are the server's, not its regions': no sums.
        for field in [Field::UsedHeap, Field::MaxHeap] {
            if let Some(value) = server.and_then(|server| server.get(field)) {
                line.set(field, value.clone());
            }
        }
    }
    lines
}

/// Sums by `key`, and how many different values of `other` there were, in `count`.
fn counted(base: &[Record], (key, other, count): (Field, Field, Field), fields: &[Field]) -> Vec<Record> {
    let numbers = distinct(base, key, other);
    let mut lines = sums(base, &[key], fields);
    for line in &mut lines {
        let number = numbers.get(&line.shown(key)).copied().unwrap_or_default();
        line.set(count, Value::Count(number));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::cluster::tests::{look, region, server};
    use super::super::value::Case;
    use super::*;

    fn shown(records: &[Record], fields: &[Field]) -> Vec<String> {
        let line = |record: &Record| -> String {
            fields.iter().map(|field| record.shown(*field)).collect::<Vec<_>>().join(" ")
        };
        records.iter().map(line).collect()
    }

    fn two_servers() -> Look {
        let first = server("a", &[region("t", "", 10, 1), region("t", "m", 20, 2), region("n:u", "", 1, 4)]);
        let second = server("b", &[region("t", "x", 5, 8)]);
        look(&[first, second, server("idle", &[])])
    }

    #[test]
    fn lines_are_sums_over_regions() {
        let look = two_servers();
        let all = |mode: Mode, fields: &[Field]| shown(&mode.records(&look, &[]), fields);
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
        let look = look(&[busy]);
        let users = Mode::User.records(&look, &[]);
        assert_eq!(shown(&users, &[Field::User, Field::ClientCount]), ["ann 2", "bob 1"]);
        let clients = Mode::Client.records(&look, &[]);
        assert_eq!(shown(&clients, &[Field::Client, Field::UserCount]), ["h1 1", "h2 2"]);
        let (mode, filters) = Mode::Client.drill_down(&clients[1]).unwrap();
        assert_eq!(
            shown(&mode.records(&look, &filters), &[Field::User, Field::ClientCount]),
            ["ann 1", "bob 1"]
        );
    }

    fn user(name: &str, hosts: &[&str]) -> proto::UserLoad {
        let client = |host: &&str| proto::ClientMetrics { host_name: host.to_string(), ..Default::default() };
        proto::UserLoad { user_name: name.into(), client_metrics: hosts.iter().map(client).collect() }
    }

    #[test]
    fn filters_that_a_line_does_not_have_are_asked_of_what_it_is_made_of() {
        let look = two_servers();
        let filters = [Filter::parse("TABLE==t", &[Field::Table], Case::Matters).unwrap()];
        let servers = Mode::RegionServer.records(&look, &filters);
        assert_eq!(shown(&servers, &[Field::RegionServer, Field::RegionCount]), ["a:16020 2", "b:16020 1"]);
    }

    #[test]
    fn a_closer_look_shows_what_the_line_was_made_of() {
        let look = two_servers();
        let steps = [
            (Mode::Namespace, 0, Mode::Table, vec!["t"]),
            (Mode::Table, 0, Mode::Region, vec!["t", "t", "t"]),
            (Mode::RegionServer, 0, Mode::Region, vec!["t", "t", "u"]),
        ];
        for (from, line, to, tables) in steps {
            let (mode, filters) = from.drill_down(&from.records(&look, &[])[line]).unwrap();
            assert_eq!(mode, to);
            assert_eq!(shown(&mode.records(&look, &filters), &[Field::Table]), tables);
        }
        assert!(Mode::Region.drill_down(&Mode::Region.records(&look, &[])[0]).is_none());
    }
}
