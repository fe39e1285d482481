//! The response of a NameNode of HDFS to a call.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    hdfs::fuzzing::namenode_response(data);
});
