//! Frames of HBase's own client and server, byte for byte; and our hand-written headers compared
//! with generated code.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use prost::Message;
use rpc::frame::{self, ExceptionResponse, RequestHeader};
use rpc::header::{ClientVersion, ConnectionHeader};
use rpc::{CellBlock, Codec};
use support::{body, hex};

/// The preamble and header of Java 2.5.10 (user alice).
pub const OPENING: &str = "484261730050000000620a070a05616c696365120d436c69656e74536572766963651a2b6f72672e6170616368652e68\
    61646f6f702e68626173652e636f6465632e4b657956616c7565436f6465632a1b0a06322e352e31301201751a01722201622a0164320163380240\
    05";
/// A Get sent by Java, call 7.
const GET: &str = "0000006d0f08071a034765742001300038e0d4035c0a380801123474626c2c2c313730303030303030303030302e61323333316638\
    653462623564373661356565653734316537303833343161352e12200a02723112080a026366120271312a0c080010ffffffffffffffff7f300138\
    01";
/// A Multi of three puts sent by Java: an empty trace, a cell block.
const MULTI: &str = "0000010617080c12001a054d756c746920012a02085d300038e0d4038f010a8c010a3c08011238745f73727632352c2c3137393532\
    31393435313636352e62383361643336666433366166643065623538303361353962613464646137372e1a18080012140a026d30100220ffffffff\
    ffffffff7f300040011a18080112140a026d31100220ffffffffffffffff7f300040011a18080212140a026d32100220ffffffffffffffff7f3000\
    40010000001b000000110000000200026d30026366717fffffffffffffff0478300000001b000000110000000200026d31026366717fffffffffff\
    ffff0478310000001b000000110000000200026d32026366717fffffffffffffff047832";

#[test]
fn the_header_of_java_is_read() {
    let bytes = hex(OPENING);
    let header = ConnectionHeader::decode(&bytes[10..]).unwrap();
    assert_eq!(header.effective_user.as_deref(), Some("alice"));
    assert_eq!(header.service_name.as_deref(), Some("ClientService"));
    assert_eq!(header.codec_class.as_deref(), Some(Codec::KeyValue.class()));
    assert_eq!(header.compressor_class, None);
    assert_eq!(header.version, Some(ClientVersion { major: 2, minor: 5, text: "2.5.10".into() }));
}

#[test]
fn requests_of_java_are_parsed() {
    let get = frame::parse_request(&body(&hex(GET))).unwrap();
    assert_eq!((get.header.call_id, &*get.header.method), (7, "Get"));
    assert_eq!((get.header.priority, get.header.timeout_ms), (0, Some(60_000)));
    let param = proto::GetRequest::decode(get.param).unwrap();
    assert_eq!(param.get.row, "r1");
    assert!(get.cells.is_empty());

    let multi = frame::parse_request(&body(&hex(MULTI))).unwrap();
    assert_eq!((multi.header.call_id, &*multi.header.method), (12, "Multi"));
    assert_eq!((multi.header.cell_block_len, multi.cells.len()), (0x5d, 0x5d));
    assert_eq!(proto::MultiRequest::decode(multi.param).unwrap().region_action[0].action.len(), 3);
}

/// hbase-driver 1.1.1 writes the length of messages above 127 bytes as three bytes that encode a
/// larger value.
#[test]
fn the_last_message_ends_with_its_frame() {
    let right = body(&hex(GET));
    let (header_end, length_end) = (16, 17);
    let lengthened =
        |length: &[u8]| Bytes::from([&right[..header_end], length, &right[length_end..]].concat());
    let param = frame::parse_request(&right).unwrap().param;
    for length in [&[0xdc, 0x80, 0x01][..], &[0x5d], &[0xff, 0xff, 0xff, 0xff, 0x07]] {
        let request = frame::parse_request(&lengthened(length)).unwrap();
        assert_eq!((request.param, request.cells.len()), (param.clone(), 0), "{length:x?}");
    }
    let negative = lengthened(&[0xff, 0xff, 0xff, 0xff, 0x0f]);
    assert!(frame::parse_request(&negative).is_err(), "HBase refuses a negative length");
    let multi = body(&hex(MULTI));
    // A length field of two bytes follows the header of 23 bytes.
    let lengthened = Bytes::from([&multi[..24], &[0xff, 0x7f], &multi[26..]].concat());
    assert!(frame::parse_request(&lengthened).is_err(), "the position of the cells is unknown");
}

