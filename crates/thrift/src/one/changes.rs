//! Changes of rows.

use bytes::Bytes;
use cell::filter::CompareOp;
use cell::mutation::{Durability, MutationKind};
use cell::query::column_parts;
use cell::{CellType, LATEST_TIMESTAMP};

use super::types::{BatchMutation, CellResults, CheckAndPut, Mutation, TAppend, TIncrement};
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::gateway::Gateway;
use crate::mutations::{OperationAttributes, RowChange, condition, table_name, undeclared};

/// The put and the delete of a row.
struct Changes {
    put: RowChange,
    delete: RowChange,
}

impl Changes {
    fn new(
        row: &Bytes,
        mutations: &[Mutation],
        timestamp: Option<i64>,
        attributes: &OperationAttributes,
        refuses_families: bool,
    ) -> Result<Changes> {
        let timestamp = timestamp.unwrap_or(LATEST_TIMESTAMP);
        let mut put = RowChange::new(MutationKind::Put, row, timestamp)?.with_attributes(attributes);
        let mut delete = RowChange::new(MutationKind::Delete, row, LATEST_TIMESTAMP)?;
        for mutation in mutations {
            let (family, qualifier) = column_parts(&mutation.column);
            match (mutation.is_delete, &qualifier) {
                (true, None) => {
                    delete.add((&family, b""), Some(timestamp), CellType::DeleteFamily, b"")?;
                }
                (true, Some(qualifier)) => {
                    delete.add((&family, qualifier), Some(timestamp), CellType::DeleteColumn, b"")?;
                }
                (false, Some(qualifier)) => {
                    put.add((&family, qualifier), None, CellType::Put, &mutation.value)?;
                }
                (false, None) if refuses_families => {
                    return Err(Failure::illegal("Invalid famAndQf provided."));
                }
                // As in HBase, a put of a whole family has no effect.
                (false, None) => {}
            }
            let change = if mutation.is_delete { &mut delete } else { &mut put };
            change.set_durability(durability(mutation));
        }
        Ok(Changes { put, delete })
    }
}

/// As in HBase, the last mutation of each kind decides.
fn durability(mutation: &Mutation) -> Durability {
    if mutation.uses_wal { Durability::SyncWal } else { Durability::SkipWal }
}

impl Gateway {
    /// `mutateRow` and `mutateRowTs`: the deletes, then the puts.
    pub(super) async fn mutate_row(
        &self,
        table: &[u8],
        row: &Bytes,
        mutations: &[Mutation],
        timestamp: Option<i64>,
        attributes: &OperationAttributes,
    ) -> Result<()> {
        let table = self.client.table(table_name(table)?);
        let Changes { put, delete } = Changes::new(row, mutations, timestamp, attributes, false)?;
        for change in [delete, put] {
            if !change.is_empty() {
                table.mutate(&change.finish()).await?;
            }
        }
        Ok(())
    }

    /// `mutateRows` and `mutateRowsTs`: the puts of all rows, then the deletes.
    pub(super) async fn mutate_rows(
        &self,
        table: &[u8],
        batches: &[BatchMutation],
        timestamp: Option<i64>,
        attributes: &OperationAttributes,
    ) -> Result<()> {
        let table = self.client.table(table_name(table)?);
        let (mut puts, mut deletes) = (Vec::new(), Vec::new());
        for batch in batches {
            let changes = Changes::new(&batch.row, &batch.mutations, timestamp, attributes, true);
            let Changes { put, delete } = changes.map_err(undeclared)?;
            for (change, changes) in [(put, &mut puts), (delete, &mut deletes)] {
                if !change.is_empty() {
                    changes.push(change.finish());
                }
            }
        }
        for changes in [puts, deletes] {
            if !changes.is_empty() {
                self.change_rows(&table, changes).await?;
            }
        }
        Ok(())
    }

