//! Cells with fields at and beyond the limits of their ranges. Whatever the response to them is,
//! all other rows must stay readable.

use std::sync::Arc;

use crate::world::cells::{RawCell, block, condition_that_holds, mutation_by_block, mutation_by_message};
use crate::world::{World, run};
use bytes::Bytes;
use cell::mutation::MutationKind;
use cell::region::{RegionInfo, ServerName};
use cell::schema::{BlockEncoding, FamilyDescriptor, TableName};
use cell::{KeyValue, tags};
use engine::region::CompactionKind;
use fs::FilePath;
use fs::memory::MemoryFs;
use layout::RootDir;
use prost::Message;
use proto::exception::JavaException;
use rpc::Codec;

const KINDS: [MutationKind; 4] =
    [MutationKind::Put, MutationKind::Delete, MutationKind::Increment, MutationKind::Append];

/// Rows that must always be readable, in order.
fn good_rows() -> Vec<String> {
    (0..10).map(|at| format!("g{at}")).collect()
}

/// The calls that can carry a mutation.
#[derive(Clone, Copy, Debug)]
enum CallKind {
    Single,
    Batch,
    Atomic,
    Check,
    CheckInBatch,
}

const CALLS: [CallKind; 5] =
    [CallKind::Single, CallKind::Batch, CallKind::Atomic, CallKind::Check, CallKind::CheckInBatch];

/// Sends a mutation. Returns the message of the exception if it is refused.
async fn send(
    world: &World,
    call: CallKind,
    codec: Codec,
    mutation: proto::MutationProto,
    cells: Bytes,
) -> Result<(), String> {
    let row = mutation.row.clone().unwrap();
    let condition =
        matches!(call, CallKind::Check | CallKind::CheckInBatch).then(|| condition_that_holds(&row));
    if matches!(call, CallKind::Single | CallKind::Check) {
        let request =
            proto::MutateRequest { region: world.region.clone(), mutation, condition, ..Default::default() };
        return match world.call_by(codec, "Mutate", &request, cells).await {
            Ok(_) => Ok(()),
            Err(failure) => Err(refusal(&failure)),
        };
    }
    let action = proto::Action { index: Some(0), mutation: Some(mutation), ..Default::default() };
    let region_action = proto::RegionAction {
        region: world.region.clone(),
        atomic: (!matches!(call, CallKind::Batch)).then_some(true),
        action: vec![action],
        condition,
    };
    let request = proto::MultiRequest { region_action: vec![region_action], ..Default::default() };
    let reply = match world.call_by(codec, "Multi", &request, cells).await {
        Ok(reply) => reply,
        Err(failure) => return Err(refusal(&failure)),
    };
    let response = proto::MultiResponse::decode(reply.message).unwrap();
    let result = &response.region_action_result[0];
    let exceptions = result.result_or_exception.iter().map(|entry| &entry.exception);
    match exceptions.chain([&result.exception]).flatten().next() {
        None => Ok(()),
        Some(exception) => Err(String::from_utf8_lossy(exception.value()).into_owned()),
    }
}

/// The message that the client gets. None of these mutations can ever succeed, so the client must
/// not retry.
fn refusal(failure: &JavaException) -> String {
    assert!(failure.do_not_retry, "{failure:?}");
    failure.message.clone()
}

/// The rows of a result and their cells, decoded as strictly as by HBase's clients.
fn rows_of(codec: Codec, cells: Bytes) -> Vec<(String, Vec<KeyValue>)> {
    let codec = match codec {
        Codec::KeyValue => cell::codec::Codec::KeyValue,
        Codec::KeyValueWithTags => cell::codec::Codec::KeyValueWithTags,
    };
    let mut rows: Vec<(String, Vec<KeyValue>)> = Vec::new();
    for cell in codec.read(cells) {
        let cell = cell.unwrap();
        let view = cell.view(0);
        assert!(view.is_readable(), "{cell:?}");
        assert_eq!(tags::readable(view.tags), view.tags, "{cell:?}");
        let row = String::from_utf8_lossy(view.row()).into_owned();
        match rows.last_mut() {
            Some((last, cells)) if *last == row => cells.push(cell),
            _ => rows.push((row, vec![cell])),
        }
    }
    rows
}

