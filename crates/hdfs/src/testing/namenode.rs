//! A NameNode with a flat set of paths, leases and a cache of results.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::env::{Env, Stream, TaskClass};
use bytes::{Buf, Bytes};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{located, loopback};
use crate::generated::*;
use crate::simulated::wire::{Outcome, encode, read_frame, response};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Active,
    Standby,
    Safe,
    /// Accepts connections, and does not respond.
    Hung,
    /// Refuses each connection.
    Refuses,
    /// Sends each response of a connection only after this time.
    Slow(Duration),
}

#[derive(Default)]
pub(crate) struct Namespace {
    pub(crate) modes: HashMap<u16, Mode>,
    /// The method whose next response is lost, after the call was executed.
    pub(crate) lose_response: Option<&'static str>,
    /// All calls that arrived: port, method, call id, retries.
    pub(crate) calls: Vec<(u16, String, i32, i32)>,
    /// Paths, with the holder of the lease of files that are open.
    pub(crate) paths: BTreeMap<String, Inode>,
    pub(crate) datanodes: Vec<u16>,
    /// Id and length of the previous block that each call for a block stated.
    pub(crate) previous: Vec<Option<(u64, u64)>>,
    /// The last block of each file.
    pub(crate) blocks: HashMap<String, Block>,
    /// Modes with and without the umask, of all directories and files that were created.
    pub(crate) permissions: Vec<(u32, u32)>,
    /// The directory whose files are erasure-coded.
    pub(crate) erasure_coded: Option<&'static str>,
    /// The id of the storage policy of all files.
    pub(crate) storage_policy: Option<u32>,
    /// Polls until a lease is recovered.
    pub(crate) recovery_polls: usize,
    /// The exception of the next call to recover a lease.
    pub(crate) recovery_exception: Option<&'static str>,
    /// Replicas that a reader reported as corrupt.
    pub(crate) bad_blocks: Vec<LocatedBlock>,
    /// The lengths of last blocks that calls of fsync stated.
    pub(crate) confirmed: Vec<i64>,
    results: HashMap<(Bytes, i32), Outcome>,
    next_id: u64,
}

#[derive(Clone, Default)]
pub(crate) struct Inode {
    pub(crate) id: u64,
    pub(crate) is_dir: bool,
    pub(crate) is_encrypted: bool,
    pub(crate) holder: Option<String>,
    pub(crate) len: u64,
    /// The blocks of a complete file.
    pub(crate) blocks: Vec<LocatedBlock>,
    /// The last block of an open file, as readers find it.
    pub(crate) open_block: Option<LocatedBlock>,
}

/// A block that is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    id: u64,
    pub(crate) stamp: u64,
    pub(crate) storages: Vec<String>,
}

/// The NameNodes of a name service share one namespace.
#[derive(Clone)]
pub(crate) struct FakeNameNode {
    pub(crate) state: Arc<Mutex<Namespace>>,
}

impl FakeNameNode {
    pub(crate) async fn start(env: &Env, ports: &[u16], datanodes: &[u16]) -> FakeNameNode {
        let namespace = Namespace { datanodes: datanodes.to_vec(), ..Namespace::default() };
        let namenode = FakeNameNode { state: Arc::new(Mutex::new(namespace)) };
        for &port in ports {
            let listener = env.net.listen(loopback(port)).await.unwrap();
            let (task_env, namenode) = (env.clone(), namenode.clone());
            env.spawn(TaskClass::Service, async move {
                loop {
                    let stream = (listener.accept().await.unwrap().open)().unwrap();
                    let (namenode, serving_env) = (namenode.clone(), task_env.clone());
                    task_env.spawn(TaskClass::Service, async move {
                        let _ = namenode.serve(&serving_env, stream, port).await;
                    });
                }
            });
        }
        namenode
    }

    pub(crate) fn set_mode(&self, port: u16, mode: Mode) {
        self.state.lock().unwrap().modes.insert(port, mode);
    }

    pub(crate) fn set_modes(&self, mode: Mode) {
        super::NAMENODES.iter().for_each(|port| self.set_mode(*port, mode));
    }

    pub(crate) fn calls_of(&self, method: &str) -> Vec<(u16, i32, i32)> {
        let state = self.state.lock().unwrap();
        let matching = state.calls.iter().filter(|call| call.1 == method);
        matching.map(|(port, _, id, retries)| (*port, *id, *retries)).collect()
    }

