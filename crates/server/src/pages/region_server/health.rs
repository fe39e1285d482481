//! What somebody should look at, on a region server.

use base::history::Window;
use fs::space::Level;
use web::section::Finding;

use super::RegionServerPages;
use super::served::Served;
use crate::pages::common::errors_logged;

impl RegionServerPages {
    /// All that is not as it should be at this moment.
    pub(super) fn findings(&self, served: &[Served], window: &Window) -> Vec<Finding> {
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
            self.transit("requests", self.shared.requests(), "clients are told to come back later"),
            self.transit("answers", self.shared.answers(), "scans are cut short or fail"),
            refused(
                window,
                "refused_writes",
                "Writes are being refused: their regions have no room until they are flushed.",
            ),
            refused(
                window,
                "refused_calls",
                "Calls are being refused: there are too many, or the memory for them is full.",
            ),
            stores_that_wait(served),
            self.logs(),
            self.corrupt_files(),
            errors_logged(window),
        ];
        let of_logs = self.server.recovered().warnings().iter().map(|what| Finding::warning(what.clone()));
        of_disk.chain(of_logs).chain(found.into_iter().flatten()).collect()
    }

    fn memstores(&self) -> Option<Finding> {
        let (used, limit) = (self.server.memstore_bytes(), self.memory.memstores);
        let low_mark = (limit as f64 * self.server.options().memstore_low_mark) as u64;
        if used >= limit {
            return Some(Finding::bad(
                "Memstores have all of their memory: writers are refused until flushes end.",
            ));
        }
        let what = "Memstores are near their limit, and the largest are being flushed; at the limit writers are refused.";
        (used > low_mark).then(|| Finding::warning(what))
    }

    fn process(&self) -> Option<Finding> {
        let resident = base::memory::resident_bytes()?;
        let what =
            "The process has more memory than grampus.memory says; the cache is made smaller by as much.";
        (resident > self.memory.total).then(|| Finding::warning(what))
    }

    fn transit(&self, what: &str, budget: &base::budget::Budget, then: &str) -> Option<Finding> {
        let share = budget.used() as f64 / budget.limit().max(1) as f64;
        let text = format!("{:.0} % of the memory for {what} is taken; at its end {then}.", share * 100.0);
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
        let log = self.server.log_figures();
        if log.failures > 0 {
            let what = format!(
                "{} files of the log were given up since the start because a write or sync failed: look at the disk.",
                log.failures
            );
            return Some(Finding::warning(what));
        }
        let most = self.server.options().logs_max as u64;
        let what = format!(
            "{} logs are kept, more than {most}: regions that hold the oldest are being flushed.",
            log.logs
        );
        (log.logs > most).then(|| Finding::warning(what))
    }
}

/// Corrupt files that are named in a sentence.
const FILES_NAMED_MAX: usize = 10;
/// Samples that count as now: a minute.
const RECENT: usize = 6;

/// That something was refused in the last samples.
fn refused(window: &Window, series: &str, what: &str) -> Option<Finding> {
    let recent = window.of(series).iter().rev().take(RECENT);
    recent.copied().any(|rate| rate > 0.0).then(|| Finding::bad(what))
}

/// Stores with so many files that flushes wait for compactions.
fn stores_that_wait(served: &[Served]) -> Option<Finding> {
    let waiting = served.iter().filter(|one| one.region.compaction_pressure() > 1.0).count();
    let what =
        format!("{waiting} regions have a store with so many files that flushes wait for compactions.");
    (waiting > 0).then(|| Finding::warning(what))
}