async fn get(world: &World, codec: Codec, row: &str) -> Vec<KeyValue> {
    let get = proto::Get { row: row.to_string().into(), ..Default::default() };
    let request = proto::GetRequest { region: world.region.clone(), get };
    let reply = world.call_by(codec, "Get", &request, Bytes::new()).await.unwrap();
    rows_of(codec, reply.cells.into_bytes()).pop().map(|(_, cells)| cells).unwrap_or_default()
}

/// All rows, read with as many calls as necessary.
async fn scan(world: &World, codec: Codec, scan: proto::Scan) -> Vec<(String, Vec<KeyValue>)> {
    let mut request = proto::ScanRequest {
        region: Some(world.region.clone()),
        scan: Some(scan),
        number_of_rows: Some(50),
        ..Default::default()
    };
    let mut rows = Vec::new();
    for next_call_seq in 0.. {
        let reply = world.call_by(codec, "Scan", &request, Bytes::new()).await.unwrap();
        let response = proto::ScanResponse::decode(reply.message).unwrap();
        rows.extend(rows_of(codec, reply.cells.into_bytes()));
        if response.more_results_in_region == Some(false) {
            break;
        }
        request = proto::ScanRequest {
            scanner_id: response.scanner_id,
            next_call_seq: Some(next_call_seq),
            number_of_rows: Some(50),
            ..Default::default()
        };
    }
    rows
}

/// Reads all good rows with every kind of read.
async fn check_good_rows(world: &World, when: &str) {
    let good = good_rows();
    let is_whole = |cells: &[KeyValue]| cells.iter().any(|cell| *cell.view(0).value == *b"good");
    for codec in [Codec::KeyValue, Codec::KeyValueWithTags] {
        for row in &good {
            assert!(is_whole(&get(world, codec, row).await), "get of {row}, {when}");
        }
        let raw = proto::NameBytesPair { name: "_raw_".into(), value: Some(vec![0xff].into()) };
        for (what, wanted) in [
            ("scan", proto::Scan::default()),
            ("reversed scan", proto::Scan { reversed: Some(true), ..Default::default() }),
            ("raw scan", proto::Scan { attribute: vec![raw], max_versions: Some(9), ..Default::default() }),
        ] {
            let mut rows = scan(world, codec, wanted).await;
            if what == "reversed scan" {
                rows.reverse();
            }
            assert!(rows.is_sorted_by(|left, right| left.0 < right.0), "{what}, {when}");
            rows.retain(|(row, cells)| good.contains(row) && is_whole(cells));
            let found: Vec<_> = rows.into_iter().map(|(row, _)| row).collect();
            assert_eq!(found, good, "{what}, {when}");
        }
    }
}

async fn write_good_rows(world: &World) {
    for row in good_rows() {
        let cell = RawCell { qualifier: b"good".to_vec(), value: b"good".to_vec(), ..RawCell::put(&row) };
        let mutation = mutation_by_block(MutationKind::Put, row.as_bytes(), 1);
        send(world, CallKind::Single, Codec::KeyValue, mutation, block(&[cell])).await.unwrap();
    }
}

/// Flushes, compacts and restarts, and checks the good rows after each step.
async fn check_through_files(world: World, family: FamilyDescriptor) -> World {
    check_good_rows(&world, "in memory").await;
    let world = world.after_power_loss(family.clone()).await;
    check_good_rows(&world, "after a crash").await;
    world.served().flush().await.unwrap();
    check_good_rows(&world, "after a flush").await;
    world.served().compact(None, CompactionKind::Major).await.unwrap();
    check_good_rows(&world, "after a major compaction").await;
    world.server.stop().await.unwrap();
    let world = world.after_power_loss(family).await;
    check_good_rows(&world, "after a restart").await;
    world
}

