//! Metrics of regions and of the server in cluster status messages.

use cell::region::RegionInfo;
use engine::Region;
use engine::region::RegionMetrics;

use crate::locality::{Localities, Locality};
use crate::schedule::Schedule;

/// HBase's value for "no sequence id" in a region's load.
const NO_SEQ_ID: u64 = u64::MAX;

/// The load of a region in HBase's message.
pub fn region_load(region: &Region, schedule: &Schedule, localities: &Localities) -> proto::RegionLoad {
    let locality = localities.of(region);
    let metrics = region.metrics();
    let file_bytes: u64 = metrics.stores.iter().map(|store| store.file_bytes).sum();
    let files: usize = metrics.stores.iter().map(|store| store.files).sum();
    proto::RegionLoad {
        region_specifier: wire::convert::region_specifier(region.info()),
        stores: Some(metrics.stores.len() as u32),
        storefiles: Some(files as u32),
        store_uncompressed_size_mb: Some(megabytes(file_bytes)),
        storefile_size_mb: Some(megabytes(file_bytes)),
        mem_store_size_mb: Some(megabytes(metrics.memstore_bytes)),
        read_requests_count: Some(metrics.read_requests),
        write_requests_count: Some(metrics.write_requests),
        filtered_read_requests_count: Some(metrics.filtered_reads),
        total_compacting_k_vs: Some(metrics.compacting_cells),
        current_compacted_k_vs: Some(metrics.compacted_cells),
        complete_sequence_id: Some(seq_id_or_none(metrics.flushed_seq_id)),
        data_locality: Some(locality.map_or(1.0, Locality::share)),
        blocks_local_weight: locality.map(|locality| locality.local_bytes),
        blocks_total_weight: locality.map(|locality| locality.total_bytes),
        store_complete_sequence_id: store_sequence_ids(&metrics),
        last_major_compaction_ts: Some(oldest_major_ms(&metrics)),
        compaction_state: Some(schedule.compactions().state(region) as i32),
        ..proto::RegionLoad::default()
    }
}

/// Time of the oldest major compaction whose file still exists, over all stores; 0 if there is
/// none.
fn oldest_major_ms(metrics: &RegionMetrics) -> u64 {
    let of_stores = metrics.stores.iter().map(|store| store.oldest_major_ms);
    of_stores.filter(|written_ms| *written_ms > 0).min().unwrap_or(0)
}

fn store_sequence_ids(metrics: &RegionMetrics) -> Vec<proto::StoreSequenceId> {
    metrics
        .stores
        .iter()
        .map(|store| proto::StoreSequenceId {
            family_name: store.family.clone(),
            sequence_id: seq_id_or_none(store.file_seq_id),
        })
        .collect()
}

fn seq_id_or_none(seq_id: u64) -> u64 {
    if seq_id == 0 { NO_SEQ_ID } else { seq_id }
}

/// Converts bytes to whole megabytes as HBase reports them: rounded down, but at least 1 for any
/// nonzero size.
pub fn megabytes(bytes: u64) -> u32 {
    let whole = bytes >> 20;
    u32::try_from(if whole == 0 && bytes > 0 { 1 } else { whole }).unwrap_or(u32::MAX)
}

/// Whether a listing that is limited to `table` includes the region.
pub fn is_in_table(region: &RegionInfo, table: Option<&cell::schema::TableName>) -> bool {
    table.is_none_or(|table| &region.table == table)
}

#[cfg(test)]
mod tests {
    use super::megabytes;

    #[test]
    fn nonzero_sizes_are_at_least_one_megabyte() {
        assert_eq!([0, 1, (2 << 20) - 1, 5 << 20].map(megabytes), [0, 1, 1, 5]);
    }
}
