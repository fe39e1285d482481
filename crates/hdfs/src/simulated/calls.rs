//! The calls of clients.

use bytes::Bytes;

use super::blocks::extended;
use super::files::{Block, BlockState, Content, File, IO, Inode, NOT_FOUND};
use super::ipc::Call;
use super::namenode::Execution;
use super::policies::types_of;
use super::wire::{Exception, Outcome, encode};
use crate::generated::*;

const NO_METHOD: &str = "org.apache.hadoop.ipc.RpcNoSuchMethodException";
const NOT_REPLICATED: &str = "org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException";
/// Bytes of the storage of one DataNode.
const CAPACITY: u64 = 1 << 40;

impl Execution<'_> {
    /// Executes a call on the active NameNode.
    pub(super) fn execute(&mut self, call: &Call) -> Outcome {
        match call.method.as_str() {
            "getServerDefaults" => encode(ServerDefaultsResponse::default()),
            "getFsStats" => {
                let capacity = CAPACITY * self.reported.nodes.len() as u64;
                encode(FsStatsResponse { capacity, used: 0, remaining: capacity })
            }
            "getErasureCodingPolicy" => {
                self.names.files.get(&call.decode::<PathRequest>()?.src)?;
                encode(ErasureCodingPolicyResponse { ec_policy: None })
            }
            "getFileInfo" => {
                let found = self.names.files.find(&call.decode::<PathRequest>()?.src)?;
                encode(FileInfoResponse { fs: found.map(|inode| self.status(inode, Bytes::new())) })
            }
            "getLocatedFileInfo" => {
                let src = call.decode::<LocatedFileInfoRequest>()?.src.unwrap_or_default();
                let found = self.names.files.find(&src)?;
                encode(FileInfoResponse { fs: found.map(|inode| self.located_status(inode, Bytes::new())) })
            }
            "getBlockLocations" => {
                let found = self.names.files.find(&call.decode::<BlockLocationsRequest>()?.src)?;
                encode(BlockLocationsResponse { locations: found.and_then(|inode| self.locations(inode)) })
            }
            "getListing" => self.list(&call.decode()?),
            "mkdirs" => {
                self.names.files.make_dirs(&call.decode::<MkdirsRequest>()?.src, self.now_ms)?;
                encode(BoolResponse { result: true })
            }
            "create" => self.create(call.decode()?),
            "rename2" => {
                let request: RenameRequest = call.decode()?;
                let RenameRequest { src, dst, overwrite_dest } = &request;
                self.names.files.rename(src, dst, *overwrite_dest, self.now_ms)?;
                encode(Empty {})
            }
            "delete" => {
                let DeleteRequest { src, recursive } = call.decode()?;
                let result = self.names.files.delete(&src, recursive, self.now_ms)?;
                encode(BoolResponse { result })
            }
            "addBlock" => self.add_block(call.decode()?),
            "abandonBlock" => self.abandon_block(&call.decode()?),
            "complete" => self.complete(&call.decode()?),
            "fsync" => self.fsync(&call.decode()?),
            "renewLease" => {
                self.reported.renewed.insert(call.decode::<RenewLeaseRequest>()?.client_name, self.now);
                encode(Empty {})
            }
            "setStoragePolicy" => self.set_storage_policy(&call.decode()?),
            "satisfyStoragePolicy" => self.satisfy_storage_policy(&call.decode()?),
            "recoverLease" => self.recover_lease(call.decode()?),
            "updateBlockForPipeline" => self.update_block(&call.decode()?),
            "updatePipeline" => self.update_pipeline(call.decode()?),
            "reportBadBlocks" => self.report_bad_blocks(&call.decode()?),
            "commitBlockSynchronization" => self.commit_recovery(call.decode()?),
            other => Err((NO_METHOD, format!("Unknown method {other}"))),
        }
    }

    /// The status of an inode, without locations.
    fn status(&self, inode: &Inode, path: Bytes) -> FileStatus {
        let (file_type, length) = match &inode.content {
            Content::Dir(_) => (1, 0),
            Content::File(file) => (2, file.blocks.iter().map(|block| block.len).sum()),
        };
        FileStatus {
            file_type,
            path,
            length,
            modification_time: inode.modified_ms,
            file_id: Some(inode.id),
            storage_policy: Some(self.names.files.policy_of(inode.id)),
            flags: Some(0),
            ..FileStatus::default()
        }
    }

    fn locations(&self, inode: &Inode) -> Option<LocatedBlocks> {
        let Content::File(file) = &inode.content else { return None };
        let blocks = self.located_blocks(file.complete_blocks());
        let open = file.blocks.last().filter(|block| block.state != BlockState::Complete);
        let last_block = match open {
            Some(block) => Some(self.located(block, &self.known_nodes(block), file.closed_len())),
            None => blocks.last().cloned(),
        };
        Some(LocatedBlocks {
            file_length: file.closed_len(),
            blocks,
            under_construction: file.holder.is_some(),
            last_block,
            is_last_block_complete: open.is_none(),
        })
    }

    fn located_status(&self, inode: &Inode, path: Bytes) -> FileStatus {
        FileStatus { locations: self.locations(inode), ..self.status(inode, path) }
    }

    fn list(&self, request: &ListingRequest) -> Outcome {
        let Some(inode) = self.names.files.find(&request.src)? else {
            return encode(ListingResponse { dir_list: None });
        };
        let status_of = |inode: &Inode, path: Bytes| match request.need_location {
            true => self.located_status(inode, path),
            false => self.status(inode, path),
        };
        let Content::Dir(entries) = &inode.content else {
            let partial_listing = vec![status_of(inode, Bytes::new())];
            let dir_list = Some(DirectoryListing { partial_listing, remaining_entries: 0 });
            return encode(ListingResponse { dir_list });
        };
        let after = String::from_utf8_lossy(&request.start_after).into_owned();
        let later: Vec<&u64> = entries.iter().filter(|(name, _)| **name > after).map(|(_, id)| id).collect();
        let page = later.iter().take(self.namenode.options.listing_page);
        let found = page.filter_map(|id| self.names.files.by_id(**id));
        let partial_listing: Vec<FileStatus> =
            found.map(|inode| status_of(inode, Bytes::copy_from_slice(inode.name.as_bytes()))).collect();
        let remaining_entries = (later.len() - partial_listing.len()) as u32;
        encode(ListingResponse { dir_list: Some(DirectoryListing { partial_listing, remaining_entries }) })
    }

    fn create(&mut self, request: CreateRequest) -> Outcome {
        let CreateRequest { src, client_name, replication, .. } = request;
        if let Some(existing) = self.names.files.find(&src)?.map(|inode| inode.id) {
            return Err(self.creation_conflict(existing, &src, &client_name));
        }
        self.reported.renewed.insert(client_name.clone(), self.now);
        let file = File { blocks: Vec::new(), replication, holder: Some(client_name) };
        self.names.files.add(&src, Content::File(file), self.now_ms)?;
        let created = self.names.files.get(&src)?;
        encode(CreateResponse { fs: Some(self.status(created, Bytes::new())) })
    }

    fn add_block(&mut self, request: AddBlockRequest) -> Outcome {
        let AddBlockRequest { src, client_name, previous, exclude_nodes, file_id } = request;
        let file_id = self.check_lease(&src, file_id, &client_name)?;
        if let Some(block) = self.repeated(file_id, previous.as_ref())? {
            let located = self.located(&block, &block.expected, self.written(file_id) - block.len);
            return encode(AddBlockResponse { block: located });
        }
        self.commit_last(file_id, previous.as_ref())?;
        let file = self.names.files.file(file_id).ok_or((NOT_FOUND, src.clone()))?;
        // All but the last block must have replicas.
        let earlier = file.blocks.len().saturating_sub(1);
        if file.blocks[..earlier].iter().any(|block| block.state != BlockState::Complete) {
            return Err((NOT_REPLICATED, format!("Not replicated yet: {src}")));
        }
        let expected = self.choose_nodes(file.replication as usize, &exclude_nodes)?;
        let (id, stamp) = (self.names.next_block(), self.names.next_stamp());
        let types = types_of(self.names.files.policy_of(file_id), &expected);
        let block = Block { id, stamp, len: 0, state: BlockState::Open, expected, types, recovery_id: None };
        self.reported.placed.insert(id);
        self.names.files.add_block(file_id, block.clone());
        let located = self.located(&block, &block.expected, self.written(file_id));
        encode(AddBlockResponse { block: located })
    }

    /// The bytes of all blocks of a file.
    fn written(&self, file_id: u64) -> u64 {
        let blocks = self.names.files.file(file_id).map(|file| &file.blocks);
        blocks.into_iter().flatten().map(|block| block.len).sum()
    }

    /// The block that an earlier, equal request has added.
    ///
    /// # Errors
    /// If the client's previous block is not the last one of the file.
    fn repeated(&self, file_id: u64, previous: Option<&ExtendedBlock>) -> Result<Option<Block>, Exception> {
        let blocks = self.names.files.file(file_id).map_or(&[][..], |file| &file.blocks);
        let is = |block: Option<&Block>| match (block, previous) {
            (None, None) => true,
            (Some(block), Some(previous)) => is_same(block, previous),
            _ => false,
        };
        if is(blocks.last()) {
            return Ok(None);
        }
        let (last, earlier) = blocks.split_last().ok_or((IO, "the file has no block".to_owned()))?;
        if is(earlier.last()) && last.len == 0 && last.state == BlockState::Open {
            return Ok(Some(last.clone()));
        }
        Err((
            IO,
            format!("Cannot allocate block: passed 'previous' block {previous:?} is not the last block"),
        ))
    }

    /// Commits the last block of a file with the length that the client states.
    ///
    /// # Errors
    /// If it is another block.
    fn commit_last(&mut self, file_id: u64, stated: Option<&ExtendedBlock>) -> Result<(), Exception> {
        let last = self.names.files.file_mut(file_id).and_then(|file| file.blocks.last_mut());
        if let (Some(block), Some(stated)) = (last, stated) {
            if !is_same(block, stated) {
                return Err((IO, format!("block {} with stamp {} expected", block.id, block.stamp)));
            }
            if block.state == BlockState::Open {
                (block.len, block.state) = (stated.num_bytes(), BlockState::Committed);
            }
        }
        self.complete_blocks(file_id);
        Ok(())
    }

    fn abandon_block(&mut self, request: &AbandonBlockRequest) -> Outcome {
        let file_id = self.check_lease(&request.src, request.file_id, &request.holder)?;
        let last = self.names.files.file(file_id).and_then(|file| file.blocks.last());
        if last.is_some_and(|last| last.id == request.b.block_id) {
            self.names.files.remove_last_block(file_id);
        }
        encode(Empty {})
    }

    /// Stores the length of the last block that the client states, if it is open.
    fn fsync(&mut self, request: &FsyncRequest) -> Outcome {
        let file_id = self.check_lease(&request.src, request.file_id, &request.client)?;
        let last = self.names.files.file_mut(file_id).and_then(|file| file.blocks.last_mut());
        let len = u64::try_from(request.last_block_length.unwrap_or(-1)).unwrap_or(0);
        if let Some(block) = last.filter(|block| len > 0 && block.state == BlockState::Open) {
            block.len = len;
        }
        encode(Empty {})
    }

    fn complete(&mut self, request: &CompleteRequest) -> Outcome {
        let CompleteRequest { src, client_name, last, file_id } = request;
        let file_id = match self.check_lease(src, *file_id, client_name) {
            Ok(file_id) => file_id,
            Err(exception) => {
                let known = file_id.and_then(|id| self.names.files.file(id));
                let is_closed = known.filter(|file| file.holder.is_none());
                let is_repeated = is_closed.is_some_and(|file| match (file.blocks.last(), last) {
                    (Some(block), Some(last)) => is_same(block, last),
                    (None, None) => true,
                    _ => false,
                });
                return if is_repeated { encode(BoolResponse { result: true }) } else { Err(exception) };
            }
        };
        self.commit_last(file_id, last.as_ref())?;
        let file = self.names.files.file(file_id);
        let result =
            file.is_some_and(|file| file.blocks.iter().all(|block| block.state == BlockState::Complete));
        if result {
            self.close(file_id);
        }
        encode(BoolResponse { result })
    }

    /// An open block of which `holder` has the lease.
    ///
    /// # Errors
    /// If it is not open, or another client has the lease.
    fn open_block(&self, block: &ExtendedBlock, holder: &str) -> Result<Block, Exception> {
        let known = self.names.files.block(block.block_id);
        let (file_id, known) =
            known.ok_or_else(|| (IO, format!("Block {} does not exist", block.block_id)))?;
        if known.state != BlockState::Open || known.recovery_id.is_some() {
            return Err((IO, format!("Block {} is not under construction", block.block_id)));
        }
        self.check_lease(&self.names.files.path_of(file_id), Some(file_id), holder)?;
        Ok(known.clone())
    }

    fn update_block(&mut self, request: &UpdateBlockForPipelineRequest) -> Outcome {
        let known = self.open_block(&request.block, &request.client_name)?;
        let b = ExtendedBlock { generation_stamp: self.names.next_stamp(), ..extended(&known) };
        let block = LocatedBlock { b, ..LocatedBlock::default() };
        encode(UpdateBlockForPipelineResponse { block })
    }

    fn update_pipeline(&mut self, request: UpdatePipelineRequest) -> Outcome {
        let known = self.open_block(&request.old_block, &request.client_name)?;
        let (old, new) = (&request.old_block, &request.new_block);
        if old.generation_stamp != known.stamp || new.generation_stamp <= known.stamp {
            let message = format!("Update {old:?} to {new:?}, but the block has the stamp {}", known.stamp);
            return Err((IO, message));
        }
        let storages = request.storage_ids.iter();
        let nodes = storages.map(|storage| storage.trim_start_matches("storage-").to_owned());
        let nodes: Vec<String> = nodes.collect();
        self.record(&format!(
            "continues block {} with stamp {} -> {} on {}",
            known.id,
            known.stamp,
            new.generation_stamp,
            nodes.join(" ")
        ));
        self.reported.placed.insert(known.id);
        if let Some(block) = self.names.files.block_mut(known.id) {
            (block.stamp, block.expected) = (new.generation_stamp, nodes);
        }
        encode(Empty {})
    }

    fn report_bad_blocks(&mut self, request: &BadBlocksRequest) -> Outcome {
        for located in &request.blocks {
            let nodes = crate::link::Node::all_of(located).unwrap_or_default();
            for node in nodes {
                let (block_id, uuid) = (located.b.block_id, node.id.datanode_uuid);
                self.record(&format!("the replica of block {block_id} on {uuid} is corrupt"));
                self.reported.corrupt.insert((block_id, uuid));
            }
        }
        encode(Empty {})
    }
}

fn is_same(block: &Block, stated: &ExtendedBlock) -> bool {
    (block.id, block.stamp) == (stated.block_id, stated.generation_stamp)
}
