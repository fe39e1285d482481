//! Replication: the peers of a cluster, and the logs of its servers.

use cell::region::ServerName;
use proto::replication_state::State;
use proto::{ReplicationPeer, ReplicationPeerDescription, ReplicationState};

use super::Admin;
use crate::connections::{HIGH_PRIORITY, OutgoingCall};
use crate::error::Result;
use crate::retry::Retry;

impl Admin {
    /// Adds a replication peer. All edits that are made after this returns are in its queues.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn add_peer(&self, id: &str, config: ReplicationPeer, enabled: bool) -> Result<()> {
        let state = if enabled { State::Enabled } else { State::Disabled };
        let request = proto::AddReplicationPeerRequest {
            peer_id: id.to_string(),
            peer_config: config,
            peer_state: ReplicationState { state: state as i32 },
        };
        let answer: proto::AddReplicationPeerResponse =
            self.call_master("AddReplicationPeer", &request).await?;
        self.wait_for(answer.proc_id).await
    }

    /// Removes a replication peer and its queues.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn remove_peer(&self, id: &str) -> Result<()> {
        let request = proto::RemoveReplicationPeerRequest { peer_id: id.to_string() };
        let answer: proto::RemoveReplicationPeerResponse =
            self.call_master("RemoveReplicationPeer", &request).await?;
        self.wait_for(answer.proc_id).await
    }

    /// Starts sending the edits in a peer's queues.
    ///
    /// # Errors
    /// [`Error`](crate::Error), also if the peer is enabled already.
    pub async fn enable_peer(&self, id: &str) -> Result<()> {
        let request = proto::EnableReplicationPeerRequest { peer_id: id.to_string() };
        let answer: proto::EnableReplicationPeerResponse =
            self.call_master("EnableReplicationPeer", &request).await?;
        self.wait_for(answer.proc_id).await
    }

    /// All replication peers.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn list_peers(&self) -> Result<Vec<ReplicationPeerDescription>> {
        let request = proto::ListReplicationPeersRequest { regex: None };
        let answer: proto::ListReplicationPeersResponse =
            self.call_master("ListReplicationPeers", &request).await?;
        Ok(answer.peer_desc)
    }

    /// Requests that a server begins new logs. Does not wait until it has.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn roll_logs(&self, server: &ServerName) -> Result<()> {
        let request = proto::RollWalWriterRequest {};
        let mut retry = Retry::new(self.client.env(), self.client.options());
        loop {
            let call = OutgoingCall {
                priority: HIGH_PRIORITY,
                ..OutgoingCall::new("AdminService", "RollWALWriter", &request)
            };
            let called = self.client.connections().call(&server.host, server.port, call).await;
            match called {
                Ok((proto::RollWalWriterResponse { .. }, _)) => return Ok(()),
                Err(error) => retry.pause(error).await?,
            }
        }
    }
}
