//! HBase's keys that size a part of its memory which is no part of its own here. Whoever set one wants to know what has
//! become of it.

/// Keys, or with a dot at the end what keys begin with, and what takes their place.
const SUPERSEDED: [(&str, &str); 13] = [
    ("hbase.bucketcache.", CACHE),
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
        "of no effect here, where buffers need no pool: grampus.memory is all there is to size",
    ),
];

const CACHE: &str = "of no effect here, where blocks have one cache: it has hfile.block.cache.size of grampus.memory, and what \
                     memstores leave";
const MOVED: &str = "of no effect here, where the cache has what memstores leave, at any time";
const MEMSTORES: &str = "of no effect here, where memstores have hbase.regionserver.global.memstore.size of grampus.memory, in \
                         chunks that nobody needs to size";

/// What to say of a key that is not an option; `None` for one of which nothing is known.
pub(super) fn why(key: &str) -> Option<&'static str> {
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
    fn keys_of_memory_are_told_what_became_of_them() {
        assert_eq!(why("hbase.bucketcache.size"), Some(CACHE));
        assert_eq!(why("hbase.hregion.memstore.mslab.enabled"), Some(MEMSTORES));
        assert_eq!(why("hfile.block.cache.policy"), Some(CACHE));
        assert_eq!(why("hfile.block.cache.policy.x"), None);
        assert_eq!(why("hbase.coprocessor.region.classes"), None);
    }
}
