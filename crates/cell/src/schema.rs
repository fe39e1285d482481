//! Tables and families: names and attributes, stored as in HBase and read through typed getters.
//!
//! An attribute is a key with a text value. Unknown attributes are stored and returned unchanged.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::order::CellOrder;

/// Namespace of tables whose name does not state one.
pub const DEFAULT_NAMESPACE: &str = "default";
/// Namespace of the system tables.
pub const SYSTEM_NAMESPACE: &str = "hbase";

/// A table's namespace and qualifier. Displayed as `qualifier` in the default namespace, else
/// `namespace:qualifier`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    namespace: Arc<str>,
    qualifier: Arc<str>,
}

/// A name that HBase rejects; the message is HBase's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IllegalName(pub String);

impl TableName {
    /// `hbase:meta`.
    pub fn meta() -> TableName {
        TableName { namespace: SYSTEM_NAMESPACE.into(), qualifier: "meta".into() }
    }

    /// Validates the two parts as HBase does; an empty namespace means the default one.
    ///
    /// # Errors
    /// [`IllegalName`] with HBase's message.
    pub fn new(namespace: &str, qualifier: &str) -> Result<TableName, IllegalName> {
        let namespace = if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace };
        check_name_part(namespace, NAMESPACES, |c| c == '_' || c.is_alphanumeric())?;
        if qualifier.starts_with(['.', '-']) {
            return Err(IllegalName(format!(
                "Illegal first character <{}> at 0. User-space table qualifiers can only start with 'alphanumeric \
                 characters' from any language: {qualifier}",
                qualifier.as_bytes()[0]
            )));
        }
        check_name_part(qualifier, "User-space table qualifiers", |c| {
            matches!(c, '_' | '-' | '.') || c.is_alphanumeric()
        })?;
        Ok(TableName { namespace: namespace.into(), qualifier: qualifier.into() })
    }

    /// Parses `qualifier` or `namespace:qualifier`.
    ///
    /// # Errors
    /// [`IllegalName`] with HBase's message.
    pub fn parse(text: &str) -> Result<TableName, IllegalName> {
        match text.split_once(':') {
            Some((namespace, qualifier)) => TableName::new(namespace, qualifier),
            None => TableName::new(DEFAULT_NAMESPACE, text),
        }
    }

    /// The namespace; `default` for the default namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
    /// The name within the namespace.
    pub fn qualifier(&self) -> &str {
        &self.qualifier
    }
    /// Whether this is `hbase:meta`.
    pub fn is_meta(&self) -> bool {
        &*self.namespace == SYSTEM_NAMESPACE && &*self.qualifier == "meta"
    }
    /// Whether this is a system table.
    pub fn is_system(&self) -> bool {
        &*self.namespace == SYSTEM_NAMESPACE
    }
    /// Whether masters write this table: those of the namespace `hbase`, and `master:store`.
    pub fn is_written_by_masters(&self) -> bool {
        self.is_system() || (&*self.namespace == "master" && &*self.qualifier == "store")
    }
    /// The order of this table's cells.
    pub fn order(&self) -> CellOrder {
        if self.is_meta() { CellOrder::Meta } else { CellOrder::Plain }
    }
}

const NAMESPACES: &str = "Namespaces";

fn check_name_part(part: &str, what: &str, legal: impl Fn(char) -> bool) -> Result<(), IllegalName> {
    if part.is_empty() {
        return Err(IllegalName("Table qualifier must not be empty".into()));
    }
    match part.chars().enumerate().find(|(_, c)| !legal(*c)) {
        None => Ok(()),
        // HBase's `TableName` has a different message for each of the two kinds of names.
        Some((at, c)) if what == NAMESPACES => Err(IllegalName(format!(
            "Illegal character <{c}> at {at}. {what} may only contain 'alphanumeric characters' from any language and \
             digits: {part}",
        ))),
        Some((at, c)) => Err(IllegalName(format!(
            "Illegal character code:{}, <{c}> at {at}. {what} may only contain 'alphanumeric characters' and digits: \
             {part}",
            c as u32
        ))),
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if &*self.namespace == DEFAULT_NAMESPACE {
            f.write_str(&self.qualifier)
        } else {
            write!(f, "{}:{}", self.namespace, self.qualifier)
        }
    }
}

impl fmt::Debug for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Attributes: keys and values as the client sent them.
pub type Attributes = BTreeMap<Bytes, Bytes>;
/// Settings of a table or family that override the server's.
pub type Configuration = BTreeMap<String, String>;

/// A table: its name, families, attributes and settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDescriptor {
    /// The table's name.
    pub name: TableName,
    /// Attributes of the table, including unknown ones.
    pub attributes: Attributes,
    /// Settings that override the server's.
    pub configuration: Configuration,
    /// Families by name.
    pub families: BTreeMap<Bytes, FamilyDescriptor>,
}

