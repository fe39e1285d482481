//! The header of a block.
//!
//! ```text
//! magic 8 | on-disk length 4 | plain length 4 | previous 8
//!         | checksum type 1 | checksum chunk 4 | data length 4
//! ```
//!
//! The on-disk length counts payload and checksums. The plain length is that of the payload before
//! compression. The data length counts header and payload. The header is never compressed; the
//! checksums cover it.

use crate::block::checksum::{CHECKSUM_LEN, ChecksumType};
use crate::block::kind::{BlockKind, MAGIC_LEN};
use crate::compression::PAYLOAD_LEN_MAX;
use crate::error::{Fault, Parsed};
use crate::input::Input;

/// Bytes of a header (HBase: `HFILEBLOCK_HEADER_SIZE`).
pub(crate) const HEADER_LEN: usize = MAGIC_LEN + 4 + 4 + 8 + 1 + 4 + 4;
const _: () = assert!(HEADER_LEN == 33);

/// The offset that means "no block".
pub(crate) const NO_BLOCK: u64 = u64::MAX;

/// A header with consistent lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: BlockKind,
    /// Whether the payload starts with the id of a data block encoding.
    pub(crate) encoded: bool,
    /// Bytes of payload and checksums on disk.
    pub(crate) on_disk_len: u32,
    /// Bytes of the payload before compression.
    pub(crate) plain_len: u32,
    /// Offset of the previous block of this kind, or [`NO_BLOCK`].
    pub(crate) previous: u64,
    pub(crate) checksum: ChecksumType,
    /// Number of bytes that one checksum covers.
    pub(crate) chunk_len: u32,
    /// Bytes of header and payload on disk.
    pub(crate) data_len: u32,
}

impl Header {
    /// Parses the header at the start of `bytes`.
    pub(crate) fn parse(bytes: &[u8]) -> Parsed<Header> {
        const CUT: &str = "block header truncated";
        let mut input = Input::new(bytes);
        let magic = input.take(MAGIC_LEN, CUT)?.try_into().expect("eight bytes were taken");
        let (kind, encoded) = BlockKind::of(magic)?;
        let header = Header {
            kind,
            encoded,
            on_disk_len: input.u32(CUT)?,
            plain_len: input.u32(CUT)?,
            previous: input.u64(CUT)?,
            checksum: ChecksumType::of(input.u8(CUT)?)?,
            chunk_len: input.u32(CUT)?,
            data_len: input.u32(CUT)?,
        };
        header.check()?;
        Ok(header)
    }

    fn check(&self) -> Parsed<()> {
        if self.chunk_len == 0 || (self.data_len as usize) < HEADER_LEN {
            return Err(Fault::Damaged("impossible lengths in a block header"));
        }
        let chunks = u64::from(self.data_len).div_ceil(u64::from(self.chunk_len));
        if u64::from(self.data_len) + chunks * CHECKSUM_LEN as u64 != self.total_len() as u64 {
            return Err(Fault::Damaged("inconsistent lengths in a block header"));
        }
        if self.plain_len as usize > PAYLOAD_LEN_MAX || self.total_len() > PAYLOAD_LEN_MAX + HEADER_LEN {
            return Err(Fault::Damaged("block larger than 1 GiB"));
        }
        Ok(())
    }

    /// Bytes of header, payload and checksums on disk.
    pub(crate) fn total_len(&self) -> usize {
        HEADER_LEN + self.on_disk_len as usize
    }

    /// Appends the header to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.kind.magic(self.encoded));
        out.extend_from_slice(&self.on_disk_len.to_be_bytes());
        out.extend_from_slice(&self.plain_len.to_be_bytes());
        out.extend_from_slice(&self.previous.to_be_bytes());
        out.push(self.checksum as u8);
        out.extend_from_slice(&self.chunk_len.to_be_bytes());
        out.extend_from_slice(&self.data_len.to_be_bytes());
    }
}
