use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::env::{Env, TaskClass};
use tokio::sync::watch;
use tokio::task::JoinSet;
use zk::coordinator::publish;
use zk::{Election, MemoryCoordinator, MemoryEnsemble, Mode, SessionState, Stat, Watch, Znode, payload};

use super::*;

/// A session whose operations are counted, and take up to `delay_max`.
struct Measured {
    session: Arc<MemoryCoordinator>,
    env: Env,
    delay_max: Duration,
    operations: AtomicU64,
}

impl Measured {
    async fn delay(&self) {
        if !self.delay_max.is_zero() {
            let micros = self.env.random.next_u64() % self.delay_max.as_micros() as u64;
            self.env.clock.sleep(Duration::from_micros(micros)).await;
        }
    }

    /// Executes an operation at some time between its request and its response.
    async fn run<T>(&self, operation: BoxFuture<'_, T>) -> T {
        self.operations.fetch_add(1, Ordering::Relaxed);
        self.delay().await;
        let result = operation.await;
        self.delay().await;
        result
    }
}

impl Coordinator for Measured {
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Znode, zk::Error>> {
        Box::pin(self.run(Box::pin(async { self.session.get(path).await })))
    }

    fn exists<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Stat>, zk::Error>> {
        Box::pin(self.run(Box::pin(async { self.session.exists(path).await })))
    }

    fn children<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(Vec<String>, Stat), zk::Error>> {
        Box::pin(self.run(Box::pin(async { self.session.children(path).await })))
    }

    fn create<'a>(
        &'a self,
        path: &'a str,
        data: Bytes,
        mode: Mode,
    ) -> BoxFuture<'a, Result<Stat, zk::Error>> {
        Box::pin(self.run(Box::pin(async move { self.session.create(path, data, mode).await })))
    }

    fn set<'a>(
        &'a self,
        path: &'a str,
        data: Bytes,
        version: Option<i32>,
    ) -> BoxFuture<'a, Result<Stat, zk::Error>> {
        Box::pin(self.run(Box::pin(async move { self.session.set(path, data, version).await })))
    }

    fn delete<'a>(&'a self, path: &'a str, version: Option<i32>) -> BoxFuture<'a, Result<(), zk::Error>> {
        Box::pin(self.run(Box::pin(async move { self.session.delete(path, version).await })))
    }

    fn watch<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Watch, zk::Error>> {
        Box::pin(self.run(Box::pin(async { self.session.watch(path).await })))
    }

    fn session(&self) -> watch::Receiver<SessionState> {
        self.session.session()
    }

    fn session_id(&self) -> i64 {
        self.session.session_id()
    }

    fn last_zxid(&self) -> i64 {
        self.session.last_zxid()
    }
}

/// A registry, and another session that changes the znodes.
struct World {
    env: Env,
    names: Names,
    ensemble: Arc<MemoryEnsemble>,
    writer: Arc<MemoryCoordinator>,
    measured: Arc<Measured>,
    registry: Arc<Registry>,
}

impl World {
    fn new(delay_max: Duration) -> World {
        let (env, names) = (base::testing::env(1), Names::default());
        let ensemble = MemoryEnsemble::new(&env);
        let (writer, session) = (ensemble.connect(), ensemble.connect());
        let operations = AtomicU64::new(0);
        let measured = Arc::new(Measured { session, env: env.clone(), delay_max, operations });
        let registry = Arc::new(Registry::new(measured.clone(), names.clone()));
        World { env, names, ensemble, writer, measured, registry }
    }

    async fn publish(&self, path: &str, data: Bytes) {
        publish(&*self.writer, path, data, Mode::Persistent).await.unwrap();
    }

    async fn publish_meta(&self, server: &ServerName, state: proto::region_state::State) {
        let data = payload::meta_region_server_in_state("m", &*self.env.random, server, state);
        self.publish(&self.names.meta_region_server(0), data).await;
    }

    async fn masters(&self) -> Vec<(ServerName, bool)> {
        let response = self.registry.masters().await.unwrap();
        let entry = |entry: &proto::GetMastersResponseEntry| (read(&entry.server_name), entry.is_active);
        response.master_servers.iter().map(entry).collect()
    }

    async fn meta(&self) -> Option<ServerName> {
        meta(&self.registry).await.unwrap()
    }

    fn operations(&self) -> u64 {
        self.measured.operations.load(Ordering::Relaxed)
    }
}

