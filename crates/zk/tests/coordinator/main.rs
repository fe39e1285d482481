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

/// Tests each function of a module over some kinds of subjects.
macro_rules! tests {
    ([$($subject:ident)*] $names:tt) => {
        $(mod $subject {
            tests!($subject $names);
        })*
    };
    ($subject:ident { $($name:ident,)* }) => {
        $(#[tokio::test]
        async fn $name() {
            let Some(subject) = crate::subject::Subject::$subject().await else { return };
            super::$name(&subject).await;
            subject.end().await;
        })*
    };
}

mod contract;
mod election;
mod elections;
mod losses;
mod model;
mod proxy;
mod raw;
mod server;
mod sessions;
mod several;
mod subject;
mod suspended;
mod trackers;
mod unreliable;
