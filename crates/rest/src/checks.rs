//! Conditional changes, appends and increments: PUT with the parameter `check`.

use bytes::Bytes;
use cell::condition::{ColumnTest, Condition, Test};
use cell::filter::CompareOp;
use cell::mutation::{Mutation, MutationKind};
use cell::query::TimeRange;
use cell::schema::TableName;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use hyper::StatusCode;

use crate::call::Call;
use crate::changes::{check_cell, check_row, marker, put_cell};
use crate::gateway::Gateway;
use crate::media::RESULTS;
use crate::models::cells::{CellModel, CellSet, RowModel};
use crate::reply::{Failure, ILLEGAL_ARGUMENT, Reply, Result};
use crate::row_spec::RowSpec;
use cell::query::column_parts as parse_column;

/// Maximum bytes of a value that an error message repeats.
const SHOWN_BYTES_MAX: usize = 100;

impl Gateway {
    pub(crate) async fn checked_update(
        &self,
        call: &Call,
        table: TableName,
        spec: &RowSpec,
        mut cells: CellSet,
        check: &str,
    ) -> Result<Reply> {
        let word = check.to_ascii_lowercase();
        if !["put", "delete", "append", "increment"].contains(&word.as_str()) {
            return Err(Failure::line(StatusCode::BAD_REQUEST, &format!("Invalid check value '{check}'")));
        }
        if cells.rows.len() != 1 {
            return Err(Failure::bad("Number of rows specified is not 1."));
        }
        let row = cells.rows.swap_remove(0);
        let key = row.key.clone().unwrap_or_else(|| spec.row.clone());
        check_row(&key)?;
        match word.as_str() {
            "put" => self.check_and_put(table, key, &row).await,
            "delete" => self.check_and_delete(table, spec, key, &row).await,
            "append" => self.change(call, table, spec, key, &row, MutationKind::Append).await,
            _ => self.change(call, table, spec, key, &row, MutationKind::Increment).await,
        }
    }

    async fn check_and_put(&self, table: TableName, key: Bytes, row: &RowModel) -> Result<Reply> {
        let (Some((checked, written)), true) = (row.cells.split_last(), row.cells.len() > 1) else {
            return Err(Failure::bad("Either row key is null or no data found for columns specified."));
        };
        let column = checked.column.clone().unwrap_or_default();
        let (family, Some(qualifier)) = parse_column(&column) else {
            return Err(Failure::bad("Column incorrectly specified."));
        };
        if qualifier.is_empty() {
            return Err(Failure::bad("Column incorrectly specified."));
        }
        if !written.iter().any(|cell| cell.column.as_ref() == Some(&column)) {
            return Err(Failure::bad("The column to put and check do not match."));
        }
        let put = |cell: &CellModel| {
            let column = cell.column.as_ref().ok_or_else(|| Failure::bad("Column found to be null."))?;
            put_cell(&key, column, cell)
        };
        let values = written.iter().map(put).collect::<Result<Vec<_>>>()?;
        let put = Mutation::put(key.clone(), values);
        let condition = condition(key, family, qualifier, checked.value.clone());
        self.apply_if(table, &condition, put, "Value not Modified").await
    }

    async fn check_and_delete(
        &self,
        table: TableName,
        spec: &RowSpec,
        key: Bytes,
        row: &RowModel,
    ) -> Result<Reply> {
        let Some((checked, deleted)) = row.cells.split_last() else {
            let message = "Index -1 out of bounds for length 0";
            return Err(Failure::exception("java.lang.IndexOutOfBoundsException", message));
        };
        let column = checked.column.as_ref().or_else(|| spec.columns.first());
        let column = column.ok_or_else(|| Failure::bad("Column not specified for check."))?;
        let mut markers = Vec::with_capacity(row.cells.len());
        for cell in deleted {
            let column = cell.column.as_ref().ok_or_else(|| Failure::bad("Column found to be null."))?;
            markers.push(match parse_column(column) {
                (family, None) => marker(&key, &family, b"", cell.timestamp, CellType::DeleteFamily)?,
                (family, Some(qualifier)) => {
                    marker(&key, &family, &qualifier, cell.timestamp, CellType::Delete)?
                }
            });
        }
        let (family, Some(qualifier)) = parse_column(column) else {
            return Err(Failure::bad("Column to check incorrectly specified."));
        };
        if deleted.is_empty() {
            markers.push(marker(&key, &family, &qualifier, LATEST_TIMESTAMP, CellType::DeleteColumn)?);
        }
        let delete = Mutation::delete(key.clone(), markers);
        let condition = condition(key, family, qualifier, checked.value.clone());
        self.apply_if(table, &condition, delete, " Delete check failed.").await
    }

