//! Versions, the status of the cluster, lists of tables, and regions.

use cell::schema::TableName;
use hyper::StatusCode;

use crate::call::Call;
use crate::gateway::Gateway;
use crate::media::{DESCRIPTIONS, VERSIONS};
use crate::models::Model;
use crate::models::cluster::{ClusterVersion, ServerVersion, StatusModel};
use crate::models::tables::{RegionModel, TableInfo, TableList};
use crate::reply::{Failure, Reply, Result, is_missing};

impl Gateway {
    pub(crate) fn version(&self, call: &Call) -> Result<Reply> {
        let media = call.response_media(DESCRIPTIONS)?;
        Ok(ServerVersion.reply(media).uncached())
    }

    pub(crate) async fn cluster_version(&self, call: &Call) -> Result<Reply> {
        let media = call.response_media(VERSIONS)?;
        let status = self.client.admin().cluster_status().await.map_err(|_| unavailable())?;
        Ok(ClusterVersion(status.version).reply(media).uncached())
    }

    pub(crate) async fn cluster_status(&self, call: &Call) -> Result<Reply> {
        let media = call.response_media(DESCRIPTIONS)?;
        let status = self.client.admin().cluster_status().await.map_err(|_| unavailable())?;
        Ok(StatusModel(&status).reply(media).uncached())
    }

    pub(crate) async fn tables(&self, call: &Call) -> Result<Reply> {
        let media = call.response_media(DESCRIPTIONS)?;
        let names =
            self.client.admin().list_tables(None, false).await.map_err(|error| Failure::of(&error))?;
        let mut names: Vec<String> = names.iter().map(ToString::to_string).collect();
        names.sort();
        Ok(TableList(names).reply(media).uncached())
    }

    pub(crate) async fn exists(&self, table: &TableName) -> Result<Reply> {
        let exists = self.client.admin().table_exists(table).await.map_err(|error| Failure::of(&error))?;
        match exists {
            true => Ok(Reply::empty(StatusCode::OK).uncached()),
            false => Err(Failure::not_found()),
        }
    }

    pub(crate) async fn regions(&self, call: &Call, table: TableName) -> Result<Reply> {
        let media = call.response_media(DESCRIPTIONS)?;
        let located =
            self.client.table(table.clone()).regions().await.map_err(|error| match is_missing(&error) {
                true => Failure::not_found(),
                false => Failure::of(&error),
            })?;
        let region = |location: &std::sync::Arc<client::Location>| RegionModel {
            name: location.region.name(),
            id: location.region.region_id as i64,
            start_key: location.region.start_key.clone(),
            end_key: location.region.end_key.clone(),
            location: format!("{}:{}", location.server.host, location.server.port),
        };
        let regions = located.iter().map(region).collect();
        Ok(TableInfo { name: table.to_string(), regions }.reply(media).uncached())
    }
}

fn unavailable() -> Failure {
    Failure::line(StatusCode::SERVICE_UNAVAILABLE, "Unavailable")
}
