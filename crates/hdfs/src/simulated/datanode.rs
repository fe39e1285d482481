//! A DataNode.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, Listener, Stream, TaskClass};
use bytes::Bytes;
use prost::Message;
use tokio::io::AsyncReadExt;

use super::ipc::{self, Call, Peer, Service};
use super::messages::{Commands, Heartbeat, InitRecovery, ReplicaFound, UpdateReplica};
use super::store::{Refused, ReplicaStore};
use super::wire::{Outcome, encode, invalid};
use super::{DataDisk, Record};
use crate::generated::{DatanodeId, Empty, ExtendedBlock, VisibleLengthRequest, VisibleLengthResponse};

const OP_WRITE_BLOCK: u8 = 80;
const OP_READ_BLOCK: u8 = 81;
const VERSION: u16 = 28;

/// How a DataNode is configured.
#[derive(Clone, Debug)]
pub struct DataNodeOptions {
    /// Its name, which is its id and that of its host.
    pub name: String,
    /// Port for clients; the next one is for calls of other DataNodes.
    pub port: u16,
    /// Hosts and ports of all NameNodes.
    pub namenodes: Vec<(String, u16)>,
    /// The period of heartbeats.
    pub heartbeat: Duration,
    /// Whether replicas are synced when they are finalized (HDFS: `dfs.datanode.synconclose`).
    pub syncs_on_close: bool,
}

/// A life of a DataNode.
pub struct DataNode {
    pub(super) env: Env,
    pub(super) options: DataNodeOptions,
    pub(super) id: DatanodeId,
    pub(super) store: Arc<ReplicaStore>,
    pub(super) disk: Arc<dyn DataDisk>,
    pub(super) record: Record,
}

impl DataNode {
    /// Starts a DataNode. It ends with its environment.
    ///
    /// # Errors
    /// If a port is in use.
    pub async fn start(
        env: &Env,
        store: &Arc<ReplicaStore>,
        disk: Arc<dyn DataDisk>,
        options: DataNodeOptions,
        record: Record,
    ) -> io::Result<()> {
        store.restart();
        let listen = |port| env.net.listen(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)));
        let (data, calls) = (listen(options.port).await?, listen(options.port + 1).await?);
        let id = DatanodeId {
            ip_addr: data.local_addr().ip().to_string(),
            host_name: options.name.clone(),
            datanode_uuid: options.name.clone(),
            xfer_port: options.port.into(),
            ipc_port: u32::from(options.port) + 1,
        };
        let (env, store) = (env.clone(), store.clone());
        let node = Arc::new(DataNode { env, options, id, store, disk, record });
        ipc::serve(&node.env, calls, node.clone());
        node.clone().serve(data);
        for (host, port) in &node.options.namenodes {
            let namenode = Arc::new(Peer::new(&node.env, host, *port));
            let reporting = node.clone();
            node.env.spawn(TaskClass::Service, async move { reporting.report(namenode).await });
        }
        Ok(())
    }

    fn serve(self: Arc<Self>, listener: Box<dyn Listener>) {
        let env = self.env.clone();
        env.spawn(TaskClass::Service, async move {
            loop {
                let Ok(incoming) = listener.accept().await else { continue };
                let Ok(stream) = (incoming.open)() else { continue };
                let node = self.clone();
                self.env.spawn(TaskClass::Service, async move {
                    // A client that closes its connection is no fault.
                    let _ = node.serve_connection(stream).await;
                });
            }
        });
    }

    async fn serve_connection(&self, mut stream: Box<dyn Stream>) -> io::Result<()> {
        if stream.read_u16().await? != VERSION {
            return Err(invalid("version of the data transfer protocol"));
        }
        match stream.read_u8().await? {
            OP_WRITE_BLOCK => self.serve_write(stream).await,
            OP_READ_BLOCK => self.serve_reads(stream).await,
            other => Err(invalid(format!("operation {other}"))),
        }
    }

    /// Sends heartbeats to a NameNode, and changed replicas immediately.
    async fn report(self: Arc<Self>, namenode: Arc<Peer>) {
        let clock = &self.env.clock;
        let (mut known, mut beat) = (None, Duration::ZERO);
        let id: Bytes = self.id.encode_to_vec().into();
        loop {
            let changed = self.store.changed().notified();
            let (version, replicas) = self.store.changes(known);
            let is_regular = clock.monotonic() >= beat;
            if !is_regular && replicas.is_empty() {
                tokio::select! {
                    biased;
                    () = changed => {}
                    () = clock.sleep(beat.saturating_sub(clock.monotonic())) => {}
                }
                continue;
            }
            let heartbeat = Heartbeat { id: id.clone(), is_full: known.is_none(), replicas, is_regular };
            let sent = namenode.call::<Commands>("sendHeartbeat", &heartbeat).await;
            if is_regular {
                beat = clock.monotonic() + self.options.heartbeat;
            }
            match sent {
                Ok(commands) => {
                    known = (!commands.wants_full).then_some(version);
                    self.execute(&namenode, commands);
                }
                // The NameNode may have restarted. What was sent may not have arrived.
                Err(_) => clock.sleep(self.options.heartbeat / 4).await,
            }
        }
    }

    fn execute(self: &Arc<Self>, namenode: &Arc<Peer>, commands: Commands) {
        if !commands.deletions.is_empty() {
            self.store.delete(&commands.deletions);
        }
        for command in commands.recoveries {
            let (node, namenode) = (self.clone(), namenode.clone());
            self.env.spawn(TaskClass::Service, async move {
                let block_id = command.block_id;
                if let Err(why) = node.recover(&namenode, command).await {
                    (node.record)(&format!("cannot recover block {block_id}: {why}"));
                }
            });
        }
    }

    async fn execute_call(&self, call: &Call) -> Outcome {
        match call.method.as_str() {
            "initReplicaRecovery" => {
                let InitRecovery { block_id, stamp, recovery_id } = call.decode()?;
                let replica = self.store.begin_recovery(block_id, stamp, recovery_id).map_err(exception)?;
                encode(ReplicaFound { replica })
            }
            "updateReplicaUnderRecovery" => {
                let UpdateReplica { block_id, recovery_id, len } = call.decode()?;
                self.end_recovery(block_id, recovery_id, len).await?;
                encode(Empty {})
            }
            "getReplicaVisibleLength" => {
                let ExtendedBlock { block_id, generation_stamp, .. } =
                    call.decode::<VisibleLengthRequest>()?.block;
                let len = self.store.visible_len(block_id, generation_stamp).map_err(exception)?;
                encode(VisibleLengthResponse { length: len as u64 })
            }
            other => Err((super::files::IO, format!("Unknown method {other}"))),
        }
    }
}

/// The exception for a refused operation.
pub(super) fn exception(refused: Refused) -> super::wire::Exception {
    match refused {
        Refused::RecoveryInProgress => (
            "org.apache.hadoop.hdfs.protocol.RecoveryInProgressException",
            "another recovery is in progress".to_owned(),
        ),
        Refused::NoReplica(block_id) => (
            "org.apache.hadoop.hdfs.server.datanode.ReplicaNotFoundException",
            format!("no replica of block {block_id}"),
        ),
        Refused::Other(message) => (super::files::IO, message),
    }
}

impl Service for DataNode {
    fn call(&self, call: Call) -> BoxFuture<'_, Outcome> {
        Box::pin(async move { self.execute_call(&call).await })
    }
}
