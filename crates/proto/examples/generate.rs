//! Writes `src/generated.rs` anew from `proto/*.proto`: `cargo run -p proto --example generate`.

#[path = "../generate/mod.rs"]
mod generate;

#[allow(clippy::disallowed_methods)] // Writes into the source tree on the developer's command.
fn main() {
    std::fs::write(generate::target(), generate::code()).expect("the source tree can be written");
}