    async fn serve(&self, env: &Env, mut stream: Box<dyn Stream>, port: u16) -> std::io::Result<()> {
        let mut preamble = [0; 7];
        stream.read_exact(&mut preamble).await?;
        assert_eq!(&preamble, b"hrpc\x09\0\0");
        let mut context = read_frame(&mut stream).await?;
        assert_eq!(RpcRequestHeader::decode_length_delimited(&mut context).unwrap().call_id, -3);
        let context = ConnectionContext::decode_length_delimited(&mut context).unwrap();
        assert_eq!(context.user_info.unwrap().effective_user(), "u");
        loop {
            let mut request = read_frame(&mut stream).await?;
            let header = RpcRequestHeader::decode_length_delimited(&mut request).unwrap();
            let method = RequestHeader::decode_length_delimited(&mut request).unwrap().method_name;
            let (outcome, is_lost, mode) = {
                let mut state = self.state.lock().unwrap();
                let retries = header.retry_count();
                state.calls.push((port, method.clone(), header.call_id, retries));
                let mode = state.modes.get(&port).copied().unwrap_or_default();
                let outcome = match mode {
                    Mode::Active | Mode::Slow(_) => Some(state.execute_once(&header, &method, request)),
                    Mode::Standby => Some(Err(("org.apache.hadoop.ipc.StandbyException", "x".to_owned()))),
                    Mode::Safe => {
                        let class = "org.apache.hadoop.hdfs.server.namenode.SafeModeException";
                        Some(Err((class, "Name node is in safe mode".to_owned())))
                    }
                    Mode::Hung | Mode::Refuses => None,
                };
                (outcome, state.lose_response.take_if(|lost| *lost == method).is_some(), mode)
            };
            if mode == Mode::Refuses {
                let class = "org.apache.hadoop.security.AccessControlException";
                let outcome = Err((class, "SIMPLE authentication is not enabled".to_owned()));
                return stream.write_all(&response(REFUSED_CALL_ID, outcome)).await;
            }
            let Some(outcome) = outcome else { continue };
            if is_lost {
                return Ok(());
            }
            if let Mode::Slow(time) = mode {
                env.clock.sleep(time).await;
            }
            stream.write_all(&response(header.call_id, outcome)).await?;
        }
    }
}

/// Hadoop's `AUTHORIZATION_FAILED_CALL_ID`.
const REFUSED_CALL_ID: i32 = -1;
const NOT_FOUND: &str = "java.io.FileNotFoundException";
const UNKNOWN_CRYPTO: &str = "org.apache.hadoop.hdfs.UnknownCryptoProtocolVersionException";
const EXISTS: &str = "org.apache.hadoop.fs.FileAlreadyExistsException";
const EXPIRED: &str = "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException";

fn decode<M: Message + Default>(mut request: Bytes) -> M {
    let message = M::decode_length_delimited(&mut request).unwrap();
    assert!(!request.has_remaining());
    message
}

fn parent(path: &str) -> String {
    path.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned()
}

impl Namespace {
    /// Executes a call, unless it was executed before.
    fn execute_once(&mut self, header: &RpcRequestHeader, method: &str, request: Bytes) -> Outcome {
        let key = (header.client_id.clone(), header.call_id);
        if let Some(result) = self.results.get(&key) {
            return result.clone();
        }
        let outcome = self.execute(method, request);
        self.results.insert(key, outcome.clone());
        outcome
    }

    fn execute(&mut self, method: &str, request: Bytes) -> Outcome {
        match method {
            "getServerDefaults" => encode(ServerDefaultsResponse::default()),
            "getLocatedFileInfo" => {
                let src = decode::<LocatedFileInfoRequest>(request).src.unwrap_or_default();
                encode(FileInfoResponse { fs: self.paths.get(&src).map(located_status) })
            }
            "getBlockLocations" => self.locate(decode(request)),
            "reportBadBlocks" => {
                let request: BadBlocksRequest = decode(request);
                self.bad_blocks.extend(request.blocks);
                Ok(vec![0])
            }
            "getFileInfo" => {
                let PathRequest { src } = decode(request);
                encode(FileInfoResponse { fs: self.paths.get(&src).map(status) })
            }
            "mkdirs" => {
                let request: MkdirsRequest = decode(request);
                self.permissions.push((request.masked.perm, request.unmasked.unwrap().perm));
                if !self.paths.contains_key(&request.src) {
                    self.insert(&request.src, true, None);
                }
                encode(BoolResponse { result: true })
            }
            "create" => self.create(decode(request)),
            "getErasureCodingPolicy" => {
                let PathRequest { src } = decode(request);
                if !self.paths.contains_key(&src) {
                    return Err((NOT_FOUND, src));
                }
                let name = Some("RS-6-3-1024k".to_owned());
                let ec_policy = ErasureCodingPolicy { name, id: 1, ..ErasureCodingPolicy::default() };
                let is_coded = self.erasure_coded == Some(src.as_str());
                encode(ErasureCodingPolicyResponse { ec_policy: is_coded.then_some(ec_policy) })
            }
            "addBlock" => self.add_block(decode(request)),
            "abandonBlock" => {
                let request: AbandonBlockRequest = decode(request);
                self.check_lease(&request.src, &request.holder).map(|()| vec![0])
            }
            "fsync" => {
                let request: FsyncRequest = decode(request);
                self.check_lease(&request.src, &request.client)?;
                self.confirmed.extend(request.last_block_length.filter(|len| *len > 0));
                Ok(vec![0])
            }
            "updateBlockForPipeline" => self.update_block(decode(request)),
            "updatePipeline" => self.update_pipeline(decode(request)),
            "complete" => self.complete(decode(request)),
            "renewLease" => Ok(vec![0]),
            "recoverLease" => self.recover_lease(decode(request)),
            "rename2" => self.rename(decode(request)),
            "delete" => {
                let request: DeleteRequest = decode(request);
                encode(BoolResponse { result: self.paths.remove(&request.src).is_some() })
            }
            other => panic!("unexpected call {other}"),
        }
    }

