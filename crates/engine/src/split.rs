//! Split and merge as files: what the regions that come have of the files of those that go.
//!
//! The parents are closed: all they had is in files, which stay where they are. A daughter gets of each file a reference to
//! its side of the split row, a link if all rows are on its side, nothing if none is; a merged region gets references to all
//! of each file. Each directory comes whole or not at all and is durable before its creator returns, so all of this can be
//! done again after a crash.
//!
//! Compaction writes the daughters files of their own. When none has references any more, the parent's files go to the
//! archive; links are followed there.
//!
//! Not here: rows of `hbase:meta`, which region is open where (the master), when to split (`region::split`).
//!
//! Source: HBase `HRegionFileSystem.splitStoreFile`, `mergeStoreFile`, `CatalogJanitor`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::TableDescriptor;
use fs::FileSystem;
use layout::daughter::{Daughter, Share};
use layout::reference::{Range, reference_name};
use layout::{FileLink, Reference, RootDir};

use crate::error::{Error, Result};
use crate::region::{open_files, recovered_edits};
use crate::store::StoreFile;

/// Makes the directories of the two regions that a split puts in the place of `parent`, the lower one first.
///
/// # Errors
/// [`Error::Unsupported`] if the parent has references itself, or edits that are not in files; [`Error::Corrupt`] and
/// [`Error::Fs`]. Calling again goes on from there.
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
    let parted = files_of(fs, root, table, parent).await?;
    if parted.files.iter().any(|(_, file)| file.is_reference()) {
        return Err(unsupported(parent, "references"));
    }
    let max_seq_id = parted.max_seq_id;
    let shares = |share: fn(&RegionInfo, &[u8], &StoreFile, &Bytes) -> Option<Share>| {
        let files = parted.files.iter();
        files
            .filter_map(move |(family, file)| Some((family.clone(), share(parent, family, file, split_row)?)))
    };
    let low = Daughter { info: low.clone(), files: shares(low_share).collect(), max_seq_id };
    let high = Daughter { info: high.clone(), files: shares(high_share).collect(), max_seq_id };
    root.create_daughter(fs, table, &low).await?;
    Ok(root.create_daughter(fs, table, &high).await?)
}

/// Makes the directory of the region that a merge puts in the place of `parents`. References of the parents are taken over,
/// so the files that they refer to must stay as long as the region has references.
///
/// # Errors
/// As for [`create_daughters`]; [`Error::Unsupported`] if parents have different parts of one file that are not next to
/// each other.
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
        let parted = files_of(fs, root, table, parent).await?;
        daughter.max_seq_id = daughter.max_seq_id.max(parted.max_seq_id);
        for (family, file) in &parted.files {
            if !file.is_reference() {
                let name = reference_name(file.name(), parent);
                daughter.files.push((family.clone(), Share::Part { name, reference: whole.clone() }));
                continue;
            }
            let lost =
                || Error::Unsupported { what: format!("a merge with the lost reference {}", file.name()) };
            let reference = root.find_reference(fs, parent, family, file.name()).await?.ok_or_else(lost)?;
            let key = (family.clone(), file.name().to_string());
            let reference = match parts.remove(&key) {
                Some(other) => both(&other, &reference).ok_or_else(|| Error::Unsupported {
                    what: format!("a merge of two parts of {} that are not adjacent", file.name()),
                })?,
                None => reference,
            };
            parts.insert(key, reference);
        }
    }
    let parts =
        parts.into_iter().map(|((family, name), reference)| (family, Share::Part { name, reference }));
    daughter.files.extend(parts);
    Ok(root.create_daughter(fs, table, &daughter).await?)
}

/// Two parts of one file as one part; `None` if rows are between them.
fn both(one: &Reference, other: &Reference) -> Option<Reference> {
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

/// Removes the directories of regions that never served, when a split or a merge is given up. Done already: nothing
/// happens.
///
/// # Errors
/// [`Error::Fs`]; the rest can be done by another call.
pub async fn remove_daughters(fs: &dyn FileSystem, root: &RootDir, daughters: &[&RegionInfo]) -> Result<()> {
    for daughter in daughters {
        root.remove_daughter(fs, daughter).await?;
    }
    Ok(())
}

/// Whether a region still has references to files of its parents. False if it has no directory.
///
/// # Errors
/// [`Error::Fs`].
pub async fn has_references(fs: &dyn FileSystem, root: &RootDir, region: &RegionInfo) -> Result<bool> {
    Ok(root.has_references(fs, region).await?)
}

/// Moves the files of a parent to the archive and removes its directory, when nobody has references to them. When
/// this returns, the directory is gone even after a power cut. Done already, in part or in whole: goes on from there.
///
/// # Errors
/// [`Error::Corrupt`] if the archive has another file of the same name, [`Error::Fs`].
pub async fn archive_region(fs: &dyn FileSystem, root: &RootDir, region: &RegionInfo) -> Result<()> {
    root.archive_region(fs, &region.table, &region.encoded_name()).await?;
    // Its row leaves hbase:meta next: a directory that came back after a crash would be nobody's.
    match fs.sync_dir(&root.table_dir(&region.table)).await {
        Err(fs::Error::NotFound { .. }) => Ok(()), // The table is gone too.
        other => Ok(other?),
    }
}

/// What a parent leaves.
struct Parted {
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
) -> Result<Parted> {
    if !recovered_edits(fs, &root.recovered_edits_dir(parent)).await?.is_empty() {
        return Err(unsupported(parent, "edits that are not in files"));
    }
    let mut parted = Parted { files: Vec::new(), max_seq_id: root.read_max_seq_id(fs, parent).await? };
    let inventory = root.read_inventory(fs, parent).await?;
    for family in table.families.keys() {
        layout::store::check_family(&root.region_dir(parent), family)?;
        for file in open_files(fs, root, None, parent, inventory.as_ref(), family).await? {
            parted.max_seq_id = parted.max_seq_id.max(file.seq_id());
            parted.files.push((family.clone(), file));
        }
    }
    Ok(parted)
}

/// What of a file is before the split row.
fn low_share(parent: &RegionInfo, family: &[u8], file: &StoreFile, split_row: &Bytes) -> Option<Share> {
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

/// What of a file is from the split row on.
fn high_share(parent: &RegionInfo, family: &[u8], file: &StoreFile, split_row: &Bytes) -> Option<Share> {
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

fn whole(parent: &RegionInfo, family: &[u8], file: &StoreFile) -> Option<Share> {
    FileLink::to(parent, family, file.name()).map(Share::Whole)
}

fn part(parent: &RegionInfo, file: &StoreFile, reference: Reference) -> Share {
    Share::Part { name: reference_name(file.name(), parent), reference }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_one_file_are_joined() {
        let check = |one: Reference, other: Reference, expected: Option<Reference>| {
            assert_eq!((both(&one, &other), both(&other, &one)), (expected.clone(), expected));
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
