//! Regenerates the checked-in code from `proto/*.proto`: `cargo run -p proto --example generate`.

#[path = "../generate/mod.rs"]
mod generate;

#[allow(clippy::disallowed_methods)] // A development tool that writes to the source tree.
fn main() {
    for (target, code) in generate::codes() {
        std::fs::write(target, code).expect("the source tree is writable");
    }
}
