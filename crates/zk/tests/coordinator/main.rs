//! The contract of a `Coordinator`, over znodes in memory and over a real ZooKeeper.
//!
//! `compat/zookeeper/run` starts ZooKeeper and sets two variables for these tests:
//!
//! * `GRAMPUS_TEST_ZOOKEEPER`: `host:port` of a server for all tests. Without it, the tests that
//!   need ZooKeeper print that they are skipped.
//! * `GRAMPUS_TEST_ZOOKEEPER_COMMAND`: the command that starts a server, one word per line. Tests
//!   that stop or kill servers start their own with it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "real sockets, processes and time")]

mod contract;
mod losses;
mod model;
mod proxy;
mod raw;
mod server;
mod sessions;
mod subject;

/// Runs each function of [`contract`] over both implementations.
macro_rules! contract {
    ($($name:ident,)*) => {
        mod memory {
            $(#[tokio::test]
            async fn $name() {
                crate::contract::$name(&crate::subject::Subject::memory().await).await;
            })*
        }
        mod ensemble {
            $(#[tokio::test]
            async fn $name() {
                let Some(subject) = crate::subject::Subject::ensemble().await else { return };
                crate::contract::$name(&subject).await;
                subject.end().await;
            })*
        }
    };
}

contract! {
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
