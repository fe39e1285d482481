//! Damaged files: every flipped bit and every truncation is either detected or harmless. Reads
//! never panic and never return a wrong cell.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use base::BoxFuture;
use bytes::Bytes;
use cell::schema::{BlockEncoding, BloomType, Compression};
use cell::{CellType, KeyValue};
use fs::memory::MemoryFs;
use fs::{FilePath, FileReader, FileStatus, FileSystem, FileWriter, Purpose};
use hfile::{BloomOptions, Error, FilterCounts, OpenOptions, Reader, WriterOptions};
use support::{Owned, Source, all_cells, open, path, run, vector, write};

/// Everything that can be read from a file: its cells, and the Bloom filter results for `rows`.
fn read_all(bytes: &[u8], rows: &[Vec<u8>]) -> Result<(Vec<Owned>, Vec<bool>), Error> {
    let reader = open(bytes)?;
    let cells = all_cells(&reader)?;
    let mut source = Source::new(0, 0);
    let mut answers = Vec::new();
    for row in rows {
        // A corrupt filter fails once and is not used afterwards.
        for _ in 0..2 {
            if let Ok(may) =
                source.drive(|source| reader.may_have_row(row, source, &mut FilterCounts::default()))
            {
                answers.push(may);
                break;
            }
        }
    }
    Ok((cells, answers))
}

/// Checks that reading the damaged file returns an error (true) or exactly the cells (false).
fn check(damaged: &[u8], cells: &[Owned], rows: &[Vec<u8>], what: &dyn Fn() -> String) -> bool {
    match read_all(damaged, rows) {
        Err(Error::Corrupt { .. } | Error::Unsupported { .. }) => true,
        Err(Error::Fs(error)) => panic!("{}: {error}", what()),
        Ok((found, answers)) => {
            assert_eq!(found, cells, "{}", what());
            assert!(answers.iter().all(|may| *may), "{}: the filter denies an existing row", what());
            false
        }
    }
}

fn rows_of(cells: &[Owned]) -> Vec<Vec<u8>> {
    let mut rows: Vec<Vec<u8>> = cells.iter().map(|(cell, _)| cell.view(0).row().to_vec()).collect();
    rows.dedup();
    rows
}

fn small_file(encoding: BlockEncoding, compression: Compression) -> (Vec<u8>, Vec<Owned>) {
    let cells: Vec<Owned> = (0..12_u64)
        .map(|i| {
            let (row, value) = (format!("row{}", i / 3), format!("value{i}"));
            let qualifier = format!("q{}", i % 3);
            let cell = KeyValue::with_tags(
                row.as_bytes(),
                b"f",
                qualifier.as_bytes(),
                100 + i as i64,
                CellType::Put,
                value.as_bytes(),
                &[0, 2, 64, i as u8],
            );
            (cell, i)
        })
        .collect();
    let options = WriterOptions {
        encoding,
        compression,
        block_bytes: 100,
        include_tags: true,
        bloom: BloomType::Row,
        bloom_options: BloomOptions { chunk_bytes: 128, ..BloomOptions::default() },
        index_block_bytes: 80,
        index_entries_min: 2,
        ..WriterOptions::default()
    };
    (write(&cells, options), cells)
}

const ENCODINGS: [BlockEncoding; 5] = [
    BlockEncoding::None,
    BlockEncoding::Prefix,
    BlockEncoding::Diff,
    BlockEncoding::FastDiff,
    BlockEncoding::RowIndexV1,
];

/// Blocks have checksums, so every flipped bit in one is detected. The trailer has none: flipped
/// bits there are detected or harmless.
#[test]
fn every_flipped_bit_is_detected_or_harmless() {
    for (encoding, compression) in [
        (BlockEncoding::None, Compression::None),
        (BlockEncoding::FastDiff, Compression::Gz),
        (BlockEncoding::RowIndexV1, Compression::None),
        (BlockEncoding::Diff, Compression::Snappy),
        (BlockEncoding::Prefix, Compression::Lz4),
        (BlockEncoding::None, Compression::Zstd),
    ] {
        let (bytes, cells) = small_file(encoding, compression);
        let rows = rows_of(&cells);
        let blocks_end = bytes.len() - 4096;
        let message_end = blocks_end + 200;
        let (mut seen, mut harmless_in_blocks) = (0, 0);
        for at in (0..message_end).chain(bytes.len() - 8..bytes.len()) {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                if check(&damaged, &cells, &rows, &|| format!("{encoding:?}, bit {bit} of byte {at}")) {
                    seen += 1;
                } else if at < blocks_end {
                    harmless_in_blocks += 1;
                }
            }
        }
        // Only Bloom chunks are not needed to read the cells: a corrupt filter is not used.
        let chunk_bits = chunk_bytes(&bytes) * 8;
        assert_eq!(harmless_in_blocks, chunk_bits, "{encoding:?}");
        assert!(seen > 0);
    }
}

