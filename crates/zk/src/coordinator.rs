//! The coordination interface: a small tree of znodes (named, versioned values), as in ZooKeeper.

use std::time::Duration;

use base::BoxFuture;
use base::env::Clock;
use bytes::Bytes;
use tokio::sync::watch;

/// A session with the coordination service, which stores the tree of znodes. Paths are absolute and
/// do not end with `/`, for example `/a/b`.
///
/// Changes are numbered in their order (zxid). A reader that sees a change also sees all earlier
/// ones.
pub trait Coordinator: Send + Sync + 'static {
    /// The value at `path`.
    ///
    /// # Errors
    /// [`Error::NoNode`].
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Znode, Error>>;

    /// The metadata of the znode at `path`, or `None` if there is no such znode.
    fn exists<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Stat>, Error>>;

    /// The sorted names of the children of the znode at `path`, and the metadata of that znode.
    ///
    /// # Errors
    /// [`Error::NoNode`].
    fn children<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(Vec<String>, Stat), Error>>;

    /// Creates a znode at `path`.
    ///
    /// # Errors
    /// [`Error::NodeExists`]; [`Error::NoNode`] if the parent is missing.
    fn create<'a>(&'a self, path: &'a str, data: Bytes, mode: Mode) -> BoxFuture<'a, Result<Stat, Error>>;

    /// Replaces the value at `path`. If `version` is given, the znode must have that version.
    ///
    /// # Errors
    /// [`Error::NoNode`], [`Error::BadVersion`].
    fn set<'a>(
        &'a self,
        path: &'a str,
        data: Bytes,
        version: Option<i32>,
    ) -> BoxFuture<'a, Result<Stat, Error>>;

    /// Deletes the znode at `path`, which must have no children. If `version` is given, the znode
    /// must have that version.
    ///
    /// # Errors
    /// [`Error::NoNode`], [`Error::BadVersion`], [`Error::NotEmpty`].
    fn delete<'a>(&'a self, path: &'a str, version: Option<i32>) -> BoxFuture<'a, Result<(), Error>>;

    /// Watches the znode at `path`: its creation and deletion, and changes of its value and of its
    /// list of children. The znode need not exist. A reader that watches before it reads misses no
    /// change.
    ///
    /// # Errors
    /// [`Error::BadPath`], [`Error::Unavailable`].
    fn watch<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Watch, Error>>;

    /// The state of this session.
    fn session(&self) -> watch::Receiver<SessionState>;

    /// The session's number, which is the owner of its ephemeral znodes; not 0.
    fn session_id(&self) -> i64;

    /// The zxid of the newest change that this session has seen.
    fn last_zxid(&self) -> i64;
}

/// The state of a session. An ephemeral znode exists as long as the session that created it.
///
/// A process whose session expired must assume that another process took over its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// Reads and writes succeed.
    Connected,
    /// The connection is lost. If it is not restored in time, the session expires.
    Suspended,
    /// The session expired, its ephemeral znodes are deleted, and every further operation fails.
    Expired,
    /// Its owner closed the session. Otherwise as [`Expired`](Self::Expired).
    Closed,
}

impl SessionState {
    /// Whether the session has ended, for any reason. This is permanent.
    pub fn has_ended(self) -> bool {
        matches!(self, SessionState::Expired | SessionState::Closed)
    }
}

/// A subscription to the changes of one znode; it ends when it is dropped.
pub struct Watch {
    changes: watch::Receiver<u64>,
    session: watch::Receiver<SessionState>,
}

impl Watch {
    /// Creates a watch. `changes` counts the changes of the znode, and `session` has the state of
    /// the session.
    pub fn new(changes: watch::Receiver<u64>, session: watch::Receiver<SessionState>) -> Watch {
        Watch { changes, session }
    }

    /// Waits until the znode changes. Several changes may be reported as one.
    ///
    /// # Errors
    /// [`Error::SessionExpired`]: the watch reports nothing more.
    pub async fn changed(&mut self) -> Result<(), Error> {
        tokio::select! {
            biased;
            _ = self.session.wait_for(|state| state.has_ended()) => Err(Error::SessionExpired),
            changed = self.changes.changed() => changed.map_err(|_| Error::SessionExpired),
        }
    }

