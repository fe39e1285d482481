//! Converts options into the settings of the parts of a server.

use std::sync::Arc;
use std::time::Duration;

use base::classes::RateLimiter;
use base::config::{Config, MemoryParts, MobCompactionKind};
use engine::compaction::settings::WindowSettings;
use engine::compaction::{Policy, Settings, SiteSettings};
use engine::recovery::OnDamage;
use engine::region::StoragePolicies;
use fs::SyncLevel;
use master::chores::ChoreOptions;
use regionserver::quotas::{QuotaOptions, Refill};
use regionserver::schedule::compactions::CompactionOptions;
use regionserver::schedule::throughput::ThroughputOptions;
use regionserver::slow_log::SlowLogOptions;
use regionserver::{Disk, RegionServerOptions};
use rpc::ServerOptions;
use rpc::server::Shared;
use tracing::info;

use crate::address::machine_name;

/// Upper bound of the bytes that wait for the log; lower if the memory for requests is smaller.
const LOG_QUEUE_BYTES_MAX: u64 = 256 << 20;

/// Resource limits of the process, shared by all roles.
pub(crate) struct Limits {
    pub(crate) memory: MemoryParts,
    pub(crate) shared: Arc<Shared>,
    pub(crate) rpc: ServerOptions,
    pub(crate) pages: web::PageOptions,
    pub(crate) zookeeper: zk::endpoint::EndpointOptions,
}

impl Limits {
    /// The limits of a process that may have `files` files open.
    pub(crate) fn from_config(config: &Config, files: u64) -> Limits {
        let memory = config.memory_parts(base::memory::limit_bytes());
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let connections_max = config.connections_max_of(files) as usize;
        let rpc = ServerOptions {
            max_request_bytes: config.request_bytes_max_of(memory.requests),
            queued_bytes_max: bytes(memory.requests),
            response_bytes_max: bytes(memory.responses),
            calls_max: config.calls_max().map(|calls| calls as usize),
            connections_max,
            handshakes_per_address_max: (connections_max / 4).max(16),
            ..ServerOptions::default()
        };
        if u64::from(rpc.max_request_bytes) < config.request_bytes_max {
            info!(
                bytes = rpc.max_request_bytes,
                "maximum request size lowered to the memory for requests (grampus.memory), which is less than \
                 hbase.ipc.max.request.size"
            );
        }
        let mut hosts = config.page_hosts();
        hosts.extend([&config.master_host, &config.region_server_host].into_iter().flatten().cloned());
        hosts.push(machine_name());
        let pages =
            web::PageOptions { connections_max: config.page_connections_max_of(files) as usize, hosts };
        let zookeeper = zk::endpoint::EndpointOptions {
            connections_max: config.zookeeper_connections_max_of(files) as usize,
            ..zk::endpoint::EndpointOptions::default()
        };
        Limits { memory, shared: Shared::new(&rpc), rpc, pages, zookeeper }
    }
}

/// Whether regions that may have lost edits in a damaged log are opened.
pub(crate) fn on_damage(config: &Config) -> OnDamage {
    if config.wal_skip_errors { OnDamage::Skip } else { OnDamage::Refuse }
}

/// Which calls are logged as slow or large.
/// What an acknowledged write survives. On a local disk, nothing less than a sync to the disk
/// survives a power loss.
fn log_durability(config: &Config) -> SyncLevel {
    match config.root.is_remote() && !config.wal_hsync {
        true => SyncLevel::Visible,
        false => SyncLevel::Disk,
    }
}

pub(crate) fn slow_log_options(config: &Config) -> SlowLogOptions {
    let millis = |millis: Option<u64>| millis.map(Duration::from_millis);
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    SlowLogOptions {
        slow: millis(config.slow_call_ms),
        slow_scan: millis(config.slow_scan_ms.or(config.slow_call_ms)),
        large_bytes: bytes(config.large_response_bytes),
        large_scan_bytes: bytes(config.large_scan_bytes.or(config.large_response_bytes)),
        calls_max: if config.slow_log_enabled { config.slow_log_calls_max as usize } else { 0 },
    }
}

