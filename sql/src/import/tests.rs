//! Imports of files, with rows recorded in memory, and of the exports of a fake cluster.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use bytes::Bytes;
use datafusion::arrow::array::{Int64Array, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;

use super::*;
use crate::export::{self, ExportArguments};
use crate::fake_cluster::Cells;
use crate::tests::engine;

const COLUMNS: [&str; 3] = ["id VARCHAR row raw", "a BIGINT f:a bytes_long", "b VARCHAR f:b raw"];

fn declaration() -> Declaration {
    let columns = COLUMNS.iter().map(|column| DeclaredColumn::from_text(column).unwrap());
    Declaration { name: "t".into(), table: TableName::parse("t").unwrap(), columns: columns.collect() }
}

/// A target that records rows and their timestamps.
#[derive(Default)]
struct Recorder {
    rows: Mutex<BTreeMap<Bytes, Cells>>,
    timestamps: Mutex<std::collections::BTreeSet<i64>>,
    /// Fails puts of this row.
    fails_at: Option<&'static str>,
    batch_puts_max: AtomicU64,
}

#[async_trait]
impl Target for Recorder {
    async fn apply(&self, _: &TableName, puts: Vec<Mutation>) -> Result<(), (usize, String)> {
        self.batch_puts_max.fetch_max(puts.len() as u64, Ordering::Relaxed);
        for (at, put) in puts.into_iter().enumerate() {
            if self.fails_at.is_some_and(|row| put.row == row) {
                return Err((at, "region is gone".into()));
            }
            let mut rows = lock(&self.rows);
            let cells = rows.entry(put.row.clone()).or_default();
            for cell in &put.cells {
                let cell = cell.view(0);
                lock(&self.timestamps).insert(cell.timestamp());
                let column =
                    (Bytes::copy_from_slice(cell.family()), Bytes::copy_from_slice(cell.qualifier()));
                cells.insert(column, Bytes::copy_from_slice(cell.value));
            }
        }
        Ok(())
    }
}

/// A directory of a test, removed at its end.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let path = std::env::temp_dir().join(format!("grampus-import-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Dir(path)
    }

    #[allow(clippy::disallowed_methods, reason = "a test's own files")]
    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.0.join(name), text).unwrap();
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn arguments(files: &[&Path]) -> ImportArguments {
    ImportArguments {
        files: files.iter().map(|file| file.to_path_buf()).collect(),
        table: "t".into(),
        format: None,
        delimiter: b',',
        columns: None,
        ignore_unknown: false,
        timestamp: None,
        resume: None,
        parallel: Some(3),
        memory: 1,
    }
}

async fn import(arguments: &ImportArguments, target: &Arc<Recorder>) -> Result<Imported, String> {
    run(arguments, &declaration(), Arc::clone(target) as _, 1000).await
}

async fn import_text(name: &str, text: &str) -> Result<Imported, String> {
    let dir = Dir::new(name);
    let file = dir.write(name, text);
    import(&arguments(&[&file]), &Arc::default())
        .await
        .map_err(|error| error.replace(&file.display().to_string(), name))
}

fn records() -> RecordBatch {
    let schema = Schema::new(vec![
        Field::new("id", DataType::Utf8, false),
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Utf8, true),
    ]);
    let rows = 0..10_000_i64;
    RecordBatch::try_new(
        Arc::new(schema),
        vec![
            Arc::new(StringArray::from_iter_values(rows.clone().map(|row| format!("row{row:05}")))),
            Arc::new(Int64Array::from_iter(rows.clone().map(|row| (row % 3 > 0).then_some(row)))),
            Arc::new(StringArray::from_iter(
                rows.map(|row| (row % 2 > 0).then(|| format!("text,\n\"{row}"))),
            )),
        ],
    )
    .unwrap()
}

/// The cells of [`records`]; a row whose values are NULL does not exist.
fn expected() -> BTreeMap<Bytes, Cells> {
    let mut rows = BTreeMap::new();
    for row in 0..10_000_i64 {
        let mut cells = Cells::new();
        if row % 3 > 0 {
            cells.insert(("f".into(), "a".into()), Bytes::copy_from_slice(&row.to_be_bytes()));
        }
        if row % 2 > 0 {
            cells.insert(("f".into(), "b".into()), format!("text,\n\"{row}").into());
        }
        if !cells.is_empty() {
            rows.insert(format!("row{row:05}").into(), cells);
        }
    }
    rows
}

