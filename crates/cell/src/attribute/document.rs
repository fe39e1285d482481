//! `docs/attributes.md`, from the rows.

use std::fmt::Write;

use super::form::listed;
use super::{ATTRIBUTES, Attribute, Scope, Treatment};

const HEAD: &str = "\
<!-- Generated from crates/cell/src/attribute/rows.rs: REGENERATE=1 cargo test -p cell --test attributes_doc -->

# Attributes of tables and families

This page lists every attribute and configuration key that a table or a column family may have. The master checks
each of them when a table is created or altered. It refuses a value that the table below does not list with
`DoNotRetryIOException`, which names the attribute, the value and the accepted values.

* **Honoured**: has the effect that it has in HBase.
* **Compatibility only**: stored and returned, without effect. The shell's `describe` reports it if it requests something.
* **Refused**: the server does not do what it requests. Values that request nothing are accepted.

A key that begins with `hbase.`, `hfile.`, `io.hfile.`, `io.storefile.` or `constraint $` and is not listed here is refused.
Any other key is your own metadata, which HBase gives no meaning to: it is stored and returned.

HBase's recommended ranges (for example `MAX_FILESIZE` of at least 2 MiB) can be switched off for a table by
`hbase.table.sanity.checks` = `false`. The accepted values below cannot.

A table that already has an attribute with an invalid value (made by HBase or by an earlier version) is still served. The server logs a
warning at start and uses the attribute's default. Altering such a table does not require you to correct the value first.

";

/// The text of `docs/attributes.md`.
pub fn document() -> String {
    let mut text = HEAD.to_owned();
    section(&mut text, "Honoured", |treatment| matches!(treatment, Treatment::Honoured));
    section(&mut text, "Compatibility only", |treatment| matches!(treatment, Treatment::Compatibility(_)));
    section(&mut text, "Refused", |treatment| matches!(treatment, Treatment::Refused(_)));
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn section(text: &mut String, title: &str, is_wanted: fn(&Treatment) -> bool) {
    // Writing to a text cannot fail.
    let _ = write!(text, "## {title}\n\n| key | of | accepted values | meaning |\n|---|---|---|---|\n");
    for attribute in ATTRIBUTES.iter().filter(|attribute| is_wanted(&attribute.treatment)) {
        let (of, values) = (scope(attribute.scope), values(attribute));
        let _ = writeln!(text, "| `{}` | {of} | {values} | {} |", attribute.name, attribute.doc);
    }
    text.push('\n');
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Table => "table",
        Scope::Family => "family",
        Scope::Both => "family, table",
    }
}

fn values(attribute: &Attribute) -> String {
    match attribute.treatment {
        Treatment::Refused(neutral) => listed(neutral),
        Treatment::Honoured | Treatment::Compatibility(_) => attribute.form.to_string(),
    }
}