    /// Whether what was read after the last report is current, if this watch is older than that:
    /// the session is connected, and no change is reported since.
    pub fn is_unchanged(&self) -> bool {
        *self.session.borrow() == SessionState::Connected
            && self.changes.has_changed().is_ok_and(|changed| !changed)
    }

    /// Discards the reports so far. The caller reads the znode afterwards.
    pub fn discard_reports(&mut self) {
        self.changes.mark_unchanged();
    }
}

/// How long a znode lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Until it is deleted.
    Persistent,
    /// As long as the session that created it.
    Ephemeral,
}

/// A value and its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Znode {
    /// The value.
    pub data: Bytes,
    /// Its metadata.
    pub stat: Stat,
}

/// A znode's metadata, as ZooKeeper reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stat {
    /// Zxid of its creation.
    pub created_zxid: i64,
    /// Zxid of the last change of its value.
    pub modified_zxid: i64,
    /// Creation time, milliseconds since the epoch.
    pub created_ms: i64,
    /// Time of the last change of its value, milliseconds since the epoch.
    pub modified_ms: i64,
    /// Number of changes of its value.
    pub version: i32,
    /// Number of changes of its children.
    pub children_version: i32,
    /// Number of changes of its permissions.
    pub acl_version: i32,
    /// The session that owns it and whose end removes it; 0 if it is persistent.
    pub ephemeral_owner: i64,
    /// Length of its value in bytes.
    pub data_len: i32,
    /// Number of its children.
    pub children: i32,
    /// Zxid of the last addition or removal of a child.
    pub children_zxid: i64,
}

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The znode does not exist. For a creation: its parent does not exist.
    #[error("no znode {path}")]
    NoNode {
        /// The requested path.
        path: String,
    },
    /// The znode already exists.
    #[error("znode {path} already exists")]
    NodeExists {
        /// Its path.
        path: String,
    },
    /// The znode has another version, because it was changed since it was read. Read it again.
    #[error("znode {path} has version {actual} now")]
    BadVersion {
        /// Its path.
        path: String,
        /// Its current version.
        actual: i32,
    },
    /// The znode has children.
    #[error("znode {path} has children")]
    NotEmpty {
        /// Its path.
        path: String,
    },
    /// The path, or the value for it, is invalid.
    #[error("invalid znode path {path:?}: {what}")]
    BadPath {
        /// The invalid path, truncated.
        path: String,
        /// What is wrong with the path or the value.
        what: &'static str,
    },
    /// The session expired, or its owner closed it. Open a new session.
    #[error("the session with the coordination service expired")]
    SessionExpired,
    /// The coordination service refuses the operation permanently, for example for lack of
    /// permission: an operator must change that.
    #[error("coordination refused: {0}")]
    Refused(String),
    /// The coordination service is unreachable, or sent an unexpected response: retry later.
    #[error("coordination failed: {0}")]
    Unavailable(String),
}

/// Maximum length of a path, in bytes.
pub const PATH_LEN_MAX: usize = 4096;
/// Maximum length of a value, in bytes. A stock ZooKeeper server disconnects a client that sends a
/// request of 1 MiB (`jute.maxbuffer`); the difference is for the path.
pub const DATA_LEN_MAX: usize = 1024 * 1024 - 2 * PATH_LEN_MAX;
/// Why a znode cannot be created below an ephemeral one.
pub(crate) const EPHEMERAL_PARENT: &str = "its parent is ephemeral";

/// Checks that `path` is absolute and not too long, and has no empty or relative part and no
/// control characters.
///
/// # Errors
/// [`Error::BadPath`].
pub fn check_path(path: &str) -> Result<(), Error> {
    let bad = |what| Err(bad_path(path, what));
    let Some(parts) = path.strip_prefix('/') else { return bad("it is not absolute") };
    if path.len() > PATH_LEN_MAX {
        return bad("it is too long");
    }
    if path.chars().any(char::is_control) {
        return bad("it has control characters");
    }
    // Surrogates (in Java's strings), private use and specials: ZooKeeper's PathUtils.validatePath.
    if path.chars().any(|c| matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)) {
        return bad("it has characters that ZooKeeper rejects");
    }
    if !parts.is_empty() && parts.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return bad("it has an empty or relative part");
    }
    Ok(())
}

