//! Where the blocks of a file are.

use base::env::Random;
use bytes::Bytes;
use fs::{Error, FilePath, Result};

use crate::file::Shared;
use crate::generated::{
    BlockLocationsRequest, BlockLocationsResponse, ExtendedBlock, FileInfoResponse, FileStatus, LocatedBlock,
    LocatedBlocks, LocatedFileInfoRequest, PathRequest,
};
use crate::link::Node;
use crate::visible::visible_len;

/// A block with its replicas.
#[derive(Clone)]
pub(crate) struct Replicated {
    pub(crate) block: ExtendedBlock,
    pub(crate) token: Bytes,
    /// Position of its first byte in the file.
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// The DataNodes that have a replica, those of this machine first.
    pub(crate) nodes: Vec<Node>,
}

/// A range of one block: its index, the position in the block, and the length.
pub(crate) type Part = (usize, u64, usize);

/// All blocks of a file, in order and without gaps.
#[derive(Clone)]
pub(crate) struct Located {
    pub(crate) blocks: Vec<Replicated>,
    pub(crate) len: u64,
}

impl Located {
    /// The blocks of a file, without a last one that is not complete.
    ///
    /// # Errors
    /// What is wrong with the NameNode's list.
    pub(crate) fn complete(located: &LocatedBlocks) -> std::result::Result<Located, String> {
        let mut blocks: Vec<Replicated> = Vec::with_capacity(located.blocks.len());
        let mut offset = 0;
        let open_id = open_block(located).map(|block| block.b.block_id);
        for found in located.blocks.iter().filter(|found| Some(found.b.block_id) != open_id) {
            if found.offset != offset {
                return Err(format!("a block begins at {} and not at {offset}", found.offset));
            }
            let replicated = replicated(found)?;
            let end = replicated.len.checked_add(offset);
            offset = end.ok_or_else(|| format!("a block of {} bytes at {offset}", replicated.len))?;
            blocks.push(replicated);
        }
        match offset == located.file_length {
            true => Ok(Located { blocks, len: offset }),
            false => Err(format!("the blocks have {offset} of {} bytes", located.file_length)),
        }
    }

    /// Adds a last block that is not complete, with the length that a DataNode states.
    ///
    /// # Errors
    /// If the file would be too long.
    pub(crate) fn push_open(&mut self, block: Replicated, len: u64) -> std::result::Result<(), String> {
        let offset = self.len;
        self.len = offset.checked_add(len).ok_or_else(|| format!("a block of {len} bytes at {offset}"))?;
        let visible = ExtendedBlock { num_bytes: Some(len), ..block.block };
        self.blocks.push(Replicated { block: visible, offset, len, ..block });
        Ok(())
    }

    /// Puts the nodes of each block in a random order.
    fn shuffle(&mut self, random: &dyn Random) {
        self.blocks.iter_mut().for_each(|block| block.nodes.sort_by_cached_key(|_| random.next_u64()));
    }

    /// Moves the nodes for which `is_local` returns true to the beginning of all lists.
    fn put_local_first(&mut self, is_local: impl Fn(&Node) -> bool) {
        self.blocks.iter_mut().for_each(|block| block.nodes.sort_by_key(|node| !is_local(node)));
    }

    /// Moves a node to the end of the list of a block, if the file has this block.
    pub(crate) fn put_last(&mut self, block_id: u64, node: &Node) {
        if let Some(block) = self.blocks.iter_mut().find(|block| block.block.block_id == block_id) {
            block.nodes.sort_by_key(|other| other.is_in(std::slice::from_ref(node)));
        }
    }

    /// The parts of the range that begins at `offset`, in order. The range must not go beyond the
    /// end of the file.
    pub(crate) fn parts(&self, mut offset: u64, len: usize) -> Vec<Part> {
        let end = offset + len as u64;
        debug_assert!(end <= self.len, "a range ends within the file");
        let first = self.blocks.partition_point(|block| block.offset + block.len <= offset);
        let mut parts = Vec::with_capacity(1);
        for (index, block) in self.blocks.iter().enumerate().skip(first) {
            if offset >= end {
                break;
            }
            let part_end = end.min(block.offset + block.len);
            parts.push((index, offset - block.offset, (part_end - offset) as usize));
            offset = part_end;
        }
        parts
    }
}

/// The last block, if it is being written or the NameNode waits for replicas of it.
fn open_block(located: &LocatedBlocks) -> Option<&LocatedBlock> {
    let is_open = located.under_construction && !located.is_last_block_complete;
    located.last_block.as_ref().filter(|_| is_open)
}

/// The last block with its replicas, if it is not complete.
///
/// # Errors
/// If a description of a DataNode is invalid.
pub(crate) fn open_replicated(located: &LocatedBlocks) -> std::result::Result<Option<Replicated>, String> {
    open_block(located).map(replicated).transpose()
}

fn replicated(found: &LocatedBlock) -> std::result::Result<Replicated, String> {
    let nodes = Node::all_of(found).map_err(|error| error.to_string())?;
    let (block, token) = (found.b.clone(), found.block_token.clone());
    Ok(Replicated { len: block.num_bytes(), block, token, offset: found.offset, nodes })
}

