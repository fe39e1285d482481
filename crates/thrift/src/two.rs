//! Thrift 2: the service `THBaseService`
//! (`org.apache.hadoop.hbase.thrift2.ThriftHBaseServiceHandler`).

mod changes;
mod descriptors;
mod rows;
mod scans;
mod tables;
mod types;

use base::budget::BudgetShare;
use bytes::Bytes;
use proto::exception::class;

use crate::call::Call;
use crate::check::check;
use crate::failure::{Declared, Failure, Result};
use crate::gateway::Gateway;
use types::{
    AppendArguments, CheckAndDelete, CheckAndMutate, CheckAndPut, DeleteArguments, DeletesArguments,
    FamilyDefinition, FamilyName, GetArguments, GetsArguments, IncrementArguments, MutateRow,
    NamespaceArgument, NamespaceName, OpenScanner, Pattern, PutArguments, PutsArguments, RegionLocation,
    RowResult, RowResults, ScannerResults, ScannerRows, TDelete, TableArgument, TableDefinition, TableSplits,
    Tables,
};

/// The number of this service in `getThriftServerType`.
const SERVER_TYPE: i32 = 2;

/// Methods that read rows.
const READS: [&str; 10] = [
    "exists",
    "existsAll",
    "get",
    "getMultiple",
    "openScanner",
    "getScannerRows",
    "getScannerResults",
    "closeScanner",
    "getRegionLocation",
    "getAllRegionLocations",
];

/// Methods that change rows.
const CHANGES: [&str; 10] = [
    "put",
    "putMultiple",
    "deleteSingle",
    "deleteMultiple",
    "checkAndPut",
    "checkAndDelete",
    "checkAndMutate",
    "mutateRow",
    "increment",
    "append",
];

/// Methods that read descriptions of tables and namespaces.
const DESCRIPTIONS: [&str; 15] = [
    "getTableDescriptor",
    "getTableDescriptors",
    "getTableDescriptorsByPattern",
    "getTableDescriptorsByNamespace",
    "getTableNamesByPattern",
    "getTableNamesByNamespace",
    "tableExists",
    "isTableEnabled",
    "isTableDisabled",
    "isTableAvailable",
    "isTableAvailableWithSplit",
    "getNamespaceDescriptor",
    "listNamespaceDescriptors",
    "listNamespaces",
    "getSlowLogResponses",
];

/// Methods that change tables and namespaces.
const DEFINITIONS: [&str; 13] = [
    "createTable",
    "deleteTable",
    "truncateTable",
    "enableTable",
    "disableTable",
    "modifyTable",
    "addColumnFamily",
    "modifyColumnFamily",
    "deleteColumnFamily",
    "createNamespace",
    "modifyNamespace",
    "deleteNamespace",
    "clearSlowLogResponses",
];

/// The exceptions of a method; `None` if there is no such method.
pub(crate) fn declared(method: &str) -> Option<Declared> {
    match method {
        "getThriftServerType" | "getClusterId" => Some(Declared::Nothing),
        "getScannerRows" | "closeScanner" => Some(Declared::IoAndArgument),
        _ => {
            let mut groups = [&READS[..], &CHANGES, &DESCRIPTIONS, &DEFINITIONS].into_iter();
            groups.any(|methods| methods.contains(&method)).then_some(Declared::Io)
        }
    }
}

impl Gateway {
    /// Executes a method of this service.
    pub(crate) async fn call_two(&self, method: &str, call: &mut Call<'_>) -> Result<Vec<u8>> {
        let is_change = CHANGES.contains(&method) || DEFINITIONS.contains(&method);
        if self.options.read_only && is_change {
            return Err(Failure::io("Thrift Server is in Read-only mode.", false));
        }
        match method {
            "getThriftServerType" => Ok(call.reply(&SERVER_TYPE)),
            "getClusterId" => Ok(call.reply(&self.client.cluster_id().await?)),
            "getSlowLogResponses" | "clearSlowLogResponses" => {
                Err(Failure::of_class(class::DO_NOT_RETRY_IO, &format!("{method} is not supported")))
            }
            _ if READS.contains(&method) => self.call_reads(method, call).await,
            _ if CHANGES.contains(&method) => self.call_row_changes(method, call).await,
            _ if DESCRIPTIONS.contains(&method) => self.call_descriptions(method, call).await,
            _ => self.call_definitions(method, call).await,
        }
    }

