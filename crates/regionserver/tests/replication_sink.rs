//! `ReplicateWALEntry`: entries of another cluster's log are applied as that cluster applied them.

use crate::world::{World, run};
use bytes::{Bytes, BytesMut};
use cell::KeyValue;
use cell::cell::CellType;
use cell::codec::Codec;
use cell::query::{CellSelection, Scan};
use fs::{FilePath, FileSystem};
use proto::exception::{JavaException, class};
use regionserver::replication_sink;

/// The id of the source.
const SOURCE: proto::Uuid = proto::Uuid { least_sig_bits: 7, most_sig_bits: 9 };

struct Batch {
    request: proto::ReplicateWalEntryRequest,
    cells: BytesMut,
}

impl Batch {
    fn new() -> Batch {
        Batch { request: proto::ReplicateWalEntryRequest::default(), cells: BytesMut::new() }
    }

    fn entry(mut self, table: &str, ids: &[proto::Uuid], cells: &[KeyValue]) -> Batch {
        let key = proto::WalKey {
            encoded_region_name: "ab".into(),
            table_name: table.to_owned().into(),
            log_sequence_number: 5,
            write_time: 1000,
            cluster_ids: ids.to_vec(),
            ..Default::default()
        };
        self.request.entry.push(proto::WalEntry {
            key,
            associated_cell_count: Some(cells.len() as i32),
            ..Default::default()
        });
        for cell in cells {
            Codec::KeyValueWithTags.write(&cell.view(0), &mut self.cells);
        }
        self
    }

    async fn send(self, world: &World) -> Result<(), JavaException> {
        let cells = self.cells.freeze();
        let answer =
            replication_sink::replicate(&world.server, &self.request, cells, Codec::KeyValueWithTags);
        answer.await.map(|_| ())
    }
}

fn cell(row: &str, timestamp: i64, kind: CellType, value: &str) -> KeyValue {
    KeyValue::new(row.as_bytes(), b"f", b"q", timestamp, kind, value.as_bytes())
}

/// All cells with markers: row, timestamp, type, value.
async fn raw(world: &World) -> Vec<(String, i64, CellType, String)> {
    let selection = CellSelection { max_versions: u32::MAX, ..CellSelection::default() };
    let scan = Scan { selection, raw: true, ..Scan::default() };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let found = world.served().scan_all(&scan).await.unwrap();
    let cells = found.cells.iter().map(|(cell, _)| cell.view(0));
    cells.map(|cell| (text(cell.row()), cell.timestamp(), cell.kind(), text(cell.value))).collect()
}

#[test]
fn cells_keep_their_timestamps_and_types() {
    run(async {
        let world = World::begin().await;
        let kinds = [CellType::Delete, CellType::DeleteColumn, CellType::Put];
        let mut cells: Vec<_> = kinds.iter().map(|kind| cell("a", 30, *kind, "")).collect();
        cells.push(KeyValue::new(b"b", b"f", b"", 20, CellType::DeleteFamily, b""));
        cells.push(KeyValue::new(b"b", b"f", b"", 10, CellType::DeleteFamilyVersion, b""));
        cells.push(cell("b", 40, CellType::Put, "v"));
        Batch::new().entry("t", &[SOURCE], &cells).send(&world).await.unwrap();
        let found = raw(&world).await;
        for cell in &cells {
            let view = cell.view(0);
            let row = String::from_utf8(view.row().to_vec()).unwrap();
            assert!(
                found
                    .iter()
                    .any(|found| (found.0 == row, found.1, found.2) == (true, view.timestamp(), view.kind())),
                "{cell:?}: {found:?}"
            );
        }
        assert_eq!(found.len(), cells.len());
        let sink = world.server.replication_sink().instruments();
        assert_eq!((sink.applied_ops.get(), sink.applied_batches.get()), (1, 1));
        let load = world.server.server_load().repl_load_sink.unwrap();
        assert_eq!(load.total_ops_processed, Some(1));
    });
}

/// Of cells with the same key, the last one wins, as in the source.
#[test]
fn the_order_of_changes_of_a_row_is_kept() {
    run(async {
        let world = World::begin().await;
        let mut batch = Batch::new();
        for value in 0..20 {
            batch = batch.entry("t", &[SOURCE], &[cell("a", 5, CellType::Put, &value.to_string())]);
        }
        batch.send(&world).await.unwrap();
        let found = world.served().scan_all(&Scan::default()).await.unwrap();
        assert_eq!(found.cells.len(), 1);
        assert_eq!(found.cells[0].0.view(0).value, b"19");
    });
}

