//! The calls of a bulk load: staging directories, answers, and loops of replicated loads.

use crate::world::{World, run};
use bytes::{Bytes, BytesMut};
use cell::cell::CellType;
use cell::{KeyValue, query};
use fs::{FilePath, FileSystem};
use hfile::{Writer, WriterOptions};
use prost::Message;
use proto::bulk_load_h_file_request::FamilyPath;
use proto::exception::class;

async fn write_file(world: &World, path: &str, row: &str) {
    let path = FilePath::new(path);
    world.disk.make_dirs(&path.parent()).await.unwrap();
    let options = WriterOptions { include_mvcc: false, ..WriterOptions::default() };
    let mut writer = Writer::create(&world.disk, &path, options).await.unwrap();
    let cell = KeyValue::new(row.as_bytes(), b"f", b"q", 5, CellType::Put, b"v");
    writer.append(&cell.view(0)).await.unwrap();
    writer.finish().await.unwrap();
}

async fn call<M: Message + Default>(
    world: &World,
    method: &'static str,
    request: &impl Message,
) -> Result<M, proto::exception::JavaException> {
    let reply = world.call_by(rpc::Codec::KeyValue, method, request, Bytes::new()).await?;
    Ok(M::decode(reply.message).unwrap())
}

async fn prepare(world: &World) -> String {
    let request = proto::PrepareBulkLoadRequest {
        table_name: proto::TableName { namespace: "default".into(), qualifier: "t".into() },
        region: Some(world.region.clone()),
    };
    call::<proto::PrepareBulkLoadResponse>(world, "PrepareBulkLoad", &request).await.unwrap().bulk_token
}

fn request(world: &World, token: Option<&str>, family: &str, path: &str) -> proto::BulkLoadHFileRequest {
    proto::BulkLoadHFileRequest {
        region: world.region.clone(),
        family_path: vec![FamilyPath { family: family.to_owned().into(), path: path.into() }],
        bulk_token: token.map(Into::into),
        ..Default::default()
    }
}

async fn load(
    world: &World,
    request: &proto::BulkLoadHFileRequest,
) -> Result<bool, proto::exception::JavaException> {
    let response = call::<proto::BulkLoadHFileResponse>(world, "BulkLoadHFile", request).await;
    response.map(|response| response.loaded)
}

async fn rows(world: &World) -> usize {
    world.served().scan_all(&query::Scan::default()).await.unwrap().cells.len()
}

#[test]
fn a_load_with_a_token_is_staged_and_cleaned_up() {
    run(async {
        let world = World::begin().await;
        let token = prepare(&world).await;
        assert!(token.starts_with("/staging/grampus__t__"), "{token}");
        write_file(&world, &format!("{token}/f/a"), "a").await;
        assert!(load(&world, &request(&world, Some(&token), "f", &format!("{token}/f/a"))).await.unwrap());
        assert_eq!(rows(&world).await, 1);
        assert_eq!(world.server.requests().bulk_load_times.micros().count(), 1);
        let request = proto::CleanupBulkLoadRequest { bulk_token: token.clone(), region: None };
        call::<proto::CleanupBulkLoadResponse>(&world, "CleanupBulkLoad", &request).await.unwrap();
        assert!(world.disk.stat(&FilePath::new(&token)).await.unwrap().is_none());
    });
}

/// With a token, a failed load is answered with false; without one, by an exception.
#[test]
fn failures_are_answered_as_by_hbase() {
    run(async {
        let world = World::begin().await;
        let token = prepare(&world).await;
        write_file(&world, "out/f/a", "a").await;
        assert!(!load(&world, &request(&world, Some(&token), "nofamily", "/out/f/a")).await.unwrap());
        assert!(!load(&world, &request(&world, Some(&token), "f", "/out/f/missing")).await.unwrap());
        let error = load(&world, &request(&world, None, "nofamily", "/out/f/a")).await.unwrap_err();
        assert!(error.is(class::DO_NOT_RETRY_IO), "{error}");
        assert!(error.message.contains("No such column family nofamily"), "{error}");
        assert!(load(&world, &request(&world, None, "f", "/out/f/missing")).await.is_err());
        assert!(load(&world, &request(&world, None, "f", "/out/../f")).await.is_err());
        assert_eq!(rows(&world).await, 0);
        // A file elsewhere in the root directory may belong to a table: it is copied.
        assert!(load(&world, &request(&world, None, "f", "/out/f/a")).await.unwrap());
        assert!(world.disk.contents(&FilePath::new("out/f/a")).is_some());
    });
}

#[test]
fn only_staging_directories_are_removed() {
    run(async {
        let world = World::begin().await;
        for directory in ["/data", "/staging", "/", "/staging/a/b", "/staging/../data"] {
            let request = proto::CleanupBulkLoadRequest { bulk_token: directory.into(), region: None };
            let refused = call::<proto::CleanupBulkLoadResponse>(&world, "CleanupBulkLoad", &request).await;
            assert!(refused.is_err(), "{directory}");
        }
        assert!(world.disk.stat(&FilePath::new("data")).await.unwrap().is_some());
        let unknown = load(&world, &request(&world, Some("/data"), "f", "/out/f/a")).await;
        assert_eq!(unknown, Ok(false), "a token that is no staging directory");
    });
}

#[test]
fn a_load_that_has_been_in_this_cluster_is_not_repeated() {
    run(async {
        let world = World::begin().await;
        let mut request = request(&world, None, "f", "/out/f/missing");
        request.cluster_ids = vec!["other".into(), "cluster".into()];
        assert!(load(&world, &request).await.unwrap());
        assert_eq!(rows(&world).await, 0);
        // Only the id of this cluster ends the circle.
        request.cluster_ids = vec!["other".into()];
        assert!(load(&world, &request).await.is_err());
    });
}

/// The calls also work over the network.
#[test]
fn a_client_without_a_user_can_prepare_a_load() {
    run(async {
        let world = World::begin().await;
        let request = proto::PrepareBulkLoadRequest {
            table_name: proto::TableName { namespace: "default".into(), qualifier: "t".into() },
            region: None,
        };
        let answer = world.call_raw("PrepareBulkLoad", request.encode_to_vec().into(), BytesMut::new()).await;
        let response = proto::PrepareBulkLoadResponse::decode(answer.message).unwrap();
        assert!(response.bulk_token.contains("__t__"), "{response:?}");
    });
}
