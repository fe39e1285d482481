//! What every `Coordinator` does.

use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinSet;
use zk::coordinator::{DATA_LEN_MAX, ensure_path, publish};
use zk::{Error, Mode, SessionState, Stat};

use crate::subject::{Subject, changed, unchanged};

tests! {
    [memory two_memory_sessions ensemble two_ensemble_sessions] {
        a_znode_has_a_value_and_metadata,
        versions_and_children_are_counted,
        missing_and_existing_znodes_are_errors,
        a_version_must_match,
        the_root_exists_and_stays,
        invalid_paths_are_rejected,
        invalid_values_are_rejected,
        an_ephemeral_znode_has_an_owner_and_no_children,
        zxids_grow_with_each_change,
        paths_and_values_are_published,
        every_change_of_a_watched_znode_is_reported,
        nothing_else_is_reported,
        watches_of_one_znode_are_independent,
        a_reader_that_watches_before_it_reads_misses_no_change,
        concurrent_changes_by_version_lose_no_update,
        nothing_succeeds_after_the_session,
    }
}

async fn a_znode_has_a_value_and_metadata(subject: &Subject) {
    let path = subject.path("a");
    let value = Bytes::from_static(b"\0\xff value");
    let created = subject.tree.create(&path, value.clone(), Mode::Persistent).await.unwrap();
    assert!(created.created_zxid > 0 && created.created_ms > 0);
    let expected = Stat {
        created_zxid: created.created_zxid,
        modified_zxid: created.created_zxid,
        children_zxid: created.created_zxid,
        created_ms: created.created_ms,
        modified_ms: created.created_ms,
        data_len: 8,
        ..Stat::default()
    };
    assert_eq!(created, expected);
    assert_eq!(subject.tree.exists(&path).await, Ok(Some(created)));
    let read = subject.tree.get(&path).await.unwrap();
    assert_eq!((read.data, read.stat), (value, created));
    assert_eq!(subject.tree.children(&path).await, Ok((Vec::new(), created)));

    let set = subject.set("a", "").await;
    assert!(set.modified_zxid > set.created_zxid && set.modified_ms >= set.created_ms);
    let (modified_zxid, modified_ms) = (set.modified_zxid, set.modified_ms);
    assert_eq!(set, Stat { modified_zxid, modified_ms, version: 1, data_len: 0, ..created });
    assert_eq!(subject.tree.get(&path).await.unwrap().data, "");
}

async fn versions_and_children_are_counted(subject: &Subject) {
    for name in ["p", "p/b", "p/a", "p/a/x", "p-c"] {
        subject.create(name).await;
    }
    let (names, stat) = subject.tree.children(&subject.path("p")).await.unwrap();
    assert_eq!(names, ["a", "b"], "sorted, without grandchildren");
    assert_eq!((stat.children, stat.children_version, stat.version), (2, 2, 0));
    let child = subject.tree.exists(&subject.path("p/a")).await.unwrap().unwrap();
    assert_eq!(stat.children_zxid, child.created_zxid);
    subject.set("p/a", "value").await;
    subject.delete("p/b").await;
    let (names, stat) = subject.tree.children(&subject.path("p")).await.unwrap();
    assert_eq!(names, ["a"]);
    assert_eq!((stat.children, stat.children_version, stat.version), (1, 3, 0));
    assert_eq!(subject.set("p", "one").await.version, 1);
    assert_eq!(subject.set("p", "two").await.version, 2);
}

async fn missing_and_existing_znodes_are_errors(subject: &Subject) {
    let tree = &subject.tree;
    let (missing, below) = (subject.path("missing"), subject.path("missing/below"));
    let no_node = Error::NoNode { path: missing.clone() };
    assert_eq!(tree.get(&missing).await, Err(no_node.clone()));
    assert_eq!(tree.exists(&missing).await, Ok(None));
    assert_eq!(tree.children(&missing).await, Err(no_node.clone()));
    assert_eq!(tree.set(&missing, Bytes::new(), None).await, Err(no_node.clone()));
    assert_eq!(tree.set(&missing, Bytes::new(), Some(0)).await, Err(no_node.clone()));
    assert_eq!(tree.delete(&missing, None).await, Err(no_node.clone()));
    assert_eq!(tree.delete(&missing, Some(0)).await, Err(no_node.clone()));
    assert_eq!(tree.create(&below, Bytes::new(), Mode::Persistent).await, Err(no_node));

    subject.create("missing").await;
    subject.create("missing/below").await;
    for mode in [Mode::Persistent, Mode::Ephemeral] {
        let exists = Err(Error::NodeExists { path: missing.clone() });
        assert_eq!(tree.create(&missing, Bytes::new(), mode).await, exists);
    }
    assert_eq!(tree.delete(&missing, None).await, Err(Error::NotEmpty { path: missing.clone() }));
    tree.delete(&below, None).await.unwrap();
    tree.delete(&missing, None).await.unwrap();
    assert_eq!(tree.exists(&missing).await, Ok(None));
}