/// A column family: its name, attributes and settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyDescriptor {
    /// The family's name.
    pub name: Bytes,
    /// Attributes of the family, including unknown ones.
    pub attributes: Attributes,
    /// Settings that override the table's.
    pub configuration: Configuration,
}

/// A namespace: its name and settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceDescriptor {
    /// The validated name.
    pub name: String,
    /// Settings, stored and returned unchanged.
    pub configuration: Configuration,
}

impl NamespaceDescriptor {
    /// A namespace without settings.
    ///
    /// # Errors
    /// [`IllegalName`] with HBase's message.
    pub fn new(name: &str) -> Result<NamespaceDescriptor, IllegalName> {
        check_name_part(name, NAMESPACES, |c| c == '_' || c.is_alphanumeric())?;
        Ok(NamespaceDescriptor { name: name.to_string(), configuration: Configuration::new() })
    }
}

/// Attributes that every family has in HBase, with their defaults, in HBase's display order.
///
/// Source: HBase 2.5 `ColumnFamilyDescriptorBuilder.getDefaultValues`.
pub const FAMILY_DEFAULTS: &[(&str, &str)] = &[
    ("INDEX_BLOCK_ENCODING", "NONE"),
    ("VERSIONS", "1"),
    ("KEEP_DELETED_CELLS", "FALSE"),
    ("DATA_BLOCK_ENCODING", "NONE"),
    ("TTL", "2147483647"),
    ("MIN_VERSIONS", "0"),
    ("REPLICATION_SCOPE", "0"),
    ("BLOOMFILTER", "ROW"),
    ("IN_MEMORY", "false"),
    ("COMPRESSION", "NONE"),
    ("BLOCKCACHE", "true"),
    ("BLOCKSIZE", "65536"),
];

impl FamilyDescriptor {
    /// Sets all missing attributes to their defaults, as HBase's servers do. Clients of other
    /// versions then see the values that are effective here.
    pub fn complete(&mut self) {
        for (name, default) in FAMILY_DEFAULTS {
            let name = Bytes::from_static(name.as_bytes());
            self.attributes.entry(name).or_insert_with(|| Bytes::from_static(default.as_bytes()));
        }
    }
}

/// How deleted cells are retained (`KEEP_DELETED_CELLS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepDeletedCells {
    /// Deleted cells are removed.
    False,
    /// Deleted cells are retained for reads with an older time range.
    True,
    /// Like `True`, until the cells' time to live has expired.
    Ttl,
}

/// Keys in a family's Bloom filters (`BLOOMFILTER`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BloomType {
    /// No filter.
    None,
    /// Rows.
    Row,
    /// Row and qualifier.
    RowCol,
    /// A fixed-length row prefix.
    RowPrefix,
}

/// Encoding of the cells in a data block (`DATA_BLOCK_ENCODING`); the numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum BlockEncoding {
    /// Cells are stored unencoded.
    None = 0,
    /// The key prefix that a cell shares with the previous one is omitted.
    Prefix = 2,
    /// Like `Prefix`, plus differences of lengths, timestamps and types.
    Diff = 3,
    /// Like `Diff`, simpler to decode, and repeated values are omitted.
    FastDiff = 4,
    /// Unencoded cells, followed by an index of rows.
    RowIndexV1 = 7,
}

impl BlockEncoding {
    /// The encoding with this HBase name, ignoring case.
    pub fn of_name(name: &str) -> Option<BlockEncoding> {
        Some(match name.to_ascii_uppercase().as_str() {
            "NONE" => BlockEncoding::None,
            "PREFIX" => BlockEncoding::Prefix,
            "DIFF" => BlockEncoding::Diff,
            "FAST_DIFF" => BlockEncoding::FastDiff,
            "ROW_INDEX_V1" => BlockEncoding::RowIndexV1,
            _ => return None,
        })
    }
}

/// A family's compression (`COMPRESSION`); the numbers are on disk (the ordinals of HBase's enum).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Compression {
    /// LZO.
    Lzo = 0,
    /// Gzip.
    Gz = 1,
    /// No compression.
    None = 2,
    /// Snappy.
    Snappy = 3,
    /// LZ4.
    Lz4 = 4,
    /// Bzip2.
    Bzip2 = 5,
    /// Zstandard.
    Zstd = 6,
    /// LZMA.
    Lzma = 7,
    /// Brotli.
    Brotli = 8,
}

impl Compression {
    /// All variants, in the order of their numbers.
    pub const ALL: [Compression; 9] = [
        Compression::Lzo,
        Compression::Gz,
        Compression::None,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Bzip2,
        Compression::Zstd,
        Compression::Lzma,
        Compression::Brotli,
    ];

