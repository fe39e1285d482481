//! When to stop: Ctrl-C, SIGTERM, a client's call.

use tokio::signal::unix::{SignalKind, signal};
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

    /// Waits for a signal or a request, and returns the reason.
    ///
    /// # Errors
    /// If the system takes no signal handlers.
    pub async fn wait(&self) -> std::io::Result<String> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut requested = self.0.subscribe();
        tokio::select! {
            _ = terminate.recv() => Ok("SIGTERM".to_string()),
            _ = interrupt.recv() => Ok("Ctrl-C".to_string()),
            reason = requested.wait_for(Option::is_some) => {
                Ok(reason.ok().and_then(|reason| reason.clone()).unwrap_or_default())
            }
        }
    }
}
