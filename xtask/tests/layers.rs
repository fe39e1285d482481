//! Crates form layers: each depends only on crates of lower layers, and does not contain the words
//! of what it knows nothing about.
#![allow(clippy::disallowed_methods)] // Reads the source tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates from the lowest layer up. Each depends only on crates of earlier rows. The table in
/// docs/ARCHITECTURE.md has the same layers.
const LAYERS: &[&[&str]] = &[
    &["base"],
    &["cell", "columnar", "cache", "fs", "javaregex", "os", "manual"],
    &["proto", "hdfs", "ssdcache", "tiers"],
    &["wire", "layout", "hfile", "wal", "rpc", "zk"],
    &["engine"],
    &["client", "analytics", "printers"],
    &["coprocessor"],
    &["master", "regionserver"],
    &["adoption", "roles", "cli", "web", "sinks"],
    &["console", "fsck", "rest", "thrift"],
    &["server", "sim"],
];

/// Members that no layer may use: tools and tests.
const ASIDE: &[&str] = &["xtask", "limits", "records"];

fn layer(name: &str) -> usize {
    LAYERS
        .iter()
        .position(|row| row.contains(&name))
        .unwrap_or_else(|| panic!("{name} is in no layer: add it to LAYERS"))
}

#[test]
fn crates_depend_only_downward() {
    for (user, used) in workspace_edges() {
        assert!(!ASIDE.contains(&used.as_str()), "{user} uses {used}, which is not part of any layer");
        assert!(layer(&used) < layer(&user), "{user} uses {used}: move the shared part down");
    }
}

/// All (user, used) pairs of workspace crates without test-only dependencies, which may point up.
fn workspace_edges() -> Vec<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .output()
        .expect("cargo metadata runs");
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let names: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    assert!(names.len() > LAYERS.len(), "the workspace was read");
    let mut edges = Vec::new();
    for package in packages {
        let user = package["name"].as_str().expect("a name");
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let used = dependency["name"].as_str().expect("a name");
            if dependency["kind"] != "dev" && names.contains(&used) && !ASIDE.contains(&user) {
                edges.push((user.to_string(), used.to_string()));
            }
        }
    }
    edges
}

/// Words that must not occur in the code of a crate (comments and tests do not count), because the
/// crate knows nothing about what they stand for.
const FORBIDDEN_WORDS: &[(&str, &[&str])] = &[
    ("base", &["hfile::", "prost", "RegionInfo", "KeyValue"]),
    ("cell", &["prost", "FileSystem", "TcpStream", "rpc::"]),
    ("columnar", &["prost", "FileSystem", "Region"]),
    ("cache", &["hfile", "decode"]),
    ("javaregex", &["HBase", "Scan"]),
    ("os", &["FileSystem", "HBase"]),
    ("manual", &["grampus", "HBase", "base::"]),
    ("fs", &["hfile", "HFile", "Segment", "KeyValue"]),
    ("ssdcache", &["hfile", "HFile", "Region", "decompress"]),
    ("proto", &["FileSystem", "TcpStream", "tokio"]),
    ("hdfs", &["HFile", "KeyValue", "Region", "TcpStream"]),
    ("tiers", &["HFile", "KeyValue", "Region", "LocalFs"]),
    ("wire", &["FileSystem", "TcpStream", "tokio"]),
    ("layout", &["hfile::", "wal::", "Cursor", "org.apache"]),
    ("hfile", &["Region", "BlockCache", "org.apache.hadoop.hbase.regionserver"]),
    ("wal", &["Memstore"]),
    ("rpc", &["TableName", "RegionInfo", "regionserver"]),
    ("zk", &["RegionInfo", "TableName"]),
    (
        "engine",
        &["prost", "proto::", "TcpStream", "ookeeper", "org.apache", "columnar::", "Packed", "Vector"],
    ),
    ("analytics", &["prost", "proto::", "TcpStream", "FileSystem", "Memstore", "RegionServer"]),
    ("printers", &["engine::", "LocalFs", "println!"]),
    ("coprocessor", &["TcpStream", "rpc::"]),
    ("client", &["engine::", "regionserver::", "master::"]),
    ("master", &["memstore::", "hfile::", "regionserver::"]),
    ("regionserver", &["master::"]),
    ("adoption", &["base::config", "TcpStream", "LocalFs", "println!"]),
    ("fsck", &["base::config", "TcpStream", "LocalFs", "println!"]),
    ("roles", &["base::config", "TcpStream", "LocalFs", "println!"]),
    ("cli", &["engine::", "regionserver::", "master::"]),
    ("web", &["RegionServer", "engine::", "org.apache"]),
    ("sinks", &["RegionServer", "engine::"]),
    ("console", &["<html", "TcpStream"]),
    ("rest", &["TcpStream", "RegionServer", "engine::", "rpc::"]),
    ("thrift", &["TcpStream", "RegionServer", "engine::", "rpc::"]),
    ("server", &["org.apache"]),
    ("sim", &["LocalFs", "TcpStream", "SystemTime", "Instant::now", "org.apache"]),
];

