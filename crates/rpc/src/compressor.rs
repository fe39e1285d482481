//! The compressor of cell blocks that a connection agrees on, by the name of a Hadoop codec class.
//!
//! It holds in both directions: each cell block is one stream of its own, and the length in its frame's header is that
//! of the stream. A cell block that is not there is no stream.

use base::compression::{Algorithm, Error};
use bytes::Bytes;

/// A compressor that a client may ask for (`hbase.client.rpc.compressor`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Compressor {
    class: &'static str,
    algorithm: Algorithm,
}

/// The classes that clients have, with the streams they make.
const KNOWN: [Compressor; 6] = [
    Compressor { class: "org.apache.hadoop.io.compress.GzipCodec", algorithm: Algorithm::Gzip },
    Compressor { class: "org.apache.hadoop.io.compress.DefaultCodec", algorithm: Algorithm::Zlib },
    Compressor { class: "org.apache.hadoop.io.compress.DeflateCodec", algorithm: Algorithm::Zlib },
    Compressor { class: "org.apache.hadoop.io.compress.SnappyCodec", algorithm: Algorithm::Snappy },
    Compressor { class: "org.apache.hadoop.io.compress.Lz4Codec", algorithm: Algorithm::Lz4 },
    Compressor { class: "org.apache.hadoop.io.compress.ZStandardCodec", algorithm: Algorithm::Zstd },
];

impl Compressor {
    /// The compressor of a Java class, `None` if it is not known here.
    pub fn of_class(class: &str) -> Option<Compressor> {
        KNOWN.into_iter().find(|known| known.class == class)
    }

    /// The Java class.
    pub fn class(self) -> &'static str {
        self.class
    }

    /// A cell block as it travels; nothing stays nothing.
    pub fn compress(self, cells: &[u8]) -> Bytes {
        match cells {
            [] => Bytes::new(),
            cells => self.algorithm.compress(cells).into(),
        }
    }

    /// The cell block of a stream; nothing is nothing.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it has more than `limit` bytes, before memory is taken for them; [`Error::Malformed`].
    pub fn decompress(self, stream: &[u8], limit: usize) -> Result<Bytes, Error> {
        match stream {
            [] => Ok(Bytes::new()),
            stream => self.algorithm.decompress(stream, None, limit).map(Bytes::from),
        }
    }
}
