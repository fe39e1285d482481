//! Cells and their order, compared with HBase 2.5.10.

#![allow(clippy::unwrap_used)] // Tests fail by panicking.

use bytes::Bytes;
use cell::{CellOrder, CellType, KeyValue};

fn hex(text: &str) -> Bytes {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    text.as_bytes().chunks(2).map(byte).collect::<Vec<u8>>().into()
}

/// A TTL tag and a tag of type 3, as HBase wrote them after the value.
const TAGS: &[u8] = &[0, 9, 8, 0, 0, 0, 0, 0, 0, 0, 5, 0, 3, 1, b'a', b'b'];

#[test]
fn cells_are_hbases_bytes() {
    let plain = "00000015000000030004726f773101667175616c0000018bcfe568000476616c";
    let tagged = format!("{plain}001000090800000000000000050003016162");
    let cell =
        |tags| KeyValue::with_tags(b"row1", b"f", b"qual", 1_700_000_000_000, CellType::Put, b"val", tags);
    assert_eq!(*cell(&[]).bytes(), hex(plain));
    assert_eq!(*cell(TAGS).bytes(), hex(&tagged));
    let read = KeyValue::from_bytes(hex(&tagged)).unwrap();
    assert_eq!(read, cell(TAGS));
    assert_eq!(read.view(0).tags, TAGS);
}

/// Rows in the order in which HBase sorted them.
#[test]
fn rows_of_meta_are_in_hbases_order() {
    let sorted: [&[u8]; 8] =
        [b"t1", b"t1,,1", b"t1,a,1", b"t1,a,2", b"t1,a", b"t1,a,b,1", b"t1,ab,1", b"t10,,1"];
    for (left_at, left) in sorted.iter().enumerate() {
        for (right_at, right) in sorted.iter().enumerate() {
            let order = CellOrder::Meta.compare_rows(left, right);
            assert_eq!(order, left_at.cmp(&right_at), "{} {}", left.escape_ascii(), right.escape_ascii());
        }
    }
}
