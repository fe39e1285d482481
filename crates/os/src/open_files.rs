//! The files that the processes of this machine have open.
#![allow(clippy::disallowed_methods, reason = "/proc is not part of a data directory")]

use std::path::{Path, PathBuf};

/// A file that a process has open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// The process id.
    pub process: u32,
    /// The path of the file.
    pub path: PathBuf,
}

/// The files below `dir` that other processes have open. Processes of other users are visible only
/// to root; they are skipped.
pub fn open_files_below(dir: &Path) -> Vec<OpenFile> {
    let Ok(dir) = std::fs::canonicalize(dir) else { return Vec::new() };
    let mut found = Vec::new();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let Some(id) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if id == std::process::id() {
            continue;
        }
        let descriptors = std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        for descriptor in descriptors {
            let Ok(path) = std::fs::read_link(descriptor.path()) else { continue };
            if path.starts_with(&dir) {
                found.push(OpenFile { process: id, path });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_process_is_found() {
        let dir = std::env::temp_dir().join(format!("open-files-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("log");
        let open = std::fs::File::create(&file).unwrap();
        assert_eq!(open_files_below(&dir), [], "a file of this process does not count");
        let mut other = std::process::Command::new("sleep").arg("60").stdin(open).spawn().unwrap();
        let found = open_files_below(&dir);
        other.kill().unwrap();
        other.wait().unwrap();
        let path = std::fs::canonicalize(&file).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(found, [OpenFile { process: other.id(), path }]);
    }
}