/// Cells, each with one field at or beyond a limit of its range.
fn cells_at_the_edges() -> Vec<RawCell> {
    let mut cells = Vec::new();
    for len in [0, 1, 32_767, 32_768, 65_535] {
        cells.push(RawCell { row: vec![b'r'; len], ..RawCell::put("") });
    }
    for len in [0, 1, 127, 128, 255] {
        cells.push(RawCell { family: vec![b'f'; len], ..RawCell::put("g4-family") });
    }
    for len in [0, 1, 65_535, 65_536, 100_000] {
        cells.push(RawCell { qualifier: vec![b'q'; len], ..RawCell::put("g5-qualifier") });
    }
    for len in [0, 1, 9, 200_000, (10 << 20) + 100] {
        cells.push(RawCell { value: vec![b'v'; len], ..RawCell::put("g6-value") });
    }
    for tags_len in [0, 1, 2, 50] {
        let (tags, tags_len) = (Some(vec![0, 2, 65, 1]), Some(tags_len));
        cells.push(RawCell { tags, tags_len, ..RawCell::put("g2-tags-length") });
    }
    let large_tag = [&[0xff, 0xfd, 65][..], &vec![1; 0xfffc]].concat();
    for tags in [
        &[][..],
        &[0],
        &[0, 0],
        &[0, 1, 65],
        &[0, 9, 65],
        &[0xff, 0xff],
        &[0, 4, 8, 1, 2, 3],
        &[0, 9, 8, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0, 2, 65, 7],
        &large_tag,
    ] {
        cells.push(RawCell { tags: Some(tags.to_vec()), ..RawCell::put("g3-tags") });
    }
    for type_code in 0..=255 {
        cells.push(RawCell { type_code, ..RawCell::put(&format!("g{}-type", type_code % 10)) });
    }
    for (at, timestamp) in [i64::MIN, -2, -1, 0, 1, i64::MAX - 1, i64::MAX].into_iter().enumerate() {
        for type_code in [4, 8, 10, 12, 14] {
            cells.push(RawCell { timestamp, type_code, ..RawCell::put(&format!("g{at}-time")) });
        }
    }
    cells
}

#[test]
fn no_cell_of_a_client_makes_another_row_unreadable() {
    run(async {
        let family = FamilyDescriptor::new("f");
        let world = World::with_family(family.clone()).await;
        write_good_rows(&world).await;
        let (mut taken, mut refused) = (0, 0);
        for (at, cell) in cells_at_the_edges().into_iter().enumerate() {
            for kind in KINDS {
                let mut first: Option<Result<(), String>> = None;
                for (call, in_block) in CALLS.into_iter().flat_map(|call| [(call, true), (call, false)]) {
                    let mut cell = cell.clone();
                    if cell.row.starts_with(b"g") {
                        // Each mutation has its own row, so that its outcome does not depend on
                        // existing cells.
                        cell.row.extend(format!("-{at}-{kind:?}-{call:?}-{in_block}").bytes());
                    }
                    let codec = if at % 2 == 0 { Codec::KeyValue } else { Codec::KeyValueWithTags };
                    let codec = if cell.tags.is_some() { Codec::KeyValueWithTags } else { codec };
                    let (mutation, cells) = match in_block {
                        true => {
                            let cells = block(std::slice::from_ref(&cell));
                            (mutation_by_block(kind, &cell.row, 1), cells)
                        }
                        false => match mutation_by_message(kind, &cell) {
                            Some(mutation) => (mutation, Bytes::new()),
                            None => continue,
                        },
                    };
                    let answer = send(&world, call, codec, mutation, cells).await;
                    let first = first.get_or_insert_with(|| answer.clone());
                    assert_eq!(
                        answer.is_ok(),
                        first.is_ok(),
                        "{kind:?}, cell {at}, type {} at {}, by {call:?}, in a block: {in_block}, {answer:?}, first {first:?}",
                        cell.type_code,
                        cell.timestamp
                    );
                    *(if answer.is_ok() { &mut taken } else { &mut refused }) += 1;
                }
            }
            if world.server.memstore_bytes() > 4 << 20 {
                world.served().flush().await.unwrap();
            }
            if at % 32 == 0 {
                check_good_rows(&world, &format!("after cell {at}")).await;
            }
        }
        assert!(taken > 300 && refused > 3000, "{taken} {refused}");
        check_through_files(world, family).await;
    });
}

