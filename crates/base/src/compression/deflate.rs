//! Deflate, as gzip and as zlib streams.

use std::io::{BufRead, Read, Write};

use flate2::Compression;
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};

use super::{Error, Wanted};

pub(super) const GZIP: &str = "gzip";
pub(super) const ZLIB: &str = "zlib";
/// Deflate repeats at most 258 bytes for two bits.
pub(super) const RATIO_MAX: usize = 1032;

/// One gzip member, at zlib's usual level (HBase's default for GZ).
pub(super) fn gzip(input: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(input.len() / 2 + 64), Compression::default());
    encoder.write_all(input).expect("writing to memory cannot fail");
    encoder.finish().expect("writing to memory cannot fail")
}

/// One zlib stream.
pub(super) fn zlib(input: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::with_capacity(input.len() / 2 + 64), Compression::default());
    encoder.write_all(input).expect("writing to memory cannot fail");
    encoder.finish().expect("writing to memory cannot fail")
}

/// Expands gzip members that follow one another to the end of `input`.
pub(super) fn gunzip(input: &[u8], wanted: Wanted) -> Result<Vec<u8>, Error> {
    read(MultiGzDecoder::new(input), wanted).map(|(output, _)| output)
}

/// Expands a zlib stream, which must end where `input` does.
pub(super) fn inflate(input: &[u8], wanted: Wanted) -> Result<Vec<u8>, Error> {
    let (output, mut decoder) = read(ZlibDecoder::new(input), wanted)?;
    match decoder.get_mut().fill_buf() {
        Ok([]) => Ok(output),
        _ => Err(wanted.malformed("bytes behind its end")),
    }
}

fn read<D: Read>(decoder: D, wanted: Wanted) -> Result<(Vec<u8>, D), Error> {
    let mut output = Vec::with_capacity(wanted.first_room());
    // One byte more than wanted tells a stream that is too long from one that ends right there.
    let mut decoder = decoder.take((wanted.len_max() as u64).saturating_add(1));
    decoder.read_to_end(&mut output).map_err(|error| wanted.malformed(error.to_string()))?;
    Ok((wanted.check(output)?, decoder.into_inner()))
}
