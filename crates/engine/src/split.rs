//! Splits and merges at the file level: which files of the parents the new regions get.
//!
//! The parents are closed, so all their edits are in files, which stay where they are. For each
//! file, a daughter gets a reference to its side of the split row, a link if all rows are on its
//! side, or nothing if none are. A merged region gets a reference to each whole file of its
//! parents. It inherits the parents' references, and two adjacent parts of one file become one
//! reference. Each directory appears completely or not at all, and is durable before its creator
//! returns. All of this can therefore be repeated after a crash.
//!
//! Compaction writes the daughters' own files. When no daughter has references any more, the
//! parent's files move to the archive, where links still find them.
//!
//! Not here: rows of `hbase:meta` and which region is open where (the master), and when to split
//! (`region::split`).
//!
//! Source: HBase `HRegionFileSystem.splitStoreFile`, `mergeStoreFile`, `CatalogJanitor`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::TableDescriptor;
use fs::FileSystem;
use layout::daughter::{Daughter, DaughterFile};
use layout::reference::{Range, reference_name};
use layout::{FileLink, Reference, RenameTracker, RootDir};

use crate::error::{Error, Result};
use crate::region::{open_files, recovered_edits};
use crate::store::StoreFile;

/// Creates the directories of the two regions that replace `parent` in a split, the lower one
/// first.
///
/// # Errors
/// [`Error::Unsupported`] if the parent itself has references, or edits that are not in files;
/// [`Error::Corrupt`] and [`Error::Fs`]. A repeated call continues where the failed one stopped.
pub async fn create_daughters(
    fs: &dyn FileSystem,
    root: &RootDir,
    table: &TableDescriptor,
    parent: &RegionInfo,
    daughters: [&RegionInfo; 2],
) -> Result<()> {
    let [low, high] = daughters;
    let split_row = &high.start_key;
    assert!(!split_row.is_empty() && low.end_key == *split_row, "a split row lies between the daughters");
    debug_assert!(
        low.start_key == parent.start_key && high.end_key == parent.end_key,
        "the daughters have all rows of the parent, and no others"
    );
    let parent_files = files_of(fs, root, table, parent).await?;
    if parent_files.files.iter().any(|(_, file)| file.is_reference()) {
        return Err(unsupported(parent, "references"));
    }
    let max_seq_id = parent_files.max_seq_id;
    let shares = |share: fn(&RegionInfo, &[u8], &StoreFile, &Bytes) -> Option<DaughterFile>| {
        let files = parent_files.files.iter();
        files
            .filter_map(move |(family, file)| Some((family.clone(), share(parent, family, file, split_row)?)))
    };
    let low = Daughter { info: low.clone(), files: shares(low_share).collect(), max_seq_id };
    let high = Daughter { info: high.clone(), files: shares(high_share).collect(), max_seq_id };
    root.create_daughter(fs, table, &low).await?;
    Ok(root.create_daughter(fs, table, &high).await?)
}

/// Creates the directory of the region that replaces `parents` in a merge. It inherits their
/// references, so the referenced files must stay as long as the region has references.
///
/// # Errors
/// As for [`create_daughters`]; [`Error::Unsupported`] if parents have different parts of one file
/// that are not adjacent.
pub async fn create_merged(
    fs: &dyn FileSystem,
    root: &RootDir,
    table: &TableDescriptor,
    parents: &[RegionInfo],
    merged: &RegionInfo,
) -> Result<()> {
    let mut daughter = Daughter { info: merged.clone(), files: Vec::new(), max_seq_id: 0 };
    let mut parts: BTreeMap<(Bytes, String), Reference> = BTreeMap::new();
    for parent in parents {
        let whole = Reference::top(parent.start_key.clone());
        let parent_files = files_of(fs, root, table, parent).await?;
        daughter.max_seq_id = daughter.max_seq_id.max(parent_files.max_seq_id);
        for (family, file) in &parent_files.files {
            if !file.is_reference() {
                let name = reference_name(file.name(), parent);
                daughter.files.push((family.clone(), DaughterFile::Part { name, reference: whole.clone() }));
                continue;
            }
            let lost =
                || Error::Unsupported { what: format!("a merge with the missing reference {}", file.name()) };
            let reference = root.find_reference(fs, parent, family, file.name()).await?.ok_or_else(lost)?;
            let key = (family.clone(), file.name().to_string());
            let reference = match parts.remove(&key) {
                Some(other) => combined(&other, &reference).ok_or_else(|| Error::Unsupported {
                    what: format!("a merge of two parts of {} that are not adjacent", file.name()),
                })?,
                None => reference,
            };
            parts.insert(key, reference);
        }
    }
    let parts =
        parts.into_iter().map(|((family, name), reference)| (family, DaughterFile::Part { name, reference }));
    daughter.files.extend(parts);
    Ok(root.create_daughter(fs, table, &daughter).await?)
}

/// Joins two parts of one file into one; `None` if there are rows between them.
fn combined(one: &Reference, other: &Reference) -> Option<Reference> {
    let (low, high) =
        (one.split_row.clone().min(other.split_row.clone()), (&one.split_row).max(&other.split_row));
    match (one.range, other.range) {
        (Range::Top, Range::Top) => Some(Reference::top(low)),
        (Range::Bottom, Range::Bottom) => Some(Reference::bottom(high.clone())),
        (Range::Top, Range::Bottom) if one.split_row <= other.split_row => Some(Reference::top(Bytes::new())),
        (Range::Bottom, Range::Top) if other.split_row <= one.split_row => Some(Reference::top(Bytes::new())),
        _ => None,
    }
}

