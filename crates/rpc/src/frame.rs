//! Request and response frames.
//!
//! ```text
//! request:  int32 length | delimited RequestHeader  | delimited message (if request_param) | cells
//! response: int32 length | delimited ResponseHeader | delimited message (if no exception)  | cells
//! ```
//!
//! Parsing does not copy: the parts are slices of the frame, which they keep alive. Encoding and
//! decoding of headers is hand-written, because every call has one in each direction.

use bytes::{BufMut, Bytes, BytesMut};

use crate::call::Method;
use crate::fields::{Fields, Malformed, get_varint, put_bytes, put_number, put_varint, varint_len};
use crate::preamble::put_delimited;

/// Size in bytes of a frame's length field.
pub const LENGTH_LEN: usize = 4;
/// Maximum size in bytes of a RequestHeader. HBase's own stay below 1 KiB.
pub const REQUEST_HEADER_LEN_MAX: usize = 16 * 1024;
/// Maximum length of the header of a response whose message is too long.
pub const RESPONSE_HEADER_LEN_MAX: usize = 1 << 20;

/// The header of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestHeader {
    /// The client's id of the call, echoed in the response.
    pub call_id: u32,
    /// The method, without its service.
    pub method: Method,
    /// Whether a message follows; always true.
    pub request_param: bool,
    /// Size in bytes of the cell block after the message.
    pub cell_block_len: u32,
    /// The priority that the client requests; 0 for user tables, 200 for `hbase:meta`.
    pub priority: u32,
    /// The client's timeout, in milliseconds.
    pub timeout_ms: Option<u32>,
    /// The client's trace information (`RPCTInfo`); usually empty.
    pub trace_info: Bytes,
}

impl RequestHeader {
    /// Decodes a header (without its length).
    ///
    /// # Errors
    /// [`Malformed`] if it is not protobuf.
    pub fn decode(bytes: &Bytes) -> Result<RequestHeader, Malformed> {
        let mut header = RequestHeader::default();
        let mut fields = Fields::of(bytes);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => header.call_id = value.u32()?,
                2 => header.trace_info = bytes.slice_ref(value.bytes()?),
                3 => header.method = Method::of_slice(bytes, value.text()?),
                4 => header.request_param = value.bool()?,
                5 => header.cell_block_len = cell_block_len(value.bytes()?)?.unwrap_or(header.cell_block_len),
                6 => header.priority = value.u32()?,
                7 => header.timeout_ms = Some(value.u32()?),
                _ => {}
            }
        }
        Ok(header)
    }

    /// Appends the encoded header (without its length). Identical to Java's encoding, except that
    /// an empty trace is omitted.
    pub fn encode(&self, out: &mut BytesMut) {
        put_number(out, 1, u64::from(self.call_id));
        if !self.trace_info.is_empty() {
            put_bytes(out, 2, &self.trace_info);
        }
        put_bytes(out, 3, self.method.as_bytes());
        put_number(out, 4, u64::from(self.request_param));
        if self.cell_block_len > 0 {
            put_cell_block_meta(out, 5, self.cell_block_len as usize);
        }
        if self.priority > 0 {
            put_number(out, 6, u64::from(self.priority));
        }
        if let Some(timeout_ms) = self.timeout_ms {
            put_number(out, 7, u64::from(timeout_ms));
        }
    }
}

// CellBlockMeta: 1 length.
fn cell_block_len(meta: &[u8]) -> Result<Option<u32>, Malformed> {
    let mut len = None;
    let mut fields = Fields::of(meta);
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            len = Some(value.u32()?);
        }
    }
    Ok(len)
}

fn put_cell_block_meta(out: &mut BytesMut, field: u32, len: usize) {
    put_varint(out, u64::from(field << 3 | 2));
    put_varint(out, 1 + varint_len(len as u64) as u64);
    put_number(out, 1, len as u64);
}

/// A parsed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its header.
    pub header: RequestHeader,
    /// Its message.
    pub param: Bytes,
    /// Its cell block; empty if there is none.
    pub cells: Bytes,
}

/// A frame that is not a valid request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadRequest {
    /// The header is invalid, so there is no call to answer.
    Header(Malformed),
    /// The header is valid, so the call can be answered, but the rest is inconsistent.
    Body {
        /// The header.
        header: RequestHeader,
        /// What is wrong.
        what: Malformed,
    },
}

