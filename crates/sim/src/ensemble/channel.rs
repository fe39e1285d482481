//! The connection of one session: requests to the ensemble, and responses and reports from it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::BoxFuture;
use tokio::sync::oneshot;
use zk::coordinator::Error;

use super::SimEnsemble;
use crate::network::HostId;

/// The pause between two attempts to deliver messages over a blocked link.
const RETRANSMISSION: Duration = Duration::from_millis(100);

type Message = Box<dyn FnOnce() + Send>;

/// A connection that is reopened after it was lost.
pub(super) struct Channel {
    requests: Arc<Direction>,
    responses: Responses,
}

#[derive(Clone)]
struct Responses {
    // Counts lost connections. A response of an earlier connection is dropped.
    connection: Arc<AtomicU64>,
    direction: Arc<Direction>,
}

/// Messages in one direction. They arrive in order.
struct Direction {
    ensemble: Arc<SimEnsemble>,
    from: HostId,
    to: HostId,
    // With their times of arrival.
    queue: Mutex<VecDeque<(Duration, Message)>>,
}

impl Channel {
    /// A connection of a process on the host `client`.
    pub(super) fn new(ensemble: &Arc<SimEnsemble>, client: HostId) -> Channel {
        let direction =
            |from, to| Arc::new(Direction { ensemble: ensemble.clone(), from, to, queue: Mutex::default() });
        let responses = Responses { connection: Arc::default(), direction: direction(ensemble.host, client) };
        Channel { requests: direction(client, ensemble.host), responses }
    }

    pub(super) fn ensemble(&self) -> &Arc<SimEnsemble> {
        &self.requests.ensemble
    }

    /// Number of the current connection.
    pub(super) fn connection(&self) -> u64 {
        self.responses.connection.load(Ordering::Relaxed)
    }

    /// Gives the current connection up. Requests on the way may still arrive.
    pub(super) fn close(&self) {
        self.responses.connection.fetch_add(1, Ordering::Relaxed);
        self.responses.direction.drop_messages();
        if self.ensemble().random.one_in(2) {
            self.requests.drop_messages();
        }
    }

    /// Executes a request at the ensemble. `None` if the connection was lost; the request may have
    /// been executed. The request is sent by the call, before the future is polled.
    pub(super) fn exchange<T: Send + 'static>(
        &self,
        act: impl FnOnce(&SimEnsemble) -> Result<T, Error> + Send + 'static,
    ) -> BoxFuture<'static, Option<Result<T, Error>>> {
        let (answer, answered) = oneshot::channel();
        let (responses, connection) = (self.responses.clone(), self.connection());
        self.requests.send(Box::new(move || {
            let response = act(&responses.direction.ensemble);
            responses.send(connection, move || drop(answer.send(response)));
        }));
        Box::pin(async move { answered.await.ok() })
    }

    /// The way on which the ensemble reports changes on the current connection.
    pub(super) fn reports(&self) -> Reports {
        Reports(self.responses.clone())
    }
}

/// Reports from the ensemble to the owner of a session.
pub(super) struct Reports(Responses);

impl Reports {
    /// Sends a report. It is lost with the current connection.
    pub(super) fn send(&self, receive: impl FnOnce() + Send + 'static) {
        self.0.send(self.0.connection.load(Ordering::Relaxed), receive);
    }
}

impl Responses {
    fn send(&self, connection: u64, receive: impl FnOnce() + Send + 'static) {
        let current = self.connection.clone();
        self.direction.send(Box::new(move || {
            if current.load(Ordering::Relaxed) == connection {
                receive();
            }
        }));
    }
}

impl Direction {
    fn send(self: &Arc<Self>, message: Message) {
        let world = self.ensemble.world();
        let arrival = world.now() + world.network().latency(self.from, self.to);
        let mut queue = self.lock();
        let arrival = queue.back().map_or(arrival, |(last, _)| arrival.max(*last));
        queue.push_back((arrival, message));
        drop(queue);
        let direction = self.clone();
        world.scheduler().at(arrival, move || direction.deliver());
    }

    fn drop_messages(&self) {
        let dropped = std::mem::take(&mut *self.lock());
        drop(dropped);
    }

    /// Delivers the messages that have arrived.
    fn deliver(self: Arc<Self>) {
        let world = self.ensemble.world();
        loop {
            let mut queue = self.lock();
            if queue.front().is_none_or(|(arrival, _)| *arrival > world.now()) {
                return;
            }
            if !self.ensemble.is_reachable(self.from, self.to) {
                drop(queue);
                world.scheduler().after(RETRANSMISSION, move || self.deliver());
                return;
            }
            let message = queue.pop_front();
            drop(queue);
            if let Some((_, message)) = message {
                message();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Duration, Message)>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
