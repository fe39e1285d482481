//! Transports: detected by the first bytes of a connection.

use crate::protocol::Protocol;

/// How messages are sent over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// One after the other. The end of a message follows from its content.
    Unframed,
    /// Each after its length.
    Framed,
    /// As bodies of HTTP requests.
    Http,
}

impl Transport {
    /// Bytes that always suffice for [`detect`](Self::detect).
    const LEN: usize = 5;

    /// The transport of a connection that begins with `bytes`; `None` if more are needed.
    ///
    /// # Errors
    /// The reason why no client begins like this.
    pub fn detect(bytes: &[u8]) -> Result<Option<Transport>, &'static str> {
        let Some(first) = bytes.first() else { return Ok(None) };
        match first {
            // A frame of this length would be longer than one GiB.
            b'A'..=b'Z' => return Ok(Some(Transport::Http)),
            0x80 | 0x82 => return Ok(Some(Transport::Unframed)),
            0x16 => return Err("TLS is not supported"),
            0..0x80 => {}
            _ => return Err("neither a Thrift message nor an HTTP request"),
        }
        // The length of a frame, and then a message; or an old message, which begins with the
        // length of a name.
        match bytes.get(Transport::LEN - 1) {
            None => Ok(None),
            Some(byte) if Protocol::of(*byte).is_ok() => Ok(Some(Transport::Framed)),
            Some(_) => Ok(Some(Transport::Unframed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_is_detected_by_the_first_bytes() {
        let check = |bytes: &[u8], expected| assert_eq!(Transport::detect(bytes), expected, "{bytes:?}");
        check(b"", Ok(None));
        check(b"POST / HTTP/1.1", Ok(Some(Transport::Http)));
        check(&[0x80, 1, 0, 1], Ok(Some(Transport::Unframed)));
        check(&[0x82, 0x21], Ok(Some(Transport::Unframed)));
        check(&[0, 0, 0, 9], Ok(None));
        check(&[0, 0, 0, 9, 0x80], Ok(Some(Transport::Framed)));
        check(&[0, 0, 0, 9, 0x82], Ok(Some(Transport::Framed)));
        check(&[0, 0, 0, 9, 0], Ok(Some(Transport::Framed)));
        check(&[0, 0, 0, 9, b'g'], Ok(Some(Transport::Unframed)));
        assert!(Transport::detect(&[0x16, 3, 1]).is_err() && Transport::detect(&[0xff]).is_err());
    }
}
