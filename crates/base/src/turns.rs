//! Cooperative scheduling: how calls share the thread of their connections.
//!
//! Calls run on the threads that serve connections. A call that computes for long [pauses](pause)
//! between short stretches of work, so that other calls can run. A call whose single steps are long
//! [moves](leave_thread) to a thread of low priority. Both are requests to the task that polls the
//! call, which collects them with [`take_request`]. In other tasks a pause is an ordinary yield,
//! and so is `leave_thread`.
//!
//! A call whose client has disconnected should stop: it checks [`is_abandoned`] at its pauses and
//! ends.

use std::cell::Cell;

/// How long the calls of one connection may compute before other connections of the thread get to
/// run.
pub const TIME_SLICE: std::time::Duration = std::time::Duration::from_millis(1);

/// What a call requests from the task that polls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The call can continue after other calls have run.
    Pause,
    /// The call can continue on a thread of low priority.
    Leave,
}

thread_local! {
    static ABANDONED: Cell<bool> = const { Cell::new(false) };
    static REQUEST: Cell<Option<Request>> = const { Cell::new(None) };
}

/// Sets whether the client of the calls that this thread polls next has disconnected.
#[inline]
pub fn set_abandoned(is_abandoned: bool) {
    ABANDONED.set(is_abandoned);
}

/// The request of the call that was polled last, if the call is still pending. To be taken after
/// each poll.
#[inline]
pub fn take_request() -> Option<Request> {
    REQUEST.take()
}

/// Whether the client of the current call has disconnected.
#[inline]
pub fn is_abandoned() -> bool {
    ABANDONED.get()
}

/// Lets other calls run.
pub async fn pause() {
    REQUEST.set(Some(Request::Pause));
    tokio::task::yield_now().await;
}

/// Moves the call to a thread of low priority, where long steps delay no connection.
pub async fn leave_thread() {
    REQUEST.set(Some(Request::Leave));
    tokio::task::yield_now().await;
}
