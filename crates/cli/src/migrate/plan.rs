//! What a table needs before it can be copied, and what prevents its migration.

use std::fmt;

use bytes::Bytes;
use cell::attribute;
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use proto::{ReplicationPeer, ReplicationPeerDescription};

use crate::shell::text::binary;

/// The attribute that selects the families whose edits HBase sends to peers.
pub(super) const SCOPE: &str = "REPLICATION_SCOPE";
/// Attributes that decide which cells a family keeps. If they differ, the clusters have different
/// cells.
const RETENTION: [&str; 5] =
    ["VERSIONS", "MIN_VERSIONS", "TTL", "KEEP_DELETED_CELLS", "NEW_VERSION_BEHAVIOR"];
/// How HBase finds the files of a store. It has no meaning for the data.
const FILE_TRACKER: &str = "hbase.store.file-tracker.impl";

/// A fact that the operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// It prevents the migration.
    Blocker(String),
    /// The migration is possible.
    Warning(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Blocker(text) => write!(f, "blocker: {text}"),
            Finding::Warning(text) => write!(f, "warning: {text}"),
        }
    }
}

/// What a table needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TablePlan {
    /// Families whose edits HBase does not send to peers.
    pub(super) unscoped: Vec<Bytes>,
    /// Whether Grampus lacks the table.
    pub(super) is_missing: bool,
    pub(super) findings: Vec<Finding>,
}

impl TablePlan {
    pub(super) fn blockers(&self) -> impl Iterator<Item = &str> {
        self.findings.iter().filter_map(|finding| match finding {
            Finding::Blocker(text) => Some(text.as_str()),
            Finding::Warning(_) => None,
        })
    }
}

/// Plans the migration of a table. `target` is the table in Grampus, if there is one.
pub(super) fn plan(
    source: &TableDescriptor,
    is_enabled: bool,
    target: Option<&TableDescriptor>,
) -> TablePlan {
    let mut findings = Vec::new();
    let mut blocker = |text: String| findings.push(Finding::Blocker(text));
    if !is_enabled {
        blocker("the table is disabled in HBase: enable it, or leave it out".into());
    }
    if source.attribute("DURABILITY") == Some("SKIP_WAL") {
        blocker("DURABILITY => 'SKIP_WAL': HBase does not log its edits, so it cannot send them".into());
    }
    for family in source.families.values().filter(|family| is_true(family, "NEW_VERSION_BEHAVIOR")) {
        let name = binary(&family.name);
        blocker(format!("NEW_VERSION_BEHAVIOR of family {name}: a copy loses the order of puts and deletes"));
    }
    match target {
        None => attribute::problems(&for_target(source)).into_iter().for_each(|problem| {
            blocker(format!("Grampus refuses {problem}; create the table in Grampus without it"));
        }),
        Some(target) => findings.extend(of_existing(source, target)),
    }
    TablePlan { unscoped: unscoped(source), is_missing: target.is_none(), findings }
}

fn of_existing(source: &TableDescriptor, target: &TableDescriptor) -> Vec<Finding> {
    let mut findings = Vec::new();
    if target.read_only() {
        findings.push(Finding::Blocker("the table is READONLY in Grampus".into()));
    }
    for family in source.families.values() {
        let name = binary(&family.name);
        let Some(other) = target.families.get(&family.name) else {
            findings.push(Finding::Blocker(format!("the table in Grampus has no family {name}")));
            continue;
        };
        for key in RETENTION {
            let [ours, theirs] = [family, other].map(|family| effective(family, key));
            if ours != theirs {
                let [ours, theirs] = [ours, theirs].map(|value| value.unwrap_or_default());
                findings.push(Finding::Warning(format!(
                    "{key} of family {name} is {ours:?} in HBase and {theirs:?} in Grampus: their cells will differ"
                )));
            }
        }
    }
    findings
}

/// The value of an attribute, or its default.
fn effective(family: &FamilyDescriptor, key: &str) -> Option<String> {
    let mut complete = family.clone();
    complete.complete();
    let value = complete.attribute(key).map(str::to_uppercase);
    match value.as_deref() {
        Some("FOREVER") => Some(i32::MAX.to_string()),
        Some("FALSE") if key == "NEW_VERSION_BEHAVIOR" => None,
        _ => value,
    }
}

