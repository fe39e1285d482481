//! `grampus migrate start`, and `abort`, which reverses it.

use base::env::Env;
use bytes::Bytes;
use cell::schema::{NamespaceDescriptor, TableDescriptor, TableName};
use proto::ReplicationPeerDescription;
use proto::replication_state::State;

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
            return Err(format!("{} records a migration that has been copied", state.display()));
        }
        Some(record) => record,
    };
    let survey = survey(&clusters, peer, &arguments.tables).await?;
    survey.check()?;
    check_peer(&survey.peers, &record, &survey)?;
    create_tables(&clusters, &survey).await?;
    set_scopes(&clusters, &survey, &mut record).await?;
    if !survey.peers.iter().any(|description| description.id == *peer) {
        let is_serial = !arguments.no_serial;
        let config = plan::peer_config(to.peer_key(), survey.tables.keys(), is_serial, arguments.bandwidth);
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

/// Checks a peer that exists already.
fn check_peer(peers: &[ReplicationPeerDescription], record: &Record, survey: &Survey) -> Result<(), String> {
    let Some(own) = peers.iter().find(|description| description.id == record.peer) else { return Ok(()) };
    let id = &own.id;
    if own.state.state() == State::Enabled {
        return Err(format!(
            "the peer {id} of HBase is enabled: copied cells may replace newer ones. Remove it, or choose another name \
             with --peer"
        ));
    }
    let listed = own.config.table_cfs.iter().filter_map(|entry| entry.table_name.as_ref());
    let listed: Vec<TableName> = listed.filter_map(|name| TableName::try_from(name).ok()).collect();
    match survey.tables.keys().find(|name| !listed.contains(name)) {
        Some(missing) => {
            Err(format!("the peer {id} of HBase exists, and does not include the table {missing}"))
        }
        None => Ok(()),
    }
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
        let regions =
            regions.into_iter().filter(|region| !region.is_split_parent() && region.replica_id == 0);
        let mut splits: Vec<Bytes> =
            regions.map(|region| region.start_key).filter(|key| !key.is_empty()).collect();
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
        let recorded = &mut record.tables.entry(name.clone()).or_default().scoped;
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
        let current = source.describe(name).await.map_err(|error| clusters.at_source(&error))?;
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

    use proto::ReplicationState;

    use super::*;

    #[test]
    fn names_of_peers_are_checked() {
        check_peer_name("grampus_migration").unwrap();
        for name in ["", "a-b", "a/b"] {
            assert!(check_peer_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn an_existing_peer_must_be_disabled_and_include_the_tables() {
        let table = TableName::parse("t").unwrap();
        let record = Record::new(Path::new("file"), String::new(), String::new(), "p".into());
        let described = |id: &str, state: State, tables: &[TableName]| ReplicationPeerDescription {
            id: id.into(),
            state: ReplicationState { state: state as i32 },
            config: plan::peer_config(String::new(), tables.iter(), true, 0),
            sync_replication_state: None,
        };
        let survey = Survey::of_plain_tables([table.clone()]);
        let check = |peer| check_peer(&[peer], &record, &survey);
        check(described("p", State::Disabled, std::slice::from_ref(&table))).unwrap();
        check(described("other", State::Enabled, &[])).unwrap();
        let enabled = check(described("p", State::Enabled, &[table]));
        assert!(enabled.unwrap_err().contains("is enabled"));
        let missing = check(described("p", State::Disabled, &[]));
        assert!(missing.unwrap_err().contains("does not include the table t"));
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