async fn meta(registry: &Registry) -> Answer<Option<ServerName>> {
    let locations = registry.meta_locations().await?.meta_locations;
    assert!(locations.len() < 2);
    Ok(locations.first().map(|location| {
        assert_eq!(RegionInfo::meta(), (&location.region_info).try_into().unwrap());
        read(location.server_name.as_ref().unwrap())
    }))
}

fn read(server: &proto::ServerName) -> ServerName {
    let port = server.port.unwrap() as u16;
    ServerName { host: server.host_name.clone(), port, start_code: server.start_code.unwrap() }
}

fn server(port: u16, start_code: u64) -> ServerName {
    ServerName { host: "host".into(), port, start_code }
}

#[tokio::test]
async fn the_active_master_and_backup_masters_are_listed() {
    let world = World::new(Duration::ZERO);
    assert_eq!(world.masters().await, []);
    assert_eq!(world.registry.active_master().await.unwrap().server_name, None);
    let mut elections = Vec::new();
    for port in [16001, 16000, 16002] {
        let session = world.ensemble.connect();
        let election =
            Election::new(session.clone(), &world.env, world.names.clone(), server(port, 1), port + 10);
        let election = Arc::new(election);
        let waiting = Arc::clone(&election);
        world.env.spawn(TaskClass::Service, async move { _ = waiting.win().await });
        tokio::task::yield_now().await;
        elections.push((session, election));
    }
    let expected = [(server(16001, 1), true), (server(16000, 1), false), (server(16002, 1), false)];
    assert_eq!(world.masters().await, expected);
    let active = world.registry.active_master().await.unwrap().server_name.unwrap();
    assert_eq!(read(&active), server(16001, 1));

    elections[0].0.expire_session();
    elections[1].0.expire_session();
    while world.masters().await != [(server(16002, 1), true)] {
        tokio::task::yield_now().await;
    }
    // A master that has just won has not deleted its znode yet.
    let backup = world.names.backup_master(&server(16002, 1).to_string());
    world.publish(&backup, Bytes::new()).await;
    assert_eq!(world.masters().await, [(server(16002, 1), true)]);
    elections[2].1.resign().await;
    world.publish(&world.names.backup_master(&server(16003, 1).to_string()), Bytes::new()).await;
    assert!(world.masters().await.contains(&(server(16003, 1), false)));
    assert_eq!(world.registry.active_master().await.unwrap().server_name, None);
}

#[tokio::test]
async fn znodes_are_read_only_after_they_changed() {
    let world = World::new(Duration::ZERO);
    let call_all = async || {
        let cluster_id = world.registry.cluster_id().await.unwrap().cluster_id;
        let nodes = world.registry.bootstrap_nodes().await.unwrap().server_name;
        let nodes: Vec<ServerName> = nodes.iter().map(read).collect();
        (cluster_id, world.masters().await, world.meta().await, nodes)
    };
    assert_eq!(call_all().await, (None, vec![], None, vec![]));
    // Five znodes, each with a watch.
    assert_eq!(world.operations(), 10);
    call_all().await;
    assert_eq!(world.operations(), 10, "also a missing znode is cached");

    let random = &*world.env.random;
    world.publish(&world.names.hbaseid(), payload::cluster_id("m", random, "id")).await;
    world.publish(&world.names.master(), payload::master("m", random, &server(1, 1), 0)).await;
    world.publish_meta(&server(2, 1), proto::region_state::State::Open).await;
    let rs = [server(2, 1), server(3, 1)];
    for server in &rs {
        let (writer, names) = (&*world.writer, &world.names);
        zk::register_region_server(writer, names, &world.env, server, 0).await.unwrap();
    }
    let expected = (Some("id".into()), vec![(server(1, 1), true)], Some(server(2, 1)), rs.to_vec());
    for _ in 0..100 {
        assert_eq!(call_all().await, expected);
    }
    // All have changed but backup-masters.
    assert_eq!(world.operations(), 14);
    world.publish_meta(&server(3, 1), proto::region_state::State::Open).await;
    for _ in 0..100 {
        assert_eq!(world.meta().await, Some(server(3, 1)));
    }
    assert_eq!(world.operations(), 15);
}

