//! The coordination interface: a small tree of named, versioned values, as in ZooKeeper.

use base::BoxFuture;
use bytes::Bytes;
use tokio::sync::watch;

/// A tree of znodes. Paths are absolute; their parts are separated by `/`, with none at the end.
///
/// Every change has a number (zxid), which only grows. A reader that sees a change also sees all
/// earlier ones.
pub trait Coordinator: Send + Sync + 'static {
    /// The value at `path`.
    ///
    /// # Errors
    /// [`Error::NoNode`].
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Znode, Error>>;

    /// The znode's metadata, or `None` if there is no such znode.
    fn exists<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Stat>, Error>>;

    /// The names of the children of `path`, sorted.
    ///
    /// # Errors
    /// [`Error::NoNode`].
    fn children<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(Vec<String>, Stat), Error>>;

    /// Creates a znode.
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

    /// Removes a znode without children. If `version` is given, the znode must have that version.
    ///
    /// # Errors
    /// [`Error::NoNode`], [`Error::BadVersion`], [`Error::NotEmpty`].
    fn delete<'a>(&'a self, path: &'a str, version: Option<i32>) -> BoxFuture<'a, Result<(), Error>>;

    /// Watches the znode at `path`, which need not exist: its creation, deletion, value, and list
    /// of children. A reader that watches before it reads misses no change.
    ///
    /// # Errors
    /// [`Error::BadPath`], [`Error::Unavailable`].
    fn watch<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Watch, Error>>;

    /// The state of this session.
    fn session(&self) -> watch::Receiver<SessionState>;

    /// The zxid of the newest change that this session has seen.
    fn last_zxid(&self) -> i64;
}

/// Whether a session, and with it its ephemeral znodes, still exists.
///
/// A process whose session expired must assume that others took over its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// Reads and writes succeed.
    Connected,
    /// The connection is lost. The session may still exist, or expire before it is restored.
    Suspended,
    /// The session expired, its ephemeral znodes are deleted, and every further operation fails.
    Expired,
}

/// Notifies of changes of one znode, until it is dropped.
pub struct Watch {
    changes: watch::Receiver<u64>,
    session: watch::Receiver<SessionState>,
}

impl Watch {
    /// A watch whose sender counts the changes.
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
            _ = self.session.wait_for(|state| *state == SessionState::Expired) => Err(Error::SessionExpired),
            changed = self.changes.changed() => changed.map_err(|_| Error::SessionExpired),
        }
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
    /// The znode does not exist, or the parent of a new one.
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
    /// The znode was changed since it was read: read it again.
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
    /// The path is invalid.
    #[error("invalid znode path {path:?}: {what}")]
    BadPath {
        /// The path that was given, truncated.
        path: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The session expired. Its owner must start over with a new session.
    #[error("the session with the coordination service expired")]
    SessionExpired,
    /// The coordination service is unreachable, or sent an unexpected response: retry later.
    #[error("coordination failed: {0}")]
    Unavailable(String),
}

/// Maximum length of a path, in bytes.
pub const PATH_LEN_MAX: usize = 4096;

/// Checks that `path` is absolute and not too long, and has no empty or relative part and no
/// control characters.
///
/// # Errors
/// [`Error::BadPath`].
pub fn check_path(path: &str) -> Result<(), Error> {
    let bad = |what| {
        let shown = path.chars().take(128).collect();
        Err(Error::BadPath { path: shown, what })
    };
    let Some(parts) = path.strip_prefix('/') else { return bad("it is not absolute") };
    if path.len() > PATH_LEN_MAX {
        return bad("it is too long");
    }
    if path.chars().any(char::is_control) {
        return bad("it has control characters");
    }
    if !parts.is_empty() && parts.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return bad("it has an empty or relative part");
    }
    Ok(())
}

/// The parent of a path, and the name within it. The parent of `/a/b` is `/a`, that of `/a` is `/`;
/// the root has none.
pub fn parent_and_name(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = path.rsplit_once('/')?;
    if name.is_empty() {
        return None;
    }
    Some((if parent.is_empty() { "/" } else { parent }, name))
}

/// Creates `path` and its missing ancestors, without values. Existing znodes are unchanged.
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
            // Another writer created it in between: set it.
            Err(Error::NodeExists { .. }) => {}
            other => return other,
        }
    }
}