/// Parses a request frame (without its length).
///
/// # Errors
/// [`BadRequest`]. Allocates nothing for lengths that the frame only claims.
pub fn parse_request(frame: &Bytes) -> Result<Request, BadRequest> {
    let (header, body_at) = match peek_header(frame).map_err(BadRequest::Header)? {
        Some(found) => found,
        None => return Err(BadRequest::Header(Malformed("the frame ends within its header"))),
    };
    match split_body(frame, body_at, &header) {
        Ok((param, cells)) => Ok(Request { header, param, cells }),
        Err(what) => Err(BadRequest::Body { header, what }),
    }
}

fn split_body(frame: &Bytes, at: usize, header: &RequestHeader) -> Result<(Bytes, Bytes), Malformed> {
    if !header.request_param {
        return Err(Malformed("request_param is not set"));
    }
    let (len, len_len) = get_varint(&frame[at..])?.ok_or(Malformed("the frame ends before its message"))?;
    let param_at = at + len_len;
    // HBase keeps the low 32 bits and treats them as a signed number.
    let len = usize::try_from(len as u32 as i32).map_err(|_| Malformed("message length"))?;
    let rest = frame.len() - param_at;
    if len > rest && header.cell_block_len > 0 {
        return Err(Malformed("the message is longer than its frame"));
    }
    // HBase reads the last message of a frame up to the end of the frame, whatever its length field
    // states. Some clients encode lengths above 127 incorrectly and depend on that.
    let cells_at = param_at + len.min(rest);
    let cells_len = header.cell_block_len as usize;
    if cells_len > frame.len() - cells_at {
        return Err(Malformed("the cell block is longer than its frame"));
    }
    Ok((frame.slice(param_at..cells_at), frame.slice(cells_at..cells_at + cells_len)))
}

/// The header at the start of an incomplete frame, and the offset after it; `None` if the header is
/// incomplete too.
///
/// # Errors
/// [`Malformed`] if the header is invalid or longer than [`REQUEST_HEADER_LEN_MAX`].
pub fn peek_header(frame: &Bytes) -> Result<Option<(RequestHeader, usize)>, Malformed> {
    let Some((len, at)) = get_varint(frame)? else { return Ok(None) };
    let len = usize::try_from(len).ok().filter(|len| *len <= REQUEST_HEADER_LEN_MAX);
    let end = at + len.ok_or(Malformed("request header too long"))?;
    if end > frame.len() {
        return Ok(None);
    }
    Ok(Some((RequestHeader::decode(&frame.slice(at..end))?, end)))
}

/// Appends a request frame, except the cells at its end.
pub fn put_request(out: &mut BytesMut, header: &RequestHeader, param: &[u8]) {
    let length_at = out.len();
    out.put_u32(0);
    let mut head = BytesMut::with_capacity(64);
    header.encode(&mut head);
    put_delimited(out, &head);
    put_delimited(out, param);
    let total = out.len() - length_at - LENGTH_LEN + header.cell_block_len as usize;
    out[length_at..length_at + LENGTH_LEN].copy_from_slice(&(total as u32).to_be_bytes());
}

/// A failed call, to be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExceptionResponse<'a> {
    /// The Java class that the client instantiates.
    pub class: &'a str,
    /// The text passed to that class.
    pub stack_trace: &'a str,
    /// Where the region is now, if it moved.
    pub location: Option<(&'a str, u16)>,
    /// Whether a retry cannot succeed.
    pub do_not_retry: bool,
    /// Whether the client should wait longer before it retries.
    pub server_overloaded: bool,
}

impl ExceptionResponse<'_> {
    fn encode(&self) -> BytesMut {
        let mut out = BytesMut::with_capacity(self.class.len() + self.stack_trace.len() + 16);
        put_bytes(&mut out, 1, self.class.as_bytes());
        put_bytes(&mut out, 2, self.stack_trace.as_bytes());
        if let Some((host, port)) = self.location {
            put_bytes(&mut out, 3, host.as_bytes());
            put_number(&mut out, 4, u64::from(port));
        }
        put_number(&mut out, 5, u64::from(self.do_not_retry));
        if self.server_overloaded {
            put_number(&mut out, 6, 1);
        }
        out
    }
}

/// Appends a response frame up to the start of its message. The caller appends the message
/// (`message_len` bytes) and the cell block (`cells_len` bytes).
pub fn put_response_head(out: &mut BytesMut, call_id: u32, message_len: usize, cells_len: usize) {
    let mut header_len = 1 + varint_len(u64::from(call_id));
    let meta_len = 1 + varint_len(cells_len as u64);
    if cells_len > 0 {
        header_len += 2 + meta_len;
    }
    let total = 1 + header_len + varint_len(message_len as u64) + message_len + cells_len;
    debug_assert!(header_len < 0x80, "the header's length must fit one byte");
    out.put_u32(total as u32);
    out.put_u8(header_len as u8);
    put_number(out, 1, u64::from(call_id));
    if cells_len > 0 {
        put_cell_block_meta(out, 3, cells_len);
    }
    put_varint(out, message_len as u64);
}