/// Checks that the value for `path` is not too long.
///
/// # Errors
/// [`Error::BadPath`].
pub fn check_data(path: &str, data: &[u8]) -> Result<(), Error> {
    if data.len() > DATA_LEN_MAX {
        return Err(bad_path(path, "its value is too long"));
    }
    Ok(())
}

pub(crate) fn bad_path(path: &str, what: &'static str) -> Error {
    Error::BadPath { path: path.chars().take(128).collect(), what }
}

/// Splits a path into its parent and the name within the parent: `/a/b` into `/a` and `b`, and `/a`
/// into `/` and `a`. `None` for the root `/`.
pub fn parent_and_name(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = path.rsplit_once('/')?;
    if name.is_empty() {
        return None;
    }
    Some((if parent.is_empty() { "/" } else { parent }, name))
}

/// Creates the znode at `path` and its missing ancestors, with empty values. Existing znodes are
/// unchanged.
///
/// # Errors
/// [`Error::BadPath`], [`Error::Unavailable`].
pub async fn ensure_path(coordinator: &dyn Coordinator, path: &str) -> Result<(), Error> {
    check_path(path)?;
    let ends = path.char_indices().skip(1).filter(|(_, c)| *c == '/').map(|(at, _)| at);
    for end in ends.chain([path.len()]) {
        match coordinator.create(&path[..end], Bytes::new(), Mode::Persistent).await {
            Ok(_) | Err(Error::NodeExists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sets the value at `path`. Creates the znode (with `mode`) and its ancestors if they are missing.
///
/// # Errors
/// [`Error::BadPath`], [`Error::Unavailable`].
pub async fn publish(
    coordinator: &dyn Coordinator,
    path: &str,
    data: Bytes,
    mode: Mode,
) -> Result<Stat, Error> {
    check_path(path)?;
    loop {
        match coordinator.set(path, data.clone(), None).await {
            Err(Error::NoNode { .. }) => {}
            other => return other,
        }
        if let Some((parent, _)) = parent_and_name(path) {
            ensure_path(coordinator, parent).await?;
        }
        match coordinator.create(path, data.clone(), mode).await {
            // Another writer has created the znode since. Set its value.
            Err(Error::NodeExists { .. }) => {}
            other => return other,
        }
    }
}

/// Creates an ephemeral znode of this session at `path`, and its missing ancestors. If the session
/// has created it before, it is unchanged. Any other znode at `path` is replaced.
///
/// # Errors
/// [`Error::BadPath`], [`Error::SessionExpired`]. [`Error::Unavailable`]: the znode may have been
/// created; the caller can retry.
pub async fn create_own(coordinator: &dyn Coordinator, path: &str, data: Bytes) -> Result<(), Error> {
    check_path(path)?;
    loop {
        match coordinator.create(path, data.clone(), Mode::Ephemeral).await {
            Ok(_) => return Ok(()),
            Err(Error::NodeExists { .. }) => {}
            Err(Error::NoNode { path: parent }) => {
                ensure_path(coordinator, &parent).await?;
                continue;
            }
            Err(error) => return Err(error),
        }
        match coordinator.exists(path).await? {
            Some(stat) if stat.ephemeral_owner == coordinator.session_id() => return Ok(()),
            Some(stat) => _ = delete_version(coordinator, path, stat.version).await?,
            None => {}
        }
    }
}

/// Deletes the znode at `path` if it has this version. Returns whether it was deleted.
///
/// # Errors
/// [`Error::NotEmpty`], [`Error::Unavailable`], [`Error::SessionExpired`].
pub(crate) async fn delete_version(
    coordinator: &dyn Coordinator,
    path: &str,
    version: i32,
) -> Result<bool, Error> {
    match coordinator.delete(path, Some(version)).await {
        Ok(()) => Ok(true),
        Err(Error::NoNode { .. } | Error::BadVersion { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Waits after a failure: for `pause`, and then until the session is connected or has ended.
pub(crate) async fn pause(coordinator: &dyn Coordinator, clock: &dyn Clock, pause: Duration) {
    clock.sleep(pause).await;
    let is_decided = |state: &SessionState| *state != SessionState::Suspended;
    // Without a sender, the session has ended: the next operation reports it.
    let _ = coordinator.session().wait_for(is_decided).await;
}