    async fn apply_if(
        &self,
        table: TableName,
        condition: &Condition,
        mutation: Mutation,
        otherwise: &str,
    ) -> Result<Reply> {
        let applied = self.client.table(table).check_and_mutate(condition, &[mutation]).await;
        match applied.map_err(|error| Failure::of(&error))? {
            true => Ok(Reply::empty(StatusCode::OK)),
            false => Err(Failure::line(StatusCode::NOT_MODIFIED, otherwise)),
        }
    }

    /// An append or increment.
    async fn change(
        &self,
        call: &Call,
        table: TableName,
        spec: &RowSpec,
        key: Bytes,
        row: &RowModel,
        kind: MutationKind,
    ) -> Result<Reply> {
        let returns_results = call.parameter("rr").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let media = if returns_results { Some(call.response_media(RESULTS)?) } else { None };
        let mut columns = spec.columns.iter();
        let mut cells = Vec::with_capacity(row.cells.len());
        for cell in &row.cells {
            let column = cell.column.as_ref().or_else(|| columns.next());
            let column = column.ok_or_else(|| Failure::bad("Column found to be null."))?;
            cells.push(changed_cell(&key, column, &cell.value, kind)?);
        }
        if cells.is_empty() {
            return Err(Failure::exception(ILLEGAL_ARGUMENT, "No columns to change"));
        }
        let mutation = match kind {
            MutationKind::Append => Mutation::append(key, cells),
            _ => Mutation::increment(key, cells),
        };
        let mutation = Mutation { return_results: returns_results, ..mutation };
        let changed = self.client.table(table).read_modify_write(mutation).await;
        let changed = changed.map_err(|error| Failure::of(&error))?;
        let Some(media) = media else { return Ok(Reply::empty(StatusCode::OK)) };
        if changed.is_empty() {
            let word = if kind == MutationKind::Append { "Append" } else { "Increment" };
            return Err(Failure::line(StatusCode::NOT_MODIFIED, &format!("{word} return empty.")));
        }
        let mut rows = self.collector(media);
        rows.add_changed(&changed.cells);
        Ok(rows.reply())
    }
}

fn changed_cell(key: &[u8], column: &Bytes, value: &Bytes, kind: MutationKind) -> Result<KeyValue> {
    let (family, Some(qualifier)) = parse_column(column) else {
        return Err(Failure::bad("Column incorrectly specified."));
    };
    check_cell(&family, LATEST_TIMESTAMP)?;
    let new = |value: &[u8]| KeyValue::new(key, &family, &qualifier, LATEST_TIMESTAMP, CellType::Put, value);
    if kind == MutationKind::Append {
        return Ok(new(value));
    }
    let amount = std::str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok());
    let amount = amount.ok_or_else(|| {
        let start = &value[..value.len().min(SHOWN_BYTES_MAX)];
        let message = format!("For input string: \"{}\"", start.escape_ascii());
        Failure::exception("java.lang.NumberFormatException", &message)
    })?;
    Ok(new(&amount.to_be_bytes()))
}

/// The column has this value. An empty value means that it is absent or empty.
fn condition(row: Bytes, family: Bytes, qualifier: Bytes, value: Bytes) -> Condition {
    let test = ColumnTest { family, qualifier, operator: CompareOp::Equal, value };
    Condition { row, time_range: TimeRange::ALL, test: Test::Column(test) }
}
