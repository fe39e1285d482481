//! Results of futures that are always ready.

use std::task::{Context, Poll, Waker};

use base::BoxFuture;

/// The result of a call of an in-memory model, whose futures are ready on the first poll.
///
/// # Panics
/// If the future is not ready.
pub(crate) fn now<T>(mut future: BoxFuture<'_, T>) -> T {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("a model in memory never waits"),
    }
}