    /// The locations of a file's blocks, by a path of its inode.
    fn locate(&self, request: BlockLocationsRequest) -> Outcome {
        let id = request.src.strip_prefix("/.reserved/.inodes/").and_then(|id| id.parse().ok());
        let inode = self.paths.values().find(|inode| Some(inode.id) == id);
        encode(BlockLocationsResponse { locations: inode.map(locations) })
    }

    fn insert(&mut self, path: &str, is_dir: bool, holder: Option<String>) -> Inode {
        self.next_id += 1;
        let inode = Inode { id: self.next_id, is_dir, holder, ..Inode::default() };
        self.paths.insert(path.to_owned(), inode.clone());
        inode
    }

    fn create(&mut self, request: CreateRequest) -> Outcome {
        assert_eq!((request.create_flag, request.create_parent), (0x81, false));
        if self.paths.contains_key(&request.src) {
            return Err((EXISTS, request.src));
        }
        let Some(dir) = self.paths.get(&parent(&request.src)) else {
            return Err((NOT_FOUND, "Parent directory doesn't exist".to_owned()));
        };
        if dir.is_encrypted {
            let message = "No crypto protocol versions provided by the client are supported".to_owned();
            return Err((UNKNOWN_CRYPTO, message));
        }
        self.permissions.push((request.masked.perm, request.unmasked.unwrap().perm));
        let inode = self.insert(&request.src, false, Some(request.client_name));
        let status = FileStatus { storage_policy: self.storage_policy, ..status(&inode) };
        encode(CreateResponse { fs: Some(status) })
    }

    fn add_block(&mut self, request: AddBlockRequest) -> Outcome {
        self.check_lease(&request.src, &request.client_name)?;
        let is_excluded = |port: &u16| request.exclude_nodes.contains(&super::info(*port));
        let ports: Vec<u16> = self.datanodes.iter().copied().filter(|port| !is_excluded(port)).collect();
        if ports.is_empty() {
            let message = "could only be written to 0 of the 1 minReplication nodes".to_owned();
            return Err(("java.io.IOException", message));
        }
        self.check_stamp(&request.src, request.previous.as_ref());
        self.previous.push(request.previous.as_ref().map(|block| (block.block_id, block.num_bytes())));
        self.next_id += 1;
        let block = located(self.next_id, &ports);
        let blocks = &mut self.paths.get_mut(&request.src).unwrap().blocks;
        end_block(blocks, request.previous.as_ref());
        blocks.push(block.clone());
        let (id, stamp, storages) = (self.next_id, block.b.generation_stamp, block.storage_ids.clone());
        self.blocks.insert(request.src, Block { id, stamp, storages });
        encode(AddBlockResponse { block })
    }

    /// Checks that the client states a block with its last generation stamp.
    fn check_stamp(&self, path: &str, block: Option<&ExtendedBlock>) {
        if let Some(block) = block {
            let known = &self.blocks[path];
            assert_eq!((block.block_id, block.generation_stamp), (known.id, known.stamp));
        }
    }

    /// The path of the file that has this block.
    fn path_of(&self, block: &ExtendedBlock) -> String {
        self.blocks.iter().find(|(_, known)| known.id == block.block_id).unwrap().0.clone()
    }

    fn update_block(&mut self, request: UpdateBlockForPipelineRequest) -> Outcome {
        let path = self.path_of(&request.block);
        self.check_lease(&path, &request.client_name)?;
        self.next_id += 1;
        // Higher than the stamp of any block.
        let generation_stamp = 1_000_000 + self.next_id;
        let b = ExtendedBlock { generation_stamp, ..request.block };
        encode(UpdateBlockForPipelineResponse { block: LocatedBlock { b, ..LocatedBlock::default() } })
    }

