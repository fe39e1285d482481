//! Checks that the checked-in code matches the .proto files.

#[path = "../generate/mod.rs"]
mod generate;

#[test]
#[allow(clippy::disallowed_methods)] // Reads the source tree.
fn generated_code_is_up_to_date() {
    let checked_in = std::fs::read_to_string(generate::target()).expect("generated code");
    assert!(checked_in == generate::code(), "run: cargo run -p hdfs --example generate_protocol");
}
