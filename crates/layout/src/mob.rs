//! MOB files: the large values of a table, in files of their own.
//!
//! ```text
//! mobdir/data/<namespace>/<table>/<pseudo region>/<family>/<mob file>
//! mobdir/.tmp/<mob file>                                           being written
//! archive/data/<namespace>/<table>/<pseudo region>/<family>/<mob file>
//! ```
//!
//! All regions of a table share the directories of its *pseudo region*, so a split or merge moves
//! no MOB file. The name of a file ends with the region that wrote it. A cell in a store file
//! refers to a MOB file by table and name. A clone has links in its own directories, which keep the
//! files of the original in the archive.
//!
//! Source: HBase `MobUtils`, `MobFileName`, `MobConstants`.

use std::collections::HashSet;

use base::calendar::CalendarTime;
use base::env::Random;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use fs::{FilePath, FileStatus, FileSystem};

use crate::archive::{move_all, move_files, move_unknown};
use crate::link::FileLink;
use crate::store::{StoreFileName, dir_name, random_name};
use crate::table::LinkedFile;
use crate::{Result, RootDir, file};

/// The start key of the pseudo region (HBase `MobConstants.MOB_REGION_NAME`).
pub const START_KEY: &[u8] = b".mob";
/// Hex digits of the hash of a start key, digits of a date, and hex digits of a random number.
const NAME_LEN: usize = 32 + 8 + 32;
/// Hex digits of an encoded region name.
const REGION_LEN: usize = 32;
/// The end of the last day that a name can have, 9999-12-31, in milliseconds since the epoch.
const LAST_MS: i64 = 2_932_897 * 24 * 3600 * 1000 - 1;

/// The entries of the MOB directories of a table, listed before they are archived.
#[derive(Debug)]
pub(crate) struct MobTableFiles {
    families: Vec<MobFamilyFiles>,
    /// The paths of entries that are not MOB files, below the table's directory.
    unknown: Vec<String>,
}

/// The MOB files of a family.
#[derive(Debug)]
struct MobFamilyFiles {
    /// The name of the family's directory.
    dir: String,
    names: Vec<String>,
}

/// The region whose directories hold the MOB files of a table. It is never online.
pub fn pseudo_region(table: &TableName) -> RegionInfo {
    RegionInfo::new(table.clone(), START_KEY.into(), "".into(), 0)
}

/// Whether a region is the pseudo region of its table.
pub fn is_pseudo_region(region: &RegionInfo) -> bool {
    *region == pseudo_region(&region.table)
}

/// A random name for a new MOB file of `region`. `newest_ms` is the greatest timestamp in it; the
/// name contains its date in UTC (HBase: in the time zone of the server).
pub fn new_name(region: &RegionInfo, newest_ms: i64, random: &dyn Random) -> String {
    // A date that does not fit is moved to the first or last one.
    let CalendarTime { year, month, day, .. } = CalendarTime::from_ms(newest_ms.clamp(0, LAST_MS));
    let start_key = cell::region::md5_hex(&region.start_key);
    format!("{start_key}{year:04}{month:02}{day:02}{}_{}", random_name(random), region.encoded_name())
}

/// The encoded name of the region that wrote a MOB file; `None` if `name` is not that of a MOB
/// file. Files of HBase before 2.5 name no region.
pub fn region_of(name: &str) -> Option<&str> {
    let (own, region) = name.split_at_checked(NAME_LEN)?;
    let region = region.strip_prefix('_')?;
    (is_hex(own) && is_hex(region) && region.len() == REGION_LEN).then_some(region)
}

