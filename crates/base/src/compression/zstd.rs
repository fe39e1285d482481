//! Zstandard, in both forms that HBase may be set to write: frames as they are (Hadoop's `ZStandardCodec`, the default
//! of `hbase.io.compress.zstd.codec`), or frames as blocks of Hadoop's framing (HBase's own `ZstdCodec`).
//!
//! The first is written. A frame starts with a magic number, so it is seen which form a stream has.

use std::io::Read;

use super::{Error, Wanted, hadoop};

pub(super) const NAME: &str = "zstd";
/// A block of at most 128 KiB may be one byte repeated, which takes four bytes.
pub(super) const RATIO_MAX: usize = (128 << 10) / 4;

/// Source: Hadoop `IO_COMPRESSION_CODEC_ZSTD_LEVEL_DEFAULT`.
const LEVEL: i32 = 3;
/// The memory for what a stream of unknown length looks back at: 8 MiB, more than all but the "ultra" levels use.
pub(super) const WINDOW_LOG_MAX: u32 = 23;
const MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
/// Where a frame's magic is in Hadoop's framing: behind the lengths of frame and chunk.
const FRAMED_AT: usize = 8;

pub(super) fn compress(input: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(input, LEVEL).expect("the bound of the output is what room is made for")
}

pub(super) fn decompress(input: &[u8], wanted: Wanted) -> Result<Vec<u8>, Error> {
    if is_framed(input) {
        return hadoop::unframe(input, wanted, RATIO_MAX, decompress_block);
    }
    match wanted.expected_len {
        Some(len) => whole(input, len, wanted),
        None => streamed(input, wanted),
    }
}

/// Whether a stream has Hadoop's framing.
pub(super) fn is_framed(input: &[u8]) -> bool {
    !input.starts_with(&MAGIC)
        && (input.get(FRAMED_AT..).is_some_and(|rest| rest.starts_with(&MAGIC)) || input == [0; 4])
}

/// Frames of a length that is known: expanded into place, without any memory for what they look back at.
fn whole(input: &[u8], len: usize, wanted: Wanted) -> Result<Vec<u8>, Error> {
    let mut output = vec![0; len];
    let made = decompress_block(input, &mut output).map_err(|what| wanted.malformed(what))?;
    output.truncate(made);
    wanted.check(output)
}

fn streamed(input: &[u8], wanted: Wanted) -> Result<Vec<u8>, Error> {
    let failed = |error: std::io::Error| wanted.malformed(error.to_string());
    let mut decoder = zstd::stream::read::Decoder::with_buffer(input).map_err(failed)?;
    decoder.window_log_max(WINDOW_LOG_MAX).map_err(failed)?;
    let mut output = Vec::with_capacity(wanted.first_room());
    // One byte more than wanted tells a stream that is too long from one that ends right there.
    decoder.take((wanted.len_max() as u64).saturating_add(1)).read_to_end(&mut output).map_err(failed)?;
    wanted.check(output)
}

pub(super) fn decompress_block(block: &[u8], room: &mut [u8]) -> Result<usize, String> {
    zstd::bulk::decompress_to_buffer(block, room).map_err(|error| error.to_string())
}