#[test]
fn an_entry_that_has_been_in_this_cluster_is_skipped() {
    run(async {
        let world = World::begin().await;
        // The id of the test's cluster is not a UUID and counts as zeros.
        let own = proto::Uuid { least_sig_bits: 0, most_sig_bits: 0 };
        Batch::new()
            .entry("t", &[SOURCE, own], &[cell("a", 5, CellType::Put, "circle")])
            .entry("t", &[SOURCE], &[cell("b", 5, CellType::Put, "new")])
            .send(&world)
            .await
            .unwrap();
        let found = raw(&world).await;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "b");
    });
}

/// The log has the ids of the clusters that have the edit.
#[test]
fn the_ids_of_clusters_are_in_the_log() {
    run(async {
        let world = World::begin().await;
        Batch::new().entry("t", &[SOURCE], &[cell("a", 5, CellType::Put, "v")]).send(&world).await.unwrap();
        let mut with_ids = 0;
        let dirs = world.disk.list(&FilePath::new("WALs")).await.unwrap();
        for dir in dirs {
            let dir = FilePath::new("WALs").join(&dir.name);
            for log in world.disk.list(&dir).await.unwrap() {
                let mut reader = wal::LogReader::open(&world.disk, &dir.join(&log.name)).await.unwrap();
                while let Some(entry) = reader.next().await.unwrap() {
                    with_ids += usize::from(entry.key.cluster_ids == [(9, 7)]);
                }
            }
        }
        assert_eq!(with_ids, 1);
    });
}

#[test]
fn entries_that_cannot_be_applied_fail_the_call() {
    run(async {
        let world = World::begin().await;
        let put = cell("a", 5, CellType::Put, "v");
        let missing = Batch::new().entry("nosuch", &[SOURCE], std::slice::from_ref(&put)).send(&world).await;
        let error = missing.unwrap_err();
        assert!(error.is(class::TABLE_NOT_FOUND), "{error}");
        assert_eq!(error.message, "'nosuch'", "the source looks for this text");
        let family = KeyValue::new(b"a", b"h", b"q", 5, CellType::Put, b"v");
        let error = Batch::new().entry("t", &[SOURCE], &[family]).send(&world).await.unwrap_err();
        assert!(error.is(class::NO_SUCH_COLUMN_FAMILY), "{error}");
        let mut short = Batch::new().entry("t", &[SOURCE], &[put]);
        short.request.entry[0].associated_cell_count = Some(2);
        assert!(short.send(&world).await.is_err());
        assert_eq!(raw(&world).await.len(), 0);
        assert_eq!(world.server.replication_sink().instruments().failed_batches.get(), 3);
    });
}

/// A marker of a bulk load whose file cannot be read fails the call. Other markers are ignored.
#[test]
fn bulk_loads_are_applied_from_the_files_of_the_source() {
    run(async {
        let world = World::begin().await;
        let markers = wal::marker::MarkedRegion {
            table: "t".into(),
            encoded: "ab".into(),
            name: "t,,1.ab.".into(),
            start_key: Bytes::new(),
        };
        let load = wal::marker::BulkLoad {
            seq_id: Some(3),
            stores: vec![wal::marker::FamilyFiles {
                family: "f".into(),
                files: vec!["cd_SeqId_3_".into()],
                bytes: 1,
            }],
            cluster_ids: vec!["source".into()],
            replicate: true,
        };
        let marker = markers.bulk_load(&markers.bulk_load_value(&load), 1);
        let open = markers.open(1, &[], None, 1);
        let send = async || {
            let mut batch = Batch::new().entry("t", &[SOURCE], &[marker.clone(), open.clone()]);
            batch.request.source_base_namespace_dir_path = Some("/source/data".into());
            batch.request.source_h_file_archive_dir_path = Some("/source/archive/data".into());
            batch.send(&world).await
        };
        assert!(send().await.unwrap_err().message.contains("cannot be read"));
        let path = FilePath::new("source/archive/data/default/t/ab/f/cd_SeqId_3_");
        world.disk.make_dirs(&path.parent()).await.unwrap();
        let options = hfile::WriterOptions { include_mvcc: false, ..Default::default() };
        let mut writer = hfile::Writer::create(&world.disk, &path, options).await.unwrap();
        writer.append(&cell("a", 5, CellType::Put, "loaded").view(0)).await.unwrap();
        writer.finish().await.unwrap();
        send().await.unwrap();
        assert_eq!(raw(&world).await, [("a".to_owned(), 5, CellType::Put, "loaded".to_owned())]);
        assert!(world.disk.contents(&path).is_some());
    });
}
