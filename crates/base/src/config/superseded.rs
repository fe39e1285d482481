//! HBase's keys that size memory areas which Grampus does not have. The warnings name the option
//! that replaces each key.

/// Keys, or key prefixes that end in a dot, with the warning for each.
const SUPERSEDED: [(&str, &str); 13] = [
    ("hbase.bucketcache.", BUCKETS),
    ("hbase.blockcache.", CACHE),
    ("hbase.offheapcache.", CACHE),
    ("hbase.lru.", CACHE),
    ("hfile.block.cache.policy", CACHE),
    ("hfile.block.cache.size.min.range", MOVED),
    ("hfile.block.cache.size.max.range", MOVED),
    ("hbase.regionserver.global.memstore.size.min.range", MOVED),
    ("hbase.regionserver.global.memstore.size.max.range", MOVED),
    ("hbase.regionserver.heapmemory.", MOVED),
    ("hbase.regionserver.offheap.global.memstore.size", MEMSTORES),
    ("hbase.hregion.memstore.", MEMSTORES),
    (
        "hbase.server.allocator.",
        "ignored: buffers need no pool; grampus.memory is the only size to configure",
    ),
];

const BUCKETS: &str = "ignored: the second-level block cache has no buckets, and evicts the oldest unused blocks; its keys are \
                       hbase.bucketcache.ioengine, .size, .persistent.path and .ioengine.errors.tolerated.duration";
pub(super) const CACHE: &str = "ignored: there is one block cache in memory; it has the fraction hfile.block.cache.size of grampus.memory, and the \
                     memory that memstores do not use";
const MOVED: &str = "ignored: the block cache always uses the memory that memstores do not use";
const MEMSTORES: &str = "ignored: memstores have the fraction hbase.regionserver.global.memstore.size of grampus.memory, in \
                         chunks that need no sizing";

/// The warning for a superseded key; `None` for any other key.
pub(super) fn warning(key: &str) -> Option<&'static str> {
    let is_it = |(superseded, _): &&(&str, &str)| match superseded.strip_suffix('.') {
        Some(_) => key.starts_with(superseded),
        None => key == *superseded,
    };
    SUPERSEDED.iter().find(is_it).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superseded_memory_keys_have_a_warning() {
        assert_eq!(warning("hbase.bucketcache.bucket.sizes"), Some(BUCKETS));
        assert_eq!(warning("hbase.hregion.memstore.mslab.enabled"), Some(MEMSTORES));
        assert_eq!(warning("hfile.block.cache.policy"), Some(CACHE));
        assert_eq!(warning("hfile.block.cache.policy.x"), None);
        assert_eq!(warning("hbase.coprocessor.region.classes"), None);
    }
}