#[test]
fn responses_are_those_of_hbase() {
    let cells = hex("0000001c00000012000000020002723102636671310000018bcfe56801047631");
    let get = hex(
        "0000002e0608071a020820060a04100120000000001c00000012000000020002723102636671310000018bcfe56801047631",
    );
    let mut ours = BytesMut::new();
    let message = hex("0a0410012000");
    frame::put_response_head(&mut ours, 7, message.len(), cells.len());
    ours.extend_from_slice(&message);
    ours.extend_from_slice(&cells);
    assert_eq!(ours, get);
    let read = frame::parse_response(&body(&get)).unwrap();
    assert_eq!(read.outcome, Ok((message.into(), cells.into())));

    assert_eq!(frame::encode_response(7, &hex("0a021000")), hex("0000000802 0807 04 0a021000"));
    assert_eq!(frame::encode_response(7, &hex("0a0410001801")), hex("0000000a020807060a0410001801"));
    assert_eq!(frame::encode_response(11, &hex("1001")), hex("0000000602080b021001"));
    assert_eq!(frame::encode_response(0, &hex("0801")), hex("00000006020800020801"));
}

#[test]
fn an_exception_is_that_of_hbase() {
    let frame = hex(
        "0000008f8d0108071288010a316f72672e6170616368652e6861646f6f702e68626173652e4e6f7453657276696e67526567696f\
        6e457863657074696f6e12516f72672e6170616368652e6861646f6f702e68626173652e4e6f7453657276696e67526567696f6e457863657074\
        696f6e3a2074626c2c2c31206973206e6f74206f6e6c696e65206f6e20682c312c320a2800",
    );
    let class = "org.apache.hadoop.hbase.NotServingRegionException";
    let stack_trace = format!("{class}: tbl,,1 is not online on h,1,2\n");
    let exception = ExceptionResponse { class, stack_trace: &stack_trace, ..ExceptionResponse::default() };
    assert_eq!(frame::encode_exception(7, &exception), frame);
    let read = frame::parse_response(&body(&frame)).unwrap().outcome.unwrap_err();
    assert_eq!((read.class.as_str(), read.do_not_retry), (class, false));
}

