//! The identity of a root directory: the layout's version, the cluster id, and the marker of this
//! project.
//!
//! A directory that another program created is never touched: it may belong to a running cluster.
//! So the marker is the first file that is written to an empty directory. A non-empty directory
//! without it is rejected.
//!
//! Source: HBase `FSUtils.checkVersion`, `ClusterId`.

use base::env::Random;
use bytes::Bytes;
use fs::{FilePath, FileSystem};
use prost::Message;
use proto::magic::{with_magic, without_magic};
use proto::{ClusterId, HBaseVersionFileContent};
use tracing::warn;

use crate::ownership::{FENCED_VERSION_FILE, Owner};
use crate::{Error, Result, RootDir, corrupt, file};

/// The marker of this project, a text file.
pub const MARKER: &str = "grampus.root";
/// The name of the marker until it is complete. A crash may leave it.
pub const MARKER_BEING_WRITTEN: &str = "grampus.root.new";
const MARKER_TITLE: &str = "Grampus root directory";
/// The format that the marker states; newer ones are rejected.
pub const FORMAT: u32 = 1;

/// The file with the cluster id in a separate directory of logs.
const WAL_DIR_OWNER: &str = "grampus.cluster";

pub(crate) const VERSION_FILE: &str = "hbase.version";
/// Version of HBase's directory layout (`HConstants.FILE_SYSTEM_VERSION`).
const LAYOUT_VERSION: &str = "8";
pub(crate) const ID_FILE: &str = "hbase.id";
/// The suffix of a corrupt version or id file that was renamed.
const DAMAGED: &str = ".damaged";

/// Entries that an empty directory may contain: the root of a separate file system has
/// `lost+found`.
const IGNORED: [&str; 2] = ["lost+found", MARKER_BEING_WRITTEN];

/// The identity of a root directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster id.
    pub cluster_id: String,
    /// Whether the directory was empty and has just become a root directory.
    pub is_new: bool,
    /// Whether the cluster id has just been generated. Another process that did this at the same
    /// time may still replace it.
    pub is_id_new: bool,
}

impl RootDir {
    /// Checks that this project created the directory, or claims an empty one. Completes the steps
    /// that a crash interrupted. `random` generates the id of a new cluster. A corrupt
    /// `hbase.version` or `hbase.id` is renamed and rewritten, with a warning: no data depends on
    /// them.
    ///
    /// # Errors
    /// [`Error::NotOurs`] for a directory with other content, [`Error::TooNew`] and
    /// [`Error::Unsupported`] for other formats, [`Error::Corrupt`] for an unreadable marker or a
    /// missing data directory.
    pub async fn open_or_create(&self, fs: &dyn FileSystem, random: &dyn Random) -> Result<Identity> {
        self.open_or_create_with(fs, random, None).await
    }

    /// Like [`open_or_create`](RootDir::open_or_create), for a cluster whose logs may be in a
    /// separate directory, the root of `logs`. If `hbase.id` of a directory with tables is missing
    /// or corrupt, it gets the id that has claimed `logs`: [`claim_wal_dir`] refuses all others.
    ///
    /// # Errors
    /// As [`open_or_create`](RootDir::open_or_create).
    pub async fn open_or_create_with(
        &self,
        fs: &dyn FileSystem,
        random: &dyn Random,
        logs: Option<&dyn FileSystem>,
    ) -> Result<Identity> {
        let is_new = match self.check_marker(fs).await? {
            MarkerState::Yes => false,
            MarkerState::Empty => {
                self.write_marker(fs).await?;
                true
            }
        };
        self.ensure_data_dir(fs).await?;
        fs.make_dirs(&self.tmp_dir()).await?;
        self.ensure_version(fs).await?;
        let (cluster_id, is_id_new) = self.ensure_id(fs, random, logs, is_new).await?;
        Ok(Identity { cluster_id, is_new, is_id_new })
    }

    async fn check_marker(&self, fs: &dyn FileSystem) -> Result<MarkerState> {
        let entries = file::list(fs, self.path()).await?;
        if entries.iter().any(|entry| entry.name == MARKER) {
            let path = self.path().join(MARKER);
            check_format(&path, &file::read(fs, &path).await?)?;
            return Ok(MarkerState::Yes);
        }
        let unfinished = match self.owner(fs).await? {
            Owner::Adopting => Some("an adoption was interrupted; repeat or undo it with `grampus adopt`"),
            Owner::Releasing | Owner::Released => {
                Some("a release to HBase was interrupted; repeat it with `grampus release`")
            }
            Owner::HBase | Owner::Grampus | Owner::Nothing => None,
        };
        if let Some(what) = unfinished {
            return Err(Error::Unfinished { dir: self.path().clone(), what });
        }
        let lock = self.lock_file();
        let is_unknown = |name: &str| !IGNORED.contains(&name) && name != lock.name();
        match entries.into_iter().map(|entry| entry.name).find(|name| is_unknown(name)) {
            None => Ok(MarkerState::Empty),
            Some(found) => Err(Error::NotOurs { dir: self.path().clone(), found, marker: MARKER }),
        }
    }

