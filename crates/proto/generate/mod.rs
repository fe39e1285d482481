//! Generates Rust code from `proto/*.proto` without protoc. Used by the example that writes
//! `src/generated.rs` and by the test that checks it.

#![allow(clippy::disallowed_methods)] // A development tool that only reads the source tree.

use std::path::{Path, PathBuf};

/// The protobuf packages, and the path of the generated code of each.
const PACKAGES: [(&str, &str); 3] = [
    ("hbase.pb", "src/generated.rs"),
    ("grampus.pb", "src/grampus.rs"),
    ("org.apache.hadoop.hbase.rest.protobuf.generated", "src/rest.rs"),
];

/// The generated code for the current .proto files, and the path of each.
pub fn codes() -> Vec<(PathBuf, String)> {
    let include = crate_dir().join("proto");
    let mut compiler = protox::Compiler::new([&include]).expect("the proto directory");
    compiler.include_source_info(false);
    for file in proto_files(&include) {
        compiler.open_file(&file).unwrap_or_else(|error| panic!("{file}: {error:?}"));
    }
    let mut config = prost_build::Config::new();
    config.bytes(["."]).extern_path(".google.protobuf.Any", "crate::Any");
    let requests = compiler
        .file_descriptor_set()
        .file
        .into_iter()
        .map(|file| (prost_build::Module::from_protobuf_package_name(file.package()), file))
        .collect();
    let mut modules = config.generate(requests).expect("the proto files are valid");
    let mut code_of = |(package, target): (&str, &str)| {
        let module = prost_build::Module::from_protobuf_package_name(package);
        (crate_dir().join(target), modules.remove(&module).expect("the package"))
    };
    PACKAGES.map(&mut code_of).into()
}

fn proto_files(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("the proto directory");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("an ASCII name"))
        .collect();
    names.sort();
    names
}

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
