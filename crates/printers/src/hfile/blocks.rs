//! Prints the index of a file and the headers of its blocks.

use std::io::Write;

use fs::IoClass;
use hfile::{BlockHeader, BlockKind, ChecksumType, LoadedBlock, Reader};

use super::key::format_key;
use crate::Error;

/// Bytes of blocks that are read at a time.
const BYTES_PER_READ: usize = 1 << 20;

/// Prints the root of the data index.
pub(super) fn print_index(out: &mut dyn Write, file: &Reader) -> Result<(), Error> {
    let entries: Vec<_> = file.root_index_entries().collect();
    writeln!(out, "Block Index:\nsize={}", entries.len())?;
    for entry in entries {
        writeln!(out, "key={}/vlen=0/mvcc=0", format_key(entry.key))?;
        writeln!(out, "  offset={}, dataSize={}", entry.offset, entry.len)?;
    }
    Ok(writeln!(out)?)
}

/// Prints the header of each block up to the last data block.
pub(super) async fn print_headers(out: &mut dyn Write, file: &Reader) -> Result<(), Error> {
    writeln!(out, "Block Headers:")?;
    let (mut offset, last) = (0, file.trailer().last_data_block_offset);
    while !file.is_empty() && offset <= last {
        let mut blocks = file.load_from(IoClass::Read, offset, BYTES_PER_READ).await?;
        if blocks.is_empty() {
            // One block is larger than a read, or damaged.
            blocks = file.load_from(IoClass::Read, offset, usize::MAX).await?;
        }
        let Some(next) = blocks.iter().map(|loaded| loaded.block.offset()).max() else { break };
        for loaded in blocks.iter().filter(|loaded| loaded.block.offset() <= last) {
            print_header(out, file, loaded)?;
        }
        let len = blocks.last().map_or(0, |loaded| loaded.on_disk.len() as u64);
        offset = next + len;
    }
    Ok(())
}

fn print_header(out: &mut dyn Write, file: &Reader, loaded: &LoadedBlock) -> Result<(), Error> {
    let header = loaded.header(file)?;
    let previous = header.previous.map_or(-1, |offset| offset as i64);
    let checksum_bytes = header.total_len() - header.data_len as usize;
    writeln!(
        out,
        "[blockType={}, fileOffset={}, headerSize={}, onDiskSizeWithoutHeader={}, \
         uncompressedSizeWithoutHeader={}, prevBlockOffset={previous}, isUseHBaseChecksum=true, \
         checksumType={}, bytesPerChecksum={}, onDiskDataSizeWithHeader={}, getOnDiskSizeWithHeader={}, \
         totalChecksumBytes={checksum_bytes}]",
        kind_name(&header),
        loaded.block.offset(),
        BlockHeader::LEN,
        header.on_disk_len,
        header.plain_len,
        checksum_name(header.checksum),
        header.checksum_chunk_bytes,
        header.data_len,
        header.total_len(),
    )?;
    Ok(())
}

/// The name of the kind in HBase (`BlockType`).
fn kind_name(header: &BlockHeader) -> &'static str {
    match header.kind {
        BlockKind::Data if header.is_encoded => "ENCODED_DATA",
        BlockKind::Data => "DATA",
        BlockKind::LeafIndex => "LEAF_INDEX",
        BlockKind::BloomChunk => "BLOOM_CHUNK",
        BlockKind::Meta => "META",
        BlockKind::IntermediateIndex => "INTERMEDIATE_INDEX",
        BlockKind::RootIndex => "ROOT_INDEX",
        BlockKind::FileInfo => "FILE_INFO",
        BlockKind::BloomMeta => "GENERAL_BLOOM_META",
        BlockKind::DeleteFamilyBloomMeta => "DELETE_FAMILY_BLOOM_META",
    }
}

fn checksum_name(checksum: ChecksumType) -> &'static str {
    match checksum {
        ChecksumType::Null => "NULL",
        ChecksumType::Crc32 => "CRC32",
        ChecksumType::Crc32c => "CRC32C",
    }
}