    /// Makes the directory one of this project.
    ///
    /// # Errors
    /// File system errors.
    pub async fn write_marker(&self, fs: &dyn FileSystem) -> Result<()> {
        fs.make_dirs(self.path()).await?;
        let content = format!("{MARKER_TITLE}\nformat {FORMAT}\n");
        let tmp = self.path().join(MARKER_BEING_WRITTEN);
        file::replace(fs, &tmp, &self.path().join(MARKER), content.into()).await
    }

    /// Creates the directory of tables before `hbase.version`. If that file exists but the
    /// directory does not, the directory was lost: the server would start without any table.
    async fn ensure_data_dir(&self, fs: &dyn FileSystem) -> Result<()> {
        let dir = self.data_dir();
        if fs.stat(&dir).await?.is_some() {
            return Ok(());
        }
        if fs.stat(&self.version_file(fs).await?).await?.is_some() {
            let what = "the directory of all tables is missing. Restore it from a backup, or begin with another root \
                        directory";
            return Err(corrupt(&dir, what));
        }
        fs.make_dirs(&dir).await?;
        Ok(fs.sync_dir(self.path()).await?)
    }

    async fn ensure_version(&self, fs: &dyn FileSystem) -> Result<()> {
        let path = self.version_file(fs).await?;
        match self.read_or_set_aside::<HBaseVersionFileContent>(fs, &path).await? {
            Some(content) if content.version == LAYOUT_VERSION => Ok(()),
            Some(HBaseVersionFileContent { version }) => {
                Err(Error::Unsupported { file: path, what: format!("version {version} of HBase's layout") })
            }
            None => {
                let content = with_magic(&HBaseVersionFileContent { version: LAYOUT_VERSION.into() });
                file::replace(fs, &self.tmp_dir().join(VERSION_FILE), &path, content).await
            }
        }
    }

    /// The path of `hbase.version`, which has another name in a directory that was adopted.
    async fn version_file(&self, fs: &dyn FileSystem) -> Result<FilePath> {
        let fenced = self.path().join(FENCED_VERSION_FILE);
        let is_fenced = fs.stat(&fenced).await?.is_some();
        Ok(if is_fenced { fenced } else { self.path().join(VERSION_FILE) })
    }

    /// The cluster id, and whether it was generated because it was missing or corrupt.
    async fn ensure_id(
        &self,
        fs: &dyn FileSystem,
        random: &dyn Random,
        logs: Option<&dyn FileSystem>,
        is_new: bool,
    ) -> Result<(String, bool)> {
        let path = self.path().join(ID_FILE);
        if let Some(ClusterId { cluster_id }) = self.read_or_set_aside(fs, &path).await? {
            return Ok((cluster_id, false));
        }
        if let Some(cluster_id) = self.id_of_logs(fs, logs).await? {
            warn!(file = %path, cluster_id, "cluster id was lost; restored it from {WAL_DIR_OWNER}");
            self.write_cluster_id(fs, random, &cluster_id).await?;
            return Ok((cluster_id, false));
        }
        let generated = random_uuid(random);
        if !is_new {
            warn!(file = %path, cluster_id = generated, "cluster id was missing or corrupt; generated a new one");
        }
        // Of several processes that generate an id at the same time, the last one wins.
        self.write_cluster_id(fs, random, &generated).await?;
        match self.stored_cluster_id(fs).await? {
            Some(cluster_id) => Ok((cluster_id, true)),
            None => Err(corrupt(&path, "the file was removed while it was created")),
        }
    }

    /// The id that has claimed the separate directory of logs. `None` if this directory has no
    /// table: another process may be creating it now, with the logs of another cluster by mistake.
    async fn id_of_logs(&self, fs: &dyn FileSystem, logs: Option<&dyn FileSystem>) -> Result<Option<String>> {
        match logs {
            Some(logs) if !self.list_namespaces(fs).await?.is_empty() => wal_dir_owner(logs).await,
            _ => Ok(None),
        }
    }

    /// Replaces the cluster id.
    ///
    /// # Errors
    /// File system errors.
    pub async fn write_cluster_id(&self, fs: &dyn FileSystem, random: &dyn Random, id: &str) -> Result<()> {
        let content = with_magic(&ClusterId { cluster_id: id.into() });
        let tmp = own_name(&self.tmp_dir().join(ID_FILE), random);
        file::replace(fs, &tmp, &self.path().join(ID_FILE), content).await
    }