/// Crates that may name Java classes outside tests: exceptions, codecs, compressors, endpoints,
/// filters and attributes that the protocol or a table names by class.
const NAME_JAVA_CLASSES: &[&str] = &[
    "base",
    "cell",
    "cli",
    "console",
    "coprocessor",
    "hdfs",
    "hfile",
    "master",
    "printers",
    "proto",
    "regionserver",
    "rest",
    "rpc",
    "sinks",
    "thrift",
    "wal",
    "wire",
];

/// The source files of the crate in a directory of the workspace, without tests.
fn sources_of(dir: &str) -> Vec<PathBuf> {
    fn collect(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            let is_test = path.file_stem().is_some_and(|stem| stem == "tests" || stem == "testing");
            match path.is_dir() {
                _ if is_test => {}
                true => collect(&path, found),
                false => found.push(path),
            }
        }
    }
    let mut found = Vec::new();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    collect(&workspace.join(dir).join("src"), &mut found);
    found.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    found
}

#[test]
fn sql_reads_files_in_one_place_only() {
    let of_servers = ["adoption::", "analytics::", "engine::", "layout::"];
    let sources = sources_of("sql");
    assert!(sources.len() > 20, "the sources were found");
    for path in sources.iter().filter(|path| !path.ends_with("stored.rs")) {
        let code = code_of(path);
        for word in of_servers {
            assert!(!code.contains(word), "{}: {word}", path.display());
        }
    }
}

/// The code of a source file, without comments and unit tests.
fn code_of(path: &Path) -> String {
    let source = fs::read_to_string(path).expect("a source file");
    let code = source.split("\n#[cfg(test)]\n").next().expect("a first part");
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    code.lines()
        .filter(is_code)
        .map(|line| line.split(" // ").next().unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_crate_has_no_words_of_what_it_knows_nothing_about() {
    let layered: Vec<&str> = LAYERS.concat();
    let mut faults = Vec::new();
    for name in &layered {
        let rule = FORBIDDEN_WORDS.iter().find(|(listed, _)| listed == name);
        let (_, words) =
            rule.unwrap_or_else(|| panic!("{name} has no forbidden words: say what it knows nothing about"));
        for path in sources_of(&format!("crates/{name}")) {
            let code = code_of(&path);
            let names_class = !NAME_JAVA_CLASSES.contains(name) && code.contains("org.apache.hadoop");
            let found = words.iter().filter(|word| code.contains(**word));
            faults.extend(found.map(|word| format!("{}: {word}", path.display())));
            faults.extend(names_class.then(|| format!("{}: a Java class", path.display())));
        }
    }
    assert!(faults.is_empty(), "words that do not belong here:\n{}", faults.join("\n"));
}

#[test]
fn the_documentation_has_the_same_layers() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let page = fs::read_to_string(workspace.join("docs/ARCHITECTURE.md")).expect("the page");
    for (layer, names) in LAYERS.iter().enumerate() {
        for name in *names {
            let row = format!("| {layer} | `{name}` |");
            assert!(page.contains(&row), "docs/ARCHITECTURE.md has no row that begins with: {row}");
        }
    }
}
