//! What a DataNode of HDFS sends for a read.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    hdfs::fuzzing::datanode_read(data);
});
