//! Store files: their names, and listing the files of a store.
//!
//! Source: HBase `StoreFileInfo`, `HFileLink`, and `isLegalColumnFamilyName` of
//! `ColumnFamilyDescriptorBuilder`.

use base::env::Random;
use cell::cell::FAMILY_LEN_MAX;
use cell::region::RegionInfo;
use fs::{FilePath, FileStatus, FileSystem};
use tracing::warn;

use crate::link::FileLink;
use crate::reference::Reference;
use crate::{Error, Result, RootDir, corrupt, file, mob, tracker};

/// The parsed name of a store file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreFileName {
    /// A file with the store's own data. A bulk load puts its sequence id into the name.
    Own {
        /// The sequence id of a bulk load.
        bulk_load_seq_id: Option<u64>,
    },
    /// A reference to a part of a file of another region: `<file>.<region>`.
    Reference {
        /// The name of the referenced file, which may be a link.
        file: String,
        /// The encoded name of the region that owns the referenced file.
        region: String,
    },
    /// A link to a file of another table: `[<namespace>=]<table>=<region>-<file>`.
    Link {
        /// The namespace and table of the linked file, as spelled in the link's name.
        table: String,
        /// The encoded name of the region that owns the linked file.
        region: String,
        /// The name of the linked file.
        file: String,
    },
}

impl StoreFileName {
    /// Parses a name; `None` if it is not a store file name.
    pub fn parse(name: &str) -> Option<StoreFileName> {
        if let Some(bulk_load_seq_id) = parse_own(name) {
            return Some(StoreFileName::Own { bulk_load_seq_id });
        }
        if let Some((table, region, file)) = parse_link(name) {
            return Some(StoreFileName::Link {
                table: table.into(),
                region: region.into(),
                file: file.into(),
            });
        }
        let (file, region) = name.rsplit_once('.')?;
        let is_file = parse_own(file).is_some() || parse_link(file).is_some();
        (is_file && is_hex(region))
            .then(|| StoreFileName::Reference { file: file.into(), region: region.into() })
    }
}

/// Parses `[0-9a-f]+(?:(?:_SeqId_[0-9]+_)|(?:_del))?`, or the name of a MOB file, and returns the
/// sequence id in it, if any.
fn parse_own(name: &str) -> Option<Option<u64>> {
    if mob::region_of(name).is_some() {
        return Some(None);
    }
    let (hex, suffix) = name.find('_').map_or((name, ""), |at| name.split_at(at));
    if !is_hex(hex) {
        return None;
    }
    match suffix {
        "" | "_del" => Some(None),
        _ => Some(Some(
            suffix
                .strip_prefix("_SeqId_")?
                .strip_suffix('_')
                .filter(|text| is_decimal(text))?
                .parse()
                .ok()?,
        )),
    }
}

/// Parses `[<namespace>=]<table>=<region>-<file>`.
fn parse_link(name: &str) -> Option<(&str, &str, &str)> {
    let (table, rest) = name.rsplit_once('=')?;
    let (region, file) = rest.split_once('-')?;
    (!table.is_empty() && is_hex(region) && parse_own(file).is_some()).then_some((table, region, file))
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A random name for a new file: 32 hex digits.
pub fn random_name(random: &dyn Random) -> String {
    format!("{:016x}{:016x}", random.next_u64(), random.next_u64())
}

/// A store file in a directory listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// Its path in the store's directory.
    pub path: FilePath,
    /// The path of the file that has its data: another file for a link or a reference.
    pub target: FilePath,
    /// Size of the target in bytes, even if a reference covers only a part of it. 0 if the disk
    /// that has its bytes is missing.
    pub len: u64,
    /// Modification time, in milliseconds since the epoch.
    pub modified_ms: u64,
    /// The sequence id that a bulk load gave it.
    pub bulk_load_seq_id: Option<u64>,
    /// The part of the target that belongs to the store; `None` for the whole target.
    pub reference: Option<Reference>,
}

impl RootDir {
    /// Lists the store files of a region's family, sorted by name. Skips, with a warning, empty
    /// files and files whose names are not those of store files. A file on a missing disk is
    /// listed, and cannot be opened.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the store uses HBase's `FILE` store file tracker, which lists the
    /// files in a separate file. [`Error::Corrupt`] if the store has a link or a reference to a
    /// missing file: the store would be incomplete.
    pub async fn list_store_files(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
        family: &[u8],
    ) -> Result<Vec<ListedFile>> {
        let dir = self.family_dir(region, family);
        let mut files = Vec::new();
        for status in file::list(fs, &dir).await? {
            if status.is_dir && status.name == tracker::LIST_DIR {
                let what = "the FILE store file tracker".to_string();
                return Err(Error::Unsupported { file: dir.join(&status.name), what });
            }
            if !status.is_dir {
                files.extend(self.describe_store_file(fs, region, family, status).await?);
            }
        }
        Ok(files)
    }

