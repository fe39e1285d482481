//! Calls that create tables, change their state, and describe them.

use cell::schema::{TableDescriptor, TableName};
use proto::exception::{Answer, JavaException};

use super::selection::TableSelection;
use crate::master::Master;
use crate::procedure::{TablePlan, Work};
use crate::tables::regions_between;
use crate::{limits, refusal, sanity};

/// `CreateTable`: checks the request immediately, then starts a procedure.
pub(super) async fn create(
    master: &Master,
    request: proto::CreateTableRequest,
) -> Answer<proto::CreateTableResponse> {
    let mut table = TableDescriptor::try_from(&request.table_schema).map_err(refusal::bad_schema)?;
    table.merge_configuration();
    table.families.values_mut().for_each(cell::schema::FamilyDescriptor::complete);
    limits::check_table_name(&table.name)?;
    sanity::check_table(&table)?;
    sanity::check_split_keys(&request.split_keys)?;
    // HBase's master records here how the table's files are tracked, and clients see it in the
    // descriptor.
    table
        .attributes
        .entry("hbase.store.file-tracker.impl".into())
        .or_insert_with(|| bytes::Bytes::from_static(b"DEFAULT"));
    let regions = regions_between(&table.name, &request.split_keys, master.context().env.clock.now_ms());
    limits::check_regions(&regions)?;
    let work = Work::CreateTable(TablePlan { table: Box::new(table), regions });
    let proc_id = master.submit_checked(work, (request.nonce_group(), request.nonce())).await?;
    Ok(proto::CreateTableResponse { proc_id: Some(proc_id) })
}

/// `DeleteTable`.
pub(super) async fn delete(
    master: &Master,
    request: proto::DeleteTableRequest,
) -> Answer<proto::DeleteTableResponse> {
    let table = table_name(&request.table_name)?;
    let (work, nonce) = (Work::DeleteTable(table.clone()), (request.nonce_group(), request.nonce()));
    let proc_id = match table.is_meta() {
        true => master.submit(work, nonce).await?,
        false => master.submit_checked(work, nonce).await?,
    };
    Ok(proto::DeleteTableResponse { proc_id: Some(proc_id) })
}

/// `truncateTable`.
pub(super) async fn truncate(
    master: &Master,
    request: proto::TruncateTableRequest,
) -> Answer<proto::TruncateTableResponse> {
    let table = table_name(&request.table_name)?;
    let preserve_splits = request.preserve_splits();
    let work = Work::TruncateTable { table, preserve_splits, plan: None, stages_first: false };
    let proc_id = master.submit_checked(work, (request.nonce_group(), request.nonce())).await?;
    Ok(proto::TruncateTableResponse { proc_id: Some(proc_id) })
}

/// `EnableTable`.
pub(super) async fn enable(
    master: &Master,
    request: proto::EnableTableRequest,
) -> Answer<proto::EnableTableResponse> {
    let work = Work::EnableTable(table_name(&request.table_name)?);
    let proc_id = master.submit(work, (request.nonce_group(), request.nonce())).await?;
    Ok(proto::EnableTableResponse { proc_id: Some(proc_id) })
}

/// `DisableTable`.
pub(super) async fn disable(
    master: &Master,
    request: proto::DisableTableRequest,
) -> Answer<proto::DisableTableResponse> {
    let work = Work::DisableTable(table_name(&request.table_name)?);
    let proc_id = master.submit_checked(work, (request.nonce_group(), request.nonce())).await?;
    Ok(proto::DisableTableResponse { proc_id: Some(proc_id) })
}

/// `FlushTable`, which clients of 2.6 and 3.0 use.
pub(super) async fn flush(
    master: &Master,
    request: proto::FlushTableRequest,
) -> Answer<proto::FlushTableResponse> {
    let nonce = (request.nonce_group(), request.nonce());
    let work = Work::FlushTable(table_name(&request.table_name)?, request.column_family);
    let proc_id = master.submit(work, nonce).await?;
    Ok(proto::FlushTableResponse { proc_id: Some(proc_id) })
}

/// `GetTableState`: the state in memory, which follows `hbase:meta`.
pub(super) async fn state(
    master: &Master,
    request: proto::GetTableStateRequest,
) -> Answer<proto::GetTableStateResponse> {
    let table = table_name(&request.table_name)?;
    let state = master.context().tables.state(&table).ok_or_else(|| refusal::table_not_found(&table))?;
    Ok(proto::GetTableStateResponse { table_state: state.into() })
}

/// `GetTableDescriptors`: by names, or by pattern and namespace. Missing tables are omitted.
pub(super) async fn descriptors(
    master: &Master,
    request: proto::GetTableDescriptorsRequest,
) -> Answer<proto::GetTableDescriptorsResponse> {
    let tables = &master.context().tables;
    let found: Vec<_> = if request.table_names.is_empty() {
        let selection = TableSelection::new(
            request.regex.as_deref(),
            request.namespace.as_deref(),
            request.include_sys_tables(),
        )?;
        require_namespace(master, &selection)?;
        selection.select(tables.all(), |table| &table.name)?
    } else {
        let names: Vec<_> = request.table_names.iter().map(table_name).collect::<Result<_, _>>()?;
        names.iter().filter_map(|name| tables.descriptor(name)).collect()
    };
    Ok(proto::GetTableDescriptorsResponse {
        table_schema: found.iter().map(|table| (&**table).into()).collect(),
    })
}

/// Returns `NamespaceNotFoundException` if the selection is limited to a namespace that does not
/// exist.
fn require_namespace(master: &Master, selection: &TableSelection) -> Answer<()> {
    match selection.namespace() {
        Some(namespace) => master.context().namespaces.get(namespace).map(|_| ()),
        None => Ok(()),
    }
}

/// `GetTableNames`: by pattern and namespace.
pub(super) async fn names(
    master: &Master,
    request: proto::GetTableNamesRequest,
) -> Answer<proto::GetTableNamesResponse> {
    let selection = TableSelection::new(
        request.regex.as_deref(),
        request.namespace.as_deref(),
        request.include_sys_tables(),
    )?;
    require_namespace(master, &selection)?;
    let found = selection.select(master.context().tables.all(), |table| &table.name)?;
    Ok(proto::GetTableNamesResponse { table_names: found.iter().map(|table| (&table.name).into()).collect() })
}

/// `ListTableNamesByState`, which clients of 2.6 use.
pub(super) async fn names_by_state(
    master: &Master,
    request: proto::ListTableNamesByStateRequest,
) -> Answer<proto::ListTableNamesByStateResponse> {
    let found = master.context().tables.by_enabled(request.is_enabled);
    Ok(proto::ListTableNamesByStateResponse {
        table_names: found.iter().map(|table| (&table.name).into()).collect(),
    })
}

/// `ListTableDescriptorsByState`, which clients of 2.6 use.
pub(super) async fn descriptors_by_state(
    master: &Master,
    request: proto::ListTableDescriptorsByStateRequest,
) -> Answer<proto::ListTableDescriptorsByStateResponse> {
    let found = master.context().tables.by_enabled(request.is_enabled);
    Ok(proto::ListTableDescriptorsByStateResponse {
        table_schema: found.iter().map(|table| (&**table).into()).collect(),
    })
}

/// Decodes a table name from a request.
pub(super) fn table_name(name: &proto::TableName) -> Answer<TableName> {
    TableName::try_from(name).map_err(|error| JavaException::do_not_retry(error.to_string()))
}
