//! Which blocks of a family are cached, and when.

use cell::schema::FamilyDescriptor;
use hfile::RetainKinds;

/// Which blocks of a family are cached. Defaults, attributes, and keys are HBase's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// Data blocks that were read (`BLOCKCACHE`). Index and filter blocks always are.
    pub data: bool,
    /// Data blocks have a share of the cache that other blocks cannot take (`IN_MEMORY`).
    pub in_memory: bool,
    /// Data blocks that a flush writes (`CACHE_DATA_ON_WRITE`, `hbase.rs.cacheblocksonwrite`).
    pub data_on_write: bool,
    /// Index blocks that are written (`CACHE_INDEX_ON_WRITE`, `hfile.block.index.cacheonwrite`).
    pub index_on_write: bool,
    /// Chunks of Bloom filters that are written (`CACHE_BLOOMS_ON_WRITE`,
    /// `hfile.block.bloom.cacheonwrite`).
    pub blooms_on_write: bool,
    /// All blocks that a compaction writes (`hbase.rs.cachecompactedblocksonwrite`). Blocks that
    /// replace cached ones always are.
    pub compacted_on_write: bool,
    /// All blocks of a file, as soon as it is opened (`PREFETCH_BLOCKS_ON_OPEN`,
    /// `hbase.rs.prefetchblocksonopen`).
    pub prefetch: bool,
    /// Whether blocks are evicted when their region is closed (`EVICT_BLOCKS_ON_CLOSE`,
    /// `hbase.rs.evictblocksonclose`).
    pub evict_on_close: bool,
}

impl Default for Caching {
    fn default() -> Caching {
        Caching {
            data: true,
            in_memory: false,
            data_on_write: false,
            index_on_write: false,
            blooms_on_write: false,
            compacted_on_write: false,
            prefetch: false,
            evict_on_close: false,
        }
    }
}

impl Caching {
    /// The settings of `family`, combined with those of `site` for all families.
    ///
    /// Source: HBase `CacheConfig`. Either one can enable a setting, but `data` needs both.
    pub fn of(family: &FamilyDescriptor, site: &Caching) -> Caching {
        let wants = |name: &str| family.is_set(name);
        Caching {
            data: site.data && family.block_cache(),
            in_memory: site.in_memory || wants("IN_MEMORY"),
            data_on_write: site.data_on_write || wants("CACHE_DATA_ON_WRITE"),
            index_on_write: site.index_on_write || wants("CACHE_INDEX_ON_WRITE"),
            blooms_on_write: site.blooms_on_write || wants("CACHE_BLOOMS_ON_WRITE"),
            compacted_on_write: site.compacted_on_write,
            prefetch: site.prefetch || wants("PREFETCH_BLOCKS_ON_OPEN"),
            evict_on_close: site.evict_on_close || wants("EVICT_BLOCKS_ON_CLOSE"),
        }
    }

    /// Which blocks of a file are cached as they are written.
    pub(crate) fn keep_written(&self, is_compaction: bool) -> RetainKinds {
        let all = is_compaction && self.compacted_on_write;
        RetainKinds {
            data: all || !is_compaction && self.data_on_write,
            index: all || self.index_on_write,
            bloom: all || self.blooms_on_write,
        }
    }
}
