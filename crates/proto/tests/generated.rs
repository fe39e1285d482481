//! Checks that the checked-in code matches the .proto files.

#[path = "../generate/mod.rs"]
mod generate;

#[test]
#[allow(clippy::disallowed_methods)] // Reads the source tree.
fn generated_code_is_up_to_date() {
    for (target, code) in generate::codes() {
        let checked_in = std::fs::read_to_string(&target).expect("generated code");
        assert!(checked_in == code, "run: cargo run -p proto --example generate");
    }
}
