//! Codecs of block payloads. Each block is compressed separately; the trailer names the codec of
//! the whole file.
//!
//! `base::compression` implements the streams. Codecs for which HBase needs native or third-party
//! code (LZO, BZIP2, LZMA, BROTLI) are not supported; errors name them.

use base::compression::Algorithm;
use cell::schema::Compression;

use crate::error::{Fault, Parsed};

/// A supported codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    /// Payloads are stored uncompressed.
    None,
    /// Each payload is a separate stream.
    Packed(Algorithm),
}

/// Maximum bytes of a decompressed payload.
pub(crate) const PAYLOAD_LEN_MAX: usize = 1 << 30;

impl Codec {
    /// The codec for HBase's `compression`.
    pub(crate) fn of(compression: Compression) -> Parsed<Codec> {
        Ok(Codec::Packed(match compression {
            Compression::None => return Ok(Codec::None),
            Compression::Gz => Algorithm::Gzip,
            Compression::Snappy => Algorithm::Snappy,
            Compression::Lz4 => Algorithm::Lz4,
            Compression::Zstd => Algorithm::Zstd,
            Compression::Lzo | Compression::Bzip2 | Compression::Lzma | Compression::Brotli => {
                return Err(Fault::Unsupported(format!("compression {}", compression.name())));
            }
        }))
    }

    /// The compressed payload, or `None` if it is stored uncompressed.
    pub(crate) fn compress(self, plain: &[u8]) -> Option<Vec<u8>> {
        match self {
            Codec::None => None,
            Codec::Packed(algorithm) => Some(algorithm.compress(plain)),
        }
    }
}

/// Decompresses `stored`. `plain_len` is the decompressed length that the block header states.
/// Allocates at most that many bytes, and only if the codec can produce them from the stored
/// length.
pub(crate) fn decompress(algorithm: Algorithm, stored: &[u8], plain_len: usize) -> Parsed<Vec<u8>> {
    if plain_len > PAYLOAD_LEN_MAX || !algorithm.is_possible(stored.len(), plain_len) {
        return Err(Fault::Damaged("block claims to decompress to more than is possible"));
    }
    algorithm
        .decompress(stored, Some(plain_len), plain_len)
        .map_err(|_| Fault::Damaged("block does not decompress"))
}

/// The compression of an ordinal in a trailer.
pub(crate) fn compression_of(ordinal: u32) -> Parsed<Compression> {
    Compression::ALL
        .into_iter()
        .find(|compression| *compression as u32 == ordinal)
        .ok_or(Fault::Damaged("trailer names an unknown codec"))
}
