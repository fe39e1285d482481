//! Files that HBase 2.5.10 wrote: their cells equal HBase's listing, and rewriting them yields the
//! same bytes.
#![allow(clippy::unwrap_used)]

mod support;

use cell::CellOrder;
use cell::schema::{BlockEncoding, BloomType, Compression};
use hfile::{BloomOptions, ChecksumType, Error, FilterCounts, StoreInfo, TimeRange, WriterOptions};
use support::{Source, all_cells, hex, listed, open, vector, write_with};

const VECTORS: [&str; 22] = [
    "crc32-smallchunk",
    "diff",
    "diff-multiblock",
    "fast-diff",
    "fast-diff-multiblock",
    "fastdiff-gz-rowcol",
    "fastdiff-tags-compressed",
    "gz",
    "lz4",
    "meta-comparator",
    "multilevel-index-row-bloom-chunks",
    "mvcc-all-zero",
    "no-mvcc",
    "plain",
    "prefix",
    "prefix-multiblock",
    "row-index-v1",
    "row-index-v1-multiblock",
    "rowcol-bloom",
    "rowprefix10-bloom",
    "snappy",
    "tags",
];

#[test]
fn cells_match_the_listing_of_hbase() {
    for name in VECTORS {
        let (bytes, listing) = vector(name);
        let reader = open(&bytes).unwrap();
        let expected: Vec<&str> = listing.lines().filter(|line| line.starts_with("CELL ")).collect();
        let cells: Vec<String> =
            all_cells(&reader).unwrap().iter().map(|(cell, seq_id)| listed(&cell.view(*seq_id))).collect();
        assert_eq!(cells, expected, "{name}");
        assert_eq!(reader.info().entry_count, expected.len() as u64, "{name}");
    }
}

#[test]
fn file_info_matches_the_listing_of_hbase() {
    for name in VECTORS {
        let (bytes, listing) = vector(name);
        let reader = open(&bytes).unwrap();
        let expected: Vec<&str> = listing.lines().filter_map(|line| line.strip_prefix("FILEINFO ")).collect();
        let entries: Vec<String> = reader
            .info()
            .raw
            .iter()
            .map(|(name, value)| format!("{} = {}", support::escape(name), hex(value)))
            .collect();
        assert_eq!(entries, expected, "{name}");
    }
}

#[test]
fn info_is_typed() {
    let reader = open(&vector("fastdiff-gz-rowcol").0).unwrap();
    let info = reader.info();
    assert_eq!(info.max_seq_id, Some(1234));
    assert_eq!(info.time_range, TimeRange { min: 0, max: 1_600_000_000_199 });
    assert_eq!(info.earliest_put_ts, Some(1_600_000_000_000));
    assert_eq!((info.entry_count, info.delete_family_count), (404, Some(4)));
    assert_eq!((info.encoding, info.bloom), (BlockEncoding::FastDiff, BloomType::RowCol));
    assert_eq!(info.create_time_ms, Some(1_700_000_000_000));
    assert!(info.includes_mvcc && !info.includes_tags && !info.is_major);
    assert_eq!(info.max_memstore_ts, 200);
    assert_eq!(reader.trailer().compression, Compression::Gz);
    assert_eq!(reader.first_row().unwrap(), b"user00000000");
    assert_eq!(reader.last_row().unwrap(), b"user00001393");
}

/// The error comes before any block is read.
#[test]
fn codecs_that_are_not_built_in_are_named() {
    let (bytes, _) = vector("snappy");
    let field = [12 << 3, Compression::Snappy as u8];
    let at = bytes.len() - 4096;
    let at = at + bytes[at..].windows(2).rposition(|pair| pair == field).unwrap() + 1;
    for codec in [Compression::Lzo, Compression::Bzip2, Compression::Lzma, Compression::Brotli] {
        let mut other = bytes.clone();
        other[at] = codec as u8;
        match open(&other) {
            Err(Error::Unsupported { what, .. }) => assert_eq!(what, format!("compression {}", codec.name())),
            other => panic!("{codec:?}: {other:?}"),
        }
    }
}

