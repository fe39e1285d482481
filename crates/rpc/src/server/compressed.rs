//! Calls of connections whose cell blocks are compressed: the request's block is expanded before the call, the response's
//! block compressed after it.
//!
//! A few bytes can expand to very many, so that only the first [`INLINE_BYTES`] are expanded on the connection's thread.
//! What follows is expanded step by step on threads of low priority, one block per connection at a time. What a step
//! made is admitted before the next one: expanded bytes count as bytes of requests until the call ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::budget::{Budget, Share};
use base::compression::{self, Expansion};
use base::env::{Env, TaskClass};
use base::spent::{self, Phase};
use bytes::Bytes;
use tokio::sync::oneshot;

use super::overloaded;
use crate::call::{Call, ConnectionInfo, Failure, Reply, Service};
use crate::compressor::Compressor;

/// Bytes of a block that are expanded at once: some hundred microseconds.
const INLINE_BYTES: usize = 128 << 10;

/// Whether a block of the connection is being expanded elsewhere. Until that ends, no further requests are begun.
#[derive(Clone, Default)]
pub(super) struct Expanding(Option<Arc<AtomicBool>>);

impl Expanding {
    /// For a connection that agreed on a compressor.
    pub(super) fn possible() -> Expanding {
        Expanding(Some(Arc::default()))
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    fn set(&self, is_under_way: bool) {
        if let Some(flag) = &self.0 {
            flag.store(is_under_way, Ordering::Relaxed);
        }
    }
}

/// Ends an expansion, also where its call is dropped.
struct UnderWay(Expanding);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// What compressed calls of a connection need.
pub(super) struct Compressed {
    pub(super) env: Env,
    pub(super) compressor: Compressor,
    pub(super) requests: Arc<Budget>,
    /// Bytes of the longest block.
    pub(super) limit: usize,
    pub(super) expanding: Expanding,
}

impl Compressed {
    /// Answers `call` by `service`, which sees its cells plain.
    pub(super) async fn call(self, service: Arc<dyn Service>, mut call: Call) -> Result<Reply, Failure> {
        // Given back when the call is done.
        let mut share = Share::of(&self.requests);
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
        share: &mut Share,
        connection: &Arc<ConnectionInfo>,
    ) -> Result<Bytes, Failure> {
        let clock = &*self.env.clock;
        let begun = spent::took(Phase::Decode, clock, || -> Result<_, Failure> {
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
        let under_way = UnderWay(self.expanding.clone());
        let (mut share_there, connection) =
            (std::mem::replace(share, Share::of(&self.requests)), connection.clone());
        let rest = async move {
            while !connection.presence.has_left() {
                if step(&mut expansion, &mut share_there, &connection)? {
                    return Ok((expansion.into_output(), share_there));
                }
                tokio::task::yield_now().await;
            }
            Err(Failure::do_not_retry("the client has gone"))
        };
        let (output, share_there) = self.elsewhere(rest).await?;
        *share = share_there;
        drop(under_way);
        Ok(output.into())
    }

    async fn compress(&self, plain: Bytes) -> Result<Bytes, Failure> {
        let compressor = self.compressor;
        if !compressor.is_slow_for(plain.len()) {
            return Ok(spent::took(Phase::Work, &*self.env.clock, || compressor.compress(&plain)));
        }
        self.elsewhere(async move { Ok(compressor.compress(&plain)) }).await
    }

    /// Does `work` on a thread of low priority.
    async fn elsewhere<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let (send, receive) = oneshot::channel();
        self.env.spawn(TaskClass::Scan, async move {
            // An error means that the call was dropped.
            let _ = send.send(work.await);
        });
        let lost = |_| Failure::do_not_retry("the server could not compress or expand the cell block");
        receive.await.map_err(lost)?
    }
}

/// Expands a little more, and admits what that made; whether the block has ended.
fn step(expansion: &mut Expansion, share: &mut Share, connection: &ConnectionInfo) -> Result<bool, Failure> {
    let before = expansion.output_len();
    let ended = expansion.step().map_err(|error| unreadable(connection, &error))?;
    match share.take_large(expansion.output_len() - before) {
        true => Ok(ended),
        false => Err(overloaded::queue_too_big(connection)),
    }
}

fn unreadable(connection: &ConnectionInfo, error: &compression::Error) -> Failure {
    let (local, peer) = (connection.local, connection.peer.ip());
    Failure::do_not_retry(format!("{local} is unable to read call parameter from client {peer}; {error}"))
}
