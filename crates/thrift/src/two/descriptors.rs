//! Descriptors of tables and families.

use bytes::Bytes;
use cell::schema::{
    BlockEncoding, BloomType, Compression, FamilyDescriptor, KeepDeletedCells, TableDescriptor, TableName,
};

use super::types::{TColumnFamilyDescriptor, TTableDescriptor, TTableName};
use crate::failure::{Failure, Result};

/// The names of `TBloomFilterType`, by number.
const BLOOM_FILTERS: [&str; 4] = ["NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH"];
/// The names of `TCompressionAlgorithm`, by number.
const COMPRESSIONS: [&str; 7] = ["LZO", "GZ", "NONE", "SNAPPY", "LZ4", "BZIP2", "ZSTD"];
/// The names of `TDataBlockEncoding`, by number.
const BLOCK_ENCODINGS: [&str; 8] = ["NONE", "", "PREFIX", "DIFF", "FAST_DIFF", "", "", "ROW_INDEX_V1"];
/// The names of `TKeepDeletedCells`, by number.
const KEEP_DELETED_CELLS: [&str; 3] = ["FALSE", "TRUE", "TTL"];
/// The names of `TDurability`, by number.
const DURABILITIES: [&str; 5] = ["USE_DEFAULT", "SKIP_WAL", "ASYNC_WAL", "SYNC_WAL", "FSYNC_WAL"];
/// The attribute of a table with the durability of its changes.
const DURABILITY: &str = "DURABILITY";

/// The attribute of a table that HBase computes and never stores.
const IS_META: &str = "IS_META";

/// The name of a table.
///
/// # Errors
/// As in HBase, an invalid name is not a declared exception.
pub(super) fn table_name_of(name: &TTableName) -> Result<TableName> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let namespace = name.namespace.as_deref().map(text).unwrap_or_default();
    TableName::new(&namespace, &text(&name.qualifier)).map_err(|_| Failure::Internal)
}

pub(super) fn name_to(name: &TableName) -> TTableName {
    TTableName {
        namespace: Some(name.namespace().to_owned().into()),
        qualifier: name.qualifier().to_owned().into(),
    }
}

/// The descriptor of a request.
///
/// # Errors
/// As in HBase, an invalid one is not a declared exception.
pub(super) fn table_from(table: &TTableDescriptor) -> Result<TableDescriptor> {
    let mut descriptor = TableDescriptor::new(table_name_of(&table.name)?);
    descriptor.attributes = table.attributes.clone().unwrap_or_default();
    descriptor.attributes.remove(IS_META.as_bytes());
    for family in table.families.as_deref().ok_or(Failure::Internal)? {
        descriptor = descriptor.with_family(family_from(family)?);
    }
    if let Some(name) = name_of(&DURABILITIES, table.durability)? {
        descriptor.attributes.insert(DURABILITY.into(), name.into());
    }
    Ok(descriptor)
}

pub(super) fn table_to(table: &TableDescriptor) -> TTableDescriptor {
    let families: Vec<_> = table.families.values().map(family_to).collect();
    TTableDescriptor {
        name: name_to(&table.name),
        families: Some(families).filter(|families| !families.is_empty()),
        attributes: Some(all_attributes(table)),
        durability: Some(number_of(&DURABILITIES, table.attribute(DURABILITY).unwrap_or(DURABILITIES[0]))),
    }
}

/// The attributes and the settings, which HBase returns as one map.
fn all_attributes(table: &TableDescriptor) -> cell::schema::Attributes {
    let mut all = table.attributes.clone();
    all.extend(table.configuration.iter().map(|(key, value)| (key.clone().into(), value.clone().into())));
    all.insert(IS_META.into(), table.name.is_meta().to_string().into());
    all
}

