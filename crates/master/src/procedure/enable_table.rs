//! Enables a table: opens its regions.

use cell::schema::TableName;
use proto::exception::JavaException;
use wire::meta::TableState;

use crate::context::Context;
use crate::refusal;

/// Checks that the table is disabled.
pub(super) async fn check(context: &Context, table: &TableName) -> Result<(), JavaException> {
    match context.meta.table_state(table).await? {
        Some(TableState::Disabled) => Ok(()),
        Some(state) => Err(refusal::table_not_disabled(table, state)),
        None => Err(refusal::table_not_found(table)),
    }
}

/// Enables the table.
pub(super) async fn act(context: &Context, table: &TableName) -> Result<(), JavaException> {
    context.set_table_state(table, TableState::Enabling).await?;
    let regions: Vec<_> =
        context.assignment.regions_of(table).into_iter().map(|(region, _)| region).collect();
    context.assignment.open_or_retry_later(&regions).await?;
    context.set_table_state(table, TableState::Enabled).await
}
