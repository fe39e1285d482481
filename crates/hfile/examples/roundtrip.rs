//! HFiles of random cells. Each `NAME.hfile` has its cells next to it in `NAME.txt`, one cell per
//! line.
//!
//! ```text
//! write DIR COUNT SEED   writes files, in all encodings, compressions and Bloom filters
//! check DIR              reads all files in DIR and compares every cell
//! ```
//!
//! This is our half of `compat/roundtrip`. Its other half does the same with HBase's writer and
//! reader.
#![allow(clippy::unwrap_used, reason = "a test tool may panic")]
#![allow(clippy::disallowed_methods, reason = "its files belong to its caller, not to a server")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cell::schema::{BlockEncoding, BloomType, Compression};
use cell::{CellOrder, CellType, KeyBuf, KeyValue};
use hfile::{BloomOptions, ChecksumType, FilterCounts, StoreInfo, WriterOptions};
use support::{Owned, Source, all_cells, listed, open, write_with};

const ENCODINGS: [BlockEncoding; 5] = [
    BlockEncoding::None,
    BlockEncoding::Prefix,
    BlockEncoding::Diff,
    BlockEncoding::FastDiff,
    BlockEncoding::RowIndexV1,
];
const COMPRESSIONS: [Compression; 5] =
    [Compression::None, Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd];
const BLOOMS: [BloomType; 4] = [BloomType::None, BloomType::Row, BloomType::RowCol, BloomType::RowPrefix];
const KINDS: [CellType; 8] = [
    CellType::Put,
    CellType::Put,
    CellType::Put,
    CellType::Put,
    CellType::Delete,
    CellType::DeleteColumn,
    CellType::DeleteFamily,
    CellType::DeleteFamilyVersion,
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["write", dir, count, seed] => {
            write_all(Path::new(dir), count.parse().unwrap(), seed.parse().unwrap())
        }
        ["check", dir] if check_all(Path::new(dir)) => {}
        ["check", _] => return ExitCode::FAILURE,
        _ => {
            eprintln!("usage: roundtrip write DIR COUNT SEED | check DIR");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// A deterministic pseudorandom generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 1
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Bytes with few distinct values, so that keys share prefixes.
    fn bytes(&mut self, len: usize, kinds: usize) -> Vec<u8> {
        let byte = |kind| if kind == 2 { 0xff } else { kind as u8 };
        (0..len).map(|_| byte(self.below(kinds))).collect()
    }
}

fn write_all(dir: &Path, count: usize, seed: u64) {
    std::fs::create_dir_all(dir).unwrap();
    for at in 0..count {
        let mut numbers = Numbers(seed.wrapping_mul(1_000_003).wrapping_add(at as u64));
        let options = options(at, &mut numbers);
        let cells = cells(&mut numbers, &options);
        let store = StoreInfo { max_seq_id: at as u64, is_major: numbers.coin(), ..StoreInfo::default() };
        let mut listing = format!(
            "FILE {:?} {} {:?} tags={} mvcc={}\n",
            options.encoding,
            options.compression.name(),
            options.bloom,
            options.include_tags,
            options.include_mvcc
        );
        for (cell, seq_id) in &cells {
            writeln!(listing, "{}", listed(&cell.view(*seq_id))).unwrap();
        }
        let (bytes, _) = write_with(&cells, options, |writer| writer.put_store_info(&store));
        std::fs::write(dir.join(format!("{at:04}.hfile")), bytes).unwrap();
        std::fs::write(dir.join(format!("{at:04}.txt")), listing).unwrap();
    }
    println!("{count} files written by Grampus");
}

fn options(at: usize, numbers: &mut Numbers) -> WriterOptions {
    let small = numbers.coin();
    WriterOptions {
        // Cycle through all combinations of encoding and compression.
        encoding: ENCODINGS[at % ENCODINGS.len()],
        compression: COMPRESSIONS[at / ENCODINGS.len() % COMPRESSIONS.len()],
        bloom: numbers.of(&BLOOMS),
        bloom_prefix_len: 1 + numbers.below(8) as u32,
        bloom_options: match small {
            true => BloomOptions { chunk_bytes: 256, ..BloomOptions::default() },
            false => BloomOptions::default(),
        },
        block_bytes: numbers.of(&[300, 4096, 65536]),
        checksum: numbers.of(&[ChecksumType::Crc32c, ChecksumType::Crc32]),
        checksum_chunk_bytes: numbers.of(&[100, 16384]),
        include_tags: numbers.coin(),
        compress_tags: numbers.coin(),
        include_mvcc: numbers.below(4) > 0,
        index_block_bytes: if small { 300 } else { 128 << 10 },
        index_entries_min: if small { 3 } else { 16 },
        create_time_ms: 1_700_000_000_000,
        sidecar: numbers.coin(),
        ..WriterOptions::default()
    }
}

fn cells(numbers: &mut Numbers, options: &WriterOptions) -> Vec<Owned> {
    let count = if numbers.below(20) == 0 { 0 } else { 1 + numbers.below(1500) };
    let mut cells: Vec<Owned> = (0..count).map(|_| cell(numbers, options)).collect();
    cells.sort_by(|(left, left_seq), (right, right_seq)| {
        CellOrder::Plain.compare(&left.view(*left_seq), &right.view(*right_seq))
    });
    cells
}

fn cell(numbers: &mut Numbers, options: &WriterOptions) -> Owned {
    // A sidecar has strips only where all cells are puts.
    let kind = if options.sidecar { CellType::Put } else { numbers.of(&KINDS) };
    let qualifier = match kind {
        CellType::DeleteFamily | CellType::DeleteFamilyVersion => Vec::new(),
        _ if numbers.coin() => {
            let len = numbers.below(4);
            numbers.bytes(len, 4)
        }
        _ => format!("column{}", numbers.below(30)).into_bytes(),
    };
    let timestamp = match numbers.below(4) {
        0 => numbers.below(300) as i64,
        1 => (numbers.below(1 << 31) as i64) << 32 | numbers.below(1 << 31) as i64,
        _ => 1_700_000_000_000 + numbers.below(100_000) as i64,
    };
    let value = if kind == CellType::Put { value(numbers) } else { Vec::new() };
    let tags = if options.include_tags && !options.sidecar { tags(numbers) } else { Vec::new() };
    let row = row(numbers);
    let seq_id = match options.include_mvcc {
        true => {
            let bits = 1 + numbers.below(29);
            numbers.below(1 << bits) as u64
        }
        false => 0,
    };
    (KeyValue::with_tags(&row, b"fam", &qualifier, timestamp, kind, &value, &tags), seq_id)
}

fn row(numbers: &mut Numbers) -> Vec<u8> {
    match numbers.below(3) {
        0 => format!("user{:06}", numbers.below(300)).into_bytes(),
        1 => {
            let len = 1 + numbers.below(4);
            numbers.bytes(len, 3)
        }
        _ => vec![b'x'; 1 + numbers.below(300)],
    }
}

/// Occasionally a value that is longer than a codec's buffer, compressible or not.
fn value(numbers: &mut Numbers) -> Vec<u8> {
    match numbers.below(400) {
        0 => {
            let len = 300_000 + numbers.below(400_000);
            numbers.bytes(len, 256)
        }
        1 => vec![0; 600_000],
        _ if numbers.below(3) == 0 => b"the same value".to_vec(),
        _ => {
            let len = numbers.below(60);
            numbers.bytes(len, 256)
        }
    }
}

fn tags(numbers: &mut Numbers) -> Vec<u8> {
    let mut tags = Vec::new();
    for _ in 1..numbers.below(4) {
        let len = numbers.below(6);
        tags.extend_from_slice(&(len as u16 + 1).to_be_bytes());
        tags.push(64 + numbers.below(60) as u8);
        tags.extend(numbers.bytes(len, 3));
    }
    tags
}

/// Whether all files match their listings. Prints those that do not.
fn check_all(dir: &Path) -> bool {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "hfile"))
        .collect();
    files.sort();
    let (mut wrong, mut cells) = (0, 0);
    for file in &files {
        let listing = std::fs::read_to_string(file.with_extension("txt")).unwrap();
        let (options, expected) = listing.split_once('\n').unwrap();
        let expected: Vec<&str> = expected.lines().collect();
        cells += expected.len();
        if let Err(what) = compare(&std::fs::read(file).unwrap(), &expected) {
            wrong += 1;
            println!("{} ({options}): {what}", file.display());
        }
    }
    println!("{} files read by Grampus, {cells} cells, {wrong} wrong", files.len());
    wrong == 0 && !files.is_empty()
}