    /// Deletes a row, a family or a column, up to `timestamp`.
    pub(super) async fn delete(
        &self,
        table: &[u8],
        row: &Bytes,
        column: Option<&Bytes>,
        timestamp: Option<i64>,
    ) -> Result<()> {
        let timestamp = timestamp.unwrap_or(LATEST_TIMESTAMP);
        let delete = || {
            let mut delete = RowChange::new(MutationKind::Delete, row, timestamp)?;
            match column.map(column_parts) {
                None => {}
                Some((family, None)) => delete.add((&family, b""), None, CellType::DeleteFamily, b"")?,
                Some((family, Some(qualifier))) => {
                    delete.add((&family, &qualifier), None, CellType::DeleteColumn, b"")?;
                }
            }
            Ok(delete.finish())
        };
        let delete = delete().map_err(undeclared)?;
        Ok(self.client.table(table_name(table)?).mutate(&delete).await?)
    }

    /// Increments a column; returns its new value.
    pub(super) async fn atomic_increment(
        &self,
        table: &[u8],
        row: &Bytes,
        column: &Bytes,
        amount: i64,
    ) -> Result<i64> {
        let (family, qualifier) = column_parts(column);
        let qualifier = qualifier.unwrap_or_default();
        let table = self.client.table(table_name(table)?);
        let mut increment = RowChange::new(MutationKind::Increment, row, LATEST_TIMESTAMP)?;
        increment.add((&family, &qualifier), None, CellType::Put, &amount.to_be_bytes())?;
        let row = table.read_modify_write(increment.finish()).await?;
        let value = row.value(&family, &qualifier).and_then(|value| value.try_into().ok());
        value.map(i64::from_be_bytes).ok_or_else(|| Failure::io("the response has no counter", false))
    }

    pub(super) async fn increment(&self, increment: TIncrement) -> Result<()> {
        if increment.row.is_empty() || increment.table.is_empty() {
            return Err(Failure::Internal);
        }
        if column_parts(&increment.column).1.is_none() {
            return Err(Failure::Internal);
        }
        let TIncrement { table, row, column, amount } = increment;
        self.atomic_increment(&table, &row, &column, amount).await.map(drop).map_err(undeclared)
    }

    /// Appends to columns; the response has their new values.
    pub(super) async fn append(&self, call: &mut Call<'_>, append: TAppend) -> Result<Vec<u8>> {
        if append.row.is_empty() || append.table.is_empty() || append.columns.len() != append.values.len() {
            return Err(Failure::Internal);
        }
        let mut change =
            RowChange::new(MutationKind::Append, &append.row, LATEST_TIMESTAMP).map_err(undeclared)?;
        for (column, value) in append.columns.iter().zip(&append.values) {
            let (family, Some(qualifier)) = column_parts(column) else { return Err(Failure::Internal) };
            change.add((&family, &qualifier), None, CellType::Put, value).map_err(undeclared)?;
        }
        let table = self.client.table(table_name(&append.table)?);
        let row = table.read_modify_write(change.finish()).await?;
        call.force_memory(crate::scanners::row_bytes(&row));
        Ok(call.reply(&CellResults(&row)))
    }

    pub(super) async fn check_and_put(&self, arguments: CheckAndPut) -> Result<bool> {
        let CheckAndPut { table, row, column, value, put: mutation, attributes } = arguments;
        let (family, Some(qualifier)) = column_parts(&mutation.column) else { return Err(Failure::Internal) };
        let mut put = RowChange::new(MutationKind::Put, &row, LATEST_TIMESTAMP)?.with_attributes(&attributes);
        put.add((&family, &qualifier), None, CellType::Put, &mutation.value)?;
        put.set_durability(durability(&mutation));
        let (family, Some(qualifier)) = column_parts(&column) else { return Err(Failure::Internal) };
        let condition = condition(&row, (&family, &qualifier), CompareOp::Equal, value);
        let table = self.client.table(table_name(&table)?);
        Ok(table.check_and_mutate(&condition, &[put.finish()]).await?)
    }
}
