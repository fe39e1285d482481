//! Decodes frames that HBase's Java client 2.5.10 sent and its server answered, and encodes them
//! again.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

use bytes::{Buf, Bytes, BytesMut};
use cell::codec::Codec;
use cell::mutation::{Durability, Mutation, MutationKind};
use cell::query::{CellSelection, FamilyColumns, Get, Scan, TimeRange};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use prost::Message;
use proto::exception::{JavaException, class};
use proto::magic::{read_delimited, write_delimited};
use wire::convert::result::{existence, in_block};
use wire::convert::{from_proto, specified_region};

const GET: &str = "\
    0000006d0f08071a034765742001300038e0d4035c0a380801123474626c2c2c313730303030303030303030302e61323333\
    316638653462623564373661356565653734316537303833343161352e12200a02723112080a026366120271312a0c080010\
    ffffffffffffffff7f30013801";
const GET_ANSWER: &str = "\
    0000002e0608071a020820060a04100120000000001c00000012000000020002723102636671310000018bcfe56801047631";
const GET_ANSWER_EMPTY: &str = "00000008020807040a021000";
const GET_ANSWER_EXISTS: &str = "0000000a020807060a0410001801";
const NOT_SERVING: &str = "\
    0000008f8d0108071288010a316f72672e6170616368652e6861646f6f702e68626173652e4e6f7453657276696e67526567\
    696f6e457863657074696f6e12516f72672e6170616368652e6861646f6f702e68626173652e4e6f7453657276696e675265\
    67696f6e457863657074696f6e3a2074626c2c2c31206973206e6f74206f6e6c696e65206f6e20682c312c320a2800";
const PUT: &str = "\
    0000008214080b12001a064d75746174652001300038e0d4036c0a3c08011238745f73727632352c2c313739353231393435\
    313636352e62383361643336666433366166643065623538303361353962613464646137372e122c0a02723110021a180a02\
    636612120a0271311202763118ffffffffffffffff7f20ffffffffffffffff7f3000";
const PUT_ANSWER: &str = "0000000602080b021001";
const DELETE_ROW: &str = "\
    0000006814080f12001a064d75746174652001300038e0d403520a3c08011238745f73727632352c2c313739353231393435\
    313636352e62383361643336666433366166643065623538303361353962613464646137372e12120a027231100320ffffff\
    ffffffffff7f3000";
const MULTI: &str = "\
    0000010617080c12001a054d756c746920012a02085d300038e0d4038f010a8c010a3c08011238745f73727632352c2c3137\
    39353231393435313636352e62383361643336666433366166643065623538303361353962613464646137372e1a18080012\
    140a026d30100220ffffffffffffffff7f300040011a18080112140a026d31100220ffffffffffffffff7f300040011a1808\
    0212140a026d32100220ffffffffffffffff7f300040010000001b000000110000000200026d30026366717fffffffffffff\
    ff0478300000001b000000110000000200026d31026366717fffffffffffffff0478310000001b000000110000000200026d\
    32026366717fffffffffffffff047832";
const MULTI_ANSWER: &str = "0000001a02080c160a120a04080012000a04080112000a04080212001a00";
const SCAN: &str = "\
    000000740e08081a045363616e200138e0d403640a380801123474626c2c2c313730303030303030303030302e6132333331\
    6638653462623564373661356565653734316537303833343161352e121e1a016122017a320c080010ffffffffffffffff7f\
    38014001880164b0010020642800380140014800";
const SCAN_ANSWER: &str = "\
    000000ac06080e1a02087d2708010801080108011087808080e09bc8f5e901180120e0d40330003800380038003800400058\
    050000001b000000110000000200026d3002636671000001a1fb6af2d20478300000001b000000110000000200026d310263\
    6671000001a1fb6af2d20478310000001b000000110000000200026d3202636671000001a1fb6af2d20478320000001c0000\
    001200000002000272310263667131000001a1fb6af290047631";

fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().collect();
    assert_eq!(digits.len() % 2, 0);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect::<Vec<u8>>().into()
}

