//! Suspended sessions in memory. Those of ZooKeeper are in `sessions` and `losses`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cell::region::ServerName;
use zk::{Coordinator, Election, Error, MemoryCoordinator, MemoryEnsemble, Mode, Names, SessionState};

use crate::subject::{changed, env, unchanged, within};

/// Two sessions, and a znode `/p` with an ephemeral child `/p/e` of the first.
async fn pair() -> (Arc<MemoryCoordinator>, Arc<MemoryCoordinator>) {
    let ensemble = MemoryEnsemble::new(&env());
    let (tested, other) = (ensemble.connect(), ensemble.connect());
    other.create("/p", Bytes::new(), Mode::Persistent).await.unwrap();
    tested.create("/p/e", Bytes::new(), Mode::Ephemeral).await.unwrap();
    (tested, other)
}

async fn every_operation_fails(tested: &MemoryCoordinator, expired: bool) {
    let results = [
        tested.get("/p").await.err(),
        tested.exists("/p").await.err(),
        tested.children("/p").await.err(),
        tested.create("/new", Bytes::new(), Mode::Persistent).await.err(),
        tested.set("/p", Bytes::new(), None).await.err(),
        tested.delete("/p/e", None).await.err(),
        tested.watch("/p").await.err(),
    ];
    for result in results {
        match result {
            Some(Error::SessionExpired) => assert!(expired),
            Some(Error::Unavailable(_)) => assert!(!expired),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_suspended_session_exists_but_cannot_be_used() {
    let (tested, other) = pair().await;
    let mut states = tested.session();
    tested.suspend();
    assert_eq!(*states.borrow_and_update(), SessionState::Suspended);
    every_operation_fails(&tested, false).await;
    let stat = other.exists("/p/e").await.unwrap().unwrap();
    assert_eq!(stat.ephemeral_owner, tested.session_id());
    assert_eq!(other.exists("/new").await, Ok(None));
    tested.suspend();
    tested.resume();
    assert_eq!(*states.borrow_and_update(), SessionState::Connected);
    assert!(tested.set("/p/e", Bytes::new(), Some(0)).await.is_ok());
    tested.resume();
    assert!(!states.has_changed().unwrap());
    assert_eq!(*other.session().borrow(), SessionState::Connected);
}

#[tokio::test]
async fn changes_during_a_suspension_are_reported_after_it() {
    let (tested, other) = pair().await;
    let mut watch = tested.watch("/p").await.unwrap();
    let mut same = tested.watch("/p/e").await.unwrap();
    let mut others = other.watch("/p").await.unwrap();
    let dropped = tested.watch("/q").await.unwrap();
    for _ in 0..2 {
        tested.suspend();
        other.set("/p", Bytes::new(), None).await.unwrap();
        other.set("/p", Bytes::new(), None).await.unwrap();
        changed(&mut others, "a value").await;
        unchanged(&mut watch, "a change during a suspension").await;
        tested.resume();
        changed(&mut watch, "the values").await;
        unchanged(&mut watch, "a second report").await;
        other.set("/p", Bytes::new(), None).await.unwrap();
        changed(&mut watch, "a later value").await;
    }
    unchanged(&mut same, "nothing").await;
    tested.suspend();
    drop(dropped);
    other.create("/q", Bytes::new(), Mode::Persistent).await.unwrap();
    tested.resume();
}

#[tokio::test]
async fn a_suspended_session_can_expire() {
    let (tested, other) = pair().await;
    let mut watch = tested.watch("/p").await.unwrap();
    let mut deletion = other.watch("/p/e").await.unwrap();
    tested.suspend();
    tested.expire_session();
    changed(&mut deletion, "the deletion").await;
    assert_eq!(watch.changed().await, Err(Error::SessionExpired));
    tested.resume();
    tested.suspend();
    assert_eq!(*tested.session().borrow(), SessionState::Expired);
    every_operation_fails(&tested, true).await;
}

#[tokio::test]
async fn a_session_ends_when_it_is_closed_or_dropped() {
    let (tested, other) = pair().await;
    let mut states = tested.session();
    tested.close();
    assert_eq!(*states.borrow_and_update(), SessionState::Closed);
    assert_eq!(other.exists("/p/e").await, Ok(None));
    other.create("/p/e", Bytes::new(), Mode::Ephemeral).await.unwrap();
    tested.close();
    tested.expire_session();
    assert_eq!(*states.borrow_and_update(), SessionState::Closed, "it had ended before");
    drop(tested);
    assert!(other.exists("/p/e").await.unwrap().is_some());

    let (dropped, other) = pair().await;
    let mut watch = dropped.watch("/p").await.unwrap();
    drop(dropped);
    assert_eq!(watch.changed().await, Err(Error::SessionExpired));
    assert_eq!(other.exists("/p/e").await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn an_election_continues_after_a_suspension() {
    let ensemble = MemoryEnsemble::new(&env());
    let sessions = [ensemble.connect(), ensemble.connect()];
    let [first, second] = [0, 1].map(|number: u16| {
        let server = ServerName { host: "host".into(), port: 16000 + number, start_code: 1 };
        let election =
            Election::new(sessions[usize::from(number)].clone(), &env(), Names::default(), server, 0);
        Arc::new(election)
    });
    sessions[0].suspend();
    let winning = {
        let first = Arc::clone(&first);
        tokio::spawn(async move { first.win().await })
    };
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!winning.is_finished());
    sessions[0].resume();
    assert_eq!(within("the first wins", winning).await.unwrap(), Ok(()));
    let lost = {
        let first = Arc::clone(&first);
        tokio::spawn(async move { first.lost().await })
    };
    let waiting = {
        let second = Arc::clone(&second);
        tokio::spawn(async move { second.win().await })
    };
    for session in [&sessions[0], &sessions[1]] {
        session.suspend();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!lost.is_finished() && !waiting.is_finished());
        session.resume();
    }
    sessions.iter().for_each(|session| session.suspend());
    tokio::time::sleep(Duration::from_secs(60)).await;
    sessions[0].expire_session();
    assert_eq!(within("the first loses", lost).await.unwrap(), Some("its session expired"));
    assert!(!waiting.is_finished());
    sessions[1].resume();
    assert_eq!(within("the second wins", waiting).await.unwrap(), Ok(()));
}
