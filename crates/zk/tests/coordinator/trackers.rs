//! Registration of region servers, and trackers of servers and masters.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use cell::region::ServerName;
use zk::{
    Coordinator, Error, MasterTracker, MemoryEnsemble, Mode, Names, ServerTracker, ZnodeTracker, payload,
    register_region_server,
};

use crate::subject::{Session, Subject, env, within};
use crate::unreliable::Unreliable;

tests! {
    [memory ensemble] {
        a_region_server_is_registered,
        a_repeated_registration_changes_nothing,
        a_znode_of_another_session_is_replaced,
        servers_that_join_and_leave_are_tracked,
        the_last_of_many_changes_is_tracked,
        the_active_master_is_tracked,
        a_value_is_current_until_it_changes,
    }
}

/// No change is reported in this time.
const SILENCE: Duration = Duration::from_millis(200);

fn server(port: u16, start_code: u64) -> ServerName {
    ServerName { host: "host.example.com".into(), port, start_code }
}

fn names(subject: &Subject) -> Names {
    Names::below(&subject.path("hbase"))
}

async fn register(session: &Session, names: &Names, server: &ServerName) {
    register_region_server(&*session.tree(), names, &env(), server, server.port + 10).await.unwrap();
}

async fn is_reported(changed: impl Future<Output = Result<(), Error>>) {
    within("a change", changed).await.unwrap();
}

async fn is_not_reported(changed: impl Future<Output = Result<(), Error>>) {
    assert!(tokio::time::timeout(SILENCE, changed).await.is_err());
}

async fn a_region_server_is_registered(subject: &Subject) {
    let (names, server) = (names(subject), server(16020, 7));
    let owner = subject.connect().await;
    register(&owner, &names, &server).await;
    let path = format!("{}/rs/host.example.com,16020,7", subject.path("hbase"));
    let znode = subject.tree.get(&path).await.unwrap();
    assert_eq!(znode.stat.ephemeral_owner, owner.tree().session_id());
    let info = payload::read_region_server(&znode.data).unwrap();
    assert_eq!(info.info_port, Some(16030));
    assert_eq!(subject.tree.exists(&names.rs()).await.unwrap().unwrap().ephemeral_owner, 0);
    owner.end().await;
    assert_eq!(subject.tree.children(&names.rs()).await.unwrap().0, Vec::<String>::new());
    let tree = owner.tree();
    let again = register_region_server(&*tree, &names, &env(), &server, 0).await;
    assert_eq!(again, Err(Error::SessionExpired));
}

async fn a_repeated_registration_changes_nothing(subject: &Subject) {
    let (names, server) = (names(subject), server(16020, 7));
    let owner = subject.connect().await;
    register(&owner, &names, &server).await;
    let mut tracker = ServerTracker::new(subject.tree.clone(), &names);
    tracker.live().await.unwrap();
    let path = names.region_server(&server.to_string());
    let before = subject.tree.get(&path).await.unwrap();
    register(&owner, &names, &server).await;
    assert_eq!(subject.tree.get(&path).await.unwrap(), before);
    // A master would take its disappearance for its end.
    is_not_reported(tracker.changed()).await;
}

async fn a_znode_of_another_session_is_replaced(subject: &Subject) {
    let (names, server) = (names(subject), server(16020, 7));
    let (earlier, owner) = (subject.connect().await, subject.connect().await);
    register(&earlier, &names, &server).await;
    register(&owner, &names, &server).await;
    let path = names.region_server(&server.to_string());
    let stat = subject.tree.exists(&path).await.unwrap().unwrap();
    assert_eq!(stat.ephemeral_owner, owner.tree().session_id());
    earlier.end().await;
    assert_eq!(subject.tree.exists(&path).await, Ok(Some(stat)));
}

