//! A write-ahead log, read from its header to its end. Checksums are not verified here, so that the
//! fuzzer reaches the data that they protect.
#![no_main]

use fs::FilePath;
use fs::memory::MemoryFs;
use futures_util::FutureExt;
use wal::LogReader;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let memory = MemoryFs::new();
    let path = FilePath::new("log");
    memory.put(&path, data);
    read(&memory, &path).now_or_never().expect("in-memory files never wait");
});

async fn read(memory: &MemoryFs, path: &FilePath) {
    let Ok(mut log) = LogReader::open(memory, path).await else { return };
    let mut end = 0;
    while let Ok(Some(entry)) = log.next().await {
        assert!(entry.offset >= end && entry.end > entry.offset, "entries must not overlap");
        end = entry.end;
        assert_eq!(entry.key_values().map(|cell| cell.len() + 4).sum::<usize>(), entry.cells.len());
    }
}