#[tokio::test]
async fn concurrent_calls_share_a_read() {
    let world = World::new(Duration::from_millis(1));
    world.publish_meta(&server(2, 1), proto::region_state::State::Open).await;
    let mut calls = JoinSet::new();
    for _ in 0..50 {
        let registry = Arc::clone(&world.registry);
        calls.spawn(async move { meta(&registry).await });
    }
    for location in calls.join_all().await {
        assert_eq!(location, Ok(Some(server(2, 1))));
    }
    assert_eq!(world.operations(), 2);
}

#[tokio::test]
async fn meta_has_no_location_while_it_is_not_open() {
    use proto::region_state::State;
    let world = World::new(Duration::ZERO);
    for (state, expected) in [
        (State::Opening, None),
        (State::Open, Some(server(2, 1))),
        (State::Closing, None),
        (State::Open, Some(server(2, 1))),
    ] {
        world.publish_meta(&server(2, 1), state).await;
        assert_eq!(world.meta().await, expected, "{state:?}");
    }
    world.writer.delete(&world.names.meta_region_server(0), None).await.unwrap();
    assert_eq!(world.meta().await, None);
}

#[tokio::test]
async fn a_suspended_session_gives_no_old_location() {
    let world = World::new(Duration::ZERO);
    world.publish_meta(&server(2, 1), proto::region_state::State::Open).await;
    assert_eq!(world.meta().await, Some(server(2, 1)));
    world.measured.session.suspend();
    let refused = meta(&world.registry).await.unwrap_err();
    assert_eq!(refused.class, "java.io.IOException");
    assert!(world.registry.masters().await.is_err());
    world.measured.session.resume();
    // Nothing was read meanwhile, and nothing has changed.
    assert_eq!(world.meta().await, Some(server(2, 1)));
    world.measured.session.suspend();
    world.publish_meta(&server(3, 1), proto::region_state::State::Open).await;
    world.measured.session.resume();
    assert_eq!(world.meta().await, Some(server(3, 1)));
    world.measured.session.expire_session();
    assert!(meta(&world.registry).await.is_err());
}

#[tokio::test]
async fn an_unreadable_znode_is_an_error_until_it_changes() {
    let world = World::new(Duration::ZERO);
    let path = world.names.meta_region_server(0);
    world.publish(&path, "unreadable".into()).await;
    for _ in 0..3 {
        let error = meta(&world.registry).await.unwrap_err();
        assert!(error.message.contains("unreadable znode"), "{error:?}");
    }
    world.publish_meta(&server(2, 1), proto::region_state::State::Open).await;
    assert_eq!(world.meta().await, Some(server(2, 1)));
}

/// In memory, a change is reported immediately. So a location is not older than at the call.
#[tokio::test(start_paused = true)]
async fn a_location_is_never_older_than_an_earlier_one() {
    const MOVES: u64 = 1000;
    let world = World::new(Duration::from_millis(5));
    let published = Arc::new(AtomicU64::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..6 {
        let (registry, published) = (Arc::clone(&world.registry), Arc::clone(&published));
        callers.spawn(call_until(MOVES, registry, published, world.env.clone()));
    }
    for number in 1..=MOVES {
        world.publish_meta(&server(2, number), proto::region_state::State::Open).await;
        published.store(number, Ordering::Relaxed);
        match number % 10 {
            3 => world.measured.session.suspend(),
            5 => world.measured.session.resume(),
            _ => {}
        }
        world.env.clock.sleep(Duration::from_micros(world.env.random.next_u64() % 20_000)).await;
    }
    for locations in callers.join_all().await {
        assert!(locations > 100, "only {locations}");
    }
}

/// Calls until the current location, whose start code is `published`, is the `last`; returns how
/// many calls succeeded.
async fn call_until(last: u64, registry: Arc<Registry>, published: Arc<AtomicU64>, env: Env) -> u64 {
    let (mut calls, mut newest) = (0, 0);
    let mut current = 0;
    while current < last {
        current = published.load(Ordering::Relaxed);
        // Some callers disconnect.
        let patience = Duration::from_micros(env.random.next_u64() % 20_000);
        if let Some(Ok(location)) = env.timeout(patience, meta(&registry)).await {
            let code = location.map_or(0, |server| server.start_code);
            assert!(code >= current && code >= newest, "{code} after {newest}, published {current}");
            newest = code;
            calls += 1;
        }
        env.clock.sleep(Duration::from_micros(env.random.next_u64() % 3000)).await;
    }
    calls
}
