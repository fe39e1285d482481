//! Thrift 1: the service `Hbase` (`org.apache.hadoop.hbase.thrift.ThriftHBaseServiceHandler`).

mod changes;
mod rows;
mod scans;
mod tables;
mod types;

use base::budget::BudgetShare;
use bytes::Bytes;

use crate::call::Call;
use crate::check::check;
use crate::failure::{Declared, Failure, Result};
use crate::gateway::Gateway;
use types::{
    AtomicIncrement, CheckAndPut, CreateTable, DeleteColumn, DeleteRow, GetColumn, GetColumnAt, GetVersions,
    MutateRow, MutateRowAt, MutateRows, MutateRowsAt, OpenPrefix, OpenScan, OpenScanner, OpenScannerAt,
    OpenScannerWithStop, OpenScannerWithStopAt, Region, Row, RowAt, RowColumns, RowColumnsAt, Rows, RowsAt,
    RowsColumns, RowsColumnsAt, ScannerId, ScannerRows, TableArgument,
};

/// The number of this service in `getThriftServerType`.
const SERVER_TYPE: i32 = 1;

/// The exceptions of a method; `None` if there is no such method.
pub(crate) fn declared(method: &str) -> Option<Declared> {
    Some(match method {
        "getThriftServerType" | "getClusterId" => Declared::Nothing,
        "enableTable"
        | "disableTable"
        | "isTableEnabled"
        | "compact"
        | "majorCompact"
        | "getTableNames"
        | "getTableNamesWithIsTableEnabled"
        | "getColumnDescriptors"
        | "getTableRegions"
        | "deleteTable"
        | "get"
        | "getVer"
        | "getVerTs"
        | "getRow"
        | "getRowWithColumns"
        | "getRowTs"
        | "getRowWithColumnsTs"
        | "getRows"
        | "getRowsWithColumns"
        | "getRowsTs"
        | "getRowsWithColumnsTs"
        | "deleteAll"
        | "deleteAllTs"
        | "deleteAllRow"
        | "deleteAllRowTs"
        | "increment"
        | "incrementRows"
        | "scannerOpenWithScan"
        | "scannerOpen"
        | "scannerOpenTs"
        | "scannerOpenWithStop"
        | "scannerOpenWithStopTs"
        | "scannerOpenWithPrefix"
        | "getRegionInfo"
        | "append" => Declared::Io,
        "mutateRow" | "mutateRowTs" | "mutateRows" | "mutateRowsTs" | "atomicIncrement" | "scannerGet"
        | "scannerGetList" | "scannerClose" | "checkAndPut" => Declared::IoAndArgument,
        "createTable" => Declared::IoArgumentAndExists,
        _ => return None,
    })
}

impl Gateway {
    /// Executes a method of this service.
    pub(crate) async fn call_one(&self, method: &str, call: &mut Call<'_>) -> Result<Vec<u8>> {
        if self.options.read_only && !is_read(method) {
            return Err(Failure::io("Thrift Server is in Read-only mode.", false));
        }
        match method {
            "getThriftServerType" => Ok(call.reply(&SERVER_TYPE)),
            "getClusterId" => Ok(call.reply(&self.client.cluster_id().await?)),
            "enableTable"
            | "disableTable"
            | "isTableEnabled"
            | "compact"
            | "majorCompact"
            | "getTableNames"
            | "getTableNamesWithIsTableEnabled"
            | "getColumnDescriptors"
            | "getTableRegions"
            | "deleteTable"
            | "createTable"
            | "getRegionInfo" => self.call_tables(method, call).await,
            _ if method.starts_with("scanner") => self.call_scans(method, call).await,
            _ if method.starts_with("get") => self.call_rows(method, call).await,
            _ => self.call_changes(method, call).await,
        }
    }

