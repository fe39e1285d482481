//! Elections of the active master.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cell::region::ServerName;
use tokio::task::JoinHandle;
use zk::{Coordinator, Election, Error, Mode, Names, SessionState, payload};

use crate::proxy::Proxy;
use crate::subject::{Session, Subject, connect, env, unused_root, within, zookeeper};

tests! {
    [memory ensemble] {
        a_single_master_wins,
        one_of_three_masters_wins_and_the_others_follow,
        a_master_that_resigns_can_win_again,
        a_znode_of_an_earlier_process_is_deleted,
        a_znode_of_a_process_with_the_same_address_may_have_to_expire,
        a_znode_of_another_master_is_not_deleted,
        an_unacknowledged_creation_wins,
        a_master_without_its_znode_is_not_active,
        a_master_whose_session_expires_does_not_win,
        resigning_deletes_no_znode_of_another_master,
    }
}

/// No event is expected in this time.
const SILENCE: Duration = Duration::from_millis(300);

struct Master {
    session: Session,
    names: Names,
    server: ServerName,
    election: Arc<Election>,
}

impl Master {
    async fn new(subject: &Subject, port: u16, start_code: u64) -> Master {
        Master::with_session(subject, subject.connect().await, port, start_code)
    }

    fn with_session(subject: &Subject, session: Session, port: u16, start_code: u64) -> Master {
        let names = Names::below(&subject.path("hbase"));
        let server = server(port, start_code);
        let election = Election::new(session.tree(), &env(), names.clone(), server.clone(), port + 10);
        Master { session, names, server, election: Arc::new(election) }
    }

    async fn wins(&self) {
        within(&format!("{} is active", self.server), self.election.win()).await.unwrap();
        let znode = self.session.tree().get(&self.names.master()).await.unwrap();
        assert_eq!(payload::read_master(&znode.data).as_ref(), Ok(&self.server));
        assert_eq!(znode.stat.ephemeral_owner, self.session.tree().session_id());
        self.does_not_lose().await;
    }

    async fn does_not_lose(&self) {
        let lost = tokio::time::timeout(Duration::from_millis(50), self.election.lost()).await;
        assert!(lost.is_err(), "{} lost", self.server);
    }

    async fn loses(&self) {
        within(&format!("{} is not active", self.server), self.election.lost()).await;
    }

