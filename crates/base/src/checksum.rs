//! The two CRCs of HBase's files: CRC-32C (Castagnoli, the default) and CRC-32 (zlib's).
//!
//! Both come from `crc-fast`, which uses the CPU's carry-less multiplication where available.

use crc_fast::{CrcAlgorithm, Digest};

/// CRC-32C (Castagnoli) of `bytes`: HBase's checksum type CRC32C.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// CRC-32 (ISO-HDLC, as in zlib and gzip) of `bytes`: HBase's checksum type CRC32.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iso_hdlc(bytes)
}

/// Whether the `found` checksum equals the `stored` one. All checksum comparisons use this
/// function: in a fuzzing build it always returns `true`, so that the fuzzer reaches the code that
/// checksums protect.
#[inline]
pub fn matches(found: u32, stored: u32) -> bool {
    cfg!(fuzzing) || found == stored
}

/// A CRC-32C computed over several pieces.
#[derive(Clone, Debug)]
pub struct Crc32c(Digest);

impl Crc32c {
    /// The checksum state before any byte.
    pub fn new() -> Crc32c {
        Crc32c(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    /// Adds the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all pieces so far. More pieces may follow.
    pub fn finish(&self) -> u32 {
        u32::try_from(self.0.finalize()).expect("a 32-bit CRC fits 32 bits")
    }
}

impl Default for Crc32c {
    fn default() -> Crc32c {
        Crc32c::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The check values of the catalogue of parametrised CRC algorithms, over "123456789".
    #[test]
    fn check_values_of_the_catalogue() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32(b""), 0);
    }

    // RFC 3720, appendix B.4.
    #[test]
    fn vectors_of_iscsi() {
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&rising), 0x46dd_794e);
    }

    #[test]
    fn pieces_have_the_checksum_of_the_whole() {
        let bytes: Vec<u8> = (0..5000u32).map(|i| (i * 31 % 251) as u8).collect();
        for cut in [0, 1, 63, 64, 65, 1000, 4999, 5000] {
            let mut crc = Crc32c::new();
            crc.update(&bytes[..cut]);
            crc.update(&bytes[cut..]);
            assert_eq!(crc.finish(), crc32c(&bytes), "cut at {cut}");
        }
    }
}