    /// HBase's name.
    pub fn name(self) -> &'static str {
        match self {
            Compression::Lzo => "LZO",
            Compression::Gz => "GZ",
            Compression::None => "NONE",
            Compression::Snappy => "SNAPPY",
            Compression::Lz4 => "LZ4",
            Compression::Bzip2 => "BZIP2",
            Compression::Zstd => "ZSTD",
            Compression::Lzma => "LZMA",
            Compression::Brotli => "BROTLI",
        }
    }

    /// The compression with this HBase name, ignoring case.
    pub fn of_name(name: &str) -> Option<Compression> {
        Compression::ALL.into_iter().find(|compression| compression.name().eq_ignore_ascii_case(name))
    }

    /// Whether this server can read and write files with this compression.
    pub fn is_built_in(self) -> bool {
        use Compression::{Brotli, Bzip2, Lzma, Lzo};
        !matches!(self, Lzo | Bzip2 | Lzma | Brotli)
    }
}

impl TableDescriptor {
    /// A table without families or attributes.
    pub fn new(name: TableName) -> TableDescriptor {
        TableDescriptor {
            name,
            attributes: Attributes::new(),
            configuration: Configuration::new(),
            families: BTreeMap::new(),
        }
    }

    /// Adds or replaces a family.
    pub fn with_family(mut self, family: FamilyDescriptor) -> TableDescriptor {
        self.families.insert(family.name.clone(), family);
        self
    }

    /// An attribute's text; `None` if it is not set or is not text.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        text_of(&self.attributes, name)
    }

    /// A setting's text, from the attributes or else the configuration.
    pub fn setting(&self, key: &str) -> Option<&str> {
        self.attribute(key).or_else(|| self.configuration.get(key).map(String::as_str))
    }

    /// The first of these attributes and settings that is a positive number.
    pub fn positive_setting(&self, keys: &[&str]) -> Option<u64> {
        let number = |key: &&str| self.setting(key)?.trim().parse().ok().filter(|number| *number > 0);
        keys.iter().find_map(number)
    }

    /// Memstore bytes at which a region is flushed, if the table sets them.
    pub fn memstore_flush_bytes(&self) -> Option<u64> {
        self.positive_setting(&["MEMSTORE_FLUSHSIZE", "hbase.hregion.memstore.flush.size"])
    }

    /// Moves the configuration into the attributes. HBase's servers do this with a client's
    /// descriptor, because a table has one map for both.
    pub fn merge_configuration(&mut self) {
        for (key, value) in std::mem::take(&mut self.configuration) {
            self.attributes.insert(key.into(), value.into());
        }
    }

    /// Whether writes are rejected (`READONLY`).
    pub fn read_only(&self) -> bool {
        is_true(self.attribute("READONLY"))
    }

    /// The order of this table's cells.
    pub fn order(&self) -> CellOrder {
        self.name.order()
    }
}

impl FamilyDescriptor {
    /// A family with all attributes at their defaults.
    pub fn new(name: impl Into<Bytes>) -> FamilyDescriptor {
        FamilyDescriptor {
            name: name.into(),
            attributes: Attributes::new(),
            configuration: Configuration::new(),
        }
    }

    /// Sets an attribute.
    pub fn with(mut self, name: &str, value: &str) -> FamilyDescriptor {
        self.attributes
            .insert(Bytes::copy_from_slice(name.as_bytes()), Bytes::copy_from_slice(value.as_bytes()));
        self
    }

