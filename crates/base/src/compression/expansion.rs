//! A stream that is expanded step by step, so that its reader can yield, and admit memory, between two steps.
//!
//! Invariant: a step adds little more than the bytes it was told, and the output never exceeds the limit by more than one
//! byte. Streams with Hadoop's framing are expanded a chunk at a time; a chunk above [`CHUNK_MAX`] is refused, because
//! Hadoop's own buffers hold 256 KiB.

use std::io::{BufRead, Read};

use bytes::{Buf, Bytes, buf::Reader};
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};

use super::hadoop::BUFFER_LEN;
use super::{Algorithm, Error, RATIO_SLACK, Wanted, lz4, snappy, zstd};

/// Plain bytes of one chunk within Hadoop's framing.
const CHUNK_MAX: usize = 4 << 20;

type ZstdDecoder = ::zstd::stream::read::Decoder<'static, Reader<Bytes>>;

/// A stream of unknown length that is being expanded.
pub struct Expansion {
    wanted: Wanted,
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

/// Hadoop's framing: what is left of the input, and of the frame that was begun.
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
    /// [`Error::Malformed`] if the stream's head is invalid.
    pub fn new(
        algorithm: Algorithm,
        input: Bytes,
        limit: usize,
        step_bytes: usize,
    ) -> Result<Expansion, Error> {
        let wanted = Wanted { codec: algorithm.name(), expected_len: None, limit };
        let source = match algorithm {
            Algorithm::Gzip => Source::Gzip(MultiGzDecoder::new(input.reader())),
            Algorithm::Zlib => Source::Zlib(ZlibDecoder::new(input.reader())),
            Algorithm::Snappy => framed(input, snappy::RATIO_MAX, snappy::decompress_block),
            Algorithm::Lz4 => framed(input, lz4::RATIO_MAX, lz4::decompress_block),
            Algorithm::Zstd if zstd::is_framed(&input) => {
                framed(input, zstd::RATIO_MAX, zstd::decompress_block)
            }
            Algorithm::Zstd => {
                let failed = |error: std::io::Error| wanted.malformed(error.to_string());
                let mut decoder = ZstdDecoder::with_buffer(input.reader()).map_err(failed)?;
                decoder.window_log_max(zstd::WINDOW_LOG_MAX).map_err(failed)?;
                Source::Zstd(decoder)
            }
        };
        Ok(Expansion { wanted, step_bytes, output: Vec::new(), source })
    }

    /// Expands a little more; `true` once the stream has ended.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the stream holds more than the limit; [`Error::Malformed`].
    pub fn step(&mut self) -> Result<bool, Error> {
        let Expansion { wanted, step_bytes, output, source } = self;
        let ended = match source {
            Source::Gzip(decoder) => read(decoder, *step_bytes, output, *wanted)?,
            Source::Zstd(decoder) => read(decoder, *step_bytes, output, *wanted)?,
            Source::Zlib(decoder) => {
                let ended = read(decoder, *step_bytes, output, *wanted)?;
                if ended && !matches!(decoder.get_mut().fill_buf(), Ok([])) {
                    return Err(wanted.malformed("bytes behind its end"));
                }
                ended
            }
            Source::Framed(framed) => framed.step(output, *wanted)?,
        };
        if output.len() > wanted.limit {
            return Err(wanted.too_much());
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

/// Reads at most `bytes`; whether the stream has ended.
fn read(decoder: &mut impl Read, bytes: usize, output: &mut Vec<u8>, wanted: Wanted) -> Result<bool, Error> {
    // One byte above the limit distinguishes a stream that is too long from one that ends there.
    let bytes = bytes.min((wanted.limit - output.len()).saturating_add(1));
    output.reserve(bytes);
    let read = decoder.take(bytes as u64).read_to_end(output);
    let read = read.map_err(|error| wanted.malformed(error.to_string()))?;
    Ok(read < bytes)
}

impl Framed {
    fn step(&mut self, output: &mut Vec<u8>, wanted: Wanted) -> Result<bool, Error> {
        if self.frame_left == 0 {
            if self.input.is_empty() {
                return Ok(true);
            }
            let len = self.take_len(wanted)?;
            if len > wanted.limit - output.len() {
                return Err(wanted.too_much());
            }
            if len > self.input.len().saturating_mul(self.ratio_max).saturating_add(RATIO_SLACK) {
                return Err(wanted.malformed("a frame claims more than is possible"));
            }
            self.frame_left = len;
            if len == 0 {
                return Ok(self.input.is_empty());
            }
        }
        let block_len = self.take_len(wanted)?;
        if block_len > self.input.len() {
            return Err(wanted.malformed("a chunk is cut"));
        }
        let block = self.input.split_to(block_len);
        let at = output.len();
        // Hadoop's writers fill at most one buffer per chunk; only other writers' chunks need more room.
        let rooms = [BUFFER_LEN, CHUNK_MAX].map(|room| self.frame_left.min(room));
        let mut expand_into = |room: usize| {
            output.resize(at + room, 0);
            (self.decompress_block)(&block, &mut output[at..])
        };
        let made = match expand_into(rooms[0]) {
            Err(_) if rooms[1] > rooms[0] => expand_into(rooms[1]),
            made => made,
        };
        let made = made.map_err(|what| wanted.malformed(what))?;
        output.truncate(at + made);
        self.frame_left -= made;
        Ok(self.frame_left == 0 && self.input.is_empty())
    }

    fn take_len(&mut self, wanted: Wanted) -> Result<usize, Error> {
        match self.input.len() >= size_of::<u32>() {
            true => Ok(self.input.get_u32() as usize),
            false => Err(wanted.malformed("a length is cut")),
        }
    }
}
