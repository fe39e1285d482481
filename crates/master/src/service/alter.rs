//! Calls that change an existing table. Each call is checked immediately against the current
//! descriptor, and then starts a procedure.

use cell::schema::{FamilyDescriptor, TableDescriptor};
use proto::exception::Answer;

use super::tables::table_name;
use crate::master::Master;
use crate::procedure::{Change, Work};
use crate::refusal;

/// `ModifyTable`: replaces the descriptor.
pub(super) async fn modify(
    master: &Master,
    request: proto::ModifyTableRequest,
) -> Answer<proto::ModifyTableResponse> {
    let table = TableDescriptor::try_from(&request.table_schema).map_err(refusal::bad_schema)?;
    // Clients send the table name in two places. The one outside the descriptor is used.
    let mut table = TableDescriptor { name: table_name(&request.table_name)?, ..table };
    table.merge_configuration();
    table.families.values_mut().for_each(FamilyDescriptor::complete);
    let work = Work::ModifyTable {
        table: table.name.clone(),
        change: Change::Replace(Box::new(table)),
        reopen: request.reopen_regions(),
        target: None,
    };
    let proc_id = master.submit_checked(work, (request.nonce_group(), request.nonce())).await?;
    Ok(proto::ModifyTableResponse { proc_id: Some(proc_id) })
}

/// `AddColumn`: adds a family.
pub(super) async fn add_family(
    master: &Master,
    request: proto::AddColumnRequest,
) -> Answer<proto::AddColumnResponse> {
    let change = Change::AddFamily(family(&request.column_families)?);
    let nonce = (request.nonce_group(), request.nonce());
    let proc_id = submit(master, &request.table_name, change, nonce).await?;
    Ok(proto::AddColumnResponse { proc_id: Some(proc_id) })
}

/// `ModifyColumn`: replaces the descriptor of a family.
pub(super) async fn modify_family(
    master: &Master,
    request: proto::ModifyColumnRequest,
) -> Answer<proto::ModifyColumnResponse> {
    let change = Change::ModifyFamily(family(&request.column_families)?);
    let nonce = (request.nonce_group(), request.nonce());
    let proc_id = submit(master, &request.table_name, change, nonce).await?;
    Ok(proto::ModifyColumnResponse { proc_id: Some(proc_id) })
}

/// `DeleteColumn`: deletes a family.
pub(super) async fn delete_family(
    master: &Master,
    request: proto::DeleteColumnRequest,
) -> Answer<proto::DeleteColumnResponse> {
    let change = Change::DeleteFamily(request.column_name.clone());
    let nonce = (request.nonce_group(), request.nonce());
    let proc_id = submit(master, &request.table_name, change, nonce).await?;
    Ok(proto::DeleteColumnResponse { proc_id: Some(proc_id) })
}

async fn submit(master: &Master, table: &proto::TableName, change: Change, nonce: (u64, u64)) -> Answer<u64> {
    let work = Work::ModifyTable { table: table_name(table)?, change, reopen: true, target: None };
    master.submit_checked(work, nonce).await
}

fn family(schema: &proto::ColumnFamilySchema) -> Answer<FamilyDescriptor> {
    let mut family = FamilyDescriptor::try_from(schema).map_err(refusal::bad_schema)?;
    family.complete();
    Ok(family)
}

/// `GetSchemaAlterStatus`: how many regions do not use the current descriptor yet.
pub(super) async fn status(
    master: &Master,
    request: proto::GetSchemaAlterStatusRequest,
) -> Answer<proto::GetSchemaAlterStatusResponse> {
    let (context, table) = (master.context(), table_name(&request.table_name)?);
    let (left, all) =
        context.tables.reopening(&table).unwrap_or((0, context.assignment.regions_of(&table).len()));
    Ok(proto::GetSchemaAlterStatusResponse {
        yet_to_update_regions: Some(u32::try_from(left).unwrap_or(u32::MAX)),
        total_regions: Some(u32::try_from(all).unwrap_or(u32::MAX)),
    })
}
