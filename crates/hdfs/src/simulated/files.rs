//! The tree of directories and files.

use std::collections::BTreeMap;

use super::wire::Exception;

pub(super) const NOT_FOUND: &str = "java.io.FileNotFoundException";
pub(super) const IO: &str = "java.io.IOException";
pub(super) const EXISTS: &str = "org.apache.hadoop.fs.FileAlreadyExistsException";
const NOT_EMPTY: &str = "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException";
const PARENT_NOT_DIRECTORY: &str = "org.apache.hadoop.fs.ParentNotDirectoryException";
const INODES: &str = "/.reserved/.inodes/";
/// The number of the type of storage of replicas without a policy.
const DISK: u32 = 1;
/// The id of the root directory.
pub(super) const ROOT: u64 = 16_385;

/// The state of a block as the NameNode knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockState {
    /// It is being written.
    Open,
    /// The client has stated its length.
    Committed,
    /// And a DataNode has such a replica.
    Complete,
}

#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) id: u64,
    pub(super) stamp: u64,
    pub(super) len: u64,
    pub(super) state: BlockState,
    /// The ids of the DataNodes on which it is written.
    pub(super) expected: Vec<String>,
    /// The types of storage of its replicas, by DataNode.
    pub(super) types: BTreeMap<String, u32>,
    /// The id of a recovery that has begun.
    pub(super) recovery_id: Option<u64>,
}

impl Block {
    /// The type of storage of the replica on a DataNode.
    pub(super) fn type_on(&self, node: &str) -> u32 {
        self.types.get(node).copied().unwrap_or(DISK)
    }
}

#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) blocks: Vec<Block>,
    pub(super) replication: u32,
    /// The holder of the lease, while the file is open.
    pub(super) holder: Option<String>,
}

impl File {
    /// The length without a last block that is not complete.
    pub(super) fn closed_len(&self) -> u64 {
        self.complete_blocks().map(|block| block.len).sum()
    }

    /// The blocks without a last one that is not complete.
    pub(super) fn complete_blocks(&self) -> impl Iterator<Item = &Block> {
        let incomplete = |block: &Block| block.state != BlockState::Complete;
        let count = self.blocks.len() - usize::from(self.blocks.last().is_some_and(incomplete));
        self.blocks[..count].iter()
    }
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Dir(BTreeMap<String, u64>),
    File(File),
}

#[derive(Clone, Debug)]
pub(super) struct Inode {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) modified_ms: u64,
    pub(super) content: Content,
    /// The id of its own storage policy; 0 if it has none.
    pub(super) policy: u32,
    parent: u64,
}

impl Inode {
    pub(super) fn is_dir(&self) -> bool {
        matches!(self.content, Content::Dir(_))
    }

    pub(super) fn is_root(&self) -> bool {
        self.id == ROOT
    }

    pub(super) fn parent(&self) -> u64 {
        self.parent
    }
}

/// All directories and files.
pub(super) struct Files {
    inodes: BTreeMap<u64, Inode>,
    /// The file of each block.
    owners: BTreeMap<u64, u64>,
    last_id: u64,
}

impl Files {
    pub(super) fn new() -> Files {
        let content = Content::Dir(BTreeMap::new());
        let root = Inode { id: ROOT, name: String::new(), modified_ms: 0, content, policy: 0, parent: ROOT };
        Files { inodes: BTreeMap::from([(ROOT, root)]), owners: BTreeMap::new(), last_id: ROOT }
    }