/// Bytes of Bloom chunk blocks in a file.
fn chunk_bytes(bytes: &[u8]) -> usize {
    let (mut at, mut sum) = (0, 0);
    while at < bytes.len() - 4096 {
        let len = 33 + u32::from_be_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        if &bytes[at..at + 8] == b"BLMFBLK2" {
            sum += len;
        }
        at += len;
    }
    sum
}

#[test]
fn every_truncation_is_detected() {
    for encoding in ENCODINGS {
        let (bytes, cells) = small_file(encoding, Compression::None);
        for len in 0..bytes.len() {
            assert!(
                check(&bytes[..len], &cells, &[], &|| format!("{encoding:?} truncated to {len} bytes")),
                "{len}"
            );
        }
    }
}

/// A deterministic pseudorandom generator.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }
}

/// Number of damaged files that the random test reads. `DAMAGE_ROUNDS=1000000` is the long run
/// (some minutes in release mode).
#[allow(clippy::disallowed_methods)] // An option of a test, not of a server.
fn damage_rounds() -> usize {
    match std::env::var("DAMAGE_ROUNDS") {
        Ok(text) => text.parse().expect("DAMAGE_ROUNDS is a number"),
        Err(_) => 4000,
    }
}

/// Bit flips and truncation in files of HBase and of Grampus, in all encodings and compressions.
#[test]
fn random_damage_is_detected_or_harmless() {
    let vectors = [
        "multilevel-index-row-bloom-chunks",
        "fastdiff-gz-rowcol",
        "row-index-v1-multiblock",
        "tags",
        "lz4",
        "snappy",
    ];
    let mut files: Vec<(String, Vec<u8>, Vec<Owned>)> = Vec::new();
    for name in vectors {
        let (bytes, _) = vector(name);
        let cells = all_cells(&open(&bytes).unwrap()).unwrap();
        files.push((name.to_string(), bytes, cells));
    }
    for encoding in ENCODINGS {
        for compression in
            [Compression::None, Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd]
        {
            let (bytes, cells) = small_file(encoding, compression);
            files.push((format!("{encoding:?} {compression:?}"), bytes, cells));
        }
    }
    let mut numbers = Numbers(7);
    let rounds = damage_rounds();
    for round in 0..rounds {
        let (name, bytes, cells) = &files[round % files.len()];
        let mut damaged = bytes.clone();
        if numbers.next(8) == 0 {
            damaged.truncate(numbers.next(bytes.len()));
        }
        for _ in 0..numbers.next(4).min(damaged.len()) {
            // Most of a small file is the zeros of its trailer, which are never read.
            let at = match numbers.next(8) {
                0 => numbers.next(damaged.len()),
                _ => numbers.next(damaged.len().saturating_sub(3900).max(1)),
            };
            match numbers.next(3) {
                0 => damaged[at] ^= 1 << numbers.next(8),
                1 => damaged[at] = numbers.next(256) as u8,
                _ => {
                    let len = numbers.next(64).min(damaged.len() - at);
                    damaged[at..at + len].fill(numbers.next(256) as u8);
                }
            }
        }
        check(&damaged, cells, &[], &|| format!("{name}, round {round}"));
    }
}