    async fn call_reads(&self, method: &str, call: &mut Call<'_>) -> Result<Vec<u8>> {
        match method {
            "exists" => {
                let GetArguments { table, get } = call.arguments()?;
                Ok(call.reply(&self.exists(&table, &get).await?))
            }
            "existsAll" => {
                let GetsArguments { table, gets } = call.arguments()?;
                Ok(call.reply(&self.exist_all(&table, &gets).await?))
            }
            "get" => {
                let GetArguments { table, get } = call.arguments()?;
                let row = self.get(call, &table, &get).await?;
                Ok(call.reply(&RowResult(&row)))
            }
            "getMultiple" => {
                let GetsArguments { table, gets } = call.arguments()?;
                let rows = self.get_multiple(call, &table, &gets).await?;
                Ok(call.reply(&RowResults(&rows)))
            }
            "openScanner" => {
                let OpenScanner { table, scan } = call.arguments()?;
                Ok(call.reply(&self.open(call.peer, &table, scan)?))
            }
            "getScannerRows" => {
                let ScannerRows { id, rows } = call.arguments()?;
                self.rows_of_scanner(call, id, rows).await
            }
            "getScannerResults" => {
                let ScannerResults { table, scan, rows } = call.arguments()?;
                self.rows_of_scan(call, &table, scan, rows).await
            }
            "closeScanner" => {
                let ScannerRows { id, .. } = call.arguments()?;
                // As in HBase, an unknown id is no error.
                self.close_scanner(id, call.peer);
                Ok(call.done())
            }
            "getRegionLocation" => {
                let RegionLocation { table, row, reload } = call.arguments()?;
                Ok(call.reply(&self.region_location(&table, &row, reload).await?))
            }
            _ => {
                let RegionLocation { table, .. } = call.arguments()?;
                Ok(call.reply(&self.region_locations(&table).await?))
            }
        }
    }

    async fn call_row_changes(&self, method: &str, call: &mut Call<'_>) -> Result<Vec<u8>> {
        match method {
            "put" => {
                let PutArguments { table, put } = call.arguments()?;
                self.put(&table, &put).await?;
            }
            "putMultiple" => {
                let PutsArguments { table, puts } = call.arguments()?;
                self.put_multiple(&table, &puts).await?;
            }
            "deleteSingle" => {
                let DeleteArguments { table, delete } = call.arguments()?;
                self.delete_single(&table, &delete).await?;
            }
            "deleteMultiple" => {
                let DeletesArguments { table, deletes } = call.arguments()?;
                self.delete_multiple(&table, &deletes).await?;
                // The deletes that failed. As in HBase, there are none: a failure is an exception.
                return Ok(call.reply(&Vec::<TDelete>::new()));
            }
            "checkAndPut" => {
                let arguments: CheckAndPut = call.arguments()?;
                return Ok(call.reply(&self.check_put(arguments).await?));
            }
            "checkAndDelete" => {
                let arguments: CheckAndDelete = call.arguments()?;
                return Ok(call.reply(&self.check_delete(arguments).await?));
            }
            "checkAndMutate" => {
                let arguments: CheckAndMutate = call.arguments()?;
                return Ok(call.reply(&self.check_mutate(arguments).await?));
            }
            "mutateRow" => {
                let MutateRow { table, mutations } = call.arguments()?;
                self.mutate_atomically(&table, &mutations).await?;
            }
            "increment" => {
                let IncrementArguments { table, increment } = call.arguments()?;
                let row = self.increment_columns(call, &table, &increment).await?;
                return Ok(call.reply(&RowResult(&row)));
            }
            _ => {
                let AppendArguments { table, append } = call.arguments()?;
                let row = self.append_to_columns(call, &table, &append).await?;
                return Ok(call.reply(&RowResult(&row)));
            }
        }
        Ok(call.done())
    }

