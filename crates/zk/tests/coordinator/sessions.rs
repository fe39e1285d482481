//! Sessions with ZooKeeper: how they are lost and restored, seen from another session.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base::BoxFuture;
use base::env::{Clock, Env};
use bytes::Bytes;
use zk::ensemble::ConnectError;
use zk::{Coordinator, Ensemble, EnsembleOptions, Error, Mode, SessionState};

use crate::proxy::Proxy;
use crate::subject::{changed, connect, connect_in, env, state, unchanged, unused_root, within, zookeeper};

/// The shortest that the test server grants.
const SHORT: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(10);

/// A session through a proxy, one without, and a znode for the test.
struct Pair {
    proxy: Proxy,
    tested: Arc<Ensemble>,
    other: Arc<Ensemble>,
    root: String,
}

impl Pair {
    async fn new(timeout: Duration) -> Option<Pair> {
        Pair::in_env(&env(), timeout).await
    }

    async fn in_env(tested: &Env, timeout: Duration) -> Option<Pair> {
        let quorum = zookeeper()?;
        let proxy = Proxy::new(&quorum).await;
        let tested = connect_in(tested, &proxy.address(), timeout).await;
        let other = connect(&quorum, LONG).await;
        let root = unused_root();
        other.create(&root, Bytes::new(), Mode::Persistent).await.unwrap();
        Some(Pair { proxy, tested, other, root })
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    async fn create(&self, name: &str) {
        self.other.create(&self.path(name), Bytes::new(), Mode::Persistent).await.unwrap();
    }

    /// Creates an ephemeral znode of the tested session; returns a watch of it by the other one.
    async fn ephemeral(&self, name: &str) -> zk::Watch {
        let path = self.path(name);
        let watch = self.other.watch(&path).await.unwrap();
        let stat = self.tested.create(&path, Bytes::new(), Mode::Ephemeral).await.unwrap();
        assert_eq!(stat.ephemeral_owner, self.tested.session_id());
        watch
    }

    /// Waits until the other session does not see a znode any more.
    async fn is_deleted(&self, name: &str, watch: &mut zk::Watch) {
        while self.other.exists(&self.path(name)).await.unwrap().is_some() {
            changed(watch, "the deletion").await;
        }
    }
}

/// Real time whose monotonic clock can be stopped, or moved forward.
struct MovedClock {
    real: Arc<dyn Clock>,
    moved: Mutex<(Duration, Option<Duration>)>,
}

impl MovedClock {
    fn env() -> (Arc<MovedClock>, Env) {
        let env = env();
        let clock = Arc::new(MovedClock { real: Arc::clone(&env.clock), moved: Mutex::default() });
        (Arc::clone(&clock), Env { clock, ..env })
    }

    fn forward(&self, by: Duration) {
        self.moved.lock().unwrap().0 += by;
    }

    fn stop(&self) {
        let now = self.monotonic();
        self.moved.lock().unwrap().1 = Some(now);
    }
}

impl Clock for MovedClock {
    fn now_ms(&self) -> u64 {
        self.real.now_ms()
    }