async fn servers_that_join_and_leave_are_tracked(subject: &Subject) {
    let names = names(subject);
    let mut tracker = ServerTracker::new(subject.tree.clone(), &names);
    is_reported(tracker.changed()).await;
    assert_eq!(tracker.live().await, Ok(BTreeSet::new()), "rs does not exist yet");
    is_not_reported(tracker.changed()).await;

    let sessions = [subject.connect().await, subject.connect().await];
    let [first, second] = [server(16020, 1), server(16021, 1)];
    register(&sessions[0], &names, &first).await;
    is_reported(tracker.changed()).await;
    let joined = async {
        while tracker.live().await.unwrap().is_empty() {
            tracker.changed().await.unwrap();
        }
    };
    within("the first server", joined).await;
    register(&sessions[1], &names, &second).await;
    is_reported(tracker.changed()).await;
    assert_eq!(tracker.live().await, Ok(BTreeSet::from([first.clone(), second.clone()])));

    // A process that is started again, before the session of the earlier one expires.
    let restarted = server(16020, 2);
    register(&sessions[1], &names, &restarted).await;
    is_reported(tracker.changed()).await;
    let live = BTreeSet::from([first, second.clone(), restarted.clone()]);
    assert_eq!(tracker.live().await, Ok(live));
    sessions[0].end().await;
    is_reported(tracker.changed()).await;
    assert_eq!(tracker.live().await, Ok(BTreeSet::from([second, restarted])));

    subject.tree.create(&format!("{}/stray", names.rs()), Bytes::new(), Mode::Persistent).await.unwrap();
    is_reported(tracker.changed()).await;
    assert_eq!(tracker.live().await.unwrap().len(), 2);
    sessions[1].end().await;
    is_reported(tracker.changed()).await;
    assert_eq!(tracker.live().await, Ok(BTreeSet::new()));
    is_not_reported(tracker.changed()).await;
}

