//! A record of logs, as it is read at a start. Its checksum would keep the fuzzer out, so a second reading has it right.
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
        let _ = wal::record::read(&memory, &path).now_or_never().expect("files in memory never wait");
    }
});