    async fn call_tables(&self, method: &str, call: &mut Call<'_>) -> Result<Vec<u8>> {
        match method {
            "getTableNames" => return Ok(call.reply(&self.table_names().await?)),
            "getTableNamesWithIsTableEnabled" => return Ok(call.reply(&self.table_states().await?)),
            "getRegionInfo" => {
                let Region { row } = call.arguments()?;
                return Ok(call.reply(&self.region_info(row).await?));
            }
            "createTable" => {
                let CreateTable { table, families } = call.arguments()?;
                self.create_table(&table, families).await?;
                return Ok(call.done());
            }
            _ => {}
        }
        let TableArgument { table } = call.arguments()?;
        match method {
            "isTableEnabled" => return Ok(call.reply(&self.is_enabled(&table).await?)),
            "getColumnDescriptors" => return Ok(call.reply(&self.column_descriptors(&table).await?)),
            "getTableRegions" => return Ok(call.reply(&self.table_regions(&table).await?)),
            "enableTable" => self.enable_table(&table).await?,
            "disableTable" => self.disable_table(&table).await?,
            "deleteTable" => self.delete_table(&table).await?,
            _ => self.compact(&table, method == "majorCompact").await?,
        }
        Ok(call.done())
    }

    async fn call_rows(&self, method: &str, call: &mut Call<'_>) -> Result<Vec<u8>> {
        match method {
            "get" => {
                let GetColumn { table, row, column } = call.arguments()?;
                self.get_column(call, &table, &row, &column, None, 1).await
            }
            "getVer" => {
                let GetVersions { table, row, column, versions } = call.arguments()?;
                self.get_column(call, &table, &row, &column, None, versions).await
            }
            "getVerTs" => {
                let GetColumnAt { table, row, column, timestamp, versions } = call.arguments()?;
                self.get_column(call, &table, &row, &column, Some(timestamp), versions).await
            }
            "getRow" => {
                let Row { table, row } = call.arguments()?;
                self.get_row(call, &table, &row, None, None).await
            }
            "getRowWithColumns" => {
                let RowColumns { table, row, columns } = call.arguments()?;
                self.get_row(call, &table, &row, columns, None).await
            }
            "getRowTs" => {
                let RowAt { table, row, timestamp } = call.arguments()?;
                self.get_row(call, &table, &row, None, Some(timestamp)).await
            }
            "getRowWithColumnsTs" => {
                let RowColumnsAt { table, row, columns, timestamp } = call.arguments()?;
                self.get_row(call, &table, &row, columns, Some(timestamp)).await
            }
            "getRows" => {
                let Rows { table, rows } = call.arguments()?;
                self.get_rows(call, &table, rows, None, None).await
            }
            "getRowsWithColumns" => {
                let RowsColumns { table, rows, columns } = call.arguments()?;
                self.get_rows(call, &table, rows, columns, None).await
            }
            "getRowsTs" => {
                let RowsAt { table, rows, timestamp } = call.arguments()?;
                self.get_rows(call, &table, rows, None, Some(timestamp)).await
            }
            _ => {
                let RowsColumnsAt { table, rows, columns, timestamp } = call.arguments()?;
                self.get_rows(call, &table, rows, columns, Some(timestamp)).await
            }
        }
    }

    async fn call_scans(&self, method: &str, call: &mut Call<'_>) -> Result<Vec<u8>> {
        let id = match method {
            "scannerGet" => {
                let ScannerId { id } = call.arguments()?;
                return self.scanner_rows(call, id, 1).await;
            }
            "scannerGetList" => {
                let ScannerRows { id, rows } = call.arguments()?;
                return self.scanner_rows(call, id, rows).await;
            }
            "scannerClose" => {
                let ScannerId { id } = call.arguments()?;
                self.scanner_close(call, id)?;
                return Ok(call.done());
            }
            "scannerOpenWithScan" => {
                let OpenScan { table, scan, attributes } = call.arguments()?;
                self.open_scan(call.peer, &table, scan, &attributes)?
            }
            "scannerOpen" => {
                let OpenScanner { table, start, columns, attributes } = call.arguments()?;
                self.open_range(call.peer, &table, (start, None), columns, None, &attributes)?
            }
            "scannerOpenTs" => {
                let OpenScannerAt { table, start, columns, timestamp, attributes } = call.arguments()?;
                self.open_range(call.peer, &table, (start, None), columns, Some(timestamp), &attributes)?
            }
            "scannerOpenWithStop" => {
                let OpenScannerWithStop { table, start, stop, columns, attributes } = call.arguments()?;
                self.open_range(call.peer, &table, (start, Some(stop)), columns, None, &attributes)?
            }
            "scannerOpenWithStopTs" => {
                let OpenScannerWithStopAt { table, start, stop, columns, timestamp, attributes } =
                    call.arguments()?;
                let rows = (start, Some(stop));
                self.open_range(call.peer, &table, rows, columns, Some(timestamp), &attributes)?
            }
            _ => {
                let OpenPrefix { table, prefix, columns, attributes } = call.arguments()?;
                self.open_prefix(call.peer, &table, prefix, columns, &attributes)?
            }
        };
        Ok(call.reply(&id))
    }

