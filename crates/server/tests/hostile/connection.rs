//! A raw connection: it sends whatever bytes a client of any kind could send.
#![allow(dead_code, reason = "each test uses a part of this module")]
#![allow(
    clippy::disallowed_methods,
    reason = "the server under test is another process, reached through real sockets"
)]

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use prost::Message;
use rpc::frame::{self, RemoteException, RequestHeader, Response};
use rpc::header::{ClientVersion, ConnectionHeader};

/// A server without a response for this long hangs.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(120);

/// An open connection to the region server.
pub struct Connection {
    pub stream: TcpStream,
    /// The call timeout that the client sends with its requests.
    pub timeout_ms: Option<u32>,
    next_call_id: u32,
}

/// Message and cells, or the exception.
pub type Outcome = Result<(Bytes, Bytes), RemoteException>;

impl Connection {
    /// Opens a connection like a Java client of version 2.5.
    pub fn open(port: u16) -> io::Result<Connection> {
        Connection::open_with(port, None)
    }

    /// As [`Connection::open`], but for another service than `ClientService`.
    pub fn open_for(port: u16, service: &str) -> io::Result<Connection> {
        Connection::open_to(port, service, None)
    }

    /// As [`Connection::open`], but with this compression class for cell blocks.
    pub fn open_with(port: u16, compressor: Option<&str>) -> io::Result<Connection> {
        Connection::open_to(port, "ClientService", compressor)
    }

    fn open_to(port: u16, service: &str, compressor: Option<&str>) -> io::Result<Connection> {
        let mut connection = Connection::open_raw(port)?;
        let header = ConnectionHeader {
            effective_user: Some("mallory".into()),
            service_name: Some(service.into()),
            codec_class: Some(rpc::Codec::KeyValue.class().into()),
            compressor_class: compressor.map(String::from),
            version: Some(ClientVersion { major: 2, minor: 5, text: "2.5.10".into() }),
            ..ConnectionHeader::default()
        };
        let mut opening = BytesMut::new();
        rpc::preamble::put_opening(&mut opening, &header.encode());
        connection.stream.write_all(&opening)?;
        Ok(connection)
    }

    /// Opens a connection and sends nothing.
    pub fn open_raw(port: u16) -> io::Result<Connection> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        stream.set_write_timeout(Some(RESPONSE_TIMEOUT))?;
        Ok(Connection { stream, timeout_ms: None, next_call_id: 0 })
    }

    /// The frame of a request up to its cells.
    pub fn head(&mut self, method: &str, param: &[u8], cells_len: usize) -> BytesMut {
        self.next_call_id += 1;
        let header = RequestHeader {
            call_id: self.next_call_id,
            method: method.into(),
            request_param: true,
            cell_block_len: u32::try_from(cells_len).unwrap(),
            timeout_ms: self.timeout_ms,
            ..RequestHeader::default()
        };
        let mut out = BytesMut::new();
        frame::put_request(&mut out, &header, param);
        out
    }

    /// Sends a request without waiting for the response.
    pub fn send(&mut self, method: &str, message: &impl Message, cells: &[u8]) -> io::Result<()> {
        let head = self.head(method, &message.encode_to_vec(), cells.len());
        self.stream.write_all(&head)?;
        self.stream.write_all(cells)
    }

    /// Reads the next response.
    pub fn answer(&mut self) -> io::Result<Response> {
        let mut len = [0; 4];
        self.stream.read_exact(&mut len)?;
        let mut bytes = vec![0; u32::from_be_bytes(len) as usize];
        self.stream.read_exact(&mut bytes)?;
        frame::parse_response(&bytes.into()).map_err(|error| io::Error::other(error.to_string()))
    }

    /// Sends a request and waits for the response.
    pub fn call(&mut self, method: &str, message: &impl Message, cells: &[u8]) -> io::Result<Outcome> {
        self.send(method, message, cells)?;
        Ok(self.answer()?.outcome)
    }

    /// Sends a request that must succeed, and decodes the response.
    pub fn call_ok<M: Message + Default>(&mut self, method: &str, message: &impl Message) -> (M, Bytes) {
        let outcome = self.call(method, message, &[]).unwrap();
        let (message, cells) = outcome.unwrap_or_else(|exception| panic!("{method}: {exception:?}"));
        (M::decode(message).unwrap(), cells)
    }

    /// Whether the server closes the connection within this time. Discards what it sent before.
    pub fn is_closed_within(&mut self, limit: Duration) -> bool {
        self.stream.set_read_timeout(Some(limit)).unwrap();
        loop {
            match self.stream.read(&mut [0; 4096]) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == io::ErrorKind::ConnectionReset,
            }
        }
    }
}
