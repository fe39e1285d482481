//! Checks of the system's limits at start: each that is too low for a server, or for its store
//! files, is reported in one line.

use base::config::Config;
use fs::FileSystem;
use layout::RootDir;
use rustix::process::{Resource, getrlimit};

/// Descriptors that every server needs for ports, logs, runtimes, some connections, and files being
/// written.
const FILES_MIN: u64 = 128;
/// Descriptors of the runtimes of one core.
const FILES_PER_CORE: u64 = 16;
/// At this limit of open files or more, store files are not counted at start.
const FILES_AMPLE: u64 = 32 << 10;
/// Address space that the process takes in addition to `grampus.memory`: code, stacks, and reserved
/// but unused addresses.
const ADDRESS_BYTES: u64 = 1 << 30;

/// Raises the limit of open files, checks it and the limit of address space, and returns how many
/// files may be open.
///
/// # Errors
/// One line that states which limit is too low and what is needed.
pub(crate) fn check(config: &Config, cores: usize) -> Result<u64, String> {
    let memory = config.memory_parts(base::memory::limit_bytes()).total;
    if let Some(limit) = getrlimit(Resource::As).current {
        check_addresses(limit, memory)?;
    }
    let (files, needed) = (os::raise_open_files(), FILES_MIN + FILES_PER_CORE * cores as u64);
    if files < needed {
        return Err(format!(
            "the limit of open files is {files}, and at least {needed} are needed: raise it (ulimit -n, LimitNOFILE)"
        ));
    }
    Ok(files)
}

fn check_addresses(limit: u64, memory: u64) -> Result<(), String> {
    let needed = memory + ADDRESS_BYTES;
    if limit >= needed {
        return Ok(());
    }
    Err(format!(
        "the limit of address space is {} MiB, and {} MiB are needed, of which {} are grampus.memory: raise it (ulimit \
         -v, prlimit --as), or lower grampus.memory",
        limit >> 20,
        needed.div_ceil(1 << 20),
        memory >> 20
    ))
}

/// Returns a warning if `files` descriptors are not enough for all store files of the directory.
pub(crate) async fn check_store_files(fs: &dyn FileSystem, root: &RootDir, files: u64) -> Option<String> {
    if files >= FILES_AMPLE {
        return None;
    }
    // Errors of listing are reported where the files are opened.
    let (stores, found) = count_store_files(fs, root).await.unwrap_or_default();
    // A flush or compaction of a store has one more file open, which it writes. Two run at a time,
    // but tables are flushed region by region, and each region gets one more file.
    let needed = FILES_MIN + found + stores;
    (files < needed).then(|| {
        format!(
            "The limit of open files is {files}; {needed} are needed for {found} store files in {stores} stores and \
             connections. Raise it (ulimit -n, LimitNOFILE), or regions may fail to open and flushes fail."
        )
    })
}

/// Counts the stores' directories and the files in them.
async fn count_store_files(fs: &dyn FileSystem, root: &RootDir) -> fs::Result<(u64, u64)> {
    let (mut stores, mut files) = (0, 0);
    // Namespace, table, region, family.
    let mut level = vec![root.data_dir()];
    for _ in 0..4 {
        let mut next = Vec::new();
        for dir in level {
            let entries = fs.list(&dir).await?;
            let dirs = entries.into_iter().filter(|entry| entry.is_dir && !entry.name.starts_with('.'));
            next.extend(dirs.map(|entry| dir.join(&entry.name)));
        }
        level = next;
    }
    for family in level.iter().filter(|dir| dir.name() != layout::region::RECOVERED_EDITS) {
        stores += 1;
        files += fs.list(family).await?.iter().filter(|entry| !entry.is_dir).count() as u64;
    }
    Ok((stores, files))
}

#[cfg(test)]
mod tests {
    use fs::FilePath;
    use fs::memory::MemoryFs;

    use super::*;

    #[test]
    fn an_address_space_limit_error_names_the_needed_size() {
        assert_eq!(check_addresses(4 << 30, 1 << 30), Ok(()));
        let error = check_addresses(4 << 30, 4 << 30).unwrap_err();
        assert!(error.contains("4096 MiB") && error.contains("5120 MiB"), "{error}");
    }

    #[tokio::test]
    async fn files_of_all_stores_are_counted() {
        let (fs, root) = (MemoryFs::new(), RootDir::new(FilePath::root()));
        for region in 0..30 {
            for file in 0..5 {
                fs.put(&FilePath::new(&format!("data/default/t/{region:032}/f/{file}")), "x");
            }
            fs.put(&FilePath::new(&format!("data/default/t/{region:032}/.tmp/f/x")), "x");
        }
        let warning = check_store_files(&fs, &root, 256).await.unwrap();
        assert!(warning.contains("308 are needed for 150 store files in 30 stores"), "{warning}");
        assert_eq!(check_store_files(&fs, &root, 308).await, None);
    }
}