    async fn call_changes(&self, method: &str, call: &mut Call<'_>) -> Result<Vec<u8>> {
        match method {
            "mutateRow" => {
                let MutateRow { table, row, mutations, attributes } = call.arguments()?;
                self.mutate_row(&table, &row, &mutations, None, &attributes).await?;
            }
            "mutateRowTs" => {
                let MutateRowAt { table, row, mutations, timestamp, attributes } = call.arguments()?;
                self.mutate_row(&table, &row, &mutations, Some(timestamp), &attributes).await?;
            }
            "mutateRows" => {
                let MutateRows { table, batches, attributes } = call.arguments()?;
                self.mutate_rows(&table, &batches, None, &attributes).await?;
            }
            "mutateRowsTs" => {
                let MutateRowsAt { table, batches, timestamp, attributes } = call.arguments()?;
                self.mutate_rows(&table, &batches, Some(timestamp), &attributes).await?;
            }
            "deleteAll" | "deleteAllTs" => {
                let DeleteColumn { table, row, column, timestamp } = call.arguments()?;
                let timestamp = timestamp.filter(|_| method == "deleteAllTs");
                self.delete(&table, &row, Some(&column), timestamp).await?;
            }
            "deleteAllRow" | "deleteAllRowTs" => {
                let DeleteRow { table, row, timestamp } = call.arguments()?;
                let timestamp = timestamp.filter(|_| method == "deleteAllRowTs");
                self.delete(&table, &row, None, timestamp).await?;
            }
            "atomicIncrement" => {
                let AtomicIncrement { table, row, column, value } = call.arguments()?;
                return Ok(call.reply(&self.atomic_increment(&table, &row, &column, value).await?));
            }
            "increment" => {
                let types::Increment { increment } = call.arguments()?;
                self.increment(increment).await?;
            }
            "incrementRows" => {
                let types::Increments { increments } = call.arguments()?;
                for increment in increments {
                    self.increment(increment).await?;
                }
            }
            "append" => {
                let types::Append { append } = call.arguments()?;
                return self.append(call, append).await;
            }
            "checkAndPut" => {
                let arguments: CheckAndPut = call.arguments()?;
                return Ok(call.reply(&self.check_and_put(arguments).await?));
            }
            _ => return Err(Failure::UnknownMethod),
        }
        Ok(call.done())
    }
}

/// Decodes a call as the arguments of those methods that together have every struct.
pub(crate) fn check_arguments(message: &Bytes, memory: &mut BudgetShare) {
    check::<CreateTable>(message, memory);
    check::<MutateRowsAt>(message, memory);
    check::<MutateRowAt>(message, memory);
    check::<CheckAndPut>(message, memory);
    check::<OpenScan>(message, memory);
    check::<OpenScannerWithStopAt>(message, memory);
    check::<RowsColumnsAt>(message, memory);
    check::<types::Increments>(message, memory);
    check::<types::Append>(message, memory);
}

/// Whether a method changes nothing.
fn is_read(method: &str) -> bool {
    method.starts_with("get") || method.starts_with("scanner") || method == "isTableEnabled"
}