/// The descriptor of a request's family, with HBase's defaults.
///
/// # Errors
/// As in HBase, an invalid one is not a declared exception.
pub(super) fn family_from(family: &TColumnFamilyDescriptor) -> Result<FamilyDescriptor> {
    if family.name.is_empty() {
        return Err(Failure::Internal);
    }
    let mut descriptor = FamilyDescriptor::new(family.name.clone());
    descriptor.attributes = family.attributes.clone().unwrap_or_default();
    descriptor.configuration = family.configuration.clone().unwrap_or_default();
    let number = |number: Option<i32>| number.map(|number| number.to_string());
    let flag = |flag: Option<bool>| flag.map(|flag| flag.to_string());
    let name = |name: Option<&'static str>| name.map(str::to_owned);
    let settings = [
        ("BLOCKSIZE", number(family.block_bytes)),
        ("BLOOMFILTER", name(name_of(&BLOOM_FILTERS, family.bloom_filter)?)),
        ("COMPRESSION", name(name_of(&COMPRESSIONS, family.compression)?)),
        ("DFS_REPLICATION", number(family.replicas.map(i32::from))),
        ("DATA_BLOCK_ENCODING", name(name_of(&BLOCK_ENCODINGS, family.block_encoding)?)),
        ("KEEP_DELETED_CELLS", name(name_of(&KEEP_DELETED_CELLS, family.keep_deleted_cells)?)),
        ("VERSIONS", number(family.max_versions)),
        ("MIN_VERSIONS", number(family.min_versions)),
        ("REPLICATION_SCOPE", number(family.scope)),
        ("TTL", number(family.ttl_s)),
        ("BLOCKCACHE", flag(family.block_cache)),
        ("CACHE_BLOOMS_ON_WRITE", flag(family.cache_blooms_on_write)),
        ("CACHE_DATA_ON_WRITE", flag(family.cache_data_on_write)),
        ("CACHE_INDEX_ON_WRITE", flag(family.cache_indexes_on_write)),
        ("COMPRESS_TAGS", flag(family.compress_tags)),
        ("EVICT_BLOCKS_ON_CLOSE", flag(family.evict_blocks_on_close)),
        ("IN_MEMORY", flag(family.in_memory)),
    ];
    for (key, value) in settings {
        if let Some(value) = value {
            descriptor.attributes.insert(Bytes::from_static(key.as_bytes()), value.into());
        }
    }
    descriptor.complete();
    Ok(descriptor)
}

fn family_to(family: &FamilyDescriptor) -> TColumnFamilyDescriptor {
    let signed = |number: u32| Some(number.cast_signed());
    let number = |key: &str| family.attribute(key).and_then(|text| text.parse::<i16>().ok());
    TColumnFamilyDescriptor {
        name: family.name.clone(),
        attributes: Some(family.attributes.clone()).filter(|attributes| !attributes.is_empty()),
        configuration: Some(family.configuration.clone()).filter(|settings| !settings.is_empty()),
        block_bytes: signed(family.block_bytes()),
        bloom_filter: Some(match family.bloom_type() {
            BloomType::None => 0,
            BloomType::Row => 1,
            BloomType::RowCol => 2,
            BloomType::RowPrefix => 3,
        }),
        compression: Some(family.compression().unwrap_or(Compression::None) as i32),
        replicas: Some(number("DFS_REPLICATION").unwrap_or(0)),
        block_encoding: Some(match family.block_encoding() {
            BlockEncoding::None => 0,
            encoding => encoding as i32,
        }),
        keep_deleted_cells: Some(match family.keep_deleted_cells() {
            KeepDeletedCells::False => 0,
            KeepDeletedCells::True => 1,
            KeepDeletedCells::Ttl => 2,
        }),
        max_versions: signed(family.max_versions()),
        min_versions: signed(family.min_versions()),
        scope: signed(family.replication_scope()),
        ttl_s: Some(family.ttl_ms().map_or(i32::MAX, |ms| i32::try_from(ms / 1000).unwrap_or(i32::MAX))),
        block_cache: Some(family.block_cache()),
        cache_blooms_on_write: Some(family.is_set("CACHE_BLOOMS_ON_WRITE")),
        cache_data_on_write: Some(family.is_set("CACHE_DATA_ON_WRITE")),
        cache_indexes_on_write: Some(family.is_set("CACHE_INDEX_ON_WRITE")),
        compress_tags: Some(
            family.attribute("COMPRESS_TAGS").is_none_or(|text| text.eq_ignore_ascii_case("true")),
        ),
        evict_blocks_on_close: Some(family.is_set("EVICT_BLOCKS_ON_CLOSE")),
        in_memory: Some(family.is_set("IN_MEMORY")),
    }
}

/// The name of an enumerated value.
fn name_of(names: &[&'static str], number: Option<i32>) -> Result<Option<&'static str>> {
    let Some(number) = number else { return Ok(None) };
    let name =
        usize::try_from(number).ok().and_then(|number| names.get(number)).filter(|name| !name.is_empty());
    name.map(|name| Some(*name)).ok_or(Failure::Internal)
}

fn number_of(names: &[&str], name: &str) -> i32 {
    let position = names.iter().position(|known| known.eq_ignore_ascii_case(name));
    position.map_or(0, |position| position as i32)
}
