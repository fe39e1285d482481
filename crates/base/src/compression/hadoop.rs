//! Hadoop's framing around codecs that handle only whole blocks.
//!
//! ```text
//! stream: frame*        frame: u32 plain length | chunk*        chunk: u32 length | block
//! ```
//!
//! Big-endian. The chunks of a frame together expand to its plain length. A writer puts at most one
//! buffer of plain bytes into a chunk. A frame holds the bytes of one write call, in as many chunks
//! as needed.
//!
//! Source: Hadoop `BlockCompressorStream`, `BlockDecompressorStream`.

use super::{Error, FIRST_CAPACITY_MAX, LengthLimit, RATIO_SLACK};

/// Bytes of the codec's buffer (`io.compression.codec.snappy.buffersize`, `…lz4.buffersize`).
pub(super) const BUFFER_LEN: usize = 256 << 10;
/// Bytes of a length field.
const LENGTH_LEN: usize = size_of::<u32>();

/// `input` as Hadoop's stream writes it in one write call. An input of several chunks ends with an
/// empty frame.
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
    let len = u32::try_from(len).expect("file blocks and responses are far below 4 GiB");
    out.extend_from_slice(&len.to_be_bytes());
}

/// Expands consecutive frames that occupy all of `input`.
///
/// `decompress_block` expands a block into the start of its output slice, which is the missing part
/// of the frame. It returns the number of bytes it produced.
pub(super) fn unframe(
    mut input: &[u8],
    length: LengthLimit,
    ratio_max: usize,
    decompress_block: impl Fn(&[u8], &mut [u8]) -> Result<usize, String>,
) -> Result<Vec<u8>, Error> {
    let mut output = Vec::with_capacity(length.first_capacity().min(FIRST_CAPACITY_MAX));
    while !input.is_empty() {
        let plain_len = take_len(&mut input, length)?;
        if plain_len > length.len_max() - output.len() {
            return Err(length.too_long());
        }
        if plain_len > input.len().saturating_mul(ratio_max).saturating_add(RATIO_SLACK) {
            return Err(length.malformed("impossible frame length"));
        }
        let mut at = output.len();
        let end = at + plain_len;
        output.resize(end, 0);
        while at < end {
            let len = take_len(&mut input, length)?;
            let block = input.split_off(..len).ok_or_else(|| length.malformed("truncated chunk"))?;
            at += decompress_block(block, &mut output[at..]).map_err(|what| length.malformed(what))?;
        }
        debug_assert_eq!(at, end, "a block is expanded within its frame");
    }
    length.check(output)
}

fn take_len(input: &mut &[u8], length: LengthLimit) -> Result<usize, Error> {
    let len = input.split_off(..LENGTH_LEN).ok_or_else(|| length.malformed("truncated length"))?;
    Ok(u32::from_be_bytes(len.try_into().expect("the slice has LENGTH_LEN bytes")) as usize)
}
