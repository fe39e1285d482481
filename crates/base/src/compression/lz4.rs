//! LZ4: raw blocks without a length header.

use super::hadoop::BUFFER_LEN;

pub(super) const NAME: &str = "lz4";
/// One length byte adds at most 255 bytes.
pub(super) const RATIO_MAX: usize = 255;
/// Most plain bytes of a chunk: even incompressible data of this size fits Hadoop's buffer
/// (`Lz4Codec`).
pub(super) const CHUNK_LEN: usize = BUFFER_LEN - (BUFFER_LEN / 255 + 16);

pub(super) fn compress_block(plain: &[u8]) -> Vec<u8> {
    lz4_flex::block::compress(plain)
}

pub(super) fn decompress_block(block: &[u8], room: &mut [u8]) -> Result<usize, String> {
    lz4_flex::block::decompress_into(block, room).map_err(|error| error.to_string())
}
