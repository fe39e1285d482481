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

    /// Sets the master to which errors are reported. Only the first call has an effect.
    pub(crate) fn report_to(&self, master: Arc<dyn RegionServerStatusService>) {
        let _ = self.master.set(master);
    }

    /// Ends the process immediately, because another server may already serve the regions.
    pub(crate) fn end(&self, why: &str) {
        (self.end)(why);
    }

    /// Ends the process after a failure of a log. No write can be acknowledged any more, so there
    /// is time to report the reason. If the log failed because the master has fenced it, the master
    /// already counts this server as dead: then nothing is reported, and the process ends
    /// immediately.
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use base::BoxFuture;
    use bytes::Bytes;
    use fs::FilePath;
    use proto::exception::Answer;
    use wire::service::{Caller, Remote};

    use super::*;

    /// What happened, in order: the methods that the master got, and the end.
    type Events = Arc<Mutex<Vec<String>>>;

    /// A master that receives reports.
    struct Master(Events);

    impl Caller for Master {
        fn call(
            &self,
            _: &'static str,
            method: &'static str,
            _: Bytes,
            _: Bytes,
        ) -> BoxFuture<'_, Answer<(Bytes, Bytes)>> {
            self.0.lock().unwrap().push(method.to_string());
            Box::pin(std::future::ready(Ok((Bytes::new(), Bytes::new()))))
        }
    }

    async fn events_after(cause: fs::Error) -> Vec<String> {
        let events = Events::default();
        let (ended, end) = (events.clone(), Arc::new(tokio::sync::Notify::new()));
        let notify = end.clone();
        let on_fatal: OnFatal = Arc::new(move |_| {
            ended.lock().unwrap().push("end".to_string());
            notify.notify_one();
        });
        let name = ServerName { host: "h".into(), port: 1, start_code: 1 };
        let fatal_errors = FatalErrors::new(base::testing::env(1), name, on_fatal);
        fatal_errors.report_to(Arc::new(Remote(Master(events.clone()))));
        fatal_errors.log_failed(&wal::Error::Stopped { cause });
        end.notified().await;
        let events = events.lock().unwrap();
        events.clone()
    }

    #[tokio::test]
    async fn the_failure_of_a_log_is_reported_before_the_end() {
        let failed = fs::Error::io(&FilePath::new("WALs/log"), "sync", "disk error");
        assert_eq!(events_after(failed).await, ["ReportRSFatalError", "end"]);
    }

    #[tokio::test]
    async fn a_server_whose_log_was_taken_over_ends_at_once() {
        let taken_over = fs::Error::TakenOver { path: FilePath::new("WALs/log") };
        assert_eq!(events_after(taken_over).await, ["end"]);
    }
}
