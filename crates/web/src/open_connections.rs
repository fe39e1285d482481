//! The open connections of a port. When their number is at its maximum, a new connection replaces
//! the one whose client has sent and read nothing for longest.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::Clock;
use tokio::sync::Notify;

/// Maximum number of connections that are to close and still have their file descriptors.
const CLOSING_MAX: usize = 16;

/// The open connections of a port, up to a maximum number.
pub(crate) struct OpenConnections {
    clock: Arc<dyn Clock>,
    max: usize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    next_number: u64,
    by_number: HashMap<u64, Arc<ConnectionActivity>>,
    /// The number of connections that are no longer in the map, because they close to make room.
    closing: usize,
}

impl OpenConnections {
    pub(crate) fn new(clock: Arc<dyn Clock>, max: usize) -> Arc<OpenConnections> {
        Arc::new(OpenConnections { clock, max, entries: Mutex::default() })
    }

    /// Adds a connection, and closes the one that has waited longest for its client if there are
    /// too many. Returns `None` if all of them execute requests, or too many are still closing.
    pub(crate) fn add(self: &Arc<Self>) -> Option<OpenConnection> {
        let mut entries = self.entries();
        if entries.by_number.len() >= self.max && !entries.close_longest_waiting() {
            return None;
        }
        let number = entries.next_number;
        entries.next_number += 1;
        let activity = Arc::new(ConnectionActivity::new(self.clock.clone()));
        entries.by_number.insert(number, activity.clone());
        Some(OpenConnection { connections: self.clone(), number, activity })
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    /// Returns whether there is a connection that closes now.
    fn close_longest_waiting(&mut self) -> bool {
        if self.closing >= CLOSING_MAX {
            return false;
        }
        let waiting = self.by_number.iter().filter(|(_, activity)| activity.is_waiting());
        let longest = waiting.min_by_key(|(number, activity)| (activity.last_nanos(), **number));
        let Some(number) = longest.map(|(number, _)| *number) else { return false };
        let Some(activity) = self.by_number.remove(&number) else { return false };
        activity.close.notify_one();
        self.closing += 1;
        true
    }
}

/// One of the open connections; removed when dropped.
pub(crate) struct OpenConnection {
    connections: Arc<OpenConnections>,
    number: u64,
    pub(crate) activity: Arc<ConnectionActivity>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let mut entries = self.connections.entries();
        if entries.by_number.remove(&self.number).is_none() {
            entries.closing -= 1;
        }
    }
}

/// When the client of a connection last sent or read something, and whether the server executes
/// requests for it.
pub struct ConnectionActivity {
    clock: Arc<dyn Clock>,
    /// Monotonic time of the last transfer, or of the end of the last execution, in nanoseconds.
    last_nanos: AtomicU64,
    /// The number of requests that are executed.
    executing: AtomicUsize,
    close: Notify,
}

impl ConnectionActivity {
    fn new(clock: Arc<dyn Clock>) -> ConnectionActivity {
        let last_nanos = AtomicU64::new(nanos(clock.monotonic()));
        ConnectionActivity { clock, last_nanos, executing: AtomicUsize::new(0), close: Notify::new() }
    }

    /// Marks that the server executes a request, until the returned value is dropped. Meanwhile the
    /// connection is not closed to make room for another one.
    pub fn execute(self: &Arc<Self>) -> Execution {
        self.executing.fetch_add(1, Ordering::Relaxed);
        Execution(self.clone())
    }

    /// Records that bytes were received or sent.
    pub(crate) fn record_transfer(&self) {
        self.last_nanos.store(nanos(self.clock.monotonic()), Ordering::Relaxed);
    }

    /// Waits until the connection must make room for another one.
    pub(crate) async fn closed(&self) {
        self.close.notified().await;
    }

    fn is_waiting(&self) -> bool {
        self.executing.load(Ordering::Relaxed) == 0
    }

    fn last_nanos(&self) -> u64 {
        self.last_nanos.load(Ordering::Relaxed)
    }
}

/// A request in execution; see [`ConnectionActivity::execute`].
pub struct Execution(Arc<ConnectionActivity>);

impl Drop for Execution {
    fn drop(&mut self) {
        self.0.record_transfer();
        self.0.executing.fetch_sub(1, Ordering::Relaxed);
    }
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use base::testing::TestClock;

    use super::*;

    fn connections(max: usize) -> Arc<OpenConnections> {
        OpenConnections::new(Arc::new(TestClock::new()), max)
    }

    async fn pass_a_second() {
        TestClock::new().sleep(Duration::from_secs(1)).await;
    }

    fn must_close(connection: &OpenConnection) -> bool {
        pin!(connection.activity.closed()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_silent_client_makes_room() {
        let connections = connections(2);
        let (first, second) = (connections.add().unwrap(), connections.add().unwrap());
        pass_a_second().await;
        first.activity.record_transfer();
        let third = connections.add().unwrap();
        assert_eq!([&first, &second, &third].map(must_close), [false, true, false]);
        // Its late end makes no room: it was no longer counted.
        drop(second);
        pass_a_second().await;
        let fourth = connections.add().unwrap();
        assert_eq!([&first, &third, &fourth].map(must_close), [true, false, false]);
        drop(third);
        let fifth = connections.add().unwrap();
        assert_eq!([&fourth, &fifth].map(must_close), [false, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_request_is_executed_stays() {
        let connections = connections(2);
        let (first, second) = (connections.add().unwrap(), connections.add().unwrap());
        let of_first = first.activity.execute();
        pass_a_second().await;
        let of_second = second.activity.execute();
        assert!(connections.add().is_none(), "both execute requests");
        drop(of_second);
        pass_a_second().await;
        // Its silence begins with the end of the execution.
        drop(of_first);
        let _third = connections.add().unwrap();
        assert_eq!([&first, &second].map(must_close), [false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_still_close_are_limited() {
        let connections = connections(1);
        let mut open: Vec<OpenConnection> = (0..=CLOSING_MAX).map(|_| connections.add().unwrap()).collect();
        assert!(connections.add().is_none(), "their descriptors are still in use");
        open.remove(0);
        assert!(connections.add().is_some());
    }
}
