//! A log record file, as it is read at startup. The fuzzer cannot guess its checksum, so a second
//! read has the correct one.
#![no_main]

use fs::FilePath;
use fs::memory::MemoryFs;
use futures_util::FutureExt;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let memory = MemoryFs::new();
    let path = FilePath::new("record");
    let checked = format!("crc32c {:08x}\n", base::checksum::crc32c(data));
    for content in [data.to_vec(), [data, checked.as_bytes()].concat()] {
        memory.put(&path, content);
        let _ = wal::record::read(&memory, &path).now_or_never().expect("in-memory files never wait");
    }
});
