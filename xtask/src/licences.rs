//! Licences of dependencies: each must be compatible with Apache-2.0.

use std::process::Command;

/// SPDX names of licences that may be linked into an Apache-2.0 program.
const ACCEPTED: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
    "MIT-0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "Unlicense",
    "Unicode-3.0",
    // The predecessor of Unicode-3.0, with the same permissions.
    "Unicode-DFS-2016",
    "CC0-1.0",
    "BSL-1.0",
];

/// Fails with a list of the packages whose licence is not accepted.
pub fn check() -> Result<(), String> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .output()
        .map_err(|error| format!("cannot start cargo metadata: {error}"))?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !package["license"].as_str().is_some_and(accepted))
        .map(|package| format!("  {} {}: {}", package["name"], package["version"], package["license"]))
        .collect();
    if refused.is_empty() {
        println!("{} packages, all under accepted licences", packages.len());
        return Ok(());
    }
    Err(format!("licences not on the list in xtask/src/licences.rs:\n{}", refused.join("\n")))
}

/// Whether accepted licences satisfy an SPDX expression: one of the alternatives, all of the
/// conjunctions.
fn accepted(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], " ").replace('/', " OR ");
    plain.split(" AND ").all(|part| part.split(" OR ").any(|licence| ACCEPTED.contains(&licence.trim())))
}

#[cfg(test)]
mod tests {
    use super::accepted;

    #[test]
    fn alternatives_and_conjunctions() {
        assert!(accepted("MIT OR GPL-3.0"));
        assert!(accepted("MIT/Apache-2.0"));
        assert!(accepted("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(!accepted("GPL-3.0"));
        assert!(!accepted("MIT AND GPL-3.0"));
    }
}