#[test]
fn an_unreadable_cell_is_refused_with_the_reason() {
    run(async {
        let world = World::begin().await;
        let tagged = |tags: &[u8]| RawCell { tags: Some(tags.to_vec()), ..RawCell::put("r") };
        for (cell, why) in [
            (RawCell { timestamp: -1, ..RawCell::put("r") }, "Timestamp cannot be negative. ts=-1"),
            (RawCell { timestamp: i64::MIN, ..RawCell::put("r") }, "Timestamp cannot be negative"),
            (RawCell { type_code: 5, ..RawCell::put("r") }, "a Put with a cell of type 5"),
            (RawCell { type_code: 0, ..RawCell::put("r") }, "a Put with a cell of type 0"),
            (RawCell { type_code: 255, ..RawCell::put("r") }, "a Put with a cell of type 255"),
            (tagged(&[0]), "tags: a length does not add up"),
            (tagged(&[0, 0]), "tags: a length does not add up"),
            (tagged(&[0, 9, 65]), "tags: a length does not add up"),
            (tagged(&[0, 4, 8, 1, 2, 3]), "a TTL tag is not of 8 bytes"),
        ] {
            for call in CALLS {
                let mutation = mutation_by_block(MutationKind::Put, b"r", 1);
                let cells = block(std::slice::from_ref(&cell));
                let answer = send(&world, call, Codec::KeyValueWithTags, mutation, cells).await;
                let refused = answer.expect_err("refused");
                assert!(refused.contains(why), "{call:?}: {refused}");
            }
        }
        let whole_row = proto::MutationProto {
            row: Some("r".into()),
            mutate_type: Some(crate::world::cells::mutation_type(MutationKind::Delete)),
            timestamp: Some((-5_i64).cast_unsigned()),
            ..Default::default()
        };
        for call in CALLS {
            let answer = send(&world, call, Codec::KeyValue, whole_row.clone(), Bytes::new()).await;
            assert!(answer.unwrap_err().contains("Timestamp cannot be negative. ts=-5"));
        }
        assert!(scan(&world, Codec::KeyValue, proto::Scan::default()).await.is_empty());
    });
}

/// The ids of clusters are in the key of a log entry, which has a limited length.
#[test]
fn a_mutation_with_too_many_ids_of_clusters_is_refused() {
    run(async {
        let family = FamilyDescriptor::new("f");
        let world = World::with_family(family.clone()).await;
        write_good_rows(&world).await;
        let count = 50_000_u32;
        let ids = [&count.to_be_bytes()[..], &vec![7; 16 * count as usize]].concat();
        let attribute = proto::NameBytesPair { name: "_cs.id".into(), value: Some(ids.into()) };
        for kind in KINDS {
            let type_code = if kind == MutationKind::Delete { 8 } else { 4 };
            let cell = RawCell { type_code, ..RawCell::put("r") };
            for call in CALLS {
                let Some(mutation) = mutation_by_message(kind, &cell) else { panic!("{kind:?}") };
                let mutation = proto::MutationProto { attribute: vec![attribute.clone()], ..mutation };
                let answer = send(&world, call, Codec::KeyValue, mutation, Bytes::new()).await;
                let refused = answer.expect_err("refused");
                assert!(refused.contains("50000 ids of clusters"), "{kind:?}, {call:?}: {refused}");
            }
        }
        check_through_files(world, family).await;
    });
}

