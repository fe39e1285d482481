//! Connects master and region server of one process: each calls the other's services without a
//! network.

use std::sync::{Arc, OnceLock};

use base::BoxFuture;
use cell::region::{RegionInfo, ServerName};
use master::Connections;
use proto::exception::Answer;
use regionserver::{Admin, LocalCaller, RegionServer};
use wire::service::{AdminService, ClientService, Remote};

/// The services of the one region server, returned for any server name.
#[derive(Default)]
pub struct Direct {
    services: OnceLock<(Arc<Admin>, Arc<Remote<LocalCaller>>)>,
}

impl Direct {
    /// Sets the region server. Call it once.
    pub fn connect(&self, server: &Arc<RegionServer>) {
        let client = Remote(LocalCaller(server.clone()));
        let services = (Arc::new(Admin(server.clone())), Arc::new(client));
        assert!(self.services.set(services).is_ok(), "there is one region server");
    }

    fn services(&self) -> &(Arc<Admin>, Arc<Remote<LocalCaller>>) {
        self.services.get().expect("connected before the master is initialized")
    }
}

impl Connections for Direct {
    fn admin(&self, _: &ServerName) -> Arc<dyn AdminService> {
        self.services().0.clone()
    }

    fn client(&self, _: &ServerName) -> Arc<dyn ClientService> {
        self.services().1.clone()
    }

    fn discard_old_edits<'a>(&'a self, regions: &'a [RegionInfo]) -> BoxFuture<'a, Answer<()>> {
        Box::pin(self.services().0.0.discard_old_edits(regions))
    }
}
