//! The identity of a file, under which its blocks are cached on disk.

use md5::{Digest, Md5};

use super::Reader;

/// MD5 of what distinguishes the file from any other. The digest only has to be the same in each
/// process and to have no accidental collisions: it protects against stale blocks, not against
/// forged files.
pub(super) fn of(reader: &Reader) -> [u8; 16] {
    let mut digest = Md5::new();
    let mut add = |bytes: &[u8]| {
        // Lengths, so that the boundaries between the parts count.
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    let trailer = &reader.trailer;
    add(reader.path().name().as_bytes());
    for number in [
        reader.len(),
        trailer.file_info_offset,
        trailer.load_on_open_offset,
        trailer.data_index_plain_bytes,
        trailer.total_plain_bytes,
        trailer.entry_count,
        trailer.first_data_block_offset,
        trailer.last_data_block_offset,
    ] {
        add(&number.to_le_bytes());
    }
    for (name, value) in &reader.info.raw {
        add(name);
        add(value);
    }
    add(reader.root.payload());
    digest.finalize().into()
}
