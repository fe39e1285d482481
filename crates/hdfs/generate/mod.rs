//! Generates Rust code from `proto/*.proto` without protoc. Used by the example that writes
//! `src/generated.rs` and by the test that checks it.

#![allow(clippy::disallowed_methods)] // A development tool that only reads the source tree.

use std::path::{Path, PathBuf};

const FILES: [&str; 4] = ["Rpc.proto", "NameNode.proto", "DataNode.proto", "DataTransfer.proto"];

/// The path of the generated code.
pub fn target() -> PathBuf {
    crate_dir().join("src/generated.rs")
}

/// The generated code for the current .proto files.
pub fn code() -> String {
    let mut compiler = protox::Compiler::new([crate_dir().join("proto")]).expect("the proto directory");
    compiler.include_source_info(false);
    for file in FILES {
        compiler.open_file(file).unwrap_or_else(|error| panic!("{file}: {error:?}"));
    }
    let mut config = prost_build::Config::new();
    config.bytes(["."]);
    let module = |package: &str| prost_build::Module::from_protobuf_package_name(package);
    let files = compiler.file_descriptor_set().file;
    let requests = files.into_iter().map(|file| (module(file.package()), file)).collect();
    let mut modules = config.generate(requests).expect("the proto files are valid");
    modules.remove(&module("hadoop")).expect("the package")
}

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