    /// The message in a file; `None` if there is no file, or if it was corrupt and is now renamed.
    async fn read_or_set_aside<M: Message + Default>(
        &self,
        fs: &dyn FileSystem,
        path: &FilePath,
    ) -> Result<Option<M>> {
        if fs.stat(path).await?.is_none() {
            return Ok(None);
        }
        match without_magic(&file::read(fs, path).await?) {
            Ok(message) => Ok(Some(message)),
            Err(error) => {
                let aside = path.parent().join(&format!("{}{DAMAGED}", path.name()));
                warn!(file = %path, %error, kept_as = %aside, "renaming a corrupt file and rewriting it");
                fs.delete(&aside).await?;
                fs.rename(path, &aside).await?;
                Ok(None)
            }
        }
    }
}

/// Claims the separate directory of a cluster's logs (`hbase.wal.dir`), which is the root of `fs`.
/// It need not be empty: logs that HBase wrote are accepted.
///
/// # Errors
/// [`Error::Corrupt`] if the directory belongs to another cluster. Its logs would be taken for
/// those of dead servers.
pub async fn claim_wal_dir(fs: &dyn FileSystem, random: &dyn Random, cluster_id: &str) -> Result<()> {
    let path = FilePath::root().join(WAL_DIR_OWNER);
    if fs.stat(&path).await?.is_none() {
        let tmp = own_name(&FilePath::root().join(&format!("{WAL_DIR_OWNER}.new")), random);
        file::replace(fs, &tmp, &path, format!("{cluster_id}\n").into()).await?;
    }
    // Also the file that was just written: another process may have replaced it.
    let content = file::read(fs, &path).await?;
    match content.trim_ascii() == cluster_id.as_bytes() {
        true => Ok(()),
        false => {
            let owner = content.trim_ascii().escape_ascii();
            Err(corrupt(&path, format!("the logs belong to the cluster {owner}, not to {cluster_id}")))
        }
    }
}

/// The id of the cluster that has claimed a separate directory of logs; `None` if there is none, or
/// it is unreadable.
async fn wal_dir_owner(fs: &dyn FileSystem) -> Result<Option<String>> {
    let path = FilePath::root().join(WAL_DIR_OWNER);
    if fs.stat(&path).await?.is_none() {
        return Ok(None);
    }
    let content = file::read(fs, &path).await?;
    let owner = std::str::from_utf8(content.trim_ascii()).ok();
    Ok(owner.filter(|owner| !owner.is_empty()).map(str::to_string))
}

/// A shell command that restores a missing or corrupt marker of the root directory at `dir`.
pub fn restoring_command(dir: &str) -> String {
    format!("printf '{MARKER_TITLE}\\nformat {FORMAT}\\n' > '{dir}/{MARKER}'")
}

enum MarkerState {
    Yes,
    Empty,
}

fn check_format(path: &FilePath, content: &Bytes) -> Result<()> {
    let text = std::str::from_utf8(content).map_err(|error| corrupt(path, error))?;
    let mut lines = text.lines();
    if lines.next() != Some(MARKER_TITLE) {
        return Err(corrupt(path, format!("does not begin with {MARKER_TITLE:?}")));
    }
    let format = lines.find_map(|line| line.strip_prefix("format "));
    match format.and_then(|format| format.parse::<u32>().ok()) {
        Some(format) if format <= FORMAT => Ok(()),
        Some(format) => Err(Error::TooNew { file: path.clone(), format, known: FORMAT }),
        None => Err(corrupt(path, "has no valid format line")),
    }
}

/// The path of a temporary file that no other process uses.
fn own_name(tmp: &FilePath, random: &dyn Random) -> FilePath {
    tmp.parent().join(&format!("{}.{}", tmp.name(), random_uuid(random)))
}

/// A random UUID as text (version 4).
fn random_uuid(random: &dyn Random) -> String {
    let mut bytes = [0; 16];
    random.fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::SeededRandom;

    #[test]
    fn ids_are_uuids() {
        let random = SeededRandom::new(7);
        for _ in 0..100 {
            let id = random_uuid(&random);
            let parts: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
            assert!(id[14..].starts_with('4') && "89ab".contains(&id[19..20]), "{id}");
        }
    }

    #[test]
    fn the_restoring_command_writes_a_marker() {
        let command = restoring_command("/data");
        assert_eq!(command, "printf 'Grampus root directory\\nformat 1\\n' > '/data/grampus.root'");
        let written = command.split('\'').nth(1).unwrap().replace("\\n", "\n");
        assert!(check_format(&FilePath::new(MARKER), &written.into()).is_ok());
    }

    #[test]
    fn markers_are_checked() {
        let path = FilePath::new(MARKER);
        let check = |text: &'static str| check_format(&path, &Bytes::from_static(text.as_bytes()));
        assert!(check("Grampus root directory\nformat 1\n").is_ok());
        assert!(check("Grampus root directory\nmade by a later version\nformat 1\nmore\n").is_ok());
        assert!(matches!(check("Grampus root directory\nformat 2\n"), Err(Error::TooNew { format: 2, .. })));
        for damaged in ["", "format 1\n", "Grampus root directory\n", "Grampus root directory\nformat x\n"] {
            assert!(matches!(check(damaged), Err(Error::Corrupt { .. })), "{damaged}");
        }
    }
}
