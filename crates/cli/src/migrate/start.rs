//! `grampus migrate start`, and `abort`, which reverses it.

use base::env::Env;
use bytes::Bytes;
use cell::schema::{NamespaceDescriptor, TableDescriptor};
use client::ClusterKey;
use proto::replication_state::State;
use proto::{ReplicationPeer, ReplicationPeerDescription};

use super::check::{Survey, survey};
use super::clusters::Clusters;
use super::plan::{self, with_read_only, with_scope};
use super::record::{Phase, Record};
use super::{AbortArguments, StartArguments, writes};
use crate::shell::text::binary;

/// Creates the tables, sets the scopes, and adds the peer. What exists already is left as it is, so
/// the step can be repeated.
///
/// # Errors
/// A blocker, or a cluster's error.
pub(super) async fn start(env: &Env, arguments: &StartArguments) -> Result<(), String> {
    let (from, to) = (&arguments.clusters.from, &arguments.clusters.to);
    let (peer, state) = (&arguments.clusters.peer, &arguments.migration.state);
    check_peer_name(peer)?;
    let clusters = Clusters::new(env, from, to);
    let mut record = match Record::load_if_present(state)? {
        None => Record::new(state, from.to_string(), to.to_string(), peer.clone()),
        Some(record)
            if (&record.from, &record.to, &record.peer) != (&from.to_string(), &to.to_string(), peer) =>
        {
            return Err(format!("{} records another migration: choose a file with --state", state.display()));
        }
        Some(record) if record.phase != Phase::Started => {
            return Err(format!(
                "{} records a migration whose tables are copied: continue with `grampus migrate status`, or choose \
                 another file with --state",
                state.display()
            ));
        }
        Some(record) => record,
    };
    let survey = survey(&clusters, peer, &arguments.tables).await?;
    survey.check()?;
    add_tables(&mut record, &survey)?;
    let is_serial = !arguments.no_serial;
    let config = plan::peer_config(to.peer_key(), record.tables.keys(), is_serial, arguments.bandwidth);
    let own = survey.peers.iter().find(|description| description.id == *peer);
    match own {
        Some(own) => check_peer(own, &config)?,
        None => forget_copy(&mut record),
    }
    create_tables(&clusters, &survey).await?;
    set_scopes(&clusters, &survey, &mut record).await?;
    if own.is_none() {
        let added = clusters.source.admin().add_peer(peer, config, false).await;
        added.map_err(|error| clusters.at_source(&error))?;
        println!("added the peer {peer} to HBase, disabled: HBase collects edits for Grampus from now on");
    }
    record.started_ms = env.clock.now_ms();
    record.save()?;
    println!("HBase retains its logs until they are sent: watch its disk space. Next: grampus migrate copy");
    Ok(())
}

/// HBase refuses the character in names of peers, because it separates the parts of a queue's name.
fn check_peer_name(peer: &str) -> Result<(), String> {
    match peer.is_empty() || peer.contains(['-', '/']) {
        true => Err(format!("--peer {peer:?}: the name must not be empty, and not contain - or /")),
        false => Ok(()),
    }
}

/// Adds the tables of this run to the record, which must not have further ones: they were not
/// checked.
fn add_tables(record: &mut Record, survey: &Survey) -> Result<(), String> {
    if let Some(other) = record.tables.keys().find(|name| !survey.tables.contains_key(name)) {
        return Err(format!(
            "an earlier start recorded the table {other}, which is not among these tables: name it too, or run `grampus \
             migrate abort`"
        ));
    }
    for name in survey.tables.keys() {
        record.tables.entry(name.clone()).or_default();
    }
    Ok(())
}

/// Lets the copy begin again. Without a peer, HBase did not collect the edits that an earlier copy
/// missed.
fn forget_copy(record: &mut Record) {
    for table in record.tables.values_mut() {
        table.ranges.clear();
    }
}

/// Checks that a peer that exists already is the one that would be added.
fn check_peer(own: &ReplicationPeerDescription, wanted: &ReplicationPeer) -> Result<(), String> {
    let id = &own.id;
    if own.state.state() == State::Enabled {
        return Err(format!(
            "the peer {id} of HBase is enabled: copied cells may replace newer ones. Remove it, or choose another name \
             with --peer"
        ));
    }
    let [actual, wanted] = [&own.config, wanted].map(described);
    match actual.iter().zip(&wanted).find(|(actual, wanted)| actual != wanted) {
        Some(((what, actual), (_, wanted))) => Err(format!(
            "the peer {id} of HBase exists with the {what} {actual} instead of {wanted}: remove it (`grampus migrate \
             abort` if it is of this migration), or choose another name with --peer"
        )),
        None => Ok(()),
    }
}