fn compare(bytes: &[u8], expected: &[&str]) -> Result<(), String> {
    let reader = open(bytes).map_err(|error| error.to_string())?;
    let cells = all_cells(&reader).map_err(|error| error.to_string())?;
    for (at, (cell, seq_id)) in cells.iter().enumerate() {
        let found = listed(&cell.view(*seq_id));
        if expected.get(at) != Some(&&*found) {
            return Err(format!("cell {at}: found {found}"));
        }
    }
    if cells.len() != expected.len() {
        return Err(format!("{} cells of {}", cells.len(), expected.len()));
    }
    let (mut source, mut cursor) = (Source::new(0, 0), reader.cursor());
    // Backward, so that each seek starts from the index.
    for (cell, seq_id) in cells.iter().rev().step_by(3) {
        let view = cell.view(*seq_id);
        let mut key = KeyBuf::default();
        key.copy_from(view.key);
        source.drive(|source| cursor.seek(&key, source)).map_err(|error| error.to_string())?;
        if cursor.cell().is_none_or(|found| found.key != view.key) {
            return Err(format!("not found: {}", listed(&view)));
        }
        let mut may = |query: &dyn Fn(&dyn hfile::BlockSource) -> Result<bool, hfile::Stop>| {
            source.drive(query).map_err(|error| error.to_string())
        };
        let is_of_family = matches!(view.kind(), CellType::DeleteFamily | CellType::DeleteFamilyVersion);
        let has = may(&|source| reader.may_have_row(view.row(), source, &mut FilterCounts::default()))?
            && may(&|source| {
                reader.may_have_column(view.row(), view.qualifier(), source, &mut FilterCounts::default())
            })?
            && (!is_of_family || may(&|source| reader.may_have_delete_family(view.row(), source))?);
        if !has {
            return Err(format!("a Bloom filter denies {}", listed(&view)));
        }
    }
    Ok(())
}