/// The bare name of the MOB file that an entry of a MOB directory is or links to.
pub fn target_of(name: &str) -> String {
    match StoreFileName::parse(name) {
        Some(StoreFileName::Link { file, .. }) => file,
        _ => name.to_string(),
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl RootDir {
    /// The directory of all MOB files.
    pub fn mob_data_dir(&self) -> FilePath {
        self.path().join("mobdir").join("data")
    }

    /// The directory of unfinished MOB files, which are renamed when they are complete.
    pub fn mob_tmp_dir(&self) -> FilePath {
        self.path().join("mobdir").join(".tmp")
    }

    /// The directory of the MOB files of one family.
    ///
    /// # Panics
    /// If the name has not passed [`store::check_family`](crate::store::check_family).
    pub fn mob_family_dir(&self, table: &TableName, family: &[u8]) -> FilePath {
        self.mob_table_dir(table).join(&pseudo_region(table).encoded_name()).join(dir_name(family))
    }

    /// The MOB files of one family and links to such files, sorted by name.
    ///
    /// # Errors
    /// File system errors.
    pub async fn list_mob_files(
        &self,
        fs: &dyn FileSystem,
        table: &TableName,
        family: &[u8],
    ) -> Result<Vec<FileStatus>> {
        let mut files = file::list(fs, &self.mob_family_dir(table, family)).await?;
        files.retain(|entry| !entry.is_dir);
        files.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(files)
    }

    /// Finds the MOB file `name` of `owner`, to which a cell of a family of `table` refers: among
    /// the files of the owner, in the archive, or by a link of `table`. `None` if there is none.
    ///
    /// # Errors
    /// File system errors.
    pub async fn find_mob_file(
        &self,
        fs: &dyn FileSystem,
        table: &TableName,
        owner: &TableName,
        family: &[u8],
        name: &str,
    ) -> Result<Option<FilePath>> {
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return Ok(None);
        }
        let archive = self.archive_family_dir(&pseudo_region(owner), family);
        for dir in [self.mob_family_dir(owner, family), archive] {
            let path = dir.join(name);
            // A link is empty; the file that it points to is found by the link's name.
            if fs.stat(&path).await?.is_some_and(|status| status.len > 0) {
                return Ok(Some(path));
            }
        }
        for entry in self.list_mob_files(fs, table, family).await? {
            let Some(link) = FileLink::parse(&entry.name, family) else { continue };
            if target_of(&entry.name) == name
                && let Some((path, _)) = link.find(self, fs).await?
            {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Moves a complete MOB file from the directory of unfinished files to its family. On return,
    /// the move is durable.
    ///
    /// # Errors
    /// File system errors. The file may then be in either directory, or in both.
    pub async fn commit_mob_file(
        &self,
        fs: &dyn FileSystem,
        table: &TableName,
        family: &[u8],
        name: &str,
    ) -> Result<FilePath> {
        let dir = self.mob_family_dir(table, family);
        fs.make_dirs(&dir).await?;
        let path = dir.join(name);
        fs.rename(&self.mob_tmp_dir().join(name), &path).await?;
        fs.sync_dir(&dir).await?;
        Ok(path)
    }

    /// Removes the unfinished MOB files of a region, which must not be open.
    ///
    /// # Errors
    /// File system errors.
    pub async fn remove_unfinished_mob_files(&self, fs: &dyn FileSystem, region: &RegionInfo) -> Result<()> {
        let (dir, encoded) = (self.mob_tmp_dir(), region.encoded_name());
        for entry in file::list(fs, &dir).await? {
            if region_of(&entry.name) == Some(&encoded) {
                fs.delete(&dir.join(&entry.name)).await?;
            }
        }
        Ok(())
    }

    /// Moves MOB files of a family to the archive. Files that are there already stay. On return,
    /// the move is durable.
    ///
    /// # Errors
    /// As for [`RootDir::archive_store_files`].
    pub async fn archive_mob_files(
        &self,
        fs: &dyn FileSystem,
        table: &TableName,
        family: &[u8],
        names: &[&str],
    ) -> Result<()> {
        let (from, to) =
            (self.mob_family_dir(table, family), self.archive_family_dir(&pseudo_region(table), family));
        move_files(fs, &from, &to, names).await
    }

    /// Moves all MOB files of a family to the archive and removes their directory.
    ///
    /// # Errors
    /// File system errors; another call can finish the move.
    pub async fn archive_mob_family(
        &self,
        fs: &dyn FileSystem,
        table: &TableName,
        family: &[u8],
    ) -> Result<()> {
        let dir = self.mob_family_dir(table, family);
        if fs.stat(&dir).await?.is_none() {
            return Ok(());
        }
        move_all(fs, &dir, &self.archive_family_dir(&pseudo_region(table), family)).await?;
        fs.delete(&dir).await?;
        Ok(fs.sync_dir(&dir.parent()).await?)
    }

    /// Moves all MOB files of a table to the archive and removes their directories.
    ///
    /// # Errors
    /// File system errors; another call can finish the move.
    pub async fn archive_mob_table(&self, fs: &dyn FileSystem, table: &TableName) -> Result<()> {
        let files = self.list_mob_table(fs, table).await?;
        self.archive_mob_files_of_table(fs, table, &files).await
    }

    /// Lists the entries of the MOB directories of a table.
    pub(crate) async fn list_mob_table(
        &self,
        fs: &dyn FileSystem,
        table: &TableName,
    ) -> Result<MobTableFiles> {
        let (dir, region) = (self.mob_table_dir(table), pseudo_region(table).encoded_name());
        let region_dir = dir.join(&region);
        let (mut families, mut unknown) = (Vec::new(), Vec::new());
        for entry in file::list(fs, &dir).await? {
            if !entry.is_dir || entry.name != region {
                unknown.push(entry.name);
            }
        }
        for entry in file::list(fs, &region_dir).await? {
            let path = format!("{region}/{}", entry.name);
            if !entry.is_dir {
                unknown.push(path);
                continue;
            }
            let entries = file::list(fs, &region_dir.join(&entry.name)).await?;
            let (dirs, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.is_dir);
            unknown.extend(dirs.into_iter().map(|dir| format!("{path}/{}", dir.name)));
            let names = files.into_iter().map(|file| file.name).collect();
            families.push(MobFamilyFiles { dir: entry.name, names });
        }
        Ok(MobTableFiles { families, unknown })
    }

    /// Moves the listed entries of a table's MOB directories to the archive, and removes the
    /// directories. Entries that were not listed may be those of the next table of this name, so
    /// they stay, and this is an error.
    pub(crate) async fn archive_mob_files_of_table(
        &self,
        fs: &dyn FileSystem,
        table: &TableName,
        files: &MobTableFiles,
    ) -> Result<()> {
        let dir = self.mob_table_dir(table);
        if fs.stat(&dir).await?.is_none() {
            return Ok(());
        }
        let archive = self.archive_region_dir(table, &pseudo_region(table).encoded_name());
        let region_dir = dir.join(&pseudo_region(table).encoded_name());
        for path in &files.unknown {
            move_unknown(fs, &dir.join(path), &archive.parent().join(path)).await?;
        }
        for family in &files.families {
            let from = region_dir.join(&family.dir);
            let names: Vec<&str> = family.names.iter().map(String::as_str).collect();
            move_files(fs, &from, &archive.join(&family.dir), &names).await?;
            fs.delete_empty_dir(&from).await?;
        }
        fs.delete_empty_dir(&region_dir).await?;
        fs.delete_empty_dir(&dir).await?;
        Ok(fs.sync_dir(&dir.parent()).await?)
    }

    /// Moves the MOB files of the families that the table does not have to the archive, and removes
    /// their directories.
    ///
    /// # Errors
    /// File system errors; another call can finish the move.
    pub(crate) async fn archive_mob_files_of_other_families(
        &self,
        fs: &dyn FileSystem,
        table: &TableDescriptor,
    ) -> Result<()> {
        let kept: HashSet<&str> = table.families.keys().map(|family| dir_name(family)).collect();
        let region_dir = self.mob_table_dir(&table.name).join(&pseudo_region(&table.name).encoded_name());
        for entry in file::list(fs, &region_dir).await? {
            if entry.is_dir && !kept.contains(&*entry.name) {
                self.archive_mob_family(fs, &table.name, entry.name.as_bytes()).await?;
            }
        }
        Ok(())
    }

    /// Creates the links of a clone or a restored table to MOB files, each after its back
    /// reference. A file that a restored table has itself gets a link too, because it may be
    /// archived at the same time.
    ///
    /// # Errors
    /// File system errors; another call can create the rest.
    pub async fn link_mob_files(&self, fs: &dyn FileSystem, links: &[LinkedFile]) -> Result<()> {
        let mut dirs = HashSet::new();
        for linked in links {
            let dir = self.mob_family_dir(&linked.region.table, &linked.family);
            let name = linked.link.name();
            if fs.stat(&dir.join(&name)).await?.is_some() {
                continue;
            }
            linked.link.add_back_reference(self, fs, &linked.region).await?;
            fs.make_dirs(&dir).await?;
            file::write(fs, &dir.join(&name), bytes::Bytes::new()).await?;
            dirs.insert(dir);
        }
        for dir in dirs {
            fs.sync_dir(&dir).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::memory::MemoryFs;

    /// A file name that HBase wrote for a region of the table `tmob`.
    const HBASES: &str = "d41d8cd98f00b204e9800998ecf8427e202611219812ec50130e49fba9c872a2d9293c2e_cc778303028abebb54520d2a4d0819d1";

    fn table(name: &str) -> TableName {
        TableName::parse(name).unwrap()
    }

    #[test]
    fn names_and_directories_are_hbases() {
        assert_eq!(pseudo_region(&table("tmob")).encoded_name(), "ab5bcdab0c48cb6c574e1bec7664e109");
        assert_eq!(region_of(HBASES), Some("cc778303028abebb54520d2a4d0819d1"));
        let dir = RootDir::new(FilePath::new("r")).mob_family_dir(&table("tmob"), b"f");
        assert_eq!(dir.as_str(), "r/mobdir/data/default/tmob/ab5bcdab0c48cb6c574e1bec7664e109/f");
        let region = RegionInfo::new(table("t"), "".into(), "".into(), 7);
        let name = new_name(&region, 1_795_219_928_393, &base::testing::SeededRandom::new(1));
        assert_eq!(name[..40], HBASES[..40], "the hash of the empty key, and the date");
        assert_eq!(region_of(&name), Some(&*region.encoded_name()));
        for other in ["", "ab", &HBASES[..72], &HBASES.replace('_', "-"), &format!("{HBASES}0")] {
            assert_eq!(region_of(other), None, "{other}");
        }
        assert!(is_pseudo_region(&pseudo_region(&table("n:t"))) && !is_pseudo_region(&region));
    }

    #[test]
    fn a_name_has_the_date_of_its_newest_cell() {
        const DAY_MS: i64 = 24 * 3600 * 1000;
        let region = RegionInfo::new(table("t"), "".into(), "".into(), 7);
        let date = |ms| new_name(&region, ms, &base::testing::SeededRandom::new(1))[32..40].to_string();
        let end_of = |day: i64| date(day * DAY_MS + DAY_MS - 1);
        for (day, expected) in
            [(0, "19700101"), (58, "19700228"), (789, "19720229"), (11_016, "20000229"), (20_454, "20260101")]
        {
            assert_eq!(end_of(day), expected);
        }
        assert_eq!(
            (date(LAST_MS), date(i64::MAX), date(i64::MIN)),
            ("99991231".into(), "99991231".into(), "19700101".into())
        );
    }

    #[tokio::test]
    async fn a_file_is_found_in_its_table_in_the_archive_and_by_a_link() {
        let (root, fs) = (RootDir::new(FilePath::root()), MemoryFs::new());
        let (owner, clone) = (table("tmob"), table("n:clone"));
        let find = async |name: &str| root.find_mob_file(&fs, &clone, &owner, b"f", name).await.unwrap();
        fs.make_dirs(&root.mob_tmp_dir()).await.unwrap();
        fs.put(&root.mob_tmp_dir().join(HBASES), b"values".to_vec());
        assert_eq!(find(HBASES).await, None, "unfinished");
        let path = root.commit_mob_file(&fs, &owner, b"f", HBASES).await.unwrap();
        assert_eq!(find(HBASES).await, Some(path));
        let link = FileLink::to(&pseudo_region(&owner), b"f", HBASES).unwrap();
        let linked = LinkedFile { region: pseudo_region(&clone), family: "f".into(), link, reference: None };
        root.link_mob_files(&fs, &[linked.clone(), linked]).await.unwrap();
        root.archive_mob_table(&fs, &owner).await.unwrap();
        let archived = root.archive_family_dir(&pseudo_region(&owner), b"f").join(HBASES);
        assert_eq!(find(HBASES).await, Some(archived.clone()));
        assert!(root.is_linked(&fs, &archived).await.unwrap());
        let [file] = &root.archived_files(&fs).await.unwrap()[..] else { panic!("one file") };
        assert!(root.needed_files(&fs).await.unwrap().contains(file));
        // The name in the cell of another owner leads to the link's target.
        let by_link = root.find_mob_file(&fs, &clone, &table("gone"), b"f", HBASES).await.unwrap();
        assert_eq!(by_link, Some(archived));
        assert_eq!(find("../x").await, None);
        root.archive_mob_table(&fs, &clone).await.unwrap();
        assert!(root.list_mob_files(&fs, &clone, b"f").await.unwrap().is_empty());
        assert!(!root.needed_files(&fs).await.unwrap().contains(file), "no link is left");
    }

    #[tokio::test]
    async fn unfinished_files_of_a_region_are_removed() {
        let (root, fs) = (RootDir::new(FilePath::root()), MemoryFs::new());
        let region = RegionInfo::new(table("t"), "a".into(), "".into(), 7);
        let random = base::testing::SeededRandom::new(1);
        let names = [new_name(&region, 5, &random), HBASES.to_string()];
        fs.make_dirs(&root.mob_tmp_dir()).await.unwrap();
        names.iter().for_each(|name| fs.put(&root.mob_tmp_dir().join(name), b"x".to_vec()));
        root.remove_unfinished_mob_files(&fs, &region).await.unwrap();
        let left: Vec<_> = fs.list(&root.mob_tmp_dir()).await.unwrap().into_iter().map(|e| e.name).collect();
        assert_eq!(left, [HBASES]);
    }
}
