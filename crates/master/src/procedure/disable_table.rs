//! Disables a table: closes its regions.

use cell::schema::TableName;
use proto::exception::JavaException;
use wire::meta::TableState;

use crate::context::Context;
use crate::refusal;

/// Checks that the table is an enabled user table.
pub(super) async fn check(context: &Context, table: &TableName) -> Result<(), JavaException> {
    context.require_user_table(table)?;
    match context.meta.table_state(table).await? {
        Some(TableState::Enabled) => Ok(()),
        Some(_) => Err(refusal::table_not_enabled(table)),
        None => Err(refusal::table_not_found(table)),
    }
}

/// Disables the table.
pub(super) async fn act(context: &Context, table: &TableName) -> Result<(), JavaException> {
    context.set_table_state(table, TableState::Disabling).await?;
    let regions: Vec<_> =
        context.assignment.regions_of(table).into_iter().map(|(region, _)| region).collect();
    context.assignment.close(&regions).await?;
    context.set_table_state(table, TableState::Disabled).await
}