/// The status of a file with the locations of its blocks, if the NameNode sends both with one call.
/// NameNodes before Hadoop 3.2 need two calls.
pub(crate) async fn located_status(shared: &Shared, path: &FilePath) -> Result<Option<FileStatus>> {
    let src = shared.full(path);
    let request = LocatedFileInfoRequest { src: Some(src.clone()), need_block_token: Some(true) };
    let found = match shared.namenode.call("getLocatedFileInfo", &request).await {
        Err(failure) if failure.is("RpcNoSuchMethodException") => {
            shared.namenode.call("getFileInfo", &PathRequest { src }).await
        }
        found => found,
    };
    match found {
        Ok(FileInfoResponse { fs }) => Ok(fs),
        Err(failure) if failure.means_not_found() => Ok(None),
        Err(failure) => Err(failure.at(path, "open")),
    }
}

/// The blocks of the file at `inode`, a path of its inode.
///
/// # Errors
/// [`Error::NotFound`] if the file does not exist any more.
pub(crate) async fn locate(shared: &Shared, path: &FilePath, inode: &str) -> Result<Located> {
    let request = BlockLocationsRequest { src: inode.to_owned(), offset: 0, length: i64::MAX as u64 };
    let found = shared.namenode.call("getBlockLocations", &request).await;
    let found: BlockLocationsResponse = found.map_err(|failure| failure.at(path, "open"))?;
    let found = found.locations.ok_or_else(|| Error::NotFound { path: path.clone() })?;
    located(shared, path, &found).await
}

/// The blocks of a file that [`located_status`] has listed. The NameNode sorts the result of
/// getBlockLocations by distance, but not that of getLocatedFileInfo: without a random order, all
/// readers without a local replica would use the same one.
pub(crate) async fn located_unsorted(
    shared: &Shared,
    path: &FilePath,
    found: &LocatedBlocks,
) -> Result<Located> {
    let mut located = located(shared, path, found).await?;
    located.shuffle(&*shared.env.random);
    located.put_local_first(|node| shared.local.has(&*shared.env.net, node));
    Ok(located)
}

/// The blocks of a file that the NameNode has listed. If it is being written, the bytes that are
/// flushed so far.
async fn located(shared: &Shared, path: &FilePath, found: &LocatedBlocks) -> Result<Located> {
    let invalid = |what| Error::io(path, "open", what);
    let mut located = Located::complete(found).map_err(invalid)?;
    if let Some(open) = open_replicated(found).map_err(invalid)? {
        let len = visible_len(shared, path, &open).await?;
        located.push_open(open, len).map_err(invalid)?;
    }
    // The NameNode compares names of hosts, which may differ from those of this machine.
    located.put_local_first(|node| shared.local.has(&*shared.env.net, node));
    Ok(located)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::located as new_block;

    fn blocks(lens: &[u64]) -> LocatedBlocks {
        let mut offset = 0;
        let block = |(id, len): (usize, &u64)| {
            let mut block = new_block(id as u64, &[1]);
            block.b.num_bytes = Some(*len);
            block.offset = offset;
            offset += len;
            block
        };
        let blocks = lens.iter().enumerate().map(block).collect();
        LocatedBlocks { file_length: lens.iter().sum(), blocks, ..LocatedBlocks::default() }
    }

    #[test]
    fn a_range_has_parts_in_several_blocks() {
        let located = Located::complete(&blocks(&[10, 10, 5])).unwrap();
        assert_eq!(located.len, 25);
        assert_eq!(located.parts(0, 10), [(0, 0, 10)]);
        assert_eq!(located.parts(10, 3), [(1, 0, 3)]);
        assert_eq!(located.parts(9, 13), [(0, 9, 1), (1, 0, 10), (2, 0, 2)]);
        assert_eq!(located.parts(24, 1), [(2, 4, 1)]);
        assert_eq!(located.parts(25, 0), []);
    }

    #[test]
    fn a_list_with_gaps_is_refused() {
        let mut gap = blocks(&[10, 10]);
        gap.blocks[1].offset = 11;
        assert!(Located::complete(&gap).is_err());
        assert!(Located::complete(&blocks(&[10, 0])).is_ok());
        let mut endless = blocks(&[10, 10]);
        endless.blocks[1].b.num_bytes = Some(u64::MAX);
        assert!(Located::complete(&endless).is_err());
        let mut short = blocks(&[10, 10]);
        short.file_length = 21;
        assert!(Located::complete(&short).is_err());
    }

    #[test]
    fn an_open_block_is_the_last_one() {
        let mut open = blocks(&[10, 3]);
        open.file_length = 10;
        open.under_construction = true;
        open.last_block = open.blocks.last().cloned();
        let located = || Located::complete(&open).unwrap();
        assert_eq!((located().len, located().blocks.len()), (10, 1));
        let last = || open_replicated(&open).unwrap().unwrap();
        let mut readable = located();
        readable.push_open(last(), 7).unwrap();
        assert_eq!((readable.len, readable.blocks[1].block.num_bytes()), (17, 7));
        assert_eq!(readable.parts(9, 8), [(0, 9, 1), (1, 0, 7)]);
        assert!(located().push_open(last(), u64::MAX - 9).is_err());
        open.is_last_block_complete = true;
        assert!(open_replicated(&open).unwrap().is_none());
    }
}