/// Maximum elements of a filter: bounded by the option and by the memory for open scanners.
fn filter_elements_max(config: &Config, memory: &MemoryParts) -> usize {
    let held = memory.scanners / 4 * 3 / cell::filter::ELEMENT_BYTES as u64;
    usize::try_from(held.min(u64::from(config.filter_elements_max))).unwrap_or(usize::MAX)
}

fn storage_policies(config: &Config) -> StoragePolicies {
    StoragePolicies {
        region: StoragePolicies::named(&config.region_storage_policy),
        store: StoragePolicies::named(&config.store_storage_policy),
        log: StoragePolicies::named(&config.wal_storage_policy),
    }
}

/// The settings of a region server with these memory parts.
pub(crate) fn region_server_options(config: &Config, memory: &MemoryParts) -> RegionServerOptions {
    RegionServerOptions {
        region: engine::region::RegionOptions {
            flush_bytes: config.memstore_flush_bytes,
            block_multiplier: u64::from(config.memstore_block_multiplier),
            cell_bytes_max: config.cell_bytes_max.unwrap_or(0),
            row_bytes_max: config.row_bytes_max.min(memory.responses / 2),
            filter_elements_max: filter_elements_max(config, memory),
            log_queue_bytes_max: memory.requests.min(LOG_QUEUE_BYTES_MAX),
            split: engine::region::SplitOptions {
                policy: config.split_policy,
                file_bytes_max: config.split_bytes_max,
                file_bytes_jitter: config.split_bytes_jitter,
                sums_stores: config.split_sums_stores,
                initial_bytes: config.split_bytes_initial.filter(|bytes| *bytes > 0),
            },
            compaction: compaction_settings(config),
            blocking_wait: Duration::from_millis(config.blocking_wait_ms),
            compact_after_bulk_load: config.compact_after_bulk_load,
            verify_bulk_loads: config.verify_bulk_loads,
            purge_deletes_after: Duration::from_millis(config.purge_deletes_after_ms),
            caching: engine::caching::Caching {
                data_on_write: config.cache_data_on_write,
                index_on_write: config.cache_index_on_write,
                blooms_on_write: config.cache_blooms_on_write,
                compacted_on_write: config.cache_compacted_on_write,
                prefetch: config.prefetch_on_open,
                evict_on_close: config.evict_on_close,
                ..engine::caching::Caching::default()
            },
            mob: engine::mob::MobOptions {
                compaction: match config.mob_compaction {
                    MobCompactionKind::Full => engine::mob::MobCompaction::Full,
                    MobCompactionKind::Optimized => {
                        engine::mob::MobCompaction::Optimized(config.mob_compaction_file_bytes_max)
                    }
                },
                open_files_max: config.mob_open_files_max as usize,
                cleaner_period: Duration::from_millis(config.mob_cleaner_period_ms),
                min_age: Duration::from_millis(config.mob_min_age_ms),
            },
            storage: storage_policies(config),
            ..engine::region::RegionOptions::default()
        },
        compaction: CompactionOptions {
            long_concurrency: config.long_compactions as usize,
            short_concurrency: config.short_compactions as usize,
            enabled: config.compaction_enabled,
            throughput: ThroughputOptions {
                lower_bytes: config.compaction_rate_max_few_files,
                higher_bytes: config.compaction_rate_max_many_files,
            },
        },
        memory_bytes: memory.total,
        resident_bytes: base::memory::resident_bytes,
        memstore_bytes: memory.memstores,
        memstore_low_mark: config.memstore_lower_fraction,
        cache_bytes: memory.cache,
        unit_bytes: (config.read_unit_bytes.max(1), config.write_unit_bytes.max(1)),
        hotspots_period: config.history_period(),
        measures_user_latencies: config.user_metrics_enabled,
        slow_log: slow_log_options(config),
        on_damage: on_damage(config),
        log_roll_bytes: config.wal_roll_bytes(),
        log_durability: log_durability(config),
        log_roll_period: Duration::from_millis(config.wal_roll_interval_ms),
        logs_max: config.wal_files_max_for(memory.memstores) as usize,
        flush_period: Duration::from_millis(config.memstore_flush_interval_ms),
        scanner_lease: Duration::from_millis(config.scanner_lease_ms),
        scanners_max: config.scanners_max as usize,
        scanner_bytes_max: usize::try_from(memory.scanners).unwrap_or(usize::MAX),
        result_bytes_max: config.scan_result_bytes_max,
        batch_rows_warning: config.batch_rows_warning,
        minibatch_changes: config.minibatch_changes as usize,
        rejects_large_batches: config.reject_large_batches,
        nonce_grace: Duration::from_millis(config.nonce_grace_ms),
        quotas: config.quotas_enabled.then(|| QuotaOptions {
            refresh_ms: config.quota_refresh_ms,
            refill: match config.quota_limiter {
                RateLimiter::Average => Refill::Average,
                RateLimiter::Fixed => Refill::Fixed,
            },
            read_unit_bytes: i64::try_from(config.read_unit_bytes).unwrap_or(i64::MAX),
            write_unit_bytes: i64::try_from(config.write_unit_bytes).unwrap_or(i64::MAX),
        }),
        regions_max: config.regions_max as usize,
    }
}

