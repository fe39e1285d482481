//! A session without a client: ZooKeeper's frames.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zk::protocol::{ConnectRequest, ConnectResponse, PASSWORD_LEN, Reply, Request, kind};

/// A session that sends requests one by one, and no pings.
pub struct RawSession(TcpStream);

impl RawSession {
    /// Opens a session.
    pub async fn open(server: &str, timeout_ms: i32) -> io::Result<RawSession> {
        let mut session = RawSession(TcpStream::connect(server).await?);
        session.0.write_all(&connect_request(timeout_ms, 0, [0; PASSWORD_LEN]).encode()).await?;
        session.frame().await?;
        Ok(session)
    }

    /// Closes a session that another client opened. Fails if its owner resumes it meanwhile.
    pub async fn close(server: &str, granted: &ConnectResponse) -> io::Result<()> {
        let mut session = RawSession(TcpStream::connect(server).await?);
        let connect = connect_request(granted.timeout_ms, granted.session, granted.password);
        let close = Request::encode(1, kind::CLOSE, None);
        session.0.write_all(&[connect.encode(), close].concat()).await?;
        let resumed = ConnectResponse::parse(&session.frame().await?).unwrap();
        if resumed.session != 0 {
            assert_eq!(resumed.session, granted.session);
            session.frame().await?;
        }
        Ok(())
    }

    /// The value of a znode.
    pub async fn get(&mut self, path: &str) -> io::Result<Bytes> {
        self.0.write_all(&Request::encode(1, kind::GET_DATA, Some(path))).await?;
        Ok(Reply::parse(&self.frame().await?).unwrap().data().unwrap())
    }

    async fn frame(&mut self) -> io::Result<Bytes> {
        let mut body = vec![0; self.0.read_u32().await? as usize];
        self.0.read_exact(&mut body).await?;
        Ok(body.into())
    }
}

fn connect_request(timeout_ms: i32, session: i64, password: [u8; PASSWORD_LEN]) -> ConnectRequest {
    let password = Bytes::copy_from_slice(&password);
    ConnectRequest { last_zxid: 0, timeout_ms, session, password, read_only: Some(false) }
}
