//! The codecs of files and cell blocks; so far gzip, HBase's `GZ`.
//!
//! Invariant: a decompressor never gives, and never makes room for, more than the limit it was called with, whatever
//! the input says.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

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

const GZIP: &str = "gzip";
// Room made at first when the length is not known; the rest grows with what really comes out.
const FIRST_ROOM_MAX: usize = 256 * 1024;

/// `input` as one gzip member, at zlib's usual level (HBase's default for GZ).
pub fn gzip_compress(input: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(input.len() / 2 + 64), Compression::default());
    encoder.write_all(input).expect("writing to memory cannot fail");
    encoder.finish().expect("writing to memory cannot fail")
}

/// Expands gzip members that follow one another to the end of `input`.
///
/// `expected_len`, where the surroundings tell it, must be met exactly.
///
/// # Errors
/// [`Error::TooLarge`] before more than `limit` bytes are made; [`Error::WrongLength`]; [`Error::Malformed`].
pub fn gzip_decompress(input: &[u8], expected_len: Option<usize>, limit: usize) -> Result<Vec<u8>, Error> {
    let wanted = expected_len.unwrap_or(limit);
    if wanted > limit {
        return Err(Error::TooLarge { codec: GZIP, limit });
    }
    // A stated length is foreign too: deflate expands at most about 1032 times, so less input cannot fill more room.
    let room = wanted.min(input.len().saturating_mul(1032)).min(match expected_len {
        Some(len) => len,
        None => FIRST_ROOM_MAX,
    });
    let mut output = Vec::with_capacity(room);
    // One byte more than wanted tells a stream that is too long from one that ends right there.
    let mut decoder = MultiGzDecoder::new(input).take(wanted as u64 + 1);
    decoder
        .read_to_end(&mut output)
        .map_err(|error| Error::Malformed { codec: GZIP, what: error.to_string() })?;
    match expected_len {
        Some(expected) if output.len() != expected => Err(Error::WrongLength { codec: GZIP, expected }),
        None if output.len() > limit => Err(Error::TooLarge { codec: GZIP, limit }),
        _ => Ok(output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Vec<u8> {
        (0..20_000u32).flat_map(|i| format!("row{:06};", i * 7 % 1000).into_bytes()).collect()
    }

    #[test]
    fn what_goes_in_comes_out() {
        for plain in [vec![], b"a".to_vec(), text()] {
            let packed = gzip_compress(&plain);
            assert_eq!(gzip_decompress(&packed, Some(plain.len()), 1 << 20).unwrap(), plain);
            assert_eq!(gzip_decompress(&packed, None, 1 << 20).unwrap(), plain);
        }
    }

    #[test]
    fn members_follow_one_another() {
        let packed = [gzip_compress(b"first "), gzip_compress(b"second")].concat();
        assert_eq!(gzip_decompress(&packed, None, 100).unwrap(), b"first second");
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let packed = gzip_compress(&vec![0; 50 << 20]);
        let limit = 1 << 20;
        assert_eq!(gzip_decompress(&packed, None, limit), Err(Error::TooLarge { codec: GZIP, limit }));
        let expected = limit;
        assert_eq!(
            gzip_decompress(&packed, Some(expected), limit),
            Err(Error::WrongLength { codec: GZIP, expected })
        );
        assert_eq!(
            gzip_decompress(&packed, Some(limit + 1), limit),
            Err(Error::TooLarge { codec: GZIP, limit })
        );
    }

    #[test]
    fn a_stated_length_does_not_make_room_by_itself() {
        let output = gzip_decompress(&gzip_compress(b"x"), Some(1 << 40), usize::MAX);
        assert_eq!(output, Err(Error::WrongLength { codec: GZIP, expected: 1 << 40 }));
    }

    #[test]
    fn cut_and_flipped_streams_are_errors() {
        let plain = text();
        let packed = gzip_compress(&plain);
        for cut in 0..packed.len().min(300) {
            assert!(gzip_decompress(&packed[..cut], Some(plain.len()), 1 << 20).is_err(), "cut at {cut}");
        }
        for at in (0..packed.len()).step_by(7) {
            let mut flipped = packed.clone();
            flipped[at] ^= 0x10;
            // Header fields without effect (time, system) may change; then the content is still the same.
            if let Ok(output) = gzip_decompress(&flipped, Some(plain.len()), 1 << 20) {
                assert_eq!(output, plain, "flip at {at}");
            }
        }
    }
}
