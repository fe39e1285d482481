//! A cell of `hbase:quota`: whose quota it is, and what is set. Byte 0 is the row's length, byte 1 the qualifier's.
#![no_main]

use wire::quota::{self, Subject};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let [row_len, qualifier_len, rest @ ..] = data else { return };
    let (row, rest) = rest.split_at(rest.len().min(usize::from(*row_len)));
    let (qualifier, value) = rest.split_at(rest.len().min(usize::from(*qualifier_len)));
    if let Some(subject) = Subject::parse(row, qualifier) {
        let again = Subject::parse(&subject.row(), &subject.qualifier());
        assert_eq!(again, Some(subject), "what is written is read again");
    }
    if let Some(quotas) = quota::decode(value) {
        // A throttle may have floats in it, which need not be equal to themselves: the bytes are compared.
        let written = quota::encode(&quotas);
        let again = quota::decode(&written).expect("what is written is read again");
        assert_eq!(quota::encode(&again), written);
    }
});
