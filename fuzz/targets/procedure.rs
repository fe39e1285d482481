//! A procedure of HBase's master, whose state decides whether a directory can be adopted.
#![no_main]

use adoption::catalog::Catalog;
use adoption::procedure::judge_all;
use prost::Message;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(procedure) = proto::Procedure::decode(data) {
        for judged in judge_all(&[procedure], &Catalog::default()) {
            _ = (judged.outcome(), judged.record(), judged.continued_table().cloned());
        }
    }
});