proptest! {
    #[test]
    fn request_headers_agree_with_the_generated_ones(
        call_id: u32, method in "[A-Za-z]{0,20}", cells in prop::option::of(0u32..1 << 20),
        priority in prop::option::of(0u32..300), timeout_ms: Option<u32>, trace_id: Option<i64>, attributes in 0usize..3,
    ) {
        let theirs = proto::RequestHeader {
            call_id: Some(call_id),
            trace_info: trace_id.map(|id| proto::RpctInfo { trace_id: Some(id), ..Default::default() }),
            method_name: Some(method.clone()),
            request_param: Some(true),
            cell_block_meta: cells.map(|length| proto::CellBlockMeta { length: Some(length) }),
            priority,
            timeout: timeout_ms,
            attribute: vec![proto::NameBytesPair { name: "n".into(), value: Some("v".into()) }; attributes],
        };
        let ours = RequestHeader::decode(&theirs.encode_to_vec().into()).unwrap();
        let expected = RequestHeader {
            call_id, method: method.as_str().into(), request_param: true, cell_block_len: cells.unwrap_or(0),
            priority: priority.unwrap_or(0), timeout_ms,
            trace_info: theirs.trace_info.as_ref().map(|info| info.encode_to_vec().into()).unwrap_or_default(),
        };
        prop_assert_eq!(&ours, &expected);
        let mut written = BytesMut::new();
        ours.encode(&mut written);
        let read = proto::RequestHeader::decode(written).unwrap();
        prop_assert_eq!((read.call_id, read.method_name, read.timeout), (Some(call_id), Some(method), timeout_ms));
        prop_assert_eq!(read.trace_info, theirs.trace_info);
    }

    #[test]
    fn response_headers_agree_with_the_generated_ones(call_id: u32, message_len in 0usize..1 << 20, cells_len in 0usize..1 << 24) {
        let mut out = BytesMut::new();
        frame::put_response_head(&mut out, call_id, message_len, cells_len);
        let mut header = out.split_off(4);
        let theirs = proto::ResponseHeader::decode_length_delimited(&mut header).unwrap();
        prop_assert_eq!(theirs.call_id, Some(call_id));
        prop_assert_eq!(theirs.cell_block_meta.and_then(|meta| meta.length).unwrap_or(0) as usize, cells_len);
        let total = u32::from_be_bytes(out[..].try_into().unwrap()) as usize;
        let header_len = total - header.len() - message_len - cells_len;
        prop_assert_eq!(prost::decode_length_delimiter(&mut header).unwrap(), message_len);
        prop_assert!(header.is_empty() && header_len < 20);
    }

    #[test]
    fn connection_headers_agree_with_the_generated_ones(user in "[a-z]{1,9}", service in "[A-Z]{1,9}", major: u32, minor: u32) {
        let ours = ConnectionHeader {
            effective_user: Some(user.clone()), real_user: Some("r".into()), service_name: Some(service.clone()),
            codec_class: Some("c".into()), compressor_class: Some("d".into()),
            version: Some(ClientVersion { major, minor, text: "3.0.0-beta-1".into() }),
        };
        let theirs = proto::ConnectionHeader::decode(ours.encode()).unwrap();
        prop_assert_eq!(&theirs.user_info.as_ref().unwrap().effective_user, &user);
        prop_assert_eq!(ConnectionHeader::decode(&theirs.encode_to_vec()).unwrap(), ours);
    }

    /// The plain functions on untrusted input: they return, and no result is longer than the input.
    #[test]
    fn garbage_is_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let bytes = Bytes::from(bytes);
        let _ = rpc::preamble::parse(&bytes);
        let _ = ConnectionHeader::decode(&bytes);
        let _ = frame::peek_header(&bytes);
        let _ = frame::parse_response(&bytes);
        if let Ok(request) = frame::parse_request(&bytes) {
            prop_assert!(request.param.len() + request.cells.len() < bytes.len());
        }
    }

    /// Valid frames with a few changed bytes reach deeper code paths than random bytes.
    #[test]
    fn damaged_frames_are_refused_or_read(which in 0usize..2, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), cut: prop::sample::Index) {
        let mut bytes = body(&hex([GET, MULTI][which])).to_vec();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        let _ = frame::parse_request(&Bytes::from(bytes));
    }
}

#[test]
fn a_version_without_numbers_is_read_from_its_text() {
    let version = proto::VersionInfo { version: "1.4.13-SNAPSHOT".into(), ..proto::VersionInfo::default() };
    let header =
        proto::ConnectionHeader { version_info: Some(version), ..proto::ConnectionHeader::default() };
    let version = ConnectionHeader::decode(&header.encode_to_vec()).unwrap().version.unwrap();
    assert_eq!((version.major, version.minor), (1, 4));
}

#[test]
fn a_large_piece_is_not_copied() {
    let piece = Bytes::from(vec![1; 10_000]);
    let mut block = CellBlock::new();
    block.tail().extend_from_slice(b"small");
    block.push(piece.clone());
    assert_eq!(block.into_pieces()[1].as_ptr(), piece.as_ptr());
}
