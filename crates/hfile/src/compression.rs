//! Codecs of block payloads. A block is compressed on its own; the trailer names the codec of the whole file.
//!
//! The streams themselves are `base::compression`'s. What HBase needs native or foreign code for (LZO, BZIP2, LZMA,
//! BROTLI) is not built in, and refused by name.

use base::compression::Algorithm;
use cell::schema::Compression;

use crate::error::{Fault, Parsed};

/// A codec that is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    /// Payloads are stored as they are.
    None,
    /// Each payload is a stream of its own.
    Packed(Algorithm),
}

/// No payload may decompress to more than this.
pub(crate) const PLAIN_LEN_MAX: usize = 1 << 30;

impl Codec {
    /// The codec that HBase calls `compression`.
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

    /// The payload as it goes to disk; `None` if it goes as it is.
    pub(crate) fn compress(self, plain: &[u8]) -> Option<Vec<u8>> {
        match self {
            Codec::None => None,
            Codec::Packed(algorithm) => Some(algorithm.compress(plain)),
        }
    }
}

/// The payload of `stored`, which the header says has `plain_len` bytes. Allocates no more than that, and that only if
/// the stored bytes may become so many.
pub(crate) fn decompress(algorithm: Algorithm, stored: &[u8], plain_len: usize) -> Parsed<Vec<u8>> {
    if plain_len > PLAIN_LEN_MAX || !algorithm.is_possible(stored.len(), plain_len) {
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