fn is_true(family: &FamilyDescriptor, key: &str) -> bool {
    family.attribute(key).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// The families whose edits HBase does not send to peers.
pub(super) fn unscoped(table: &TableDescriptor) -> Vec<Bytes> {
    let families = table.families.values().filter(|family| family.attribute(SCOPE) != Some("1"));
    families.map(|family| family.name.clone()).collect()
}

/// The table with another replication scope of these families.
pub(super) fn with_scope(mut table: TableDescriptor, families: &[Bytes], scope: &str) -> TableDescriptor {
    for family in table.families.values_mut().filter(|family| families.contains(&family.name)) {
        *family = family.clone().with(SCOPE, scope);
    }
    table
}

/// The table with or without `READONLY`.
pub(super) fn with_read_only(mut table: TableDescriptor, read_only: bool) -> TableDescriptor {
    let value = if read_only { "true" } else { "false" };
    table.attributes.insert(Bytes::from_static(b"READONLY"), Bytes::from_static(value.as_bytes()));
    table
}

/// The table as it is created in Grampus.
pub(super) fn for_target(source: &TableDescriptor) -> TableDescriptor {
    let mut table = source.clone();
    table.attributes.remove(FILE_TRACKER.as_bytes());
    table.configuration.remove(FILE_TRACKER);
    for family in table.families.values_mut() {
        family.attributes.remove(FILE_TRACKER.as_bytes());
        family.configuration.remove(FILE_TRACKER);
    }
    table
}

/// The peer's configuration: all families of `tables`.
pub(super) fn peer_config<'a>(
    cluster_key: String,
    tables: impl Iterator<Item = &'a TableName>,
    is_serial: bool,
    bandwidth: u32,
) -> ReplicationPeer {
    let whole = |table: &TableName| proto::TableCf { table_name: Some(table.into()), families: Vec::new() };
    ReplicationPeer {
        clusterkey: Some(cluster_key),
        table_cfs: tables.map(whole).collect(),
        bandwidth: Some(i64::from(bandwidth)),
        replicate_all: Some(false),
        serial: Some(is_serial),
        ..ReplicationPeer::default()
    }
}

/// The tables that a peer gets, as text in one order.
pub(super) fn contents(peer: &ReplicationPeer) -> String {
    if peer.replicate_all() {
        return "all".to_owned();
    }
    let namespaces = peer.namespaces.iter().map(|name| format!("{}:*", binary(name)));
    let tables = peer.table_cfs.iter().map(|entry| {
        let name = TableName::try_from(entry.table_name.as_ref().unwrap_or(&proto::TableName::default()));
        let name = name.map_or_else(|error| error.to_string(), |name| name.to_string());
        let families: Vec<String> = entry.families.iter().map(|family| binary(family)).collect();
        match families.is_empty() {
            true => name,
            false => format!("{name} (families {})", families.join(", ")),
        }
    });
    let mut all: Vec<String> = namespaces.chain(tables).collect();
    all.sort();
    all.join(", ")
}

/// The other peers that would get a table's edits once all its families have a replication scope.
pub(super) fn other_receivers<'a>(
    peers: &'a [ReplicationPeerDescription],
    own: &'a str,
    table: &'a TableName,
) -> impl Iterator<Item = &'a str> {
    let receives = |peer: &ReplicationPeer| {
        let is_namespace = |names: &[Bytes]| names.iter().any(|name| name == table.namespace().as_bytes());
        let is_table = |tables: &[proto::TableCf]| {
            let names = tables.iter().filter_map(|entry| entry.table_name.as_ref());
            names.filter_map(|name| TableName::try_from(name).ok()).any(|name| name == *table)
        };
        match peer.replicate_all() {
            true => !is_namespace(&peer.exclude_namespaces) && !is_table(&peer.exclude_table_cfs),
            false => is_namespace(&peer.namespaces) || is_table(&peer.table_cfs),
        }
    };
    peers.iter().filter(move |peer| peer.id != own && receives(&peer.config)).map(|peer| peer.id.as_str())
}

#[cfg(test)]
mod tests {
    use proto::ReplicationState;

    use super::*;

    fn family(name: &'static str) -> FamilyDescriptor {
        FamilyDescriptor::new(name)
    }

    fn table(families: Vec<FamilyDescriptor>) -> TableDescriptor {
        let empty = TableDescriptor::new(TableName::parse("n:t").unwrap());
        families.into_iter().fold(empty, TableDescriptor::with_family)
    }

