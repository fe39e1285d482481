//! Calls of connections with compressed cell blocks: the request's block is decompressed before the
//! call, and the response's block is compressed after it.
//!
//! A short block can be very long when it is decompressed. So only the first [`INLINE_BYTES`] are
//! decompressed on the connection's thread. The rest is decompressed step by step on threads of low
//! priority, one block per connection at a time. The output of each step is admitted before the
//! next step: it counts as bytes of requests until the call ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::budget::{Budget, BudgetShare};
use base::compression::{self, Expansion};
use base::env::{Env, TaskClass};
use base::spent::{self, Phase};
use bytes::Bytes;
use tokio::sync::oneshot;

use super::overloaded;
use crate::call::{Call, ConnectionInfo, Reply, Service};
use crate::compressor::Compressor;
use proto::exception::JavaException;

/// Bytes of a block that are decompressed on the connection's thread: a few hundred microseconds.
const INLINE_BYTES: usize = 128 << 10;

/// Whether a block of the connection is being decompressed on another thread. Until that ends, no
/// further requests are started.
#[derive(Clone, Default)]
pub(super) struct Expanding(Option<Arc<AtomicBool>>);

impl Expanding {
    /// For a connection that negotiated a compressor.
    pub(super) fn possible() -> Expanding {
        Expanding(Some(Arc::default()))
    }

    pub(super) fn is_active(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    fn set(&self, is_active: bool) {
        if let Some(flag) = &self.0 {
            flag.store(is_active, Ordering::Relaxed);
        }
    }
}

/// Clears the flag of a decompression when it is dropped, even if the call is dropped.
struct ExpandingGuard(Expanding);

impl Drop for ExpandingGuard {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// The state that compressed calls of a connection need.
pub(super) struct Compressed {
    pub(super) env: Env,
    pub(super) compressor: Compressor,
    pub(super) requests: Arc<Budget>,
    /// Maximum size in bytes of a block.
    pub(super) limit: usize,
    pub(super) expanding: Expanding,
}

impl Compressed {
    /// Calls `service` with uncompressed cells, and compresses the cells of its response.
    pub(super) async fn call(
        self,
        service: Arc<dyn Service>,
        mut call: Call,
    ) -> Result<Reply, JavaException> {
        // Released when the call is done.
        let mut share = BudgetShare::of(&self.requests);
        if !call.cells.is_empty() {
            let stream = std::mem::take(&mut call.cells);
            call.cells = self.expand(stream, &mut share, &call.connection).await?;
        }
        let mut reply = service.call(call).await?;
        if !reply.cells.is_empty() {
            let plain = std::mem::take(&mut reply.cells).into_bytes();
            reply.cells = self.compress(plain).await?.into();
        }
        Ok(reply)
    }

    async fn expand(
        &self,
        stream: Bytes,
        share: &mut BudgetShare,
        connection: &Arc<ConnectionInfo>,
    ) -> Result<Bytes, JavaException> {
        let clock = &*self.env.clock;
        let begun = spent::timed(Phase::Decode, clock, || -> Result<_, JavaException> {
            let expansion = self.compressor.expansion(stream, self.limit, INLINE_BYTES);
            let mut expansion = expansion.map_err(|error| unreadable(connection, &error))?;
            let ended = step(&mut expansion, share, connection)?;
            Ok((expansion, ended))
        })?;
        let (mut expansion, ended) = begun;
        if ended {
            return Ok(expansion.into_output().into());
        }
        self.expanding.set(true);
        let guard = ExpandingGuard(self.expanding.clone());
        let (mut background_share, connection) =
            (std::mem::replace(share, BudgetShare::of(&self.requests)), connection.clone());
        let rest = async move {
            while !connection.presence.has_left() {
                if step(&mut expansion, &mut background_share, &connection)? {
                    return Ok((expansion.into_output(), background_share));
                }
                tokio::task::yield_now().await;
            }
            Err(JavaException::do_not_retry("client disconnected"))
        };
        let (output, background_share) = self.run_in_background(rest).await?;
        *share = background_share;
        drop(guard);
        Ok(output.into())
    }

    async fn compress(&self, plain: Bytes) -> Result<Bytes, JavaException> {
        let compressor = self.compressor;
        if !compressor.is_slow_for(plain.len()) {
            return Ok(spent::timed(Phase::Work, &*self.env.clock, || compressor.compress(&plain)));
        }
        self.run_in_background(async move { Ok(compressor.compress(&plain)) }).await
    }

    /// Runs `work` on a thread of low priority.
    async fn run_in_background<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, JavaException>> + Send + 'static,
    ) -> Result<T, JavaException> {
        let (send, receive) = oneshot::channel();
        self.env.spawn(TaskClass::Scan, async move {
            // An error means that the call was dropped.
            let _ = send.send(work.await);
        });
        let lost = |_| JavaException::do_not_retry("the server could not compress or expand the cell block");
        receive.await.map_err(lost)?
    }
}

/// Decompresses another step and admits its output; returns whether the block has ended.
fn step(
    expansion: &mut Expansion,
    share: &mut BudgetShare,
    connection: &ConnectionInfo,
) -> Result<bool, JavaException> {
    let before = expansion.output_len();
    let ended = expansion.step().map_err(|error| unreadable(connection, &error))?;
    match share.take_large(expansion.output_len() - before) {
        true => Ok(ended),
        false => Err(overloaded::queue_too_big(connection)),
    }
}

fn unreadable(connection: &ConnectionInfo, error: &compression::Error) -> JavaException {
    let (local, peer) = (connection.local, connection.peer.ip());
    JavaException::do_not_retry(format!(
        "{local} is unable to read call parameter from client {peer}; {error}"
    ))
}
