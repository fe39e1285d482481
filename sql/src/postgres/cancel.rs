//! Responses that end when their client cancels the query.
//!
//! pgwire listens for a cancel request while a query is parsed and planned, but not while its rows
//! are sent, which is when the work is done.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt, stream};
use pgwire::api::results::Response;
use pgwire::api::{ClientInfo, ConnectionHandle};
use pgwire::error::{PgWireError, PgWireResult};

use super::readable;

/// Wraps responses: their rows end with an error when the client cancels, and their own errors
/// become readable.
///
/// Call this last, immediately before passing the responses to pgwire: it ends pgwire's own
/// listening for a cancel request.
pub(super) async fn cancellable<C: ClientInfo>(client: &C, responses: Vec<Response>) -> Vec<Response> {
    let handle = client.session_extensions().get::<Arc<ConnectionHandle>>();
    let request = match handle {
        Some(handle) => Some(handle.start_query().await.shared()),
        None => None,
    };
    let cancelled = || {
        let request = request.clone();
        async move {
            match request {
                Some(request) if request.clone().await.is_ok() => {}
                // The next query began, or no client can cancel.
                _ => std::future::pending().await,
            }
        }
    };
    let with_end = |response| match response {
        Response::Query(mut answer) => {
            answer.data_rows = Box::pin(until(answer.data_rows, cancelled().boxed()));
            Response::Query(answer)
        }
        other => other,
    };
    responses.into_iter().map(with_end).collect()
}

/// Rows until the query is cancelled. Then the stream is dropped, together with the plan that
/// produces it.
fn until<T: Send + 'static>(
    rows: BoxStream<'static, PgWireResult<T>>,
    cancelled: Pin<Box<dyn Future<Output = ()> + Send>>,
) -> impl futures_util::Stream<Item = PgWireResult<T>> {
    stream::unfold(Some((rows, cancelled)), |left| async move {
        let (mut rows, cancelled) = left?;
        // Poll the cancel request first: rows may always be ready.
        let step = match select(cancelled, rows.next()).await {
            Either::Left(_) => None,
            Either::Right((row, cancelled)) => Some((row, cancelled)),
        };
        match step {
            None => Some((Err(PgWireError::QueryCanceled), None)),
            Some((None, _)) => None,
            Some((Some(row), cancelled)) => Some((row.map_err(readable), Some((rows, cancelled)))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rows_end_when_they_are_cancelled() {
        let endless = || stream::repeat_with(|| Ok(1)).boxed();
        let never = std::future::pending().boxed();
        assert_eq!(until(endless().take(3).boxed(), never).count().await, 3);
        let (cancel, request) = tokio::sync::oneshot::channel::<()>();
        let mut rows = Box::pin(until(endless(), request.map(|_| ()).boxed()));
        assert!(rows.next().await.is_some_and(|row| row.is_ok()));
        cancel.send(()).unwrap();
        assert!(matches!(rows.next().await, Some(Err(PgWireError::QueryCanceled))));
        assert!(rows.next().await.is_none());
        // A stream that never produces rows ends too.
        let waiting = until(stream::pending::<PgWireResult<u8>>().boxed(), std::future::ready(()).boxed());
        assert_eq!(waiting.count().await, 1);
    }
}