    /// Takes part in the election, in a task. Returns when it has begun.
    async fn waits(&self) -> JoinHandle<Result<(), Error>> {
        let election = Arc::clone(&self.election);
        let waiting = tokio::spawn(async move { election.win().await });
        let path = self.names.backup_master(&self.server.to_string());
        let is_registered = async {
            while !waiting.is_finished() && self.session.tree().exists(&path).await.unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within("its znode", is_registered).await;
        waiting
    }

    /// The backup masters, as this session sees them.
    async fn backups(&self) -> Vec<ServerName> {
        let (names, _) = self.session.tree().children(&self.names.backup_masters()).await.unwrap();
        names.iter().map(|name| ServerName::parse(name).unwrap()).collect()
    }
}

fn server(port: u16, start_code: u64) -> ServerName {
    ServerName { host: "host.example.com".into(), port, start_code }
}

async fn is_waiting(waiting: &JoinHandle<Result<(), Error>>) {
    tokio::time::sleep(SILENCE).await;
    assert!(!waiting.is_finished());
}

/// Waits until one of two elections ends; returns which.
async fn first_to_end(waiting: &[JoinHandle<Result<(), Error>>; 2]) -> usize {
    let ended = async {
        while !waiting.iter().any(JoinHandle::is_finished) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("the next active master", ended).await;
    tokio::time::sleep(SILENCE).await;
    assert!(waiting[0].is_finished() != waiting[1].is_finished(), "only one is active");
    usize::from(waiting[1].is_finished())
}

async fn joined(task: JoinHandle<Result<(), Error>>) -> Result<(), Error> {
    within("the end of the election", task).await.unwrap()
}

async fn a_single_master_wins(subject: &Subject) {
    let master = Master::new(subject, 16000, 1).await;
    // It is not active yet.
    master.loses().await;
    master.wins().await;
    assert_eq!(master.backups().await, []);
    // It is active already.
    master.wins().await;
    assert_eq!(master.backups().await, []);
    let znode = master.session.tree().get(&master.names.master()).await.unwrap();
    let message: proto::Master = payload::decode(&znode.data).unwrap();
    assert_eq!((message.rpc_version, message.info_port), (Some(0), Some(16010)));
}

async fn one_of_three_masters_wins_and_the_others_follow(subject: &Subject) {
    let first = Master::new(subject, 16000, 1).await;
    let others = [Master::new(subject, 16001, 1).await, Master::new(subject, 16002, 1).await];
    first.wins().await;
    let waiting = [others[0].waits().await, others[1].waits().await];
    is_waiting(&waiting[0]).await;
    is_waiting(&waiting[1]).await;
    assert_eq!(first.backups().await, [others[0].server.clone(), others[1].server.clone()]);
    let path = first.names.backup_master(&others[0].server.to_string());
    let backup = subject.tree.get(&path).await.unwrap();
    assert_eq!(payload::read_master(&backup.data).as_ref(), Ok(&others[0].server));

    first.session.end().await;
    first.loses().await;
    let winner = first_to_end(&waiting).await;
    let (second, third) = (&others[winner], &others[1 - winner]);
    let [one, other] = waiting;
    let (won, waiting) = if winner == 0 { (one, other) } else { (other, one) };
    assert_eq!(joined(won).await, Ok(()));
    is_waiting(&waiting).await;
    second.does_not_lose().await;
    assert_eq!(second.backups().await, std::slice::from_ref(&third.server));

    second.session.end().await;
    second.loses().await;
    assert_eq!(joined(waiting).await, Ok(()));
    third.does_not_lose().await;
    assert_eq!(third.backups().await, []);
}

async fn a_master_that_resigns_can_win_again(subject: &Subject) {
    let (first, second) = (Master::new(subject, 16000, 1).await, Master::new(subject, 16001, 1).await);
    first.wins().await;
    let waiting = second.waits().await;
    let lost = {
        let election = Arc::clone(&first.election);
        tokio::spawn(async move { election.lost().await })
    };
    first.election.resign().await;
    assert_eq!(within("the end of the first term", lost).await.unwrap(), None, "it resigned");
    assert_eq!(joined(waiting).await, Ok(()));
    // The session of the first still exists.
    let waiting = first.waits().await;
    is_waiting(&waiting).await;
    second.election.resign().await;
    second.loses().await;
    assert_eq!(joined(waiting).await, Ok(()));
    first.does_not_lose().await;
    // A backup master resigns.
    let waiting = second.waits().await;
    waiting.abort();
    second.election.resign().await;
    assert_eq!(first.backups().await, []);
    first.does_not_lose().await;
}

async fn a_znode_of_an_earlier_process_is_deleted(subject: &Subject) {
    let killed = Master::new(subject, 16000, 1).await;
    killed.wins().await;
    let other = Master::new(subject, 16001, 1).await;
    let waiting = other.waits().await;
    // The session of the killed process still exists.
    let restarted = Master::new(subject, 16000, 2).await;
    let waiting = [restarted.waits().await, waiting];
    let active = [&restarted, &other][first_to_end(&waiting).await];
    killed.loses().await;
    active.does_not_lose().await;

    // Also the znode of an earlier session of the same process, whose expiry it noticed first.
    let session = subject.connect().await;
    let again = Master::with_session(subject, session, active.server.port, active.server.start_code);
    let third = again.waits().await;
    active.loses().await;
    third.abort();
}

async fn a_znode_of_a_process_with_the_same_address_may_have_to_expire(subject: &Subject) {
    let elsewhere = Master::new(subject, 16000, 1).await;
    elsewhere.wins().await;
    let Master { session, names, server, .. } = Master::new(subject, 16000, 2).await;
    let election = Election::new(session.tree(), &env(), names.clone(), server.clone(), 0);
    let election = Arc::new(election.replacing_earlier(false));
    let same_name = Master { session, names, server, election };
    let waiting = same_name.waits().await;
    is_waiting(&waiting).await;
    elsewhere.does_not_lose().await;
    elsewhere.session.end().await;
    assert_eq!(joined(waiting).await, Ok(()));
}

async fn a_znode_of_another_master_is_not_deleted(subject: &Subject) {
    let master = Master::new(subject, 16000, 2).await;
    let path = master.names.master();
    let unreadable = Bytes::from_static(b"unreadable");
    let other_port = payload::master("m", &*env().random, &server(16001, 1), 0);
    let other_host = ServerName { host: "another.example.com".into(), ..server(16000, 1) };
    let other_host = payload::master("m", &*env().random, &other_host, 0);
    for content in [unreadable, other_port, other_host] {
        let holder = subject.connect().await;
        zk::coordinator::create_own(&*holder.tree(), &path, content.clone()).await.unwrap();
        let waiting = master.waits().await;
        is_waiting(&waiting).await;
        let znode = subject.tree.get(&path).await.unwrap();
        assert_eq!((znode.data, znode.stat.version), (content, 0));
        holder.end().await;
        assert_eq!(joined(waiting).await, Ok(()));
        master.election.resign().await;
    }
    assert_eq!(subject.tree.exists(&path).await, Ok(None));
}

/// The response to the creation was lost with a connection.
async fn an_unacknowledged_creation_wins(subject: &Subject) {
    let master = Master::new(subject, 16000, 1).await;
    let data = payload::master("m", &*env().random, &master.server, 0);
    let backup = master.names.backup_master(&master.server.to_string());
    for path in [backup, master.names.master()] {
        zk::coordinator::create_own(&*master.session.tree(), &path, data.clone()).await.unwrap();
    }
    let before = subject.tree.exists(&master.names.master()).await.unwrap();
    master.wins().await;
    assert_eq!(subject.tree.exists(&master.names.master()).await.unwrap(), before);
    assert_eq!(master.backups().await, []);
}

async fn a_master_without_its_znode_is_not_active(subject: &Subject) {
    let master = Master::new(subject, 16000, 1).await;
    let path = master.names.master();
    master.wins().await;
    subject.tree.delete(&path, None).await.unwrap();
    master.loses().await;

    // A znode that has its name, but is another one.
    master.wins().await;
    let data = subject.tree.get(&path).await.unwrap().data;
    subject.tree.delete(&path, None).await.unwrap();
    subject.tree.create(&path, data.clone(), Mode::Persistent).await.unwrap();
    master.loses().await;
    subject.tree.delete(&path, None).await.unwrap();

    // A change that leaves its name is none.
    master.wins().await;
    subject.tree.set(&path, data, None).await.unwrap();
    master.does_not_lose().await;
    let other = payload::master("m", &*env().random, &server(16001, 1), 0);
    subject.tree.set(&path, other, None).await.unwrap();
    master.loses().await;
}

async fn a_master_whose_session_expires_does_not_win(subject: &Subject) {
    let (first, second) = (Master::new(subject, 16000, 1).await, Master::new(subject, 16001, 1).await);
    first.wins().await;
    let waiting = second.waits().await;
    second.session.end().await;
    assert_eq!(joined(waiting).await, Err(Error::SessionExpired));
    assert_eq!(second.election.win().await, Err(Error::SessionExpired));
    second.loses().await;
    second.election.resign().await;
    first.does_not_lose().await;
    assert_eq!(first.backups().await, []);
}

async fn resigning_deletes_no_znode_of_another_master(subject: &Subject) {
    let (first, second) = (Master::new(subject, 16000, 1).await, Master::new(subject, 16001, 1).await);
    first.wins().await;
    second.election.resign().await;
    first.does_not_lose().await;
    // The next process on the same host and port.
    let restarted = Master::new(subject, 16000, 2).await;
    restarted.wins().await;
    first.election.resign().await;
    restarted.does_not_lose().await;
}

/// The active master is notified before ZooKeeper lets another one win.
#[tokio::test]
async fn a_partitioned_master_loses_before_another_one_wins() {
    let Some(quorum) = zookeeper() else { return };
    let proxy = Proxy::new(&quorum).await;
    let names = Names::below(&unused_root());
    let partitioned = connect(&proxy.address(), Duration::from_secs(2)).await;
    let other = connect(&quorum, Duration::from_secs(10)).await;
    let [first, second] = [(&partitioned, 16000), (&other, 16001)]
        .map(|(tree, port)| Arc::new(Election::new(tree.clone(), &env(), names.clone(), server(port, 1), 0)));
    within("the first is active", first.win()).await.unwrap();
    let waiting = {
        let second = Arc::clone(&second);
        tokio::spawn(async move { second.win().await })
    };
    // A short interruption changes nothing.
    proxy.close();
    tokio::time::sleep(SILENCE).await;
    assert!(tokio::time::timeout(SILENCE, first.lost()).await.is_err());
    proxy.open();
    tokio::time::sleep(SILENCE * 3).await;
    assert!(!waiting.is_finished());

    proxy.stall();
    assert_eq!(joined(waiting).await, Ok(()));
    assert_eq!(partitioned.exists("/").await, Err(Error::SessionExpired));
    assert_eq!(*partitioned.session().borrow(), SessionState::Expired);
    let cause = within("the first is not active", first.lost()).await;
    assert_eq!(cause, Some("its session expired"));
    proxy.open();
    assert!(tokio::time::timeout(SILENCE, second.lost()).await.is_err());
}
