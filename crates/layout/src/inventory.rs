//! The inventory of a region: which store files must be in its directory. A directory alone does not tell that a file is
//! missing; without the inventory, reads of the region would be silently shorter.
//!
//! It is the content of the region's sequence id file, `recovered.edits/<id>.seqid`. HBase reads the names of these files
//! only, and makes another, empty one when it closes the region. So the inventory is gone as soon as HBase has changed the
//! region's files.
//!
//! ```text
//! store files of a region, format 1
//! f/03b7e9d0c1a24c5e8f6a7b8c9d0e1f20
//! crc32c 9a1b2c3d
//! ```

use std::collections::BTreeSet;

use base::checksum::crc32c;
use bytes::Bytes;
use cell::region::RegionInfo;
use fs::FileSystem;
use tracing::{info, warn};

use crate::region::highest_seq_id_file;
use crate::{Error, Result, RootDir, corrupt, file, store};

const HEADER: &str = "store files of a region, format 1";
const CHECKSUM: &str = "crc32c ";

/// The names of the store files of a region: `FAMILY/FILE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    names: BTreeSet<String>,
}

impl Inventory {
    /// Adds a file of a family.
    pub fn add(&mut self, family: &[u8], file: &str) {
        self.names.insert(format!("{}/{file}", store::dir_name(family)));
    }

    /// The names of a family's files.
    pub fn of_family(&self, family: &[u8]) -> impl Iterator<Item = &str> {
        let prefix = format!("{}/", store::dir_name(family));
        self.names.iter().filter_map(move |name| name.strip_prefix(&prefix))
    }

    /// The content of its file.
    pub(crate) fn encode(&self) -> Bytes {
        let mut text = format!("{HEADER}\n");
        for name in &self.names {
            text.push_str(name);
            text.push('\n');
        }
        let checksum = crc32c(text.as_bytes());
        text.push_str(&format!("{CHECKSUM}{checksum:08x}\n"));
        text.into()
    }

    /// What a file's content says; `None` if it is damaged.
    fn decode(content: &[u8]) -> Option<Inventory> {
        let text = std::str::from_utf8(content).ok()?;
        let end = text.rfind(CHECKSUM)?;
        let (body, checksum) = text.split_at(end);
        if checksum != format!("{CHECKSUM}{:08x}\n", crc32c(body.as_bytes())) {
            return None;
        }
        let mut lines = body.lines();
        let is_whole = lines.next() == Some(HEADER) && lines.clone().all(is_name);
        is_whole.then(|| Inventory { names: lines.map(String::from).collect() })
    }
}

/// Whether a line is `FAMILY/FILE`: a checksum does not keep a path from leading out of the directory.
fn is_name(line: &str) -> bool {
    let parts = line.split_once('/');
    parts.is_some_and(|(family, file)| {
        store::family_dir_name(family.as_bytes()).is_some()
            && !file.contains('/')
            && store::StoreFileName::parse(file).is_some()
    })
}

impl RootDir {
    /// The inventory of a region; `None` if it has none, because HBase served it last or it was never opened. A damaged
    /// one counts as none: it is not a reason to keep files closed that are there.
    ///
    /// # Errors
    /// What the file system said.
    pub async fn read_inventory(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
    ) -> Result<Option<Inventory>> {
        let dir = self.recovered_edits_dir(region);
        let Some(name) = highest_seq_id_file(fs, &dir).await? else { return Ok(None) };
        let path = dir.join(&name);
        let content = match file::read(fs, &path).await {
            // A higher sequence id took its place.
            Err(Error::Fs(fs::Error::NotFound { .. })) => return Ok(None),
            content => content?,
        };
        if content.is_empty() {
            return Ok(None);
        }
        let inventory = Inventory::decode(&content);
        if inventory.is_none() {
            warn!(file = %path, "the inventory of a region is damaged; missing store files would not be noticed");
        }
        Ok(inventory)
    }

