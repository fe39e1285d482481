//! A server on an in-memory network, a service whose responses the test controls, and a raw client.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, Stream};
use bytes::{Buf, Bytes, BytesMut};
use proto::exception::{JavaException, class};
use rpc::frame::{self, RequestHeader, Response};
use rpc::header::{ClientVersion, ConnectionHeader};
use rpc::server::Shared;
use rpc::{Call, CellBlock, Reply, Server, ServerOptions, Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

pub const CLUSTER_ID: &str = "acfcd7de-98b9-4a66-a24d-a99301fc498a";

/// Decodes hexadecimal text; quoted parts are copied verbatim, white space is skipped.
pub fn hex(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, part) in text.split('"').enumerate() {
        if at % 2 == 1 {
            out.extend_from_slice(part.as_bytes());
            continue;
        }
        let digits: Vec<u8> = part.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        out.extend(
            digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()),
        );
    }
    out
}

/// Responds according to the method's name: see [`TestService::call`].
#[derive(Default)]
pub struct TestService {
    /// Number of calls started.
    pub begun: AtomicUsize,
    /// Number of calls ended.
    pub ended: Arc<AtomicUsize>,
    /// Releases a `Wait` call.
    pub gate: Arc<Notify>,
    /// The last call.
    pub last: Mutex<Option<Call>>,
}

impl Service for TestService {
    fn name(&self) -> &'static str {
        "ClientService"
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, JavaException>> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        *self.last.lock().unwrap() = Some(call.clone());
        let (gate, ended) = (Arc::clone(&self.gate), Arc::clone(&self.ended));
        if &*call.method == "PanicAtOnce" {
            panic!("intended panic");
        }
        Box::pin(async move {
            let outcome = match &*call.method {
                "Echo" => {
                    Ok(Reply { message: call.param.clone(), cells: CellBlock::from(call.cells.clone()) })
                }
                "Wait" => {
                    gate.notified().await;
                    Ok(Reply::message(call.param.clone()))
                }
                "Yield" => {
                    tokio::task::yield_now().await;
                    Ok(Reply::message(call.param.clone()))
                }
                "Panic" => {
                    tokio::task::yield_now().await;
                    panic!("intended panic, later");
                }
                // As many bytes of cells as the message states.
                "Cells" => {
                    let len = u32::from_be_bytes(call.param[..4].try_into().unwrap());
                    let mut cells = CellBlock::new();
                    cells.push(Bytes::from(vec![7; len as usize]));
                    Ok(Reply { message: Bytes::from_static(b"m"), cells })
                }
                "Fail" => Err(JavaException {
                    location: Some(("h1".into(), 16020)),
                    ..JavaException::new(class::REGION_MOVED, "moved")
                }),
                other => Err(JavaException::do_not_retry(format!("no method {other}"))),
            };
            ended.fetch_add(1, Ordering::SeqCst);
            outcome
        })
    }
}

/// A server of one [`TestService`], and its port.
pub struct Harness {
    pub env: Env,
    pub server: Arc<Server>,
    pub service: Arc<TestService>,
    pub port: u16,
}

impl Harness {
    pub async fn new(options: ServerOptions) -> Harness {
        let shared = Shared::new(&options);
        Harness::sharing(options, shared).await
    }

    pub async fn sharing(options: ServerOptions, shared: Arc<Shared>) -> Harness {
        let env = base::testing::env(1);
        let service = Arc::new(TestService::default());
        let services: Vec<Arc<dyn Service>> = vec![service.clone()];
        let server = Server::sharing(env.clone(), services, options, Some(CLUSTER_ID.into()), shared);
        let listener = env.net.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let port = listener.local_addr().port();
        server.serve(listener);
        Harness { env, server, service, port }
    }

    /// A connection that has not sent anything.
    pub async fn raw(&self) -> Raw {
        Raw { stream: self.env.net.connect("localhost", self.port).await.unwrap(), read: BytesMut::new() }
    }

    /// A connection that has sent Java 2.5's opening.
    pub async fn open(&self) -> Raw {
        self.open_with(&java_header()).await
    }

    pub async fn open_with(&self, header: &ConnectionHeader) -> Raw {
        let mut raw = self.raw().await;
        let mut opening = BytesMut::new();
        rpc::preamble::put_opening(&mut opening, &header.encode());
        raw.send(&opening).await;
        raw
    }
}

pub fn java_header() -> ConnectionHeader {
    ConnectionHeader {
        effective_user: Some("alice".into()),
        service_name: Some("ClientService".into()),
        codec_class: Some(rpc::Codec::KeyValue.class().into()),
        version: Some(ClientVersion { major: 2, minor: 5, text: "2.5.10".into() }),
        ..ConnectionHeader::default()
    }
}

/// The byte stream of a connection.
pub struct Raw {
    pub stream: Box<dyn Stream>,
    read: BytesMut,
}

impl Raw {
    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    pub async fn call(&mut self, call_id: u32, method: &str, param: &[u8]) {
        self.send(&request(call_id, method, param, &[])).await;
    }

    /// Reads exactly `len` bytes.
    pub async fn take(&mut self, len: usize) -> Vec<u8> {
        while self.read.len() < len {
            assert_ne!(
                self.stream.read_buf(&mut self.read).await.unwrap(),
                0,
                "closed after {:?}",
                self.read
            );
        }
        self.read.split_to(len).to_vec()
    }

    pub async fn response(&mut self) -> Response {
        let len = self.take(4).await;
        let len = u32::from_be_bytes(len.try_into().unwrap());
        let frame = Bytes::from(self.take(len as usize).await);
        frame::parse_response(&frame).unwrap()
    }

    /// Reads everything until the server closes the connection.
    pub async fn until_closed(&mut self) -> Vec<u8> {
        // A reset also counts as a close.
        while matches!(self.stream.read_buf(&mut self.read).await, Ok(1..)) {}
        self.read.split().to_vec()
    }

    /// Whether no bytes arrive within `time`.
    pub async fn is_silent(&mut self, env: &Env, time: Duration) -> bool {
        self.read.is_empty() && env.timeout(time, self.stream.read_buf(&mut self.read)).await.is_none()
    }
}

pub fn request(call_id: u32, method: &str, param: &[u8], cells: &[u8]) -> Bytes {
    request_with(RequestHeader { call_id, method: method.into(), ..RequestHeader::default() }, param, cells)
}

pub fn request_with(header: RequestHeader, param: &[u8], cells: &[u8]) -> Bytes {
    let header = RequestHeader { request_param: true, cell_block_len: cells.len() as u32, ..header };
    let mut out = BytesMut::new();
    frame::put_request(&mut out, &header, param);
    out.extend_from_slice(cells);
    out.freeze()
}

/// The frame without its length field.
pub fn body(frame: &[u8]) -> Bytes {
    let mut bytes = Bytes::copy_from_slice(frame);
    let len = bytes.get_u32();
    assert_eq!(len as usize, bytes.len(), "the length field must match the frame");
    bytes
}

/// Waits until `reached` returns true, in steps of the clock.
pub async fn eventually(env: &Env, reached: impl Fn() -> bool) {
    for _ in 0..1000 {
        if reached() {
            return;
        }
        env.clock.sleep(Duration::from_millis(1)).await;
    }
    panic!("the condition was never met");
}
