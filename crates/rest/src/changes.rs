//! Puts and deletes.

use bytes::Bytes;
use cell::mutation::Mutation;
use cell::schema::TableName;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use hyper::StatusCode;

use crate::call::Call;
use crate::gateway::Gateway;
use crate::media::{CELLS_AND_VALUES, Media};
use crate::models::cells::{CellModel, CellSet};
use crate::reply::{Failure, ILLEGAL_ARGUMENT, Reply, Result};
use crate::row_spec::RowSpec;
use cell::query::column_parts as parse_column;

/// Bodies of at least this size are parsed on a separate thread.
const LARGE_BYTES: usize = 128 << 10;
/// Maximum length of a row key (`HConstants.MAX_ROW_LENGTH`).
const ROW_LEN_MAX: usize = i16::MAX as usize;
/// Maximum length of a family's name (`HConstants.MAX_FAMILY_LENGTH`).
const FAMILY_LEN_MAX: usize = i8::MAX as usize;

impl Gateway {
    /// PUT and POST of a row: a put, or what the parameter `check` says.
    pub(crate) async fn update(&self, call: &mut Call, table: TableName, spec: &str) -> Result<Reply> {
        let spec = self.row_spec(call, spec)?;
        let media = call.body_media(CELLS_AND_VALUES)?;
        if media == Media::Octets {
            return self.put_value(call, table, &spec).await;
        }
        let cells = self.decode_cells(call, media).await?;
        match call.parameter("check").unwrap_or("") {
            "" => self.put_rows(table, &spec, cells).await,
            check => self.checked_update(call, table, &spec, cells, check).await,
        }
    }

    async fn decode_cells(&self, call: &mut Call, media: Media) -> Result<CellSet> {
        let body = std::mem::take(&mut call.body);
        if body.len() < LARGE_BYTES {
            return Ok(CellSet::decode(media, &body)?);
        }
        // The decoded cells take memory too.
        if !call.memory.take_large(body.len()) {
            return Err(Failure::Page(StatusCode::SERVICE_UNAVAILABLE));
        }
        Ok(self.pool.run(move || CellSet::decode(media, &body)).await?)
    }

    async fn put_rows(&self, table: TableName, spec: &RowSpec, cells: CellSet) -> Result<Reply> {
        let mut puts = Vec::with_capacity(cells.rows.len());
        for row in cells.rows {
            let key = row.key.unwrap_or_else(|| spec.row.clone());
            check_row(&key)?;
            let mut columns = spec.columns.iter();
            let mut values = Vec::with_capacity(row.cells.len());
            for cell in &row.cells {
                let column = cell.column.as_ref().or_else(|| columns.next());
                let column = column.ok_or_else(|| Failure::bad("Column found to be null."))?;
                values.push(put_cell(&key, column, cell)?);
            }
            if values.is_empty() {
                return Err(Failure::exception(ILLEGAL_ARGUMENT, "No columns to insert"));
            }
            puts.push(Mutation::put(key, values));
        }
        if !puts.is_empty() {
            self.client.table(table).mutate_all(puts).await.map_err(|error| Failure::of(&error))?;
        }
        Ok(Reply::empty(StatusCode::OK))
    }

    /// A put of the body as the value of one cell.
    async fn put_value(&self, call: &Call, table: TableName, spec: &RowSpec) -> Result<Reply> {
        let of_header =
            |name: &str| call.headers.get(name).map(|value| Bytes::copy_from_slice(value.as_bytes()));
        let Some(column) = spec.columns.first() else {
            let message = "Index 0 out of bounds for length 0";
            return Err(Failure::exception("java.lang.ArrayIndexOutOfBoundsException", message));
        };
        let column = of_header("x-column").unwrap_or_else(|| column.clone());
        let row = of_header("x-row").unwrap_or_else(|| spec.row.clone());
        let timestamp = match call.header("x-timestamp") {
            None => LATEST_TIMESTAMP,
            Some(text) => text.parse().map_err(|_| {
                Failure::exception("java.lang.NumberFormatException", &format!("For input string: {text:?}"))
            })?,
        };
        check_row(&row)?;
        let cell = CellModel { column: None, timestamp, value: call.body.clone() };
        let cell = put_cell(&row, &column, &cell)?;
        let put = Mutation::put(row, vec![cell]);
        self.client.table(table).mutate(&put).await.map_err(|error| Failure::of(&error))?;
        Ok(Reply::empty(StatusCode::OK))
    }

    pub(crate) async fn delete_row(&self, call: &Call, table: TableName, spec: &str) -> Result<Reply> {
        let spec = self.row_spec(call, spec)?;
        check_row(&spec.row)?;
        let timestamp = spec.timestamp().unwrap_or(LATEST_TIMESTAMP);
        if timestamp < 0 {
            return Err(Failure::exception(
                ILLEGAL_ARGUMENT,
                &format!("Timestamp cannot be negative. ts={timestamp}"),
            ));
        }
        let marker = |column: &Bytes| match parse_column(column) {
            (family, None) => marker(&spec.row, &family, b"", timestamp, CellType::DeleteFamily),
            (family, Some(qualifier)) => {
                marker(&spec.row, &family, &qualifier, timestamp, CellType::DeleteColumn)
            }
        };
        let markers = spec.columns.iter().map(marker).collect::<Result<Vec<_>>>()?;
        let delete = Mutation { timestamp, ..Mutation::delete(spec.row.clone(), markers) };
        self.client.table(table).mutate(&delete).await.map_err(|error| Failure::of(&error))?;
        Ok(Reply::empty(StatusCode::OK))
    }
}

/// A cell of a put.
///
/// # Errors
/// 400 if the column has no qualifier, or a part is not valid.
pub(crate) fn put_cell(row: &[u8], column: &Bytes, cell: &CellModel) -> Result<KeyValue> {
    let (family, Some(qualifier)) = parse_column(column) else { return Err(Failure::bad("")) };
    check_cell(&family, cell.timestamp)?;
    Ok(KeyValue::new(row, &family, &qualifier, cell.timestamp, CellType::Put, &cell.value))
}

/// A delete marker.
///
/// # Errors
/// 400 if a part is not valid.
pub(crate) fn marker(
    row: &[u8],
    family: &[u8],
    qualifier: &[u8],
    timestamp: i64,
    kind: CellType,
) -> Result<KeyValue> {
    check_cell(family, timestamp)?;
    Ok(KeyValue::new(row, family, qualifier, timestamp, kind, b""))
}

/// Checks the parts of a cell.
///
/// # Errors
/// 400 if one is not valid.
pub(crate) fn check_cell(family: &[u8], timestamp: i64) -> Result<()> {
    if timestamp < 0 {
        return Err(Failure::exception(
            ILLEGAL_ARGUMENT,
            &format!("Timestamp cannot be negative. ts={timestamp}"),
        ));
    }
    if family.len() > FAMILY_LEN_MAX {
        return Err(Failure::exception(ILLEGAL_ARGUMENT, "Family name is too long"));
    }
    Ok(())
}

/// Checks the length of a row key.
///
/// # Errors
/// 400 if it is empty or too long.
pub(crate) fn check_row(row: &[u8]) -> Result<()> {
    match row.len() {
        0 => Err(Failure::exception(ILLEGAL_ARGUMENT, "Row length 0")),
        len if len > ROW_LEN_MAX => {
            Err(Failure::exception(ILLEGAL_ARGUMENT, &format!("Row length {len} is > {ROW_LEN_MAX}")))
        }
        _ => Ok(()),
    }
}
