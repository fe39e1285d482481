//! The inventory of a region. The fuzzer cannot guess its checksum, so a second read has the
//! correct one.
#![no_main]

use cell::region::RegionInfo;
use cell::schema::TableName;
use fs::FilePath;
use fs::memory::MemoryFs;
use futures_util::FutureExt;
use layout::RootDir;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (memory, root) = (MemoryFs::new(), RootDir::new(FilePath::root()));
    let table = TableName::parse("t").expect("the name is valid");
    let region = RegionInfo::new(table, "".into(), "".into(), 1);
    let path = root.recovered_edits_dir(&region).join("1.seqid");
    let checked = format!("crc32c {:08x}\n", base::checksum::crc32c(data));
    for content in [data.to_vec(), [data, checked.as_bytes()].concat()] {
        memory.put(&path, content);
        let read = root.read_inventory(&memory, &region).now_or_never().expect("in-memory files never wait");
        if let Ok(Some(inventory)) = read {
            let _ = inventory.of_family(b"f").count();
        }
    }
});
