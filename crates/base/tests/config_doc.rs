//! Checks that `docs/config.md` matches the option declarations. To regenerate it:
//! `REGENERATE=1 cargo test -p base --test config_doc`.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

use std::path::Path;

#[test]
#[allow(clippy::disallowed_methods)] // A repository document, not application data.
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.md");
    let expected = base::config::document();
    if std::env::var_os("REGENERATE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/config.md is stale: REGENERATE=1 cargo test -p base --test config_doc");
}
