//! When to stop: Ctrl-C, SIGTERM, SIGHUP, a client's call.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Waits for the next Ctrl-C; for ever if the system takes no signal handlers.
pub async fn interrupted() {
    match signal(SignalKind::interrupt()) {
        Ok(mut interrupt) => {
            interrupt.recv().await;
        }
        Err(_) => std::future::pending().await,
    }
}

/// Waits until the process is to end: by SIGTERM or SIGINT, or because its terminal is gone. For ever if the system
/// takes no signal handlers.
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

/// Says why to stop, once somebody wants it.
#[derive(Clone)]
pub struct Stop(watch::Sender<Option<String>>);

impl Stop {
    /// Nobody wants to stop yet.
    pub fn new() -> Stop {
        Stop(watch::Sender::new(None))
    }

    /// Asks for the stop; the first reason counts.
    pub fn request(&self, why: &str) {
        self.0.send_if_modified(|reason| {
            let is_first = reason.is_none();
            reason.get_or_insert_with(|| why.to_string());
            is_first
        });
    }

    /// Takes Ctrl-C and SIGTERM from here on; before, they end the process at once, which loses nothing that was
    /// acknowledged. To be called before anybody is told that the server is ready.
    ///
    /// # Errors
    /// If the system takes no signal handlers.
    pub fn listen(&self) -> std::io::Result<StopListener> {
        Ok(StopListener {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            requested: self.0.subscribe(),
        })
    }
}

/// Hears of every reason to stop since it was made.
pub struct StopListener {
    terminate: Signal,
    interrupt: Signal,
    requested: watch::Receiver<Option<String>>,
}

impl StopListener {
    /// Waits for a signal or a request, and returns the reason.
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
