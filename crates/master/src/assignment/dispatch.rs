//! Sends orders to servers.
//!
//! A call that fails may have been executed, so it is repeated to the same server until the server
//! accepts it or dies. Then the recovery of the server decides. A server that accepts no orders for
//! some time gets no more regions meanwhile.
//!
//! A refusal changes nothing: a region is never opened on another server because of it. The order
//! may repeat an earlier one, which the server has executed, and its logs may have edits of the
//! region. For example, a process that has replaced the server at its address refuses all orders
//! for it.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::env::TaskClass;
use cell::region::ServerName;
use proto::exception::JavaException;
use tracing::info;

use super::{Assignment, Change, RegionState};

/// The pause before a failed call is repeated. It doubles with each failure.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Orders that were not accepted for this long are late.
const LATE_AFTER: Duration = Duration::from_secs(5);

/// Orders of one kind for one server.
enum Orders {
    Open(Vec<Change>),
    Close(Vec<Change>, Option<ServerName>),
}

impl Orders {
    fn changes(&mut self) -> &mut Vec<Change> {
        match self {
            Orders::Open(changes) | Orders::Close(changes, _) => changes,
        }
    }
}

impl Assignment {
    pub(super) fn dispatch_open(self: &Arc<Self>, server: &ServerName, changes: Vec<Change>) {
        self.dispatch(server.clone(), Orders::Open(changes));
    }

    pub(super) fn dispatch_close(
        self: &Arc<Self>,
        server: &ServerName,
        changes: Vec<Change>,
        destination: Option<ServerName>,
    ) {
        self.dispatch(server.clone(), Orders::Close(changes, destination));
    }

    fn dispatch(self: &Arc<Self>, server: ServerName, orders: Orders) {
        let (env, servers) = (self.env.clone(), self.servers.clone());
        let assignment = Arc::downgrade(self);
        self.env.spawn(TaskClass::Service, async move {
            let mut delivery = pin!(deliver(assignment, &server, orders));
            if env.timeout(LATE_AFTER, &mut delivery).await.is_none() {
                let _late = servers.begin_late_orders(&server);
                delivery.await;
            }
        });
    }

    /// Removes orders that were replaced by newer ones or answered.
    fn retain_current(&self, changes: &mut Vec<Change>) {
        let states = self.lock();
        let is_current = |change: &Change| {
            states.get(&change.region.encoded_name()).is_some_and(|tracked| {
                let is_pending = matches!(tracked.state, RegionState::Opening(_) | RegionState::Closing(_));
                tracked.order == change.order && is_pending
            })
        };
        changes.retain(is_current);
    }

    async fn send(&self, server: &ServerName, orders: &Orders) -> Result<(), JavaException> {
        let request = match orders {
            Orders::Open(changes) => proto::ExecuteProceduresRequest {
                open_region: vec![self.open_request(server, changes)],
                ..proto::ExecuteProceduresRequest::default()
            },
            Orders::Close(changes, destination) => proto::ExecuteProceduresRequest {
                close_region: changes
                    .iter()
                    .map(|change| self.close_request(server, change, destination.as_ref()))
                    .collect(),
                ..proto::ExecuteProceduresRequest::default()
            },
        };
        self.connections.admin(server).execute_procedures(request).await.map(|_| ())
    }

    fn open_request(&self, server: &ServerName, changes: &[Change]) -> proto::OpenRegionRequest {
        let open_info = changes.iter().map(|change| proto::open_region_request::RegionOpenInfo {
            region: (&change.region).into(),
            open_proc_id: Some(change.order),
            grampus_dead_servers: self
                .recoveries
                .servers_of(&change.region.encoded_name())
                .iter()
                .map(Into::into)
                .collect(),
            ..proto::open_region_request::RegionOpenInfo::default()
        });
        proto::OpenRegionRequest {
            open_info: open_info.collect(),
            server_start_code: Some(server.start_code),
            initiating_master_active_time: Some(self.active_since_ms as i64),
            ..proto::OpenRegionRequest::default()
        }
    }

    fn close_request(
        &self,
        server: &ServerName,
        change: &Change,
        destination: Option<&ServerName>,
    ) -> proto::CloseRegionRequest {
        proto::CloseRegionRequest {
            region: wire::convert::region_specifier(&change.region),
            server_start_code: Some(server.start_code),
            close_proc_id: Some(change.order),
            destination_server: destination.map(Into::into),
            initiating_master_active_time: Some(self.active_since_ms as i64),
            grampus_region_info: Some((&change.region).into()),
            ..proto::CloseRegionRequest::default()
        }
    }
}

/// Sends orders until the server has accepted them or is dead, or all were replaced or answered.
async fn deliver(assignment: Weak<Assignment>, server: &ServerName, mut orders: Orders) {
    let mut pause = PAUSE_MIN;
    loop {
        let Some(assignment) = assignment.upgrade() else { return };
        assignment.retain_current(orders.changes());
        if orders.changes().is_empty() || !assignment.servers.is_live(server) {
            return;
        }
        let Err(error) = assignment.send(server, &orders).await else { return };
        if pause == PAUSE_MIN {
            info!(%server, %error, "cannot send orders to open or close regions; retrying");
        }
        let clock = assignment.env.clock.clone();
        drop(assignment);
        clock.sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
