//! Problems of the cluster, for the master's page.

use std::time::Duration;

use base::history::Window;
use cell::region::RegionInfo;
use cell::schema::TableName;
use master::assignment::{Failure, RegionState};
use master::integrity::Fault;
use web::section::Finding;
use wire::meta::TableState;

use super::MasterPages;
use super::cluster::Cluster;
use crate::pages::common::errors_logged;

/// HBase's threshold (`hbase.metrics.rit.stuck.warning.threshold`).
pub(super) const LONG_IN_TRANSITION: Duration = Duration::from_secs(60);
/// Maximum number of findings of one kind.
const FINDINGS_MAX: usize = 10;
/// Maximum number of tables named in a sentence.
const NAMED_MAX: usize = 3;

/// The first findings, and one that counts the rest.
fn limited(mut found: Vec<Finding>, what: &str) -> Vec<Finding> {
    let more = found.len().saturating_sub(FINDINGS_MAX);
    found.truncate(FINDINGS_MAX);
    found.extend((more > 0).then(|| Finding::bad(format!("And {more} more {what}."))));
    found
}

impl MasterPages {
    /// All current problems.
    pub(super) fn findings(&self, cluster: &Cluster, window: &Window) -> Vec<Finding> {
        let initialized = self.master.is_initialized();
        let found = [
            (!initialized).then(|| Finding::warning("The master is starting: table operations wait.")),
            cluster.servers.is_empty().then(|| Finding::bad("No live region servers.")),
            self.stuck(),
            // While the master starts, regions are not open yet.
            initialized.then(|| self.not_open(cluster)).flatten(),
            errors_logged(window),
        ];
        let found = found.into_iter().flatten().chain(self.server_findings());
        found.chain(self.failed_regions(None)).chain(self.faults(None)).collect()
    }

    /// Problems that region servers report about themselves.
    fn server_findings(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        for (server, load) in self.master.context().servers.live() {
            let of = |what: String| format!("{server}: {what}");
            found.extend(load.grampus_failures.into_iter().map(|what| Finding::bad(of(what))));
            found.extend(load.grampus_warnings.into_iter().map(|what| Finding::warning(of(what))));
        }
        found
    }

    /// Regions that could not be opened, of one table or of all: the first ones by name, and the
    /// number of the rest.
    pub(super) fn failed_regions(&self, table: Option<&TableName>) -> Vec<Finding> {
        let mut failures = self.master.context().assignment.failures();
        failures.retain(|(region, _)| table.is_none_or(|table| region.table == *table));
        let line = |(region, failure): &(RegionInfo, Failure)| {
            let (table, encoded) = (&region.table, region.encoded_name());
            Finding::bad(format!(
                "Region {encoded} of table {table} cannot be opened: {}. It is retried.",
                failure.reason
            ))
        };
        limited(failures.iter().map(line).collect(), "regions that cannot be opened")
    }

    /// Holes, overlaps, and directories that are inconsistent with `hbase:meta`, of one table or of
    /// all.
    pub(super) fn faults(&self, table: Option<&TableName>) -> Vec<Finding> {
        let integrity = &self.master.context().integrity;
        let mut faults = integrity.faults();
        faults.retain(|fault| table.is_none_or(|table| fault.table() == table));
        let line = |fault: &Fault| Finding::bad(format!("{fault}. Remedy: {}.", fault.remedy()));
        let mut found = limited(faults.iter().map(line).collect(), "region inconsistencies");
        if table.is_none()
            && let Some(last) = integrity.refused().last()
        {
            found.push(Finding::warning(format!("An edit of hbase:meta was refused: {last}.")));
        }
        found
    }

    fn stuck(&self) -> Option<Finding> {
        let times = self.master.context().assignment.transition_times();
        let stuck = times.iter().filter(|since| **since > LONG_IN_TRANSITION).count();
        let what =
            format!("Regions in transition for more than a minute: {stuck}. Their rows cannot be read.");
        (stuck > 0).then(|| Finding::bad(what))
    }

    /// Regions of enabled tables that are neither open nor being opened.
    fn not_open(&self, cluster: &Cluster) -> Option<Finding> {
        let tables = &self.master.context().tables;
        let is_lost = |state: &RegionState| matches!(state, RegionState::Closed | RegionState::FailedOpen);
        let mut lost: Vec<(&TableName, usize)> = Vec::new();
        for entry in cluster.regions.iter().filter(|entry| is_lost(&entry.state)) {
            let table = &entry.region.table;
            match lost.last_mut() {
                Some((of, count)) if *of == table => *count += 1,
                _ if tables.state(table) == Some(TableState::Enabled) => lost.push((table, 1)),
                _ => {}
            }
        }
        let count: usize = lost.iter().map(|(_, count)| count).sum();
        let mut names: Vec<String> =
            lost.iter().take(NAMED_MAX).map(|(table, _)| table.to_string()).collect();
        names.extend((lost.len() > NAMED_MAX).then(|| "…".to_owned()));
        let what = format!("Regions of enabled tables that are not open: {count} ({}).", names.join(", "));
        (count > 0).then(|| Finding::bad(what))
    }
}
