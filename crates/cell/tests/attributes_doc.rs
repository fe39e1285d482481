//! Checks that `docs/attributes.md` matches the rows of `cell::attribute`. To regenerate it:
//! `REGENERATE=1 cargo test -p cell --test attributes_doc`.

#![allow(clippy::unwrap_used)] // Tests fail by panicking.

use std::path::Path;

#[test]
#[allow(clippy::disallowed_methods)] // A documentation page, not data.
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/attributes.md");
    let expected = cell::attribute::document();
    if std::env::var_os("REGENERATE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/attributes.md is outdated: REGENERATE=1 cargo test -p cell --test attributes_doc"
    );
}