async fn a_version_must_match(subject: &Subject) {
    let path = subject.path("a");
    subject.create("a").await;
    let set = subject.tree.set(&path, "one".into(), Some(0)).await.unwrap();
    assert_eq!(set.version, 1);
    let bad_version = Error::BadVersion { path: path.clone(), actual: 1 };
    // -1 stands for any version in ZooKeeper's protocol, but not here.
    for version in [-2, -1, 0, 2] {
        let set = subject.tree.set(&path, "two".into(), Some(version)).await;
        assert_eq!(set, Err(bad_version.clone()), "{version}");
        assert_eq!(subject.tree.delete(&path, Some(version)).await, Err(bad_version.clone()), "{version}");
    }
    let missing = subject.path("missing");
    let no_node = Error::NoNode { path: missing.clone() };
    assert_eq!(subject.tree.set(&missing, Bytes::new(), Some(-1)).await, Err(no_node.clone()));
    assert_eq!(subject.tree.delete(&missing, Some(-1)).await, Err(no_node));
    assert_eq!(subject.tree.get(&path).await.unwrap().data, "one");
    subject.tree.delete(&path, Some(1)).await.unwrap();
    subject.create("a").await;
    assert_eq!(subject.set("a", "").await.version, 1, "a new znode has a new version");
}

async fn the_root_exists_and_stays(subject: &Subject) {
    let root = "/".to_string();
    assert!(subject.tree.exists("/").await.unwrap().is_some());
    assert!(subject.tree.get("/").await.is_ok());
    let names = subject.tree.children("/").await.unwrap().0;
    assert!(names.contains(&subject.path("")[1..].to_string()), "{names:?}");
    let created = subject.tree.create("/", Bytes::new(), Mode::Persistent).await;
    assert_eq!(created, Err(Error::NodeExists { path: root.clone() }));
    assert_eq!(subject.tree.delete("/", None).await, Err(Error::NotEmpty { path: root }));
}

async fn invalid_paths_are_rejected(subject: &Subject) {
    let tree = &subject.tree;
    let long = format!("/{}", "x".repeat(4096));
    let invalid = [
        "",
        "a",
        "/a/",
        "//",
        "/a//b",
        "/./a",
        "/a/..",
        "/a\0",
        "/\u{1f}",
        "/\u{9f}",
        "/\u{e000}",
        "/\u{f8ff}",
        "/\u{fff0}",
        "/\u{1f600}",
        &long,
    ];
    for path in invalid {
        let is_bad = |error: Option<Error>| {
            assert!(matches!(error, Some(Error::BadPath { .. })), "{path:?}: {error:?}");
        };
        is_bad(tree.get(path).await.err());
        is_bad(tree.exists(path).await.err());
        is_bad(tree.children(path).await.err());
        is_bad(tree.create(path, Bytes::new(), Mode::Persistent).await.err());
        is_bad(tree.set(path, Bytes::new(), None).await.err());
        is_bad(tree.delete(path, None).await.err());
        is_bad(tree.watch(path).await.err());
    }
    for name in ["\u{20}", "\u{a0}", "\u{d7ff}", "\u{f900}", "\u{ffef}", "...", "host.example.com,16020,1"] {
        subject.create(name).await;
        assert!(tree.exists(&subject.path(name)).await.unwrap().is_some(), "{name:?}");
    }
    let longest = subject.path(&"x".repeat(4096 - subject.path("").len() - 1));
    tree.create(&longest, Bytes::new(), Mode::Persistent).await.unwrap();
    assert!(tree.get(&longest).await.is_ok());
}

async fn invalid_values_are_rejected(subject: &Subject) {
    let path = subject.path(&"x".repeat(4000));
    let longest = Bytes::from(vec![7; DATA_LEN_MAX]);
    let too_long = Bytes::from(vec![7; DATA_LEN_MAX + 1]);
    let created = subject.tree.create(&path, too_long.clone(), Mode::Persistent).await;
    assert!(matches!(created, Err(Error::BadPath { what: "its value is too long", .. })), "{created:?}");
    subject.tree.create(&path, longest.clone(), Mode::Persistent).await.unwrap();
    assert!(matches!(subject.tree.set(&path, too_long, None).await, Err(Error::BadPath { .. })));
    let set = subject.tree.set(&path, longest.clone(), None).await.unwrap();
    assert_eq!(set.data_len as usize, DATA_LEN_MAX);
    assert_eq!(subject.tree.get(&path).await.unwrap().data, longest);
}

