//! The bytes of a log as written here. HBase's own messages must decode from them.

#![allow(clippy::unwrap_used)] // In a test a panic is the report.

mod support;

use std::sync::Arc;

use base::testing;
use bytes::{Buf, Bytes};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use prost::Message;
use support::{Acks, cells, edit, logs, options, read_all, region_name, start};
use wal::{Edit, Ending, LogOptions, Scope};

const HEADER_LEN: u64 = 117;
const END_MARK: [u8; 11] = [0xff, 0xff, 0xff, 0xff, 0x07, 0x0a, 0xf9, 0xff, 0xff, 0xff, 0x07];

fn rich_edit(acks: &Arc<Acks>) -> Edit {
    let scope = |family: &'static str, code| Scope { family: Bytes::from_static(family.as_bytes()), code };
    Edit {
        table: Bytes::from_static(b"ns:table"),
        nonce: (u64::MAX, 88),
        scopes: [scope("cf", 1), scope("another family", 2)].into(),
        cluster_ids: Some([(1, u64::MAX), (0x0123_4567_89ab_cdef, 0)].into()),
        cells: [cells("a", b"1"), cells("b", &[7; 300])].concat().into(),
        cell_count: 2,
        ..edit(&region_name(7), u64::MAX >> 1, b"", acks)
    }
}

/// What HBase must find in the key of `edit`.
fn as_hbase_reads(edit: &Edit) -> proto::WalKey {
    let scope =
        |scope: &Scope| proto::FamilyScope { family: scope.family.clone(), scope_type: scope.code as i32 };
    let nonce = |nonce| (nonce != 0).then_some(nonce);
    proto::WalKey {
        encoded_region_name: Bytes::copy_from_slice(edit.region.as_bytes()),
        table_name: edit.table.clone(),
        log_sequence_number: edit.seq_id,
        write_time: edit.write_time_ms,
        scopes: edit.scopes.iter().map(scope).collect(),
        following_kv_count: Some(edit.cell_count),
        cluster_ids: edit
            .cluster_ids
            .iter()
            .flat_map(|ids| ids.iter())
            .map(|(most, least)| proto::Uuid { least_sig_bits: *least, most_sig_bits: *most })
            .collect(),
        nonce_group: nonce(edit.nonce.0),
        nonce: nonce(edit.nonce.1),
        ..proto::WalKey::default()
    }
}

/// Writes `groups`, committing each before the next is appended. Returns the file's content while
/// it is open and after it was closed.
async fn written(options: LogOptions, groups: &[Vec<Edit>], acks: &Arc<Acks>) -> (Bytes, Bytes) {
    let env = testing::env(1);
    let memory = MemoryFs::new();
    let (log, _) = start(&env, Arc::new(memory.clone()), options).await;
    let mut count = 0;
    for group in groups {
        group.iter().for_each(|edit| log.append(edit.clone()));
        count += group.len();
        acks.wait(count).await;
    }
    let path = logs(&memory, "WALs/s").await.remove(0);
    let open = memory.contents(&path).unwrap();
    log.close().await;
    let path = FilePath::new("oldWALs").join(path.name());
    let path = if memory.stat(&path).await.unwrap().is_some() {
        path
    } else {
        logs(&memory, "WALs/s").await.remove(0)
    };
    (open.into(), memory.contents(&path).unwrap().into())
}

