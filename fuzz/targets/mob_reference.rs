//! References to MOB files: the cell that has one, and the list of files in a store file.
#![no_main]

use cell::KeyValue;
use engine::mob::{FileRefs, MobReference, is_reference};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Some(refs) = FileRefs::decode(data) {
        assert_eq!(FileRefs::decode(&refs.encode()), Some(refs), "what was decoded can be encoded");
    }
    if let Ok(cell) = KeyValue::from_bytes(bytes::Bytes::copy_from_slice(data)) {
        let view = cell.view(0);
        if is_reference(view.tags) {
            _ = MobReference::parse(&view);
        }
    }
});
