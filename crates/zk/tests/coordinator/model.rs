//! Random operations on ZooKeeper and on znodes in memory, with equal results.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use base::env::Random;
use base::testing::SeededRandom;
use bytes::Bytes;
use zk::{Coordinator, Error, MemoryCoordinator, Mode, Stat};

use crate::subject::{connect, env, unused_root, zookeeper};

const OPERATIONS: u32 = 1500;
/// Below the root of the test.
const NAMES: [&str; 7] = ["", "/a", "/a/b", "/a/b/c", "/a/d", "/e", "/e/f"];

#[derive(Debug)]
enum Operation {
    Get,
    Exists,
    Children,
    Create(Mode),
    Set(Option<i32>),
    Delete(Option<i32>),
}

impl Operation {
    fn random(random: &dyn Random) -> Operation {
        let version = match random.next_u64() % 3 {
            0 => Some((random.next_u64() % 4) as i32 - 1),
            _ => None,
        };
        match random.next_u64() % 10 {
            0 => Operation::Get,
            1 => Operation::Exists,
            2 => Operation::Children,
            3..=4 => Operation::Create(Mode::Persistent),
            5 => Operation::Create(Mode::Ephemeral),
            6..=7 => Operation::Set(version),
            _ => Operation::Delete(version),
        }
    }

    /// What can be compared of the result.
    async fn run(&self, tree: &dyn Coordinator, path: &str, value: &Bytes) -> Result<String, Error> {
        Ok(match self {
            Operation::Get => {
                let znode = tree.get(path).await?;
                format!("{:?} {}", znode.data, comparable(&znode.stat))
            }
            Operation::Exists => format!("{:?}", tree.exists(path).await?.as_ref().map(comparable)),
            Operation::Children => {
                let (names, stat) = tree.children(path).await?;
                format!("{names:?} {}", comparable(&stat))
            }
            Operation::Create(mode) => comparable(&tree.create(path, value.clone(), *mode).await?),
            Operation::Set(version) => comparable(&tree.set(path, value.clone(), *version).await?),
            Operation::Delete(version) => format!("{:?}", tree.delete(path, *version).await?),
        })
    }
}

/// Metadata without zxids and times, but with their order.
fn comparable(stat: &Stat) -> String {
    let order = [
        stat.created_zxid.cmp(&stat.modified_zxid),
        stat.created_zxid.cmp(&stat.children_zxid),
        stat.modified_zxid.cmp(&stat.children_zxid),
    ];
    assert_ne!(stat.created_ms.cmp(&stat.modified_ms), Ordering::Greater);
    let counts = (stat.version, stat.children_version, stat.acl_version, stat.data_len, stat.children);
    format!("{counts:?} {order:?} ephemeral: {}", stat.ephemeral_owner != 0)
}

#[tokio::test]
async fn random_operations_have_the_same_results_in_memory_and_on_zookeeper() {
    let Some(quorum) = zookeeper() else { return };
    let real = connect(&quorum, Duration::from_secs(10)).await;
    let memory = MemoryCoordinator::new(&env());
    let seed = std::process::id();
    let random = SeededRandom::new(seed.into());
    let root = unused_root();
    for tree in [Arc::clone(&real) as Arc<dyn Coordinator>, memory.clone()] {
        tree.create(&root, Bytes::new(), Mode::Persistent).await.unwrap();
    }
    let mut succeeded = 0;
    for number in 0..OPERATIONS {
        let operation = Operation::random(&random);
        let path = format!("{root}{}", NAMES[(random.next_u64() % NAMES.len() as u64) as usize]);
        let value = Bytes::from(vec![b'v'; (random.next_u64() % 5) as usize]);
        let expected = operation.run(&*memory, &path, &value).await;
        let got = operation.run(&*real, &path, &value).await;
        assert_eq!(got, expected, "seed {seed}, operation {number}: {operation:?} {path}");
        succeeded += u32::from(got.is_ok());
    }
    assert!(succeeded > OPERATIONS / 4, "only {succeeded} succeeded");
    real.close().await;
}