/// The header, message and cell block of a frame.
fn frame<H: Message + Default, M: Message + Default>(text: &str) -> (H, M, Bytes) {
    let mut bytes = hex(text);
    let total = bytes.get_u32() as usize;
    assert_eq!(total, bytes.len());
    let header = read_delimited(&mut bytes).unwrap();
    let message = read_delimited(&mut bytes).unwrap();
    (header, message, bytes)
}

fn request<M: Message + Default>(text: &str, method: &str) -> (M, Bytes) {
    let (header, message, cells) = frame::<proto::RequestHeader, M>(text);
    assert_eq!(header.method_name(), method);
    assert_eq!(header.cell_block_meta.unwrap_or_default().length() as usize, cells.len());
    (message, cells)
}

fn answer(call_id: u32, message: &impl Message, cells: &[u8]) -> Bytes {
    let meta = proto::CellBlockMeta { length: Some(cells.len() as u32) };
    let header = proto::ResponseHeader {
        call_id: Some(call_id),
        cell_block_meta: (!cells.is_empty()).then_some(meta),
        ..Default::default()
    };
    let mut rest = BytesMut::new();
    write_delimited(&header, &mut rest);
    write_delimited(message, &mut rest);
    rest.extend_from_slice(cells);
    with_total(&rest)
}

fn with_total(rest: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    out.extend_from_slice(&(rest.len() as u32).to_be_bytes());
    out.extend_from_slice(rest);
    out.freeze()
}

fn no_cells() -> cell::codec::CellBlockReader {
    Codec::KeyValue.read(Bytes::new())
}

fn put_cell(row: &[u8], qualifier: &[u8], timestamp: i64, value: &[u8]) -> KeyValue {
    KeyValue::new(row, b"cf", qualifier, timestamp, CellType::Put, value)
}

#[test]
fn get() {
    let (message, _) = request::<proto::GetRequest>(GET, "Get");
    assert_eq!(specified_region(&message.region), Some("a2331f8e4bb5d76a5eee741e708341a5"));
    let expected = Get {
        row: "r1".into(),
        selection: CellSelection {
            columns: vec![FamilyColumns { family: "cf".into(), qualifiers: Some(vec!["q1".into()]) }],
            time_range: TimeRange::ALL,
            ..CellSelection::default()
        }
        .into(),
        existence_only: false,
    };
    assert_eq!(from_proto::get(&message.get), Ok(expected));
}

#[test]
fn get_answers() {
    let answer_with = |result| proto::GetResponse { result: Some(result) };
    let mut block = BytesMut::new();
    Codec::KeyValue.write(&put_cell(b"r1", b"q1", 1_700_000_000_001, b"v1").view(0), &mut block);
    assert_eq!(answer(7, &answer_with(in_block(1)), &block), hex(GET_ANSWER));
    assert_eq!(answer(7, &answer_with(in_block(0)), &[]), hex(GET_ANSWER_EMPTY));
    assert_eq!(answer(7, &answer_with(existence(true)), &[]), hex(GET_ANSWER_EXISTS));
}

#[test]
fn exception_answer() {
    let exception = JavaException::new(class::NOT_SERVING_REGION, "tbl,,1 is not online on h,1,2");
    let header = proto::ResponseHeader {
        call_id: Some(7),
        exception: Some((&exception).into()),
        ..Default::default()
    };
    let mut rest = BytesMut::new();
    write_delimited(&header, &mut rest);
    assert_eq!(with_total(&rest), hex(NOT_SERVING));
}

#[test]
fn put() {
    let (message, _) = request::<proto::MutateRequest>(PUT, "Mutate");
    assert_eq!(specified_region(&message.region), Some("b83ad36fd36afd0eb5803a59ba4dda77"));
    let expected = Mutation::put("r1", vec![put_cell(b"r1", b"q1", LATEST_TIMESTAMP, b"v1")]);
    assert_eq!(from_proto::mutation(&message.mutation, &mut no_cells(), 0), Ok(expected));
    let response = proto::MutateResponse { processed: Some(true), ..Default::default() };
    assert_eq!(answer(11, &response, &[]), hex(PUT_ANSWER));
}

