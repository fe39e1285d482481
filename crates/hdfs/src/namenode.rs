//! Calls to the NameNodes of a name service.
//!
//! A call is sent to the NameNode that was last active, and to the others if that one is in standby
//! or does not respond. Each call has one id for all its attempts, so a NameNode executes it only
//! once. How long one transmission of a call is waited for is in `outstanding`. If a NameNode
//! refuses the connection, the call fails only when all others do so too.

mod outstanding;

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

use base::env::Env;
use prost::Message;
use tokio::sync::Mutex;
use tracing::warn;

use self::outstanding::Outstanding;
use crate::connection::{CLIENT_PROTOCOL, CallError, CallId, Connection, Identity};
use crate::failure::Failure;
use crate::options::{Address, Limits, Settings};

/// How long a call waits.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// For the response of one NameNode.
    pub(crate) attempt: Duration,
    /// For all attempts.
    pub(crate) total: Duration,
}

/// The NameNodes of a name service.
pub(crate) struct NameNode {
    env: Env,
    identity: Identity,
    servers: Vec<Server>,
    // Index of the server that was last active.
    active: AtomicUsize,
    next_call: AtomicI32,
    patience: Patience,
    pause: Duration,
    pause_max: Duration,
}

struct Server {
    address: Address,
    connection: Mutex<Option<Arc<Connection>>>,
}

/// What to do after an attempt.
enum Next {
    /// The other NameNode may be active, or this one is unreachable.
    Other,
    /// The connection was old and failed.
    Reconnect,
    /// The NameNode is starting or in safe mode.
    Wait,
}

impl NameNode {
    pub(crate) fn new(env: &Env, user: &str, settings: &Settings, limits: &Limits) -> NameNode {
        let mut client_id = [0; 16];
        env.random.fill(&mut client_id);
        let server = |address: &Address| Server { address: address.clone(), connection: Mutex::default() };
        NameNode {
            env: env.clone(),
            identity: Identity { user: user.to_owned(), client_id },
            servers: settings.namenodes.iter().map(server).collect(),
            active: AtomicUsize::new(0),
            next_call: AtomicI32::new(0),
            patience: Patience { attempt: limits.call, total: limits.namenode },
            pause: settings.pause,
            pause_max: settings.pause_max,
        }
    }

