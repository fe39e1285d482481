//! Servers that stop, die and come back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use zk::{Coordinator, Ensemble, Error, Mode, SessionState, Watch};

use crate::raw::RawSession;
use crate::server::Server;
use crate::subject::{changed, connect, state, unchanged, within, zookeeper};

const TIMEOUT: Duration = Duration::from_secs(4);

/// A session with an ephemeral znode and a watch.
struct Owner {
    tree: Arc<Ensemble>,
    watch: Watch,
}

impl Owner {
    async fn new(quorum: &str, timeout: Duration) -> Owner {
        let tree = connect(quorum, timeout).await;
        assert_eq!(tree.session_timeout(), timeout);
        tree.create("/p", Bytes::new(), Mode::Persistent).await.unwrap();
        tree.create("/p/e", "mine".into(), Mode::Ephemeral).await.unwrap();
        let watch = tree.watch("/p").await.unwrap();
        Owner { tree, watch }
    }

    /// Checks that the session is the same, and its watch reports changes.
    async fn is_as_before(&mut self) {
        let znode = self.tree.get("/p/e").await.unwrap();
        assert_eq!(znode.stat.ephemeral_owner, self.tree.session_id());
        unchanged(&mut self.watch, "no change").await;
        self.tree.set("/p", "value".into(), None).await.unwrap();
        changed(&mut self.watch, "a value").await;
        self.tree.create("/p/c", Bytes::new(), Mode::Persistent).await.unwrap();
        changed(&mut self.watch, "a child").await;
    }
}

/// Waits until the session is suspended and then expired; returns the time that the latter took.
async fn expires(tree: &Ensemble) -> Duration {
    let (start, mut session) = (Instant::now(), tree.session());
    state(&mut session, SessionState::Suspended).await;
    assert!(matches!(tree.get("/p").await, Err(Error::Unavailable(_))));
    state(&mut session, SessionState::Expired).await;
    assert_eq!(tree.get("/p").await, Err(Error::SessionExpired));
    start.elapsed()
}

/// The session lasts for the timeout from its last heartbeat, which is at most a tenth of the
/// timeout ago (and some time, because other tests run at the same time).
fn is_timeout(took: Duration) -> bool {
    took > TIMEOUT * 7 / 10 && took < TIMEOUT * 12 / 10
}

#[tokio::test]
async fn a_stopped_server_expires_a_session_by_our_clock() {
    let Some(_) = zookeeper() else { return };
    let server = Server::standalone();
    let mut owner = Owner::new(&server.address(), TIMEOUT).await;
    server.stop();
    let took = expires(&owner.tree).await;
    assert!(is_timeout(took), "{took:?}");
    assert_eq!(owner.watch.changed().await, Err(Error::SessionExpired));
    server.resume();
    // The server expires the session, too, or the library reaches it and closes the session.
    let other = connect(&server.address(), TIMEOUT).await;
    let gone = async {
        while other.exists("/p/e").await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within("the end of the ephemeral znode", gone).await;
    assert_eq!(owner.tree.get("/p").await, Err(Error::SessionExpired));
}

#[tokio::test]
async fn a_killed_server_expires_a_session_by_our_clock() {
    let Some(_) = zookeeper() else { return };
    let mut server = Server::standalone();
    let owner = Owner::new(&server.address(), TIMEOUT).await;
    server.kill();
    let took = expires(&owner.tree).await;
    assert!(is_timeout(took), "{took:?}");
    let start = Instant::now();
    owner.tree.close().await;
    assert!(start.elapsed() < TIMEOUT / 4, "closing does not wait for a server");
}

#[tokio::test]
async fn a_session_survives_a_short_stop_of_the_server() {
    let Some(_) = zookeeper() else { return };
    let server = Server::standalone();
    let mut owner = Owner::new(&server.address(), TIMEOUT).await;
    let mut session = owner.tree.session();
    server.stop();
    state(&mut session, SessionState::Suspended).await;
    server.resume();
    state(&mut session, SessionState::Connected).await;
    owner.is_as_before().await;
}

#[tokio::test]
async fn a_session_survives_a_restart_of_the_server() {
    let Some(_) = zookeeper() else { return };
    let mut server = Server::standalone();
    let mut owner = Owner::new(&server.address(), TIMEOUT * 5 / 2).await;
    let mut session = owner.tree.session();
    server.kill();
    state(&mut session, SessionState::Suspended).await;
    server.restart();
    state(&mut session, SessionState::Connected).await;
    owner.is_as_before().await;
    owner.tree.close().await;
}

/// A follower responds to pings and reads until it gives up its silent leader, which is later than
/// the timeout here. Heartbeats need the leader.
#[tokio::test]
async fn a_follower_without_its_leader_does_not_keep_a_session() {
    let Some(_) = zookeeper() else { return };
    let servers = Server::three();
    let leader = servers.iter().position(Server::is_leader).unwrap();
    let follower = &servers[(leader + 1) % 3];
    let owner = Owner::new(&follower.address(), TIMEOUT).await;
    let mut other = RawSession::open(&follower.address(), 20_000).await.unwrap();
    assert_eq!(other.get("/p/e").await.unwrap(), "mine");
    servers[leader].stop();
    let took = expires(&owner.tree).await;
    assert!(is_timeout(took), "{took:?}");
    assert_eq!(within("a response", other.get("/p/e")).await.unwrap(), "mine", "the follower responds");
}

#[tokio::test]
async fn a_session_survives_the_loss_of_the_leader() {
    let Some(_) = zookeeper() else { return };
    let mut servers = Server::three();
    let quorum = servers.iter().map(Server::address).collect::<Vec<_>>().join(",");
    // The servers also need time to elect a leader.
    let mut owner = Owner::new(&quorum, TIMEOUT * 5).await;
    let mut session = owner.tree.session();
    let leader = servers.iter().position(Server::is_leader).unwrap();
    let mut killed = servers.swap_remove(leader);
    killed.kill();
    state(&mut session, SessionState::Suspended).await;
    state(&mut session, SessionState::Connected).await;
    owner.is_as_before().await;
    // Another session sees the same through another server.
    let other = connect(&servers[0].address(), TIMEOUT).await;
    assert_eq!(other.get("/p/e").await.unwrap().data, "mine");
    let mut watch = other.watch("/p/e").await.unwrap();
    owner.tree.close().await;
    changed(&mut watch, "the deletion").await;
}
