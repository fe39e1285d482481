//! The manifest of a snapshot.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let path = fs::FilePath::new("data.manifest");
    let _ = layout::snapshot::Manifest::decode(&path, bytes::Bytes::copy_from_slice(data));
});
