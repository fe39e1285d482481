//! The attacked table, and requests for it.
#![allow(dead_code, reason = "each test uses a part of this module")]

use bytes::{BufMut, Bytes, BytesMut};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use prost::Message;
use proto::mutation_proto::MutationType;

use crate::connection::Connection;

/// A table of one region.
#[derive(Clone)]
pub struct Table {
    pub port: u16,
    region: Bytes,
}

impl Table {
    /// Finds the region of `t` and puts the bystanders' row into it.
    pub fn find(port: u16) -> Table {
        let mut connection = Connection::open(port).unwrap();
        let meta = Table { port, region: "hbase:meta,,1".into() };
        let request = proto::ScanRequest { number_of_rows: Some(100), ..meta.scan() };
        let (_, cells): (proto::ScanResponse, _) = connection.call_ok("Scan", &request);
        let region =
            rows_of(&cells).into_iter().find(|row| row.starts_with(b"t,")).expect("the table's region");
        let table = Table { port, region };
        let (message, cells) = table.put(b"bystander", b"q", b"untouched");
        connection.call("Mutate", &message, &cells).unwrap().unwrap();
        table
    }

    pub fn specifier(&self) -> proto::RegionSpecifier {
        proto::RegionSpecifier { r#type: 1, value: self.region.clone() }
    }

    pub fn get(&self, row: &'static [u8]) -> proto::GetRequest {
        let get = proto::Get { row: row.into(), ..proto::Get::default() };
        proto::GetRequest { region: self.specifier(), get }
    }

    /// A request that opens a scan of all rows and reads one row.
    pub fn scan(&self) -> proto::ScanRequest {
        proto::ScanRequest {
            region: Some(self.specifier()),
            scan: Some(proto::Scan::default()),
            number_of_rows: Some(1),
            client_handles_partials: Some(true),
            client_handles_heartbeats: Some(true),
            ..proto::ScanRequest::default()
        }
    }

    /// A put of one cell, and its cell block.
    pub fn put(&self, row: &[u8], qualifier: &[u8], value: &[u8]) -> (proto::MutateRequest, BytesMut) {
        let mutation = mutation(row);
        let mut cells = BytesMut::new();
        put_cell(&mut cells, row, qualifier, value);
        let message =
            proto::MutateRequest { region: self.specifier(), mutation, ..proto::MutateRequest::default() };
        (message, cells)
    }

    /// A batch of small puts, and its cell block.
    pub fn batch(&self, rows: usize) -> (proto::MultiRequest, BytesMut) {
        let (mut actions, mut cells) = (Vec::new(), BytesMut::new());
        for index in 0..rows {
            let row = format!("b{index:07}").into_bytes();
            put_cell(&mut cells, &row, b"q", b"v");
            actions.push(proto::Action {
                index: Some(index as u32),
                mutation: Some(mutation(&row)),
                ..proto::Action::default()
            });
        }
        let region_action = proto::RegionAction {
            region: self.specifier(),
            action: actions,
            ..proto::RegionAction::default()
        };
        let message =
            proto::MultiRequest { region_action: vec![region_action], ..proto::MultiRequest::default() };
        (message, cells)
    }

    /// A scan with a filter nested to this depth.
    pub fn deeply_filtered(&self, depth: usize) -> proto::ScanRequest {
        let named = |name: &str, bytes: Bytes| proto::Filter {
            name: format!("org.apache.hadoop.hbase.filter.{name}"),
            serialized_filter: Some(bytes),
        };
        let mut filter =
            named("KeyOnlyFilter", proto::KeyOnlyFilter { len_as_val: false }.encode_to_vec().into());
        for _ in 0..depth {
            filter = named("SkipFilter", proto::SkipFilter { filter }.encode_to_vec().into());
        }
        let scan = proto::Scan { filter: Some(filter), ..proto::Scan::default() };
        proto::ScanRequest { scan: Some(scan), ..self.scan() }
    }
}

pub fn mutation(row: &[u8]) -> proto::MutationProto {
    proto::MutationProto {
        row: Some(Bytes::copy_from_slice(row)),
        mutate_type: Some(MutationType::Put.into()),
        associated_cell_count: Some(1),
        ..proto::MutationProto::default()
    }
}

/// Appends a cell in cell block format: its length, then its bytes.
pub fn put_cell(out: &mut BytesMut, row: &[u8], qualifier: &[u8], value: &[u8]) {
    let cell = KeyValue::new(row, b"f", qualifier, LATEST_TIMESTAMP, CellType::Put, value);
    out.put_u32(cell.bytes().len() as u32);
    out.put_slice(cell.bytes());
}

/// The row of each cell of a block.
fn rows_of(cells: &Bytes) -> Vec<Bytes> {
    let mut reader = cell::codec::Codec::KeyValue.read(cells.clone());
    std::iter::from_fn(|| reader.next().map(|cell| Bytes::copy_from_slice(cell.unwrap().view(0).row())))
        .collect()
}
