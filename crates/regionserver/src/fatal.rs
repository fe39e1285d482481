//! Errors after which a server must not continue.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::env::{Env, TaskClass};
use cell::region::ServerName;
use wire::service::RegionServerStatusService;

/// How long the end of the process is delayed for the last report to the master.
const REPORT_LIMIT: Duration = Duration::from_millis(500);

/// Ends the process.
pub type OnFatal = Arc<dyn Fn(&str) + Send + Sync>;

/// Ends the process after fatal errors, and reports errors to the master.
#[derive(Clone)]
pub(crate) struct FatalErrors {
    env: Env,
    name: ServerName,
    master: Arc<OnceLock<Arc<dyn RegionServerStatusService>>>,
    end: OnFatal,
}

impl FatalErrors {
    pub(crate) fn new(env: Env, name: ServerName, end: OnFatal) -> FatalErrors {
        FatalErrors { env, name, master: Arc::default(), end }
    }

    /// Where errors are reported. Only the first call counts.
    pub(crate) fn report_to(&self, master: Arc<dyn RegionServerStatusService>) {
        let _ = self.master.set(master);
    }

    /// Ends the process at once, because another server may serve the regions already.
    pub(crate) fn end(&self, why: &str) {
        (self.end)(why);
    }

    /// Ends the process after a failure of a log. No write can be acknowledged any more, so there
    /// is time to report the reason. A log that was taken over means that the master knows already.
    pub(crate) fn log_failed(&self, error: &wal::Error) {
        let why = format!("the write-ahead log failed: {error}");
        let is_taken_over =
            matches!(error, wal::Error::Stopped { cause } if fs::shared::is_taken_over(cause));
        match self.master.get() {
            Some(master) if !is_taken_over => self.report_and_end(master.clone(), why),
            _ => self.end(&why),
        }
    }

    fn report_and_end(&self, master: Arc<dyn RegionServerStatusService>, why: String) {
        let (server, end, env) = ((&self.name).into(), self.end.clone(), self.env.clone());
        self.env.spawn(TaskClass::Service, async move {
            let request = proto::ReportRsFatalErrorRequest { server, error_message: why.clone() };
            // If the master does not get the report, it detects the end of the process.
            let _ = env.timeout(REPORT_LIMIT, master.report_rs_fatal_error(request)).await;
            end(&why);
        });
    }
}