/// What decides which edits a peer gets, with names for messages.
fn described(peer: &ReplicationPeer) -> [(&'static str, String); 3] {
    let key = peer.clusterkey();
    let key = key.parse().map_or_else(|_| key.to_owned(), |key: ClusterKey| key.to_string());
    [("cluster key", key), ("tables", plan::contents(peer)), ("serial flag", peer.serial().to_string())]
}

async fn create_tables(clusters: &Clusters, survey: &Survey) -> Result<(), String> {
    let (source, target) = (clusters.source.admin(), clusters.target.admin());
    let namespaces = target.list_namespaces().await.map_err(|error| clusters.at_target(&error))?;
    let mut namespaces: Vec<String> = namespaces.into_iter().map(|namespace| namespace.name).collect();
    for (name, table) in survey.tables.iter().filter(|(_, table)| table.plan.is_missing) {
        let namespace = name.namespace().to_string();
        if !namespaces.contains(&namespace) {
            let described = source.namespace(&namespace).await.map_err(|error| clusters.at_source(&error))?;
            let created = target.create_namespace(&without_quotas(described)).await;
            created.map_err(|error| clusters.at_target(&error))?;
            println!("created the namespace {namespace} in Grampus");
            namespaces.push(namespace);
        }
        let regions = source.regions(name).await.map_err(|error| clusters.at_source(&error))?;
        let starts = regions.into_iter().map(|region| region.start_key);
        let mut splits: Vec<Bytes> = starts.filter(|key| !key.is_empty()).collect();
        splits.sort();
        splits.dedup();
        let created = target.create_table(&plan::for_target(&table.source), &splits).await;
        created.map_err(|error| format!("cannot create {name}: {}", clusters.at_target(&error)))?;
        println!("created {name} in Grampus with {} regions", splits.len() + 1);
    }
    Ok(())
}

/// Limits of a namespace would refuse tables that HBase has.
fn without_quotas(mut namespace: NamespaceDescriptor) -> NamespaceDescriptor {
    namespace.configuration.retain(|key, _| !key.starts_with("hbase.namespace.quota."));
    namespace
}

/// Sets the scopes, and records which ones were changed before that.
async fn set_scopes(clusters: &Clusters, survey: &Survey, record: &mut Record) -> Result<(), String> {
    for (name, table) in &survey.tables {
        let unscoped = &table.plan.unscoped;
        let recorded = &mut record.tables.get_mut(name).expect("the table was recorded").scoped;
        recorded.extend(unscoped.iter().cloned());
        recorded.sort();
        recorded.dedup();
    }
    record.save()?;
    for (name, table) in survey.tables.iter().filter(|(_, table)| !table.plan.unscoped.is_empty()) {
        let unscoped = &table.plan.unscoped;
        let modified = with_scope(table.source.clone(), unscoped, "1");
        modify(clusters, &modified).await?;
        let names: Vec<String> = unscoped.iter().map(|family| binary(family)).collect();
        println!("{name}: set {} of {} in HBase", plan::SCOPE, names.join(", "));
    }
    Ok(())
}

/// Changes a table of HBase.
///
/// # Errors
/// HBase's.
pub(super) async fn modify(clusters: &Clusters, table: &TableDescriptor) -> Result<(), String> {
    let modified = clusters.source.admin().modify_table(table).await;
    modified.map_err(|error| format!("cannot modify {}: {}", table.name, clusters.at_source(&error)))
}

/// Removes the peer, and reverses the changes of HBase's tables.
///
/// # Errors
/// A cluster's error; the step can be repeated.
pub(super) async fn abort(env: &Env, arguments: &AbortArguments) -> Result<(), String> {
    let (record, clusters) = super::resume(env, &arguments.migration)?;
    let source = clusters.source.admin();
    if record.phase == Phase::Switched {
        return Err("the switch was completed: HBase lacks what was written to Grampus since".into());
    }
    let peers = source.list_peers().await.map_err(|error| clusters.at_source(&error))?;
    if peers.iter().any(|description| description.id == record.peer) {
        source.remove_peer(&record.peer).await.map_err(|error| clusters.at_source(&error))?;
        println!("removed the peer {} from HBase", record.peer);
    }
    for (name, table) in &record.tables {
        let Some(current) = clusters.describe_if_present(name).await? else { continue };
        let mut restored = with_scope(current.clone(), &table.scoped, "0");
        if table.was_stopped {
            restored = with_read_only(restored, false);
        }
        if restored != current {
            modify(&clusters, &restored).await?;
            println!("{name}: restored its replication scopes in HBase");
        }
        if table.was_stopped {
            writes::enable(&clusters, name).await?;
        }
    }
    record.remove()?;
    println!("aborted. The tables in Grampus remain");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cell::schema::TableName;
    use proto::ReplicationState;

    use super::super::record::{RangeRecord, TableRecord};
    use super::*;

    #[test]
    fn names_of_peers_are_checked() {
        check_peer_name("grampus_migration").unwrap();
        for name in ["", "a-b", "a/b"] {
            assert!(check_peer_name(name).is_err(), "{name}");
        }
    }

    fn tables(names: &[&str]) -> Vec<TableName> {
        names.iter().map(|name| TableName::parse(name).unwrap()).collect()
    }

    fn peer(key: &str, names: &[&str], is_serial: bool) -> ReplicationPeerDescription {
        ReplicationPeerDescription {
            id: "p".into(),
            state: ReplicationState { state: State::Disabled as i32 },
            config: plan::peer_config(key.into(), tables(names).iter(), is_serial, 0),
            sync_replication_state: None,
        }
    }

    #[test]
    fn an_existing_peer_must_be_the_wanted_one() {
        let wanted = peer("a,b:2181:/hbase", &["t", "n:u"], true);
        let check = |own: &ReplicationPeerDescription| check_peer(own, &wanted.config);
        check(&wanted).unwrap();
        check(&peer("a:2181,b:2181", &["n:u", "t"], true)).unwrap();
        let mut enabled = wanted.clone();
        enabled.state.state = State::Enabled as i32;
        assert!(check(&enabled).unwrap_err().contains("is enabled"));
        let mut part = wanted.clone();
        part.config.table_cfs[0].families = vec!["f".into()];
        let mut all = wanted.clone();
        all.config.replicate_all = Some(true);
        let key = "a,b:2181:/hbase";
        for (other, reason) in [
            (
                peer("a,b:2181:/other", &["t", "n:u"], true),
                "the cluster key a:2181,b:2181:/other instead of a:2181",
            ),
            (peer(key, &["t"], true), "the tables t instead of n:u, t:"),
            (peer(key, &["t", "n:u", "x"], true), "the tables n:u, t, x instead of n:u, t:"),
            (part, "the tables n:u, t (families f) instead of n:u, t:"),
            (all, "the tables all instead of n:u, t:"),
            (peer(key, &["t", "n:u"], false), "the serial flag false instead of true"),
        ] {
            let refused = check(&other).unwrap_err();
            assert!(refused.contains(reason), "{reason}: {refused}");
        }
    }

    #[test]
    fn a_repeated_start_must_include_the_recorded_tables() {
        let survey = |names: &[&str]| Survey::of_plain_tables(tables(names));
        let mut record = Record::new(Path::new("file"), String::new(), String::new(), "p".into());
        add_tables(&mut record, &survey(&["t"])).unwrap();
        add_tables(&mut record, &survey(&["t", "u"])).unwrap();
        assert_eq!(record.tables.keys().cloned().collect::<Vec<_>>(), tables(&["t", "u"]));
        let refused = add_tables(&mut record, &survey(&["u"])).unwrap_err();
        assert!(refused.contains("recorded the table t"), "{refused}");
        assert_eq!(record.tables.len(), 2);
    }

    #[test]
    fn a_copy_without_a_peer_begins_again() {
        let mut record = Record::new(Path::new("file"), String::new(), String::new(), "p".into());
        let copied = RangeRecord { is_done: true, ..RangeRecord::default() };
        let table = TableRecord { scoped: vec!["f".into()], ranges: vec![copied], ..TableRecord::default() };
        record.tables.insert(TableName::parse("t").unwrap(), table.clone());
        forget_copy(&mut record);
        let expected = TableRecord { ranges: Vec::new(), ..table };
        assert_eq!(record.tables.into_values().collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn limits_of_namespaces_are_not_copied() {
        let mut namespace = NamespaceDescriptor::new("n").unwrap();
        namespace.configuration.insert("hbase.namespace.quota.maxtables".into(), "1".into());
        namespace.configuration.insert("mine".into(), "2".into());
        let kept: Vec<String> = without_quotas(namespace).configuration.into_keys().collect();
        assert_eq!(kept, ["mine"]);
    }
}
