//! Writers while flushes or compactions are slower than they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::multi::mutations;
use crate::world::{World, run};
use base::env::TaskClass;
use cell::query::Get;
use cell::schema::FamilyDescriptor;
use fs::faulty::{Fault, Operation, Rule};
use fs::memory::MemoryFs;
use futures_util::future::join;
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
    /// The longest time between a write and its confirmation.
    longest_unconfirmed: Duration,
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

/// When the first row of a call became visible, or the call ended.
async fn written_at(world: &World, writer: u64, at: u64, has_ended: &AtomicBool) -> Duration {
    let row = format!("{writer}-{at}-0");
    let get = Get { row: row.into(), selection: Arc::default(), existence_only: false };
    while !has_ended.load(Relaxed) && world.served().get(&get).await.unwrap().cells.is_empty() {
        world.env.clock.sleep(Duration::from_millis(5)).await;
    }
    world.env.clock.monotonic()
}

/// Writes as fast as the server accepts it, for a time.
async fn write(world: Arc<World>, writer: u64) -> Seen {
    let (clock, mut seen) = (world.env.clock.clone(), Seen::default());
    let end = clock.monotonic() + RUN;
    while clock.monotonic() < end {
        let begin = clock.monotonic();
        let (at, has_ended) = (seen.writes + 1, AtomicBool::new(false));
        let call = async {
            let exceptions = put(&world, writer, at).await;
            has_ended.store(true, Relaxed);
            (exceptions, clock.monotonic())
        };
        let ((exceptions, confirmed), written) = join(call, written_at(&world, writer, at, &has_ended)).await;
        seen.longest_unconfirmed = seen.longest_unconfirmed.max(confirmed.saturating_sub(written));
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

/// Writes from several writers at the same time.
async fn write_all(world: &Arc<World>) -> Vec<Seen> {
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
        let seen = write_all(&world).await;
        let writes: u64 = seen.iter().map(|seen| seen.writes).sum();
        assert_eq!(seen.iter().map(|seen| seen.refused).sum::<u64>(), 0, "{seen:?}");
        let longest = seen.iter().map(|seen| seen.longest).max().unwrap();
        // A call waits once, and not once for each region action.
        assert!(longest < Duration::from_secs(6), "{longest:?} {writes}");
        assert!(longest > Duration::from_millis(500), "{longest:?} {writes}");
        // It waits before its first write: else a flush could archive the log with the nonce of a
        // write that is not confirmed.
        let unconfirmed = seen.iter().map(|seen| seen.longest_unconfirmed).max().unwrap();
        assert!(unconfirmed < Duration::from_millis(100), "{unconfirmed:?} {writes}");
        let (flushes, backlog) = (world.served().metrics().flushes, world.server.memstore_backlog());
        assert!(flushes > 3, "{flushes} flushes, {writes} writes");
        assert!(backlog.is_some());
        assert!(world.server.paused_writes() > 0);
    });
}

/// A server whose compactions are slow and whose flushes are fast: only compactions read files.
async fn with_slow_compactions() -> Arc<World> {
    let mut family = FamilyDescriptor::new("f");
    family.configuration.insert("hbase.hstore.blockingStoreFiles".into(), "8".into());
    let world = Arc::new(World::on(MemoryFs::new(), family).await);
    assert_eq!(world.server.compaction_backlog(), None);
    let slow = Rule::new(Fault::Delay(Duration::from_millis(100))).on(Operation::Read).at("data/default/");
    world.faulty.add(slow);
    world
}

#[test]
fn writers_are_slowed_down_while_flushes_wait_for_compactions() {
    run(async {
        let world = with_slow_compactions().await;
        let seen = write_all(&world).await;
        let writes: u64 = seen.iter().map(|seen| seen.writes).sum();
        assert_eq!(seen.iter().map(|seen| seen.refused).sum::<u64>(), 0, "{seen:?}");
        let longest = seen.iter().map(|seen| seen.longest).max().unwrap();
        assert!(longest < Duration::from_secs(5), "{longest:?} {writes}");
        assert!(world.server.paused_writes() > 0, "{longest:?} {writes}");
        let (flushes, files) = (world.served().metrics().flushes, world.served().compaction_pressure());
        assert!(flushes > 8 && files > 0.5, "{flushes} flushes, {writes} writes, {files}");
    });
}

#[test]
fn the_backlog_of_compactions_is_known() {
    run(async {
        let world = with_slow_compactions().await;
        write_all(&world).await;
        let backlog = world.server.compaction_backlog();
        assert!(backlog.is_some_and(|backlog| backlog > Duration::from_secs(1)), "{backlog:?}");
    });
}
