//! Turns: how calls share the thread of their connections.
//!
//! Calls run on the threads that serve connections. A call that computes for long [pauses](pause) between two short
//! stretches of work, so that other calls get their turn; one whose single steps are long [leaves](leave_thread) for a
//! thread of low priority. Both are requests to the task that polls the call: it collects them with [`take_request`].
//! Elsewhere a pause is an ordinary yield, and leaving does nothing else.
//!
//! A call whose client has gone reads on for no one: it asks [`is_abandoned`] at its pauses, and ends.

use std::cell::Cell;

/// How long the calls of one connection may compute before other connections of the thread get their turn.
pub const TURN: std::time::Duration = std::time::Duration::from_millis(1);

/// What a call asks of the task that polls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// It is ready to go on, after others.
    Pause,
    /// It is ready to go on, on a thread of low priority.
    Leave,
}

thread_local! {
    static ABANDONED: Cell<bool> = const { Cell::new(false) };
    static REQUEST: Cell<Option<Request>> = const { Cell::new(None) };
}

/// Whether the client of the calls that are polled next on this thread has gone.
#[inline]
pub fn set_abandoned(is_abandoned: bool) {
    ABANDONED.set(is_abandoned);
}

/// What the call that was polled last asks for, if it is not done. To be taken after each poll.
#[inline]
pub fn take_request() -> Option<Request> {
    REQUEST.take()
}

/// Whether the client of the call at work has gone.
#[inline]
pub fn is_abandoned() -> bool {
    ABANDONED.get()
}

/// Lets others have their turn.
pub async fn pause() {
    REQUEST.set(Some(Request::Pause));
    tokio::task::yield_now().await;
}

/// Moves the call to a thread of low priority, where long steps delay no connection.
pub async fn leave_thread() {
    REQUEST.set(Some(Request::Leave));
    tokio::task::yield_now().await;
}
