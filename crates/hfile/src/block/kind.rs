//! Kinds of blocks and their magics.

use crate::error::{Fault, Parsed};

/// The kind of a block. `Data` has two magics: with and without a data block encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Cells, encoded or not.
    Data,
    /// The lowest level of the data index.
    LeafIndex,
    /// One chunk of a Bloom filter.
    BloomChunk,
    /// A named block; HBase writes none.
    Meta,
    /// A level of the data index between root and leaf.
    IntermediateIndex,
    /// The root of the data index, or the meta index.
    RootIndex,
    /// Named entries that describe the file.
    FileInfo,
    /// The index of the general Bloom filter's chunks.
    BloomMeta,
    /// The index of the delete family Bloom filter's chunks.
    DeleteFamilyBloomMeta,
}

/// Bytes of a block magic.
pub(crate) const MAGIC_LEN: usize = 8;

/// Magic of unencoded data blocks.
const DATA: &[u8; MAGIC_LEN] = b"DATABLK*";
/// Magic of encoded data blocks.
const ENCODED_DATA: &[u8; MAGIC_LEN] = b"DATABLKE";

impl BlockKind {
    /// The kind for a magic, and whether the payload starts with an encoding id.
    pub(crate) fn of(magic: &[u8; MAGIC_LEN]) -> Parsed<(BlockKind, bool)> {
        let kind = match magic {
            DATA => BlockKind::Data,
            ENCODED_DATA => return Ok((BlockKind::Data, true)),
            b"IDXLEAF2" => BlockKind::LeafIndex,
            b"BLMFBLK2" => BlockKind::BloomChunk,
            b"METABLKc" => BlockKind::Meta,
            b"IDXINTE2" => BlockKind::IntermediateIndex,
            b"IDXROOT2" => BlockKind::RootIndex,
            b"FILEINF2" => BlockKind::FileInfo,
            b"BLMFMET2" => BlockKind::BloomMeta,
            b"DFBLMET2" => BlockKind::DeleteFamilyBloomMeta,
            _ => return Err(Fault::Damaged("unknown block magic")),
        };
        Ok((kind, false))
    }

    /// The magic; `encoded` matters for data blocks only.
    pub(crate) fn magic(self, encoded: bool) -> &'static [u8; MAGIC_LEN] {
        match self {
            BlockKind::Data if encoded => ENCODED_DATA,
            BlockKind::Data => DATA,
            BlockKind::LeafIndex => b"IDXLEAF2",
            BlockKind::BloomChunk => b"BLMFBLK2",
            BlockKind::Meta => b"METABLKc",
            BlockKind::IntermediateIndex => b"IDXINTE2",
            BlockKind::RootIndex => b"IDXROOT2",
            BlockKind::FileInfo => b"FILEINF2",
            BlockKind::BloomMeta => b"BLMFMET2",
            BlockKind::DeleteFamilyBloomMeta => b"DFBLMET2",
        }
    }
}
