//! Writers while the disk of the files is slower than they are.

use std::sync::Arc;
use std::time::Duration;

use crate::world::{World, run};
use base::env::TaskClass;
use cell::cell::{CellType, KeyValue};
use cell::mutation::Mutation;
use cell::schema::FamilyDescriptor;
use fs::faulty::{Fault, Operation, Rule};
use fs::memory::MemoryFs;

/// Bytes of each value.
const VALUE_BYTES: usize = 16 << 10;
const WRITERS: u64 = 4;
const RUN: Duration = Duration::from_secs(30);

/// What writers saw.
#[derive(Default, Debug)]
struct Seen {
    writes: u64,
    refused: u64,
    longest: Duration,
    error: String,
}

fn put(row: u64, at: u64) -> Mutation {
    let row = format!("{row}-{at}");
    let cell =
        KeyValue::new(row.as_bytes(), b"f", b"q", cell::LATEST_TIMESTAMP, CellType::Put, &[7; VALUE_BYTES]);
    Mutation::put(row, vec![cell])
}

/// Writes as fast as the server accepts it, for a time.
async fn write(world: Arc<World>, writer: u64) -> Seen {
    let (clock, region, mut seen) = (world.env.clock.clone(), world.served(), Seen::default());
    let end = clock.monotonic() + RUN;
    while clock.monotonic() < end {
        let begin = clock.monotonic();
        let written = region.batch(vec![put(writer, seen.writes + 1)]).await;
        seen.writes += 1;
        if let Err(error) = &written[0] {
            seen.refused += 1;
            seen.error = error.to_string();
        }
        seen.longest = seen.longest.max(clock.monotonic() - begin);
        // About 13 MB/s together, much more than the disk of the files takes.
        clock.sleep(Duration::from_millis(5)).await;
    }
    seen
}

#[test]
fn writers_are_slowed_down_and_never_refused() {
    run(async {
        let world = Arc::new(World::on(MemoryFs::new(), FamilyDescriptor::new("f")).await);
        // Each append to a store file takes longer; those to logs do not.
        let slow =
            Rule::new(Fault::Delay(Duration::from_millis(200))).on(Operation::Append).at("data/default/");
        world.faulty.add(slow);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (send, ended) = tokio::sync::oneshot::channel();
                let world = world.clone();
                let env = world.env.clone();
                env.spawn(TaskClass::Service, async move {
                    let _ = send.send(write(world, writer).await);
                });
                ended
            })
            .collect();
        let mut seen = Vec::new();
        for writer in writers {
            seen.push(writer.await.unwrap());
        }
        let writes: u64 = seen.iter().map(|seen| seen.writes).sum();
        assert_eq!(seen.iter().map(|seen| seen.refused).sum::<u64>(), 0, "{seen:?}");
        let longest = seen.iter().map(|seen| seen.longest).max().unwrap();
        assert!(longest < Duration::from_secs(2), "{longest:?} {writes}");
        let (flushes, backlog) = (world.served().metrics().flushes, world.server.memstore_backlog());
        assert!(flushes > 3, "{flushes} flushes, {writes} writes");
        assert!(backlog.is_some());
        assert!(world.server.paused_writes() > 0);
    });
}