#[test]
fn a_refused_mutation_fails_no_other_of_its_batch() {
    run(async {
        let world = World::begin().await;
        let odd = RawCell { timestamp: -1, ..RawCell::put("b") };
        let cut = RawCell { row: vec![b'b'; 40_000], ..RawCell::put("b") };
        let oversized = RawCell { value: vec![0; 11 << 20], ..RawCell::put("b") };
        for odd in [odd, cut, oversized] {
            let cells = [RawCell::put("a"), RawCell::put("b"), odd, RawCell::put("b"), RawCell::put("c")];
            let mutation = |row: &[u8], count| mutation_by_block(MutationKind::Put, row, count);
            let mutations = [mutation(b"a", 1), mutation(b"b", 3), mutation(b"c", 1)];
            let action = mutations.into_iter().enumerate().map(|(at, mutation)| proto::Action {
                index: Some(at as u32),
                mutation: Some(mutation),
                ..Default::default()
            });
            let region_action = proto::RegionAction {
                region: world.region.clone(),
                action: action.collect(),
                ..Default::default()
            };
            let request = proto::MultiRequest { region_action: vec![region_action], ..Default::default() };
            let reply = world.call_by(Codec::KeyValue, "Multi", &request, block(&cells)).await.unwrap();
            let response = proto::MultiResponse::decode(reply.message).unwrap();
            let mut results = response.region_action_result[0].result_or_exception.clone();
            results.sort_by_key(|result| result.index);
            let failed: Vec<_> = results.iter().map(|result| result.exception.is_some()).collect();
            assert_eq!(failed, [false, true, false]);
            let rows = scan(&world, Codec::KeyValue, proto::Scan::default()).await;
            assert_eq!(rows.into_iter().map(|(row, _)| row).collect::<Vec<_>>(), ["a", "c"]);
        }
    });
}

/// Cells that HBase stores from a batch without validation, in good rows and between them.
fn invalid_cells() -> Vec<RawCell> {
    let mut cells = Vec::new();
    for (at, row) in good_rows().into_iter().enumerate() {
        for row in [row.clone(), format!("{row}-odd")] {
            for timestamp in [-1, -2, i64::MIN] {
                for qualifier in [&b""[..], b"a", b"good", b"z"] {
                    let type_code = [4, 8, 10, 12, 14][at % 5];
                    let qualifier = qualifier.to_vec();
                    cells.push(RawCell { timestamp, type_code, qualifier, ..RawCell::put(&row) });
                }
            }
            for type_code in [0, 1, 5, 9, 13, 15, 200, 255] {
                cells.push(RawCell { type_code, qualifier: b"good".to_vec(), ..RawCell::put(&row) });
                cells.push(RawCell {
                    type_code,
                    timestamp: 9,
                    qualifier: b"".to_vec(),
                    ..RawCell::put(&row)
                });
            }
            for tags in [&[0][..], &[0, 0], &[0, 9, 65], &[0, 4, 8, 1, 2, 3]] {
                let tags = Some(tags.to_vec());
                cells.push(RawCell { tags, qualifier: b"tagged".to_vec(), ..RawCell::put(&row) });
            }
        }
    }
    cells
}

/// Ignores commits.
struct IgnoreCommits;

impl wal::Committed for IgnoreCommits {
    fn committed(&self, _: u64) {}
    fn failed(&self, _: u64, error: &wal::Error) {
        panic!("{error}");
    }
}

fn region_info() -> RegionInfo {
    RegionInfo::new(TableName::parse("t").unwrap(), "".into(), "".into(), 1)
}

/// A disk with an empty root directory.
async fn new_disk() -> MemoryFs {
    let disk = MemoryFs::new();
    let random = base::testing::env(3).random;
    RootDir::new(FilePath::root()).open_or_create(&disk, &*random).await.unwrap();
    disk
}

/// Writes cells to the log of an earlier run.
async fn log_cells(disk: &MemoryFs, cells: &[RawCell]) {
    let server = ServerName { host: "other".into(), port: 16020, start_code: 77 };
    let root = RootDir::new(FilePath::root());
    let options = wal::LogOptions::new(root.wal_dir(&server), &server.url_encoded(), root.old_wals_dir());
    let fatal: Arc<dyn Fn(&wal::Error) + Send + Sync> = Arc::new(|error| panic!("{error}"));
    let log = wal::Log::start(base::testing::env(1), Arc::new(disk.clone()), options, fatal).await.unwrap();
    for (at, cell) in cells.iter().enumerate() {
        log.append(wal::Edit {
            region: region_info().encoded_name().into(),
            table: "t".into(),
            seq_id: 10 + at as u64,
            write_time_ms: 1,
            cells: block(std::slice::from_ref(cell)),
            cell_count: 1,
            nonce: (0, 0),
            scopes: Arc::new([]),
            cluster_ids: None,
            logged: true,
            forced: false,
            listener: Arc::new(IgnoreCommits),
        });
    }
    log.close().await;
}

