//! A cell of `hbase:quota`: the subject and the settings. Byte 0 is the length of the row, byte 1
//! of the qualifier.
#![no_main]

use wire::quota::{self, Subject};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let [row_len, qualifier_len, rest @ ..] = data else { return };
    let (row, rest) = rest.split_at(rest.len().min(usize::from(*row_len)));
    let (qualifier, value) = rest.split_at(rest.len().min(usize::from(*qualifier_len)));
    if let Some(subject) = Subject::parse(row, qualifier) {
        let again = Subject::parse(&subject.row(), &subject.qualifier());
        assert_eq!(again, Some(subject), "a written subject must be readable");
    }
    if let Some(quotas) = quota::decode(value) {
        // A throttle may contain NaN, which does not equal itself, so the bytes are compared.
        let written = quota::encode(&quotas);
        let again = quota::decode(&written).expect("a written quota must be readable");
        assert_eq!(quota::encode(&again), written);
    }
});