/// Removes the directories of regions that never served, when a split or a merge is rolled back.
/// Missing directories are ignored.
///
/// # Errors
/// [`Error::Fs`]. A repeated call continues where the failed one stopped.
pub async fn remove_daughters(fs: &dyn FileSystem, root: &RootDir, daughters: &[&RegionInfo]) -> Result<()> {
    for daughter in daughters {
        root.remove_daughter(fs, daughter).await?;
    }
    Ok(())
}

/// Whether a region still has references to files of its parents; false if it has no directory.
///
/// # Errors
/// [`Error::Fs`].
pub async fn has_references(fs: &dyn FileSystem, root: &RootDir, region: &RegionInfo) -> Result<bool> {
    Ok(root.has_references(fs, region).await?)
}

/// Moves the files of a parent to the archive and removes its directory. No region may have
/// references to them. When this returns, the directory is gone even after a power loss. A repeated
/// call continues where an earlier one stopped.
///
/// # Errors
/// [`Error::Corrupt`] if the archive has another file of the same name, [`Error::Fs`].
pub async fn archive_region(fs: &dyn FileSystem, root: &RootDir, region: &RegionInfo) -> Result<()> {
    root.archive_region(fs, &region.table, &region.encoded_name()).await?;
    // Its row leaves hbase:meta next. A directory that reappeared after a crash would belong to no
    // region.
    match fs.sync_dir(&root.table_dir(&region.table)).await {
        Err(fs::Error::NotFound { .. }) => Ok(()), // The table is gone too.
        other => Ok(other?),
    }
}

/// The files of a parent, and its greatest sequence id.
struct ParentFiles {
    files: Vec<(Bytes, Arc<StoreFile>)>,
    max_seq_id: u64,
}

fn unsupported(parent: &RegionInfo, what: &str) -> Error {
    let what = format!("a split or merge of region {}, which has {what},", parent.encoded_name());
    Error::Unsupported { what }
}

async fn files_of(
    fs: &dyn FileSystem,
    root: &RootDir,
    table: &TableDescriptor,
    parent: &RegionInfo,
) -> Result<ParentFiles> {
    if !recovered_edits(fs, &root.recovered_edits_dir(parent)).await?.is_empty() {
        return Err(unsupported(parent, "edits that are not in files"));
    }
    let mut parent_files =
        ParentFiles { files: Vec::new(), max_seq_id: root.read_max_seq_id(fs, parent).await? };
    let inventory = root.read_inventory(fs, parent).await?;
    for family in table.families.keys() {
        layout::store::check_family(&root.region_dir(parent), family)?;
        let opened = open_files(&RenameTracker, fs, root, None, parent, inventory.as_ref(), family).await?;
        for file in opened.files {
            parent_files.max_seq_id = parent_files.max_seq_id.max(file.seq_id());
            parent_files.files.push((family.clone(), file));
        }
    }
    Ok(parent_files)
}

/// The part of a file before the split row; `None` without such rows.
fn low_share(
    parent: &RegionInfo,
    family: &[u8],
    file: &StoreFile,
    split_row: &Bytes,
) -> Option<DaughterFile> {
    let (first, last) = (file.reader().first_row()?, file.reader().last_row()?);
    let order = file.reader().order();
    if order.compare_rows(split_row, first).is_le() {
        return None;
    }
    match order.compare_rows(split_row, last).is_gt() {
        true => whole(parent, family, file),
        false => Some(part(parent, file, Reference::bottom(split_row.clone()))),
    }
}

/// The part of a file from the split row on; `None` without such rows.
fn high_share(
    parent: &RegionInfo,
    family: &[u8],
    file: &StoreFile,
    split_row: &Bytes,
) -> Option<DaughterFile> {
    let (first, last) = (file.reader().first_row()?, file.reader().last_row()?);
    let order = file.reader().order();
    if order.compare_rows(split_row, last).is_gt() {
        return None;
    }
    match order.compare_rows(split_row, first).is_le() {
        true => whole(parent, family, file),
        false => Some(part(parent, file, Reference::top(split_row.clone()))),
    }
}

fn whole(parent: &RegionInfo, family: &[u8], file: &StoreFile) -> Option<DaughterFile> {
    FileLink::to(parent, family, file.name()).map(DaughterFile::Whole)
}

fn part(parent: &RegionInfo, file: &StoreFile, reference: Reference) -> DaughterFile {
    DaughterFile::Part { name: reference_name(file.name(), parent), reference }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_one_file_are_combined() {
        let check = |one: Reference, other: Reference, expected: Option<Reference>| {
            assert_eq!((combined(&one, &other), combined(&other, &one)), (expected.clone(), expected));
        };
        let (top, bottom) =
            (|row: &'static str| Reference::top(row), |row: &'static str| Reference::bottom(row));
        check(bottom("c"), top("c"), Some(top("")));
        check(bottom("f"), top("c"), Some(top("")));
        check(bottom("c"), top("f"), None);
        check(top("c"), top("f"), Some(top("c")));
        check(bottom("c"), bottom("f"), Some(bottom("f")));
    }
}