    /// An attribute's text; `None` if it is not set or is not text.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        text_of(&self.attributes, name)
    }

    /// A setting's text, from the attributes or else the configuration.
    pub fn setting(&self, key: &str) -> Option<&str> {
        self.attribute(key).or_else(|| self.configuration.get(key).map(String::as_str))
    }

    fn number<T: std::str::FromStr>(&self, name: &str, default: T) -> T {
        self.attribute(name).and_then(|text| text.parse().ok()).unwrap_or(default)
    }

    /// Maximum number of versions of a column (`VERSIONS`, default 1).
    pub fn max_versions(&self) -> u32 {
        self.number("VERSIONS", 1)
    }
    /// Number of versions retained after their time to live has expired (`MIN_VERSIONS`, default
    /// 0).
    pub fn min_versions(&self) -> u32 {
        self.number("MIN_VERSIONS", 0)
    }
    /// Time to live in milliseconds; `None` means forever (`TTL`, in seconds; 2147483647 means
    /// forever).
    pub fn ttl_ms(&self) -> Option<i64> {
        let seconds = match self.attribute("TTL") {
            None | Some("FOREVER") => return None,
            Some(text) => text.parse::<i64>().unwrap_or(i64::from(i32::MAX)),
        };
        (seconds != i64::from(i32::MAX) && seconds > 0).then(|| seconds.saturating_mul(1000))
    }
    /// How deleted cells are retained (`KEEP_DELETED_CELLS`, default `FALSE`).
    pub fn keep_deleted_cells(&self) -> KeepDeletedCells {
        match self.attribute("KEEP_DELETED_CELLS").map(str::to_ascii_uppercase).as_deref() {
            Some("TRUE") => KeepDeletedCells::True,
            Some("TTL") => KeepDeletedCells::Ttl,
            _ => KeepDeletedCells::False,
        }
    }
    /// Bytes of a data block before it is encoded (`BLOCKSIZE`, default 64 KiB).
    pub fn block_bytes(&self) -> u32 {
        self.number("BLOCKSIZE", 65536)
    }
    /// Keys in the Bloom filters (`BLOOMFILTER`, default `ROW`).
    pub fn bloom_type(&self) -> BloomType {
        match self.attribute("BLOOMFILTER").map(str::to_ascii_uppercase).as_deref() {
            Some("NONE") => BloomType::None,
            Some("ROWCOL") => BloomType::RowCol,
            Some("ROWPREFIX_FIXED_LENGTH") => BloomType::RowPrefix,
            _ => BloomType::Row,
        }
    }
    /// Encoding of data blocks (`DATA_BLOCK_ENCODING`, default `NONE`).
    pub fn block_encoding(&self) -> BlockEncoding {
        self.attribute("DATA_BLOCK_ENCODING").and_then(BlockEncoding::of_name).unwrap_or(BlockEncoding::None)
    }
    /// Compression of blocks (`COMPRESSION`, default `NONE`); `None` if HBase has no compression
    /// with this name.
    pub fn compression(&self) -> Option<Compression> {
        self.attribute("COMPRESSION").map_or(Some(Compression::None), Compression::of_name)
    }
    /// Compression of blocks that a compaction writes (`COMPRESSION_COMPACT_MAJOR`,
    /// `COMPRESSION_COMPACT_MINOR`, or `COMPRESSION_COMPACT` for both). The default is
    /// [`compression`](Self::compression).
    pub fn compaction_compression(&self, is_major: bool) -> Option<Compression> {
        let own = if is_major { "COMPRESSION_COMPACT_MAJOR" } else { "COMPRESSION_COMPACT_MINOR" };
        match self.attribute(own).or_else(|| self.attribute("COMPRESSION_COMPACT")) {
            Some(name) => Compression::of_name(name),
            None => self.compression(),
        }
    }
    /// Whether data blocks are cached when read (`BLOCKCACHE`, default true).
    pub fn block_cache(&self) -> bool {
        self.attribute("BLOCKCACHE").is_none_or(|text| is_true(Some(text)))
    }
    /// Whether large values are stored in MOB files (`IS_MOB`, default false).
    pub fn is_mob(&self) -> bool {
        self.is_set("IS_MOB")
    }
    /// Bytes above which a value is stored in a MOB file (`MOB_THRESHOLD`, default 100 KiB).
    pub fn mob_threshold(&self) -> u64 {
        let threshold = self.attribute("MOB_THRESHOLD").and_then(|text| text.parse().ok());
        threshold.unwrap_or(100 << 10)
    }
    /// Whether an attribute with the default false is true.
    pub fn is_set(&self, name: &str) -> bool {
        is_true(self.attribute(name))
    }
    /// The first compression name that the family sets, for flushes or compactions, and this server
    /// cannot write.
    pub fn unsupported_compression(&self) -> Option<&str> {
        ["COMPRESSION", "COMPRESSION_COMPACT", "COMPRESSION_COMPACT_MAJOR", "COMPRESSION_COMPACT_MINOR"]
            .into_iter()
            .filter_map(|name| self.attribute(name))
            .find(|name| !Compression::of_name(name).is_some_and(Compression::is_built_in))
    }
    /// Replication scope of changes: 0 for none, 1 for all peers (`REPLICATION_SCOPE`).
    pub fn replication_scope(&self) -> u32 {
        self.number("REPLICATION_SCOPE", 0)
    }
    /// Whether delete markers hide only cells written before them (`NEW_VERSION_BEHAVIOR`).
    pub fn new_version_behavior(&self) -> bool {
        is_true(self.attribute("NEW_VERSION_BEHAVIOR"))
    }
}

fn text_of<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a str> {
    attributes.get(name.as_bytes()).and_then(|value| std::str::from_utf8(value).ok())
}

fn is_true(text: Option<&str>) -> bool {
    text.is_some_and(|text| text.eq_ignore_ascii_case("true"))
}