#[allow(clippy::disallowed_methods, reason = "a test's own files")]
fn create(dir: &Dir, name: &str) -> (PathBuf, std::fs::File) {
    let path = dir.0.join(name);
    (path.clone(), std::fs::File::create(path).unwrap())
}

/// Compresses a file as two members or frames, as by `cat a.gz b.gz`.
#[allow(clippy::disallowed_methods, reason = "a test's own files")]
fn compressed(dir: &Dir, file: &Path, name: &str) -> PathBuf {
    let content = std::fs::read(file).unwrap();
    let (first, second) = content.split_at(content.len() / 3);
    let pack = |bytes: &[u8]| match name.ends_with("gz") {
        true => {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packer.write_all(bytes).unwrap();
            packer.finish().unwrap()
        }
        false => zstd::encode_all(bytes, 1).unwrap(),
    };
    let path = dir.0.join(name);
    std::fs::write(&path, [pack(first), pack(second)].concat()).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::disallowed_methods, reason = "a test's own files")]
async fn a_damaged_compressed_file_is_an_error() {
    let dir = Dir::new("damaged");
    let csv = dir.write("a.csv", "id,a\n".repeat(1000));
    for name in ["a.csv.gz", "a.csv.zst"] {
        let path = compressed(&dir, &csv, name);
        let whole = std::fs::read(&path).unwrap();
        for damaged in [&whole[..whole.len() - 5], b"id,a\nx,1\n"] {
            std::fs::write(&path, damaged).unwrap();
            let error = import(&arguments(&[&path]), &Arc::default()).await.unwrap_err();
            assert!(error.contains(name), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_formats_give_the_same_rows() {
    let (dir, records) = (Dir::new("formats"), records());
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(700)).build();
    let (parquet, file) = create(&dir, "a.parquet");
    let mut writer = ArrowWriter::try_new(file, records.schema(), Some(properties)).unwrap();
    writer.write(&records).unwrap();
    writer.close().unwrap();
    let (arrow, file) = create(&dir, "a.arrow");
    let mut writer = datafusion::arrow::ipc::writer::FileWriter::try_new(file, &records.schema()).unwrap();
    writer.write(&records).unwrap();
    writer.finish().unwrap();
    let (stream, file) = create(&dir, "a.arrows");
    let mut writer = StreamWriter::try_new(file, &records.schema()).unwrap();
    writer.write(&records).unwrap();
    writer.finish().unwrap();
    let (csv, file) = create(&dir, "a.csv");
    datafusion::arrow::csv::Writer::new(file).write(&records).unwrap();
    let (json, file) = create(&dir, "a.json");
    datafusion::arrow::json::LineDelimitedWriter::new(file).write(&records).unwrap();
    let packed_csv = compressed(&dir, &csv, "a.csv.gz");
    let packed_json = compressed(&dir, &json, "a.json.zst");
    for file in [parquet, arrow, stream, csv, json, packed_csv, packed_json] {
        let target = Arc::new(Recorder::default());
        let imported = import(&arguments(&[&file]), &target).await.unwrap();
        let rows = expected();
        let cells = rows.values().map(BTreeMap::len).sum::<usize>() as u64;
        let counted =
            Imported { rows: rows.len() as u64, cells, rows_without_cells: 1667, pieces_skipped: 0 };
        assert_eq!(imported, counted, "{}", file.display());
        assert!(*lock(&target.rows) == rows, "{}", file.display());
        assert_eq!(lock(&target.timestamps).iter().copied().collect::<Vec<_>>(), [1000]);
        assert!(target.batch_puts_max.load(Ordering::Relaxed) <= BATCH_PUTS_MAX as u64);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_file_row_and_column() {
    for (name, text, expected) in [
        ("a.csv", "id,a\nx,1\n\"y\n\",z\n", "a.csv, row 2, column a: 'z' is not a valid BIGINT"),
        ("b.csv", "id,a\nx,1\ny\n", "b.csv, row 2: incorrect number of fields"),
        ("c.csv", "id,a\nx,1\n,2\n", "c.csv, row 2, column id: the row key is NULL"),
        ("d.csv", "id,c\nx,1\n", "d.csv: table t has no column \"c\"; its columns are id, a, b"),
        ("e.csv", "a,b\n1,2\n", "e.csv: the row key of t cannot be built"),
        ("f.csv", "", "f.csv: the file is empty"),
        ("g.csv", "id,A,a\nx,1,2\n", "g.csv: two columns are named \"a\""),
        ("a.json", "{\"id\":\"x\"}\n{\"id\":\"y\",\"a\":1.5}\n", "a.json, row 2, column a: '1.5' is not"),
        ("b.json", "{\"id\":\"x\"}\n{\"id\":\"y\",\"c\":1}\n", "b.json, row 2: column 'c' is not declared"),
        ("c.json", "{\"id\":\"x\"}\n\n{\"id\":", "c.json, row 2: "),
        ("a.parquet", "PAR", "a.parquet: "),
        ("a.arrow", "ARROW1", "a.arrow: "),
    ] {
        let error = import_text(name, text).await.unwrap_err();
        assert!(error.starts_with(expected), "{name}: {error}");
    }
    // A byte that is not UTF-8.
    let dir = Dir::new("utf8");
    let file = dir.write("a.csv", b"id,b\nx,1\ny,\xff\n");
    let error = import(&arguments(&[&file]), &Arc::default()).await.unwrap_err();
    assert!(error.contains("row 2"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn csv_has_options() {
    let dir = Dir::new("csv");
    let file = dir.write("a.tsv", "x\t5\tignored\ny\t\t-\n");
    let names = ["id", "a", "other"].map(String::from).to_vec();
    let mut options = ImportArguments { delimiter: b'\t', columns: Some(names), ..arguments(&[&file]) };
    assert!(import(&options, &Arc::default()).await.unwrap_err().contains("no column \"other\""));
    (options.ignore_unknown, options.timestamp) = (true, Some(7));
    let target = Arc::new(Recorder::default());
    let imported = import(&options, &target).await.unwrap();
    assert_eq!((imported.rows, imported.cells, imported.rows_without_cells), (1, 1, 1));
    assert_eq!(lock(&target.timestamps).first(), Some(&7));
    assert_eq!(delimiter("\\t"), Ok(b'\t'));
    assert!(delimiter("ab").is_err() && delimiter("\"").is_err());
}

/// The first object shows only whether objects have the whole row key or its parts.
#[tokio::test(flavor = "multi_thread")]
async fn json_objects_may_lack_parts_of_the_row_key() {
    let dir = Dir::new("json-key");
    let columns =
        ["region VARCHAR row part 1 by | raw", "day VARCHAR row part 2 by | raw", "a BIGINT f:a bytes_long"];
    let columns = columns.iter().map(|column| DeclaredColumn::from_text(column).unwrap()).collect();
    let declaration = Declaration { columns, ..declaration() };
    let file = dir
        .write("a.json", "{\"a\":1,\"region\":\"x\"}\n{\"day\":\"5\",\"region\":\"x\",\"a\":2,\"more\":0}\n");
    // With this option, an unknown member is skipped. One of the row key never is.
    let options = ImportArguments { ignore_unknown: true, ..arguments(&[&file]) };
    let target = Arc::new(Recorder::default());
    run(&options, &declaration, Arc::clone(&target) as _, 1).await.unwrap();
    let rows: Vec<Bytes> = lock(&target.rows).keys().cloned().collect();
    assert_eq!(rows, ["x", "x|5"]);
}

/// A target whose tasks panic.
struct Panicking;

#[async_trait]
impl Target for Panicking {
    async fn apply(&self, _: &TableName, _: Vec<Mutation>) -> Result<(), (usize, String)> {
        panic!("no such server")
    }
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::disallowed_methods, reason = "a task that panics")]
async fn a_panic_ends_the_import_with_an_error() {
    let dir = Dir::new("panic");
    let file = dir.write("a.csv", "id,a\nx,1\n");
    let error = run(&arguments(&[&file]), &declaration(), Arc::new(Panicking), 1).await.unwrap_err();
    assert!(error.starts_with("internal error: ") && error.contains("no such server"), "{error}");
    // Of a task that waits for the responses, too.
    let ended = tokio::spawn(async { panic!("no such piece") }).await;
    assert!(result_of(ended).unwrap_err().contains("no such piece"));
}

/// Responds to nothing until it has the put of the last row.
struct Waiting {
    last: &'static str,
    has_last: tokio::sync::watch::Sender<bool>,
}

#[async_trait]
impl Target for Waiting {
    async fn apply(&self, _: &TableName, puts: Vec<Mutation>) -> Result<(), (usize, String)> {
        if puts.iter().any(|put| put.row == self.last) {
            self.has_last.send_replace(true);
        }
        let mut has_last = self.has_last.subscribe();
        has_last.wait_for(|has_last| *has_last).await.map(|_| ()).map_err(|error| (0, error.to_string()))
    }
}

/// Pieces are freed when they are converted: otherwise this import would wait for memory forever.
#[tokio::test(flavor = "multi_thread")]
async fn pieces_are_freed_before_the_servers_respond() {
    let dir = Dir::new("freed");
    let (rows, wide) = (60, "x".repeat(400_000));
    assert!(rows * wide.len() > pieces_bytes_max(1));
    let mut text = String::from("id,a,ignored\n");
    (0..rows).for_each(|row| text.push_str(&format!("{row},{row},{wide}\n")));
    let file = dir.write("a.csv", text);
    let options = ImportArguments { ignore_unknown: true, parallel: Some(1), ..arguments(&[&file]) };
    let target = Waiting { last: "59", has_last: tokio::sync::watch::Sender::new(false) };
    let imported = run(&options, &declaration(), Arc::new(target), 1).await.unwrap();
    assert_eq!(imported.rows, rows as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_bounds_bytes() {
    let runtime = Handle::current();
    let checked = tokio::task::spawn_blocking(move || {
        let budget = Budget::new(10 << 10);
        let some = budget.acquire(3 << 10, &runtime).unwrap();
        assert_eq!(budget.permits.available_permits(), 7);
        drop(some);
        // More than the whole budget.
        let all = budget.acquire(1 << 30, &runtime).unwrap();
        assert_eq!(budget.permits.available_permits(), 0);
        drop(all);
    });
    checked.await.unwrap();
}

/// Also if a dictionary replaces long values.
#[test]
fn batches_of_parquet_are_bounded_in_bytes() {
    let dir = Dir::new("parquet-bytes");
    let chunk_bytes = 64 << 10;
    let options = Arc::new(ReadOptions {
        delimiter: b',',
        csv_columns: None,
        json_columns: Vec::new(),
        ignores_unknown: false,
        chunk_bytes,
    });
    for is_repeated in [false, true] {
        let (path, file) = create(&dir, "a.parquet");
        let value = |row: usize| format!("{:04000}", if is_repeated { 7 } else { row });
        let values = StringArray::from_iter_values((0..500).map(value));
        let schema = Arc::new(Schema::new(vec![Field::new("b", DataType::Utf8, false)]));
        let records = RecordBatch::try_new(schema, vec![Arc::new(values)]).unwrap();
        let mut writer = ArrowWriter::try_new(file, records.schema(), None).unwrap();
        writer.write(&records).unwrap();
        writer.close().unwrap();
        let found = files::find(&[path], None).unwrap().remove(0);
        let opened = Arc::new(OpenedFile::new(found, &options).unwrap());
        let mut rows = 0;
        opened
            .for_each_piece(&mut |piece| {
                for batch in piece.batches().unwrap() {
                    let batch = batch.unwrap();
                    assert!(batch.num_rows() * 4000 <= 2 * chunk_bytes, "{} rows", batch.num_rows());
                    rows += batch.num_rows();
                }
                true
            })
            .unwrap();
        assert_eq!(rows, 500, "repeated: {is_repeated}");
    }
}

/// A failed import leaves its state; the next one skips the finished pieces and writes the same
/// timestamp.
#[tokio::test(flavor = "multi_thread")]
async fn an_import_resumes() {
    let (dir, records) = (Dir::new("resume"), records());
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(1000)).build();
    let (file, opened) = create(&dir, "a.parquet");
    let mut writer = ArrowWriter::try_new(opened, records.schema(), Some(properties)).unwrap();
    writer.write(&records).unwrap();
    writer.close().unwrap();
    let state = dir.0.join("state");
    let options = ImportArguments { resume: Some(state.clone()), parallel: Some(1), ..arguments(&[&file]) };
    let target = Arc::new(Recorder { fails_at: Some("row07001"), ..Recorder::default() });
    let error = import(&options, &target).await.unwrap_err();
    assert!(error.contains("a.parquet, row 7002: region is gone"), "{error}");
    assert!(error.contains("the same command resumes"), "{error}");
    assert!(state.exists());
    let first = std::mem::take(&mut *lock(&target.rows));
    let target = Arc::new(Recorder::default());
    let declaration = declaration();
    let imported = run(&options, &declaration, Arc::clone(&target) as _, 5555).await.unwrap();
    // A piece after the failed one may have been finished before the import ended.
    assert!((1..=9).contains(&imported.pieces_skipped), "{imported:?}");
    assert_eq!(lock(&target.timestamps).iter().copied().collect::<Vec<_>>(), [1000]);
    let mut both = first;
    both.extend(std::mem::take(&mut *lock(&target.rows)));
    assert!(both == expected());
    // It removes its state at the end, so the next import begins again.
    assert!(!state.exists());
    assert_eq!(import(&options, &target).await.unwrap().pieces_skipped, 0);
}

/// What is exported is imported as it was, in each format.
#[tokio::test(flavor = "multi_thread")]
async fn exports_are_imported() {
    let (engine, cluster) = engine().await;
    let declaration = engine.catalog.find("t").unwrap().declaration().clone();
    let env = base::testing::env(1);
    for format in [Format::Parquet, Format::Arrow, Format::Csv, Format::Json] {
        let dir = Dir::new(&format!("round-{}", format.extension()));
        let export = |file: PathBuf, format: Option<Format>| ExportArguments {
            table: "t".into(),
            file,
            format,
            options: Vec::new(),
            parallel: Some(2),
            stored: export::StoredArguments::default(),
        };
        let parts = dir.0.join("parts");
        std::fs::create_dir(&parts).unwrap();
        assert_eq!(export::run(&export(parts.clone(), Some(format)), &engine, &env).await.unwrap(), 300);
        // One file for each of the four regions, and no manifest.
        assert_eq!(std::fs::read_dir(&parts).unwrap().count(), 4);
        let single = dir.0.join(format!("all.{}", format.extension()));
        assert_eq!(export::run(&export(single.clone(), None), &engine, &env).await.unwrap(), 300);
        let again = export::run(&export(single.clone(), None), &engine, &env).await.unwrap_err();
        assert!(again.contains("exists"), "{again}");
        let again = export::run(&export(parts.clone(), Some(format)), &engine, &env).await.unwrap_err();
        assert!(again.contains("not empty"), "{again}");
        for path in [parts, single] {
            let target = Arc::new(Recorder::default());
            run(&arguments(&[&path]), &declaration, Arc::clone(&target) as _, 1).await.unwrap();
            for (row, cells) in &cluster.rows {
                let mut cells = cells.clone();
                cells.remove(&("f".into(), "other".into()));
                let found = lock(&target.rows).get(row).cloned().unwrap_or_default();
                assert_eq!(found, cells, "{format:?} {row:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_resumes() {
    let (engine, _) = engine().await;
    let (dir, env) = (Dir::new("export"), base::testing::env(1));
    let arguments = ExportArguments {
        table: "t".into(),
        file: dir.0.join("out/"),
        format: Some(Format::Csv),
        options: Vec::new(),
        parallel: Some(1),
        stored: export::StoredArguments::default(),
    };
    let out = dir.0.join("out");
    std::fs::create_dir(&out).unwrap();
    assert_eq!(export::run(&arguments, &engine, &env).await, Ok(300));
    // As if it had been interrupted after two parts: the others are written again.
    let table = engine.catalog.find("t").unwrap();
    let ranges = table.region_ranges().await.unwrap();
    let header = export::manifest::header(table.declaration(), Format::Csv, None);
    let mut manifest = export::manifest::Manifest::create(&out, &header, ranges).unwrap();
    manifest.record(0, 50).unwrap();
    manifest.record(3, 100).unwrap();
    drop(manifest);
    for name in ["part-00000.csv", "part-00001.csv", "part-00002.csv"] {
        std::fs::remove_file(out.join(name)).unwrap();
    }
    assert_eq!(export::run(&arguments, &engine, &env).await, Ok(300));
    assert!(!out.join("part-00000.csv").exists(), "a finished part is not written again");
    assert!(out.join("part-00001.csv").exists() && out.join("part-00002.csv").exists());
    assert!(!out.join(export::manifest::FILE_NAME).exists());
}