    fn update_pipeline(&mut self, request: UpdatePipelineRequest) -> Outcome {
        let path = self.path_of(&request.old_block);
        self.check_lease(&path, &request.client_name)?;
        self.check_stamp(&path, Some(&request.old_block));
        let block = self.blocks.get_mut(&path).unwrap();
        assert!(request.new_block.generation_stamp > block.stamp);
        assert_eq!(request.new_nodes.len(), request.storage_ids.len());
        block.stamp = request.new_block.generation_stamp;
        block.storages = request.storage_ids;
        Ok(vec![0])
    }

    fn complete(&mut self, request: CompleteRequest) -> Outcome {
        self.check_lease(&request.src, &request.client_name)?;
        self.check_stamp(&request.src, request.last.as_ref());
        let inode = self.paths.get_mut(&request.src).unwrap();
        inode.holder = None;
        end_block(&mut inode.blocks, request.last.as_ref());
        inode.len = inode.blocks.iter().map(|block| block.b.num_bytes()).sum();
        encode(BoolResponse { result: true })
    }

    fn recover_lease(&mut self, request: RecoverLeaseRequest) -> Outcome {
        let Some(path) = self.resolve(&request.src) else { return Err((NOT_FOUND, request.src)) };
        if let Some(class) = self.recovery_exception.take() {
            return Err((class, path));
        }
        let polls = &mut self.recovery_polls;
        let inode = self.paths.get_mut(&path).unwrap();
        if inode.holder.is_some() {
            inode.holder = Some("HDFS_NameNode".to_owned());
        }
        if *polls > 0 {
            *polls -= 1;
            return encode(BoolResponse { result: false });
        }
        inode.holder = None;
        encode(BoolResponse { result: true })
    }

    /// The path of an existing file that is given by its path or by its inode.
    fn resolve(&self, src: &str) -> Option<String> {
        let path = match src.strip_prefix("/.reserved/.inodes/") {
            Some(id) => self.paths.iter().find(|(_, inode)| inode.id.to_string() == id)?.0,
            None => self.paths.get_key_value(src)?.0,
        };
        Some(path.clone())
    }

    fn rename(&mut self, request: RenameRequest) -> Outcome {
        if !self.paths.contains_key(&request.src) || !self.paths.contains_key(&parent(&request.dst)) {
            return Err((NOT_FOUND, request.src));
        }
        if let Some(target) = self.paths.get(&request.dst) {
            if target.is_dir != self.paths[&request.src].is_dir {
                return Err(("java.io.IOException", "they must both be directories".to_owned()));
            }
            if !request.overwrite_dest {
                return Err((EXISTS, request.dst));
            }
        }
        let moved = self.paths.remove(&request.src).unwrap();
        self.paths.insert(request.dst, moved);
        Ok(vec![0])
    }

    fn check_lease(&self, path: &str, holder: &str) -> Result<(), (&'static str, String)> {
        match self.paths.get(path) {
            None => Err((NOT_FOUND, path.to_owned())),
            Some(inode) if inode.holder.as_deref() == Some(holder) => Ok(()),
            Some(_) => Err((EXPIRED, path.to_owned())),
        }
    }
}

/// Sets the length of the last block. A block that is not `last` was abandoned.
fn end_block(blocks: &mut Vec<LocatedBlock>, last: Option<&ExtendedBlock>) {
    blocks.retain(|block| last.is_some_and(|last| block.b.block_id <= last.block_id));
    if let (Some(block), Some(last)) = (blocks.last_mut(), last) {
        block.b.num_bytes = last.num_bytes;
    }
    let mut offset = 0;
    for block in blocks {
        block.offset = offset;
        offset += block.b.num_bytes();
    }
}

fn locations(inode: &Inode) -> LocatedBlocks {
    LocatedBlocks {
        file_length: inode.len,
        blocks: inode.blocks.clone(),
        under_construction: inode.open_block.is_some(),
        last_block: inode.open_block.clone(),
        ..LocatedBlocks::default()
    }
}

fn located_status(inode: &Inode) -> FileStatus {
    FileStatus { locations: (!inode.is_dir).then(|| locations(inode)), ..status(inode) }
}

fn status(inode: &Inode) -> FileStatus {
    FileStatus {
        file_type: if inode.is_dir { 1 } else { 2 },
        length: inode.len,
        file_id: Some(inode.id),
        file_encryption_info: (inode.is_encrypted && !inode.is_dir).then(Bytes::new),
        flags: Some(if inode.is_encrypted { 2 } else { 0 }),
        ..FileStatus::default()
    }
}
