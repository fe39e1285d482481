//! Changes of rows.

use bytes::Bytes;
use cell::condition::Condition;
use cell::filter::CompareOp;
use cell::mutation::{Durability, Mutation, MutationKind};
use cell::{CellType, LATEST_TIMESTAMP};
use client::Row;
use proto::exception::class;

use super::types::{
    CheckAndDelete, CheckAndMutate, CheckAndPut, DELETE_COLUMN, DELETE_COLUMNS, DELETE_FAMILY,
    DELETE_FAMILY_VERSION, TAppend, TColumn, TDelete, TIncrement, TPut, TRowMutations,
};
use crate::call::Call;
use crate::failure::{Failure, Result, excerpt};
use crate::gateway::{Gateway, completed};
use crate::mutations::{RowChange, condition, table_name, undeclared};

/// The comparisons of `TCompareOp`, by number.
const COMPARISONS: [CompareOp; 7] = [
    CompareOp::Less,
    CompareOp::LessOrEqual,
    CompareOp::Equal,
    CompareOp::NotEqual,
    CompareOp::GreaterOrEqual,
    CompareOp::Greater,
    CompareOp::NoOp,
];
/// The durabilities of `TDurability`, by number.
const DURABILITIES: [Durability; 5] = [
    Durability::UseDefault,
    Durability::SkipWal,
    Durability::AsyncWal,
    Durability::SyncWal,
    Durability::FsyncWal,
];

impl Gateway {
    pub(super) async fn put(&self, table: &[u8], put: &TPut) -> Result<()> {
        Ok(self.client.table(table_name(table)?).mutate(&put_of(put)?).await?)
    }

    pub(super) async fn put_multiple(&self, table: &[u8], puts: &[TPut]) -> Result<()> {
        let puts = puts.iter().map(put_of).collect::<Result<Vec<_>>>()?;
        self.change_rows(&self.client.table(table_name(table)?), puts).await
    }

    pub(super) async fn delete_single(&self, table: &[u8], delete: &TDelete) -> Result<()> {
        Ok(self.client.table(table_name(table)?).mutate(&delete_of(delete)?).await?)
    }

    pub(super) async fn delete_multiple(&self, table: &[u8], deletes: &[TDelete]) -> Result<()> {
        let deletes = deletes.iter().map(delete_of).collect::<Result<Vec<_>>>()?;
        self.change_rows(&self.client.table(table_name(table)?), deletes).await
    }

    pub(super) async fn check_put(&self, arguments: CheckAndPut) -> Result<bool> {
        let CheckAndPut { table, row, family, qualifier, value, put } = arguments;
        let condition = condition(&row, (&family, &qualifier), CompareOp::Equal, value);
        self.change_if(&table, &condition, put_of(&put)?).await
    }

    pub(super) async fn check_delete(&self, arguments: CheckAndDelete) -> Result<bool> {
        let CheckAndDelete { table, row, family, qualifier, value, delete } = arguments;
        let condition = condition(&row, (&family, &qualifier), CompareOp::Equal, value);
        self.change_if(&table, &condition, delete_of(&delete)?).await
    }

    async fn change_if(&self, table: &[u8], condition: &Condition, change: Mutation) -> Result<bool> {
        if change.row != condition.row {
            let (row, expected) = (excerpt(&change.row), excerpt(&condition.row));
            return Err(Failure::of_class(
                class::DO_NOT_RETRY_IO,
                &format!("The row of the action <{row}> doesn't match the original one <{expected}>"),
            ));
        }
        Ok(self.client.table(table_name(table)?).check_and_mutate(condition, &[change]).await?)
    }

    pub(super) async fn check_mutate(&self, arguments: CheckAndMutate) -> Result<bool> {
        let CheckAndMutate { table, row, family, qualifier, operator, value, mutations } = arguments;
        let operator = operator.and_then(|operator| usize::try_from(operator).ok());
        let operator = operator.and_then(|operator| COMPARISONS.get(operator).copied());
        // As in HBase, which needs both, although its interface file says otherwise.
        let (Some(operator), Some(_)) = (operator, &value) else { return Err(Failure::Internal) };
        let condition = condition(&row, (&family, &qualifier), operator, value);
        let mutations = mutations_of(&mutations)?;
        if mutations.is_empty() {
            return Err(Failure::Internal);
        }
        let table = self.client.table(table_name(&table)?);
        Ok(table.check_and_mutate(&condition, &mutations).await?)
    }

    pub(super) async fn mutate_atomically(&self, table: &[u8], mutations: &TRowMutations) -> Result<()> {
        let mutations = mutations_of(mutations)?;
        if mutations.is_empty() {
            return Err(Failure::Internal);
        }
        let changed = self.client.table(table_name(table)?).mutate_row(&mutations).await;
        // In HBase's client, this is a batch.
        completed(vec![changed.map(|()| Row::default())]).map(drop)
    }

