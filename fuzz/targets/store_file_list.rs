//! The list of HBase's `FILE` store file tracker. The fuzzer cannot guess its checksum, so a second
//! read has the correct length and checksum.
#![no_main]

use cell::region::RegionInfo;
use cell::schema::TableName;
use fs::FilePath;
use fs::memory::MemoryFs;
use futures_util::FutureExt;
use layout::{FileListTracker, RootDir, StoreDir, StoreFileTracker};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (memory, root) = (MemoryFs::new(), RootDir::new(FilePath::root()));
    let table = TableName::parse("t").expect("the name is valid");
    let region = RegionInfo::new(table, "".into(), "".into(), 1);
    let lists = root.family_dir(&region, b"f").join(".filelist");
    let length = (data.len() as u32).to_be_bytes();
    let checksum = base::checksum::crc32(data).to_be_bytes();
    for content in [data.to_vec(), [&length, data, &checksum].concat()] {
        for (name, tracker) in [("f1", FileListTracker::Plain), ("f2.7", FileListTracker::Generations)] {
            memory.put(&lists.join(name), content.clone());
            let store = StoreDir { fs: &memory, root: &root, region: &region, family: b"f" };
            let _ = tracker.load(store).now_or_never().expect("in-memory files never wait");
        }
    }
});
