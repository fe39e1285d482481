//! The optimized build is trained with this program (`xtask/src/optimized.rs`): its arguments must
//! stay valid, because the build itself takes too long for a test.
#![allow(clippy::disallowed_methods, reason = "reads the source tree")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use clap::Parser;
use records::RecordsArguments;

#[test]
fn the_arguments_of_the_training_are_valid() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/src/optimized.rs");
    let source = std::fs::read_to_string(source).unwrap();
    let list = source.split_once("const RECORDS: &[&str] = &[").unwrap().1.split_once("];").unwrap().0;
    let lines: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    assert!(!lines.is_empty());
    for line in lines {
        let words = ["records"].into_iter().chain(line.split(' ')).chain(["--zookeeper", "127.0.0.1:2181"]);
        RecordsArguments::try_parse_from(words).unwrap();
    }
}
