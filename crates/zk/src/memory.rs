//! Znodes in this process, for a standalone server.
//!
//! Nothing survives a restart, and nothing needs to: the server publishes its znodes when it
//! starts. Zxids begin at the start time, so that they also grow over restarts. A client that
//! outlives the server never sees them go backwards.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::BoxFuture;
use base::env::{Clock, Env};
use bytes::Bytes;
use tokio::sync::watch;

use crate::coordinator::{
    Coordinator, EPHEMERAL_PARENT, Error, Mode, SessionState, Stat, Watch, Znode, bad_path, check_data,
    check_path, parent_and_name,
};

/// The session that owns this process's ephemeral znodes.
const OWN_SESSION: i64 = 1;

/// A tree of znodes in memory.
pub struct MemoryCoordinator {
    clock: Arc<dyn Clock>,
    session: watch::Sender<SessionState>,
    tree: Mutex<Tree>,
}

struct Tree {
    zxid: i64,
    // By path. The children of a path are the paths that extend it by one part.
    nodes: BTreeMap<String, Znode>,
    // By path: the number of changes so far. Paths without a watch have no entry.
    watches: HashMap<String, watch::Sender<u64>>,
}

impl MemoryCoordinator {
    /// A tree with only its root.
    pub fn new(env: &Env) -> Arc<MemoryCoordinator> {
        let zxid = i64::try_from(env.clock.now_ms()).unwrap_or(0) << 8;
        let root = Znode { data: Bytes::new(), stat: Stat::default() };
        Arc::new(MemoryCoordinator {
            clock: Arc::clone(&env.clock),
            session: watch::channel(SessionState::Connected).0,
            tree: Mutex::new(Tree {
                zxid,
                nodes: BTreeMap::from([("/".to_string(), root)]),
                watches: HashMap::new(),
            }),
        })
    }

    /// Ends the session, as ZooKeeper does with one that it did not hear from: its ephemeral znodes
    /// are deleted, and its owner can read and write no more.
    pub fn expire_session(&self) {
        let mut tree = self.lock();
        let is_own = |(_, node): &(&String, &Znode)| node.stat.ephemeral_owner == OWN_SESSION;
        let own: Vec<String> = tree.nodes.iter().filter(is_own).map(|(path, _)| path.clone()).collect();
        for path in own {
            tree.delete(&path, None).expect("an ephemeral znode exists and has no children");
        }
        self.session.send_replace(SessionState::Expired);
    }

    fn check_session(&self) -> Result<(), Error> {
        match *self.session.borrow() {
            SessionState::Expired => Err(Error::SessionExpired),
            SessionState::Connected | SessionState::Suspended => Ok(()),
        }
    }

    fn read<T>(&self, path: &str, then: impl FnOnce(&Tree, &Znode) -> T) -> Result<T, Error> {
        check_path(path)?;
        self.check_session()?;
        let tree = self.lock();
        let node = tree.nodes.get(path).ok_or_else(|| no_node(path))?;
        Ok(then(&tree, node))
    }

    /// Applies a change.
    fn change<T>(
        &self,
        path: &str,
        act: impl FnOnce(&mut Tree, i64) -> Result<T, Error>,
    ) -> Result<T, Error> {
        check_path(path)?;
        self.check_session()?;
        let now_ms = i64::try_from(self.clock.now_ms()).unwrap_or(i64::MAX);
        act(&mut self.lock(), now_ms)
    }

