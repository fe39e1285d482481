//! Zstandard, in both forms that HBase can write: plain frames (Hadoop's `ZStandardCodec`, the
//! default of `hbase.io.compress.zstd.codec`), or frames as blocks of Hadoop's framing (HBase's own
//! `ZstdCodec`).
//!
//! This module writes plain frames and reads both forms. It detects the form by the magic number at
//! the start of a frame.

use std::io::Read;

use super::{Error, LengthLimit, hadoop};

pub(super) const NAME: &str = "zstd";
/// A block of at most 128 KiB may be one repeated byte, which takes four bytes.
pub(super) const RATIO_MAX: usize = (128 << 10) / 4;

/// Source: Hadoop `IO_COMPRESSION_CODEC_ZSTD_LEVEL_DEFAULT`.
const LEVEL: i32 = 3;
/// Window limit for streams of unknown length: 8 MiB, more than all but the "ultra" levels use.
pub(super) const WINDOW_LOG_MAX: u32 = 23;
const MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
/// Offset of a frame's magic in Hadoop's framing: after the lengths of frame and chunk.
const FRAMED_AT: usize = 8;

pub(super) fn compress(input: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(input, LEVEL).expect("the output buffer has the size of the compression bound")
}

pub(super) fn decompress(input: &[u8], length: LengthLimit) -> Result<Vec<u8>, Error> {
    if is_framed(input) {
        return hadoop::unframe(input, length, RATIO_MAX, decompress_block);
    }
    match length.expected_len {
        Some(len) => whole(input, len, length),
        None => streamed(input, length),
    }
}

/// Whether a stream has Hadoop's framing.
pub(super) fn is_framed(input: &[u8]) -> bool {
    !input.starts_with(&MAGIC)
        && (input.get(FRAMED_AT..).is_some_and(|rest| rest.starts_with(&MAGIC)) || input == [0; 4])
}

/// Expands frames of known length directly into the output, without window memory.
fn whole(input: &[u8], len: usize, length: LengthLimit) -> Result<Vec<u8>, Error> {
    let mut output = vec![0; len];
    let made = decompress_block(input, &mut output).map_err(|what| length.malformed(what))?;
    output.truncate(made);
    length.check(output)
}

fn streamed(input: &[u8], length: LengthLimit) -> Result<Vec<u8>, Error> {
    let failed = |error: std::io::Error| length.malformed(error.to_string());
    let mut decoder = zstd::stream::read::Decoder::with_buffer(input).map_err(failed)?;
    decoder.window_log_max(WINDOW_LOG_MAX).map_err(failed)?;
    let mut output = Vec::with_capacity(length.first_capacity());
    // One byte above the limit distinguishes a stream that is too long from one that ends there.
    decoder.take((length.len_max() as u64).saturating_add(1)).read_to_end(&mut output).map_err(failed)?;
    length.check(output)
}

pub(super) fn decompress_block(block: &[u8], room: &mut [u8]) -> Result<usize, String> {
    zstd::bulk::decompress_to_buffer(block, room).map_err(|error| error.to_string())
}
