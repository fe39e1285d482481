//! The rows of the attribute table, one per key.

use base::classes::{CompactionPolicy, FlushPolicy, SplitPolicy, StoreEngine};

use super::Attribute;
use super::Form::{self, Boolean, Decimal, Exactly, Integer, IntegerOr, OneOf, Text};
use super::Scope::{self, Both, Family, Table};
use super::Treatment::{self, Compatibility, Honoured, Refused};

const INT_MAX: i64 = i32::MAX as i64;
/// The only flush policy whose behavior Grampus has.
const FLUSHES_ALL: &[&str] = &[FlushPolicy::AllStores.class()];

const fn row(
    name: &'static str,
    scope: Scope,
    form: Form,
    treatment: Treatment,
    doc: &'static str,
) -> Attribute {
    Attribute { name, scope, form, treatment, doc }
}

/// Every key that HBase 2.5, 2.6 or 3.0 gives a meaning to and this server accepts, and the keys
/// that it refuses for a specific reason.
///
/// Source: HBase `TableDescriptorBuilder`, `ColumnFamilyDescriptorBuilder`, and the classes that
/// read a store's or a region's configuration.
#[rustfmt::skip]
pub const ATTRIBUTES: &[Attribute] = &[
    // Families: retention.
    row("VERSIONS", Family, Integer(1, INT_MAX), Honoured, "Maximum number of versions retained per column."),
    row("MIN_VERSIONS", Family, Integer(0, INT_MAX), Honoured, "Number of versions retained after `TTL` has expired."),
    row("TTL", Family, IntegerOr(1, INT_MAX, "FOREVER"), Honoured, "Time to live in seconds; 2147483647 keeps cells forever."),
    row("KEEP_DELETED_CELLS", Family, OneOf(&["FALSE", "TRUE", "TTL"]), Honoured, "Whether reads with an older time range see deleted cells."),
    row("NEW_VERSION_BEHAVIOR", Family, Boolean, Honoured, "Whether a delete hides only cells written before it."),
    // Families: files.
    row("BLOCKSIZE", Family, Integer(1, INT_MAX), Honoured, "Bytes of a data block before encoding."),
    row("BLOOMFILTER", Family, OneOf(&["NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH"]), Honoured, "Keys that the Bloom filters contain."),
    row("RowPrefixBloomFilter.prefix_length", Both, Integer(1, 32766), Honoured, "Prefix length of `ROWPREFIX_FIXED_LENGTH`."),
    row("COMPRESSION", Family, OneOf(&["NONE", "GZ", "SNAPPY", "LZ4", "ZSTD"]), Honoured, "Compression of files."),
    row("COMPRESSION_COMPACT", Family, OneOf(&["NONE", "GZ", "SNAPPY", "LZ4", "ZSTD"]), Honoured, "Compression of files that compactions write."),
    row("COMPRESSION_COMPACT_MAJOR", Family, OneOf(&["NONE", "GZ", "SNAPPY", "LZ4", "ZSTD"]), Honoured, "The same, for major compactions."),
    row("COMPRESSION_COMPACT_MINOR", Family, OneOf(&["NONE", "GZ", "SNAPPY", "LZ4", "ZSTD"]), Honoured, "The same, for minor compactions."),
    row("DATA_BLOCK_ENCODING", Family, OneOf(&["NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"]), Honoured, "Encoding of data blocks."),
    row("COMPRESS_TAGS", Family, Boolean, Honoured, "Whether tags are compressed in encoded blocks."),
    row("COLUMN_SIDECAR", Family, Boolean, Honoured, "Whether files have a column sidecar (`docs/formats/sidecar.md`)."),
    row("INDEX_BLOCK_ENCODING", Family, Text, Refused(&["NONE"]), "Encoded index blocks are not written."),
    row("hbase.store.file-tracker.impl", Both, Text, Refused(&["DEFAULT"]), "A store consists of the files in its directory."),
    row("IS_MOB", Family, Boolean, Honoured, "Whether large values are stored in separate files (`docs/mob.md`)."),
    row("MOB_THRESHOLD", Family, Integer(0, i64::MAX), Honoured, "Bytes above which a value is stored in a MOB file."),
    row("MOB_COMPACT_PARTITION_POLICY", Family, OneOf(&["DAILY", "WEEKLY", "MONTHLY"]), Compatibility(&["DAILY"]), "HBase ignores it too since 2.5."),
    row("hbase.mob.compaction.type", Both, OneOf(&["full", "optimized"]), Honoured, "Which values in MOB files a user's major compaction rewrites."),
    row("hbase.mob.compactions.max.file.size", Both, Integer(1, i64::MAX), Honoured, "Bytes from which `optimized` leaves a MOB file as it is."),
    // Families: the block cache.
    row("IN_MEMORY", Family, Boolean, Honoured, "Whether data blocks use a separate share of the block cache."),
    row("BLOCKCACHE", Family, Boolean, Honoured, "Whether data blocks are cached when they are read."),
    row("CACHE_DATA_ON_WRITE", Family, Boolean, Honoured, "Whether flushes cache data blocks."),
    row("CACHE_INDEX_ON_WRITE", Family, Boolean, Honoured, "Whether written index blocks are cached."),
    row("CACHE_BLOOMS_ON_WRITE", Family, Boolean, Honoured, "Whether written Bloom filter blocks are cached."),
    row("EVICT_BLOCKS_ON_CLOSE", Family, Boolean, Honoured, "Whether blocks are evicted when a region closes."),
    row("PREFETCH_BLOCKS_ON_OPEN", Family, Boolean, Honoured, "Whether blocks are cached when a file is opened."),
    // Families: compatibility.
    row("IN_MEMORY_COMPACTION", Family, OneOf(&["NONE", "BASIC", "EAGER", "ADAPTIVE"]), Compatibility(&["NONE"]), "Memstores are not compacted in memory."),
    row("REPLICATION_SCOPE", Family, Integer(0, 1), Compatibility(&["0"]), "There are no replication peers."),
    row("DFS_REPLICATION", Family, Integer(0, 32767), Compatibility(&["0", "1"]), "Files have one copy, on the local disk."),
    row("STORAGE_POLICY", Family, OneOf(&["HOT", "WARM", "COLD", "ONE_SSD", "ALL_SSD", "ALL_NVDIMM", "LAZY_PERSIST", "PROVIDED"]), Honoured, "The tier of files (`docs/tiers.md`), or the storage policy of the directory on HDFS (`docs/hdfs.md`)."),
    // Families: unsupported.
    row("ENCRYPTION", Family, Text, Refused(&[]), "Files are not encrypted."),
    row("ENCRYPTION_KEY", Family, Text, Refused(&[]), "Files are not encrypted."),
    // Tables.
    row("READONLY", Table, Boolean, Honoured, "Whether writes are rejected."),
    row("DURABILITY", Table, OneOf(&["USE_DEFAULT", "SKIP_WAL", "ASYNC_WAL", "SYNC_WAL", "FSYNC_WAL"]), Honoured, "Durability of writes that do not state one; `ASYNC_WAL` waits like `SYNC_WAL`."),
    row("MEMSTORE_FLUSHSIZE", Table, Integer(-1, i64::MAX), Honoured, "Memstore bytes at which a region is flushed; -1 uses the server's setting."),
    row("hbase.hregion.memstore.flush.size", Table, Integer(1, i64::MAX), Honoured, "The same; `MEMSTORE_FLUSHSIZE` overrides it."),
    row("COMPACTION_ENABLED", Table, Boolean, Honoured, "Whether files are compacted."),
    row("hbase.table.sanity.checks", Table, Boolean, Honoured, "Whether HBase's recommended ranges are checked."),
    row("coprocessor$N", Table, Text, Honoured, "`AggregateImplementation` and `MultiRowMutationEndpoint` are built in; other classes are refused."),
    // Tables: splits and merges.
    row("SPLIT_ENABLED", Table, Boolean, Honoured, "Whether regions may be split."),
    row("MERGE_ENABLED", Table, Boolean, Honoured, "Whether regions may be merged."),
    row("SPLIT_POLICY", Table, Exactly(SplitPolicy::CLASSES), Honoured, "When regions are split. `BusyRegionSplitPolicy` considers sizes only."),
    row("hbase.regionserver.region.split.policy", Table, Exactly(SplitPolicy::CLASSES), Honoured, "The same; `SPLIT_POLICY` overrides it."),
    row("MAX_FILESIZE", Table, Integer(-1, i64::MAX), Honoured, "Bytes at which a region is split; -1 uses the server's setting."),
    row("hbase.hregion.max.filesize", Table, Integer(1, i64::MAX), Honoured, "The same; `MAX_FILESIZE` overrides it."),
    row("hbase.hregion.max.filesize.jitter", Table, Decimal(0.0, 1.0), Honoured, "Fraction by which this size varies between regions."),
    row("hbase.hregion.split.overallfiles", Table, Boolean, Honoured, "Whether the split size applies to the sum of a region's families."),
    row("hbase.increasing.policy.initial.size", Table, Integer(1, i64::MAX), Honoured, "Bytes at which the first region of a table is split."),
    row("KeyPrefixRegionSplitPolicy.prefix_length", Table, Integer(0, INT_MAX), Honoured, "Prefix length of `KeyPrefixRegionSplitPolicy`."),
    row("prefix_split_key_policy.prefix_length", Table, Integer(0, INT_MAX), Honoured, "The same, by its older name."),
    row("DelimitedKeyPrefixRegionSplitPolicy.delimiter", Table, Text, Honoured, "Delimiter of `DelimitedKeyPrefixRegionSplitPolicy`."),
    row("hbase.regionserver.region.split_restriction.type", Table, Exactly(&["None", "KeyPrefix", "DelimitedKeyPrefix"]), Honoured, "Which rows stay in one region."),
    row("hbase.regionserver.region.split_restriction.prefix_length", Table, Integer(0, INT_MAX), Honoured, "Prefix length of `KeyPrefix`."),
    row("hbase.regionserver.region.split_restriction.delimiter", Table, Text, Honoured, "Delimiter of `DelimitedKeyPrefix`."),
    // Compactions.
    row("hbase.hstore.engine.class", Both, Exactly(StoreEngine::CLASSES), Honoured, "The store engine."),
    row("hbase.hstore.defaultengine.compactionpolicy.class", Both, Exactly(CompactionPolicy::CLASSES), Honoured, "Policy that selects the files of a compaction."),
    row("hbase.hstore.compaction.min", Both, Integer(0, INT_MAX), Honoured, "Minimum number of files of a compaction; less than 2 means 2."),
    row("hbase.hstore.compactionThreshold", Both, Integer(0, INT_MAX), Honoured, "The same, by its older name."),
    row("hbase.hstore.compaction.max", Both, Integer(0, INT_MAX), Honoured, "Maximum number of files of a compaction."),
    row("hbase.hstore.compaction.min.size", Both, Integer(0, i64::MAX), Honoured, "Bytes below which a file is always selected."),
    row("hbase.hstore.compaction.max.size", Both, Integer(0, i64::MAX), Honoured, "Bytes above which a file is not selected."),
    row("hbase.hstore.compaction.max.size.offpeak", Both, Integer(0, i64::MAX), Honoured, "The same in off-peak hours."),
    row("hbase.hstore.compaction.ratio", Both, Decimal(0.0, f64::INFINITY), Honoured, "Ratio of file sizes."),
    row("hbase.hstore.compaction.ratio.offpeak", Both, Decimal(0.0, f64::INFINITY), Honoured, "The same in off-peak hours."),
    row("hbase.offpeak.start.hour", Both, Integer(-1, 23), Honoured, "First off-peak hour (UTC); -1 for none."),
    row("hbase.offpeak.end.hour", Both, Integer(-1, 23), Honoured, "Hour after the last off-peak hour (UTC); -1 for none."),
    row("hbase.regionserver.thread.compaction.throttle", Both, Integer(0, i64::MAX), Honoured, "Bytes above which a compaction is a large one."),
    row("hbase.hregion.majorcompaction", Both, Integer(0, i64::MAX), Honoured, "Milliseconds between major compactions; 0 for none."),
    row("hbase.hregion.majorcompaction.jitter", Both, Decimal(0.0, 1.0), Honoured, "Fraction by which this period varies between stores."),
    row("hbase.hstore.blockingStoreFiles", Both, Integer(1, INT_MAX), Honoured, "Number of files at which flushes wait for a compaction."),
    row("hbase.store.delete.expired.storefile", Both, Boolean, Honoured, "Whether expired files are deleted without being rewritten."),
    row("hbase.server.compactchecker.interval.multiplier", Both, Integer(1, INT_MAX), Honoured, "Check a store for compactions every N × 10 s."),
    row("hbase.hstore.compaction.date.tiered.base.window.millis", Both, Integer(1, i64::MAX), Honoured, "Milliseconds of the newest window."),
    row("hbase.hstore.compaction.date.tiered.windows.per.tier", Both, Integer(2, INT_MAX), Honoured, "Number of windows per tier."),
    row("hbase.hstore.compaction.date.tiered.incoming.window.min", Both, Integer(1, INT_MAX), Honoured, "Minimum number of files of a compaction of the newest window."),
    row("hbase.hstore.compaction.date.tiered.max.tier.age.millis", Both, Integer(0, i64::MAX), Honoured, "Age above which windows stop growing."),
    row("hbase.hstore.compaction.date.tiered.max.storefile.age.millis", Both, Integer(0, i64::MAX), Honoured, "Age above which files are not compacted."),
    row("hbase.hstore.compaction.date.tiered.single.output.for.minor.compaction", Both, Boolean, Honoured, "Whether a minor compaction writes one file."),
    // Tables: compatibility.
    row("FLUSH_POLICY", Table, Exactly(FlushPolicy::CLASSES), Compatibility(FLUSHES_ALL), "A flush writes all families of a region."),
    row("hbase.regionserver.flush.policy", Table, Exactly(FlushPolicy::CLASSES), Compatibility(FLUSHES_ALL), "A flush writes all families of a region."),
    row("hbase.hregion.percolumnfamilyflush.size.lower.bound", Table, Integer(0, i64::MAX), Compatibility(&[]), "A flush writes all families of a region."),
    row("PRIORITY", Table, Integer(-2147483648, 2147483647), Compatibility(&["0"]), "Regions are opened in the order of their names."),
    row("REGION_MEMSTORE_REPLICATION", Table, Boolean, Compatibility(&["true", "false"]), "Regions have no replicas."),
    row("NORMALIZATION_ENABLED", Table, Boolean, Compatibility(&["false"]), "There is no region normalizer."),
    row("NORMALIZER_TARGET_REGION_COUNT", Table, Integer(-1, 2147483647), Compatibility(&["-1"]), "There is no region normalizer."),
    row("NORMALIZER_TARGET_REGION_SIZE", Table, Integer(-1, i64::MAX), Compatibility(&["-1"]), "There is no region normalizer."),
    row("NORMALIZER_TARGET_REGION_SIZE_MB", Table, Integer(-1, i64::MAX), Compatibility(&["-1"]), "There is no region normalizer."),
    row("OWNER", Table, Text, Compatibility(&[]), "There are no user permissions."),
    // Tables: unsupported.
    row("REGION_REPLICATION", Table, Text, Refused(&["1"]), "Regions have no replicas."),
    row("IS_META", Table, Text, Refused(&["false"]), "Reserved for `hbase:meta`."),
    row("IS_ROOT", Table, Text, Refused(&["false"]), "HBase no longer has a root table."),
    row("ERASURE_CODING_POLICY", Table, Text, Refused(&[""]), "Files have one copy, on the local disk."),
    row("hbase.rsgroup.name", Table, Text, Refused(&["default"]), "There are no groups of region servers."),
    row("hbase.hstore.datatiering.type", Both, Text, Refused(&["NONE"]), "There is one kind of storage."),
];
