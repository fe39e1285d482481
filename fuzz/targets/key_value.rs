//! A serialized KeyValue: accepted only if all its parts are inside it.
#![no_main]

use bytes::Bytes;
use cell::{CellOrder, KeyValue};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    _ = cell::key::check(data);
    let Ok(cell) = KeyValue::from_bytes(Bytes::copy_from_slice(data)) else { return };
    let view = cell.view(7);
    let parts = view.row().len() + view.family().len() + view.qualifier().len();
    assert!(parts < data.len());
    // There may be a length of tags without tags; it is not written again.
    let again = view.to_key_value();
    assert_eq!(view.serialized_len(), again.bytes().len());
    assert_eq!(
        (again.view(7).key, again.view(7).value, again.view(7).tags),
        (view.key, view.value, view.tags)
    );
    assert!(CellOrder::Plain.compare_keys(view.key, view.key).is_eq());
    _ = format!("{cell:?}");
});
