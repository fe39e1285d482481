//! The compressor of cell blocks that a connection negotiates, by the class name of a Hadoop codec.
//!
//! It applies in both directions. Each cell block is a separate stream, and the length in its
//! frame's header is the stream's length. An absent cell block has no stream.

use base::compression::{Algorithm, Error, Expansion};
use bytes::Bytes;

/// A compressor that a client may request (`hbase.client.rpc.compressor`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Compressor {
    class: &'static str,
    algorithm: Algorithm,
}

/// The classes that clients have, and their stream formats.
const KNOWN: [Compressor; 6] = [
    Compressor { class: "org.apache.hadoop.io.compress.GzipCodec", algorithm: Algorithm::Gzip },
    Compressor { class: "org.apache.hadoop.io.compress.DefaultCodec", algorithm: Algorithm::Zlib },
    Compressor { class: "org.apache.hadoop.io.compress.DeflateCodec", algorithm: Algorithm::Zlib },
    Compressor { class: "org.apache.hadoop.io.compress.SnappyCodec", algorithm: Algorithm::Snappy },
    Compressor { class: "org.apache.hadoop.io.compress.Lz4Codec", algorithm: Algorithm::Lz4 },
    Compressor { class: "org.apache.hadoop.io.compress.ZStandardCodec", algorithm: Algorithm::Zstd },
];

impl Compressor {
    /// The compressor of a Java class; `None` if the class is unknown.
    pub fn of_class(class: &str) -> Option<Compressor> {
        KNOWN.into_iter().find(|known| known.class == class)
    }

    /// The Java class.
    pub fn class(self) -> &'static str {
        self.class
    }

    /// Compresses a cell block; an empty block stays empty.
    pub fn compress(self, cells: &[u8]) -> Bytes {
        match cells {
            [] => Bytes::new(),
            cells => self.algorithm.compress(cells).into(),
        }
    }

    /// Whether compressing `len` bytes takes more than about a millisecond.
    pub(crate) fn is_slow_for(self, len: usize) -> bool {
        match self.algorithm {
            Algorithm::Snappy | Algorithm::Lz4 => len > 512 << 10,
            Algorithm::Gzip | Algorithm::Zlib | Algorithm::Zstd => len > 64 << 10,
        }
    }

    /// Starts decompressing the cell block of a stream, about `step_bytes` at a time.
    ///
    /// # Errors
    /// [`Error::Malformed`] if the stream's header is invalid.
    pub(crate) fn expansion(
        self,
        stream: Bytes,
        limit: usize,
        step_bytes: usize,
    ) -> Result<Expansion, Error> {
        Expansion::new(self.algorithm, stream, limit, step_bytes)
    }

    /// Decompresses a stream to a cell block; an empty stream is an empty block.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the block has more than `limit` bytes, before memory is allocated for
    /// them; [`Error::Malformed`].
    pub fn decompress(self, stream: &[u8], limit: usize) -> Result<Bytes, Error> {
        match stream {
            [] => Ok(Bytes::new()),
            stream => self.algorithm.decompress(stream, None, limit).map(Bytes::from),
        }
    }
}
