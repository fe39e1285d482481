//! A store file with a corrupt block: only reads of that block fail, and the error names the file.

use crate::world::cells::{RawCell, block, mutation_by_block};
use crate::world::{World, run};
use bytes::Bytes;
use cell::mutation::MutationKind;
use cell::region::RegionInfo;
use cell::schema::{FamilyDescriptor, TableName};
use engine::region::CompactionKind;
use fs::{FilePath, FileSystem};
use layout::RootDir;
use prost::Message;
use proto::exception::JavaException;
use rpc::Codec;

const DO_NOT_RETRY: &str = "org.apache.hadoop.hbase.DoNotRetryIOException";
const CORRUPT: &str = "org.apache.hadoop.hbase.io.hfile.CorruptHFileException";

async fn put(world: &World, row: &str, value: &[u8]) {
    let cell = RawCell { value: value.to_vec(), timestamp: i64::MAX, ..RawCell::put(row) };
    let mutation = mutation_by_block(MutationKind::Put, row.as_bytes(), 1);
    let request = proto::MutateRequest { region: world.region.clone(), mutation, ..Default::default() };
    world.call_by(Codec::KeyValue, "Mutate", &request, block(&[cell])).await.unwrap();
}

async fn get(world: &World, row: &str) -> Result<usize, JavaException> {
    let get = proto::Get { row: row.to_string().into(), ..Default::default() };
    let request = proto::GetRequest { region: world.region.clone(), get };
    let reply = world.call_by(Codec::KeyValue, "Get", &request, Bytes::new()).await?;
    Ok(proto::GetResponse::decode(reply.message).unwrap().result.unwrap().associated_cell_count() as usize)
}

async fn scan(world: &World, scan: proto::Scan) -> Result<usize, JavaException> {
    let request = proto::ScanRequest {
        region: Some(world.region.clone()),
        scan: Some(scan),
        number_of_rows: Some(10_000),
        ..Default::default()
    };
    let reply = world.call_by(Codec::KeyValue, "Scan", &request, Bytes::new()).await?;
    Ok(proto::ScanResponse::decode(reply.message).unwrap().cells_per_result.len())
}

/// The store files of the region.
async fn store_files(world: &World) -> Vec<FilePath> {
    let info = RegionInfo::new(TableName::parse("t").unwrap(), "".into(), "".into(), 1);
    let dir = RootDir::new(FilePath::root()).family_dir(&info, b"f");
    let entries = world.disk.list(&dir).await.unwrap();
    entries.into_iter().map(|entry| dir.join(&entry.name)).collect()
}

/// A region with a file of a thousand rows, one block of which is corrupt. Also returns the file's
/// path and intact contents.
async fn begin() -> (World, FilePath, Vec<u8>) {
    let world = World::begin().await;
    for row in 0..1000 {
        put(&world, &format!("r{row:04}"), &[b'v'; 400]).await;
    }
    world.served().flush().await.unwrap();
    let file = store_files(&world).await.swap_remove(0);
    let whole = world.disk.contents(&file).unwrap();
    let mut damaged = whole.clone();
    damaged[200_000] ^= 1;
    world.disk.put(&file, damaged);
    let world = world.after_power_loss(FamilyDescriptor::new("f")).await;
    (world, file, whole)
}

#[test]
fn a_read_of_a_corrupt_block_is_not_retried() {
    run(async {
        let (world, file, _) = begin().await;
        assert!(world.server.damaged_files().is_empty());
        let reversed = proto::Scan { reversed: Some(true), ..Default::default() };
        for _ in 0..3 {
            let failure = scan(&world, proto::Scan::default()).await.unwrap_err();
            assert_eq!((&*failure.class, failure.do_not_retry), (DO_NOT_RETRY, true), "{failure:?}");
            assert!(failure.message.starts_with(CORRUPT), "{}", failure.message);
            assert!(failure.message.contains(file.as_str()), "{}", failure.message);
            assert_eq!(scan(&world, reversed.clone()).await.unwrap_err().class, DO_NOT_RETRY);
            let failure = get(&world, "r0465").await.unwrap_err();
            assert_eq!((&*failure.class, failure.do_not_retry), (CORRUPT, true), "{failure:?}");
        }
        // Other rows can still be read and written.
        let before = proto::Scan { stop_row: Some("r0300".into()), ..Default::default() };
        assert_eq!(scan(&world, before).await.unwrap(), 300);
        let behind = proto::Scan { start_row: Some("r0700".into()), ..Default::default() };
        assert_eq!(scan(&world, behind).await.unwrap(), 300);
        put(&world, "r0465", b"new").await;
        assert_eq!(get(&world, "r0000").await.unwrap(), 1);
        let listed = world.server.damaged_files();
        assert_eq!(listed.iter().map(|file| &file.path).collect::<Vec<_>>(), [&file]);
    });
}

#[test]
fn compactions_do_not_change_a_corrupt_file() {
    run(async {
        let (world, file, whole) = begin().await;
        let region = world.served();
        assert!(region.compact(None, CompactionKind::Major).await.is_err());
        assert!(world.disk.contents(&file).is_some());
        assert_eq!(world.server.damaged_files().len(), 1, "the compaction found it");
        // Compactions that the server selects skip the corrupt file.
        for round in 0..5 {
            put(&world, "r0001", format!("{round}").as_bytes()).await;
            region.flush().await.unwrap();
        }
        world.env.clock.sleep(crate::world::SECOND * 60).await;
        let files = store_files(&world).await;
        assert!(files.contains(&file) && files.len() < 6, "{files:?}");
        assert_eq!(region.stores_to_compact(), [""; 0]);
        assert_eq!(get(&world, "r0001").await.unwrap(), 1);
        assert!(scan(&world, proto::Scan::default()).await.is_err());

        // After the file is restored from a copy, it can be read and compacted again.
        world.disk.put(&file, whole);
        let world = world.after_power_loss(FamilyDescriptor::new("f")).await;
        assert_eq!(scan(&world, proto::Scan::default()).await.unwrap(), 1000);
        world.served().compact(None, CompactionKind::Major).await.unwrap();
        assert_eq!(scan(&world, proto::Scan::default()).await.unwrap(), 1000);
    });
}
