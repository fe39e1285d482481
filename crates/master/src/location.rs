//! Where `hbase:meta` is, for this process and, by its znode, for clients.

use std::sync::Arc;

use base::env::Env;
use cell::region::ServerName;
use tokio::sync::watch;
use wire::exception::{Answer, JavaException};
use zk::Coordinator;
use zk::coordinator::{Mode, publish};
use zk::names::Names;

/// The server that serves `hbase:meta`, once there is one.
pub struct MetaLocation {
    env: Env,
    coordinator: Arc<dyn Coordinator>,
    names: Names,
    writer: String,
    server: watch::Sender<Option<ServerName>>,
}

impl MetaLocation {
    /// Nobody serves it yet. `writer` signs the znode.
    pub fn new(env: Env, coordinator: Arc<dyn Coordinator>, names: Names, writer: String) -> MetaLocation {
        MetaLocation { env, coordinator, names, writer, server: watch::Sender::new(None) }
    }

    /// `server` serves it now; clients are told.
    ///
    /// # Errors
    /// What the coordination service said; clients do not know then.
    pub async fn moved_to(&self, server: &ServerName) -> Answer<()> {
        let data = zk::payload::meta_region_server(&self.writer, &*self.env.random, server);
        let path = self.names.meta_region_server(0);
        publish(&*self.coordinator, &path, data, Mode::Persistent)
            .await
            .map_err(|error| JavaException::io(error.to_string()))?;
        self.server.send_replace(Some(server.clone()));
        Ok(())
    }

    /// The server that serves it; waits until there is one.
    pub async fn wait(&self) -> ServerName {
        let mut server = self.server.subscribe();
        let found = server.wait_for(Option::is_some).await.expect("the sender lives as long as self");
        found.clone().expect("waited for")
    }

    /// The server that serves it, if there is one.
    pub fn get(&self) -> Option<ServerName> {
        self.server.borrow().clone()
    }
}
