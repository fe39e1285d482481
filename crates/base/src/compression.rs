//! The codecs of files and cell blocks, in the stream formats that Hadoop's codecs of the same
//! names write.
//!
//! [`Algorithm::Gzip`], [`Algorithm::Zlib`] and [`Algorithm::Zstd`] are the unmodified streams of
//! those libraries. [`Algorithm::Snappy`] and [`Algorithm::Lz4`] are raw blocks within Hadoop's own
//! framing ([`hadoop`]).
//!
//! Invariants: a decompressor never returns or allocates more than the limit of the call, whatever
//! the input claims. A length that the codec cannot produce from the input's size is rejected
//! before any allocation for it.

mod deflate;
mod expansion;
mod hadoop;
mod lz4;
mod snappy;
#[cfg(test)]
mod tests;
mod zstd;

pub use expansion::Expansion;

/// A decompression error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes are not a stream of this codec, are truncated, or fail the stream's own check.
    #[error("corrupt {codec} stream: {what}")]
    Malformed {
        /// Name of the codec.
        codec: &'static str,
        /// The defect.
        what: String,
    },
    /// The stream's plain length differs from the length that the caller expects.
    #[error("{codec} stream does not hold {expected} bytes")]
    WrongLength {
        /// Name of the codec.
        codec: &'static str,
        /// Expected plain bytes.
        expected: usize,
    },
    /// The stream holds more bytes than the caller allows.
    #[error("{codec} stream holds more than {limit} bytes")]
    TooLarge {
        /// Name of the codec.
        codec: &'static str,
        /// Bytes allowed.
        limit: usize,
    },
}

/// A compression codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// One gzip member (Hadoop: `GzipCodec`).
    Gzip,
    /// One zlib stream (Hadoop: `DefaultCodec`, `DeflateCodec`).
    Zlib,
    /// Raw Snappy blocks in Hadoop's framing (`SnappyCodec`).
    Snappy,
    /// Raw LZ4 blocks in Hadoop's framing (`Lz4Codec`).
    Lz4,
    /// One Zstandard frame (`ZStandardCodec`). Decompression also accepts frames within Hadoop's
    /// framing, as HBase's own codecs write.
    Zstd,
}

/// Slack above the ratio for short streams, whose fixed framing overhead distorts the ratio.
const RATIO_SLACK: usize = 64 << 10;
/// Bytes allocated initially when the length is unknown. After that, the output grows with the
/// actual data.
const FIRST_CAPACITY_MAX: usize = 256 << 10;

impl Algorithm {
    /// All codecs.
    pub const ALL: [Algorithm; 5] =
        [Algorithm::Gzip, Algorithm::Zlib, Algorithm::Snappy, Algorithm::Lz4, Algorithm::Zstd];

    /// The codec's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Gzip => deflate::GZIP,
            Algorithm::Zlib => deflate::ZLIB,
            Algorithm::Snappy => snappy::NAME,
            Algorithm::Lz4 => lz4::NAME,
            Algorithm::Zstd => zstd::NAME,
        }
    }

    /// The most plain bytes that one stored byte can produce. A stream that claims more is corrupt.
    pub fn ratio_max(self) -> usize {
        match self {
            Algorithm::Gzip | Algorithm::Zlib => deflate::RATIO_MAX,
            Algorithm::Snappy => snappy::RATIO_MAX,
            Algorithm::Lz4 => lz4::RATIO_MAX,
            Algorithm::Zstd => zstd::RATIO_MAX,
        }
    }

    /// Whether `stored_len` bytes can expand to `plain_len`.
    pub fn is_possible(self, stored_len: usize, plain_len: usize) -> bool {
        plain_len <= stored_len.saturating_mul(self.ratio_max()).saturating_add(RATIO_SLACK)
    }

    /// Compresses `input` at HBase's default level.
    pub fn compress(self, input: &[u8]) -> Vec<u8> {
        match self {
            Algorithm::Gzip => deflate::gzip(input),
            Algorithm::Zlib => deflate::zlib(input),
            Algorithm::Snappy => hadoop::frame(input, snappy::CHUNK_LEN, snappy::compress_block),
            Algorithm::Lz4 => hadoop::frame(input, lz4::CHUNK_LEN, lz4::compress_block),
            Algorithm::Zstd => zstd::compress(input),
        }
    }

    /// Expands a stream that occupies all of `input`.
    ///
    /// If `expected_len` is given, the output must have exactly that length.
    ///
    /// # Errors
    /// [`Error::TooLarge`] before more than `limit` bytes are produced; [`Error::WrongLength`];
    /// [`Error::Malformed`].
    pub fn decompress(
        self,
        input: &[u8],
        expected_len: Option<usize>,
        limit: usize,
    ) -> Result<Vec<u8>, Error> {
        let length = LengthLimit { codec: self.name(), expected_len, limit };
        if expected_len.is_some_and(|len| len > limit) {
            return Err(Error::TooLarge { codec: self.name(), limit });
        }
        if let Some(expected) = expected_len.filter(|len| !self.is_possible(input.len(), *len)) {
            return Err(Error::WrongLength { codec: self.name(), expected });
        }
        match self {
            Algorithm::Gzip => deflate::gunzip(input, length),
            Algorithm::Zlib => deflate::inflate(input, length),
            Algorithm::Snappy => hadoop::unframe(input, length, snappy::RATIO_MAX, snappy::decompress_block),
            Algorithm::Lz4 => hadoop::unframe(input, length, lz4::RATIO_MAX, lz4::decompress_block),
            Algorithm::Zstd => zstd::decompress(input, length),
        }
    }
}

/// The allowed length of a stream, and the errors for other lengths.
#[derive(Clone, Copy)]
struct LengthLimit {
    codec: &'static str,
    // At most the limit, and possible for the input.
    expected_len: Option<usize>,
    limit: usize,
}

impl LengthLimit {
    /// The length by which the stream must have ended.
    fn len_max(&self) -> usize {
        self.expected_len.unwrap_or(self.limit)
    }

    /// Bytes to allocate initially.
    fn first_capacity(&self) -> usize {
        self.expected_len.unwrap_or_else(|| self.limit.min(FIRST_CAPACITY_MAX))
    }

    /// Returns the output if its length is allowed.
    fn check(&self, output: Vec<u8>) -> Result<Vec<u8>, Error> {
        match self.expected_len {
            Some(expected) if output.len() != expected => {
                Err(Error::WrongLength { codec: self.codec, expected })
            }
            None if output.len() > self.limit => Err(self.too_long()),
            _ => Ok(output),
        }
    }

    /// The error for a stream that exceeds its allowed length.
    fn too_long(&self) -> Error {
        match self.expected_len {
            Some(expected) => Error::WrongLength { codec: self.codec, expected },
            None => Error::TooLarge { codec: self.codec, limit: self.limit },
        }
    }

    fn malformed(&self, what: impl Into<String>) -> Error {
        Error::Malformed { codec: self.codec, what: what.into() }
    }
}
