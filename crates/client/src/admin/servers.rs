//! Region servers: the balancer, decommissioning, and the list of dead servers.

use cell::region::ServerName;

use super::{Admin, malformed};
use crate::error::Result;

/// The result of a run of the balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Balanced {
    /// Whether the balancer could run.
    pub ran: bool,
    /// Number of planned moves.
    pub moves_calculated: u32,
    /// Number of successful moves.
    pub moves_executed: u32,
}

impl Admin {
    /// Runs the balancer now, and waits for its moves. A dry run only plans.
    ///
    /// # Errors
    /// [`crate::Error`].
    pub async fn balance(&self, is_dry: bool) -> Result<Balanced> {
        let request = proto::BalanceRequest { dry_run: Some(is_dry), ..proto::BalanceRequest::default() };
        let answer: proto::BalanceResponse = self.call_master("Balance", &request).await?;
        Ok(Balanced {
            ran: answer.balancer_ran,
            moves_calculated: answer.moves_calculated(),
            moves_executed: answer.moves_executed(),
        })
    }

    /// Enables or disables the periodic balancer; returns whether it was enabled.
    ///
    /// # Errors
    /// [`crate::Error`].
    pub async fn enable_balancer(&self, on: bool) -> Result<bool> {
        let request = proto::SetBalancerRunningRequest { on, synchronous: None };
        let answer: proto::SetBalancerRunningResponse =
            self.call_master("SetBalancerRunning", &request).await?;
        Ok(answer.prev_balance_value())
    }

    /// Whether the periodic balancer is enabled.
    ///
    /// # Errors
    /// [`crate::Error`].
    pub async fn is_balancer_enabled(&self) -> Result<bool> {
        let request = proto::IsBalancerEnabledRequest {};
        let answer: proto::IsBalancerEnabledResponse =
            self.call_master("IsBalancerEnabled", &request).await?;
        Ok(answer.enabled)
    }

    /// Decommissions servers: they get no more regions. With `offload`, their regions move to other
    /// servers.
    ///
    /// # Errors
    /// [`crate::Error`].
    pub async fn decommission_servers(&self, servers: &[ServerName], offload: bool) -> Result<()> {
        let server_name = servers.iter().map(Into::into).collect();
        let request = proto::DecommissionRegionServersRequest { server_name, offload };
        let method = "DecommissionRegionServers";
        self.call_master(method, &request).await.map(|_: proto::DecommissionRegionServersResponse| ())
    }

    /// Reverses [`decommission_servers`](Self::decommission_servers) for one server.
    ///
    /// # Errors
    /// [`crate::Error`].
    pub async fn recommission_server(&self, server: &ServerName) -> Result<()> {
        let request =
            proto::RecommissionRegionServerRequest { server_name: server.into(), region: Vec::new() };
        let method = "RecommissionRegionServer";
        self.call_master(method, &request).await.map(|_: proto::RecommissionRegionServerResponse| ())
    }

    /// The decommissioned servers.
    ///
    /// # Errors
    /// [`crate::Error`].
    pub async fn decommissioned_servers(&self) -> Result<Vec<ServerName>> {
        let request = proto::ListDecommissionedRegionServersRequest {};
        let answer: proto::ListDecommissionedRegionServersResponse =
            self.call_master("ListDecommissionedRegionServers", &request).await?;
        names(&answer.server_name)
    }

    /// Removes dead servers from the list of dead servers. Returns those that could not be removed.
    ///
    /// # Errors
    /// [`crate::Error`].
    pub async fn clear_dead_servers(&self, servers: &[ServerName]) -> Result<Vec<ServerName>> {
        let request =
            proto::ClearDeadServersRequest { server_name: servers.iter().map(Into::into).collect() };
        let answer: proto::ClearDeadServersResponse = self.call_master("ClearDeadServers", &request).await?;
        names(&answer.server_name)
    }
}

fn names(servers: &[proto::ServerName]) -> Result<Vec<ServerName>> {
    servers.iter().map(|server| ServerName::try_from(server).map_err(malformed)).collect()
}
