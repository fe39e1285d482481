//! Temporary.
use std::collections::BTreeSet;
use std::sync::Arc;

use base::env::Env;
use cell::region::ServerName;

use crate::coordinator::{Coordinator, Error, Watch, create_own, ensure_path};
use crate::names::Names;

pub async fn register_region_server(
    coordinator: &dyn Coordinator,
    names: &Names,
    env: &Env,
    server: &ServerName,
    info_port: u16,
) -> Result<(), Error> {
    let message = proto::RegionServerInfo { info_port: Some(i32::from(info_port)), ..Default::default() };
    let data = crate::payload::encode(&format!("regionserver:{}", server.port), &*env.random, &message);
    create_own(coordinator, &names.region_server(&server.to_string()), data).await
}

pub struct ServerTracker {
    coordinator: Arc<dyn Coordinator>,
    names: Names,
    watch: Option<Watch>,
}

impl ServerTracker {
    pub fn new(coordinator: Arc<dyn Coordinator>, names: Names) -> ServerTracker {
        ServerTracker { coordinator, names, watch: None }
    }
    pub async fn live(&mut self) -> Result<BTreeSet<ServerName>, Error> {
        ensure_path(&*self.coordinator, &self.names.rs()).await?;
        self.watch = Some(self.coordinator.watch(&self.names.rs()).await?);
        let (children, _) = self.coordinator.children(&self.names.rs()).await?;
        Ok(children.iter().filter_map(|name| ServerName::parse(name)).collect())
    }
    pub async fn changed(&mut self) -> Result<(), Error> {
        self.watch.as_mut().expect("read before").changed().await
    }
}

pub struct MasterTracker {
    coordinator: Arc<dyn Coordinator>,
    names: Names,
    watch: Option<Watch>,
}

impl MasterTracker {
    pub fn new(coordinator: Arc<dyn Coordinator>, names: Names) -> MasterTracker {
        MasterTracker { coordinator, names, watch: None }
    }
    pub async fn current(&mut self) -> Result<Option<ServerName>, Error> {
        self.watch = Some(self.coordinator.watch(&self.names.master()).await?);
        match self.coordinator.get(&self.names.master()).await {
            Ok(znode) => Ok(crate::payload::read_master(&znode.data).ok()),
            Err(Error::NoNode { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
    pub async fn changed(&mut self) -> Result<(), Error> {
        self.watch.as_mut().expect("read before").changed().await
    }
}