/// Without checksums, damage reaches the decoders. They must not panic, must stay within their
/// memory limits, and must return cells in order.
#[test]
fn decoders_survive_damage_that_no_checksum_catches() {
    let mut numbers = Numbers(11);
    let codecs = [Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    for (at, encoding) in ENCODINGS.into_iter().enumerate() {
        for (compress_tags, compression) in
            [(false, Compression::None), (true, Compression::None), (at % 2 == 0, codecs[at % 4])]
        {
            let cells: Vec<Owned> = (0..60_u64)
                .map(|i| {
                    let (row, qualifier) = (format!("row{:03}", i / 4), format!("q{}", i % 4));
                    let kind = if i % 9 == 0 { CellType::Delete } else { CellType::Put };
                    let tags = [0, 2, 64, (i % 5) as u8];
                    (
                        KeyValue::with_tags(
                            row.as_bytes(),
                            b"f",
                            qualifier.as_bytes(),
                            5,
                            kind,
                            b"val",
                            &tags,
                        ),
                        i,
                    )
                })
                .collect();
            let options = WriterOptions {
                encoding,
                compression,
                compress_tags,
                include_tags: true,
                block_bytes: 500,
                checksum: hfile::ChecksumType::Null,
                index_block_bytes: 100,
                index_entries_min: 2,
                ..WriterOptions::default()
            };
            let bytes = write(&cells, options);
            for round in 0..2000 {
                let mut damaged = bytes.clone();
                for _ in 0..1 + numbers.next(3) {
                    let at = numbers.next(damaged.len() - 4096 + 200);
                    damaged[at] = match numbers.next(4) {
                        0 => 0xff,
                        1 => 0,
                        2 => damaged[at] ^ (1 << numbers.next(8)),
                        _ => numbers.next(256) as u8,
                    };
                }
                let Ok((found, _)) = read_all(&damaged, &[]) else { continue };
                for pair in found.windows(2) {
                    let order =
                        cell::CellOrder::Plain.compare_keys(pair[0].0.view(0).key, pair[1].0.view(0).key);
                    assert!(order.is_le(), "{encoding:?}, round {round}");
                }
            }
        }
    }
}

/// A block that claims to decompress to half a gigabyte is rejected before memory is allocated.
#[test]
fn impossible_lengths_are_refused() {
    for codec in [Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let (mut bytes, _) = small_file(BlockEncoding::None, codec);
        // Change the plain length of the first block and fix its checksum.
        bytes[12..16].copy_from_slice(&(1_u32 << 29).to_be_bytes());
        let data_len = u32::from_be_bytes(bytes[29..33].try_into().unwrap()) as usize;
        let sum = base::checksum::crc32c(&bytes[..data_len]);
        bytes[data_len..data_len + 4].copy_from_slice(&sum.to_be_bytes());
        let error = all_cells(&open(&bytes).unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "corrupt file at 0: block claims to decompress to more than is possible",
            "{codec:?}"
        );
    }
}

/// A file system whose first reads return a flipped bit, as over a bad cable.
struct Flaky {
    inner: MemoryFs,
    bad_reads: Arc<AtomicU32>,
}

struct FlakyReader {
    inner: Arc<dyn FileReader>,
    bad_reads: Arc<AtomicU32>,
}

impl FileReader for FlakyReader {
    fn path(&self) -> &FilePath {
        self.inner.path()
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'_, fs::Result<Bytes>> {
        Box::pin(async move {
            let bytes = self.inner.read_at(offset, len).await?;
            if self.bad_reads.load(Relaxed) == 0 {
                return Ok(bytes);
            }
            self.bad_reads.fetch_sub(1, Relaxed);
            let mut damaged = bytes.to_vec();
            damaged[len / 2] ^= 4;
            Ok(damaged.into())
        })
    }
}

impl FileSystem for Flaky {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, fs::Result<Box<dyn FileWriter>>> {
        self.inner.create_for(path, purpose)
    }
    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, fs::Result<Arc<dyn FileReader>>> {
        Box::pin(async move {
            let inner = self.inner.open(path).await?;
            let reader: Arc<dyn FileReader> =
                Arc::new(FlakyReader { inner, bad_reads: self.bad_reads.clone() });
            Ok(reader)
        })
    }
    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, fs::Result<()>> {
        self.inner.rename(from, to)
    }
    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, fs::Result<()>> {
        self.inner.delete(path)
    }
    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, fs::Result<Option<FileStatus>>> {
        self.inner.stat(path)
    }
    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, fs::Result<Vec<FileStatus>>> {
        self.inner.list(dir)
    }
    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, fs::Result<()>> {
        self.inner.make_dirs(dir)
    }
    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, fs::Result<()>> {
        self.inner.sync_dir(dir)
    }
    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, fs::Result<fs::Fence>> {
        self.inner.fence(path)
    }
}

#[test]
fn a_block_that_fails_its_check_is_read_again() {
    let (bytes, cells) = small_file(BlockEncoding::None, Compression::None);
    let bad_reads = Arc::new(AtomicU32::new(0));
    let fs = Flaky { inner: MemoryFs::new(), bad_reads: bad_reads.clone() };
    fs.inner.put(&path("file"), bytes);
    let reader = run(Reader::open(&fs, &path("file"), u64::MAX, OpenOptions::default())).unwrap();
    bad_reads.store(1, Relaxed);
    assert_eq!(all_cells(&reader).unwrap(), cells);
    bad_reads.store(2, Relaxed);
    assert!(matches!(all_cells(&reader), Err(Error::Corrupt { .. })));
}
