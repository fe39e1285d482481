//! Removing a table: its rows in `hbase:meta`, its files to the archive.

use cell::schema::TableName;
use wire::exception::JavaException;
use wire::meta::TableState;

use crate::context::Context;
use crate::refusal;

/// The table must be disabled.
pub(super) async fn check(context: &Context, table: &TableName) -> Result<(), JavaException> {
    context.require_user_table(table)?;
    match context.meta.table_state(table).await? {
        Some(TableState::Disabled) => Ok(()),
        Some(state) => Err(refusal::not_disabled(table, state)),
        None => Err(refusal::table_not_found(table)),
    }
}

/// Removes it. Its rows in `hbase:meta` go last: as long as they are there, the table is disabled and can be asked to
/// go again.
pub(super) async fn act(context: &Context, table: &TableName) -> Result<(), JavaException> {
    let regions = context.assignment.rows_of(table);
    context.tables.archive_files(table).await?;
    context.meta.remove_table(table, &regions).await?;
    context.assignment.forget(table);
    context.tables.forget(table);
    Ok(())
}