#[test]
fn delete_of_a_row() {
    let (message, _) = request::<proto::MutateRequest>(DELETE_ROW, "Mutate");
    let mutation = from_proto::mutation(&message.mutation, &mut no_cells(), 0).unwrap();
    assert_eq!(mutation, Mutation::delete("r1", Vec::new()));
    assert_eq!((mutation.kind, mutation.durability), (MutationKind::Delete, Durability::UseDefault));
}

#[test]
fn multi() {
    let (message, cells) = request::<proto::MultiRequest>(MULTI, "Multi");
    let mut block = Codec::KeyValue.read(cells);
    let [action] = &message.region_action[..] else { panic!("one region") };
    for (at, action) in action.action.iter().enumerate() {
        let row = format!("m{at}");
        let mutation = from_proto::mutation(action.mutation.as_ref().unwrap(), &mut block, 0).unwrap();
        let value = format!("x{at}");
        let cell = put_cell(row.as_bytes(), b"q", LATEST_TIMESTAMP, value.as_bytes());
        assert_eq!(mutation, Mutation::put(row, vec![cell]));
    }
    assert_eq!(block.remaining(), 0);
    let entry = |index| proto::ResultOrException { index: Some(index), ..Default::default() };
    let done = |index| proto::ResultOrException { result: Some(proto::Result::default()), ..entry(index) };
    let entries = vec![done(0), done(1), done(2)];
    let response = proto::MultiResponse {
        region_action_result: vec![proto::RegionActionResult {
            result_or_exception: entries,
            ..Default::default()
        }],
        region_statistics: Some(proto::MultiRegionLoadStats::default()),
        ..Default::default()
    };
    assert_eq!(answer(12, &response, &[]), hex(MULTI_ANSWER));
}

#[test]
fn cells_of_an_absent_region_are_skipped() {
    let (message, cells) = request::<proto::MultiRequest>(MULTI, "Multi");
    let mut block = Codec::KeyValue.read(cells);
    let actions = &message.region_action[0].action;
    for action in &actions[..2] {
        from_proto::skip_action(action, &mut block);
    }
    let last = from_proto::mutation(actions[2].mutation.as_ref().unwrap(), &mut block, 0).unwrap();
    assert_eq!(last.row, "m2");
}

#[test]
fn scan() {
    let (message, _) = request::<proto::ScanRequest>(SCAN, "Scan");
    let expected = Scan { start_row: "a".into(), stop_row: "z".into(), ..Scan::default() };
    assert_eq!(from_proto::scan(message.scan.as_ref().unwrap()), Ok(expected));
    assert_eq!(message.number_of_rows(), 100);
}

#[test]
fn scan_answer() {
    let (_, message, cells) = frame::<proto::ResponseHeader, proto::ScanResponse>(SCAN_ANSWER);
    let mut block = Codec::KeyValue.read(cells.clone());
    let rows: Vec<KeyValue> = message
        .cells_per_result
        .iter()
        .flat_map(|count| from_proto::result(&in_block(*count as usize), &mut block).unwrap())
        .collect();
    let names: Vec<_> = rows.iter().map(|cell| cell.view(0).row().to_vec()).collect();
    assert_eq!(names, [b"m0", b"m1", b"m2", b"r1"]);
    assert_eq!(block.remaining(), 0);
    let response = proto::ScanResponse {
        cells_per_result: vec![1; 4],
        scanner_id: message.scanner_id,
        more_results: Some(true),
        ttl: Some(60_000),
        stale: Some(false),
        partial_flag_per_result: vec![false; 4],
        more_results_in_region: Some(false),
        mvcc_read_point: Some(5),
        ..Default::default()
    };
    assert_eq!(answer(14, &response, &cells), hex(SCAN_ANSWER));
}
