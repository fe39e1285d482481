//! The record of an adoption, by which it is repeated or rolled back.
#![no_main]

use adoption::record::{self, AdoptionRecord};
use fs::FilePath;
use fs::memory::MemoryFs;
use futures_util::FutureExt;
use layout::RootDir;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (memory, root) = (MemoryFs::new(), RootDir::new(FilePath::root()));
    memory.put(&record::dir(&root).join("record"), data.to_vec());
    let _ = AdoptionRecord::read(&memory, &root).now_or_never().expect("in-memory files never wait");
});
