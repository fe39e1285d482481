//! Flush and compaction write files as the family's attributes require, and reads work with all of
//! them.

use std::sync::Arc;

use crate::common::world::{open_table, options, region_info, run, scan};
use bytes::Bytes;
use cell::KeyValue;
use cell::cell::CellType;
use cell::mutation::Mutation;
use cell::query::{CellSelection, FamilyColumns, Get};
use cell::schema::{BloomType, Compression, FamilyDescriptor, TableDescriptor, TableName};
use engine::Region;
use engine::region::CompactionKind;
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use hfile::{OpenOptions, Reader};

const ROWS: u32 = 40;

fn table(family: FamilyDescriptor) -> TableDescriptor {
    TableDescriptor::new(TableName::parse("t").unwrap()).with_family(family)
}

/// Writes rows of two columns, from row `first` on. Each cell has a tag.
async fn write(region: &Region, first: u32) {
    for row in first..first + ROWS {
        let row = format!("row{row:05}").into_bytes();
        let cell = |qualifier: &[u8]| {
            let (value, tags) = ([b'v'; 50], [0, 4, 64, 1, 2, 3]);
            KeyValue::with_tags(&row, b"f", qualifier, 1000, CellType::Put, &value, &tags)
        };
        let mutation = Mutation::put(row.clone(), vec![cell(b"a"), cell(b"b")]);
        region.batch(vec![mutation]).await.remove(0).unwrap();
    }
}

/// Opens the only file of the family.
async fn only_file(fs: &MemoryFs) -> Arc<Reader> {
    let dir = FilePath::new(&format!("data/default/t/{}/f", region_info().encoded_name()));
    let files = fs.list(&dir).await.unwrap();
    assert_eq!(files.len(), 1);
    Reader::open(fs, &dir.join(&files[0].name), 0, OpenOptions::default()).await.unwrap()
}

