//! The messages that DataNodes of HDFS send while a block is written.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    hdfs::fuzzing::datanode_messages(data);
});