    /// Describes one store file of a family. Returns `None`, with a warning, if the file is empty
    /// or its name is not that of a store file.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a link or a reference to a missing file.
    pub async fn describe_store_file(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
        family: &[u8],
        status: FileStatus,
    ) -> Result<Option<ListedFile>> {
        let path = self.family_dir(region, family).join(&status.name);
        let (file, reference) = match StoreFileName::parse(&status.name) {
            // A link to a file on a missing disk has the length 0. The store needs that file.
            Some(StoreFileName::Own { bulk_load_seq_id }) if status.len > 0 || status.link.is_some() => {
                let (len, modified_ms, target) = (status.len, status.modified_ms, path.clone());
                let reference = None;
                return Ok(Some(ListedFile { path, target, len, modified_ms, bulk_load_seq_id, reference }));
            }
            Some(StoreFileName::Link { file, .. }) => (file, None),
            Some(StoreFileName::Reference { file, .. }) => {
                (file, Some(self.read_reference(fs, &path).await?))
            }
            Some(StoreFileName::Own { .. }) | None => {
                warn!(file = %path, len = status.len, "skipping a file that is empty or not a store file");
                return Ok(None);
            }
        };
        let (target, status) = self.resolve(fs, region, family, &path).await?;
        let (len, modified_ms) = (status.len, status.modified_ms);
        let bulk_load_seq_id = bulk_load_seq_id(&file);
        Ok(Some(ListedFile { path, target, len, modified_ms, bulk_load_seq_id, reference }))
    }

    /// Finds the current path of the file to which a link or a reference points.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if that file does not exist.
    pub async fn resolve(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
        family: &[u8],
        path: &FilePath,
    ) -> Result<(FilePath, FileStatus)> {
        let link =
            FileLink::to(region, family, path.name()).ok_or_else(|| corrupt(path, "is not a store file"))?;
        let found = link.find(self, fs).await?;
        found.ok_or_else(|| corrupt(path, "refers to a file that does not exist"))
    }
}

/// The sequence id that a bulk load gave to a file, or to the file that a link refers to.
pub(crate) fn bulk_load_seq_id(name: &str) -> Option<u64> {
    match StoreFileName::parse(name)? {
        StoreFileName::Own { bulk_load_seq_id } => bulk_load_seq_id,
        StoreFileName::Link { file, .. } | StoreFileName::Reference { file, .. } => {
            parse_own(&file).flatten()
        }
    }
}

/// The name of a family's directory; `None` if the family's name is not a valid one.
pub(crate) fn family_dir_name(family: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(family).ok()?;
    let legal = |c: char| !c.is_control() && !matches!(c, ':' | '/' | '\\');
    let fits = !name.is_empty() && name.len() <= FAMILY_LEN_MAX;
    (fits && !name.starts_with('.') && name != "recovered.edits" && name.chars().all(legal)).then_some(name)
}

/// The directory name of a family whose name was checked before.
pub(crate) fn dir_name(family: &[u8]) -> &str {
    family_dir_name(family).expect("families are checked when descriptors are read or written")
}

/// Checks that a family's name is valid as a directory name, as HBase does. `file` is the file that
/// contains the name, or will contain it.
///
/// # Errors
/// [`Error::Corrupt`] with the path `file`.
pub fn check_family(file: &FilePath, family: &[u8]) -> Result<()> {
    match family_dir_name(family) {
        Some(_) => Ok(()),
        None => Err(corrupt(
            file,
            format!("family {:?} is not a valid directory name", family.escape_ascii().to_string()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "f8db11ccda7041dba9229220b25e2e90";
    const REGION: &str = "1b42fa151ed2d772692addc8a9d03189";

    /// Names from a root directory that HBase wrote, and invalid names.
    #[test]
    fn names_are_parsed() {
        let own = |bulk_load_seq_id| Some(StoreFileName::Own { bulk_load_seq_id });
        assert_eq!(StoreFileName::parse(HEX), own(None));
        assert_eq!(StoreFileName::parse(&format!("{HEX}_SeqId_42_")), own(Some(42)));
        assert_eq!(StoreFileName::parse(&format!("{HEX}_del")), own(None));
        let reference = |file: &str| {
            Some(StoreFileName::Reference { file: file.to_string(), region: REGION.to_string() })
        };
        assert_eq!(StoreFileName::parse(&format!("{HEX}.{REGION}")), reference(HEX));
        let link = format!("ns1=t1={REGION}-{HEX}");
        assert_eq!(StoreFileName::parse(&format!("{link}.{REGION}")), reference(&link));
        let link_parts = |table: &str| {
            let (region, file) = (REGION.to_string(), HEX.to_string());
            Some(StoreFileName::Link { table: table.to_string(), region, file })
        };
        assert_eq!(StoreFileName::parse(&link), link_parts("ns1=t1"));
        assert_eq!(StoreFileName::parse(&format!("my-table={REGION}-{HEX}")), link_parts("my-table"));
        for other in [
            "",
            "_del",
            "F8DB",
            "x",
            ".filelist",
            "ab_SeqId_",
            "ab_SeqId_x_",
            "ab.tmp",
            "ab.",
            "=ab-ab",
            "ab_SeqId_99999999999999999999_",
        ] {
            assert_eq!(StoreFileName::parse(other), None, "{other}");
        }
    }

    #[test]
    fn family_names_that_are_unsafe_paths_are_refused() {
        for legal in ["f", "info", "a b", "\u{fc}", "-", "a.b", "recovered"] {
            assert_eq!(family_dir_name(legal.as_bytes()), Some(legal));
        }
        for illegal in [
            &b""[..],
            b".",
            b"..",
            b".tmp",
            b"a/b",
            b"a:b",
            b"a\\b",
            b"a\nb",
            b"recovered.edits",
            b"\xff",
            &[b'f'; 128],
        ] {
            assert_eq!(family_dir_name(illegal), None, "{illegal:?}");
        }
    }

    #[test]
    fn random_names_are_valid() {
        let name = random_name(&base::testing::SeededRandom::new(1));
        assert_eq!(name.len(), 32);
        assert!(StoreFileName::parse(&name).is_some());
    }
}
