//! How many bytes a memstore of a given size causes to be written.

use std::sync::Arc;

use crate::common::world::{open, options, run};
use cell::cell::CellType;
use cell::mutation::Mutation;
use cell::{KeyValue, LATEST_TIMESTAMP};
use engine::region::{CompactionKind, RegionOptions};
use fs::memory::MemoryFs;

const ROWS: usize = 4000;
const VALUE: [u8; 100] = [7; 100];

/// Bytes that compactions write while rows are inserted into a memstore of `flush_bytes`.
async fn compacted_bytes(flush_bytes: u64) -> u64 {
    let (env, memory) = (base::testing::env(3), MemoryFs::new());
    let options = RegionOptions { flush_bytes, ..options() };
    let region = open(&env, Arc::new(memory), options).await.unwrap().region;
    for row in 0..ROWS {
        let row = format!("{row:08}").into_bytes();
        let cell = KeyValue::new(&row, b"f", b"q", LATEST_TIMESTAMP, CellType::Put, &VALUE);
        region.batch(vec![Mutation::put(row, vec![cell])]).await.remove(0).unwrap();
        if region.metrics().memstore_data_bytes >= flush_bytes {
            region.flush().await.unwrap();
            region.compact(None, CompactionKind::Minor).await.unwrap();
        }
    }
    region.metrics().compacted_bytes
}

/// Memstores on the heap of a JVM must stay small, because of its pauses. A small memstore makes
/// compactions write the same rows more often, which a fast tier must then absorb.
#[test]
fn a_large_memstore_saves_the_writes_of_compactions() {
    run(async {
        let (small, large) = (compacted_bytes(16 << 10).await, compacted_bytes(256 << 10).await);
        assert!(small > 4 * large.max(1), "{small} and {large} bytes");
    });
}