/// Version 2.3 has a shorter trailer and is otherwise the same.
#[test]
fn files_of_version_2_3_are_read() {
    let (bytes, _) = vector("prefix-multiblock");
    let trailer_at = bytes.len() - 4096;
    let mut old = bytes[..trailer_at + 208].to_vec();
    old.extend_from_slice(&[3, 0, 0, 2]);
    let reader = open(&old).unwrap();
    assert_eq!((reader.trailer().major, reader.trailer().minor), (2, 3));
    assert_eq!(all_cells(&reader).unwrap(), all_cells(&open(&bytes).unwrap()).unwrap());
}

/// The key in the middle of the file, at which HBase splits a region, equals that in HBase's
/// listing.
#[test]
fn the_middle_key_of_a_file_matches_hbase() {
    for name in VECTORS {
        let (bytes, listing) = vector(name);
        let reader = open(&bytes).unwrap();
        let key = Source::new(0, 0).drive(|source| reader.middle_key(source)).unwrap().unwrap();
        let timestamp = match cell::key::timestamp(&key) {
            i64::MAX => "LATEST_TIMESTAMP".to_string(),
            other => other.to_string(),
        };
        let kind = match cell::key::type_code(&key) {
            4 => "Put",
            14 => "DeleteFamily",
            255 => "Maximum",
            other => panic!("type {other}"),
        };
        let (row, family, qualifier) =
            (cell::key::row(&key), cell::key::family(&key), cell::key::qualifier(&key));
        let (row, family, qualifier) =
            (support::escape(row), support::escape(family), support::escape(qualifier));
        let column = if family.is_empty() { String::new() } else { format!("{family}:{qualifier}") };
        let found = format!("MIDKEY {row}/{column}/{timestamp}/{kind}/seqid=0");
        assert!(listing.lines().any(|line| line == found), "{name}: {found}");
    }
}

/// The options with which a vector was written.
fn options(name: &str) -> WriterOptions {
    let base = WriterOptions {
        bloom: BloomType::None,
        compress_tags: false,
        create_time_ms: 1_700_000_000_000,
        ..WriterOptions::default()
    };
    let small_chunks = BloomOptions { chunk_bytes: 128, ..BloomOptions::default() };
    match name {
        "plain" | "mvcc-all-zero" => base,
        "no-mvcc" => WriterOptions { include_mvcc: false, ..base },
        "meta-comparator" => WriterOptions { order: CellOrder::Meta, ..base },
        "tags" => WriterOptions { include_tags: true, ..base },
        "fastdiff-tags-compressed" => WriterOptions {
            include_tags: true,
            compress_tags: true,
            encoding: BlockEncoding::FastDiff,
            ..base
        },
        "crc32-smallchunk" => WriterOptions {
            block_bytes: 1024,
            checksum: ChecksumType::Crc32,
            checksum_chunk_bytes: 512,
            ..base
        },
        "multilevel-index-row-bloom-chunks" => WriterOptions {
            block_bytes: 512,
            bloom: BloomType::Row,
            bloom_options: small_chunks,
            index_block_bytes: 256,
            index_entries_min: 4,
            ..base
        },
        "rowcol-bloom" => WriterOptions { bloom: BloomType::RowCol, bloom_options: small_chunks, ..base },
        "rowprefix10-bloom" => WriterOptions { bloom: BloomType::RowPrefix, bloom_prefix_len: 10, ..base },
        "gz" | "lz4" | "snappy" => {
            let compression = Compression::of_name(name).unwrap();
            WriterOptions { block_bytes: 4096, compression, bloom: BloomType::Row, ..base }
        }
        "fastdiff-gz-rowcol" => WriterOptions {
            block_bytes: 4096,
            compression: Compression::Gz,
            encoding: BlockEncoding::FastDiff,
            bloom: BloomType::RowCol,
            ..base
        },
        encoded => {
            let encoding = match encoded.trim_end_matches("-multiblock") {
                "prefix" => BlockEncoding::Prefix,
                "diff" => BlockEncoding::Diff,
                "fast-diff" => BlockEncoding::FastDiff,
                "row-index-v1" => BlockEncoding::RowIndexV1,
                other => panic!("{other}"),
            };
            match encoded.ends_with("-multiblock") {
                true => WriterOptions { encoding, block_bytes: 2048, ..base },
                false => WriterOptions { encoding, bloom: BloomType::Row, ..base },
            }
        }
    }
}

