//! Writes the generated code anew from `proto/*.proto`: `cargo run -p proto --example generate`.

#[path = "../generate/mod.rs"]
mod generate;

#[allow(clippy::disallowed_methods)] // Writes into the source tree on the developer's command.
fn main() {
    for (target, code) in generate::codes() {
        std::fs::write(target, code).expect("the source tree can be written");
    }
}
