//! `grampus migrate check`, and the survey of both clusters that `start` uses too.

use std::collections::BTreeMap;
use std::fmt::Write;

use base::env::Env;
use cell::schema::{TableDescriptor, TableName};
use client::admin::ServerStatus;
use comfy_table::{Table, presets};
use proto::ReplicationPeerDescription;

use super::CheckArguments;
use super::clusters::Clusters;
use super::plan::{self, Finding, TablePlan};
use crate::shell::text::binary;

/// What both clusters have.
pub(super) struct Survey {
    pub(super) tables: BTreeMap<TableName, SurveyedTable>,
    pub(super) peers: Vec<ReplicationPeerDescription>,
}

/// A table of HBase.
pub(super) struct SurveyedTable {
    pub(super) source: TableDescriptor,
    pub(super) plan: TablePlan,
    size: TableSize,
}

/// Regions of a table, and the MiB of their files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TableSize {
    regions: u64,
    mib: u64,
}

impl Survey {
    /// Whether nothing prevents the migration.
    ///
    /// # Errors
    /// The first blocker, and the number of them.
    pub(super) fn check(&self) -> Result<(), String> {
        let all = self
            .tables
            .iter()
            .flat_map(|(name, table)| table.plan.blockers().map(move |blocker| format!("{name}: {blocker}")));
        let all: Vec<String> = all.collect();
        match all.first() {
            None => Ok(()),
            Some(first) => Err(format!(
                "{} blockers; `grampus migrate check` lists them. The first one: {first}",
                all.len()
            )),
        }
    }
}

/// Prints what the tables need.
///
/// # Errors
/// A cluster that does not answer, or a table that does not exist.
pub(super) async fn check(env: &Env, arguments: &CheckArguments) -> Result<(), String> {
    let clusters = Clusters::new(env, &arguments.clusters.from, &arguments.clusters.to);
    let survey = survey(&clusters, &arguments.clusters.peer, &arguments.tables).await?;
    print!("{}", text(&survey, &arguments.clusters.peer));
    Ok(())
}

/// Reads the state of both clusters. Without `names`, all tables of users.
///
/// # Errors
/// A cluster that does not answer, or a table that does not exist.
pub(super) async fn survey(clusters: &Clusters, peer: &str, names: &[String]) -> Result<Survey, String> {
    let source = clusters.source.admin();
    let mut chosen = Vec::new();
    for name in names {
        let name = TableName::parse(name).map_err(|error| error.to_string())?;
        chosen.push(source.describe(&name).await.map_err(|error| clusters.at_source(&error))?);
    }
    if names.is_empty() {
        chosen = source.list_descriptors(None, false).await.map_err(|error| clusters.at_source(&error))?;
    }
    if chosen.is_empty() {
        return Err(format!("HBase at {} has no tables of users", clusters.from));
    }
    let in_target = clusters.target.admin().list_descriptors(None, false).await;
    let in_target = in_target.map_err(|error| clusters.at_target(&error))?;
    let peers = source.list_peers().await.map_err(|error| clusters.at_source(&error))?;
    let status = source.cluster_status().await.map_err(|error| clusters.at_source(&error))?;
    let sizes = sizes(&status.servers);
    let mut tables = BTreeMap::new();
    for descriptor in chosen {
        let name = descriptor.name.clone();
        let is_enabled = source.is_enabled(&name).await.map_err(|error| clusters.at_source(&error))?;
        let target = in_target.iter().find(|table| table.name == name);
        let mut plan = plan::plan(&descriptor, is_enabled, target);
        if !plan.unscoped.is_empty() {
            plan.findings.extend(
                plan::other_receivers(&peers, peer, &name).map(|other| {
                    Finding::Warning(format!("the edits will also be sent to the peer {other}"))
                }),
            );
        }
        let size = sizes.get(name.to_string().as_bytes()).copied().unwrap_or_default();
        tables.insert(name, SurveyedTable { source: descriptor, plan, size });
    }
    Ok(Survey { tables, peers })
}

/// The sizes of all tables, by name as in the names of regions.
fn sizes(servers: &[ServerStatus]) -> BTreeMap<Vec<u8>, TableSize> {
    let mut sizes: BTreeMap<Vec<u8>, TableSize> = BTreeMap::new();
    for region in servers.iter().flat_map(|server| &server.regions) {
        let name = region.region_specifier.value.split(|byte| *byte == b',').next().unwrap_or_default();
        let size = sizes.entry(name.to_vec()).or_default();
        size.regions += 1;
        size.mib += u64::from(region.storefile_size_mb());
    }
    sizes
}

