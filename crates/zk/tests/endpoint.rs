//! The endpoint against captured exchanges of HBase's clients, our own client, and hostile peers.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, Listener, Network, Stream};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use zk::protocol::{ConnectRequest, ConnectResponse, Reply, Request};
use zk::{Coordinator, Endpoint, EndpointOptions, MemoryCoordinator, Mode, client, coordinator};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

const JAVA_CONNECT: &str = "00000000 0000000000000000 00015f90 0000000000000000 00000010 \
    00000000000000000000000000000000 00";
const GOHBASE_CONNECT: &str = "00000000 0000000000000000 00007530 0000000000000000 00000010 \
    00000000000000000000000000000000";

struct Harness {
    env: Env,
    coordinator: Arc<MemoryCoordinator>,
    endpoint: Arc<Endpoint>,
    port: u16,
}

impl Harness {
    async fn new() -> Harness {
        Harness::with(EndpointOptions::default()).await
    }

    async fn with(options: EndpointOptions) -> Harness {
        let env = base::testing::env(5);
        let coordinator = MemoryCoordinator::new(&env);
        for (path, data) in [("/hbase/hbaseid", "id"), ("/hbase/master", "m"), ("/hbase/rs/h,1,2", "")] {
            coordinator::publish(&*coordinator, path, data.into(), Mode::Persistent).await.unwrap();
        }
        let endpoint = Endpoint::new(env.clone(), coordinator.clone(), options);
        let listener = env.net.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let port = listener.local_addr().port();
        endpoint.serve(listener);
        Harness { env, coordinator, endpoint, port }
    }

    async fn raw(&self) -> Raw {
        Raw(self.env.net.connect("localhost", self.port).await.unwrap())
    }

    async fn session(&self) -> Raw {
        let mut raw = self.raw().await;
        raw.send(&hex(JAVA_CONNECT)).await;
        raw.frame().await;
        raw
    }

    fn zxid(&self) -> i64 {
        self.coordinator.last_zxid()
    }
}

struct Raw(Box<dyn Stream>);

impl Raw {
    async fn send(&mut self, body: &[u8]) {
        self.0.write_all(&(body.len() as u32).to_be_bytes()).await.unwrap();
        self.0.write_all(body).await.unwrap();
    }

    async fn frame(&mut self) -> Bytes {
        let len = self.0.read_u32().await.unwrap();
        let mut body = vec![0; len as usize];
        self.0.read_exact(&mut body).await.unwrap();
        body.into()
    }

    async fn request(&mut self, body: &str) -> Reply {
        self.send(&hex(body)).await;
        Reply::parse(&self.frame().await).unwrap()
    }