async fn an_ephemeral_znode_has_an_owner_and_no_children(subject: &Subject) {
    let (path, below) = (subject.path("e"), subject.path("e/below"));
    let first = subject.tree.create(&path, "value".into(), Mode::Ephemeral).await.unwrap();
    let second = subject.tree.create(&subject.path("f"), Bytes::new(), Mode::Ephemeral).await.unwrap();
    assert_ne!(first.ephemeral_owner, 0);
    assert_eq!(first.ephemeral_owner, subject.tree.session_id());
    assert_eq!(first.ephemeral_owner, second.ephemeral_owner);
    assert_eq!(subject.create("p").await.ephemeral_owner, 0);
    let created = subject.tree.create(&below, Bytes::new(), Mode::Persistent).await;
    assert!(matches!(created, Err(Error::BadPath { what: "its parent is ephemeral", .. })), "{created:?}");
    assert_eq!(subject.set("e", "other").await.ephemeral_owner, first.ephemeral_owner);
    subject.delete("e").await;
    assert_eq!(subject.tree.exists(&path).await, Ok(None));
}

async fn zxids_grow_with_each_change(subject: &Subject) {
    let mut last = subject.writer.last_zxid();
    let mut grown = |zxid: Option<i64>, what: &str| {
        let now = subject.writer.last_zxid();
        assert!(now > last, "{what}: {now} after {last}");
        assert!(zxid.is_none_or(|zxid| zxid > last && zxid <= now), "{what}: {zxid:?}, last seen {now}");
        last = now;
    };
    grown(Some(subject.create("a").await.created_zxid), "create");
    grown(Some(subject.create("a/b").await.created_zxid), "create");
    grown(Some(subject.set("a", "x").await.modified_zxid), "set");
    grown(Some(subject.set("a/b", "x").await.modified_zxid), "set");
    subject.delete("a/b").await;
    grown(None, "delete");
    let stat = subject.tree.exists(&subject.path("a")).await.unwrap().unwrap();
    assert!(stat.children_zxid > stat.modified_zxid);
    assert!(subject.tree.last_zxid() >= stat.children_zxid);
}

async fn paths_and_values_are_published(subject: &Subject) {
    ensure_path(&*subject.tree, &subject.path("a/b/c")).await.unwrap();
    ensure_path(&*subject.tree, &subject.path("a/b/c")).await.unwrap();
    let path = subject.path("d/e");
    let first = publish(&*subject.tree, &path, "one".into(), Mode::Ephemeral).await.unwrap();
    let second = publish(&*subject.tree, &path, "two".into(), Mode::Ephemeral).await.unwrap();
    assert_eq!((first.version, second.version), (0, 1));
    assert_eq!(subject.tree.get(&path).await.unwrap().data, "two");
    assert_eq!(subject.tree.get(&subject.path("a/b")).await.unwrap().data, "");
}

async fn every_change_of_a_watched_znode_is_reported(subject: &Subject) {
    let mut watch = subject.watch("a").await;
    // Twice: the znode is created again after its deletion.
    for round in ["first", "second"] {
        subject.create("a").await;
        changed(&mut watch, &format!("{round} creation")).await;
        subject.set("a", "one").await;
        changed(&mut watch, "a value").await;
        subject.set("a", "one").await;
        changed(&mut watch, "an equal value").await;
        subject.create("a/b").await;
        changed(&mut watch, "a new child").await;
        subject.delete("a/b").await;
        changed(&mut watch, "a deleted child").await;
        subject.set("a", "two").await;
        changed(&mut watch, "a value").await;
        subject.delete("a").await;
        changed(&mut watch, &format!("{round} deletion")).await;
    }
    unchanged(&mut watch, "nothing").await;
}