/// Writes cells to a store file.
async fn store_cells(disk: &MemoryFs, cells: &[RawCell], encoding: BlockEncoding) {
    let dir = RootDir::new(FilePath::root()).family_dir(&region_info(), b"f");
    let options = hfile::WriterOptions { encoding, block_bytes: 400, ..Default::default() };
    let (scratch, path) = (MemoryFs::new(), FilePath::new("file"));
    let mut writer = hfile::Writer::create(&scratch, &path, options).await.unwrap();
    let mut sorted: Vec<_> =
        cells.iter().map(|cell| KeyValue::from_bytes(cell.bytes().into()).unwrap()).collect();
    sorted.sort_by(|left, right| cell::CellOrder::Plain.compare(&left.view(1), &right.view(1)));
    for cell in &sorted {
        writer.append(&cell.view(1)).await.unwrap();
    }
    let info = hfile::StoreInfo { max_seq_id: 5, ..Default::default() };
    writer.put_store_info(&info);
    writer.finish().await.unwrap();
    disk.put(&dir.join("0123456789abcdef0123456789abcdef"), scratch.contents(&path).unwrap());
}

fn families() -> [FamilyDescriptor; 3] {
    let encoded = |encoding| FamilyDescriptor::new("f").with("DATA_BLOCK_ENCODING", encoding);
    [FamilyDescriptor::new("f"), encoded("FAST_DIFF"), encoded("ROW_INDEX_V1")]
}

#[test]
fn an_invalid_cell_in_a_log_hides_no_other() {
    run(async {
        for family in families() {
            let good = good_rows().into_iter().map(|row| RawCell {
                qualifier: b"good".to_vec(),
                value: b"good".to_vec(),
                ..RawCell::put(&row)
            });
            let disk = new_disk().await;
            let lying = |tags_len| RawCell {
                tags: Some(vec![0, 2, 65, 1]),
                tags_len: Some(tags_len),
                ..RawCell::put("g1-lying")
            };
            let odd = invalid_cells().into_iter().chain([lying(50), lying(2)]);
            log_cells(&disk, &good.chain(odd).collect::<Vec<_>>()).await;
            let world = World::on(disk, family.clone()).await;
            check_tagged(&world).await;
            let world = check_through_files(world, family).await;
            check_tagged(&world).await;
        }
    });
}

#[test]
fn an_invalid_cell_in_a_store_file_hides_no_other() {
    run(async {
        let encodings = [BlockEncoding::None, BlockEncoding::FastDiff, BlockEncoding::RowIndexV1];
        for (family, encoding) in families().into_iter().zip(encodings) {
            let good = good_rows().into_iter().map(|row| RawCell {
                qualifier: b"good".to_vec(),
                value: b"good".to_vec(),
                ..RawCell::put(&row)
            });
            let disk = new_disk().await;
            store_cells(&disk, &good.chain(invalid_cells()).collect::<Vec<_>>(), encoding).await;
            let world = World::on(disk, family.clone()).await;
            check_tagged(&world).await;
            let world = check_through_files(world, family).await;
            check_tagged(&world).await;
        }
    });
}

/// Checks that a stored cell with malformed tags loses only these tags.
async fn check_tagged(world: &World) {
    for codec in [Codec::KeyValue, Codec::KeyValueWithTags] {
        for row in good_rows() {
            let cells = get(world, codec, &row).await;
            let tagged = cells.iter().filter(|cell| cell.view(0).qualifier() == b"tagged");
            assert_eq!(tagged.count(), 1, "{row} by {codec:?}");
        }
    }
}