/// Encodes a complete response frame without cells.
pub fn encode_response(call_id: u32, message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(message.len() + 24);
    put_response_head(&mut out, call_id, message.len(), 0);
    out.put_slice(message);
    out.freeze()
}

/// Encodes a complete response frame of a failed call.
pub fn encode_exception(call_id: u32, exception: &ExceptionResponse<'_>) -> Bytes {
    let exception = exception.encode();
    let mut header = BytesMut::with_capacity(exception.len() + 16);
    put_number(&mut header, 1, u64::from(call_id));
    put_bytes(&mut header, 2, &exception);
    let mut out = BytesMut::with_capacity(header.len() + 8);
    out.put_u32((varint_len(header.len() as u64) + header.len()) as u32);
    put_delimited(&mut out, &header);
    out.freeze()
}

/// A failed call, as the client decodes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemoteException {
    /// Java class.
    pub class: String,
    /// The text: usually `class: message`, possibly followed by lines of a stack trace.
    pub stack_trace: String,
    /// Whether a retry cannot succeed.
    pub do_not_retry: bool,
    /// Where the region is now, if the server sent it.
    pub location: Option<(String, u16)>,
    /// Whether the client should wait longer before it retries.
    pub server_overloaded: bool,
}

/// A parsed response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The id of the answered call; [`CONNECTION_CALL_ID`](crate::preamble::CONNECTION_CALL_ID) for
    /// the connection itself.
    pub call_id: u32,
    /// Message and cell block, or the failure.
    pub outcome: Result<(Bytes, Bytes), RemoteException>,
}

/// Parses a response frame (without its length).
///
/// # Errors
/// [`Malformed`]: the connection is unusable from then on.
pub fn parse_response(frame: &Bytes) -> Result<Response, Malformed> {
    let (header, rest_at) = delimited(frame, 0)?;
    let (mut call_id, mut exception, mut cells_len) = (0, None, 0);
    let mut fields = Fields::of(&header);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => call_id = value.u32()?,
            2 => exception = Some(decode_exception(value.bytes()?)?),
            3 => cells_len = cell_block_len(value.bytes()?)?.unwrap_or(0) as usize,
            _ => {}
        }
    }
    if let Some(exception) = exception {
        return Ok(Response { call_id, outcome: Err(exception) });
    }
    let (message, rest_at) = delimited(frame, rest_at)?;
    if cells_len > frame.len() - rest_at {
        return Err(Malformed("the cell block is longer than its frame"));
    }
    Ok(Response { call_id, outcome: Ok((message, frame.slice(rest_at..rest_at + cells_len))) })
}

/// The call that a response answers, from the start of its frame (without its length). `None` if
/// the header is incomplete.
///
/// # Errors
/// [`Malformed`] if the header is invalid, has no call, or is longer than
/// [`RESPONSE_HEADER_LEN_MAX`].
pub fn peek_response_call(frame: &[u8]) -> Result<Option<u32>, Malformed> {
    let Some((len, at)) = get_varint(frame)? else { return Ok(None) };
    let len = usize::try_from(len).ok().filter(|len| *len <= RESPONSE_HEADER_LEN_MAX);
    let end = at + len.ok_or(Malformed("response header too long"))?;
    let Some(header) = frame.get(at..end) else { return Ok(None) };
    let mut fields = Fields::of(header);
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            return value.u32().map(Some);
        }
    }
    Err(Malformed("a response without a call"))
}

fn delimited(frame: &Bytes, at: usize) -> Result<(Bytes, usize), Malformed> {
    let (len, len_len) = get_varint(&frame[at..])?.ok_or(Malformed("the frame ends before a message"))?;
    let start = at + len_len;
    let len = usize::try_from(len).ok().filter(|len| *len <= frame.len() - start);
    let end = start + len.ok_or(Malformed("a message is longer than its frame"))?;
    Ok((frame.slice(start..end), end))
}

fn decode_exception(bytes: &[u8]) -> Result<RemoteException, Malformed> {
    let mut exception = RemoteException::default();
    let (mut host, mut port) = (None, 0);
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => exception.class = value.text()?.to_string(),
            2 => exception.stack_trace = String::from_utf8_lossy(value.bytes()?).into_owned(),
            3 => host = Some(value.text()?.to_string()),
            4 => port = value.u32()?,
            5 => exception.do_not_retry = value.bool()?,
            6 => exception.server_overloaded = value.bool()?,
            _ => {}
        }
    }
    exception.location = host.zip(u16::try_from(port).ok());
    Ok(exception)
}