async fn nothing_else_is_reported(subject: &Subject) {
    subject.create("a").await;
    subject.create("a/b").await;
    let mut watch = subject.watch("a").await;
    let mut missing = subject.watch("missing/below").await;
    subject.set("a/b", "value").await;
    subject.create("a/b/c").await;
    subject.delete("a/b/c").await;
    subject.create("a-b").await;
    subject.create("missing").await;
    subject.tree.get(&subject.path("a")).await.unwrap();
    unchanged(&mut watch, "a change of another znode").await;
    unchanged(&mut missing, "a change of the parent").await;
    let failed = subject.tree.set(&subject.path("a"), Bytes::new(), Some(7)).await;
    assert!(matches!(failed, Err(Error::BadVersion { .. })));
    unchanged(&mut watch, "a failed change").await;
    subject.create("missing/below").await;
    changed(&mut missing, "the creation").await;
    // Several changes may be reported as one, but one is not reported as several.
    subject.set("a", "value").await;
    changed(&mut watch, "the value").await;
    unchanged(&mut watch, "a second report").await;
    subject.delete("a/b").await;
    subject.delete("a").await;
    changed(&mut watch, "the deletions").await;
}

async fn watches_of_one_znode_are_independent(subject: &Subject) {
    subject.create("a").await;
    let mut first = subject.watch("a").await;
    let second = subject.watch("a").await;
    subject.set("a", "one").await;
    changed(&mut first, "the first value").await;
    drop(second);
    let mut third = subject.watch("a").await;
    unchanged(&mut third, "a change before the watch").await;
    subject.set("a", "two").await;
    changed(&mut first, "the second value").await;
    changed(&mut third, "the second value").await;
    drop((first, third));
    // All are dropped, and it is watched again, also while the last is being removed.
    for _ in 0..20 {
        let mut watch = subject.watch("a").await;
        subject.set("a", "three").await;
        changed(&mut watch, "a value").await;
    }
}

async fn a_reader_that_watches_before_it_reads_misses_no_change(subject: &Subject) {
    const CHANGES: i32 = 300;
    subject.create("a").await;
    let path = subject.path("a");
    let writer = {
        let (tree, path) = (Arc::clone(&subject.writer), path.clone());
        tokio::spawn(async move {
            for number in 1..=CHANGES {
                tree.set(&path, number.to_string().into(), None).await.unwrap();
                if number % 7 == 0 {
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                }
            }
        })
    };
    let mut watch = subject.watch("a").await;
    let mut reports = 0;
    // Ends only if the last change is reported, or read after the report of an earlier one.
    while subject.tree.get(&path).await.unwrap().stat.version < CHANGES {
        changed(&mut watch, "a change after the read").await;
        reports += 1;
    }
    writer.await.unwrap();
    assert!(reports <= CHANGES);
}

async fn concurrent_changes_by_version_lose_no_update(subject: &Subject) {
    const WRITERS: usize = 5;
    const ROUNDS: usize = 10;
    subject.create("counter").await;
    let mut writers = JoinSet::new();
    for number in 0..WRITERS {
        let tree = if number % 2 == 0 { &subject.tree } else { &subject.writer };
        let (tree, path) = (Arc::clone(tree), subject.path("counter"));
        writers.spawn(async move {
            let mut added = 0;
            while added < ROUNDS {
                let read = tree.get(&path).await.unwrap();
                tokio::task::yield_now().await;
                let next = Bytes::from(vec![b'+'; read.data.len() + 1]);
                match tree.set(&path, next, Some(read.stat.version)).await {
                    Ok(_) => added += 1,
                    Err(Error::BadVersion { actual, .. }) => assert!(actual > read.stat.version),
                    Err(error) => panic!("{error}"),
                }
            }
        });
    }
    writers.join_all().await;
    let read = subject.tree.get(&subject.path("counter")).await.unwrap();
    assert_eq!((read.data.len(), read.stat.version as usize), (WRITERS * ROUNDS, WRITERS * ROUNDS));
}

async fn nothing_succeeds_after_the_session(subject: &Subject) {
    let (tree, path) = (&subject.tree, subject.path("a"));
    subject.create("a").await;
    let mut watch = subject.watch("a").await;
    assert_eq!(*tree.session().borrow(), SessionState::Connected);
    subject.end().await;
    assert!(tree.session().borrow().has_ended());
    assert_eq!(watch.changed().await, Err(Error::SessionExpired));
    assert_eq!(tree.get(&path).await, Err(Error::SessionExpired));
    assert_eq!(tree.exists(&path).await, Err(Error::SessionExpired));
    assert_eq!(tree.children(&path).await, Err(Error::SessionExpired));
    assert_eq!(tree.create(&path, Bytes::new(), Mode::Ephemeral).await, Err(Error::SessionExpired));
    assert_eq!(tree.set(&path, Bytes::new(), None).await, Err(Error::SessionExpired));
    assert_eq!(tree.delete(&path, Some(-1)).await, Err(Error::SessionExpired));
    assert_eq!(tree.watch(&path).await.err(), Some(Error::SessionExpired));
    subject.end().await;
}
