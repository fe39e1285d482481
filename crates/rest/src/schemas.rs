//! Creation, change and deletion of tables.

use cell::schema::TableName;
use client::{Admin, Error};
use hyper::StatusCode;
use proto::exception::class;

use crate::call::Call;
use crate::gateway::Gateway;
use crate::media::{CELLS, DESCRIPTIONS};
use crate::models::Model;
use crate::models::schema::SchemaModel;
use crate::reply::{Failure, Reply, Result};

impl Gateway {
    pub(crate) async fn schema(&self, call: &Call, table: &TableName) -> Result<Reply> {
        let media = call.response_media(DESCRIPTIONS)?;
        let found = self.client.admin().describe(table).await.map_err(|error| Failure::of(&error))?;
        Ok(SchemaModel::of(&found).reply(media).uncached())
    }

    /// Creates a table. An existing one is replaced, or with `adds`, gets the families of the
    /// request.
    pub(crate) async fn put_schema(&self, call: &Call, table: TableName, adds: bool) -> Result<Reply> {
        let media = call.body_media(CELLS)?;
        let schema = SchemaModel::decode(media, &call.body)?;
        let admin = self.client.admin();
        let exists = admin.table_exists(&table).await.map_err(|error| Failure::of(&error))?;
        match (exists, adds) {
            (true, true) => add_families(&admin, &table, &schema).await,
            (true, false) => {
                let descriptor = schema.descriptor(table.clone())?;
                let modify = admin.modify_table(&descriptor);
                while_disabled(&admin, &table, modify).await.map_err(|error| Failure::of(&error))?;
                Ok(Reply::created(&call.url()))
            }
            (false, _) => match admin.create_table(&schema.descriptor(table)?, &[]).await {
                Ok(()) => Ok(Reply::created(&call.url())),
                // Another client has created it in the meantime.
                Err(error) if error.is_class(class::TABLE_EXISTS) => {
                    Err(Failure::line(StatusCode::NOT_MODIFIED, "Not modified"))
                }
                Err(error) => Err(Failure::of(&error)),
            },
        }
    }

    /// Disables a table if it is enabled, and deletes it.
    pub(crate) async fn delete_table(&self, table: &TableName) -> Result<Reply> {
        let admin = self.client.admin();
        let delete = async {
            if admin.is_enabled(table).await? {
                admin.disable_table(table).await?;
            }
            admin.delete_table(table).await
        };
        delete.await.map_err(|error: Error| Failure::of(&error))?;
        Ok(Reply::empty(StatusCode::OK))
    }
}

async fn add_families(admin: &Admin, table: &TableName, schema: &SchemaModel) -> Result<Reply> {
    let families: Vec<_> = schema.families.iter().map(|family| family.descriptor()).collect::<Result<_>>()?;
    let existing = admin.describe(table).await.map_err(|error| Failure::of(&error))?;
    let change = async {
        for family in &families {
            match existing.families.contains_key(&family.name) {
                true => admin.modify_family(table, family).await?,
                false => admin.add_family(table, family).await?,
            }
        }
        Ok(())
    };
    let unavailable = |_| Failure::line(StatusCode::SERVICE_UNAVAILABLE, "Unavailable");
    while_disabled(admin, table, change).await.map_err(unavailable)?;
    Ok(Reply::empty(StatusCode::OK))
}

/// Runs a change of a table while the table is disabled, as HBase's REST server does. The table is
/// enabled again even if the change fails.
async fn while_disabled(
    admin: &Admin,
    table: &TableName,
    change: impl Future<Output = client::Result<()>>,
) -> client::Result<()> {
    if admin.is_enabled(table).await? {
        admin.disable_table(table).await?;
    }
    let changed = change.await;
    admin.enable_table(table).await?;
    changed
}