/// Compressed bytes depend on the compressor's version. For compressed files the test compares the
/// cells, the file info and the uncompressed sizes, for all others every byte.
#[test]
fn files_have_the_bytes_of_hbase() {
    for name in VECTORS {
        let (bytes, _) = vector(name);
        let reader = open(&bytes).unwrap();
        let cells = all_cells(&reader).unwrap();
        let store = StoreInfo { max_seq_id: 1234, ..StoreInfo::default() };
        let (ours, written) = write_with(&cells, options(name), |writer| writer.put_store_info(&store));
        assert_eq!(written.bytes, ours.len() as u64);
        if reader.trailer().compression == Compression::None {
            let differs = ours.iter().zip(&bytes).position(|(left, right)| left != right);
            assert_eq!((ours.len(), differs), (bytes.len(), None), "{name}");
        } else {
            let again = open(&ours).unwrap();
            assert_eq!(all_cells(&again).unwrap(), cells, "{name}");
            assert_eq!(again.info().raw, reader.info().raw, "{name}");
            let (left, right) = (again.trailer(), reader.trailer());
            assert_eq!(left.total_plain_bytes, right.total_plain_bytes, "{name}");
            assert_eq!(left.data_index_plain_bytes, right.data_index_plain_bytes, "{name}");
            assert_eq!(left.data_index_count, right.data_index_count, "{name}");
        }
    }
}

/// Filters pass every existing key and reject most absent ones.
#[test]
fn bloom_filters_match_hbase() {
    for name in VECTORS {
        let (bytes, _) = vector(name);
        let reader = open(&bytes).unwrap();
        let mut source = Source::new(0, 0);
        for (cell, seq_id) in all_cells(&reader).unwrap() {
            let cell = cell.view(seq_id);
            assert!(
                source
                    .drive(|source| reader.may_have_row(cell.row(), source, &mut FilterCounts::default()))
                    .unwrap()
            );
            let may = source.drive(|source| {
                reader.may_have_column(cell.row(), cell.qualifier(), source, &mut FilterCounts::default())
            });
            assert!(may.unwrap(), "{name}");
            if matches!(cell.type_code(), 10 | 14) {
                assert!(source.drive(|source| reader.may_have_delete_family(cell.row(), source)).unwrap());
            }
        }
        let passed = |source: &mut Source, test: &dyn Fn(&mut Source, &[u8]) -> bool| {
            (0..1000).filter(|i| test(source, format!("user{:08}", i * 7 + 1).as_bytes())).count()
        };
        match reader.info().bloom {
            BloomType::Row => {
                let passed = passed(&mut source, &|source, row| {
                    source
                        .drive(|source| reader.may_have_row(row, source, &mut FilterCounts::default()))
                        .unwrap()
                });
                assert!(passed < 50, "{name}: {passed} absent rows pass");
            }
            BloomType::RowCol => {
                let passed = passed(&mut source, &|source, row| {
                    source
                        .drive(|source| {
                            reader.may_have_column(row, b"name", source, &mut FilterCounts::default())
                        })
                        .unwrap()
                });
                assert!(passed < 50, "{name}: {passed} absent columns pass");
            }
            _ => {}
        }
    }
    let reader = open(&vector("rowprefix10-bloom").0).unwrap();
    let mut source = Source::new(0, 0);
    assert!(
        source
            .drive(|source| reader.may_have_row(b"user000000zz", source, &mut FilterCounts::default()))
            .unwrap()
    );
    assert!(
        !source
            .drive(|source| reader.may_have_row(b"user100000zz", source, &mut FilterCounts::default()))
            .unwrap()
    );
    assert!(!source.drive(|source| reader.may_have_delete_family(b"user00000000", source)).unwrap());
}
