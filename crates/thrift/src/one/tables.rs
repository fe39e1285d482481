//! Tables, their families and regions.

use std::collections::BTreeMap;

use bytes::Bytes;
use cell::query::{CellSelection, FamilyColumns, Scan, column_parts};
use cell::schema::{Compression, FamilyDescriptor, TableDescriptor, TableName};
use client::{Error, ScanOptions};
use proto::exception::class;
use wire::meta::MetaRow;

use super::types::{Family, RegionInfo};
use crate::failure::{Failure, Result, excerpt};
use crate::gateway::Gateway;
use crate::mutations::table_name;

/// The names of HBase's Bloom filter types.
const BLOOM_FILTERS: [&str; 4] = ["NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH"];
/// The length of the encoded name of a region.
const ENCODED_NAME_LEN: usize = 32;

impl Gateway {
    pub(super) async fn table_names(&self) -> Result<Vec<Bytes>> {
        let tables = self.client.admin().list_tables(None, false).await?;
        Ok(tables.iter().map(|table| table.to_string().into()).collect())
    }

    pub(super) async fn table_states(&self) -> Result<BTreeMap<Bytes, bool>> {
        let admin = self.client.admin();
        let mut states = BTreeMap::new();
        for table in admin.list_tables(None, false).await? {
            states.insert(table.to_string().into(), admin.is_enabled(&table).await?);
        }
        Ok(states)
    }

    pub(super) async fn is_enabled(&self, table: &[u8]) -> Result<bool> {
        Ok(self.client.admin().is_enabled(&table_name(table)?).await?)
    }

    pub(super) async fn enable_table(&self, table: &[u8]) -> Result<()> {
        Ok(self.client.admin().enable_table(&table_name(table)?).await?)
    }

    pub(super) async fn disable_table(&self, table: &[u8]) -> Result<()> {
        Ok(self.client.admin().disable_table(&table_name(table)?).await?)
    }

    pub(super) async fn delete_table(&self, table: &[u8]) -> Result<()> {
        let (admin, table) = (self.client.admin(), table_name(table)?);
        if !admin.table_exists(&table).await? {
            return Err(Failure::io("table does not exist", true));
        }
        Ok(admin.delete_table(&table).await?)
    }

    /// Compacts a region or, if there is none of this name, a table. HBase 2.6 runs a minor
    /// compaction for `majorCompact`; this is a defect, and not repeated here.
    pub(super) async fn compact(&self, name: &[u8], major: bool) -> Result<()> {
        let admin = self.client.admin();
        let may_be_region = name.contains(&b',')
            || (name.len() == ENCODED_NAME_LEN && name.iter().all(u8::is_ascii_hexdigit));
        if may_be_region && let Some(region) = admin.find_region(name).await? {
            return Ok(admin.compact_region(&region, major).await?);
        }
        Ok(admin.compact(&table_name(name)?, major).await?)
    }

    pub(super) async fn create_table(&self, name: &[u8], families: Vec<Family>) -> Result<()> {
        let (admin, name) = (self.client.admin(), table_name(name)?);
        let exists = || Failure::Exists("table name already in use".into());
        if admin.table_exists(&name).await? {
            return Err(exists());
        }
        let mut table = TableDescriptor::new(name);
        for family in &families {
            table = table.with_family(descriptor(family)?);
        }
        match admin.create_table(&table, &[]).await {
            // Another client has created it in the meantime.
            Err(error) if error.is_class(class::TABLE_EXISTS) => Err(exists()),
            created => Ok(created?),
        }
    }

    pub(super) async fn column_descriptors(&self, table: &[u8]) -> Result<BTreeMap<Bytes, Family>> {
        let table = self.client.admin().describe(&table_name(table)?).await?;
        let families = table.families.values().map(family_of);
        Ok(families.map(|family| (family.name.clone(), family)).collect())
    }

