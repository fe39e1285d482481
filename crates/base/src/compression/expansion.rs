//! Incremental decompression, so that the caller can yield and reserve memory between steps.
//!
//! Invariant: a step adds little more than the requested number of bytes, and the output never
//! exceeds the limit by more than one byte. Streams with Hadoop's framing are expanded a chunk at a
//! time. A chunk above [`CHUNK_MAX`] is rejected, because Hadoop's own buffers hold 256 KiB.

use std::io::{BufRead, Read};

use bytes::{Buf, Bytes, buf::Reader};
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};

use super::hadoop::BUFFER_LEN;
use super::{Algorithm, Error, LengthLimit, RATIO_SLACK, lz4, snappy, zstd};

/// Most plain bytes of one chunk within Hadoop's framing.
const CHUNK_MAX: usize = 4 << 20;

type ZstdDecoder = ::zstd::stream::read::Decoder<'static, Reader<Bytes>>;

/// A stream of unknown length that is being expanded.
pub struct Expansion {
    length: LengthLimit,
    step_bytes: usize,
    output: Vec<u8>,
    source: Source,
}

enum Source {
    Gzip(MultiGzDecoder<Reader<Bytes>>),
    Zlib(ZlibDecoder<Reader<Bytes>>),
    Zstd(ZstdDecoder),
    Framed(Framed),
}

type DecompressBlock = fn(&[u8], &mut [u8]) -> Result<usize, String>;

/// Hadoop's framing: the remaining input, and the plain bytes missing from the current frame.
struct Framed {
    input: Bytes,
    frame_left: usize,
    ratio_max: usize,
    decompress_block: DecompressBlock,
}

impl Expansion {
    /// Begins to expand `input` to at most `limit` bytes, about `step_bytes` at a time.
    ///
    /// # Errors
    /// [`Error::Malformed`] if the stream's header is invalid.
    pub fn new(
        algorithm: Algorithm,
        input: Bytes,
        limit: usize,
        step_bytes: usize,
    ) -> Result<Expansion, Error> {
        let length = LengthLimit { codec: algorithm.name(), expected_len: None, limit };
        let source = match algorithm {
            Algorithm::Gzip => Source::Gzip(MultiGzDecoder::new(input.reader())),
            Algorithm::Zlib => Source::Zlib(ZlibDecoder::new(input.reader())),
            Algorithm::Snappy => framed(input, snappy::RATIO_MAX, snappy::decompress_block),
            Algorithm::Lz4 => framed(input, lz4::RATIO_MAX, lz4::decompress_block),
            Algorithm::Zstd if zstd::is_framed(&input) => {
                framed(input, zstd::RATIO_MAX, zstd::decompress_block)
            }
            Algorithm::Zstd => {
                let failed = |error: std::io::Error| length.malformed(error.to_string());
                let mut decoder = ZstdDecoder::with_buffer(input.reader()).map_err(failed)?;
                decoder.window_log_max(zstd::WINDOW_LOG_MAX).map_err(failed)?;
                Source::Zstd(decoder)
            }
        };
        Ok(Expansion { length, step_bytes, output: Vec::new(), source })
    }

    /// Expands about `step_bytes` more. Returns `true` once the stream has ended.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the stream holds more than the limit; [`Error::Malformed`].
    pub fn step(&mut self) -> Result<bool, Error> {
        let Expansion { length, step_bytes, output, source } = self;
        let ended = match source {
            Source::Gzip(decoder) => read(decoder, *step_bytes, output, *length)?,
            Source::Zstd(decoder) => read(decoder, *step_bytes, output, *length)?,
            Source::Zlib(decoder) => {
                let ended = read(decoder, *step_bytes, output, *length)?;
                if ended && !matches!(decoder.get_mut().fill_buf(), Ok([])) {
                    return Err(length.malformed("data after the end of the stream"));
                }
                ended
            }
            Source::Framed(framed) => framed.step(output, *length)?,
        };
        if output.len() > length.limit {
            return Err(length.too_long());
        }
        Ok(ended)
    }

    /// Bytes expanded so far.
    pub fn output_len(&self) -> usize {
        self.output.len()
    }

    /// The expanded bytes.
    pub fn into_output(self) -> Vec<u8> {
        self.output
    }
}

fn framed(input: Bytes, ratio_max: usize, decompress_block: DecompressBlock) -> Source {
    Source::Framed(Framed { input, frame_left: 0, ratio_max, decompress_block })
}

/// Reads at most `bytes`. Returns whether the stream has ended.
fn read(
    decoder: &mut impl Read,
    bytes: usize,
    output: &mut Vec<u8>,
    length: LengthLimit,
) -> Result<bool, Error> {
    // One byte above the limit distinguishes a stream that is too long from one that ends there.
    let bytes = bytes.min((length.limit - output.len()).saturating_add(1));
    output.reserve(bytes);
    let read = decoder.take(bytes as u64).read_to_end(output);
    let read = read.map_err(|error| length.malformed(error.to_string()))?;
    Ok(read < bytes)
}

impl Framed {
    fn step(&mut self, output: &mut Vec<u8>, length: LengthLimit) -> Result<bool, Error> {
        if self.frame_left == 0 {
            if self.input.is_empty() {
                return Ok(true);
            }
            let len = self.take_len(length)?;
            if len > length.limit - output.len() {
                return Err(length.too_long());
            }
            if len > self.input.len().saturating_mul(self.ratio_max).saturating_add(RATIO_SLACK) {
                return Err(length.malformed("impossible frame length"));
            }
            self.frame_left = len;
            if len == 0 {
                return Ok(self.input.is_empty());
            }
        }
        let block_len = self.take_len(length)?;
        if block_len > self.input.len() {
            return Err(length.malformed("truncated chunk"));
        }
        let block = self.input.split_to(block_len);
        let at = output.len();
        // Hadoop's writers fill at most one buffer per chunk; only chunks of other writers need
        // more.
        let rooms = [BUFFER_LEN, CHUNK_MAX].map(|room| self.frame_left.min(room));
        let mut expand_into = |room: usize| {
            output.resize(at + room, 0);
            (self.decompress_block)(&block, &mut output[at..])
        };
        let made = match expand_into(rooms[0]) {
            Err(_) if rooms[1] > rooms[0] => expand_into(rooms[1]),
            made => made,
        };
        let made = made.map_err(|what| length.malformed(what))?;
        output.truncate(at + made);
        self.frame_left -= made;
        Ok(self.frame_left == 0 && self.input.is_empty())
    }

    fn take_len(&mut self, length: LengthLimit) -> Result<usize, Error> {
        match self.input.len() >= size_of::<u32>() {
            true => Ok(self.input.get_u32() as usize),
            false => Err(length.malformed("truncated length")),
        }
    }
}
