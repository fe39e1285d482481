//! Writes everything that follows the data of a file: the rest of the index, file info, Bloom metas
//! and the trailer.

use cell::schema::{BlockEncoding, BloomType};

use super::{Writer, boolean, packs_tags};
use crate::block::header::NO_BLOCK;
use crate::block::kind::BlockKind;
use crate::bloom::writer::BloomWriter;
use crate::index::Target;
use crate::index_writer::ReadyIndex;
use crate::info::{bloom_name, encoding_name, names, write_map};
use crate::trailer::{TRAILER_LEN, Trailer};

impl Writer {
    /// Appends everything that follows the data.
    pub(super) fn put_end(&mut self) {
        assert!(self.block.is_empty(), "all cells are in blocks before the end is written");
        while let Some(level) = self.index.next_level() {
            let put = |block: ReadyIndex| {
                (block.first_key, self.out.put_uncounted(BlockKind::IntermediateIndex, &block.payload))
            };
            let blocks = level.into_iter().map(put).collect();
            self.index.intermediates_written(blocks);
        }
        let load_on_open = self.out.put_uncounted(BlockKind::RootIndex, &self.index.root_payload());
        self.out.put(BlockKind::RootIndex, &[]);
        self.put_file_info();
        let file_info = self.out.put(BlockKind::FileInfo, &write_map(&self.info));
        if let Some(meta) = self.bloom.as_ref().and_then(BloomWriter::meta) {
            self.out.put(BlockKind::BloomMeta, &meta);
        }
        if let Some(meta) = self.delete_family_bloom.as_ref().and_then(BloomWriter::meta) {
            self.out.put(BlockKind::DeleteFamilyBloomMeta, &meta);
        }
        let trailer = self.trailer(load_on_open, file_info);
        self.out.put_bytes(&trailer.to_bytes());
    }

    fn trailer(&self, load_on_open: Target, file_info: Target) -> Trailer {
        let (first_data_block_offset, last_data_block_offset) = self.out.data_blocks();
        debug_assert!(
            (first_data_block_offset == NO_BLOCK) == self.is_empty(),
            "a file has data blocks if it has cells"
        );
        Trailer {
            major: 3,
            minor: 3,
            file_info_offset: file_info.offset,
            load_on_open_offset: load_on_open.offset,
            data_index_plain_bytes: self.index.plain_bytes(),
            total_plain_bytes: self.out.plain_bytes() + TRAILER_LEN as u64,
            data_index_count: self.index.root_len(),
            meta_index_count: 0,
            entry_count: self.statistics.entries,
            data_index_levels: self.index.levels(),
            first_data_block_offset,
            last_data_block_offset,
            order: self.options.order,
            compression: self.options.compression,
        }
    }

    /// Adds the entries that the writer itself knows.
    fn put_file_info(&mut self) {
        let options = self.options.clone();
        let average = |sum: u64, count: u64| sum.checked_div(count).unwrap_or(0) as u32;
        let statistics = &self.statistics;
        let key_len = average(statistics.key_bytes, statistics.entries);
        let value_len = average(statistics.value_bytes, statistics.entries);
        let (tags_len, seq_id) = (statistics.tags_len_max as u32, statistics.seq_id_max);
        let mut time_range = statistics.time_range.min.to_be_bytes().to_vec();
        time_range.extend_from_slice(&statistics.time_range.max.to_be_bytes());
        let (earliest_put, delete_family_count) = (statistics.earliest_put, statistics.delete_family_count);
        if !self.last_key.is_empty() {
            self.put_entry(names::LAST_KEY, self.last_key.clone());
        }
        self.put_entry(names::AVG_KEY_LEN, key_len.to_be_bytes().to_vec());
        self.put_entry(names::AVG_VALUE_LEN, value_len.to_be_bytes().to_vec());
        self.put_entry(names::CREATE_TIME, options.create_time_ms.to_be_bytes().to_vec());
        if options.include_tags {
            self.put_entry(names::MAX_TAGS_LEN, tags_len.to_be_bytes().to_vec());
            self.put_entry(names::TAGS_COMPRESSED, boolean(packs_tags(&options)));
        }
        if options.include_mvcc {
            self.put_entry(names::KEY_VALUE_VERSION, 1_u32.to_be_bytes().to_vec());
            self.put_entry(names::MAX_MEMSTORE_TS, seq_id.to_be_bytes().to_vec());
        }
        if options.encoding != BlockEncoding::None {
            self.put_entry(names::DATA_BLOCK_ENCODING, encoding_name(options.encoding));
        }
        self.put_entry(names::TIME_RANGE, time_range);
        self.put_entry(names::EARLIEST_PUT_TS, earliest_put.to_be_bytes().to_vec());
        self.put_entry(names::DELETE_FAMILY_COUNT, delete_family_count.to_be_bytes().to_vec());
        if self.bloom.is_some() && !self.is_empty() {
            self.put_entry(names::BLOOM_TYPE, bloom_name(options.bloom));
            self.put_entry(names::LAST_BLOOM_KEY, self.last_bloom_key.clone());
            if options.bloom == BloomType::RowPrefix {
                self.put_entry(names::BLOOM_PARAM, options.bloom_prefix_len.to_be_bytes().to_vec());
            }
        }
    }
}
