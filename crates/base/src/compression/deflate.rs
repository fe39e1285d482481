//! Deflate, as gzip and as zlib streams.

use std::io::{BufRead, Read, Write};

use flate2::Compression;
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};

use super::{Error, LengthLimit};

pub(super) const GZIP: &str = "gzip";
pub(super) const ZLIB: &str = "zlib";
/// Deflate encodes at most 258 repeated bytes in two bits.
pub(super) const RATIO_MAX: usize = 1032;

/// One gzip member, at zlib's default level (HBase's default for GZ).
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

/// Expands consecutive gzip members that occupy all of `input`.
pub(super) fn gunzip(input: &[u8], length: LengthLimit) -> Result<Vec<u8>, Error> {
    read(MultiGzDecoder::new(input), length).map(|(output, _)| output)
}

/// Expands a zlib stream that must occupy all of `input`.
pub(super) fn inflate(input: &[u8], length: LengthLimit) -> Result<Vec<u8>, Error> {
    let (output, mut decoder) = read(ZlibDecoder::new(input), length)?;
    match decoder.get_mut().fill_buf() {
        Ok([]) => Ok(output),
        _ => Err(length.malformed("data after the end of the stream")),
    }
}

fn read<D: Read>(decoder: D, length: LengthLimit) -> Result<(Vec<u8>, D), Error> {
    let mut output = Vec::with_capacity(length.first_capacity());
    // One byte above the limit distinguishes a stream that is too long from one that ends there.
    let mut decoder = decoder.take((length.len_max() as u64).saturating_add(1));
    decoder.read_to_end(&mut output).map_err(|error| length.malformed(error.to_string()))?;
    Ok((length.check(output)?, decoder.into_inner()))
}