    /// The regions of a table; none if it does not exist.
    pub(super) async fn table_regions(&self, table: &[u8]) -> Result<Vec<RegionInfo>> {
        match self.client.table(table_name(table)?).regions().await {
            Ok(regions) => Ok(regions
                .iter()
                .map(|location| {
                    let server = (location.server.host.clone(), location.server.port);
                    region_info(&location.region, Some(server))
                })
                .collect()),
            Err(Error::TableNotFound(_)) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// The region of a row of `hbase:meta`, or of the last one before it.
    pub(super) async fn region_info(&self, row: Bytes) -> Result<RegionInfo> {
        let name = excerpt(&row);
        let info = FamilyColumns { family: "info".into(), qualifiers: None };
        let selection = CellSelection { columns: vec![info], ..CellSelection::default() };
        let scan = Scan { start_row: row, reversed: true, selection, ..Scan::default() };
        let options = ScanOptions { caching: 1, limit: 1 };
        let found = self.client.table(TableName::meta()).scan_with(scan, options).next().await?;
        let missing = || Failure::io(format!("Cannot find row in hbase:meta, row={name}"), true);
        let found = found.ok_or_else(missing)?;
        let parsed = MetaRow::parse(found.cells.iter().map(|cell| cell.view(0)));
        let no_region =
            || Failure::io(format!("RegionInfo REGIONINFO was null or  empty in Meta for row={name}"), true);
        let parsed = parsed.ok_or_else(no_region)?;
        let server = parsed.server_name().map(|server| (server.host, server.port));
        Ok(region_info(&parsed.region, server))
    }
}

fn region_info(region: &cell::region::RegionInfo, server: Option<(String, u16)>) -> RegionInfo {
    let (server, port) = server.unzip();
    RegionInfo {
        start_key: region.start_key.clone(),
        end_key: region.end_key.clone(),
        id: region.region_id.cast_signed(),
        name: region.name(),
        server: server.map(Bytes::from),
        port: port.map(i32::from),
        ..RegionInfo::default()
    }
}

/// The descriptor of a new family.
fn descriptor(family: &Family) -> Result<FamilyDescriptor> {
    let compression = Compression::of_name(&family.compression).ok_or_else(|| {
        let name = excerpt(family.compression.to_ascii_lowercase().as_bytes());
        Failure::illegal(format!("Unsupported compression algorithm name: {name}"))
    })?;
    if !BLOOM_FILTERS.contains(&family.bloom_filter.as_str()) {
        return Err(Failure::illegal(format!(
            "No enum constant org.apache.hadoop.hbase.regionserver.BloomType.{}",
            excerpt(family.bloom_filter.as_bytes())
        )));
    }
    if family.name.is_empty() {
        return Err(Failure::Argument("column name is empty".into()));
    }
    if family.max_versions <= 0 {
        return Err(Failure::illegal("Maximum versions must be positive"));
    }
    let ttl_s = if family.ttl_s > 0 { family.ttl_s } else { i32::MAX };
    let (name, _) = column_parts(&family.name);
    let mut descriptor = FamilyDescriptor::new(name)
        .with("VERSIONS", &family.max_versions.to_string())
        .with("COMPRESSION", compression.name())
        .with("IN_MEMORY", &family.in_memory.to_string())
        .with("BLOCKCACHE", &family.block_cache.to_string())
        .with("TTL", &ttl_s.to_string())
        .with("BLOOMFILTER", &family.bloom_filter);
    descriptor.complete();
    Ok(descriptor)
}

fn family_of(family: &FamilyDescriptor) -> Family {
    let text = |name: &str, default: &str| family.attribute(name).unwrap_or(default).to_ascii_uppercase();
    Family {
        name: [&family.name[..], b":"].concat().into(),
        max_versions: family.max_versions().cast_signed(),
        compression: text("COMPRESSION", "NONE"),
        in_memory: family.is_set("IN_MEMORY"),
        bloom_filter: text("BLOOMFILTER", "ROW"),
        block_cache: family.block_cache(),
        ttl_s: family.ttl_ms().map_or(i32::MAX, |ms| i32::try_from(ms / 1000).unwrap_or(i32::MAX)),
        ..Family::default()
    }
}
