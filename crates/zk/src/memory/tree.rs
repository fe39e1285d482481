//! The tree of znodes, and the watches of each session.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::watches::Watches;
use crate::coordinator::{EPHEMERAL_PARENT, Error, Stat, Znode, bad_path, parent_and_name};

pub(super) struct Tree {
    zxid: i64,
    // By path. The children of a path are the paths that extend it by one part.
    nodes: BTreeMap<String, Znode>,
    // By session.
    watches: BTreeMap<i64, Watches>,
}

impl Tree {
    /// A tree with only its root, whose first change has a zxid greater than `zxid`.
    pub(super) fn new(zxid: i64) -> Tree {
        let root = Znode { data: Bytes::new(), stat: Stat::default() };
        Tree { zxid, nodes: BTreeMap::from([("/".to_string(), root)]), watches: BTreeMap::new() }
    }

    pub(super) fn zxid(&self) -> i64 {
        self.zxid
    }

    pub(super) fn get(&self, path: &str) -> Result<&Znode, Error> {
        self.nodes.get(path).ok_or_else(|| no_node(path))
    }

    /// Creates a znode; `owner` is the session whose end deletes it, or 0.
    pub(super) fn create(&mut self, path: &str, data: Bytes, owner: i64, now_ms: i64) -> Result<Stat, Error> {
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
            ephemeral_owner: owner,
            data_len: len_of(&data),
            children_zxid: zxid,
            ..Stat::default()
        };
        assert!(stat.created_zxid == self.zxid, "a creation is the newest change");
        self.nodes.insert(path.to_string(), Znode { data, stat });
        self.notify(path);
        Ok(stat)
    }

    pub(super) fn set(
        &mut self,
        path: &str,
        data: Bytes,
        version: Option<i32>,
        now_ms: i64,
    ) -> Result<Stat, Error> {
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

    pub(super) fn delete(&mut self, path: &str, version: Option<i32>) -> Result<(), Error> {
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

    /// Deletes the znodes that `session` owns, and its watches.
    pub(super) fn end_session(&mut self, session: i64) {
        self.watches.remove(&session);
        let is_own = |(_, node): &(&String, &Znode)| node.stat.ephemeral_owner == session;
        let own: Vec<String> = self.nodes.iter().filter(is_own).map(|(path, _)| path.clone()).collect();
        for path in own {
            self.delete(&path, None).expect("an ephemeral znode exists and has no children");
        }
    }

    /// The watches of `session`.
    pub(super) fn watches(&mut self, session: i64) -> &mut Watches {
        self.watches.entry(session).or_default()
    }

    fn notify(&mut self, path: &str) {
        self.watches.values_mut().for_each(|watches| watches.notify(path));
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

    pub(super) fn children(&self, path: &str) -> Vec<String> {
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