async fn the_last_of_many_changes_is_tracked(subject: &Subject) {
    const ROUNDS: u64 = 60;
    let names = names(subject);
    let owner = subject.connect().await;
    register(&owner, &names, &server(16020, 1)).await;
    let mut tracker = ServerTracker::new(subject.tree.clone(), &names);
    let writer = {
        let (tree, names) = (owner.tree(), names.clone());
        tokio::spawn(async move {
            for round in 1..ROUNDS {
                let (next, last) = (server(16020, round + 1), server(16020, round));
                register_region_server(&*tree, &names, &env(), &next, 0).await.unwrap();
                tree.delete(&names.region_server(&last.to_string()), None).await.unwrap();
                if round % 7 == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        })
    };
    let mut newest = 0;
    let last = BTreeSet::from([server(16020, ROUNDS)]);
    let tracking = async {
        loop {
            let live = tracker.live().await.unwrap();
            let seen = live.iter().map(|server| server.start_code).max();
            assert!(seen >= Some(newest) && live.len() <= 2, "{live:?} after {newest}");
            newest = seen.unwrap();
            if live == last {
                break;
            }
            tracker.changed().await.unwrap();
        }
    };
    within("the last server", tracking).await;
    writer.await.unwrap();
}

async fn the_active_master_is_tracked(subject: &Subject) {
    let names = names(subject);
    let mut tracker = MasterTracker::new(subject.tree.clone(), &names);
    is_reported(tracker.changed()).await;
    assert_eq!(tracker.current().await, Ok(None));
    zk::coordinator::ensure_path(&*subject.tree, names.parent()).await.unwrap();
    for port in [16000, 16001] {
        let owner = subject.connect().await;
        let election = zk::Election::new(owner.tree(), &env(), names.clone(), server(port, 1), 0);
        election.win().await.unwrap();
        is_reported(tracker.changed()).await;
        assert_eq!(tracker.current().await, Ok(Some(server(port, 1))));
        is_not_reported(tracker.changed()).await;
        owner.end().await;
        is_reported(tracker.changed()).await;
        assert_eq!(tracker.current().await, Ok(None));
    }
    subject.tree.create(&names.master(), "unreadable".into(), Mode::Persistent).await.unwrap();
    is_reported(tracker.changed()).await;
    assert!(matches!(tracker.current().await, Err(Error::Unavailable(_))));
    subject.tree.delete(&names.master(), None).await.unwrap();
    is_reported(tracker.changed()).await;
    assert_eq!(tracker.current().await, Ok(None));
}

async fn a_value_is_current_until_it_changes(subject: &Subject) {
    let mut tracker = ZnodeTracker::new(subject.tree.clone(), subject.path("a"));
    assert!(!tracker.is_current());
    assert_eq!(tracker.value().await, Ok(None));
    assert!(tracker.is_current());
    let other = subject.connect().await;
    other.tree().create(&subject.path("a"), "one".into(), Mode::Persistent).await.unwrap();
    is_no_more_current(&tracker).await;
    // The report is not needed any more.
    assert_eq!(tracker.value().await, Ok(Some("one".into())));
    assert!(tracker.is_current());
    is_not_reported(tracker.changed()).await;
    assert!(tracker.is_current());
    other.tree().set(&subject.path("a"), "two".into(), None).await.unwrap();
    is_reported(tracker.changed()).await;
    assert!(!tracker.is_current());
    is_reported(tracker.changed()).await;
    assert_eq!(tracker.value().await, Ok(Some("two".into())));
    // A change of the children.
    other.tree().create(&subject.path("a/b"), Bytes::new(), Mode::Persistent).await.unwrap();
    is_reported(tracker.changed()).await;
    assert_eq!(tracker.children().await, Ok(vec!["b".to_string()]));
    assert!(tracker.is_current());
    subject.end().await;
    assert!(!tracker.is_current());
    assert_eq!(tracker.changed().await, Err(Error::SessionExpired));
    assert_eq!(tracker.value().await, Err(Error::SessionExpired));
}

async fn is_no_more_current(tracker: &ZnodeTracker) {
    let changed = async {
        while tracker.is_current() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("the change", changed).await;
}

#[tokio::test]
async fn a_tracker_continues_after_a_suspension() {
    let ensemble = MemoryEnsemble::new(&env());
    let (session, other, names) = (ensemble.connect(), ensemble.connect(), Names::default());
    let mut tracker = ServerTracker::new(session.clone(), &names);
    let mut rs = ZnodeTracker::new(session.clone(), names.rs());
    session.suspend();
    // Nothing is read yet, so nothing is waited for.
    assert!(matches!(tracker.live().await, Err(Error::Unavailable(_))));
    is_reported(tracker.changed()).await;
    session.resume();
    assert_eq!(tracker.live().await, Ok(BTreeSet::new()));
    rs.children().await.unwrap();

    session.suspend();
    assert!(!rs.is_current());
    register_region_server(&*other, &names, &env(), &server(16020, 1), 0).await.unwrap();
    is_not_reported(tracker.changed()).await;
    session.resume();
    assert!(!rs.is_current());
    is_reported(tracker.changed()).await;
    // The read fails, so the change is still unread.
    session.suspend();
    assert!(matches!(tracker.live().await, Err(Error::Unavailable(_))));
    is_reported(tracker.changed()).await;
    session.resume();
    assert_eq!(tracker.live().await, Ok(BTreeSet::from([server(16020, 1)])));
    is_not_reported(tracker.changed()).await;
}

#[tokio::test(start_paused = true)]
async fn a_read_that_is_dropped_is_not_made() {
    let (env, ensemble) = (env(), MemoryEnsemble::new(&env()));
    let (session, other) = (Unreliable::new(ensemble.connect(), &env), ensemble.connect());
    let mut tracker = ZnodeTracker::new(session, "/a".to_string());
    other.create("/a", Bytes::new(), Mode::Persistent).await.unwrap();
    let (mut dropped, mut read) = (0, 0);
    for number in 0..500 {
        // Short enough that most reads are dropped, some before and some after they are executed.
        let value = env.timeout(Duration::from_millis(env.random.next_u64() % 12), tracker.value()).await;
        let expected = number.to_string();
        match value {
            Some(Ok(value)) => {
                assert!(tracker.is_current());
                assert!(value == Some(expected.clone().into()) || number == 0, "{value:?} at {number}");
                read += 1;
            }
            Some(Err(_)) | None => {
                assert!(!tracker.is_current());
                tracker.changed().await.unwrap();
                dropped += 1;
            }
        }
        other.set("/a", (number + 1).to_string().into(), None).await.unwrap();
        assert!(!tracker.is_current());
    }
    assert!(dropped > 100 && read > 100, "{dropped} reads were dropped, {read} were not");
}