    /// Index of the NameNode that was last active, in the order of the settings.
    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed) % self.servers.len()
    }

    /// The client as it introduces itself.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Calls the active NameNode, for as long as [`Limits`] allow.
    pub(crate) async fn call<A: Message + Default>(
        &self,
        method: &'static str,
        request: &impl Message,
    ) -> Result<A, Failure> {
        self.call_within(self.patience, method, request).await
    }

    /// Calls the active NameNode, with other time limits.
    pub(crate) async fn call_within<A: Message + Default>(
        &self,
        patience: Patience,
        method: &'static str,
        request: &impl Message,
    ) -> Result<A, Failure> {
        // Ids of calls are not negative; they may repeat after 2 billion calls.
        let id = self.next_call.fetch_add(1, Ordering::Relaxed) & i32::MAX;
        let began = self.env.clock.monotonic();
        let mut outstanding: Vec<Outstanding> = Vec::new();
        outstanding.resize_with(self.servers.len(), Outstanding::default);
        // Whether the last attempt at a server was refused.
        let mut refused = vec![false; self.servers.len()];
        let mut attempts = 0;
        loop {
            let elapsed = self.env.clock.monotonic().saturating_sub(began);
            let left = patience.total.saturating_sub(elapsed);
            let index = self.active();
            let call = CallId { id, retries: attempts };
            let limit = patience.attempt.min(left);
            let sent = &mut outstanding[index];
            let attempt = self.attempt((index, sent), limit, method, call, request).await;
            refused[index] = matches!(attempt, Err(Attempt::Refused(..)));
            let (next, why) = match attempt {
                Ok(response) => return Ok(response),
                Err(Attempt::Final(failure)) => return Err(failure),
                // A server that was only slow may still execute the call.
                Err(Attempt::Refused(failure, _)) if refused.iter().all(|refused| *refused) => {
                    return Err(failure);
                }
                Err(Attempt::Refused(_, why)) => (Next::Other, why),
                Err(Attempt::Retry(next, why)) => (next, why),
            };
            attempts += 1;
            let pause = self.pause_after(&next, attempts);
            let elapsed = self.env.clock.monotonic().saturating_sub(began);
            if elapsed + pause >= patience.total {
                let message = format!("no active NameNode after {} ms: {why}", elapsed.as_millis());
                return Err(Failure::Unreachable { message });
            }
            self.report(method, attempts, elapsed, &why);
            if matches!(next, Next::Other) {
                // Another call may have found another one already.
                let (from, to) = (index, (index + 1) % self.servers.len());
                let _ = self.active.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
            }
            if !pause.is_zero() {
                self.env.clock.sleep(pause).await;
            }
        }
    }

    /// Sends the call to the server with this index, unless an earlier attempt did, and waits for
    /// the response.
    async fn attempt<A: Message + Default>(
        &self,
        (index, outstanding): (usize, &mut Outstanding),
        limit: Duration,
        method: &'static str,
        call: CallId,
        request: &impl Message,
    ) -> Result<A, Attempt> {
        let server = &self.servers[index];
        let at = |why: String| format!("{}:{}: {why}", server.address.host, server.address.port);
        let mut was_open = outstanding.is_sent();
        let response = self.env.timeout(limit, async {
            loop {
                if let Some(response) = outstanding.response().await {
                    return response;
                }
                let connection = self.connection(server, &mut was_open).await?;
                outstanding.send(connection, method, call, request);
            }
        });
        let response = response.await;
        match response {
            Some(Ok(response)) => A::decode_length_delimited(response).map_err(|error| {
                let message = at(format!("invalid response to {method}: {error}"));
                Attempt::Final(Failure::Unreachable { message })
            }),
            Some(Err(CallError::Remote(failure))) => Err(classify(failure, at)),
            Some(Err(CallError::Refused(failure))) => {
                let why = at(failure.message());
                Err(Attempt::Refused(failure, why))
            }
            Some(Err(CallError::Broken(why))) => {
                let next = if was_open { Next::Reconnect } else { Next::Other };
                Err(Attempt::Retry(next, at(why)))
            }
            None => {
                outstanding.record_timeout(limit, self.env.clock.monotonic());
                Err(Attempt::Retry(Next::Other, at(format!("no response within {} ms", limit.as_millis()))))
            }
        }
    }

    async fn connection(&self, server: &Server, was_open: &mut bool) -> Result<Arc<Connection>, CallError> {
        let mut connection = server.connection.lock().await;
        if let Some(open) = connection.as_ref().filter(|open| open.is_usable()) {
            *was_open = true;
            return Ok(open.clone());
        }
        *connection = None;
        let opened = Connection::open(&self.env, &server.address, &self.identity, CLIENT_PROTOCOL).await;
        let opened = Arc::new(opened.map_err(|error| CallError::Broken(error.to_string()))?);
        *connection = Some(opened.clone());
        Ok(opened)
    }

    /// No pause before the other NameNodes were tried once; then exponential pauses with jitter.
    fn pause_after(&self, next: &Next, attempts: i32) -> Duration {
        let tried = usize::try_from(attempts).unwrap_or(usize::MAX);
        let doublings = match next {
            Next::Reconnect => return Duration::ZERO,
            Next::Other if tried < self.servers.len() => return Duration::ZERO,
            Next::Other | Next::Wait => tried.saturating_sub(self.servers.len()).min(16),
        };
        let pause = self.pause.saturating_mul(1 << doublings).min(self.pause_max);
        let percent = 50 + u32::try_from(self.env.random.next_u64() % 100).unwrap_or(50);
        (pause * percent / 100).max(Duration::from_millis(1))
    }

    fn report(&self, method: &str, attempts: i32, elapsed: Duration, why: &str) {
        // The first attempts are the normal search for the active NameNode.
        if attempts as usize >= self.servers.len() {
            let waited_ms = elapsed.as_millis() as u64;
            warn!(method, waited_ms, why, "no active NameNode executes calls; retrying");
        }
    }
}

/// Why an attempt failed.
enum Attempt {
    Final(Failure),
    /// The NameNode refuses the connections of this client; with the reason to report.
    Refused(Failure, String),
    Retry(Next, String),
}

fn classify(failure: Failure, at: impl Fn(String) -> String) -> Attempt {
    let mentions = |name: &str| matches!(&failure, Failure::Remote { message, .. } if message.contains(name));
    if failure.is("StandbyException") || failure.is("ObserverRetryOnActiveException") {
        Attempt::Retry(Next::Other, at("in standby".to_owned()))
    } else if failure.is("SafeModeException") || mentions("SafeModeException") {
        Attempt::Retry(Next::Wait, at("in safe mode".to_owned()))
    } else if failure.is("RetriableException") {
        Attempt::Retry(Next::Wait, at(failure.message()))
    } else {
        Attempt::Final(failure)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::testing::{FakeNameNode, NAMENODES};
    use crate::{HdfsOptions, IfMissing};

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_retired_while_another_call_uses_it() {
        let env = base::testing::env(1);
        let _fake = FakeNameNode::start(&env, &NAMENODES, &[]).await;
        let options = HdfsOptions {
            url: "hdfs://one:8020/".to_owned(),
            user: "u".to_owned(),
            settings: HashMap::new(),
            limits: Limits::default(),
            if_missing: IfMissing::Fail,
        };
        let settings = Settings::parse(&options).unwrap();
        let namenode = NameNode::new(&env, &options.user, &settings, &options.limits);
        let server = &namenode.servers[0];
        let mut was_open = false;
        let lost = namenode.connection(server, &mut was_open).await.ok().unwrap();
        {
            let _lock = server.connection.lock().await;
            lost.retire();
        }
        let next = namenode.connection(server, &mut was_open).await.ok().unwrap();
        assert!(!was_open && !Arc::ptr_eq(&lost, &next));
        assert!(Arc::ptr_eq(&next, &namenode.connection(server, &mut was_open).await.ok().unwrap()));
        assert!(was_open);
    }
}
