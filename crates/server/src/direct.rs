//! Master and region server in one process: each has the other's services without a network between.

use std::sync::{Arc, OnceLock};

use cell::region::ServerName;
use master::Connections;
use regionserver::{Admin, Client, RegionServer};
use wire::service::{AdminService, ClientService};

/// The one region server, by whatever name it is asked for.
#[derive(Default)]
pub struct Direct {
    services: OnceLock<(Arc<Admin>, Arc<Client>)>,
}

impl Direct {
    /// Connects the region server.
    pub fn connect(&self, server: &Arc<RegionServer>) {
        let services = (Arc::new(Admin(server.clone())), Arc::new(Client(server.clone())));
        assert!(self.services.set(services).is_ok(), "there is one region server");
    }

    fn services(&self) -> &(Arc<Admin>, Arc<Client>) {
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
}