    async fn call_descriptions(&self, method: &str, call: &mut Call<'_>) -> Result<Vec<u8>> {
        match method {
            "getTableDescriptor" => {
                let TableArgument { table, .. } = call.arguments()?;
                Ok(call.reply(&self.table_descriptor(&table).await?))
            }
            "getTableDescriptors" => {
                let Tables { tables } = call.arguments()?;
                Ok(call.reply(&self.table_descriptors(&tables).await?))
            }
            "getTableDescriptorsByPattern" => {
                let Pattern { regex, with_system } = call.arguments()?;
                Ok(call.reply(&self.descriptors_by_pattern(regex.as_deref(), with_system).await?))
            }
            "getTableDescriptorsByNamespace" => {
                let NamespaceName { name } = call.arguments()?;
                Ok(call.reply(&self.descriptors_by_namespace(&name).await?))
            }
            "getTableNamesByPattern" => {
                let Pattern { regex, with_system } = call.arguments()?;
                Ok(call.reply(&self.names_by_pattern(regex.as_deref(), with_system).await?))
            }
            "getTableNamesByNamespace" => {
                let NamespaceName { name } = call.arguments()?;
                Ok(call.reply(&self.names_by_namespace(&name).await?))
            }
            "isTableAvailableWithSplit" => {
                let TableSplits { table, split_keys } = call.arguments()?;
                Ok(call.reply(&self.is_available(&table, split_keys.as_deref()).await?))
            }
            "getNamespaceDescriptor" => {
                let NamespaceName { name } = call.arguments()?;
                Ok(call.reply(&self.namespace(&name).await?))
            }
            "listNamespaceDescriptors" => Ok(call.reply(&self.namespaces().await?)),
            "listNamespaces" => Ok(call.reply(&self.namespace_names().await?)),
            _ => {
                let TableArgument { table, .. } = call.arguments()?;
                Ok(call.reply(&match method {
                    "tableExists" => self.table_exists(&table).await?,
                    "isTableEnabled" => self.has_state(&table, true).await?,
                    "isTableDisabled" => self.has_state(&table, false).await?,
                    _ => self.is_available(&table, None).await?,
                }))
            }
        }
    }

    async fn call_definitions(&self, method: &str, call: &mut Call<'_>) -> Result<Vec<u8>> {
        match method {
            "createTable" => {
                let TableDefinition { table, split_keys } = call.arguments()?;
                self.define_table(&table, &split_keys.unwrap_or_default()).await?;
            }
            "modifyTable" => {
                let TableDefinition { table, .. } = call.arguments()?;
                self.modify_table(&table).await?;
            }
            "addColumnFamily" | "modifyColumnFamily" => {
                let FamilyDefinition { table, family } = call.arguments()?;
                self.define_family(&table, &family, method == "addColumnFamily").await?;
            }
            "deleteColumnFamily" => {
                let FamilyName { table, family } = call.arguments()?;
                self.delete_family(&table, &family).await?;
            }
            "createNamespace" | "modifyNamespace" => {
                let NamespaceArgument { namespace } = call.arguments()?;
                self.define_namespace(&namespace, method == "createNamespace").await?;
            }
            "deleteNamespace" => {
                let NamespaceName { name } = call.arguments()?;
                self.delete_namespace(&name).await?;
            }
            _ => {
                let TableArgument { table, preserve_splits } = call.arguments()?;
                match method {
                    "deleteTable" => self.drop_table(&table).await?,
                    "truncateTable" => self.truncate_table(&table, preserve_splits).await?,
                    _ => self.set_state(&table, method == "enableTable").await?,
                }
            }
        }
        Ok(call.done())
    }
}

/// Decodes a call as the arguments of those methods that together have every struct.
pub(crate) fn check_arguments(message: &Bytes, memory: &mut BudgetShare) {
    check::<GetsArguments>(message, memory);
    check::<PutsArguments>(message, memory);
    check::<DeletesArguments>(message, memory);
    check::<CheckAndMutate>(message, memory);
    check::<CheckAndDelete>(message, memory);
    check::<IncrementArguments>(message, memory);
    check::<AppendArguments>(message, memory);
    check::<ScannerResults>(message, memory);
    check::<TableDefinition>(message, memory);
    check::<FamilyDefinition>(message, memory);
    check::<NamespaceArgument>(message, memory);
    check::<Tables>(message, memory);
}