    fn monotonic(&self) -> Duration {
        let (by, stopped) = *self.moved.lock().unwrap();
        stopped.unwrap_or_else(|| self.real.monotonic() + by)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.real.sleep(duration)
    }
}

#[tokio::test]
async fn another_session_sees_and_is_notified_of_changes() {
    let Some(pair) = Pair::new(LONG).await else { return };
    let path = pair.path("a");
    let mut watch = pair.tested.watch(&path).await.unwrap();
    let before = pair.tested.last_zxid();
    pair.create("a").await;
    changed(&mut watch, "the creation").await;
    assert!(pair.tested.last_zxid() > before, "the watch is armed by a read");
    let set = pair.other.set(&path, "value".into(), Some(0)).await.unwrap();
    changed(&mut watch, "the value").await;
    assert_eq!(pair.tested.last_zxid(), set.modified_zxid);
    assert_eq!(pair.tested.get(&path).await.unwrap().data, "value");
    pair.other.delete(&path, None).await.unwrap();
    changed(&mut watch, "the deletion").await;
    assert_eq!(pair.tested.exists(&path).await, Ok(None));
}

#[tokio::test]
async fn an_ephemeral_znode_is_deleted_with_its_session() {
    let Some(pair) = Pair::new(LONG).await else { return };
    let mut watch = pair.ephemeral("e").await;
    changed(&mut watch, "the creation").await;
    pair.tested.close().await;
    assert_eq!(*pair.tested.session().borrow(), SessionState::Closed);
    assert_eq!(pair.other.exists(&pair.path("e")).await, Ok(None), "it is deleted when close returns");
    changed(&mut watch, "the deletion").await;
    pair.tested.close().await;
}

#[tokio::test]
async fn a_dropped_session_is_closed() {
    let Some(Pair { proxy: _proxy, tested, other, root }) = Pair::new(LONG).await else { return };
    let path = format!("{root}/e");
    let mut watch = other.watch(&path).await.unwrap();
    tested.create(&path, Bytes::new(), Mode::Ephemeral).await.unwrap();
    changed(&mut watch, "the creation").await;
    let (mut session, mut own_watch) = (tested.session(), tested.watch(&path).await.unwrap());
    drop(tested);
    state(&mut session, SessionState::Closed).await;
    assert_eq!(own_watch.changed().await, Err(Error::SessionExpired));
    let start = Instant::now();
    changed(&mut watch, "the deletion").await;
    assert_eq!(other.exists(&path).await, Ok(None));
    assert!(start.elapsed() < LONG / 2, "it did not wait for the timeout");
}

#[tokio::test]
async fn an_idle_session_lasts() {
    let Some(pair) = Pair::new(SHORT).await else { return };
    assert_eq!(pair.tested.session_timeout(), SHORT);
    let _watch = pair.ephemeral("e").await;
    let mut session = pair.tested.session();
    session.mark_unchanged();
    tokio::time::sleep(SHORT * 5).await;
    assert!(!session.has_changed().unwrap(), "it is {:?}", *session.borrow());
    assert!(pair.tested.exists(&pair.path("e")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_session_that_another_client_closes_is_expired() {
    let Some(pair) = Pair::new(LONG).await else { return };
    let mut ephemeral = pair.ephemeral("e").await;
    let mut watch = pair.tested.watch(&pair.path("e")).await.unwrap();
    let start = Instant::now();
    pair.proxy.close_session_by_another_client().await;
    state(&mut pair.tested.session(), SessionState::Expired).await;
    assert!(start.elapsed() < LONG / 2, "the server reported it");
    while watch.changed().await.is_ok() {}
    assert_eq!(watch.changed().await, Err(Error::SessionExpired));
    assert_eq!(pair.tested.exists("/").await, Err(Error::SessionExpired));
    pair.is_deleted("e", &mut ephemeral).await;
}

/// The server's expiry, not ours: the process's clock stands still.
#[tokio::test]
async fn a_session_that_the_server_expires_is_expired() {
    let (clock, clock_env) = MovedClock::env();
    let Some(pair) = Pair::in_env(&clock_env, SHORT * 2).await else { return };
    let mut ephemeral = pair.ephemeral("e").await;
    clock.stop();
    let mut session = pair.tested.session();
    pair.proxy.stall();
    state(&mut session, SessionState::Suspended).await;
    pair.is_deleted("e", &mut ephemeral).await;
    assert_eq!(*session.borrow(), SessionState::Suspended);
    pair.proxy.open();
    state(&mut session, SessionState::Expired).await;
    assert_eq!(pair.tested.exists("/").await, Err(Error::SessionExpired));
}

#[tokio::test]
async fn a_session_without_responses_is_suspended_then_expired() {
    let Some(pair) = Pair::new(SHORT * 3).await else { return };
    let path = pair.path("a");
    pair.create("a").await;
    let mut watch = pair.tested.watch(&path).await.unwrap();
    let mut session = pair.tested.session();
    pair.proxy.stall();
    let start = Instant::now();
    // Sent to a server that does not respond.
    let pending = pair.tested.get(&path).await;
    assert!(matches!(pending, Err(Error::Unavailable(_))), "{pending:?}");
    state(&mut session, SessionState::Suspended).await;
    assert!(matches!(pair.tested.get(&path).await, Err(Error::Unavailable(_))));
    assert!(matches!(pair.tested.watch(&path).await.err(), Some(Error::Unavailable(_))));
    state(&mut session, SessionState::Expired).await;
    let took = start.elapsed();
    assert!(took > SHORT * 2 && took < SHORT * 7 / 2, "{took:?}");
    assert_eq!(watch.changed().await, Err(Error::SessionExpired));
    assert_eq!(pair.tested.get(&path).await, Err(Error::SessionExpired));
    // It is permanent.
    pair.proxy.open();
    tokio::time::sleep(SHORT).await;
    assert_eq!(*session.borrow(), SessionState::Expired);
    assert_eq!(pair.tested.get(&path).await, Err(Error::SessionExpired));
}

#[tokio::test]
async fn a_process_that_was_stopped_does_not_use_its_session_again() {
    let (clock, clock_env) = MovedClock::env();
    let Some(pair) = Pair::in_env(&clock_env, LONG).await else { return };
    let mut ephemeral = pair.ephemeral("e").await;
    let path = pair.path("e");
    assert!(pair.tested.set(&path, "before".into(), None).await.is_ok());
    clock.forward(LONG);
    // No task has run since, so the published state is the old one. The operation checks the clock.
    assert_eq!(*pair.tested.session().borrow(), SessionState::Connected);
    assert_eq!(pair.tested.set(&path, "after".into(), None).await, Err(Error::SessionExpired));
    assert_eq!(*pair.tested.session().borrow(), SessionState::Expired);
    // The server still has the session; it is closed.
    pair.is_deleted("e", &mut ephemeral).await;
}

#[tokio::test]
async fn a_response_that_comes_too_late_is_not_used() {
    let (clock, clock_env) = MovedClock::env();
    let Some(pair) = Pair::in_env(&clock_env, LONG).await else { return };
    let path = pair.path("a");
    pair.create("a").await;
    pair.proxy.stall();
    let late = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        clock.forward(LONG);
        pair.proxy.open();
    };
    let (got, ()) = tokio::join!(pair.tested.get(&path), late);
    assert_eq!(got, Err(Error::SessionExpired));
}

#[tokio::test]
async fn a_session_survives_reconnects_and_makes_no_change_late() {
    let Some(pair) = Pair::new(LONG).await else { return };
    let mut ephemeral = pair.ephemeral("e").await;
    changed(&mut ephemeral, "the creation").await;
    let (id, mut session) = (pair.tested.session_id(), pair.tested.session());
    for round in 0..3 {
        pair.proxy.close();
        state(&mut session, SessionState::Suspended).await;
        let created = pair.tested.create(&pair.path("late"), Bytes::new(), Mode::Persistent).await;
        assert!(matches!(created, Err(Error::Unavailable(_))), "{round}: {created:?}");
        pair.proxy.open();
        state(&mut session, SessionState::Connected).await;
        let stat = pair.tested.exists(&pair.path("e")).await.unwrap().unwrap();
        assert_eq!(stat.ephemeral_owner, id);
        assert_eq!(pair.tested.exists(&pair.path("late")).await, Ok(None));
    }
    unchanged(&mut ephemeral, "a deletion").await;
}

/// The library alone tries again only after the timeout.
#[tokio::test]
async fn a_session_survives_an_outage_of_most_of_its_timeout() {
    let Some(pair) = Pair::new(LONG).await else { return };
    let mut ephemeral = pair.ephemeral("e").await;
    changed(&mut ephemeral, "the creation").await;
    pair.create("value").await;
    pair.create("same").await;
    let mut value = pair.tested.watch(&pair.path("value")).await.unwrap();
    let mut same = pair.tested.watch(&pair.path("same")).await.unwrap();
    let (id, mut session) = (pair.tested.session_id(), pair.tested.session());
    for round in 0..2 {
        pair.proxy.close();
        state(&mut session, SessionState::Suspended).await;
        pair.other.set(&pair.path("value"), "new".into(), None).await.unwrap();
        tokio::time::sleep(LONG * 7 / 10).await;
        pair.proxy.open();
        state(&mut session, SessionState::Connected).await;
        changed(&mut value, &format!("the value of round {round}")).await;
        unchanged(&mut same, "no change").await;
        let stat = pair.tested.exists(&pair.path("e")).await.unwrap().unwrap();
        assert_eq!(stat.ephemeral_owner, id);
        pair.other.set(&pair.path("same"), "new".into(), None).await.unwrap();
        changed(&mut same, "a change with the new connection").await;
    }
    unchanged(&mut ephemeral, "a deletion").await;
    pair.tested.close().await;
    assert_eq!(pair.other.exists(&pair.path("e")).await, Ok(None), "the session was closed");
}

#[tokio::test]
async fn changes_during_a_lost_connection_are_reported_after_it() {
    let Some(pair) = Pair::new(LONG).await else { return };
    for name in ["value", "deleted", "again", "parent", "parent/old", "emptied", "emptied/old", "same"] {
        pair.create(name).await;
    }
    let names = ["value", "deleted", "again", "created", "parent", "emptied"];
    let mut watches = Vec::new();
    for name in names {
        watches.push((name, pair.tested.watch(&pair.path(name)).await.unwrap()));
    }
    let mut same = pair.tested.watch(&pair.path("same")).await.unwrap();
    let mut missing = pair.tested.watch(&pair.path("missing")).await.unwrap();
    let mut session = pair.tested.session();
    for round in 0..3 {
        pair.proxy.close();
        state(&mut session, SessionState::Suspended).await;
        pair.other.set(&pair.path("value"), "new".into(), None).await.unwrap();
        pair.other.delete(&pair.path("again"), None).await.unwrap();
        pair.create("again").await;
        if round % 2 == 0 {
            pair.other.delete(&pair.path("deleted"), None).await.unwrap();
            pair.create("created").await;
            pair.create("parent/new").await;
            pair.other.delete(&pair.path("emptied/old"), None).await.unwrap();
        } else {
            pair.create("deleted").await;
            pair.other.delete(&pair.path("created"), None).await.unwrap();
            pair.other.delete(&pair.path("parent/new"), None).await.unwrap();
            pair.create("emptied/old").await;
        }
        pair.proxy.open();
        for (name, watch) in &mut watches {
            changed(watch, &format!("{name} in round {round}")).await;
        }
        unchanged(&mut same, "no change").await;
        unchanged(&mut missing, "no change").await;
    }
    assert_eq!(*session.borrow(), SessionState::Connected);
    pair.create("same/new").await;
    changed(&mut same, "a new child").await;
    pair.create("missing").await;
    changed(&mut missing, "the creation").await;
}

#[tokio::test]
async fn a_watch_is_armed_before_it_is_used_and_before_a_change_is_reported() {
    let Some(pair) = Pair::new(LONG).await else { return };
    let path = pair.path("a");
    pair.create("a").await;
    pair.proxy.hold_requests();
    let mut watching = pair.tested.watch(&path);
    let early = tokio::time::timeout(Duration::from_millis(200), &mut watching).await;
    assert!(early.is_err(), "the watch is not armed yet");
    pair.proxy.open();
    let mut watch = within("the watch", watching).await.unwrap();

    // The first change arrives, but the watch can be armed again only after the second one. The
    // reader, which uses another session, must not wait for a third one.
    pair.proxy.hold_requests();
    let reader = async {
        while pair.other.get(&path).await.unwrap().data != "second" {
            changed(&mut watch, "a change after the read").await;
        }
    };
    let writer = async {
        for value in ["first", "second"] {
            pair.other.set(&path, value.into(), None).await.unwrap();
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        pair.proxy.open();
    };
    tokio::join!(reader, writer);
}

#[tokio::test]
async fn as_many_paths_can_be_watched_as_are_restored() {
    const NAME_LEN: usize = 250;
    let Some(pair) = Pair::new(LONG).await else { return };
    pair.create("p").await;
    let mut watches = Vec::new();
    let refused = loop {
        let name = format!("p/{:0NAME_LEN$}", watches.len());
        pair.create(&name).await;
        match pair.tested.watch(&pair.path(&name)).await {
            Ok(watch) => watches.push(watch),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::Unavailable(_)), "{refused:?}");
    assert!(watches.len() > 200, "{}", watches.len());
    let mut session = pair.tested.session();
    pair.proxy.close();
    state(&mut session, SessionState::Suspended).await;
    pair.proxy.open();
    state(&mut session, SessionState::Connected).await;
    for (number, watch) in watches.iter_mut().enumerate() {
        let path = pair.path(&format!("p/{number:0NAME_LEN$}"));
        pair.other.create(&format!("{path}/c"), Bytes::new(), Mode::Persistent).await.unwrap();
        changed(watch, "a new child").await;
        pair.other.set(&path, "new".into(), None).await.unwrap();
        changed(watch, "a new value").await;
    }
    drop(watches);
    let again = within("space for a watch", async {
        loop {
            match pair.tested.watch(&pair.path("p")).await {
                Ok(watch) => return watch,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    });
    again.await;
}

#[tokio::test]
async fn options_and_servers_are_checked() {
    let Some(quorum) = zookeeper() else { return };
    let open = async |quorum: &str, session_timeout| {
        let options = EnsembleOptions { quorum: quorum.to_string(), session_timeout };
        Ensemble::connect(&options, &env()).await
    };
    for bad in ["", "host:port", ":1", "host:0", "host:1,", "host:1/a/", "tcp+tls://host:1"] {
        let refused = open(bad, SHORT).await.err();
        assert!(matches!(refused, Some(ConnectError::Options { .. })), "{bad}: {refused:?}");
    }
    for bad in [Duration::ZERO, Duration::from_secs(1 << 40)] {
        let refused = open(&quorum, bad).await.err();
        assert!(matches!(refused, Some(ConnectError::Options { .. })), "{bad:?}: {refused:?}");
    }
    let start = Instant::now();
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = open(&unused.to_string(), SHORT).await.err();
    assert!(matches!(refused, Some(ConnectError::Unavailable { .. })), "{refused:?}");
    assert!(start.elapsed() < SHORT * 3);
    // Of several servers, one that responds is used.
    let several = open(&format!("{unused},{quorum}"), LONG).await.unwrap();
    several.close().await;
}

#[tokio::test]
async fn all_paths_can_be_below_a_znode() {
    let Some(pair) = Pair::new(LONG).await else { return };
    let below = connect(&format!("{}{}", zookeeper().unwrap(), pair.root), LONG).await;
    let mut watch = pair.tested.watch(&pair.path("a")).await.unwrap();
    let mut own_watch = below.watch("/a").await.unwrap();
    below.create("/a", "value".into(), Mode::Persistent).await.unwrap();
    changed(&mut watch, "the creation").await;
    changed(&mut own_watch, "the creation").await;
    assert_eq!(pair.tested.get(&pair.path("a")).await.unwrap().data, "value");
    assert_eq!(below.children("/").await.unwrap().0, ["a"]);
    below.delete("/a", Some(0)).await.unwrap();
    changed(&mut own_watch, "the deletion").await;
}