    /// Replaces the inventory of a region; `None` removes it. A region without a sequence id file was never opened, and
    /// stays without an inventory. A file must be in its directory before it is in the inventory, and must leave the
    /// inventory before it leaves the directory.
    ///
    /// # Errors
    /// What the file system said; the inventory is then the old or the new one.
    pub async fn write_inventory(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
        inventory: Option<&Inventory>,
    ) -> Result<()> {
        let dir = self.recovered_edits_dir(region);
        let Some(name) = highest_seq_id_file(fs, &dir).await? else { return Ok(()) };
        let tmp_dir = self.region_tmp_dir(region);
        fs.make_dirs(&tmp_dir).await?;
        let content = inventory.map_or(Bytes::new(), Inventory::encode);
        file::replace(fs, &tmp_dir.join(&name), &dir.join(&name), content).await
    }

    /// Checks that the store of a family has all files of `inventory`, which is that of its region. `files` are those that
    /// it has, `replaced` those that others replace. A file that is in the archive is not missing: HBase moved it there. A
    /// file that the inventory lacks shows that the directory is newer, and then nothing is checked.
    ///
    /// # Errors
    /// [`Error::Corrupt`] naming the first missing file.
    pub async fn check_whole(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
        family: &[u8],
        inventory: &Inventory,
        (files, replaced): (&[&str], &[&str]),
    ) -> Result<()> {
        let listed: BTreeSet<&str> = inventory.of_family(family).collect();
        let is_directory_newer = files.iter().any(|file| !listed.contains(file));
        let (dir, archive) = (self.family_dir(region, family), self.archive_family_dir(region, family));
        for name in listed.into_iter().filter(|name| !files.contains(name) && !replaced.contains(name)) {
            let path = dir.join(name);
            if !is_directory_newer && fs.stat(&archive.join(name)).await?.is_none() {
                return Err(corrupt(&path, "this store file is missing or empty"));
            }
            info!(file = %path, "another server has replaced this store file");
        }
        Ok(())
    }

    /// Takes files of a family out of a region's inventory, if they are in it.
    pub(crate) async fn forget_files(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
        family: &[u8],
        files: &[&str],
    ) -> Result<()> {
        let Some(mut inventory) = self.read_inventory(fs, region).await? else { return Ok(()) };
        let dir = store::dir_name(family);
        let removed = files.iter().filter(|file| inventory.names.remove(&format!("{dir}/{file}"))).count();
        if removed > 0 {
            self.write_inventory(fs, region, Some(&inventory)).await?;
        }
        Ok(())
    }

    /// Takes all files of a family out of a region's inventory.
    pub(crate) async fn forget_family(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
        family: &[u8],
    ) -> Result<()> {
        let Some(inventory) = self.read_inventory(fs, region).await? else { return Ok(()) };
        let files: Vec<&str> = inventory.of_family(family).collect();
        self.forget_files(fs, region, family, &files).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Inventory {
        let mut inventory = Inventory::default();
        inventory.add(b"f", "ab");
        inventory.add(b"f", "cd");
        inventory.add(b"fg", "ef");
        inventory
    }

    #[test]
    fn what_is_written_is_read() {
        for inventory in [Inventory::default(), sample()] {
            assert_eq!(Inventory::decode(&inventory.encode()), Some(inventory));
        }
        assert_eq!(sample().of_family(b"f").collect::<Vec<_>>(), ["ab", "cd"]);
    }

    #[test]
    fn names_that_leave_the_directory_are_refused() {
        for name in ["../../x", "f/..", "f/../x=ab-cd", "f/a/b", "/ab", "ab", "f/"] {
            let inventory = Inventory { names: [name.to_string()].into() };
            assert_eq!(Inventory::decode(&inventory.encode()), None, "{name}");
        }
    }

    #[test]
    fn a_changed_or_missing_byte_is_noticed() {
        let content = sample().encode();
        for at in 0..content.len() {
            let mut changed = content.to_vec();
            changed[at] ^= 0x10;
            assert_eq!(Inventory::decode(&changed), None, "byte {at}");
            assert_eq!(Inventory::decode(&content[..at]), None, "{at} bytes");
        }
    }
}
