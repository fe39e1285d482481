//! Staging directories of bulk loads: `staging/<user>__<table>__<random>`.
//!
//! A client creates one, and may remove only such a directory. What a crashed client leaves is
//! removed later.
//!
//! Source: HBase `SecureBulkLoadManager`.

use base::env::Random;
use cell::schema::TableName;
use fs::{FilePath, FileSystem};

use crate::{Result, RootDir, file};

/// Digits of the random part: 320 bits in base 32, as in HBase.
const RANDOM_DIGITS: usize = 64;

impl RootDir {
    /// The directory of all staging directories (HBase: `hbase.rootdir`/`staging`).
    pub fn staging_dir(&self) -> FilePath {
        self.path().join("staging")
    }

    /// Creates a staging directory with a new name.
    ///
    /// # Errors
    /// File system errors.
    pub async fn create_staging(
        &self,
        fs: &dyn FileSystem,
        random: &dyn Random,
        user: &str,
        table: &TableName,
    ) -> Result<FilePath> {
        let table = table.to_string().replace(':', "_");
        let name = format!("{}__{table}__{}", file_name_of(user), random_digits(random));
        let dir = self.staging_dir().join(&name);
        fs.make_dirs(&dir).await?;
        Ok(dir)
    }

    /// Whether `dir` is directly below the directory of all staging directories.
    pub fn is_staging(&self, dir: &FilePath) -> bool {
        dir.parent() == self.staging_dir() && !dir.name().is_empty()
    }

    /// All staging directories.
    ///
    /// # Errors
    /// File system errors.
    pub async fn list_staging(&self, fs: &dyn FileSystem) -> Result<Vec<FilePath>> {
        let entries = file::list(fs, &self.staging_dir()).await?.into_iter();
        Ok(entries.filter(|entry| entry.is_dir).map(|entry| self.staging_dir().join(&entry.name)).collect())
    }

    /// Removes a staging directory if nothing has changed in it since `before_ms`, in milliseconds
    /// since the Unix epoch. Returns whether it was removed.
    ///
    /// # Errors
    /// File system errors.
    pub async fn remove_old_staging(
        &self,
        fs: &dyn FileSystem,
        dir: &FilePath,
        before_ms: u64,
    ) -> Result<bool> {
        assert!(self.is_staging(dir), "only staging directories are removed");
        let Some(status) = fs.stat(dir).await? else { return Ok(false) };
        let is_old = newest_change(fs, dir, status.modified_ms).await? < before_ms;
        if is_old {
            fs.delete(dir).await?;
        }
        Ok(is_old)
    }
}

/// The time of the last change of a directory or of anything below it.
async fn newest_change(fs: &dyn FileSystem, dir: &FilePath, modified_ms: u64) -> Result<u64> {
    let (mut newest, mut dirs) = (modified_ms, vec![dir.clone()]);
    while let Some(dir) = dirs.pop() {
        for status in file::list(fs, &dir).await? {
            newest = newest.max(status.modified_ms);
            if status.is_dir {
                dirs.push(dir.join(&status.name));
            }
        }
    }
    Ok(newest)
}

/// A user name without the characters that a file name must not have.
fn file_name_of(user: &str) -> String {
    const NAME_LEN_MAX: usize = 64;
    let legal = |c: char| if c.is_alphanumeric() || "-_.@".contains(c) { c } else { '_' };
    user.chars().take(NAME_LEN_MAX).map(legal).collect()
}

fn random_digits(random: &dyn Random) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let mut text = String::with_capacity(RANDOM_DIGITS);
    while text.len() < RANDOM_DIGITS {
        let mut number = random.next_u64();
        for _ in 0..12 {
            text.push(char::from(DIGITS[(number % 32) as usize]));
            number /= 32;
        }
    }
    text.truncate(RANDOM_DIGITS);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::memory::MemoryFs;

    #[tokio::test]
    async fn only_unchanged_staging_directories_are_removed() {
        let (fs, root) = (MemoryFs::new(), RootDir::new(FilePath::root()));
        let random = base::testing::SeededRandom::new(1);
        let table = TableName::parse("ns:t").unwrap();
        let old = root.create_staging(&fs, &random, "a/b", &table).await.unwrap();
        assert!(old.name().starts_with("a_b__ns_t__"), "{old}");
        assert_eq!(old.name().len(), "a_b__ns_t__".len() + RANDOM_DIGITS);
        assert!(root.is_staging(&old) && !root.is_staging(&root.staging_dir()));
        assert!(!root.is_staging(&old.join("f")) && !root.is_staging(&FilePath::new("data")));
        let now = |fs: &MemoryFs| {
            fs.put(&FilePath::new("clock"), "x");
            let fs = fs.clone();
            async move { fs.stat(&FilePath::new("clock")).await.unwrap().unwrap().modified_ms }
        };
        let before = now(&fs).await;
        let new = root.create_staging(&fs, &random, "u", &table).await.unwrap();
        fs.put(&new.join("f/file"), "cells");
        assert!(root.remove_old_staging(&fs, &old, before).await.unwrap());
        assert!(!root.remove_old_staging(&fs, &old, before).await.unwrap());
        assert!(!root.remove_old_staging(&fs, &new, before).await.unwrap());
        assert_eq!(root.list_staging(&fs).await.unwrap(), std::slice::from_ref(&new));
        assert!(fs.contents(&new.join("f/file")).is_some());
    }
}
