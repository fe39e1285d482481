//! Reports the end of a process to ZooKeeper before its session expires.
//!
//! ZooKeeper keeps the session of a process whose connection is closed until the session timeout,
//! because the process may only have lost its connection. So a master or region server starts a
//! child process, `grampus exit-reporter`. When the kernel reports that the parent has ended, by
//! whatever cause, the child deletes the parent's znodes.
//!
//! A process that has ended acknowledges no write and answers no read, so this is as safe as the
//! end of the session. If the child ends too, for example with the machine, the session expires.
//! On storage with marks of living processes ([`roles::watchdog`]) no child is needed.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base::config::Config;
use base::env::Env;
use cell::region::ServerName;
use os::Runtimes;
use roles::watchdog::delete_znodes_of;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
use tokio::signal::unix::{SignalKind, signal};
use tracing::warn;
use zk::Names;
use zk::ensemble::{Ensemble, EnsembleOptions};

use super::session;
use crate::arguments::ExitReporterArguments;

/// The pause before another attempt to report.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// The child process that reports the end of this one. Dropping it ends the child without a report:
/// the session must be closed by then.
pub(super) struct ExitReporter(Child);

impl ExitReporter {
    /// Starts the child for this process, `name`. Failures are logged: without a child, other
    /// processes notice the end of this one when its session expires.
    pub(super) fn start(config: &Config, name: &ServerName) -> Option<ExitReporter> {
        let started = std::env::current_exe().and_then(|program| {
            let mut command = Command::new(program);
            command.arg("exit-reporter");
            command.args(["--process", &std::process::id().to_string(), "--server", &name.to_string()]);
            let EnsembleOptions { quorum, session_timeout } = session::options(config);
            command.args(["--zookeeper", &quorum, "--znode", &config.zookeeper_parent]);
            command.args(["--session-ms", &session_timeout.as_millis().to_string()]);
            // Signals to the group of this process, such as Ctrl-C, must not end it first.
            command.process_group(0);
            command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()
        });
        match started {
            Ok(child) => Some(ExitReporter(child)),
            Err(error) => {
                warn!(%error, "cannot start the exit reporter; a crash is detected when the session expires");
                None
            }
        }
    }
}

impl Drop for ExitReporter {
    fn drop(&mut self) {
        // Both fail only if the child has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the child process.
///
/// # Errors
/// One line that states why the end of the parent is not reported.
pub fn run(parent: &ExitReporterArguments) -> Result<(), String> {
    let ended = ServerName::parse(&parent.server).ok_or("--server: expected host,port,startcode")?;
    let pid = Pid::from_raw(parent.process).ok_or("--process: expected a process id")?;
    os::block_on(async { ignore_signals() })
        .and_then(|()| wait_for_end(pid, || getppid() == Some(pid)))
        .map_err(|error| format!("cannot wait for the end of process {}: {error}", parent.process))?;
    let runtimes = Runtimes::start(1, 1).map_err(|error| format!("cannot start threads: {error}"))?;
    let env = os::env(Arc::new(runtimes));
    os::block_on(report(&env, parent, &ended))
}

/// Service managers send signals to all processes of a service when its main process has ended.
/// They must not end the report.
fn ignore_signals() -> std::io::Result<()> {
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        // The handler stays after the stream is dropped, and does nothing.
        drop(signal(kind)?);
    }
    Ok(())
}

/// Blocks this thread until process `pid` has ended. `has_pid` is whether the process still has
/// this id, which another process may get after its end.
fn wait_for_end(pid: Pid, has_pid: impl Fn() -> bool) -> std::io::Result<()> {
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(Errno::SRCH) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    while has_pid() {
        // The kernel makes it readable when all threads have ended.
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], None) {
            Ok(_) => return Ok(()),
            // A signal, which is ignored.
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Deletes the znodes of `ended`. Repeats failed attempts until its session has expired anyway.
async fn report(env: &Env, parent: &ExitReporterArguments, ended: &ServerName) -> Result<(), String> {
    let session_timeout = Duration::from_millis(parent.session_ms);
    let options = EnsembleOptions { quorum: parent.zookeeper.clone(), session_timeout };
    let names = Names::below(&parent.znode);
    let deadline = env.clock.monotonic() + session_timeout;
    loop {
        let reported = async {
            let ensemble = Ensemble::connect(&options, env).await.map_err(|error| error.to_string())?;
            let deleted = delete_znodes_of(&*ensemble, &names, ended).await;
            ensemble.close().await;
            deleted.map_err(|error| error.to_string())
        };
        match reported.await {
            Ok(()) => return Ok(()),
            Err(error) if env.clock.monotonic() >= deadline => {
                return Err(format!("cannot report the end of {ended} to ZooKeeper: {error}"));
            }
            Err(_) => env.clock.sleep(RETRY_PAUSE).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_is_noticed_before_another_process_waits_for_it() {
        let mut child = Command::new("sleep").arg("0.2").spawn().unwrap();
        wait_for_end(Pid::from_child(&child), || true).unwrap();
        assert!(child.try_wait().unwrap().is_some(), "it has ended");
        // The id is free now, or another process has it.
        wait_for_end(Pid::from_child(&child), || false).unwrap();
    }
}
