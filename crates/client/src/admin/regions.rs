//! Regions: split, merge, assign, unassign and move; and the related chores of the master.

use bytes::Bytes;
use cell::region::{RegionInfo, ServerName, encoded_name_of};
use cell::schema::TableName;
use proto::MasterSwitchType;
use proto::region_specifier::RegionSpecifierType;

use super::Admin;
use crate::error::{Error, Result};

impl Admin {
    /// The regions of a table in order, from `hbase:meta`, also those that were never open.
    ///
    /// # Errors
    /// [`Error::TableNotFound`] and others.
    pub async fn regions(&self, table: &TableName) -> Result<Vec<RegionInfo>> {
        if table.is_meta() {
            return Ok(vec![RegionInfo::meta()]);
        }
        match self.client.meta_rows(table).await? {
            rows if rows.is_empty() => Err(Error::TableNotFound(table.clone())),
            rows => Ok(rows.into_iter().map(|row| row.region).collect()),
        }
    }

    /// The region with a full or an encoded name; `None` if no table has it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn find_region(&self, name: &[u8]) -> Result<Option<RegionInfo>> {
        let Some(encoded) = encoded_name_of(name) else { return Ok(None) };
        for table in self.list_tables(None, true).await? {
            let found =
                self.regions(&table).await?.into_iter().find(|region| region.encoded_name() == encoded);
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Splits a region at `row`, or at a row that the server selects. The daughters are online when
    /// this returns.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn split_region(&self, region: &RegionInfo, row: Option<Bytes>) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request =
            proto::SplitTableRegionRequest { region_info: region.into(), split_row: row, nonce_group, nonce };
        let answer: proto::SplitTableRegionResponse = self.call_master("SplitRegion", &request).await?;
        self.wait_for(answer.proc_id).await?;
        self.client.shared.locations.forget_table(&region.table);
        Ok(())
    }

    /// Merges regions, given their encoded names. Unless `forcible`, they must be adjacent. The
    /// merged region is online when this returns.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn merge_regions(&self, names: &[Bytes], forcible: bool) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = proto::MergeTableRegionsRequest {
            region: names.iter().map(specifier).collect(),
            forcible: Some(forcible),
            nonce_group,
            nonce,
        };
        let answer: proto::MergeTableRegionsResponse =
            self.call_master("MergeTableRegions", &request).await?;
        self.wait_for(answer.proc_id).await
    }

    /// Opens a closed region.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn assign(&self, name: &Bytes) -> Result<()> {
        let request = proto::AssignRegionRequest { region: specifier(name), ..Default::default() };
        self.call_master("AssignRegion", &request).await.map(|_: proto::AssignRegionResponse| ())
    }

    /// Closes a region.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn unassign(&self, name: &Bytes) -> Result<()> {
        let request = proto::UnassignRegionRequest { region: specifier(name), ..Default::default() };
        self.call_master("UnassignRegion", &request).await.map(|_: proto::UnassignRegionResponse| ())
    }

    /// Moves a region to `server`, or to any other server.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn move_region(&self, name: &Bytes, server: Option<&ServerName>) -> Result<()> {
        let request =
            proto::MoveRegionRequest { region: specifier(name), dest_server_name: server.map(Into::into) };
        self.call_master("MoveRegion", &request).await.map(|_: proto::MoveRegionResponse| ())
    }

    /// Runs a Grampus repair by its name on the master, for one region if given. Returns a textual
    /// report.
    ///
    /// # Errors
    /// [`Error`]; HBase has no such repairs.
    pub async fn repair(&self, name: &str, region: Option<&str>) -> Result<String> {
        let argument = |region: &str| proto::NameStringPair { name: "region".into(), value: region.into() };
        let procedure = proto::ProcedureDescription {
            signature: "grampus-repair".into(),
            instance: Some(name.into()),
            configuration: region.map(argument).into_iter().collect(),
            ..Default::default()
        };
        let request = proto::ExecProcedureRequest { procedure };
        let answer: proto::ExecProcedureResponse = self.call_master("ExecProcedure", &request).await?;
        let text = answer.return_data.unwrap_or_default();
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Whether splits, or merges, of regions are enabled.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn is_allowed(&self, kind: MasterSwitchType) -> Result<bool> {
        let request = proto::IsSplitOrMergeEnabledRequest { switch_type: kind as i32 };
        let answer: proto::IsSplitOrMergeEnabledResponse =
            self.call_master("IsSplitOrMergeEnabled", &request).await?;
        Ok(answer.enabled)
    }

    /// Enables or disables splits, or merges; returns the previous setting.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn allow(&self, kind: MasterSwitchType, enabled: bool) -> Result<bool> {
        let request = proto::SetSplitOrMergeEnabledRequest {
            enabled,
            synchronous: Some(false),
            switch_types: vec![kind as i32],
        };
        let answer: proto::SetSplitOrMergeEnabledResponse =
            self.call_master("SetSplitOrMergeEnabled", &request).await?;
        Ok(answer.prev_value.first().copied().unwrap_or_default())
    }

    /// Whether the catalog janitor runs automatically.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn is_janitor_enabled(&self) -> Result<bool> {
        let request = proto::IsCatalogJanitorEnabledRequest {};
        let answer: proto::IsCatalogJanitorEnabledResponse =
            self.call_master("IsCatalogJanitorEnabled", &request).await?;
        Ok(answer.value)
    }

    /// Enables or disables the catalog janitor; returns the previous setting.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn enable_janitor(&self, enable: bool) -> Result<bool> {
        let request = proto::EnableCatalogJanitorRequest { enable };
        let answer: proto::EnableCatalogJanitorResponse =
            self.call_master("EnableCatalogJanitor", &request).await?;
        Ok(answer.prev_value())
    }

    /// Runs the catalog janitor now; returns the number of entries that it cleaned up.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn run_janitor(&self) -> Result<i32> {
        let request = proto::RunCatalogScanRequest {};
        let answer: proto::RunCatalogScanResponse = self.call_master("RunCatalogScan", &request).await?;
        Ok(answer.scan_result())
    }

    /// Whether the cleaner runs automatically.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn is_cleaner_enabled(&self) -> Result<bool> {
        let request = proto::IsCleanerChoreEnabledRequest {};
        let answer: proto::IsCleanerChoreEnabledResponse =
            self.call_master("IsCleanerChoreEnabled", &request).await?;
        Ok(answer.value)
    }

    /// Enables or disables the cleaner; returns the previous setting.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn enable_cleaner(&self, on: bool) -> Result<bool> {
        let request = proto::SetCleanerChoreRunningRequest { on };
        let answer: proto::SetCleanerChoreRunningResponse =
            self.call_master("SetCleanerChoreRunning", &request).await?;
        Ok(answer.prev_value())
    }

    /// Runs the cleaner now; returns whether it ran.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn run_cleaner(&self) -> Result<bool> {
        let request = proto::RunCleanerChoreRequest {};
        let answer: proto::RunCleanerChoreResponse = self.call_master("RunCleanerChore", &request).await?;
        Ok(answer.cleaner_chore_ran)
    }
}

/// A region specifier for a full or an encoded name.
fn specifier(name: &Bytes) -> proto::RegionSpecifier {
    let kind = match name.ends_with(b".") || name.contains(&b',') {
        true => RegionSpecifierType::RegionName,
        false => RegionSpecifierType::EncodedRegionName,
    };
    proto::RegionSpecifier { r#type: kind as i32, value: name.clone() }
}
