//! Messages in the binary protocol, and their transports, without the codec of the gateway.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use serde_json::{Map, Value, json};

/// A value of an argument.
#[derive(Clone, Debug)]
pub enum Argument {
    I32(i32),
    Text(&'static str),
    Texts(&'static [&'static str]),
    Structs(Vec<Vec<(i16, Argument)>>),
    Struct(Vec<(i16, Argument)>),
}

/// A call with these arguments.
pub fn call(method: &str, arguments: &[(i16, Argument)]) -> Vec<u8> {
    let mut message = vec![0x80, 1, 0, 1];
    put_text(&mut message, method);
    message.extend_from_slice(&7_i32.to_be_bytes());
    put_struct(&mut message, arguments);
    message
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn put_struct(out: &mut Vec<u8>, fields: &[(i16, Argument)]) {
    for (id, argument) in fields {
        let kind = match argument {
            Argument::I32(_) => 8,
            Argument::Text(_) => 11,
            Argument::Struct(_) => 12,
            Argument::Texts(_) | Argument::Structs(_) => 15,
        };
        out.push(kind);
        out.extend_from_slice(&id.to_be_bytes());
        match argument {
            Argument::I32(number) => out.extend_from_slice(&number.to_be_bytes()),
            Argument::Text(text) => put_text(out, text),
            Argument::Struct(fields) => put_struct(out, fields),
            Argument::Texts(texts) => {
                out.push(11);
                out.extend_from_slice(&(texts.len() as u32).to_be_bytes());
                texts.iter().for_each(|text| put_text(out, text));
            }
            Argument::Structs(structs) => {
                out.push(12);
                out.extend_from_slice(&(structs.len() as u32).to_be_bytes());
                structs.iter().for_each(|fields| put_struct(out, fields));
            }
        }
    }
    out.push(0);
}

/// How a client sends messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Unframed,
    Framed,
    Http,
}

/// A connection to a Thrift service.
pub struct Connection {
    pub stream: TcpStream,
    transport: Transport,
    port: u16,
}

impl Connection {
    pub fn open(port: u16, transport: Transport) -> Connection {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Connection { stream, transport, port }
    }

    /// Opens the connection again after the server has closed it.
    pub fn reopen(&mut self) {
        *self = Connection::open(self.port, self.transport);
    }

    /// Sends a call and receives the response, by field numbers.
    pub fn call(&mut self, message: &[u8]) -> io::Result<Value> {
        match self.transport {
            Transport::Unframed => self.stream.write_all(message)?,
            Transport::Framed => {
                let len = (message.len() as u32).to_be_bytes();
                self.stream.write_all(&[&len, message].concat())?;
            }
            Transport::Http => {
                let head = format!(
                    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-thrift\r\n\
                     Content-Length: {}\r\n\r\n",
                    message.len()
                );
                self.stream.write_all(&[head.as_bytes(), message].concat())?;
            }
        }
        self.response()
    }

    fn response(&mut self) -> io::Result<Value> {
        match self.transport {
            Transport::Unframed => {}
            Transport::Framed => {
                self.u32()?;
            }
            Transport::Http => {
                let head = self.head()?;
                assert!(head.starts_with("HTTP/1.1 200"), "{head}");
                assert!(head.to_lowercase().contains("content-type: application/x-thrift"), "{head}");
            }
        }
        let version = self.u32()?;
        assert_eq!(version >> 16, 0x8001, "a message in the binary protocol");
        let _name = self.text()?;
        assert_ne!(self.u32()?, 0, "the number of the call");
        let kind = if version & 0xff == 3 { "exception" } else { "reply" };
        Ok(json!({ kind: self.value(12)? }))
    }

    /// The header of an HTTP response.
    pub fn head(&mut self) -> io::Result<String> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.u8()?);
        }
        Ok(String::from_utf8_lossy(&head).into_owned())
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn u8(&mut self) -> io::Result<u8> {
        Ok(self.bytes::<1>()?[0])
    }

    fn u32(&mut self) -> io::Result<u32> {
        Ok(u32::from_be_bytes(self.bytes()?))
    }

    /// Bytes as Latin-1.
    fn text(&mut self) -> io::Result<String> {
        let mut bytes = vec![0; self.u32()? as usize];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes.into_iter().map(char::from).collect())
    }

    fn value(&mut self, kind: u8) -> io::Result<Value> {
        Ok(match kind {
            2 => json!(self.u8()? == 1),
            3 => json!(i8::from_be_bytes(self.bytes()?)),
            6 => json!(i16::from_be_bytes(self.bytes()?)),
            8 => json!(i32::from_be_bytes(self.bytes()?)),
            10 => json!(i64::from_be_bytes(self.bytes()?)),
            11 => json!(self.text()?),
            12 => {
                let mut fields = Map::new();
                loop {
                    let kind = self.u8()?;
                    if kind == 0 {
                        return Ok(Value::Object(fields));
                    }
                    let id = i16::from_be_bytes(self.bytes()?);
                    fields.insert(id.to_string(), self.value(kind)?);
                }
            }
            13 => {
                let (key, value, count) = (self.u8()?, self.u8()?, self.u32()?);
                let entries = (0..count).map(|_| Ok(json!([self.value(key)?, self.value(value)?])));
                json!({ "map": entries.collect::<io::Result<Vec<_>>>()? })
            }
            14 | 15 => {
                let (kind, count) = (self.u8()?, self.u32()?);
                Value::Array((0..count).map(|_| self.value(kind)).collect::<io::Result<_>>()?)
            }
            other => panic!("type {other}"),
        })
    }
}
