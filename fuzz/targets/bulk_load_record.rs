//! The record of an interrupted bulk load, which the next open of the region settles. The fuzzer
//! cannot guess its checksum, so a second read has the correct length and checksum.
#![no_main]

use cell::region::RegionInfo;
use cell::schema::TableName;
use fs::FilePath;
use fs::memory::MemoryFs;
use futures_util::FutureExt;
use layout::{RenameTracker, RootDir};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let root = RootDir::new(FilePath::root());
    let table = TableName::parse("t").expect("the name is valid");
    let region = RegionInfo::new(table, "".into(), "".into(), 1);
    let length = (data.len() as u32).to_be_bytes();
    let checksum = base::checksum::crc32c(data).to_be_bytes();
    for content in [data.to_vec(), [&length, data, &checksum].concat()] {
        let memory = MemoryFs::new();
        memory.put(&root.region_dir(&region).join(".bulk_load"), content);
        // A file of the load that is in its store.
        let name = "0123456789abcdef0123456789abcdef_SeqId_3_";
        memory.put(&root.family_dir(&region, b"f").join(name), "cells");
        let settled = root.settle_bulk_load(&memory, &RenameTracker, &region, 1);
        let _ = settled.now_or_never().expect("in-memory files never wait");
    }
});