fn get(row: &str, qualifiers: &[&'static str]) -> Get {
    let qualifiers = (!qualifiers.is_empty()).then(|| qualifiers.iter().copied().map(Bytes::from).collect());
    let columns = vec![FamilyColumns { family: "f".into(), qualifiers }];
    let selection = CellSelection { columns, ..CellSelection::default() };
    Get { row: row.to_string().into(), selection: selection.into(), existence_only: false }
}

async fn check_reads(region: &Region, rows: u32) {
    assert_eq!(scan(region).await.unwrap().len(), 2 * rows as usize);
    for row in [0, rows / 2, rows - 1] {
        let row = format!("row{row:05}");
        for (qualifiers, found) in [(&[][..], 2), (&["b"], 1), (&["a", "nosuch"], 1), (&["nosuch"], 0)] {
            let list = region.get(&get(&row, qualifiers)).await.unwrap();
            assert_eq!(list.cells.len(), found, "{row} {qualifiers:?}");
            for (cell, _) in &list.cells {
                assert_eq!(cell.view(0).tags, [0, 4, 64, 1, 2, 3]);
            }
        }
    }
    assert_eq!(region.get(&get("row00000x", &[])).await.unwrap().cells.len(), 0);
}

#[test]
fn files_follow_the_settings_of_their_family() {
    let encodings = ["NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"];
    let compressions = ["NONE", "GZ", "SNAPPY", "LZ4", "ZSTD"];
    let blooms = ["NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH"];
    run(async {
        for at in 0..encodings.len() * compressions.len() {
            let (encoding, compression) = (encodings[at % 5], compressions[at / 5]);
            // Each Bloom filter type is combined with each encoding and each compression.
            let (bloom, tags_packed) = (blooms[(at + at / 5) % 4], at % 2 == 0);
            let compacted = compressions[(at / 5 + 1) % 5];
            let what = format!("{encoding} {compression} {bloom}");
            let mut family = FamilyDescriptor::new("f")
                .with("DATA_BLOCK_ENCODING", encoding)
                .with("COMPRESSION", compression)
                .with("COMPRESSION_COMPACT_MAJOR", compacted)
                .with("BLOOMFILTER", bloom)
                .with("BLOCKSIZE", "1024")
                .with("COMPRESS_TAGS", if tags_packed { "true" } else { "false" });
            family.configuration.insert("RowPrefixBloomFilter.prefix_length".into(), "7".into());
            let (env, fs, table) = (base::testing::env(7), MemoryFs::new(), table(family.clone()));
            let region = open_table(&env, Arc::new(fs.clone()), options(), &table).await.unwrap().region;
            write(&region, 0).await;
            region.flush().await.unwrap();
            check_file(&*only_file(&fs).await, &family, compression, tags_packed, &what);
            check_reads(&region, ROWS).await;
            write(&region, ROWS).await;
            region.flush().await.unwrap();
            region.compact(None, CompactionKind::Major).await.unwrap();
            check_file(&*only_file(&fs).await, &family, compacted, tags_packed, &what);
            check_reads(&region, 2 * ROWS).await;
        }
    });
}

fn check_file(file: &Reader, family: &FamilyDescriptor, compression: &str, tags_packed: bool, what: &str) {
    let (info, trailer) = (file.info(), file.trailer());
    assert_eq!(trailer.compression, Compression::of_name(compression).unwrap(), "{what}");
    assert_eq!(info.encoding, family.block_encoding(), "{what}");
    assert_eq!(info.bloom, family.bloom_type(), "{what}");
    if info.bloom == BloomType::RowPrefix {
        assert_eq!(info.bloom_prefix_len, 7, "{what}");
    }
    assert!(info.includes_tags, "{what}");
    let has_encoding = family.attribute("DATA_BLOCK_ENCODING") != Some("NONE");
    assert_eq!(info.tags_compressed, tags_packed && has_encoding, "{what}");
    // Two cells per row, of about 100 uncompressed bytes each.
    let blocks_min = info.entry_count * 90 / 1024 / 2;
    assert!(u64::from(trailer.data_index_count) >= blocks_min, "{what}: BLOCKSIZE is effective");
}

/// A region whose files could not be written is not opened, whether or not it has files.
#[test]
fn a_codec_that_is_not_built_in_keeps_a_region_closed() {
    run(async {
        for name in ["COMPRESSION", "COMPRESSION_COMPACT"] {
            let table = table(FamilyDescriptor::new("f").with(name, "LZO"));
            let (env, fs) = (base::testing::env(7), MemoryFs::new());
            let refused = open_table(&env, Arc::new(fs), options(), &table).await.err().unwrap();
            assert_eq!(refused, "opening: compression LZO of family f is not supported");
        }
    });
}

/// Number of blocks loaded by Gets of `rows`, from files with overlapping row ranges.
async fn blocks_loaded(bloom: &str, rows: &[(String, &[&'static str])]) -> u64 {
    let mut family = FamilyDescriptor::new("f").with("BLOOMFILTER", bloom).with("BLOCKSIZE", "512");
    family.configuration.insert("RowPrefixBloomFilter.prefix_length".into(), "8".into());
    let (env, table) = (base::testing::env(7), table(family));
    let opened = open_table(&env, Arc::new(MemoryFs::new()), options(), &table).await.unwrap();
    for file in 0..FILES {
        for number in (0..ROWS_IN_FILES).filter(|number| number % FILES == file) {
            // Even numbers only.
            let row = format!("row{:05}", number * 2).into_bytes();
            let cell = KeyValue::new(&row, b"f", b"a", 1000, CellType::Put, &[b'v'; 50]);
            region_put(&opened.region, Mutation::put(row, vec![cell])).await;
        }
        opened.region.flush().await.unwrap();
    }
    let before = opened.loader.stats().loads;
    for (row, qualifiers) in rows {
        assert!(opened.region.get(&get(row, qualifiers)).await.unwrap().cells.is_empty());
    }
    opened.loader.stats().loads - before
}

const FILES: u32 = 3;
const ROWS_IN_FILES: u32 = 600;

async fn region_put(region: &Region, mutation: Mutation) {
    region.batch(vec![mutation]).await.remove(0).unwrap();
}

/// A missing row or column costs the blocks where it would be, in each file. If a filter can
/// exclude it, only the filter's block is loaded.
#[test]
fn bloom_filters_save_block_loads() {
    run(async {
        let every = || (0..ROWS_IN_FILES - 1).step_by(10);
        let rows: Vec<_> = every().map(|number| (format!("row{:05}", number * 2 + 1), &[][..])).collect();
        let columns: Vec<_> = every().map(|number| (format!("row{:05}", number * 2), &["b"][..])).collect();
        let columns_of_none: Vec<_> = rows.iter().map(|(row, _)| (row.clone(), &["a"][..])).collect();
        let spares = |bloom: &'static str, rows: Vec<(String, &'static [&'static str])>| async move {
            let (with, without) = (blocks_loaded(bloom, &rows).await, blocks_loaded("NONE", &rows).await);
            // One block per file for the filter, and up to one false positive in a hundred.
            assert!(without > 60, "{without}: blocks are loaded without a filter");
            with <= u64::from(FILES) + without / 20
        };
        for bloom in ["ROW", "ROWPREFIX_FIXED_LENGTH"] {
            assert!(spares(bloom, rows.clone()).await, "{bloom}");
            assert!(spares(bloom, columns_of_none.clone()).await, "{bloom}");
            assert!(!spares(bloom, columns.clone()).await, "{bloom}: the rows exist");
        }
        assert!(spares("ROWCOL", columns.clone()).await);
        assert!(spares("ROWCOL", columns_of_none.clone()).await);
        assert!(!spares("ROWCOL", rows.clone()).await, "it knows columns, not rows");
    });
}