/// Compaction settings for tables and families that do not set their own.
fn compaction_settings(config: &Config) -> SiteSettings {
    let millis = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    let default = Settings::default();
    let settings = Settings {
        policy: Policy::of(config.store_engine, config.compaction_policy),
        files_min: config.compaction_files_min as usize,
        files_max: config.compaction_files_max as usize,
        bytes_max: config.compaction_bytes_max.unwrap_or(default.bytes_max),
        ratio: f64::from(config.compaction_ratio as f32),
        off_peak_ratio: f64::from(config.compaction_off_peak_ratio as f32),
        off_peak_hours: config.off_peak_start.zip(config.off_peak_end),
        major_period_ms: millis(config.major_compaction_period_ms),
        major_jitter: config.major_compaction_jitter,
        blocking_files: config.blocking_store_files as usize,
        drops_expired: config.drop_expired_files,
        check_multiplier: u64::from(config.compaction_check_multiplier),
        windows: WindowSettings {
            base_ms: millis(config.window_base_ms),
            per_tier: i64::from(config.windows_per_tier),
            incoming_files_min: config.window_incoming_files_min as usize,
            file_age_max_ms: config.window_file_age_max_ms.map_or(i64::MAX, millis),
            single_output: config.window_single_output,
            ..default.windows
        },
        ..default
    };
    SiteSettings {
        settings,
        bytes_min: config.compaction_bytes_min,
        off_peak_bytes_max: config.compaction_off_peak_bytes_max,
        long_bytes: config.long_compaction_bytes,
        tier_age_max_ms: config.window_tier_age_max_ms.map(millis),
    }
}

/// The settings of the master's chores.
pub(crate) fn chore_options(config: &Config, disk: &Disk) -> ChoreOptions {
    ChoreOptions {
        janitor_period: Duration::from_millis(config.janitor_period_ms),
        balancer_period: Duration::from_millis(config.balancer_period_ms),
        cleaner_period: Duration::from_millis(config.cleaner_period_ms),
        snapshot_period: Duration::from_millis(config.snapshot_cleaner_period_ms),
        mob_period: Duration::from_millis(config.mob_cleaner_period_ms),
        mob_min_age: Duration::from_millis(config.mob_min_age_ms),
        file_ttl: Duration::from_millis(config.archived_file_ttl_ms),
        log_ttl: Duration::from_millis(config.old_log_ttl_ms),
        space: disk.space.clone(),
        log_holders: Arc::default(),
    }
}
