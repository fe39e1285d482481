//! Writers while the disk of the files is slower than they are.

use std::sync::Arc;
use std::time::Duration;

use crate::multi::mutations;
use crate::world::{World, run};
use base::env::TaskClass;
use cell::schema::FamilyDescriptor;
use fs::faulty::{Fault, Operation, Rule};
use fs::memory::MemoryFs;
use prost::Message;
use proto::mutation_proto::MutationType;

/// Number of region actions of a call, each with one put.
const REGION_ACTIONS: usize = 6;
/// Bytes of each value.
const VALUE_BYTES: usize = 3 << 10;
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

/// Writes a row by each region action of one call. Returns their exceptions.
async fn put(world: &World, writer: u64, at: u64) -> Vec<proto::NameBytesPair> {
    let rows: Vec<_> = (0..REGION_ACTIONS).map(|action| [format!("{writer}-{at}-{action}")]).collect();
    let groups: Vec<_> = rows.iter().map(|row| (MutationType::Put, &row[..])).collect();
    let (request, cells) = mutations(world, &groups, &[7; VALUE_BYTES]);
    let answer = world.call_raw("Multi", request, cells).await;
    let response = proto::MultiResponse::decode(answer.message).unwrap();
    let of_mutations = |result: &proto::RegionActionResult| {
        result.result_or_exception.iter().filter_map(|entry| entry.exception.clone()).collect::<Vec<_>>()
    };
    let results = response.region_action_result;
    results
        .iter()
        .flat_map(|result| result.exception.clone().into_iter().chain(of_mutations(result)))
        .collect()
}

/// Writes as fast as the server accepts it, for a time.
async fn write(world: Arc<World>, writer: u64) -> Seen {
    let (clock, mut seen) = (world.env.clock.clone(), Seen::default());
    let end = clock.monotonic() + RUN;
    while clock.monotonic() < end {
        let begin = clock.monotonic();
        let exceptions = put(&world, writer, seen.writes + 1).await;
        seen.writes += 1;
        if let Some(exception) = exceptions.first() {
            seen.refused += 1;
            seen.error = exception.name.clone();
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
        // A call waits once, and not once for each region action.
        assert!(longest < Duration::from_secs(2), "{longest:?} {writes}");
        let (flushes, backlog) = (world.served().metrics().flushes, world.server.memstore_backlog());
        assert!(flushes > 3, "{flushes} flushes, {writes} writes");
        assert!(backlog.is_some());
        assert!(world.server.paused_writes() > 0);
    });
}
