//! The codecs of files and cell blocks, in the stream formats that Hadoop's codecs of the same names write.
//!
//! [`Algorithm::Gzip`], [`Algorithm::Zlib`] and [`Algorithm::Zstd`] are the streams of those libraries as they are;
//! [`Algorithm::Snappy`] and [`Algorithm::Lz4`] are raw blocks within Hadoop's own framing ([`hadoop`]).
//!
//! Invariant: a decompressor never gives, and never makes room for, more than the limit it was called with, whatever
//! the input says; and what a codec cannot gain from the bytes that are there is refused before room is made for it.

mod deflate;
mod expansion;
mod hadoop;
mod lz4;
mod snappy;
#[cfg(test)]
mod tests;
mod zstd;

pub use expansion::Expansion;

/// Why compressed bytes could not be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes are no such stream, are cut short, or fail the stream's own check.
    #[error("not a sound {codec} stream: {what}")]
    Malformed {
        /// Name of the codec.
        codec: &'static str,
        /// What was found.
        what: String,
    },
    /// The stream holds another number of bytes than its surroundings say.
    #[error("{codec} stream does not hold {expected} bytes")]
    WrongLength {
        /// Name of the codec.
        codec: &'static str,
        /// Bytes there should be.
        expected: usize,
    },
    /// The stream holds more than the caller allows.
    #[error("{codec} stream holds more than {limit} bytes")]
    TooLarge {
        /// Name of the codec.
        codec: &'static str,
        /// Bytes allowed.
        limit: usize,
    },
}

/// A way to compress bytes.
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
    /// One Zstandard frame (`ZStandardCodec`). Frames within Hadoop's framing, which HBase's own codecs write, are read.
    Zstd,
}

/// Short streams may gain more than the ratio says: a codec's frame for nothing counts as well.
const RATIO_SLACK: usize = 64 << 10;
/// Room made at first when the length is not known; the rest grows with what really comes out.
const FIRST_ROOM_MAX: usize = 256 << 10;

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 5] =
        [Algorithm::Gzip, Algorithm::Zlib, Algorithm::Snappy, Algorithm::Lz4, Algorithm::Zstd];

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Gzip => deflate::GZIP,
            Algorithm::Zlib => deflate::ZLIB,
            Algorithm::Snappy => snappy::NAME,
            Algorithm::Lz4 => lz4::NAME,
            Algorithm::Zstd => zstd::NAME,
        }
    }

    /// How many bytes one byte of a stream can become at most; what claims more is a lie.
    pub fn ratio_max(self) -> usize {
        match self {
            Algorithm::Gzip | Algorithm::Zlib => deflate::RATIO_MAX,
            Algorithm::Snappy => snappy::RATIO_MAX,
            Algorithm::Lz4 => lz4::RATIO_MAX,
            Algorithm::Zstd => zstd::RATIO_MAX,
        }
    }

    /// Whether `stored_len` bytes may become `plain_len`.
    pub fn is_possible(self, stored_len: usize, plain_len: usize) -> bool {
        plain_len <= stored_len.saturating_mul(self.ratio_max()).saturating_add(RATIO_SLACK)
    }

    /// `input` as a stream, at the level that HBase uses by default.
    pub fn compress(self, input: &[u8]) -> Vec<u8> {
        match self {
            Algorithm::Gzip => deflate::gzip(input),
            Algorithm::Zlib => deflate::zlib(input),
            Algorithm::Snappy => hadoop::frame(input, snappy::CHUNK_LEN, snappy::compress_block),
            Algorithm::Lz4 => hadoop::frame(input, lz4::CHUNK_LEN, lz4::compress_block),
            Algorithm::Zstd => zstd::compress(input),
        }
    }

    /// Expands a stream that fills `input`.
    ///
    /// `expected_len`, where the surroundings tell it, must be met exactly.
    ///
    /// # Errors
    /// [`Error::TooLarge`] before more than `limit` bytes are made; [`Error::WrongLength`]; [`Error::Malformed`].
    pub fn decompress(
        self,
        input: &[u8],
        expected_len: Option<usize>,
        limit: usize,
    ) -> Result<Vec<u8>, Error> {
        let wanted = Wanted { codec: self.name(), expected_len, limit };
        if expected_len.is_some_and(|len| len > limit) {
            return Err(Error::TooLarge { codec: self.name(), limit });
        }
        if let Some(expected) = expected_len.filter(|len| !self.is_possible(input.len(), *len)) {
            return Err(Error::WrongLength { codec: self.name(), expected });
        }
        match self {
            Algorithm::Gzip => deflate::gunzip(input, wanted),
            Algorithm::Zlib => deflate::inflate(input, wanted),
            Algorithm::Snappy => hadoop::unframe(input, wanted, snappy::RATIO_MAX, snappy::decompress_block),
            Algorithm::Lz4 => hadoop::unframe(input, wanted, lz4::RATIO_MAX, lz4::decompress_block),
            Algorithm::Zstd => zstd::decompress(input, wanted),
        }
    }
}

/// How much a stream may hold, and what to say if it holds something else.
#[derive(Clone, Copy)]
struct Wanted {
    codec: &'static str,
    // Not above the limit, and possible for the input.
    expected_len: Option<usize>,
    limit: usize,
}

impl Wanted {
    /// Bytes at which the stream must have ended.
    fn len_max(&self) -> usize {
        self.expected_len.unwrap_or(self.limit)
    }

    /// Room to make at first.
    fn first_room(&self) -> usize {
        self.expected_len.unwrap_or_else(|| self.limit.min(FIRST_ROOM_MAX))
    }

    /// The output, if it is as long as it should be.
    fn check(&self, output: Vec<u8>) -> Result<Vec<u8>, Error> {
        match self.expected_len {
            Some(expected) if output.len() != expected => {
                Err(Error::WrongLength { codec: self.codec, expected })
            }
            None if output.len() > self.limit => Err(self.too_much()),
            _ => Ok(output),
        }
    }

    /// The stream goes on behind what it may hold.
    fn too_much(&self) -> Error {
        match self.expected_len {
            Some(expected) => Error::WrongLength { codec: self.codec, expected },
            None => Error::TooLarge { codec: self.codec, limit: self.limit },
        }
    }

    fn malformed(&self, what: impl Into<String>) -> Error {
        Error::Malformed { codec: self.codec, what: what.into() }
    }
}
