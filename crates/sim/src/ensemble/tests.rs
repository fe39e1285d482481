use bytes::Bytes;
use zk::{Mode, SessionState, Watch};

use super::*;
use crate::network::Crash;
use crate::process::Process;
use crate::ready::now;
use crate::world::WorldOptions;

const TIMEOUT: Duration = Duration::from_secs(10);
/// Latencies and delays of tasks.
const SLACK: Duration = Duration::from_millis(1500);

struct Cluster {
    world: Arc<World>,
    ensemble: Arc<SimEnsemble>,
    owner: Arc<Process>,
    life: Life,
    session: Arc<SimSession>,
}

/// Runs `test` in worlds of several seeds, with a session that has an ephemeral znode `/a`.
fn run<F, T: Send + 'static>(test: impl Fn(Cluster) -> F + Clone + Send + Sync + 'static) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
{
    let one = |seed| {
        let test = test.clone();
        let run = World::run(WorldOptions::new(seed), |world| async move {
            let ensemble = SimEnsemble::start(&world, TIMEOUT);
            let owner = world.add_idle_process("a");
            let life = owner.start();
            let session = ensemble.connect(&life).await;
            session.create("/a", Bytes::from_static(b"1"), Mode::Ephemeral).await.unwrap();
            test(Cluster { world, ensemble, owner, life, session }).await
        });
        run.result.unwrap_or_else(|panic| panic!("seed {seed}: {panic}\n{}", run.last.join("\n")))
    };
    (0..30).map(one).collect()
}

impl Cluster {
    fn partition(&self) {
        self.world.network().partition(&[self.owner.host()], &[self.ensemble.host()]);
    }

    fn heal(&self) {
        self.world.network().heal();
    }

    /// Whether the ensemble has a znode.
    fn has(&self, path: &str) -> bool {
        // A session that is only used here.
        now(self.ensemble.tree().connect().exists(path)).unwrap().is_some()
    }

    fn state(&self) -> SessionState {
        *self.session.session().borrow()
    }

    /// Waits until `/a` is deleted; returns how long that took.
    async fn until_deleted(&self) -> Duration {
        let begun = self.world.now();
        while self.has("/a") {
            self.world.sleep(Duration::from_millis(1)).await;
            assert!(self.world.now() < begun + 10 * TIMEOUT, "the session does not expire");
        }
        self.world.now() - begun
    }

    async fn changed(&self, watch: &mut Watch) -> bool {
        self.world
            .timeout(Duration::from_secs(1), watch.changed())
            .await
            .is_some_and(|changed| changed.is_ok())
    }
}

#[test]
fn heartbeats_keep_a_session() {
    run(|cluster| async move {
        cluster.world.sleep(10 * TIMEOUT).await;
        assert_eq!(cluster.state(), SessionState::Connected);
        assert_eq!(cluster.session.get("/a").await.unwrap().data, "1");
        assert_eq!(
            cluster.session.get("/a").await.unwrap().stat.ephemeral_owner,
            cluster.session.session_id()
        );
    });
}

#[test]
fn a_crash_is_noticed_after_the_timeout() {
    let times = run(|cluster| async move {
        cluster.world.sleep(Duration::from_secs(3)).await;
        cluster.owner.crash(Crash::Process);
        cluster.until_deleted().await
    });
    let (first, last) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert!(
        *first >= TIMEOUT * 9 / 10 - SLACK && *last <= TIMEOUT * 11 / 10 + SLACK,
        "{first:?} to {last:?}"
    );
}

#[test]
fn a_closed_or_dropped_session_ends_soon() {
    run(|cluster| async move {
        let other = cluster.ensemble.connect(&cluster.life).await;
        other.create("/b", Bytes::new(), Mode::Ephemeral).await.unwrap();
        cluster.session.close();
        assert_eq!(cluster.state(), SessionState::Closed);
        assert!(matches!(cluster.session.get("/a").await, Err(Error::SessionExpired)));
        drop(other);
        cluster.world.sleep(SLACK).await;
        assert!(!cluster.has("/a") && !cluster.has("/b"));
    });
}