    fn texts(plan: &TablePlan) -> Vec<String> {
        plan.findings.iter().map(ToString::to_string).collect()
    }

    fn check_blocked(source: &TableDescriptor, target: Option<&TableDescriptor>, part: &str) {
        let plan = plan(source, true, target);
        assert!(plan.blockers().any(|text| text.contains(part)), "{part}: {:?}", texts(&plan));
    }

    #[test]
    fn a_plain_table_needs_scopes_and_creation() {
        let plan = plan(&table(vec![family("f"), family("g").with(SCOPE, "1")]), true, None);
        assert_eq!((plan.unscoped, plan.is_missing, plan.findings.len()), (vec![Bytes::from("f")], true, 0));
    }

    #[test]
    fn tables_that_cannot_be_copied_are_blocked() {
        let source = table(vec![family("f")]);
        let disabled = plan(&source, false, None);
        assert!(texts(&disabled)[0].contains("disabled"), "{:?}", texts(&disabled));
        let mut unlogged = source.clone();
        unlogged.attributes.insert("DURABILITY".into(), "SKIP_WAL".into());
        check_blocked(&unlogged, None, "SKIP_WAL");
        check_blocked(&table(vec![family("f").with("NEW_VERSION_BEHAVIOR", "true")]), None, "order of puts");
        check_blocked(&table(vec![family("f").with("COMPRESSION", "LZO")]), None, "LZO");
        check_blocked(&source, Some(&table(vec![family("g")])), "no family f");
        check_blocked(&source, Some(&with_read_only(source.clone(), true)), "READONLY");
    }

    #[test]
    fn an_existing_table_may_refuse_what_the_source_has() {
        // The operator created the table without the attribute that Grampus refuses.
        let source = table(vec![family("f").with("COMPRESSION", "LZO")]);
        assert_eq!(texts(&plan(&source, true, Some(&table(vec![family("f")])))), [""; 0]);
    }

    #[test]
    fn only_effective_differences_of_retention_count() {
        let explicit =
            family("f").with("VERSIONS", "1").with("TTL", "FOREVER").with("KEEP_DELETED_CELLS", "false");
        let target = table(vec![explicit.with("NEW_VERSION_BEHAVIOR", "false").with("BLOCKSIZE", "1")]);
        assert_eq!(texts(&plan(&table(vec![family("f")]), true, Some(&target))), [""; 0]);
        let target = table(vec![family("f").with("VERSIONS", "3")]);
        let found = texts(&plan(&table(vec![family("f")]), true, Some(&target)));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("warning: VERSIONS of family f"), "{found:?}");
    }

    #[test]
    fn the_file_tracker_is_not_copied() {
        let mut source = table(vec![family("f")]);
        source.configuration.insert(FILE_TRACKER.into(), "FILE".into());
        source.attributes.insert(FILE_TRACKER.into(), "FILE".into());
        assert_eq!(for_target(&source), table(vec![family("f")]));
        assert_eq!(texts(&plan(&source, true, None)), [""; 0]);
    }

    #[test]
    fn scopes_are_set_only_where_requested() {
        let changed = with_scope(table(vec![family("f"), family("g")]), &["g".into()], "1");
        assert_eq!(unscoped(&changed), [Bytes::from("f")]);
        assert_eq!(unscoped(&with_scope(changed, &["g".into()], "0")).len(), 2);
    }

    #[test]
    fn other_peers_that_would_get_the_table_are_found() {
        let name = TableName::parse("n:t").unwrap();
        let other = TableName::parse("t").unwrap();
        let peer = |id: &str, config: ReplicationPeer| ReplicationPeerDescription {
            id: id.into(),
            state: ReplicationState { state: 0 },
            config,
            sync_replication_state: None,
        };
        let all = ReplicationPeer { replicate_all: Some(true), ..Default::default() };
        let namespace = vec![Bytes::from("n")];
        let peers = [
            peer("own", all.clone()),
            peer("all", all.clone()),
            peer("excluded", ReplicationPeer { exclude_namespaces: namespace.clone(), ..all }),
            peer("namespace", ReplicationPeer { namespaces: namespace, ..Default::default() }),
            peer("table", peer_config(String::new(), [&name].into_iter(), true, 0)),
            peer("other table", peer_config(String::new(), [&other].into_iter(), true, 0)),
        ];
        let found: Vec<&str> = other_receivers(&peers, "own", &name).collect();
        assert_eq!(found, ["all", "namespace", "table"]);
    }
}
