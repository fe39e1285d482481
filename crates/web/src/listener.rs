//! A handed-in listener as axum wants one.

use std::net::SocketAddr;

use base::env::{Listener, Stream};

/// Accepts from the listener and ties each connection to the runtime of the pages.
pub(crate) struct Connections(pub(crate) Box<dyn Listener>);

impl axum::serve::Listener for Connections {
    type Io = Box<dyn Stream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            // A connection that breaks before it is served concerns nobody else.
            if let Ok(incoming) = self.0.accept().await
                && let Ok(stream) = (incoming.open)()
            {
                return (stream, incoming.peer);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        Ok(self.0.local_addr())
    }
}
