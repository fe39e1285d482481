//! What coordination offers: a small tree of named values with versions, as ZooKeeper has it.

use base::BoxFuture;
use bytes::Bytes;
use tokio::sync::watch;

/// A tree of znodes. Paths are absolute, parts separated by `/`, without one at the end.
///
/// Every change has a number (zxid), which only grows; a reader who sees a change sees all earlier ones.
pub trait Coordinator: Send + Sync + 'static {
    /// The value at `path`.
    ///
    /// # Errors
    /// [`Error::NoNode`].
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Znode, Error>>;

    /// The znode's figures, `None` if there is no such znode.
    fn exists<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Stat>, Error>>;

    /// The names of the children of `path`, sorted.
    ///
    /// # Errors
    /// [`Error::NoNode`].
    fn children<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(Vec<String>, Stat), Error>>;

    /// Makes a znode.
    ///
    /// # Errors
    /// [`Error::NodeExists`]; [`Error::NoNode`] if the parent is missing.
    fn create<'a>(&'a self, path: &'a str, data: Bytes, mode: Mode) -> BoxFuture<'a, Result<Stat, Error>>;

    /// Replaces the value at `path`, if `version` is given only that version.
    ///
    /// # Errors
    /// [`Error::NoNode`], [`Error::BadVersion`].
    fn set<'a>(
        &'a self,
        path: &'a str,
        data: Bytes,
        version: Option<i32>,
    ) -> BoxFuture<'a, Result<Stat, Error>>;

    /// Removes a znode without children, if `version` is given only that version.
    ///
    /// # Errors
    /// [`Error::NoNode`], [`Error::BadVersion`], [`Error::NotEmpty`].
    fn delete<'a>(&'a self, path: &'a str, version: Option<i32>) -> BoxFuture<'a, Result<(), Error>>;

    /// The number of the last change, told anew at each one. Watch it, then read: no change is missed.
    fn changes(&self) -> watch::Receiver<i64>;
}

/// How long a znode lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Until it is deleted.
    Persistent,
    /// As long as its maker's session.
    Ephemeral,
}

/// A value and its figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Znode {
    /// The value.
    pub data: Bytes,
    /// Its figures.
    pub stat: Stat,
}

/// A znode's figures, as ZooKeeper tells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stat {
    /// The change that made it.
    pub created_zxid: i64,
    /// The change that last set its value.
    pub modified_zxid: i64,
    /// When it was made, milliseconds.
    pub created_ms: i64,
    /// When its value was last set, milliseconds.
    pub modified_ms: i64,
    /// How often its value was set.
    pub version: i32,
    /// How often its children changed.
    pub children_version: i32,
    /// How often its permissions changed.
    pub acl_version: i32,
    /// The session it lives as long as; 0 if it is persistent.
    pub ephemeral_owner: i64,
    /// Bytes of its value.
    pub data_len: i32,
    /// Children it has.
    pub children: i32,
    /// The change that last added or removed a child.
    pub children_zxid: i64,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no such znode (or no parent for a new one).
    #[error("no znode {path}")]
    NoNode {
        /// The path asked for.
        path: String,
    },
    /// There is one already.
    #[error("znode {path} exists already")]
    NodeExists {
        /// Its path.
        path: String,
    },
    /// Somebody changed it since: read again.
    #[error("znode {path} has version {actual} now")]
    BadVersion {
        /// Its path.
        path: String,
        /// Its version.
        actual: i32,
    },
    /// It has children.
    #[error("znode {path} has children")]
    NotEmpty {
        /// Its path.
        path: String,
    },
    /// Not a path.
    #[error("{path:?} is not the path of a znode: {what}")]
    BadPath {
        /// What was given.
        path: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The coordination service cannot be reached, or answers something else: try again later.
    #[error("coordination failed: {0}")]
    Unavailable(String),
}

/// Bytes of the longest path.
pub const PATH_LEN_MAX: usize = 4096;

/// Checks that `path` is absolute, has no empty part and no control characters.
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
        return bad("a part of it is empty or relative");
    }
    Ok(())
}

/// Path and name within it: the parent of `/a/b` is `/a`, of `/a` is `/`; the root has none.
pub fn parent_and_name(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = path.rsplit_once('/')?;
    if name.is_empty() {
        return None;
    }
    Some((if parent.is_empty() { "/" } else { parent }, name))
}

/// Makes `path` and what is missing above it, without values. What is there already stays as it is.
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

/// Sets the value at `path`, making the znode (of `mode`) and its parents if they are missing.
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
            // Somebody else made it between the two: set it.
            Err(Error::NodeExists { .. }) => {}
            other => return other,
        }
    }
}
