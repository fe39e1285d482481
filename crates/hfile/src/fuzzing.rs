//! Entry points for the fuzzer to the individual parts of a file.

use std::sync::Arc;

use base::compression::Algorithm;
use bytes::Bytes;
use cell::CellOrder;

use crate::block::position::BlockPosition;
use crate::block::{Block, BlockFormat};
use crate::bloom::BloomMeta;
use crate::compression::Codec;
use crate::index::Index;
use crate::info::FileInfo;
use crate::row_slice::{LocatedRow, RowSlice};
use crate::trailer::{Trailer, trailer_len};

/// Maximum decompressed size of a block that is worth the fuzzer's time.
const PLAIN_LEN_MAX: usize = 1 << 20;

/// Codecs by their number in byte 0 of [`block`].
const CODECS: [Algorithm; 4] = [Algorithm::Gzip, Algorithm::Snappy, Algorithm::Lz4, Algorithm::Zstd];

/// The end of a file: its version and trailer.
pub fn trailer(data: &[u8]) {
    if let Ok(len) = trailer_len(data)
        && let Some(start) = data.len().checked_sub(len)
        && let Ok(trailer) = Trailer::parse(&data[start..], start as u64)
        && trailer.major == 3
    {
        let again = Trailer::parse(&trailer.to_bytes(), start as u64).expect("a written trailer parses");
        assert_eq!(again.entry_count, trailer.entry_count);
    }
}

/// A block with its header. Byte 0 is a set of flags: 1 tags, 2 sequence ids, 4 packed tags, 8
/// compressed, 16 the order of hbase:meta. If compressed, bits 5 and 6 are the codec: 0 GZ, 1
/// SNAPPY, 2 LZ4, 3 ZSTD. An accepted block is walked to its end, and every cell of it is sought.
pub fn block(data: &[u8]) {
    let Some((&options, on_disk)) = data.split_first() else { return };
    let has = |bit: u8| options & bit != 0;
    let format = BlockFormat {
        codec: if has(8) { Codec::Packed(CODECS[usize::from(options >> 5 & 3)]) } else { Codec::None },
        order: if has(16) { CellOrder::Meta } else { CellOrder::Plain },
        fields: crate::block::plain::CellFields { tags: has(1), mvcc: has(2) },
        tags_packed: has(1) && has(4),
    };
    let claimed =
        on_disk.get(12..16).map_or(0, |len| u32::from_be_bytes(len.try_into().expect("four bytes")));
    if claimed as usize > PLAIN_LEN_MAX {
        return;
    }
    let Ok(block) = Block::decode(Bytes::copy_from_slice(on_disk), 1, 0, &format) else { return };
    let block = Arc::new(block);
    if let Some((first, last)) = block.key_range() {
        assert!(format.order.compare_keys(first, last).is_le());
        walk(&block, format.order);
    }
}

fn walk(block: &Arc<Block>, order: CellOrder) {
    let mut at = BlockPosition::default();
    let mut sought = BlockPosition::default();
    at.first(Arc::clone(block)).expect("an accepted block has a first cell");
    let mut previous: Option<Vec<u8>> = None;
    loop {
        let cell = at.cell().expect("the position is at a cell");
        assert!(previous.as_deref().is_none_or(|previous| order.compare_keys(previous, cell.key).is_le()));
        let anchors = block.prefetch_search(cell.row());
        let likely = block.likely_anchor(cell.row(), anchors);
        likely.into_iter().for_each(|likely| block.prefetch_cell(likely));
        let after_last = sought.seek(Arc::clone(block), order, cell.key).expect("the key of a cell is found");
        assert!(after_last.is_none(), "no cell is after the last one");
        for likely in [None, likely] {
            match RowSlice::of_row(Arc::clone(block), likely, order, cell.row())
                .expect("an accepted block can be searched")
            {
                LocatedRow::Slice(slice) => {
                    assert_eq!(slice.cell().map(|first| first.row().to_vec()), Some(cell.row().to_vec()))
                }
                LocatedRow::Absent => panic!("an existing row is not found"),
                LocatedRow::Unknown => {}
            }
        }
        if let Some(mut slice) = at.row_slice(order, &[]).expect("an accepted block has whole cells") {
            let start = slice.position();
            while slice.cell().is_some() {
                slice.next();
            }
            _ = (slice.bytes_since(start), slice.cell_at(start));
        }
        assert!(order.compare_keys(sought.key(), cell.key).is_eq());
        previous = Some(cell.key.to_vec());
        _ = at.large_value();
        if !at.advance().expect("an accepted block was walked before") {
            break;
        }
    }
    sought.last(Arc::clone(block)).expect("an accepted block has a last cell");
    assert_eq!(Some(sought.key()), previous.as_deref());
}

/// The payload of a part of a column sidecar. Byte 0 is the part (0 catalog, 1 directory, 2 strip),
/// byte 1 the claimed number of rows of a strip. Accepted parts are read completely.
pub fn sidecar(data: &[u8]) {
    let Some((&[which, rows], payload)) = data.split_first_chunk() else { return };
    crate::sidecar::read_through(which % 3, rows as usize, &Bytes::copy_from_slice(payload));
}

/// The payload of an index block. Byte 0 is the kind (0 leaf, 1 data root, 2 plain root, 3 Bloom, 4
/// file info), byte 1 the claimed number of entries.
pub fn index(data: &[u8]) {
    let Some((&[which, count], payload)) = data.split_first_chunk() else { return };
    let (payload, count, order) = (Bytes::copy_from_slice(payload), u32::from(count), CellOrder::Plain);
    let index = match which % 5 {
        0 => Index::parse_inner(payload, order).ok(),
        1 => Index::parse_data_root(payload, count, 1 + u32::from(which) / 5 % 3, order)
            .ok()
            .map(|(index, _)| index),
        2 => Index::parse_root(payload, 0, count).ok().map(|(index, _)| index),
        3 => return bloom(payload, order),
        _ => {
            _ = FileInfo::parse(&payload, 1);
            return;
        }
    };
    let Some(index) = index else { return };
    for at in 0..index.len() {
        _ = (index.key(at), index.target(at));
    }
    _ = index.last_where(|key| key < &b"m"[..]);
    if which % 5 <= 1 {
        // The keys are sorted cell keys: a search by heads must find what a search by keys finds,
        // for rows with any prefix.
        for row in [&b""[..], b"m", b"row", &[0xff; 9]] {
            let key = cell::KeyBuf::first_on_row(row);
            let is_before = |entry: &[u8]| order.compare_keys(entry, &key).is_le();
            assert_eq!(index.last_where_by_head(row, is_before), index.last_where(is_before));
        }
    }
}

fn bloom(payload: Bytes, order: CellOrder) {
    for by_column in [false, true] {
        if let Ok(meta) = BloomMeta::parse(payload.clone(), by_column, order) {
            let key = if by_column {
                crate::bloom::column_key(b"row", b"q").as_slice().to_vec()
            } else {
                b"row".to_vec()
            };
            _ = meta.chunk_of(&key);
            _ = meta.may_hold(&payload, &key);
        }
    }
}
