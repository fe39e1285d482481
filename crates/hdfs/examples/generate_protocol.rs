//! Regenerates the checked-in code from `proto/*.proto`:
//! `cargo run -p hdfs --example generate_protocol`.

#[path = "../generate/mod.rs"]
mod generate;

#[allow(clippy::disallowed_methods)] // A development tool that writes to the source tree.
fn main() {
    std::fs::write(generate::target(), generate::code()).expect("the source tree is writable");
}
