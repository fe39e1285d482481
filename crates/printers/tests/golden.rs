//! The output for files that HBase wrote, compared with what HBase's printers print of them
//! (`compat/printers --record`).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "reads the golden files")]

#[path = "../../adoption/tests/support/archive.rs"]
mod archive;

use std::path::{Path, PathBuf};

use fs::FilePath;
use fs::memory::MemoryFs;
use layout::RootDir;
use printers::{
    HFileOptions, HFilePrinter, LogFilter, LogForm, LogPrinter, SnapshotOptions, SnapshotPrinter,
};

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Runs a future to completion.
fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Compares the outputs for all files in `vectors` that have a golden output with this name.
fn compare(vectors: &str, extension: &str, name: &str, print: impl Fn(&MemoryFs, &FilePath) -> String) {
    let mut compared = 0;
    for entry in std::fs::read_dir(directory(vectors)).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        let golden = directory("tests/golden").join(format!("{file}.{name}.txt"));
        if !file.ends_with(extension) || !golden.exists() {
            continue;
        }
        let fs = MemoryFs::new();
        fs.put(&FilePath::new(&file), std::fs::read(&path).unwrap());
        let expected = std::fs::read_to_string(golden).unwrap();
        let printed = print(&fs, &FilePath::new(&file));
        for (ours, theirs) in printed.lines().zip(expected.lines()) {
            assert_eq!(ours, theirs, "{file} {name}");
        }
        assert_eq!(printed.lines().count(), expected.lines().count(), "{file} {name}");
        compared += 1;
    }
    assert!(compared > 0, "no golden output is named {name}");
}

fn hfile(name: &str, options: HFileOptions) {
    compare("../hfile/tests/vectors", ".hfile", name, |fs, path| {
        let (mut out, mut warnings) = (Vec::new(), Vec::new());
        let mut printer = HFilePrinter::new(&options, &mut out, &mut warnings);
        run(printer.print(fs, path, "file:PATH")).unwrap();
        printer.finish().unwrap();
        let text = String::from_utf8(out).unwrap();
        // HBase prints the size of its objects there.
        text.lines().filter(|line| !line.starts_with("Block index size")).fold(
            String::new(),
            |mut all, line| {
                all.push_str(line);
                all.push('\n');
                all
            },
        )
    });
}

fn log(name: &str, filter: &LogFilter, form: LogForm) {
    compare("../wal/tests/vectors", ".wal", name, |fs, path| {
        let mut out = Vec::new();
        run(LogPrinter::new(filter, form, &mut out).print(fs, path)).unwrap();
        String::from_utf8(out).unwrap()
    });
}

#[test]
fn descriptions_of_store_files_equal_those_of_hbase() {
    let options = HFileOptions {
        verbose: true,
        metadata: true,
        index: true,
        block_headers: true,
        ranges: true,
        ..HFileOptions::default()
    };
    hfile("description", options);
}

#[test]
fn cells_of_store_files_equal_those_of_hbase() {
    let checks = HFileOptions { checks_rows: true, checks_family: true, ..HFileOptions::default() };
    hfile("cells", HFileOptions { values: true, ..checks });
    hfile("keys", HFileOptions { keys: true, statistics: true, ..HFileOptions::default() });
    hfile("row", HFileOptions { values: true, row: Some(b"row2".to_vec()), ..HFileOptions::default() });
}

#[test]
fn edits_of_logs_equal_those_of_hbase() {
    let (all, text) = (LogFilter::default(), LogForm::default());
    log("values", &all, LogForm { values: true, ..text });
    log("json", &all, LogForm { json: true, values: true, ..text });
    log("rows", &all, LogForm { rows_only: true, ..text });
}

#[test]
fn filtered_edits_equal_those_of_hbase() {
    let (all, text) = (LogFilter::default(), LogForm::default());
    let json = LogForm { json: true, ..text };
    log("row", &LogFilter { row: Some(b"row1".to_vec()), ..all.clone() }, text);
    log("prefix", &LogFilter { row_prefix: Some(b"row".to_vec()), ..all.clone() }, json);
    log("sequence", &LogFilter { seq_id: Some(3), ..all.clone() }, text);
    let tables = vec![b"t1".to_vec(), b"t2".to_vec()];
    log("table", &LogFilter { tables, ..all.clone() }, LogForm { rows_only: true, ..json });
    log("other-table", &LogFilter { tables: vec![b"t9".to_vec()], ..all.clone() }, text);
    log("offset", &LogFilter { offset: Some(583), ..all }, text);
}

#[test]
fn a_damaged_file_is_an_error_after_the_part_before_the_damage() {
    let fs = MemoryFs::new();
    let mut bytes = std::fs::read(directory("../hfile/tests/vectors/hfile-diff-multiblock.hfile")).unwrap();
    let at = bytes.len() / 3;
    bytes[at] ^= 1;
    fs.put(&FilePath::new("damaged"), bytes);
    let options = HFileOptions { keys: true, ..HFileOptions::default() };
    let (mut out, mut warnings) = (Vec::new(), Vec::new());
    let mut printer = HFilePrinter::new(&options, &mut out, &mut warnings);
    let error = run(printer.print(&fs, &FilePath::new("damaged"), "file:PATH")).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
    assert!(!out.is_empty());
}

/// The names of the golden outputs of snapshots: `plain.files`.
fn golden_snapshots() -> Vec<String> {
    let entries = std::fs::read_dir(directory("tests/golden")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter_map(|name| Some(name.strip_prefix("snapshots.")?.strip_suffix(".txt")?.to_string()))
        .collect()
}

#[tokio::test]
async fn snapshots_of_both_layouts_are_printed_as_by_hbase() {
    let (fs, root) = (archive::image("snapshots").await, RootDir::new(FilePath::root()));
    let names = golden_snapshots();
    assert!(names.len() > 20, "{names:?}");
    for golden in names {
        let (mut out, mut warnings) = (Vec::new(), Vec::new());
        let mut printer = SnapshotPrinter::new(&fs, &root, &mut out, &mut warnings);
        match golden.split_once('.') {
            None => printer.list().await.unwrap(),
            Some((name, options)) => {
                let bytes = options == "bytes";
                let options = SnapshotOptions {
                    files: options != "info",
                    statistics: options != "info",
                    schema: bytes,
                    bytes,
                };
                assert_eq!(printer.print(name, options).await.unwrap(), name != "missing", "{golden}");
            }
        }
        let file = directory("tests/golden").join(format!("snapshots.{golden}.txt"));
        let expected = std::fs::read_to_string(file).unwrap();
        // The order of files and snapshots in HBase is random.
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(std::str::from_utf8(&out).unwrap()), sorted(&expected), "{golden}");
        assert!(warnings.is_empty());
    }
}

#[tokio::test]
async fn a_corrupt_snapshot_is_listed_as_a_warning() {
    let (fs, root) = (archive::image("snapshots").await, RootDir::new(FilePath::root()));
    for file in [".snapshotinfo", "data.manifest"] {
        fs.put(&FilePath::new(".hbase-snapshot/plain").join(file), b"\xff".to_vec());
    }
    let (mut out, mut warnings) = (Vec::new(), Vec::new());
    let mut printer = SnapshotPrinter::new(&fs, &root, &mut out, &mut warnings);
    printer.list().await.unwrap();
    assert!(printer.print("plain", SnapshotOptions::default()).await.is_err());
    assert_eq!(String::from_utf8(out).unwrap().lines().count(), 15, "14 others and the titles");
    assert!(String::from_utf8(warnings).unwrap().contains("skipping snapshot \"plain\": "));
}
