//! Counts what is evicted, and lets it go outside of the cache's lock.

use std::sync::Arc;

use base::metrics::Counter;
use quick_cache::Lifecycle;

use crate::BlockKey;

#[derive(Clone, Default)]
pub(crate) struct Evictions(Arc<Counter>);

impl Evictions {
    pub(crate) fn count(&self) -> u64 {
        self.0.get()
    }
}

impl<V> Lifecycle<BlockKey, V> for Evictions {
    // Values that go; dropped when the request is over and the shard unlocked. Empty, it takes no memory.
    type RequestState = Vec<V>;

    fn begin_request(&self) -> Vec<V> {
        Vec::new()
    }

    fn on_evict(&self, gone: &mut Vec<V>, _key: BlockKey, value: V) {
        self.0.increment();
        gone.push(value);
    }
}
