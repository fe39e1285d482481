//! References to a part of another region's file: is the part that of their region?

use cell::EndKey;
use cell::region::RegionInfo;
use fs::FileSystem;
use layout::RootDir;
use layout::reference::Range;
use layout::store::ListedFile;

use crate::Result;

/// Whether a reference of `region` divides the file at a row where HBase would divide it: a split
/// at the boundary between the daughters, a merge at the start of the parent that has the file. A
/// damaged reference could hide rows. Files without references are good.
///
/// HBase merges no regions that have references, so a region does not inherit them.
///
/// # Errors
/// File system errors, and a damaged `.regioninfo` of the parent.
pub(crate) async fn is_at_a_boundary(
    fs: &dyn FileSystem,
    root: &RootDir,
    region: &RegionInfo,
    file: &ListedFile,
) -> Result<bool> {
    let Some(reference) = &file.reference else { return Ok(true) };
    let row = &reference.split_row;
    if reference.range == Range::Bottom {
        return Ok(*row == region.end_key);
    }
    if *row == region.start_key {
        return Ok(true);
    }
    let parent = file.target.parent().parent();
    Ok(match root.read_region_info(fs, &region.table, parent.name()).await? {
        Some(parent) => *row == parent.start_key,
        // The file is in the archive, or of another table.
        None => *row > region.start_key && EndKey(&region.end_key).is_after(row),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::schema::TableName;
    use fs::FilePath;
    use fs::memory::MemoryFs;
    use layout::reference::Reference;

    fn region(start: &'static str, end: &'static str) -> RegionInfo {
        RegionInfo::new(TableName::parse("t").unwrap(), start.into(), end.into(), 1)
    }

    async fn is_good(region: &RegionInfo, parent: &RegionInfo, reference: Reference) -> bool {
        let (memory, root) = (MemoryFs::new(), RootDir::new(FilePath::root()));
        let archived = region_of_the_archive();
        if *parent != archived {
            root.write_region_info(&memory, parent).await.unwrap();
        }
        let target = root.family_dir(parent, b"f").join("0123456789abcdef0123456789abcdef");
        let path = root.family_dir(region, b"f").join("name");
        let file = ListedFile {
            path,
            target,
            len: 1,
            modified_ms: 0,
            bulk_load_seq_id: None,
            reference: Some(reference),
        };
        is_at_a_boundary(&memory, &root, region, &file).await.unwrap()
    }

    /// A parent whose directory is not there any more.
    fn region_of_the_archive() -> RegionInfo {
        region("g", "p")
    }

    #[tokio::test]
    async fn splits_and_merges_have_references_at_boundaries() {
        let split = region("d", "p");
        assert!(is_good(&region("d", "h"), &split, Reference::bottom("h")).await);
        assert!(is_good(&region("h", "p"), &split, Reference::top("h")).await);
        assert!(!is_good(&region("d", "h"), &split, Reference::bottom("g")).await);
        assert!(!is_good(&region("h", "p"), &split, Reference::top("i")).await);
        let merged = region("a", "p");
        assert!(is_good(&merged, &region("h", "p"), Reference::top("h")).await);
        assert!(!is_good(&merged, &region("h", "p"), Reference::top("i")).await);
        let archived = region_of_the_archive();
        assert!(is_good(&merged, &archived, Reference::top("g")).await);
        assert!(!is_good(&merged, &archived, Reference::top("q")).await);
    }
}