    /// The inode at a path, or at a path that names an inode.
    ///
    /// # Errors
    /// If a parent is a file.
    pub(super) fn find(&self, path: &str) -> Result<Option<&Inode>, Exception> {
        if let Some(id) = path.strip_prefix(INODES) {
            return Ok(id.parse().ok().and_then(|id| self.inodes.get(&id)));
        }
        let mut inode = &self.inodes[&ROOT];
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let Content::Dir(entries) = &inode.content else {
                return Err((PARENT_NOT_DIRECTORY, format!("{path}: {} (is not a directory)", inode.name)));
            };
            match entries.get(name) {
                Some(id) => inode = &self.inodes[id],
                None => return Ok(None),
            }
        }
        Ok(Some(inode))
    }

    /// The inode at a path.
    ///
    /// # Errors
    /// If it does not exist.
    pub(super) fn get(&self, path: &str) -> Result<&Inode, Exception> {
        self.find(path)?.ok_or_else(|| (NOT_FOUND, format!("File does not exist: {path}")))
    }

    pub(super) fn by_id(&self, id: u64) -> Option<&Inode> {
        self.inodes.get(&id)
    }

    /// The file of this id.
    pub(super) fn file_mut(&mut self, id: u64) -> Option<&mut File> {
        match &mut self.inodes.get_mut(&id)?.content {
            Content::File(file) => Some(file),
            Content::Dir(_) => None,
        }
    }

    pub(super) fn file(&self, id: u64) -> Option<&File> {
        match &self.inodes.get(&id)?.content {
            Content::File(file) => Some(file),
            Content::Dir(_) => None,
        }
    }

    /// The file of a block, and the block.
    pub(super) fn block(&self, block_id: u64) -> Option<(u64, &Block)> {
        let owner = *self.owners.get(&block_id)?;
        let block = self.file(owner)?.blocks.iter().find(|block| block.id == block_id)?;
        Some((owner, block))
    }

    pub(super) fn block_mut(&mut self, block_id: u64) -> Option<&mut Block> {
        let owner = *self.owners.get(&block_id)?;
        self.file_mut(owner)?.blocks.iter_mut().find(|block| block.id == block_id)
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.owners.keys().filter_map(|id| self.block(*id)).map(|(_, block)| block)
    }

    /// All files that are open, with the holders of their leases.
    pub(super) fn open_files(&self) -> impl Iterator<Item = (u64, &str)> {
        self.inodes.values().filter_map(|inode| match &inode.content {
            Content::File(file) => file.holder.as_deref().map(|holder| (inode.id, holder)),
            Content::Dir(_) => None,
        })
    }

    pub(super) fn add_block(&mut self, file_id: u64, block: Block) {
        self.owners.insert(block.id, file_id);
        if let Some(file) = self.file_mut(file_id) {
            file.blocks.push(block);
        }
    }

    pub(super) fn remove_last_block(&mut self, file_id: u64) {
        let removed = self.file_mut(file_id).and_then(|file| file.blocks.pop());
        if let Some(block) = removed {
            self.owners.remove(&block.id);
        }
    }

    /// Sets the storage policy of an inode.
    pub(super) fn set_policy(&mut self, id: u64, policy: u32) {
        if let Some(inode) = self.inodes.get_mut(&id) {
            inode.policy = policy;
        }
    }

    pub(super) fn touch(&mut self, id: u64, now_ms: u64) {
        if let Some(inode) = self.inodes.get_mut(&id) {
            inode.modified_ms = now_ms;
        }
    }

    /// The path of an inode.
    pub(super) fn path_of(&self, id: u64) -> String {
        let mut names = Vec::new();
        let mut inode = self.inodes.get(&id);
        while let Some(found) = inode.filter(|inode| inode.id != ROOT) {
            names.push(found.name.as_str());
            inode = self.inodes.get(&found.parent);
        }
        names.iter().rev().fold(String::new(), |path, name| path + "/" + name)
    }

    /// The directory that contains the path, and the last name of the path.
    ///
    /// # Errors
    /// If it does not exist or is a file.
    fn parent_of<'p>(&self, path: &'p str) -> Result<(u64, &'p str), Exception> {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.find(dir)?;
        let parent = parent.ok_or_else(|| (NOT_FOUND, format!("Parent directory doesn't exist: {dir}")))?;
        match parent.is_dir() {
            true => Ok((parent.id, name)),
            false => Err((
                PARENT_NOT_DIRECTORY,
                format!("Parent path is not a directory: {dir} (is not a directory)"),
            )),
        }
    }

    /// Adds an inode, whose directory must exist.
    ///
    /// # Errors
    /// If the directory does not exist.
    pub(super) fn add(&mut self, path: &str, content: Content, now_ms: u64) -> Result<&Inode, Exception> {
        let (parent, name) = self.parent_of(path)?;
        self.last_id += 1;
        let id = self.last_id;
        let inode = Inode { id, name: name.to_owned(), modified_ms: now_ms, content, policy: 0, parent };
        self.inodes.insert(id, inode);
        self.link(parent, name, id, now_ms);
        Ok(&self.inodes[&id])
    }

    fn entries(&mut self, dir: u64) -> Option<&mut BTreeMap<String, u64>> {
        match &mut self.inodes.get_mut(&dir)?.content {
            Content::Dir(entries) => Some(entries),
            Content::File(_) => None,
        }
    }

    fn link(&mut self, parent: u64, name: &str, id: u64, now_ms: u64) {
        if let Some(entries) = self.entries(parent) {
            entries.insert(name.to_owned(), id);
        }
        self.touch(parent, now_ms);
    }

    fn unlink(&mut self, id: u64, now_ms: u64) {
        let Some(inode) = self.inodes.get(&id) else { return };
        let (parent, name) = (inode.parent, inode.name.clone());
        if let Some(entries) = self.entries(parent) {
            entries.remove(&name);
        }
        self.touch(parent, now_ms);
    }

    /// Makes a directory and its missing parents.
    ///
    /// # Errors
    /// If a parent, or the path itself, is a file.
    pub(super) fn make_dirs(&mut self, path: &str, now_ms: u64) -> Result<(), Exception> {
        let mut made = String::new();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            made = made + "/" + name;
            match self.find(&made)? {
                Some(inode) if inode.is_dir() => {}
                Some(_) if made.len() == path.len() => {
                    return Err((EXISTS, format!("Path is not a directory: {path}")));
                }
                Some(_) => {
                    return Err((PARENT_NOT_DIRECTORY, format!("{made} (is not a directory)")));
                }
                None => drop(self.add(&made, Content::Dir(BTreeMap::new()), now_ms)?),
            }
        }
        Ok(())
    }

    /// Removes a path and, if `recursive`, everything below it. Returns whether it existed.
    ///
    /// # Errors
    /// If a parent is a file, or a directory has entries that are not to be removed.
    pub(super) fn delete(&mut self, path: &str, recursive: bool, now_ms: u64) -> Result<bool, Exception> {
        let Some(inode) = self.find(path)?.filter(|inode| inode.id != ROOT) else {
            return Ok(false);
        };
        if !recursive && matches!(&inode.content, Content::Dir(entries) if !entries.is_empty()) {
            return Err((NOT_EMPTY, format!("{path} is non empty")));
        }
        let id = inode.id;
        self.unlink(id, now_ms);
        self.remove(id);
        Ok(true)
    }

    fn remove(&mut self, id: u64) {
        match self.inodes.remove(&id).map(|inode| inode.content) {
            Some(Content::Dir(entries)) => entries.values().for_each(|entry| self.remove(*entry)),
            Some(Content::File(file)) => {
                for block in &file.blocks {
                    self.owners.remove(&block.id);
                }
            }
            None => {}
        }
    }

    /// Renames, as `rename2` does.
    ///
    /// # Errors
    /// See HDFS.
    pub(super) fn rename(
        &mut self,
        src: &str,
        dst: &str,
        overwrite: bool,
        now_ms: u64,
    ) -> Result<(), Exception> {
        let source = self.get(src)?;
        let (id, is_dir) = (source.id, source.is_dir());
        if src == dst {
            return Err((EXISTS, format!("The source {src} and destination {dst} are the same")));
        }
        if dst.strip_prefix(src).is_some_and(|below| below.starts_with('/')) {
            return Err((IO, format!("Rename destination {dst} is a directory or file under source {src}")));
        }
        if let Some(target) = self.find(dst)? {
            if target.is_dir() != is_dir {
                return Err((IO, format!("Source {src} and destination {dst} must both be directories")));
            }
            if !overwrite {
                return Err((EXISTS, format!("rename destination {dst} already exists")));
            }
            if matches!(&target.content, Content::Dir(entries) if !entries.is_empty()) {
                return Err((IO, format!("rename destination directory is not empty: {dst}")));
            }
        }
        let (parent, name) = self.parent_of(dst)?;
        self.delete(dst, true, now_ms)?;
        self.unlink(id, now_ms);
        if let Some(inode) = self.inodes.get_mut(&id) {
            (inode.parent, inode.name) = (parent, name.to_owned());
        }
        self.link(parent, name, id, now_ms);
        Ok(())
    }
}