    pub(super) async fn increment_columns(
        &self,
        call: &mut Call<'_>,
        table: &[u8],
        increment: &TIncrement,
    ) -> Result<Row> {
        let mut change = change(MutationKind::Increment, &increment.row, None, increment.durability)?
            .with_attributes(&increment.attributes);
        for column in &increment.columns {
            let name = (&column.family[..], &column.qualifier[..]);
            change.add(name, None, CellType::Put, &column.amount.to_be_bytes()).map_err(undeclared)?;
        }
        change.set_returns_results(increment.returns_results.unwrap_or(true));
        self.read_modify_write(call, table, change).await
    }

    pub(super) async fn append_to_columns(
        &self,
        call: &mut Call<'_>,
        table: &[u8],
        append: &TAppend,
    ) -> Result<Row> {
        let mut change = change(MutationKind::Append, &append.row, None, append.durability)?
            .with_attributes(&append.attributes);
        for column in &append.columns {
            let name = (&column.family[..], &column.qualifier[..]);
            change.add(name, None, CellType::Put, &column.value).map_err(undeclared)?;
        }
        change.set_returns_results(append.returns_results.unwrap_or(true));
        self.read_modify_write(call, table, change).await
    }

    async fn read_modify_write(&self, call: &mut Call<'_>, table: &[u8], change: RowChange) -> Result<Row> {
        if change.is_empty() {
            return Err(Failure::Internal);
        }
        let row = self.client.table(table_name(table)?).read_modify_write(change.finish()).await?;
        call.force_memory(crate::scanners::row_bytes(&row));
        Ok(row)
    }
}

/// An empty change.
fn change(
    kind: MutationKind,
    row: &Bytes,
    timestamp: Option<i64>,
    durability: Option<i32>,
) -> Result<RowChange> {
    let mut change = RowChange::new(kind, row, timestamp.unwrap_or(LATEST_TIMESTAMP)).map_err(undeclared)?;
    let durability = durability.and_then(|durability| usize::try_from(durability).ok());
    if let Some(durability) = durability.and_then(|durability| DURABILITIES.get(durability)) {
        change.set_durability(*durability);
    }
    Ok(change)
}

fn put_of(put: &TPut) -> Result<Mutation> {
    let mut change =
        change(MutationKind::Put, &put.row, put.timestamp, put.durability)?.with_attributes(&put.attributes);
    for cell in &put.cells {
        let name = (&cell.family[..], &cell.qualifier[..]);
        change.add(name, cell.timestamp, CellType::Put, &cell.value).map_err(undeclared)?;
    }
    if change.is_empty() {
        return Err(Failure::Internal);
    }
    Ok(change.finish())
}

fn delete_of(delete: &TDelete) -> Result<Mutation> {
    let Some(columns) = &delete.columns else {
        return Ok(change(MutationKind::Delete, &delete.row, delete.timestamp, delete.durability)?.finish());
    };
    let mut change = change(MutationKind::Delete, &delete.row, None, delete.durability)?;
    for TColumn { family, qualifier, timestamp } in columns {
        let (kind, has_qualifier) = match delete.kind {
            DELETE_COLUMN => (CellType::Delete, true),
            DELETE_COLUMNS => (CellType::DeleteColumn, true),
            DELETE_FAMILY => (CellType::DeleteFamily, false),
            DELETE_FAMILY_VERSION if timestamp.is_some() => (CellType::DeleteFamilyVersion, false),
            _ => return Err(Failure::Internal),
        };
        let qualifier = qualifier.as_deref().filter(|_| has_qualifier).unwrap_or_default();
        change.add((family, qualifier), *timestamp, kind, b"").map_err(undeclared)?;
    }
    Ok(change.finish())
}

fn mutations_of(mutations: &TRowMutations) -> Result<Vec<Mutation>> {
    let mut changes = Vec::with_capacity(mutations.mutations.len());
    for mutation in &mutations.mutations {
        let change = match (&mutation.put, &mutation.delete) {
            (Some(put), _) => put_of(put)?,
            (None, Some(delete)) => delete_of(delete)?,
            (None, None) => return Err(Failure::Internal),
        };
        if change.row != mutations.row {
            let (row, expected) = (excerpt(&change.row), excerpt(&mutations.row));
            let message = format!(
                "The row in the recently added Mutation <{row}> doesn't match the original one <{expected}>"
            );
            return Err(Failure::io(message, true));
        }
        changes.push(change);
    }
    Ok(changes)
}
