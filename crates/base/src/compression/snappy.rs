//! Snappy: raw blocks that start with their plain length.

use super::hadoop::BUFFER_LEN;

pub(super) const NAME: &str = "snappy";
/// A copy element of three bytes repeats at most 64 bytes.
pub(super) const RATIO_MAX: usize = 64 / 3 + 1;
/// Most plain bytes of a chunk: even incompressible data of this size fits Hadoop's buffer
/// (`SnappyCodec`).
pub(super) const CHUNK_LEN: usize = BUFFER_LEN - (BUFFER_LEN / 6 + 32);

pub(super) fn compress_block(plain: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(plain).expect("a chunk is far below the 4 GiB of a block")
}

pub(super) fn decompress_block(block: &[u8], room: &mut [u8]) -> Result<usize, String> {
    let len = snap::raw::decompress_len(block).map_err(|error| error.to_string())?;
    let room = room.get_mut(..len).ok_or("block is longer than its frame")?;
    snap::raw::Decoder::new().decompress(block, room).map_err(|error| error.to_string())
}
