//! A tree of znodes to test, in memory or on ZooKeeper.

use std::future::Future;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use tokio::sync::watch;
use zk::{
    Coordinator, Ensemble, EnsembleOptions, MemoryCoordinator, MemoryEnsemble, Mode, SessionState, Watch,
};

/// Waits at most this long for anything.
const PATIENCE: Duration = Duration::from_secs(30);
/// No change is reported if none is reported in this time.
const SILENCE: Duration = Duration::from_millis(300);

/// A tree of znodes, and a znode of it below which a test has all its own.
pub struct Subject {
    /// The tested session.
    pub tree: Arc<dyn Coordinator>,
    /// The session of `create`, `set` and `delete`: the tested one or another.
    pub writer: Arc<dyn Coordinator>,
    root: String,
    service: Service,
    session: Session,
}

/// Where sessions are opened.
enum Service {
    Memory(Arc<MemoryEnsemble>),
    /// The address of a ZooKeeper server.
    Ensemble(String),
}

impl Service {
    async fn connect(&self) -> Session {
        match self {
            Service::Memory(ensemble) => Session::Memory(ensemble.connect()),
            Service::Ensemble(quorum) => Session::Ensemble(connect(quorum, Duration::from_secs(10)).await),
        }
    }
}

/// A session with an owner that may end it.
pub enum Session {
    Memory(Arc<MemoryCoordinator>),
    Ensemble(Arc<Ensemble>),
}

impl Session {
    pub fn tree(&self) -> Arc<dyn Coordinator> {
        match self {
            Session::Memory(tree) => tree.clone(),
            Session::Ensemble(tree) => tree.clone(),
        }
    }

    /// Ends the session.
    pub async fn end(&self) {
        match self {
            Session::Memory(tree) => tree.expire_session(),
            Session::Ensemble(tree) => tree.close().await,
        }
    }
}

impl Subject {
    /// Znodes in memory.
    pub async fn memory() -> Option<Subject> {
        Some(Subject::new(Service::Memory(MemoryEnsemble::new(&env()))).await)
    }

    /// Znodes on ZooKeeper; `None` if there is none.
    pub async fn ensemble() -> Option<Subject> {
        Some(Subject::new(Service::Ensemble(zookeeper()?)).await)
    }

    /// The same as `memory`, with another session that writes.
    pub async fn two_memory_sessions() -> Option<Subject> {
        Some(Subject::memory().await?.with_another_writer().await)
    }

    /// The same as `ensemble`, with another session that writes.
    pub async fn two_ensemble_sessions() -> Option<Subject> {
        Some(Subject::ensemble().await?.with_another_writer().await)
    }

    async fn new(service: Service) -> Subject {
        let session = service.connect().await;
        let (tree, root) = (session.tree(), unused_root());
        tree.create(&root, Bytes::new(), Mode::Persistent).await.unwrap();
        Subject { writer: tree.clone(), tree, root, service, session }
    }

    async fn with_another_writer(self) -> Subject {
        Subject { writer: self.connect().await.tree(), ..self }
    }

    /// Opens a further session.
    pub async fn connect(&self) -> Session {
        self.service.connect().await
    }

    /// The path of a znode of this test; "" is its root.
    pub fn path(&self, name: &str) -> String {
        if name.is_empty() { self.root.clone() } else { format!("{}/{name}", self.root) }
    }

    /// Ends the tested session.
    pub async fn end(&self) {
        self.session.end().await;
    }

    pub async fn create(&self, name: &str) -> zk::Stat {
        self.writer.create(&self.path(name), Bytes::new(), Mode::Persistent).await.unwrap()
    }

    pub async fn set(&self, name: &str, value: &'static str) -> zk::Stat {
        self.writer.set(&self.path(name), value.into(), None).await.unwrap()
    }

    pub async fn delete(&self, name: &str) {
        self.writer.delete(&self.path(name), None).await.unwrap();
    }

    pub async fn watch(&self, name: &str) -> Watch {
        self.tree.watch(&self.path(name)).await.unwrap()
    }
}

/// A path that no other test uses, not even that of an earlier run.
pub fn unused_root() -> String {
    static ROOTS: AtomicU32 = AtomicU32::new(0);
    let start = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    format!("/test-{}-{start}-{}", std::process::id(), ROOTS.fetch_add(1, Ordering::Relaxed))
}

/// Real time.
pub fn env() -> Env {
    base::testing::env(1)
}

/// The address of the server for all tests. If there is none, the calling test is reported as
/// skipped.
pub fn zookeeper() -> Option<String> {
    let address = std::env::var("GRAMPUS_TEST_ZOOKEEPER").ok();
    if address.is_none() {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("a test");
        let message = format!("skipped {name}: GRAMPUS_TEST_ZOOKEEPER is not set\n");
        // Not by a macro: the output of a test that passes is not shown.
        let _ = std::io::stderr().write_all(message.as_bytes());
    }
    address
}

/// A session in real time.
pub async fn connect(quorum: &str, session_timeout: Duration) -> Arc<Ensemble> {
    connect_in(&env(), quorum, session_timeout).await
}

/// A session in an environment.
pub async fn connect_in(env: &Env, quorum: &str, session_timeout: Duration) -> Arc<Ensemble> {
    let options = EnsembleOptions { quorum: quorum.to_string(), session_timeout };
    within("a session", Ensemble::connect(&options, env)).await.unwrap()
}

/// Waits for `future`.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what}: nothing in {PATIENCE:?}"))
}

/// Waits for a reported change.
pub async fn changed(watch: &mut Watch, what: &str) {
    within(what, watch.changed()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
}

/// Checks that no change is reported.
pub async fn unchanged(watch: &mut Watch, what: &str) {
    assert!(tokio::time::timeout(SILENCE, watch.changed()).await.is_err(), "{what} was reported");
}

/// Waits for a state of the session.
pub async fn state(session: &mut watch::Receiver<SessionState>, wanted: SessionState) {
    let is_last = |state: &SessionState| [wanted, SessionState::Expired].contains(state);
    let last = *within(&format!("{wanted:?}"), session.wait_for(is_last)).await.unwrap();
    assert_eq!(last, wanted);
}
