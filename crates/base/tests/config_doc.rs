//! Checks that `docs/config.md` and `docs/sinks.md` match the option declarations. To regenerate
//! them: `REGENERATE=1 cargo test -p base --test config_doc`.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

use std::path::Path;

#[allow(clippy::disallowed_methods)] // Repository documents, not application data.
fn check(name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("REGENERATE").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/{name} is stale: REGENERATE=1 cargo test -p base --test config_doc");
}

#[test]
fn the_pages_are_up_to_date() {
    check("config.md", &base::config::document());
    check("sinks.md", &base::config::sinks_document());
}
