//! Completes COPY statements: a name without a trailing slash is one file, and the end of a name
//! also states the compression of text.

use std::path::Path;

use datafusion::common::config::ConfigOptions;
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::common::plan_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::parser::Statement;

use crate::import::compression::Compression;
use crate::import::files::Format;

/// DataFusion's option for one file. Without it, a name without an extension is a directory.
const SINGLE_FILE: &str = "single_file_output";
/// The option for the compression of CSV and JSON, and for that within Parquet.
const COMPRESSION: &str = "format.compression";
/// Ends of names of compressed files that an import could not read.
const UNSUPPORTED: [&str; 5] = ["bz2", "xz", "lz4", "br", "zip"];

/// Completes the options of COPY.
#[derive(Debug)]
pub struct CompleteCopy;

impl AnalyzerRule for CompleteCopy {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let completed = plan.transform_up(|part| match part {
            LogicalPlan::Copy(copy) => Ok(Transformed::yes(LogicalPlan::Copy(completed(copy)?))),
            other => Ok(Transformed::no(other)),
        });
        completed.data()
    }

    fn name(&self) -> &str {
        "grampus_completes_copy"
    }
}

/// Adds the format to a statement without STORED AS whose file name ends with a compression.
pub fn with_format(mut statement: Statement) -> Statement {
    if let Statement::CopyTo(copy) = &mut statement
        && copy.stored_as.is_none()
        && let (Compression::Gzip | Compression::Zstd, name) = Compression::of_name(Path::new(&copy.target))
    {
        copy.stored_as = Format::of_name(name).map(|format| format.extension().to_ascii_uppercase());
    }
    statement
}

fn completed(mut copy: CopyTo) -> Result<CopyTo> {
    let path = Path::new(&copy.output_url);
    if copy.output_url.ends_with('/') || path.is_dir() || !copy.partition_by.is_empty() {
        return Ok(copy);
    }
    if let Some(compression) = compression(&copy, path)? {
        copy.options.insert(COMPRESSION.into(), compression.to_string());
    }
    copy.options.insert(SINGLE_FILE.into(), "true".into());
    Ok(copy)
}

/// The compression that the name of a file states, if the options do not state it.
fn compression(copy: &CopyTo, path: &Path) -> Result<Option<CompressionTypeVariant>> {
    let shown = path.display();
    let given = copy.options.get(COMPRESSION);
    let is_text = matches!(&copy.file_type.get_ext()[..], "csv" | "json");
    let named = match Compression::of_name(path).0 {
        Compression::Gzip => CompressionTypeVariant::GZIP,
        Compression::Zstd => CompressionTypeVariant::ZSTD,
        Compression::None => {
            let end = path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase());
            return match end.filter(|end| given.is_none() && UNSUPPORTED.contains(&&end[..])) {
                Some(end) => plan_err!("{shown}: cannot compress as .{end}; use .gz or .zst"),
                None => Ok(None),
            };
        }
    };
    match given {
        _ if !is_text => {
            plan_err!("{shown}: only CSV and JSON can end with .gz or .zst; Parquet is compressed within")
        }
        None => Ok(Some(named)),
        Some(given) if given.parse::<CompressionTypeVariant>().is_ok_and(|given| given == named) => Ok(None),
        Some(given) => plan_err!("{shown}: its name states {named}, but format.compression is {given}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::export;
    use crate::statements::{Engine, Outcome, user_message};
    use crate::tests::{csv_export, directory, engine};

    async fn run(engine: &Engine, sql: &str) -> Result<(), String> {
        for statement in Engine::parse(sql).unwrap() {
            let outcome = engine.run(statement).await.map_err(|error| user_message(&error))?;
            if let Outcome::Rows(rows) = outcome {
                rows.collect().await.map_err(|error| user_message(&error))?;
            }
        }
        Ok(())
    }

    /// The lines of a file, decompressed as its name states.
    #[allow(clippy::disallowed_methods, reason = "a test's own files")]
    fn lines(path: &Path) -> usize {
        let file = std::fs::File::open(path).unwrap();
        let mut text = String::new();
        Compression::of_name(path).0.reader(file).unwrap().read_to_string(&mut text).unwrap();
        text.lines().count()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn names_state_the_compression() {
        let (engine, _) = engine().await;
        let (dir, env) = (directory("compression"), base::testing::env(1));
        for name in ["a.csv.gz", "b.csv.zst", "c.csv"] {
            let file = dir.join(name);
            assert_eq!(export::run(&csv_export(file.clone()), &engine, &env).await, Ok(300), "{name}");
            assert_eq!(lines(&file), 301, "{name}");
        }
        for (name, format) in [("d.csv.gz", "CSV"), ("e.json.zstd", "JSON")] {
            let file = dir.join(name);
            run(&engine, &format!("COPY t TO '{}' STORED AS {format}", file.display())).await.unwrap();
            assert_eq!(lines(&file), if format == "CSV" { 301 } else { 300 }, "{name}");
        }
        let file = dir.join("f.json.gz");
        run(&engine, &format!("COPY t TO '{}'", file.display())).await.unwrap();
        assert_eq!(lines(&file), 300);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn names_that_contradict_the_content_are_rejected() {
        let (engine, _) = engine().await;
        let dir = directory("rejected");
        for (end, expected) in [
            ("a.csv.gz' STORED AS CSV OPTIONS ('format.compression' 'zstd')", "its name states GZIP"),
            ("a.csv.bz2' STORED AS CSV", "cannot compress as .bz2"),
            ("a.parquet.gz' STORED AS PARQUET", "only CSV and JSON"),
            ("a.arrow.zst'", "only CSV and JSON"),
        ] {
            let error = run(&engine, &format!("COPY t TO '{}/{end}", dir.display())).await.unwrap_err();
            assert!(error.contains(expected), "{end}: {error}");
        }
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_name_without_an_extension_is_one_file() {
        let (engine, _) = engine().await;
        let (dir, env) = (directory("extension"), base::testing::env(1));
        assert_eq!(export::run(&csv_export(dir.join("exported")), &engine, &env).await, Ok(300));
        assert_eq!(lines(&dir.join("exported")), 301);
        run(&engine, &format!("COPY t TO '{}/copied' STORED AS CSV", dir.display())).await.unwrap();
        assert_eq!(lines(&dir.join("copied")), 301);
        run(&engine, &format!("COPY t TO '{}/directory/' STORED AS CSV", dir.display())).await.unwrap();
        assert!(dir.join("directory").is_dir());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
