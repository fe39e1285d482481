//! A session in memory whose operations take time and fail, from one seed.

use std::sync::Arc;
use std::time::Duration;

use base::BoxFuture;
use base::env::Env;
use bytes::Bytes;
use tokio::sync::watch;
use zk::{Coordinator, Error, MemoryCoordinator, Mode, SessionState, Stat, Watch, Znode};

/// Of this many operations, one fails before it is executed, and one after it.
const FAILURES: u64 = 20;
/// Maximum time before and after an operation.
const DELAY_MAX_MS: u64 = 5;

/// A session in memory whose operations take time, and fail or are not acknowledged.
pub struct Unreliable {
    tree: Arc<MemoryCoordinator>,
    env: Env,
}

impl Unreliable {
    pub fn new(tree: Arc<MemoryCoordinator>, env: &Env) -> Arc<Unreliable> {
        Arc::new(Unreliable { tree, env: env.clone() })
    }

    async fn delay(&self) -> Result<(), Error> {
        self.env.clock.sleep(Duration::from_millis(self.below(DELAY_MAX_MS + 1))).await;
        match self.below(FAILURES) {
            0 => Err(Error::Unavailable("a simulated failure".into())),
            _ => Ok(()),
        }
    }

    fn below(&self, limit: u64) -> u64 {
        self.env.random.next_u64() % limit
    }

    async fn run<T>(&self, operation: BoxFuture<'_, Result<T, Error>>) -> Result<T, Error> {
        self.delay().await?;
        let result = operation.await;
        self.delay().await?;
        // A response that arrives after the end of the session is not used.
        match *self.tree.session().borrow() {
            SessionState::Expired => Err(Error::SessionExpired),
            _ => result,
        }
    }
}

impl Coordinator for Unreliable {
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Znode, Error>> {
        Box::pin(self.run(Box::pin(async { self.tree.get(path).await })))
    }

    fn exists<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Stat>, Error>> {
        Box::pin(self.run(Box::pin(async { self.tree.exists(path).await })))
    }

    fn children<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(Vec<String>, Stat), Error>> {
        Box::pin(self.run(Box::pin(async { self.tree.children(path).await })))
    }

    fn create<'a>(&'a self, path: &'a str, data: Bytes, mode: Mode) -> BoxFuture<'a, Result<Stat, Error>> {
        Box::pin(self.run(Box::pin(async move { self.tree.create(path, data, mode).await })))
    }

    fn set<'a>(
        &'a self,
        path: &'a str,
        data: Bytes,
        version: Option<i32>,
    ) -> BoxFuture<'a, Result<Stat, Error>> {
        Box::pin(self.run(Box::pin(async move { self.tree.set(path, data, version).await })))
    }

    fn delete<'a>(&'a self, path: &'a str, version: Option<i32>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.run(Box::pin(async move { self.tree.delete(path, version).await })))
    }

    fn watch<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Watch, Error>> {
        Box::pin(self.run(Box::pin(async { self.tree.watch(path).await })))
    }

    fn session(&self) -> watch::Receiver<SessionState> {
        self.tree.session()
    }

    fn session_id(&self) -> i64 {
        self.tree.session_id()
    }

    fn last_zxid(&self) -> i64 {
        self.tree.last_zxid()
    }
}
