//! Codecs of block payloads. A block is compressed on its own; the trailer names the codec of the whole file.
//!
//! A new codec is one more arm in [`Codec::of`], [`Codec::compress`] and [`Codec::decompress`].

use cell::schema::Compression;

use crate::error::{Fault, Parsed};

/// A codec that is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    /// Payloads are stored as they are.
    None,
    /// One gzip member a payload.
    Gz,
}

/// No payload may decompress to more than this.
pub(crate) const PLAIN_LEN_MAX: usize = 1 << 30;

/// Deflate, the densest codec but for zstd, gains at most 1032:1; what claims more is a lie, not a file.
const RATIO_MAX: usize = 1032;
/// Short payloads may exceed the ratio: a codec's frame for an empty payload counts as well.
const RATIO_SLACK: usize = 64 << 10;

impl Codec {
    /// The codec that HBase calls `compression`.
    pub(crate) fn of(compression: Compression) -> Parsed<Codec> {
        match compression {
            Compression::None => Ok(Codec::None),
            Compression::Gz => Ok(Codec::Gz),
            other => Err(Fault::Unsupported(format!("compression {}", name(other)))),
        }
    }

    /// The payload as it goes to disk.
    pub(crate) fn compress(self, plain: &[u8]) -> Vec<u8> {
        match self {
            Codec::None => plain.to_vec(),
            Codec::Gz => base::compression::gzip_compress(plain),
        }
    }

    /// The payload of `stored`, which the header says has `plain_len` bytes. Allocates no more than that.
    pub(crate) fn decompress(self, stored: &[u8], plain_len: usize) -> Parsed<Vec<u8>> {
        if !is_possible(stored.len(), plain_len) {
            return Err(Fault::Damaged("block claims to decompress to more than is possible"));
        }
        match self {
            Codec::None if stored.len() == plain_len => Ok(stored.to_vec()),
            Codec::None => Err(Fault::Damaged("lengths of an uncompressed block differ")),
            Codec::Gz => base::compression::gzip_decompress(stored, Some(plain_len), plain_len)
                .map_err(|_| Fault::Damaged("block does not decompress")),
        }
    }
}

/// Whether `stored_len` bytes may become `plain_len`: no more than that is ever allocated for them.
pub(crate) fn is_possible(stored_len: usize, plain_len: usize) -> bool {
    plain_len <= PLAIN_LEN_MAX && plain_len <= stored_len.saturating_mul(RATIO_MAX) + RATIO_SLACK
}

/// The compression of an ordinal in a trailer.
pub(crate) fn compression_of(ordinal: u32) -> Parsed<Compression> {
    Ok(match ordinal {
        0 => Compression::Lzo,
        1 => Compression::Gz,
        2 => Compression::None,
        3 => Compression::Snappy,
        4 => Compression::Lz4,
        5 => Compression::Bzip2,
        6 => Compression::Zstd,
        7 => Compression::Lzma,
        8 => Compression::Brotli,
        _ => return Err(Fault::Damaged("trailer names an unknown codec")),
    })
}

/// HBase's name of a codec.
fn name(compression: Compression) -> &'static str {
    match compression {
        Compression::Lzo => "LZO",
        Compression::Gz => "GZ",
        Compression::None => "NONE",
        Compression::Snappy => "SNAPPY",
        Compression::Lz4 => "LZ4",
        Compression::Bzip2 => "BZIP2",
        Compression::Zstd => "ZSTD",
        Compression::Lzma => "LZMA",
        Compression::Brotli => "BROTLI",
    }
}
