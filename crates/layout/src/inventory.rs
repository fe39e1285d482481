//! The inventory of a region: the store files that must be in its directory. A directory listing
//! alone cannot show that a file is missing. Without the inventory, reads of the region would
//! silently lack data.
//!
//! The inventory is the content of the region's sequence id file, `recovered.edits/<id>.seqid`.
//! HBase reads only the names of these files, and creates a new, empty one when it closes the
//! region. So the inventory disappears as soon as HBase changes the region's files.
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

    /// The content of the inventory's file.
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

    /// Parses a file's content; `None` if it is corrupt.
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

/// Whether a line is `FAMILY/FILE`. A valid checksum does not rule out a path that leaves the
/// directory.
fn is_name(line: &str) -> bool {
    let parts = line.split_once('/');
    parts.is_some_and(|(family, file)| {
        store::family_dir_name(family.as_bytes()).is_some()
            && !file.contains('/')
            && store::StoreFileName::parse(file).is_some()
    })
}

impl RootDir {
    /// The inventory of a region; `None` if HBase served it last or it was never opened. A corrupt
    /// inventory counts as none: it is no reason to refuse files that exist.
    ///
    /// # Errors
    /// File system errors.
    pub async fn read_inventory(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
    ) -> Result<Option<Inventory>> {
        let dir = self.recovered_edits_dir(region);
        let Some(name) = highest_seq_id_file(fs, &dir).await? else { return Ok(None) };
        let path = dir.join(&name);
        let content = match file::read(fs, &path).await {
            // A higher sequence id replaced it.
            Err(Error::Fs(fs::Error::NotFound { .. })) => return Ok(None),
            content => content?,
        };
        if content.is_empty() {
            return Ok(None);
        }
        let inventory = Inventory::decode(&content);
        if inventory.is_none() {
            warn!(file = %path, "region inventory is corrupt; missing store files will not be detected");
        }
        Ok(inventory)
    }

    /// Replaces the inventory of a region; `None` removes it. A region without a sequence id file
    /// was never opened and gets no inventory. Add a file to its directory before adding it to the
    /// inventory. Remove it from the inventory before removing it from the directory.
    ///
    /// # Errors
    /// File system errors; the inventory is then the old or the new one.
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
        debug_assert!(
            inventory.is_none_or(|inventory| Inventory::decode(&content).as_ref() == Some(inventory)),
            "a written inventory can be read back"
        );
        file::replace(fs, &tmp_dir.join(&name), &dir.join(&name), content).await
    }

    /// Checks that the store of a family has all files of its region's `inventory`. `files` are the
    /// files that the store has, `replaced` those superseded by other files. A file in the archive
    /// is not missing: HBase moved it there. If the store has a file that the inventory lacks, the
    /// directory is newer and nothing is checked.
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

    /// Removes files of a family from a region's inventory, if they are in it.
    pub(crate) async fn remove_from_inventory(
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

    /// Removes all files of a family from a region's inventory.
    pub(crate) async fn remove_family_from_inventory(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
        family: &[u8],
    ) -> Result<()> {
        let Some(inventory) = self.read_inventory(fs, region).await? else { return Ok(()) };
        let files: Vec<&str> = inventory.of_family(family).collect();
        self.remove_from_inventory(fs, region, family, &files).await
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
    fn written_contents_are_read_back() {
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
    fn a_changed_or_missing_byte_is_detected() {
        let content = sample().encode();
        for at in 0..content.len() {
            let mut changed = content.to_vec();
            changed[at] ^= 0x10;
            assert_eq!(Inventory::decode(&changed), None, "byte {at}");
            assert_eq!(Inventory::decode(&content[..at]), None, "{at} bytes");
        }
    }
}
