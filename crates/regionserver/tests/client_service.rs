//! `ClientService` behaves the same for a caller in the process and for one across the network.

use crate::world::{World, run};
use bytes::{BufMut, Bytes, BytesMut};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use proto::exception::class;
use regionserver::LocalCaller;
use wire::service::{CellRequest, ClientService, Remote};

fn put(region: &proto::RegionSpecifier, row: &'static str) -> CellRequest<proto::MutateRequest> {
    let cell = KeyValue::new(row.as_bytes(), b"f", b"q", LATEST_TIMESTAMP, CellType::Put, b"v");
    let mut cells = BytesMut::new();
    cells.put_u32(cell.bytes().len() as u32);
    cells.put_slice(cell.bytes());
    let mutation = proto::MutationProto {
        row: Some(row.into()),
        mutate_type: Some(proto::mutation_proto::MutationType::Put.into()),
        associated_cell_count: Some(1),
        ..Default::default()
    };
    let message = proto::MutateRequest { region: region.clone(), mutation, ..Default::default() };
    CellRequest { message, cells: cells.freeze() }
}

fn get(region: &proto::RegionSpecifier, row: &'static str) -> CellRequest<proto::GetRequest> {
    let get = proto::Get { row: row.into(), ..Default::default() };
    proto::GetRequest { region: region.clone(), get }.into()
}

/// The suite. `row` is a row that no other run of it uses.
async fn check(service: &dyn ClientService, region: &proto::RegionSpecifier, row: &'static str) {
    let written = service.mutate(put(region, row)).await.unwrap();
    assert!(written.message.processed());
    let read = service.get(get(region, row)).await.unwrap();
    assert_eq!(read.message.result.unwrap().associated_cell_count(), 1);
    assert!(read.cells.ends_with(b"v"), "cells go into the cell block");
    let absent = service.get(get(region, "absent")).await.unwrap();
    assert!(absent.cells.is_empty());

    let get = proto::Get { row: row.into(), ..Default::default() };
    let action = proto::Action { index: Some(0), get: Some(get), ..Default::default() };
    let actions = proto::RegionAction { region: region.clone(), action: vec![action], ..Default::default() };
    let multi = proto::MultiRequest { region_action: vec![actions], ..Default::default() };
    let answered = service.multi(multi.into()).await.unwrap();
    assert_eq!(answered.message.region_action_result[0].result_or_exception.len(), 1);
    assert!(answered.cells.ends_with(b"v"));

    let scan = proto::Scan { start_row: Some(row.into()), ..Default::default() };
    let request = proto::ScanRequest {
        region: Some(region.clone()),
        scan: Some(scan),
        number_of_rows: Some(100),
        close_scanner: Some(true),
        ..Default::default()
    };
    let scanned = service.scan(request.into()).await.unwrap();
    assert!(scanned.message.cells_per_result.iter().all(|cells| *cells == 1));
    assert!(!scanned.cells.is_empty());

    let elsewhere =
        proto::RegionSpecifier { r#type: 1, value: Bytes::from_static(b"u,,1.0123456789abcdef.") };
    let error = service.get(self::get(&elsewhere, row)).await.unwrap_err();
    assert!(error.is(class::NOT_SERVING_REGION) && !error.do_not_retry, "{error}");
}

#[test]
fn a_caller_in_the_process_and_one_across_the_network_get_the_same_answers() {
    run(async {
        let world = World::begin().await;
        check(&Remote(LocalCaller(world.server.clone())), &world.region, "local").await;
        check(&Remote(world.remote_caller()), &world.region, "remote").await;
    });
}
