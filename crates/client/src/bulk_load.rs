//! Bulk loads: HFiles that the servers add to regions.

use std::sync::Arc;

use bytes::Bytes;
use proto::bulk_load_h_file_request::FamilyPath;
use proto::{
    BulkLoadHFileRequest, BulkLoadHFileResponse, CleanupBulkLoadRequest, CleanupBulkLoadResponse,
    PrepareBulkLoadRequest, PrepareBulkLoadResponse,
};
use rpc::CellBlock;

use crate::error::Result;
use crate::locations::Location;
use crate::table::Table;

/// A file to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileToLoad {
    /// The family.
    pub family: Bytes,
    /// The URI of the file, as the server can read it.
    pub uri: String,
}

impl Table {
    /// Requests a staging directory for a bulk load. Returns its token.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn prepare_bulk_load(&self) -> Result<String> {
        let request = |location: &Location| PrepareBulkLoadRequest {
            table_name: self.name().into(),
            region: Some(location.specifier()),
        };
        let (response, _): (PrepareBulkLoadResponse, Bytes) =
            self.at_row(&Bytes::new(), "PrepareBulkLoad", CellBlock::new(), request).await?;
        Ok(response.bulk_token)
    }

    /// Adds files to the region that contains `row`: all or none. Returns `false` if the server did
    /// not load them, for example because the region has been split.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn bulk_load(
        &self,
        row: &Bytes,
        token: &str,
        files: &[FileToLoad],
        copies: bool,
    ) -> Result<bool> {
        let family_path: Vec<FamilyPath> = files
            .iter()
            .map(|file| FamilyPath { family: file.family.clone(), path: file.uri.clone() })
            .collect();
        let request = |location: &Location| BulkLoadHFileRequest {
            region: location.specifier(),
            family_path: family_path.clone(),
            assign_seq_num: Some(true),
            bulk_token: Some(token.to_owned()),
            copy_file: Some(copies),
            ..Default::default()
        };
        let (response, _): (BulkLoadHFileResponse, Bytes) =
            self.at_row(row, "BulkLoadHFile", CellBlock::new(), request).await?;
        Ok(response.loaded)
    }

    /// Removes the staging directory of a bulk load.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn clean_up_bulk_load(&self, token: &str) -> Result<()> {
        let request = |location: &Location| CleanupBulkLoadRequest {
            bulk_token: token.to_owned(),
            region: Some(location.specifier()),
        };
        let (_, _): (CleanupBulkLoadResponse, Bytes) =
            self.at_row(&Bytes::new(), "CleanupBulkLoad", CellBlock::new(), request).await?;
        Ok(())
    }

    /// Reads the locations of all regions again, and returns them in order.
    ///
    /// # Errors
    /// [`Error`](crate::Error).
    pub async fn fresh_regions(&self) -> Result<Vec<Arc<Location>>> {
        self.client().shared.locations.forget_table(self.name());
        self.regions().await
    }
}
