//! A connection to ZooKeeper that a test can interrupt.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use zk::protocol::ConnectResponse;

use crate::raw::RawSession;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// Forward both ways.
    Open,
    /// Forward only what the server sends.
    Responses,
    /// Keep connections, but forward nothing.
    Stalled,
    /// Close connections, also new ones.
    Closed,
}

/// Forwards connections to a server.
pub struct Proxy {
    port: u16,
    server: String,
    flow: watch::Sender<Flow>,
    /// The first response of the server: the last session that was opened or resumed.
    granted: Arc<Mutex<Option<ConnectResponse>>>,
}

impl Proxy {
    pub async fn new(server: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy {
            port: listener.local_addr().unwrap().port(),
            server: server.to_string(),
            flow: watch::channel(Flow::Open).0,
            granted: Arc::default(),
        };
        let (server, flow, granted) = (proxy.server.clone(), proxy.flow.subscribe(), proxy.granted.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *flow.borrow() != Flow::Closed {
                    tokio::spawn(forward(client, server.clone(), flow.clone(), granted.clone()));
                }
            }
        });
        proxy
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Forwards.
    pub fn open(&self) {
        self.flow.send_replace(Flow::Open);
    }

    /// Keeps requests back.
    pub fn hold_requests(&self) {
        self.flow.send_replace(Flow::Responses);
    }

    /// Stops forwarding, as a network does that drops all packets.
    pub fn stall(&self) {
        self.flow.send_replace(Flow::Stalled);
    }

    /// Closes all connections and accepts no others.
    pub fn close(&self) {
        self.flow.send_replace(Flow::Closed);
    }

    /// Closes the session of the last connection from another client, with its password.
    pub async fn close_session_by_another_client(&self) {
        let granted = self.granted.lock().unwrap().clone().unwrap();
        // The owner reconnects, and may take its session over before it is closed.
        while RawSession::close(&self.server, &granted).await.is_err() {}
    }
}

async fn forward(
    mut client: TcpStream,
    server: String,
    mut flow: watch::Receiver<Flow>,
    granted: Arc<Mutex<Option<ConnectResponse>>>,
) {
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    let (mut from_client, mut from_server) = (vec![0; 8192], vec![0; 8192]);
    let mut is_first = true;
    loop {
        let now = *flow.borrow_and_update();
        match now {
            Flow::Closed => return,
            Flow::Stalled => {
                if flow.changed().await.is_err() {
                    return;
                }
                continue;
            }
            Flow::Open | Flow::Responses => {}
        }
        tokio::select! {
            changed = flow.changed() => if changed.is_err() { return },
            read = client.read(&mut from_client), if now == Flow::Open => match read {
                Ok(len) if len > 0 && server.write_all(&from_client[..len]).await.is_ok() => {}
                _ => return,
            },
            read = server.read(&mut from_server) => match read {
                Ok(len) if len > 0 => {
                    if std::mem::take(&mut is_first) && len >= 41 {
                        let body = Bytes::copy_from_slice(&from_server[4..41]);
                        *granted.lock().unwrap() = ConnectResponse::parse(&body).ok();
                    }
                    if client.write_all(&from_server[..len]).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
        }
    }
}
