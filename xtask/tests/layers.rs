//! Crates are layers: an arrow points down or does not exist.
#![allow(clippy::disallowed_methods)]

use std::process::Command;

/// Crates from the ground up; each uses only crates of earlier rows. Drawn in docs/ARCHITECTURE.md.
const LAYERS: &[&[&str]] = &[
    &["base"],
    &["cell", "columnar", "cache", "fs", "javaregex"],
    &["proto"],
    &["wire", "layout", "hfile", "wal", "rpc", "zk"],
    &["engine"],
    &["client", "coprocessor"],
    &["master", "regionserver"],
    &["cli", "web", "sinks"],
    &["server"],
];

/// Members that no layer may use: tools and tests.
const ASIDE: &[&str] = &["xtask", "limits"];

fn layer(name: &str) -> usize {
    LAYERS
        .iter()
        .position(|row| row.contains(&name))
        .unwrap_or_else(|| panic!("{name} is in no layer: give it its place in LAYERS"))
}

#[test]
fn crates_depend_only_downward() {
    for (user, used) in workspace_edges() {
        assert!(!ASIDE.contains(&used.as_str()), "{user} uses {used}, which stands aside");
        assert!(layer(&used) < layer(&user), "{user} uses {used}: move the shared part down");
    }
}

/// Every (user, used) pair of workspace crates, test-only dependencies left out: a test may look up.
fn workspace_edges() -> Vec<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .output()
        .expect("cargo metadata runs");
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let names: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    assert!(names.len() > LAYERS.len(), "the workspace was read");
    let mut edges = Vec::new();
    for package in packages {
        let user = package["name"].as_str().expect("a name");
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let used = dependency["name"].as_str().expect("a name");
            if dependency["kind"] != "dev" && names.contains(&used) && !ASIDE.contains(&user) {
                edges.push((user.to_string(), used.to_string()));
            }
        }
    }
    edges
}