#[test]
fn the_owner_of_a_partitioned_session_ends_it_before_the_ensemble_does() {
    run(|cluster| async move {
        cluster.world.sleep(cluster.world.random("test").between(SLACK, TIMEOUT)).await;
        cluster.partition();
        let begun = cluster.world.now();
        let failed = cluster.session.get("/a").await.unwrap_err();
        assert!(matches!(failed, Error::Unavailable(_)), "{failed}");
        assert!(cluster.world.now() - begun < TIMEOUT / 2);
        assert_eq!(cluster.state(), SessionState::Suspended);
        while cluster.has("/a") {
            cluster.world.sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(cluster.state(), SessionState::Expired);
        cluster.heal();
        cluster.world.sleep(SLACK).await;
        assert!(matches!(cluster.session.get("/a").await, Err(Error::SessionExpired)));
    });
}

#[test]
fn a_short_partition_only_suspends() {
    run(|cluster| async move {
        cluster.partition();
        cluster.world.sleep(TIMEOUT * 3 / 5).await;
        assert_eq!(cluster.state(), SessionState::Suspended);
        let failed = cluster.session.exists("/b").await.unwrap_err();
        assert!(matches!(failed, Error::Unavailable(_)), "{failed}");
        cluster.heal();
        cluster.world.sleep(SLACK).await;
        assert_eq!(cluster.state(), SessionState::Connected);
        assert_eq!(cluster.session.exists("/b").await.unwrap(), None);
        cluster.world.sleep(3 * TIMEOUT).await;
        assert!(cluster.has("/a"));
    });
}

#[test]
fn a_process_that_was_paused_does_not_use_its_expired_session() {
    run(|cluster| async move {
        let (session, world) = (cluster.session.clone(), cluster.world.clone());
        let results = Arc::new(Mutex::new(Vec::new()));
        let (result, clock) = (results.clone(), cluster.life.env.clock.clone());
        cluster.life.env.spawn(base::env::TaskClass::Service, async move {
            loop {
                let read = session.get("/a").await.map(drop);
                result.lock().unwrap().push((world.now(), read));
                clock.sleep(Duration::from_millis(700)).await;
            }
        });
        cluster.world.sleep(TIMEOUT).await;
        cluster.owner.pause();
        cluster.until_deleted().await;
        let resumed = cluster.world.now();
        cluster.owner.resume();
        cluster.world.sleep(TIMEOUT).await;
        let results = results.lock().unwrap();
        let (before, after): (Vec<_>, Vec<_>) = results.iter().partition(|(at, _)| *at < resumed);
        assert!(before.iter().all(|(_, read)| read.is_ok()), "{before:?}");
        assert!(after.iter().all(|(_, read)| *read == Err(Error::SessionExpired)), "{after:?}");
        assert!(before.len() > 10 && after.len() > 10);
    });
}

#[test]
fn a_process_that_was_frozen_notices_the_end_of_its_session_when_it_hears_from_the_ensemble() {
    run(|cluster| async move {
        cluster.world.sleep(TIMEOUT).await;
        cluster.owner.freeze();
        cluster.until_deleted().await;
        cluster.owner.resume();
        assert!(cluster.session.is_valid(), "its clock stood still");
        cluster.world.sleep(SLACK).await;
        assert!(!cluster.session.is_valid());
    });
}

#[test]
fn the_session_of_a_frozen_process_ends_by_its_own_clock_without_a_connection() {
    run(|cluster| async move {
        cluster.world.sleep(TIMEOUT).await;
        cluster.owner.freeze();
        cluster.until_deleted().await;
        cluster.partition();
        cluster.owner.resume();
        cluster.world.sleep(TIMEOUT + Duration::from_millis(10)).await;
        assert!(!cluster.session.is_valid());
    });
}

#[test]
fn a_change_whose_response_is_lost_may_have_been_made() {
    let made = run(|cluster| async move {
        let (owner, zk) = (cluster.owner.host(), cluster.ensemble.host());
        cluster.world.network().block(zk, owner);
        let failed = cluster.session.create("/b", Bytes::new(), Mode::Persistent).await.unwrap_err();
        assert!(matches!(failed, Error::Unavailable(_)), "{failed}");
        assert!(cluster.has("/b"));
        cluster.heal();
        cluster.world.network().block(owner, zk);
        // The session may be suspended, so that nothing is sent.
        while !matches!(cluster.session.get("/b").await, Ok(_) | Err(Error::SessionExpired)) {
            cluster.heal();
            cluster.world.sleep(Duration::from_millis(100)).await;
        }
        cluster.world.network().block(owner, zk);
        cluster.session.create("/c", Bytes::new(), Mode::Persistent).await.unwrap_err();
        assert!(!cluster.has("/c"));
        cluster.heal();
        cluster.world.sleep(SLACK).await;
        cluster.has("/c")
    });
    assert!(made.contains(&true) && made.contains(&false), "the request may arrive late");
}

#[test]
fn watches_report_changes_also_after_a_lost_connection() {
    run(|cluster| async move {
        let other = cluster.ensemble.connect(&cluster.world.add_idle_process("b").start()).await;
        let mut watch = cluster.session.watch("/a").await.unwrap();
        let mut unchanged = cluster.session.watch("/b").await.unwrap();
        other.set("/a", Bytes::from_static(b"2"), None).await.unwrap();
        assert!(cluster.changed(&mut watch).await);
        cluster.partition();
        other.set("/a", Bytes::from_static(b"3"), None).await.unwrap();
        assert!(!cluster.changed(&mut watch).await);
        cluster.world.sleep(TIMEOUT / 2).await;
        cluster.heal();
        assert!(cluster.world.timeout(SLACK, watch.changed()).await.unwrap().is_ok());
        assert!(!cluster.changed(&mut watch).await && !cluster.changed(&mut unchanged).await);
        cluster.ensemble.expire("a");
        let ended = cluster.world.timeout(TIMEOUT, watch.changed()).await.unwrap();
        assert!(matches!(ended, Err(Error::SessionExpired)));
    });
}

#[test]
fn no_session_expires_while_the_ensemble_is_down() {
    run(|cluster| async move {
        let other = cluster.world.add_idle_process("b");
        let kept = cluster.ensemble.connect(&other.start()).await;
        kept.create("/b", Bytes::new(), Mode::Ephemeral).await.unwrap();
        cluster.owner.crash(Crash::Host);
        cluster.ensemble.stop();
        cluster.world.sleep(TIMEOUT / 2).await;
        assert!(matches!(kept.get("/b").await, Err(Error::Unavailable(_))));
        cluster.world.sleep(TIMEOUT / 5).await;
        cluster.ensemble.resume();
        let took = cluster.until_deleted().await;
        assert!(took >= TIMEOUT, "{took:?}");
        assert!(cluster.has("/b"));
        kept.get("/b").await.unwrap();
    });
}

#[test]
fn clients_read_znodes_through_zookeepers_protocol() {
    run(|cluster| async move {
        let env = cluster.world.add_idle_process("client").start().env;
        let servers = [(HOST.to_string(), PORT)];
        let mut client = zk::client::Client::connect(&env, &servers, TIMEOUT).await.unwrap();
        assert_eq!(client.get_data("/a").await.unwrap(), "1");
        cluster.session.set("/a", Bytes::from_static(b"2"), None).await.unwrap();
        assert_eq!(client.get_data("/a").await.unwrap(), "2");
        client.close().await;
    });
}
