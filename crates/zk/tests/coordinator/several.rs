//! What several sessions on one tree do.

use bytes::Bytes;
use zk::{Error, Mode, SessionState};

use crate::subject::{Session, Subject, changed, unchanged};

tests! {
    [memory ensemble] {
        sessions_have_different_ids,
        each_session_sees_the_changes_of_the_others,
        the_end_of_a_session_deletes_only_its_ephemeral_znodes,
        another_session_can_change_and_delete_an_ephemeral_znode,
        the_owner_of_an_ephemeral_znode_is_its_creator,
    }
}

async fn sessions_have_different_ids(subject: &Subject) {
    let (first, second) = (subject.connect().await.tree(), subject.connect().await.tree());
    let mut ids = [subject.tree.session_id(), first.session_id(), second.session_id()];
    ids.sort_unstable();
    assert!(ids[0] != 0 && ids[0] < ids[1] && ids[1] < ids[2], "{ids:?}");
}

async fn each_session_sees_the_changes_of_the_others(subject: &Subject) {
    let path = subject.path("counter");
    let sessions = [subject.connect().await, subject.connect().await, subject.connect().await];
    let mut watches = Vec::new();
    for session in &sessions {
        watches.push(session.tree().watch(&path).await.unwrap());
    }
    subject.create("counter").await;
    for round in 0..6 {
        let writer = sessions[round % sessions.len()].tree();
        for watch in &mut watches {
            changed(watch, "a change").await;
        }
        let version = round as i32;
        for session in &sessions {
            assert_eq!(session.tree().get(&path).await.unwrap().stat.version, version);
        }
        writer.set(&path, round.to_string().into(), Some(version)).await.unwrap();
        let stale =
            sessions[(round + 1) % sessions.len()].tree().set(&path, Bytes::new(), Some(version)).await;
        assert_eq!(stale, Err(Error::BadVersion { path: path.clone(), actual: version + 1 }));
    }
}

/// Two sessions with an ephemeral znode each, below a persistent one.
async fn owners(subject: &Subject) -> [Session; 2] {
    let owners = [subject.connect().await, subject.connect().await];
    subject.create("p").await;
    for (owner, name) in owners.iter().zip(["p/first", "p/second"]) {
        let created = owner.tree().create(&subject.path(name), name.into(), Mode::Ephemeral).await.unwrap();
        assert_eq!(created.ephemeral_owner, owner.tree().session_id());
    }
    owners
}

async fn the_end_of_a_session_deletes_only_its_ephemeral_znodes(subject: &Subject) {
    let [first, second] = owners(subject).await;
    first.tree().create(&subject.path("q"), Bytes::new(), Mode::Persistent).await.unwrap();
    let mut parent = subject.watch("p").await;
    let mut deleted = subject.watch("p/first").await;
    let mut other = subject.watch("p/second").await;
    let mut persistent = subject.watch("q").await;
    let before = subject.tree.children(&subject.path("p")).await.unwrap().1;
    first.end().await;
    changed(&mut parent, "a deleted child").await;
    changed(&mut deleted, "the deletion").await;
    unchanged(&mut other, "a change of another session's znode").await;
    unchanged(&mut persistent, "a change of a persistent znode").await;
    let (names, stat) = subject.tree.children(&subject.path("p")).await.unwrap();
    assert_eq!((names, stat.children), (vec!["second".to_string()], 1));
    assert!(stat.children_zxid > before.children_zxid);
    assert!(subject.tree.last_zxid() >= stat.children_zxid);
    // The other session is as before.
    assert_eq!(*second.tree().session().borrow(), SessionState::Connected);
    assert_eq!(second.tree().get(&subject.path("p/second")).await.unwrap().data, "p/second");
    assert_eq!(first.tree().get(&subject.path("q")).await, Err(Error::SessionExpired));
    // The name is free.
    second.tree().create(&subject.path("p/first"), Bytes::new(), Mode::Ephemeral).await.unwrap();
    second.end().await;
    changed(&mut other, "the deletion").await;
    assert_eq!(subject.tree.children(&subject.path("p")).await.unwrap().0, Vec::<String>::new());
    assert!(subject.tree.exists(&subject.path("q")).await.unwrap().is_some());
}

async fn another_session_can_change_and_delete_an_ephemeral_znode(subject: &Subject) {
    let [first, second] = owners(subject).await;
    let path = subject.path("p/first");
    let set = second.tree().set(&path, "other".into(), Some(0)).await.unwrap();
    assert_eq!(set.ephemeral_owner, first.tree().session_id());
    second.tree().delete(&path, Some(1)).await.unwrap();
    assert_eq!(first.tree().exists(&path).await, Ok(None));
    // The end of the first session does not delete the znode that the other one has created since.
    second.tree().create(&path, "second".into(), Mode::Ephemeral).await.unwrap();
    first.end().await;
    assert_eq!(subject.tree.get(&path).await.unwrap().data, "second");
}

async fn the_owner_of_an_ephemeral_znode_is_its_creator(subject: &Subject) {
    let [first, second] = owners(subject).await;
    let path = subject.path("p/first");
    let exists = Err(Error::NodeExists { path: path.clone() });
    assert_eq!(second.tree().create(&path, Bytes::new(), Mode::Ephemeral).await, exists);
    let stat = subject.tree.exists(&path).await.unwrap().unwrap();
    assert_eq!((stat.ephemeral_owner, stat.version), (first.tree().session_id(), 0));
    second.end().await;
    assert!(subject.tree.exists(&path).await.unwrap().is_some());
}