    async fn closed(&mut self) {
        let mut rest = Vec::new();
        let _ = self.0.read_to_end(&mut rest).await;
        assert!(rest.is_empty(), "{rest:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_are_granted_as_zookeeper_does() {
    let harness = Harness::new().await;
    let mut java = harness.raw().await;
    java.send(&hex(JAVA_CONNECT)).await;
    let answer = java.frame().await;
    assert_eq!(answer.len(), 37, "the read-only flag is mirrored");
    let granted = ConnectResponse::parse(&answer).unwrap();
    assert_eq!(granted.timeout_ms, 40_000);
    assert!(granted.session > 0);

    let mut gohbase = harness.raw().await;
    gohbase.send(&hex(GOHBASE_CONNECT)).await;
    let answer = gohbase.frame().await;
    assert_eq!(answer.len(), 36);
    assert_eq!(ConnectResponse::parse(&answer).unwrap().timeout_ms, 30_000);

    // A client that lost its connection resumes its session.
    let back = ConnectRequest {
        last_zxid: harness.zxid(),
        timeout_ms: 40_000,
        session: granted.session,
        password: Bytes::copy_from_slice(&granted.password),
        read_only: Some(false),
    };
    let mut again = harness.raw().await;
    again.send(&back.encode()[4..]).await;
    assert_eq!(ConnectResponse::parse(&again.frame().await).unwrap(), granted);

    // A client that has seen more changes than there are has another server's session.
    let ahead = ConnectRequest { last_zxid: harness.zxid() + 1, ..back };
    let mut refused = harness.raw().await;
    refused.send(&ahead.encode()[4..]).await;
    let answer = ConnectResponse::parse(&refused.frame().await).unwrap();
    assert_eq!((answer.session, answer.timeout_ms), (0, 0));
    refused.closed().await;
}

/// The requests are captured. The responses are fixed, except for this server's own values (zxids,
/// times).
#[tokio::test(start_paused = true)]
async fn captured_requests_are_answered_as_zookeeper_does() {
    let harness = Harness::new().await;
    let zxid = harness.zxid();
    let mut raw = harness.session().await;

    let reply = raw.request("00000001 00000004 0000000e 2f68626173652f68626173656964 00").await;
    assert_eq!((reply.xid, reply.zxid, reply.error), (1, zxid, 0));
    assert_eq!(reply.data().unwrap(), "id");
    assert_eq!(reply.payload.len(), 4 + 2 + 68);
    let stat = harness.coordinator.exists("/hbase/hbaseid").await.unwrap().unwrap();
    let mut expected = BytesMut::new();
    zk::protocol::put_stat(&mut expected, &stat);
    assert_eq!(reply.payload[6..], expected);

    raw.send(&hex("fffffffe 0000000b")).await;
    assert_eq!(raw.frame().await, [&hex("fffffffe")[..], &zxid.to_be_bytes(), &hex("00000000")].concat());

    let missing = "/hbase/root-region-server";
    raw.send(&Request::encode(7, 4, Some(missing))[4..]).await;
    assert_eq!(raw.frame().await, [&hex("00000007")[..], &zxid.to_be_bytes(), &hex("ffffff9b")].concat());

    raw.send(&hex("00000002 fffffff5")).await;
    assert_eq!(raw.frame().await, [&hex("00000002")[..], &zxid.to_be_bytes(), &hex("00000000")].concat());
    raw.closed().await;
}

#[tokio::test(start_paused = true)]
async fn other_operations_are_answered_as_zookeeper_does() {
    let harness = Harness::new().await;
    let mut raw = harness.session().await;
    let path = |text: &str| {
        let bytes: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        format!("{:08x} {bytes}", text.len())
    };
    let children = raw.request(&format!("00000001 00000008 {} 01", path("/hbase"))).await;
    assert_eq!(children.children().unwrap(), ["hbaseid", "master", "rs"]);
    let children = raw.request(&format!("00000002 0000000c {} 00", path("/hbase/rs"))).await;
    assert_eq!(children.children().unwrap(), ["h,1,2"]);
    assert_eq!(children.payload.len(), 4 + 4 + 5 + 68);
    let exists = raw.request(&format!("00000003 00000003 {} 00", path("/hbase/master"))).await;
    assert_eq!((exists.error, exists.payload.len()), (0, 68));
    let exists = raw.request(&format!("00000003 00000003 {} 00", path("/nowhere"))).await;
    assert_eq!((exists.error, exists.payload.len()), (-101, 0));
    let sync = raw.request(&format!("00000004 00000009 {}", path("/hbase"))).await;
    assert_eq!(sync.data().unwrap(), "/hbase");
    let auth = raw.request(&format!("fffffffc 00000064 00000000 {} ffffffff", path("digest"))).await;
    assert_eq!((auth.xid, auth.error), (-4, 0));
    let watches = raw.request("fffffff8 00000065 0000000000000001 00000000 00000000 00000000").await;
    assert_eq!((watches.xid, watches.error), (-8, 0));
    for change in [1, 2, 5, 7, 14, 15] {
        let refused = raw.request(&format!("00000005 {change:08x} {} 0000", path("/hbase/x"))).await;
        assert_eq!(refused.error, -102, "{change}");
    }
    assert_eq!(raw.request("00000006 00000063").await.error, -6);
    assert!(harness.coordinator.exists("/hbase/x").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn our_client_reads_what_was_published() {
    let harness = Harness::new().await;
    let servers = [("dead".to_string(), 1), ("localhost".to_string(), harness.port)];
    let mut client = client::Client::connect(&harness.env, &servers, Duration::from_secs(5)).await.unwrap();
    assert_eq!(client.get_data("/hbase/master").await.unwrap(), "m");
    assert_eq!(client.get_children("/hbase/rs").await.unwrap(), ["h,1,2"]);
    assert_eq!(client.get_data("/hbase/none").await, Err(client::Error::NoNode("/hbase/none".into())));
    harness.coordinator.set("/hbase/master", "new".into(), None).await.unwrap();
    assert_eq!(client.get_data("/hbase/master").await.unwrap(), "new");
    client.close().await;
    let refused = client::Client::connect(&harness.env, &servers[..1], Duration::from_secs(5)).await;
    assert!(matches!(refused.err(), Some(client::Error::Unavailable(_))));
}

/// A network in which the host `silent` never answers.
struct PartlySilent(Arc<dyn Network>);

impl Network for PartlySilent {
    fn listen(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        self.0.listen(address)
    }

    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        if host == "silent" { Box::pin(std::future::pending()) } else { self.0.connect(host, port) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_delays_our_client_by_a_second() {
    let harness = Harness::new().await;
    let net = Arc::new(PartlySilent(harness.env.net.clone()));
    let env = Env { net, ..harness.env.clone() };
    let silent = ("silent".to_string(), 2181);
    let servers = [silent.clone(), silent.clone(), ("localhost".to_string(), harness.port), silent];
    let timeout = Duration::from_secs(10);
    let began = env.clock.monotonic();
    let mut client = client::Client::connect(&env, &servers, timeout).await.unwrap();
    assert!(env.clock.monotonic() - began < Duration::from_secs(3));
    assert_eq!((client.server(), client.get_data("/hbase/master").await.unwrap()), (2, "m".into()));

    let refused = client::Client::connect(&env, &servers[..2], timeout).await.err();
    let Some(client::Error::Unavailable(reason)) = refused else { panic!("{refused:?}") };
    assert_eq!(reason, ["silent:2181: no response within 10s"; 2].join("; "));
}

#[tokio::test(start_paused = true)]
async fn slow_and_hostile_clients_are_disconnected() {
    for (sent, seconds) in [
        ("", 10),
        ("0000", 10),
        ("0000002d 00000000", 10),
        ("7fffffff", 0),
        ("00000003 000000", 0),
        ("00000000", 0),
    ] {
        let harness = Harness::new().await;
        let started = harness.env.clock.monotonic();
        let mut raw = harness.raw().await;
        raw.0.write_all(&hex(sent)).await.unwrap();
        raw.closed().await;
        let took = harness.env.clock.monotonic() - started;
        assert_eq!(took.as_secs(), seconds, "{sent}");
        assert_eq!(harness.endpoint.connections(), 0);
    }
    // With a session: its timeout (40 s here), unless it pings.
    let harness = Harness::new().await;
    let mut raw = harness.session().await;
    for _ in 0..10 {
        harness.env.clock.sleep(Duration::from_secs(30)).await;
        raw.request("fffffffe 0000000b").await;
    }
    let started = harness.env.clock.monotonic();
    raw.closed().await;
    assert_eq!((harness.env.clock.monotonic() - started).as_secs(), 40);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_disconnected() {
    let harness = Harness::new().await;
    harness.coordinator.set("/hbase/master", vec![0; 60_000].into(), None).await.unwrap();
    let mut raw = harness.session().await;
    for xid in 0..10 {
        raw.0.write_all(&Request::encode(xid, 4, Some("/hbase/master"))).await.unwrap();
    }
    harness.env.clock.sleep(Duration::from_secs(15)).await;
    assert_eq!(harness.endpoint.connections(), 0);
}

#[tokio::test(start_paused = true)]
async fn stopping_closes_the_sessions() {
    let harness = Harness::new().await;
    let mut raw = harness.session().await;
    harness.endpoint.stop();
    raw.closed().await;
}

#[tokio::test(start_paused = true)]
async fn versions_children_and_changes_are_counted() {
    let env = base::testing::env(5);
    let tree = MemoryCoordinator::new(&env);
    let before = tree.last_zxid();
    assert!(matches!(
        tree.create("/a/b", Bytes::new(), Mode::Persistent).await,
        Err(zk::Error::NoNode { .. })
    ));
    coordinator::ensure_path(&*tree, "/a/b").await.unwrap();
    let stat = tree.set("/a/b", "one".into(), Some(0)).await.unwrap();
    assert_eq!((stat.version, stat.data_len), (1, 3));
    assert_eq!(stat.modified_zxid, tree.last_zxid());
    assert!(stat.created_zxid > before);
    let stale = tree.set("/a/b", "two".into(), Some(0)).await;
    assert_eq!(stale, Err(zk::Error::BadVersion { path: "/a/b".into(), actual: 1 }));
    assert!(matches!(
        tree.create("/a/b", Bytes::new(), Mode::Persistent).await,
        Err(zk::Error::NodeExists { .. })
    ));
    assert!(matches!(tree.delete("/a", None).await, Err(zk::Error::NotEmpty { .. })));
    tree.create("/a/c", Bytes::new(), Mode::Ephemeral).await.unwrap();
    tree.create("/a-b", Bytes::new(), Mode::Persistent).await.unwrap();
    let (names, stat) = tree.children("/a").await.unwrap();
    assert_eq!((names, stat.children), (vec!["b".to_string(), "c".to_string()], 2));
    assert_eq!(tree.children("/").await.unwrap().0, ["a", "a-b"]);
    tree.delete("/a/b", Some(1)).await.unwrap();
    tree.delete("/a/c", None).await.unwrap();
    assert_eq!(tree.exists("/a").await.unwrap().unwrap().children, 0);
    tree.delete("/a", None).await.unwrap();
    assert_eq!(tree.exists("/a").await.unwrap(), None);
    for path in ["", "a", "/a/", "//", "/a//b", "/./a", "/a\0"] {
        assert!(matches!(tree.get(path).await, Err(zk::Error::BadPath { .. })), "{path:?}");
    }
}

proptest! {
    /// The decoders over untrusted input.
    #[test]
    fn garbage_is_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes::from(bytes);
        let _ = ConnectRequest::parse(&bytes);
        let _ = ConnectResponse::parse(&bytes);
        let _ = Request::parse(&bytes);
        if let Ok(reply) = Reply::parse(&bytes) {
            let _ = reply.data();
            let _ = reply.children();
        }
        let _ = zk::payload::read_master(&bytes);
        let _ = zk::payload::read_meta_region_server(&bytes);
    }

    /// Requests of any type followed by random bytes.
    #[test]
    fn garbage_after_a_type_is_refused_or_read(kind in -20i32..110, bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let body = [&[0, 0, 0, 1][..], &kind.to_be_bytes(), &bytes].concat();
        let _ = Request::parse(&Bytes::from(body));
    }
}

async fn word_response(harness: &Harness, word: &str) -> String {
    let mut raw = harness.raw().await;
    raw.0.write_all(word.as_bytes()).await.unwrap();
    let mut text = Vec::new();
    raw.0.read_to_end(&mut text).await.unwrap();
    String::from_utf8(text).unwrap()
}

/// As ZooKeeper 3.8.4 responds, except for versions and numbers.
#[tokio::test(start_paused = true)]
async fn four_letter_words_are_answered_and_the_connection_closed() {
    let harness = Harness::new().await;
    let _session = harness.session().await;
    assert_eq!(word_response(&harness, "ruok").await, "imok");
    assert_eq!(word_response(&harness, "isro").await, "rw");
    let srvr = word_response(&harness, "srvr").await;
    let names: Vec<&str> = srvr.lines().map(|line| line.split_once(": ").unwrap().0).collect();
    let expected = [
        "Zookeeper version",
        "Latency min/avg/max",
        "Received",
        "Sent",
        "Connections",
        "Outstanding",
        "Zxid",
        "Mode",
        "Node count",
    ];
    assert_eq!(names, expected);
    assert!(srvr.ends_with("Mode: standalone\nNode count: 6\n"), "{srvr}");
    let stat = word_response(&harness, "stat").await;
    let clients =
        stat.lines().skip_while(|line| *line != "Clients:").skip(1).take_while(|line| !line.is_empty());
    let clients: Vec<&str> = clients.collect();
    assert!(clients.len() == 2 && clients.iter().all(|line| line.starts_with(" /127.0.0.1:")), "{stat}");
    assert!(clients.iter().any(|line| line.contains("](queued=0,recved=1,sent=1,sid=0x")), "{stat}");
    let mntr = word_response(&harness, "mntr").await;
    for expected in ["zk_server_state\tstandalone", "zk_znode_count\t6", "zk_num_alive_connections\t2"] {
        assert!(mntr.lines().any(|line| line == expected), "{expected}: {mntr}");
    }
    assert!(mntr.lines().all(|line| line.starts_with("zk_") && line.contains('\t')), "{mntr}");
    let conf = word_response(&harness, "conf").await;
    assert!(
        conf.contains(&format!("clientPort={}\n", harness.port))
            && conf.contains("maxSessionTimeout=40000\n")
    );
    assert_eq!(word_response(&harness, "wchs").await, "0 connections watching 0 paths\nTotal watches:0\n");
    assert!(
        word_response(&harness, "dump")
            .await
            .starts_with("SessionTracker dump:\nSession Sets (1)/(1):\n\t0x")
    );
    assert!(word_response(&harness, "cons").await.starts_with(" /127.0.0.1:"));
    assert!(word_response(&harness, "envi").await.starts_with("Environment:\nzookeeper.version="));
    assert_eq!(word_response(&harness, "srst").await, "Server stats reset.\n");
    assert_eq!(word_response(&harness, "xxxx").await, "", "neither a word nor a valid frame length");
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_session_is_closed_for_a_new_one() {
    let options = EndpointOptions { connections_max: 3, ..EndpointOptions::default() };
    let harness = Harness::with(options).await;
    let mut silent = harness.raw().await;
    let sessions = [harness.session().await, harness.session().await];
    let mut third = harness.session().await;
    silent.closed().await;
    third.request("fffffffe 0000000b").await;
    // All connections have sessions, so the new one is closed.
    harness.raw().await.closed().await;
    drop(sessions);
}

#[tokio::test(start_paused = true)]
async fn a_watch_reports_changes_of_its_znode_only() {
    let env = base::testing::env(6);
    let tree = MemoryCoordinator::new(&env);
    coordinator::ensure_path(&*tree, "/a").await.unwrap();
    let changes = async |watch: &mut zk::Watch| {
        let changed = env.timeout(Duration::from_secs(1), watch.changed()).await;
        changed.map(|result| result.unwrap()).is_some()
    };
    let (mut of_parent, mut of_child) = (tree.watch("/a").await.unwrap(), tree.watch("/a/b").await.unwrap());
    let mut of_other = tree.watch("/c").await.unwrap();
    assert!(!changes(&mut of_child).await, "nothing has changed yet");
    tree.create("/a/b", Bytes::new(), Mode::Persistent).await.unwrap();
    assert!(changes(&mut of_child).await && changes(&mut of_parent).await);
    tree.set("/a/b", "one".into(), None).await.unwrap();
    assert!(changes(&mut of_child).await, "its value changed");
    assert!(!changes(&mut of_parent).await, "the value of a child is not a change of its parent");
    tree.delete("/a/b", None).await.unwrap();
    assert!(changes(&mut of_child).await && changes(&mut of_parent).await);
    assert!(!changes(&mut of_other).await);
    assert!(tree.watch("a").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_expired_session_loses_its_ephemeral_znodes_and_notifies_its_owner() {
    let env = base::testing::env(7);
    let tree = MemoryCoordinator::new(&env);
    tree.create("/server", Bytes::new(), Mode::Ephemeral).await.unwrap();
    tree.create("/kept", Bytes::new(), Mode::Persistent).await.unwrap();
    let mut watch = tree.watch("/kept").await.unwrap();
    let session = tree.session();
    assert_eq!(*session.borrow(), zk::SessionState::Connected);
    let before = tree.last_zxid();
    tree.expire_session();
    assert_eq!(*session.borrow(), zk::SessionState::Expired);
    assert_eq!(tree.last_zxid(), before + 1, "one znode was deleted");
    assert_eq!(watch.changed().await, Err(zk::Error::SessionExpired));
    assert_eq!(tree.get("/kept").await, Err(zk::Error::SessionExpired));
    let late = tree.create("/late", Bytes::new(), Mode::Ephemeral).await;
    assert_eq!(late, Err(zk::Error::SessionExpired));
}
