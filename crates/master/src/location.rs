//! The location of `hbase:meta`: for this process, and in a znode for clients.

use std::sync::Arc;

use base::env::Env;
use cell::region::ServerName;
use proto::exception::{Answer, JavaException};
use tokio::sync::watch;
use zk::Coordinator;
use zk::coordinator::{Mode, publish};
use zk::names::Names;

/// The server on which `hbase:meta` is online, once there is one.
pub struct MetaLocation {
    env: Env,
    coordinator: Arc<dyn Coordinator>,
    names: Names,
    writer: String,
    server: watch::Sender<Option<ServerName>>,
}

impl MetaLocation {
    /// Creates a location without a server. `writer` is the name that signs the znode.
    pub fn new(env: Env, coordinator: Arc<dyn Coordinator>, names: Names, writer: String) -> MetaLocation {
        MetaLocation { env, coordinator, names, writer, server: watch::Sender::new(None) }
    }

    /// Records that `hbase:meta` is online on `server`, and publishes this to clients.
    ///
    /// # Errors
    /// The error of the coordination service. Clients see the old location then.
    pub async fn publish(&self, server: &ServerName) -> Answer<()> {
        let data = zk::payload::meta_region_server(&self.writer, &*self.env.random, server);
        let path = self.names.meta_region_server(0);
        publish(&*self.coordinator, &path, data, Mode::Persistent)
            .await
            .map_err(|error| JavaException::io(error.to_string()))?;
        self.server.send_replace(Some(server.clone()));
        Ok(())
    }

    /// The server on which `hbase:meta` is online. Waits until there is one.
    pub async fn wait(&self) -> ServerName {
        let mut server = self.server.subscribe();
        let found = server.wait_for(Option::is_some).await.expect("the sender lives as long as self");
        found.clone().expect("waited for")
    }

    /// The server on which `hbase:meta` is online, if there is one.
    pub fn get(&self) -> Option<ServerName> {
        self.server.borrow().clone()
    }
}
