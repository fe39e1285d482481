//! A block of cells, in both codecs; byte 0 selects the codec. Cells survive writing and reading.
#![no_main]

use bytes::Bytes;
use cell::codec::Codec;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((selector, block)) = data.split_first() else { return };
    let codec = if selector % 2 == 0 { Codec::KeyValueWithTags } else { Codec::KeyValue };
    let mut cells = codec.read(Bytes::copy_from_slice(block));
    let mut written = Vec::new();
    while let Some(Ok(cell)) = cells.next() {
        let view = cell.view(0);
        let start = written.len();
        codec.write(&view, &mut written);
        assert_eq!(
            written.len() - start,
            codec.len(&view),
            "the computed length must equal the written length"
        );
        let mut again = codec.read(Bytes::copy_from_slice(&written[start..]));
        let again = again.next().expect("one cell").expect("our own output must be readable");
        assert_eq!((again.view(0).key, again.view(0).value), (view.key, view.value));
    }
    let mut skipped = codec.read(Bytes::copy_from_slice(block));
    while skipped.skip_cell() {}
});
