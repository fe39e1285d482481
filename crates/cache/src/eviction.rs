//! Counts what is evicted, and lets it go outside of the cache's lock.

use std::sync::Arc;

use base::metrics::Counter;
use quick_cache::Lifecycle;

use crate::keeping::Keeping;
use crate::{BlockKey, Weighted};

#[derive(Clone)]
pub(crate) struct Evictions {
    count: Arc<Counter>,
    keeping: Arc<Keeping>,
}

impl Evictions {
    pub(crate) fn new(keeping: Arc<Keeping>) -> Evictions {
        Evictions { count: Arc::default(), keeping }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.get()
    }
}

impl<V: Weighted> Lifecycle<BlockKey, V> for Evictions {
    // Values that go; dropped when the request is over and the shard unlocked. Empty, it takes no memory.
    type RequestState = Vec<V>;

    fn begin_request(&self) -> Vec<V> {
        Vec::new()
    }

    fn is_pinned(&self, _key: &BlockKey, value: &V) -> bool {
        self.keeping.keeps(value)
    }

    fn on_evict(&self, gone: &mut Vec<V>, _key: BlockKey, value: V) {
        self.count.increment();
        self.keeping.goes(&value);
        gone.push(value);
    }
}