#[tokio::test(start_paused = true)]
async fn a_log_is_header_groups_and_trailer() {
    let acks = Acks::new();
    let edits: Vec<Edit> = vec![
        edit(&region_name(1), 10, b"one", &acks),
        rich_edit(&acks),
        edit(&region_name(2), 3, &[9; 5000], &acks),
    ];
    let groups = [edits[..2].to_vec(), edits[2..].to_vec()];
    let (open, closed) = written(options(), &groups, &acks).await;

    assert_eq!(closed[..4], *b"PWAL");
    let mut rest = closed.slice(4..);
    let header = proto::WalHeader::decode_length_delimited(&mut rest).unwrap();
    assert_eq!(header.writer_cls_name.as_deref(), Some("ProtobufLogWriter"));
    assert_eq!(
        header.cell_codec_cls_name.as_deref(),
        Some("org.apache.hadoop.hbase.regionserver.wal.WALCellCodec")
    );
    assert_eq!(
        (header.has_compression, header.has_tag_compression, header.has_value_compression),
        (Some(false), Some(false), Some(false))
    );
    assert_eq!((closed.len() - rest.len()) as u64, HEADER_LEN);
    let salt = closed.slice(HEADER_LEN as usize - 28..HEADER_LEN as usize - 20);

    let mut group_starts = Vec::new();
    for (number, edit) in edits.iter().enumerate() {
        let offset = (closed.len() - rest.len()) as u64;
        let starts_group = number != 1;
        if starts_group {
            group_starts.push(offset);
        }
        let mut key_bytes = rest.clone();
        let key_len = prost::encoding::decode_varint(&mut key_bytes).unwrap() as usize;
        let key_bytes = key_bytes.slice(..key_len);
        assert_eq!(proto::WalKey::decode_length_delimited(&mut rest).unwrap(), as_hbase_reads(edit));
        // HBase's part equals HBase's own message byte for byte.
        let hbase = as_hbase_reads(edit).encode_to_vec();
        assert_eq!(key_bytes[..hbase.len()], hbase);
        let mut ours = key_bytes.slice(hbase.len()..);
        if starts_group {
            assert_eq!(ours.split_to(3)[..], [0xc2, 0x3e, 28]);
            let at = closed.len() as u64 - (rest.len() + ours.len()) as u64;
            assert_eq!(ours.split_to(8), salt);
            assert_eq!(ours.get_u64(), at, "a mark states its own offset");
            assert_eq!(ours.get_u64(), offset, "all before this group is durable");
            ours.advance(4);
        }
        assert_eq!(ours.split_to(2)[..], [0xc8, 0x3e]);
        assert_eq!(prost::encoding::decode_varint(&mut ours).unwrap(), edit.cells.len() as u64);
        assert_eq!(ours.split_to(2)[..], [0xd5, 0x3e]);
        let crc = ours.get_u32_le();
        assert!(ours.is_empty());
        let crc_at = closed.len() - rest.len() - 4;
        let covered =
            [&salt[..], &offset.to_be_bytes(), &closed[offset as usize..crc_at], &edit.cells].concat();
        assert_eq!(crc, base::checksum::crc32c(&covered));
        assert_eq!(rest.split_to(edit.cells.len()), edit.cells);
    }
    let end = closed.len() - rest.len();
    assert_eq!(rest.len(), 55);
    let trailer = proto::WalTrailer::decode(&rest[..47]).unwrap();
    assert_eq!(trailer, proto::WalTrailer::default(), "only fields that HBase skips");
    assert_eq!(rest[..11], [0xfa, 0xff, 0xff, 0xff, 0x07, 0x0a, 0xf4, 0xff, 0xff, 0xff, 0x07]);
    assert_eq!(rest[16..19], [0xc2, 0x3e, 28]);
    assert_eq!(rest[47..], *b"\0\0\0\x2fLAWP");

    // While the log is open, it has the end mark in place of the trailer, then zeros.
    assert_eq!(open[..end], closed[..end]);
    assert_eq!(open[end..end + 11], END_MARK);
    assert!(open.len() > end + 1000 && open[end + 11..].iter().all(|byte| *byte == 0));
}

#[tokio::test(start_paused = true)]
async fn an_idle_log_states_what_is_durable() {
    let env = testing::env(2);
    let memory = MemoryFs::new();
    let (log, _) = start(&env, Arc::new(memory.clone()), options()).await;
    let acks = Acks::new();
    log.append(edit(&region_name(1), 1, b"value", &acks));
    acks.wait(1).await;
    env.clock.sleep(std::time::Duration::from_secs(1)).await;
    let path = logs(&memory, "WALs/s").await.remove(0);
    let (entries, tail) = read_all(&memory, &path).await.unwrap();
    assert_eq!((entries.len(), tail.ending), (1, Ending::EndMark));
    let bytes = memory.contents(&path).unwrap();
    let mark = &bytes[tail.end as usize + 11..][..28];
    assert_eq!(mark[..8], bytes[89..97], "the salt");
    assert_eq!(mark[16..24], tail.end.to_be_bytes());
    assert!(bytes[tail.end as usize + 39..].iter().all(|byte| *byte == 0));
    // The next group overwrites the mark.
    log.append(edit(&region_name(1), 2, b"v", &acks));
    acks.wait(2).await;
    assert_eq!(read_all(&memory, &path).await.unwrap().0.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn appended_edits_are_read_back() {
    let acks = Acks::new();
    let mut edits: Vec<Edit> = (1..=200)
        .map(|seq_id| {
            edit(&region_name(seq_id as usize % 3), seq_id, &vec![seq_id as u8; seq_id as usize * 7], &acks)
        })
        .collect();
    // Longer than one read, so it is checked in pieces.
    edits.push(edit(&region_name(1), 201, &vec![5; 6 << 20], &acks));
    edits.push(edit(&region_name(2), 202, b"last", &acks));
    let (open, closed) = written(options(), &[edits.clone()], &acks).await;
    let memory = MemoryFs::new();
    let path = FilePath::new("WALs/s/s.1");
    for (bytes, ending) in [(&open, Ending::EndMark), (&closed, Ending::Trailer)] {
        memory.put(&path, bytes.to_vec());
        let (entries, tail) = read_all(&memory, &path).await.unwrap();
        assert_eq!(tail.ending, ending);
        assert_eq!(entries.len(), edits.len());
        for (entry, edit) in entries.iter().zip(&edits) {
            assert_eq!(entry.key.region, edit.region.as_bytes());
            assert_eq!((entry.key.seq_id, &entry.key.table), (edit.seq_id, &edit.table));
            assert_eq!(entry.cells, edit.cells);
            assert_eq!(entry.key_values().count(), 1);
        }
        let index = Arc::new(wal::recovery::scan(&memory, std::slice::from_ref(&path)).await.unwrap());
        for number in 0..3 {
            let name = region_name(number);
            let mut reader = wal::recovery::read_region(Arc::new(memory.clone()), index.clone(), &name);
            for edit in edits.iter().filter(|edit| edit.region == name) {
                let entry = reader.next().await.unwrap().unwrap();
                assert_eq!((entry.key.seq_id, &entry.cells), (edit.seq_id, &edit.cells));
            }
            assert!(reader.next().await.unwrap().is_none());
        }
    }
}
