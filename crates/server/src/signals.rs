//! Reasons to stop: Ctrl-C, SIGTERM, SIGHUP, a client's call.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Waits for the next Ctrl-C, or forever if no signal handler can be installed.
pub async fn interrupted() {
    match signal(SignalKind::interrupt()) {
        Ok(mut interrupt) => {
            interrupt.recv().await;
        }
        Err(_) => std::future::pending().await,
    }
}

/// Waits for SIGTERM, SIGINT, or SIGHUP (its terminal is gone). Waits forever if no signal handler
/// can be installed.
pub async fn terminated() {
    let taken =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()), signal(SignalKind::hangup()));
    match taken {
        (Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hangup.recv() => {}
            }
        }
        _ => std::future::pending().await,
    }
}

/// A stop request with its reason, shared by all parts of the process.
#[derive(Clone)]
pub struct Stop(watch::Sender<Option<String>>);

impl Stop {
    /// Creates it without a request.
    pub fn new() -> Stop {
        Stop(watch::Sender::new(None))
    }

    /// Requests the stop. The first reason wins.
    pub fn request(&self, why: &str) {
        self.0.send_if_modified(|reason| {
            let is_first = reason.is_none();
            reason.get_or_insert_with(|| why.to_string());
            is_first
        });
    }

    /// Handles Ctrl-C and SIGTERM from this call on. Before it they end the process immediately,
    /// which loses no acknowledged write. Call it before the server announces that it is ready.
    ///
    /// # Errors
    /// If no signal handler can be installed.
    pub fn listen(&self) -> std::io::Result<StopListener> {
        Ok(StopListener {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            requested: self.0.subscribe(),
        })
    }
}

/// Receives signals and stop requests. A request made before the listener was created counts.
pub struct StopListener {
    terminate: Signal,
    interrupt: Signal,
    requested: watch::Receiver<Option<String>>,
}

impl StopListener {
    /// Waits for a signal or a request and returns the reason.
    pub async fn wait(mut self) -> String {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM".to_string(),
            _ = self.interrupt.recv() => "Ctrl-C".to_string(),
            reason = self.requested.wait_for(Option::is_some) => {
                reason.ok().and_then(|reason| reason.clone()).unwrap_or_default()
            }
        }
    }
}
