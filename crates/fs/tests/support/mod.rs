//! A directory for one test.

#![allow(dead_code)] // Each test file uses only part of this.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::pool::Pool;
use fs::local::LocalFs;

/// A separate directory, removed when dropped.
pub struct TempDir(PathBuf);

impl TempDir {
    /// An empty directory; `name` must differ between tests.
    pub fn new(name: &str) -> TempDir {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        TempDir(dir)
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The file system in it.
    pub fn fs(&self) -> Arc<LocalFs> {
        Arc::new(LocalFs::new(&self.0, Arc::new(Pool::new("fs", 4))).unwrap())
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
