//! A small HTTP client, which sends exactly what a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// A connection that is kept alive.
pub struct Connection {
    stream: BufReader<TcpStream>,
    port: u16,
}

/// A response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn connect(port: u16) -> BufReader<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.set_nodelay(true).unwrap();
    BufReader::new(stream)
}

impl Connection {
    pub fn open(port: u16) -> Connection {
        Connection { stream: connect(port), port }
    }

    /// Sends a request with a body and its length.
    pub fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += "Host: localhost:8080\r\n";
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() || matches!(method, "PUT" | "POST" | "PATCH") {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "\r\n";
        // The server may refuse a request before it has received the whole body.
        let _ = self.stream.get_mut().write_all(&[head.as_bytes(), body].concat());
        let response = self.response(method == "HEAD");
        if response.header("connection") == Some("close") || response.status == 413 {
            self.stream = connect(self.port);
        }
        response
    }

    pub fn get(&mut self, path: &str) -> Response {
        self.request("GET", path, &[("Accept", "application/json")], b"")
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Receives a response.
    pub fn response(&mut self, is_head: bool) -> Response {
        let status_line = self.line();
        let status =
            status_line.split(' ').nth(1).unwrap_or_else(|| panic!("{status_line:?}")).parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response = Response { status, headers, body: Vec::new() };
        if is_head || matches!(status, 204 | 304) {
            return response;
        }
        if response.header("transfer-encoding") == Some("chunked") {
            response.body = self.chunks();
        } else {
            let len: usize = response.header("content-length").map_or(0, |len| len.parse().unwrap());
            response.body = vec![0; len];
            self.stream.read_exact(&mut response.body).unwrap();
        }
        response
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let len = usize::from_str_radix(&self.line(), 16).unwrap();
            let mut chunk = vec![0; len];
            self.stream.read_exact(&mut chunk).unwrap();
            self.line();
            if len == 0 {
                return body;
            }
            body.extend_from_slice(&chunk);
        }
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        self.stream.read(&mut [0; 1]).is_ok_and(|read| read == 0)
    }
}
