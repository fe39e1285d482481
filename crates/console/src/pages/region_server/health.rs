//! Problems of a region server, for its page.

use base::history::Window;
use fs::space::Level;
use web::section::Finding;

use super::snapshot::RegionSnapshot;
use super::{RegionServerPages, tiers};
use crate::pages::common::errors_logged;

impl RegionServerPages {
    /// All current problems.
    pub(super) fn findings(&self, regions: &[RegionSnapshot], window: &Window) -> Vec<Finding> {
        let (warnings, failures) = self.server.disk_findings();
        let of_disk = failures.into_iter().map(Finding::bad);
        let of_disk =
            of_disk.chain(warnings.into_iter().map(|what| match self.server.disk().space.level() {
                Level::Refusing => Finding::bad(what),
                _ => Finding::warning(what),
            }));
        let found = [
            self.memstores(),
            self.process(),
            self.memory_in_use("requests", self.identity.shared.request_budget(), "clients must retry later"),
            self.memory_in_use(
                "responses",
                self.identity.shared.response_budget(),
                "scans return less per call or fail",
            ),
            refused(
                window,
                "refused_writes",
                "Writes are being rejected: memstores or the queue of the log are full.",
            ),
            refused(
                window,
                "refused_calls",
                "Calls are being rejected: there are too many, or the memory for requests is full.",
            ),
            stores_waiting_for_compactions(regions),
            self.logs(),
            self.corrupt_files(),
            errors_logged(window),
        ];
        let of_logs = self.server.recovered().warnings().iter().map(|what| Finding::warning(what.clone()));
        of_disk
            .chain(tiers::findings(&self.server.tiers()))
            .chain(of_logs)
            .chain(found.into_iter().flatten())
            .collect()
    }

    fn memstores(&self) -> Option<Finding> {
        let (used, limit) = (self.server.memstore_bytes(), self.identity.memory.memstores);
        let low_mark = (limit as f64 * self.server.options().memstore_low_mark) as u64;
        if used >= limit {
            return Some(Finding::bad(
                "Memstores are at their memory limit: writes are rejected until flushes finish.",
            ));
        }
        let what = "Memstores are near their memory limit: the largest are being flushed. At the limit, writes are rejected.";
        (used > low_mark).then(|| Finding::warning(what))
    }

    fn process(&self) -> Option<Finding> {
        let resident = base::memory::resident_bytes()?;
        let what = "The process uses more memory than grampus.memory. The block cache shrinks by the excess.";
        (resident > self.identity.memory.total).then(|| Finding::warning(what))
    }

    fn memory_in_use(&self, what: &str, budget: &base::budget::Budget, then: &str) -> Option<Finding> {
        let share = budget.used() as f64 / budget.limit().max(1) as f64;
        let text = format!("{:.0} % of the memory for {what} is in use. At 100 %, {then}.", share * 100.0);
        match share {
            at_least if at_least > 0.95 => Some(Finding::bad(text)),
            at_least if at_least > 0.75 => Some(Finding::warning(text)),
            _ => None,
        }
    }

    fn corrupt_files(&self) -> Option<Finding> {
        let files = self.server.damaged_files();
        let mut named: Vec<String> = files
            .iter()
            .take(FILES_NAMED_MAX)
            .map(|file| format!("{} at {}: {}", file.path, file.offset, file.what))
            .collect();
        named.extend((files.len() > FILES_NAMED_MAX).then(|| "…".to_owned()));
        let what = format!(
            "Corrupt store files: {} ({}). Reads of their corrupt blocks fail.",
            files.len(),
            named.join("; ")
        );
        (!files.is_empty()).then(|| Finding::bad(what))
    }

    fn logs(&self) -> Option<Finding> {
        let log = self.server.user_log_statistics();
        if log.failures > 0 {
            let what = format!(
                "{} log files were abandoned since the start because a write or sync failed. Check the disk.",
                log.failures
            );
            return Some(Finding::warning(what));
        }
        let most = self.server.options().logs_max as u64;
        let what = format!(
            "There are {} log files, more than {most}: regions with edits in the oldest one are being flushed.",
            log.logs
        );
        (log.logs > most).then(|| Finding::warning(what))
    }
}

/// Maximum number of corrupt files named in a sentence.
const FILES_NAMED_MAX: usize = 10;
/// Number of samples that count as recent: one minute at the default period.
const RECENT: usize = 6;

/// A finding if the series had a positive rate in recent samples.
fn refused(window: &Window, series: &str, what: &str) -> Option<Finding> {
    let recent = window.of(series).iter().rev().take(RECENT);
    recent.copied().any(|rate| rate > 0.0).then(|| Finding::bad(what))
}

/// A finding if flushes wait for compactions because stores have too many files.
fn stores_waiting_for_compactions(regions: &[RegionSnapshot]) -> Option<Finding> {
    let waiting = regions.iter().filter(|one| one.region.compaction_pressure() > 1.0).count();
    let what = format!("{waiting} regions have a store with too many files: flushes wait for compactions.");
    (waiting > 0).then(|| Finding::warning(what))
}
