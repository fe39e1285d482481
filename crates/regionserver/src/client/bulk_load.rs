//! `PrepareBulkLoad`, `BulkLoadHFile` and `CleanupBulkLoad`: adds HFiles to regions.
//!
//! A client first requests a staging directory, whose URI serves as a token. With a token, as in
//! HBase, a load that fails is answered with `loaded` false, whatever the reason: the client then
//! reads the regions again and retries.
//!
//! Only files of a staging directory, or outside of the root directory, are moved. A file elsewhere
//! in the root directory may belong to a table, so it is copied.
//!
//! Source: HBase `SecureBulkLoadManager`, `RSRpcServices.bulkLoadHFile`.

use std::sync::Arc;

use cell::schema::TableName;
use engine::Region;
use engine::region::{BulkFile, BulkLoad, BulkSource, MovableFile};
use fs::FilePath;
use proto::exception::{Answer, JavaException};
use tracing::warn;

use super::CallContext;
use crate::errors::java_exception;
use crate::foreign_files::{ForeignFile, FoundFile};
use crate::server::RegionServer;

/// The name of the directory for the files of clients that did not request one.
const NO_TOKEN: &str = "none";

/// Serves a `PrepareBulkLoad`.
pub(super) async fn prepare(
    server: &RegionServer,
    request: &proto::PrepareBulkLoadRequest,
    context: &CallContext,
) -> Answer<proto::PrepareBulkLoadResponse> {
    if let Some(region) = &request.region {
        server.regions().find(&region.value)?;
    }
    let table = TableName::try_from(&request.table_name)
        .map_err(|error| JavaException::do_not_retry(error.to_string()))?;
    let user = context.client.as_ref().and_then(|client| client.user()).unwrap_or("grampus");
    let (fs, random) = (&*server.services().fs, &*server.env().random);
    let dir = server.root().create_staging(fs, random, user, &table).await;
    let dir = dir.map_err(|error| JavaException::io(error.to_string()))?;
    Ok(proto::PrepareBulkLoadResponse { bulk_token: server.foreign_files().uri_of(&dir) })
}

/// Serves a `CleanupBulkLoad`. HBase removes any directory that the client names.
pub(super) async fn clean_up(
    server: &RegionServer,
    request: &proto::CleanupBulkLoadRequest,
) -> Answer<proto::CleanupBulkLoadResponse> {
    let dir = staging_dir(server, &request.bulk_token).await?;
    let removed = server.services().fs.delete(&dir).await;
    removed
        .map_err(|error| JavaException::io(format!("Failed to clean up {}: {error}", request.bulk_token)))?;
    Ok(proto::CleanupBulkLoadResponse {})
}

/// Serves a `BulkLoadHFile`.
pub(super) async fn load(
    server: &Arc<RegionServer>,
    request: &proto::BulkLoadHFileRequest,
) -> Answer<proto::BulkLoadHFileResponse> {
    let begun = server.env().clock.monotonic();
    let own_id = server.cluster_id();
    if request.cluster_ids.iter().any(|id| id == own_id) {
        // The load was replicated in a circle.
        return Ok(proto::BulkLoadHFileResponse { loaded: true });
    }
    let region = server.regions().find(&request.region.value)?;
    let loaded = load_into(server, &region, request).await;
    server.requests().record_bulk_load(begun, server.env().clock.monotonic());
    let loaded = match loaded {
        // It is unknown whether the files were loaded.
        Err(error) if region.mvcc().check_log().is_ok() && request.bulk_token.is_some() => {
            warn!(region = %region.name(), %error, "bulk load failed");
            false
        }
        loaded => loaded?,
    };
    if loaded {
        server.consider_split(&region);
    }
    Ok(proto::BulkLoadHFileResponse { loaded })
}

async fn load_into(
    server: &RegionServer,
    region: &Region,
    request: &proto::BulkLoadHFileRequest,
) -> Answer<bool> {
    let token = match &request.bulk_token {
        Some(token) => staging_dir(server, token).await?,
        None => server.root().staging_dir().join(NO_TOKEN),
    };
    let mut files = Vec::with_capacity(request.family_path.len());
    for file in &request.family_path {
        let found = server.foreign_files().find(&file.path).await.map_err(JavaException::io)?;
        // The same name may exist in several families and directories.
        let unique = format!("{:016x}", server.env().random.next_u64());
        let staged = token.join(&unique);
        files.push(BulkFile { family: file.family.clone(), source: source_of(server, found, &staged) });
    }
    let mut cluster_ids = request.cluster_ids.clone();
    cluster_ids.push(server.cluster_id().to_owned());
    let load = BulkLoad {
        files,
        assigns_seq_id: request.bulk_token.is_some() || request.assign_seq_num(),
        copies: request.copy_file(),
        cluster_ids,
        replicate: request.replicate(),
    };
    region.bulk_load(load).await.map_err(|error| java_exception(&error))
}

/// How the file gets into the region. `staged` is the path to which it can be moved first.
fn source_of(server: &RegionServer, found: FoundFile, staged: &FilePath) -> BulkSource {
    match found {
        FoundFile::Own(path) if path.is_at_or_below(&server.root().staging_dir()) => BulkSource::Own(path),
        FoundFile::Own(path) => BulkSource::Other(server.services().fs.clone(), path),
        FoundFile::Foreign(ForeignFile { fs, path, root: None }) => BulkSource::Other(fs, path),
        FoundFile::Foreign(ForeignFile { fs, path, root: Some(root) }) => {
            let (staged, own) = (root.join(staged.as_str()), staged.clone());
            BulkSource::Movable(MovableFile { fs, path, staged, own })
        }
    }
}

/// The staging directory of a token.
async fn staging_dir(server: &RegionServer, token: &str) -> Answer<FilePath> {
    match server.foreign_files().find(token).await {
        Ok(FoundFile::Own(dir)) if server.root().is_staging(&dir) => Ok(dir),
        Ok(_) => Err(JavaException::do_not_retry(format!("{token} is not a staging directory"))),
        Err(error) => Err(JavaException::do_not_retry(error)),
    }
}
