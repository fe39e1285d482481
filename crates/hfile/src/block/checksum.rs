//! Checksums of a block. They follow the payload, one per chunk of header and payload.

use base::checksum::matches;

use crate::error::{Fault, Parsed};

/// Bytes of one checksum.
pub(crate) const CHECKSUM_LEN: usize = 4;

/// The checksum algorithm. The codes are the on-disk values (HBase `ChecksumType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ChecksumType {
    /// No checksums. Their space is reserved anyway.
    Null = 0,
    /// CRC-32 with zlib's polynomial.
    Crc32 = 1,
    /// CRC-32C (Castagnoli).
    Crc32c = 2,
}

impl ChecksumType {
    pub(crate) fn of(code: u8) -> Parsed<ChecksumType> {
        match code {
            0 => Ok(ChecksumType::Null),
            1 => Ok(ChecksumType::Crc32),
            2 => Ok(ChecksumType::Crc32c),
            _ => Err(Fault::Damaged("unknown checksum type")),
        }
    }

    fn sum(self, chunk: &[u8]) -> u32 {
        match self {
            ChecksumType::Null => 0,
            ChecksumType::Crc32 => base::checksum::crc32(chunk),
            ChecksumType::Crc32c => base::checksum::crc32c(chunk),
        }
    }

    /// Bytes of the checksums of `data_len` bytes in chunks of `chunk_len`.
    pub(crate) fn total_len(data_len: usize, chunk_len: usize) -> usize {
        data_len.div_ceil(chunk_len) * CHECKSUM_LEN
    }

    /// Appends the checksums of `out[start..]`.
    pub(crate) fn append(self, out: &mut Vec<u8>, start: usize, chunk_len: usize) {
        let end = out.len();
        let mut at = start;
        while at < end {
            let sum = self.sum(&out[at..end.min(at + chunk_len)]);
            out.extend_from_slice(&sum.to_be_bytes());
            at += chunk_len;
        }
    }

    /// Checks `data` against `sums`.
    pub(crate) fn verify(self, data: &[u8], sums: &[u8], chunk_len: usize) -> Parsed<()> {
        if self == ChecksumType::Null {
            // The reserved space must be zero. Otherwise one flipped bit that turns CRC32C into
            // NULL would disable the checksum that detects it.
            let is_zero = sums.iter().all(|byte| *byte == 0);
            return if is_zero { Ok(()) } else { Err(Fault::Damaged("nonzero NULL checksum")) };
        }
        let all_equal = data
            .chunks(chunk_len)
            .zip(sums.as_chunks::<CHECKSUM_LEN>().0)
            .all(|(chunk, sum)| matches(self.sum(chunk), u32::from_be_bytes(*sum)));
        if all_equal { Ok(()) } else { Err(Fault::Damaged("checksum does not match")) }
    }
}