fn text(survey: &Survey, peer: &str) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["table", "regions", "MiB in files", "in Grampus", "families to replicate"]);
    for (name, surveyed) in &survey.tables {
        let SurveyedTable { plan, size, .. } = surveyed;
        let families: Vec<String> = plan.unscoped.iter().map(|family| binary(family)).collect();
        let families = if families.is_empty() { "(all are)".to_owned() } else { families.join(", ") };
        let in_target = if plan.is_missing { "will be created" } else { "exists" };
        let (regions, mib) = (size.regions.to_string(), size.mib.to_string());
        table.add_row([name.to_string(), regions, mib, in_target.to_owned(), families]);
    }
    let mut out = format!("{table}\n");
    let own = survey.peers.iter().find(|description| description.id == peer);
    let state = if own.is_some() { "exists" } else { "will be added" };
    writeln!(out, "peer {peer} of HBase: {state}").expect("writing to a string succeeds");
    for (name, surveyed) in &survey.tables {
        for finding in &surveyed.plan.findings {
            writeln!(out, "{name}: {finding}").expect("writing to a string succeeds");
        }
    }
    let next = match survey.check() {
        Ok(()) => "no blockers. Next: grampus migrate start".to_owned(),
        Err(_) => "blockers prevent the migration".to_owned(),
    };
    writeln!(out, "{next}").expect("writing to a string succeeds");
    out
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use cell::region::ServerName;
    use cell::schema::FamilyDescriptor;

    use super::*;

    impl Survey {
        /// Enabled tables with one family, which Grampus lacks.
        pub(in super::super) fn of_plain_tables(names: impl IntoIterator<Item = TableName>) -> Survey {
            let surveyed = |name: TableName| {
                let source = TableDescriptor::new(name.clone()).with_family(FamilyDescriptor::new("f"));
                let plan = plan::plan(&source, true, None);
                (name, SurveyedTable { source, plan, size: TableSize::default() })
            };
            Survey { tables: names.into_iter().map(surveyed).collect(), peers: Vec::new() }
        }
    }

    #[test]
    fn sizes_are_summed_over_servers() {
        let server = |names: &[&'static str]| {
            let region = |name: &&'static str| proto::RegionLoad {
                region_specifier: proto::RegionSpecifier {
                    r#type: 1,
                    value: Bytes::from_static(name.as_bytes()),
                },
                storefile_size_mb: Some(3),
                ..Default::default()
            };
            ServerStatus {
                server: ServerName { host: "h".into(), port: 1, start_code: 1 },
                requests_per_second: 0,
                requests: 0,
                used_heap_mb: 0,
                max_heap_mb: 0,
                regions: names.iter().map(region).collect(),
                replication_sources: Vec::new(),
            }
        };
        let sizes = sizes(&[server(&["n:t,,1.x.", "u,a,b,1.y."]), server(&["n:t,m,1.z."])]);
        assert_eq!(sizes[&b"n:t".to_vec()], TableSize { regions: 2, mib: 6 });
        assert_eq!(sizes[&b"u".to_vec()], TableSize { regions: 1, mib: 3 });
    }

    #[test]
    fn findings_and_the_next_step_are_printed() {
        let name = TableName::parse("t").unwrap();
        let source = TableDescriptor::new(name.clone()).with_family(FamilyDescriptor::new("f"));
        let surveyed = |is_enabled| SurveyedTable {
            plan: plan::plan(&source, is_enabled, None),
            source: source.clone(),
            size: TableSize { regions: 2, mib: 7 },
        };
        let survey =
            |is_enabled| Survey { tables: [(name.clone(), surveyed(is_enabled))].into(), peers: Vec::new() };
        let good = text(&survey(true), "p");
        let lines: Vec<String> =
            good.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[1], "t 2 7 will be created f");
        assert_eq!(
            lines[2..],
            ["peer p of HBase: will be added", "no blockers. Next: grampus migrate start"]
        );
        assert_eq!(survey(true).check(), Ok(()));
        let blocked = text(&survey(false), "p");
        assert!(blocked.contains("t: blocker: the table is disabled"), "{blocked}");
        assert!(blocked.ends_with("blockers prevent the migration\n"), "{blocked}");
        assert!(survey(false).check().unwrap_err().starts_with("1 blockers"));
    }
}
