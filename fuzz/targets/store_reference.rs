//! The content of a reference to a file of another region, and the names of store files.
#![no_main]

use layout::Reference;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let path = fs::FilePath::new("reference");
    if let Ok(reference) = Reference::decode(&path, &bytes::Bytes::copy_from_slice(data)) {
        assert_eq!(Reference::decode(&path, &reference.encode()).ok(), Some(reference));
    }
    if let Ok(name) = std::str::from_utf8(data) {
        _ = layout::store::StoreFileName::parse(name);
        _ = layout::FileLink::parse(name, b"f");
    }
});
