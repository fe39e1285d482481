//! `docs/fidelity.md` lists every method of HBase 2.6 and its support here.
//!
//! The tables are generated from `wire::service::ALL` by
//! `REGENERATE=1 cargo test -p wire --test fidelity_doc`. The text outside the markers is written
//! manually.
#![allow(clippy::disallowed_methods, reason = "reads and writes a page of the repository")]

use std::fmt::Write;

use wire::service::{ALL, Method, Support};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fidelity.md");
const BEGIN: &str = "<!-- tables: begin -->\n";
const END: &str = "<!-- tables: end -->\n";

fn tables() -> String {
    let mut text = String::new();
    for (service, methods) in ALL {
        let working = methods.iter().filter(|method| method.support == Support::Works).count();
        let _ = write!(text, "\n### {service}\n\n{working} of {} methods work.\n\n", methods.len());
        text.push_str("| method | here |\n|---|---|\n");
        for method in *methods {
            let _ = writeln!(text, "| {} | {} |", method.name, answer(method));
        }
    }
    text.push('\n');
    text
}

fn answer(method: &Method) -> String {
    match method.support {
        Support::Works => "works".to_string(),
        Support::Refused(class) => {
            format!("`{}`", class.name.rsplit('.').next().unwrap_or(class.name))
        }
    }
}

#[test]
fn the_page_matches_the_code() {
    let page = std::fs::read_to_string(PAGE).expect("docs/fidelity.md must be readable");
    let (before, rest) = page.split_once(BEGIN).expect("docs/fidelity.md must contain the begin marker");
    let (_, after) = rest.split_once(END).expect("docs/fidelity.md must contain the end marker");
    let wanted = format!("{before}{BEGIN}{}{END}{after}", tables());
    if std::env::var_os("REGENERATE").is_some() {
        std::fs::write(PAGE, &wanted).expect("docs/fidelity.md must be writable");
        return;
    }
    assert!(
        page == wanted,
        "docs/fidelity.md is out of date: REGENERATE=1 cargo test -p wire --test fidelity_doc"
    );
}