    fn lock(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tree {
    fn create(&mut self, path: &str, data: Bytes, mode: Mode, now_ms: i64) -> Result<Stat, Error> {
        if self.nodes.contains_key(path) {
            return Err(Error::NodeExists { path: path.to_string() });
        }
        let (parent, _) = parent_and_name(path).expect("only the root has no parent, and it exists");
        if self.nodes.get(parent).is_some_and(|parent| parent.stat.ephemeral_owner != 0) {
            return Err(bad_path(path, EPHEMERAL_PARENT));
        }
        let zxid = self.children_changed(parent, 1)?;
        let stat = Stat {
            created_zxid: zxid,
            modified_zxid: zxid,
            created_ms: now_ms,
            modified_ms: now_ms,
            ephemeral_owner: if mode == Mode::Ephemeral { OWN_SESSION } else { 0 },
            data_len: len_of(&data),
            children_zxid: zxid,
            ..Stat::default()
        };
        assert!(stat.created_zxid == self.zxid, "a creation is the newest change");
        self.nodes.insert(path.to_string(), Znode { data, stat });
        self.notify(path);
        Ok(stat)
    }

    fn set(&mut self, path: &str, data: Bytes, version: Option<i32>, now_ms: i64) -> Result<Stat, Error> {
        let zxid = self.zxid + 1;
        let node = versioned(&mut self.nodes, path, version)?;
        node.stat.modified_zxid = zxid;
        node.stat.modified_ms = now_ms;
        node.stat.version = node.stat.version.wrapping_add(1);
        node.stat.data_len = len_of(&data);
        node.data = data;
        let stat = node.stat;
        self.zxid = zxid;
        self.notify(path);
        Ok(stat)
    }

    fn delete(&mut self, path: &str, version: Option<i32>) -> Result<(), Error> {
        let node = versioned(&mut self.nodes, path, version)?;
        let parent = parent_and_name(path).map(|(parent, _)| parent);
        let Some(parent) = parent.filter(|_| node.stat.children == 0) else {
            return Err(Error::NotEmpty { path: path.to_string() });
        };
        debug_assert!(self.children(path).is_empty(), "a znode counts its children");
        self.children_changed(parent, -1)?;
        self.nodes.remove(path);
        self.notify(path);
        Ok(())
    }

    /// Notifies the watches of `path`, and forgets them if all are dropped.
    fn notify(&mut self, path: &str) {
        if let Some(watch) = self.watches.get(path) {
            watch.send_modify(|changes| *changes += 1);
            if watch.is_closed() {
                self.watches.remove(path);
            }
        }
    }

    fn children_changed(&mut self, parent: &str, by: i32) -> Result<i64, Error> {
        let node = self.nodes.get_mut(parent).ok_or_else(|| no_node(parent))?;
        self.zxid += 1;
        node.stat.children += by;
        node.stat.children_version = node.stat.children_version.wrapping_add(1);
        node.stat.children_zxid = self.zxid;
        assert!(node.stat.children >= 0, "a znode has as many children as were created and not deleted");
        self.notify(parent);
        Ok(self.zxid)
    }

    fn children(&self, path: &str) -> Vec<String> {
        let prefix = if path == "/" { "/".to_string() } else { format!("{path}/") };
        let below = self.nodes.range(prefix.clone()..).map_while(|(path, _)| path.strip_prefix(&prefix));
        below.filter(|name| !name.is_empty() && !name.contains('/')).map(str::to_string).collect()
    }
}

fn versioned<'a>(
    nodes: &'a mut BTreeMap<String, Znode>,
    path: &str,
    version: Option<i32>,
) -> Result<&'a mut Znode, Error> {
    let node = nodes.get_mut(path).ok_or_else(|| no_node(path))?;
    let actual = node.stat.version;
    if version.is_some_and(|version| version != actual) {
        return Err(Error::BadVersion { path: path.to_string(), actual });
    }
    Ok(node)
}

fn no_node(path: &str) -> Error {
    Error::NoNode { path: path.to_string() }
}

fn len_of(data: &Bytes) -> i32 {
    i32::try_from(data.len()).unwrap_or(i32::MAX)
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl Coordinator for MemoryCoordinator {
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Znode, Error>> {
        ready(self.read(path, |_, node| node.clone()))
    }

    fn exists<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Stat>, Error>> {
        ready(match self.read(path, |_, node| node.stat) {
            Ok(stat) => Ok(Some(stat)),
            Err(Error::NoNode { .. }) => Ok(None),
            Err(error) => Err(error),
        })
    }

    fn children<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(Vec<String>, Stat), Error>> {
        ready(self.read(path, |tree, node| (tree.children(path), node.stat)))
    }

    fn create<'a>(&'a self, path: &'a str, data: Bytes, mode: Mode) -> BoxFuture<'a, Result<Stat, Error>> {
        let create = |tree: &mut Tree, now_ms| {
            check_data(path, &data)?;
            tree.create(path, data, mode, now_ms)
        };
        ready(self.change(path, create))
    }

    fn set<'a>(
        &'a self,
        path: &'a str,
        data: Bytes,
        version: Option<i32>,
    ) -> BoxFuture<'a, Result<Stat, Error>> {
        let set = |tree: &mut Tree, now_ms| {
            check_data(path, &data)?;
            tree.set(path, data, version, now_ms)
        };
        ready(self.change(path, set))
    }

    fn delete<'a>(&'a self, path: &'a str, version: Option<i32>) -> BoxFuture<'a, Result<(), Error>> {
        ready(self.change(path, |tree, _| tree.delete(path, version)))
    }

    fn watch<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Watch, Error>> {
        let valid = check_path(path).and_then(|()| self.check_session());
        ready(valid.map(|()| {
            let mut tree = self.lock();
            let sender = tree.watches.entry(path.to_string()).or_insert_with(|| watch::channel(0).0);
            Watch::new(sender.subscribe(), self.session.subscribe())
        }))
    }

    fn session(&self) -> watch::Receiver<SessionState> {
        self.session.subscribe()
    }

    fn last_zxid(&self) -> i64 {
        self.lock().zxid
    }
}
