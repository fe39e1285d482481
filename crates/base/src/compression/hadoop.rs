//! Hadoop's framing around codecs that know only whole blocks.
//!
//! ```text
//! stream: frame*        frame: u32 plain length | chunk*        chunk: u32 length | block
//! ```
//!
//! Big-endian. The chunks of a frame together expand to its plain length. A writer has a buffer, so it gives at most a
//! buffer's worth to a chunk; a frame holds what was written at once, however many chunks that takes.
//!
//! Source: Hadoop `BlockCompressorStream`, `BlockDecompressorStream`.

use super::{Error, FIRST_ROOM_MAX, RATIO_SLACK, Wanted};

/// Bytes of the codec's buffer (`io.compression.codec.snappy.buffersize`, `…lz4.buffersize`).
pub(super) const BUFFER_LEN: usize = 256 << 10;
/// Bytes of a length.
const LENGTH_LEN: usize = size_of::<u32>();

/// `input` as Hadoop's stream writes it when it is given all at once. What does not fit a chunk ends with an empty frame.
pub(super) fn frame(input: &[u8], chunk_len: usize, compress_block: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::with_capacity(input.len() / 2 + 64);
    put_len(&mut out, input.len());
    for chunk in input.chunks(chunk_len) {
        let block = compress_block(chunk);
        put_len(&mut out, block.len());
        out.extend_from_slice(&block);
    }
    if input.len() > chunk_len {
        put_len(&mut out, 0);
    }
    out
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    let len = u32::try_from(len).expect("blocks of files and answers are far below 4 GiB");
    out.extend_from_slice(&len.to_be_bytes());
}

/// Expands frames that follow one another to the end of `input`.
///
/// `decompress_block` expands a block into the start of the room it is given, which is all that the frame still lacks,
/// and tells how much it made.
pub(super) fn unframe(
    mut input: &[u8],
    wanted: Wanted,
    ratio_max: usize,
    decompress_block: impl Fn(&[u8], &mut [u8]) -> Result<usize, String>,
) -> Result<Vec<u8>, Error> {
    let mut output = Vec::with_capacity(wanted.first_room().min(FIRST_ROOM_MAX));
    while !input.is_empty() {
        let plain_len = take_len(&mut input, wanted)?;
        if plain_len > wanted.len_max() - output.len() {
            return Err(wanted.too_much());
        }
        if plain_len > input.len().saturating_mul(ratio_max).saturating_add(RATIO_SLACK) {
            return Err(wanted.malformed("a frame claims more than is possible"));
        }
        let mut at = output.len();
        let end = at + plain_len;
        output.resize(end, 0);
        while at < end {
            let len = take_len(&mut input, wanted)?;
            let block = input.split_off(..len).ok_or_else(|| wanted.malformed("a chunk is cut"))?;
            at += decompress_block(block, &mut output[at..]).map_err(|what| wanted.malformed(what))?;
        }
    }
    wanted.check(output)
}

fn take_len(input: &mut &[u8], wanted: Wanted) -> Result<usize, Error> {
    let len = input.split_off(..LENGTH_LEN).ok_or_else(|| wanted.malformed("a length is cut"))?;
    Ok(u32::from_be_bytes(len.try_into().expect("as many bytes were taken")) as usize)
}
