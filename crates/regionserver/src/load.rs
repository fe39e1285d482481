//! Figures of regions and of the server in the messages of cluster status.

use cell::region::RegionInfo;
use engine::Region;
use engine::region::RegionFigures;

use crate::schedule::Schedule;

/// "No such sequence id" in a region's load.
const NO_SEQ_ID: u64 = u64::MAX;

/// A region's figures as HBase reports them.
pub fn region_load(region: &Region, schedule: &Schedule) -> proto::RegionLoad {
    let figures = region.figures();
    let file_bytes: u64 = figures.stores.iter().map(|store| store.file_bytes).sum();
    let files: usize = figures.stores.iter().map(|store| store.files).sum();
    proto::RegionLoad {
        region_specifier: wire::convert::region_specifier(region.info()),
        stores: Some(figures.stores.len() as u32),
        storefiles: Some(files as u32),
        store_uncompressed_size_mb: Some(megabytes(file_bytes)),
        storefile_size_mb: Some(megabytes(file_bytes)),
        mem_store_size_mb: Some(megabytes(figures.memstore_bytes)),
        read_requests_count: Some(figures.read_requests),
        write_requests_count: Some(figures.write_requests),
        filtered_read_requests_count: Some(figures.filtered_reads),
        total_compacting_k_vs: Some(figures.compacting_cells),
        current_compacted_k_vs: Some(figures.compacted_cells),
        complete_sequence_id: Some(seq_id_or_none(figures.flushed_seq_id)),
        data_locality: Some(1.0),
        store_complete_sequence_id: store_sequence_ids(&figures),
        last_major_compaction_ts: Some(oldest_major_ms(&figures)),
        compaction_state: Some(schedule.compactions().state(region) as i32),
        ..proto::RegionLoad::default()
    }
}

/// The oldest major compaction whose file is still there, over all stores; 0 if there is none.
fn oldest_major_ms(figures: &RegionFigures) -> u64 {
    let of_stores = figures.stores.iter().map(|store| store.oldest_major_ms);
    of_stores.filter(|written_ms| *written_ms > 0).min().unwrap_or(0)
}

fn store_sequence_ids(figures: &RegionFigures) -> Vec<proto::StoreSequenceId> {
    figures
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

/// Megabytes as HBase reports them: whole ones, but 1 rather than 0 where there is something.
pub fn megabytes(bytes: u64) -> u32 {
    let whole = bytes >> 20;
    u32::try_from(if whole == 0 && bytes > 0 { 1 } else { whole }).unwrap_or(u32::MAX)
}

/// Whether a listing by table wants the region.
pub fn is_of(region: &RegionInfo, table: Option<&cell::schema::TableName>) -> bool {
    table.is_none_or(|table| &region.table == table)
}

#[cfg(test)]
mod tests {
    use super::megabytes;

    #[test]
    fn something_is_at_least_a_megabyte() {
        assert_eq!([0, 1, (2 << 20) - 1, 5 << 20].map(megabytes), [0, 1, 1, 5]);
    }
}