#[test]
fn a_marker_in_a_put_deletes_as_in_a_delete() {
    run(async {
        for call in CALLS {
            for form_is_block in [true, false] {
                for (type_code, left) in [
                    (8, &["a@3", "q@3", "z@5", "z@3"][..]),
                    (10, &["a@3", "q@3", "z@3"]),
                    (12, &["a@3", "z@5", "z@3"]),
                    (14, &[]),
                ] {
                    let world = World::with_family(FamilyDescriptor::new("f").with("VERSIONS", "5")).await;
                    for (qualifier, timestamp) in [("a", 3), ("q", 5), ("q", 3), ("z", 5), ("z", 3)] {
                        let cell = RawCell { qualifier: qualifier.into(), timestamp, ..RawCell::put("r") };
                        let put = mutation_by_block(MutationKind::Put, b"r", 1);
                        send(&world, CallKind::Single, Codec::KeyValue, put, block(&[cell])).await.unwrap();
                    }
                    // A family delete marker has no qualifier, even if the client sends one.
                    let marker = RawCell { timestamp: 5, type_code, value: vec![], ..RawCell::put("r") };
                    let (mutation, cells) = match form_is_block {
                        true => (mutation_by_block(MutationKind::Put, b"r", 1), block(&[marker])),
                        false => (mutation_by_message(MutationKind::Put, &marker).unwrap(), Bytes::new()),
                    };
                    send(&world, call, Codec::KeyValue, mutation, cells).await.unwrap();
                    let wanted = proto::Scan { max_versions: Some(5), ..Default::default() };
                    let rows = scan(&world, Codec::KeyValue, wanted).await;
                    let found: Vec<_> = rows
                        .iter()
                        .flat_map(|(_, cells)| cells)
                        .map(|cell| {
                            let qualifier = String::from_utf8_lossy(cell.view(0).qualifier());
                            format!("{qualifier}@{}", cell.view(0).timestamp())
                        })
                        .collect();
                    assert_eq!(found, left, "{type_code} by {call:?}, as a block: {form_is_block}");
                }
            }
        }
    });
}

/// A region as an earlier server left it: its store file and log contain cells that no client can
/// decode, with negative timestamps and malformed tags.
async fn damaged_region(store_file: &[u8], log: &[u8], region_id: u64) -> MemoryFs {
    let disk = new_disk().await;
    let root = RootDir::new(FilePath::root());
    let info = RegionInfo::new(TableName::parse("t").unwrap(), "".into(), "".into(), region_id);
    let name = "304fad12325198a2bb074b9792e0b176";
    disk.put(&root.family_dir(&info, b"f").join(name), store_file);
    let server = ServerName { host: "localhost".into(), port: 16020, start_code: 1_795_687_409_191 };
    let name = format!("{}.1795687409194", server.url_encoded());
    disk.put(&root.wal_dir(&server).join(&name), log);
    disk
}

#[test]
fn a_region_damaged_by_invalid_cells_is_readable_again() {
    run(async {
        for (store_file, log, region_id) in [
            (
                &include_bytes!("fixtures/odd-cells-grampus/store-file")[..],
                &include_bytes!("fixtures/odd-cells-grampus/log")[..],
                1_795_687_413_797,
            ),
            (
                &include_bytes!("fixtures/odd-cells-hbase/store-file")[..],
                &include_bytes!("fixtures/odd-cells-hbase/log")[..],
                1_795_687_470_384,
            ),
        ] {
            let family = FamilyDescriptor::new("f");
            let disk = damaged_region(store_file, log, region_id).await;
            let world = World::with_region(disk, family.clone(), region_id).await;
            let world = check_through_files(world, family).await;
            for row in good_rows() {
                let cells = get(&world, Codec::KeyValueWithTags, &row).await;
                let is_later = |cell: &&KeyValue| *cell.view(0).value == *b"later";
                assert_eq!(cells.iter().filter(is_later).count(), 1, "{row}");
            }
            // A cell with malformed tags loses only these tags.
            for row in ["g5", "g5-odd", "g8", "g8-odd"] {
                let cells = get(&world, Codec::KeyValueWithTags, row).await;
                assert!(cells.iter().any(|cell| cell.view(0).qualifier() == b"tagged"), "{row}");
            }
        }
    });
}
