//! Metrics of logs, under HBase's names.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::metrics::{Scope, Source};
use bytes::Bytes;

use crate::Edit;

/// Appends that take longer count as slow, as in HBase.
const SLOW: Duration = Duration::from_secs(1);

base::instruments! {
    /// Metrics of all logs of a server together.
    pub struct LogInstruments in "RegionServer,sub=WAL" {
        /// Edits appended.
        appends: Counter = "appendCount",
        /// Time to encode one edit: the average of its commit group.
        append_time: Times = "AppendTime",
        /// Bytes of one edit's cells.
        append_size: Sizes = "AppendSize",
        /// Edits whose commit group took more than a second to encode.
        slow_appends: Counter = "slowAppendCount",
        /// Bytes of entries written.
        written_bytes: Counter = "writtenBytes" in Bytes,
        /// Time to write and sync a commit group.
        sync_time: Times = "SyncTime",
        /// Rolls to a new file requested because of an error or the file size.
        roll_requests: Counter = "rollRequest",
        /// Rolls requested because a write or sync failed.
        error_rolls: Counter = "errorRollRequest",
        /// Rolls requested because the file reached its maximum size.
        size_rolls: Counter = "sizeRollRequest",
        /// Rolls requested because replicas were missing.
        low_replica_rolls: Counter = "lowReplicaRollRequest",
        /// Files replaced by a new one, for any reason.
        rolls: Counter = "successfulLogRolls",
    }
}

base::absent! {
    /// A slow disk is not replaced by another, and a slow DataNode counts as an error.
    pub struct NoSlowSyncRolls in "RegionServer,sub=WAL" {
        /// Rolls requested because syncs were slow.
        Counter = "slowSyncRollRequest",
    }
}

base::current_values! {
    /// Appends to one table. The table's name precedes the attribute's.
    pub struct TableMetrics in "RegionServer,sub=WAL" {
        /// Edits appended.
        appends: Counted = ".appendCount",
        /// Bytes of their cells.
        bytes: Counted = ".appendSize" in Bytes,
    }
}

/// Metrics of a server's logs, in total and by table.
#[derive(Debug)]
pub struct Instruments {
    /// Totals over all tables.
    pub all: LogInstruments,
    tables: Mutex<HashMap<Bytes, TableAppends>>,
}

/// Appends to one table.
#[derive(Clone, Copy, Debug, Default)]
struct TableAppends {
    edits: u64,
    bytes: u64,
}

impl Instruments {
    /// All counts are 0; `now` is a time of the monotonic clock.
    pub fn begin(now: Duration) -> Instruments {
        Instruments { all: LogInstruments::begin(now), tables: Mutex::default() }
    }

    /// Records a committed group: its logged `edits`, the `bytes` of their entries, and the time
    /// that encoding and syncing took.
    pub(crate) fn record_group<'a>(
        &self,
        edits: impl Iterator<Item = &'a Edit>,
        bytes: usize,
        (encoding, syncing): (Duration, Duration),
    ) {
        let all = &self.all;
        let mut count = 0;
        let mut tables = self.tables();
        for edit in edits {
            let cells_bytes = edit.cells.len() as u64;
            all.append_size.record(cells_bytes);
            if !tables.contains_key(&edit.table) {
                tables.insert(edit.table.clone(), TableAppends::default());
            }
            let of_table = tables.get_mut(&edit.table).expect("inserted above if it was missing");
            of_table.edits += 1;
            of_table.bytes += cells_bytes;
            count += 1;
        }
        drop(tables);
        all.written_bytes.add(bytes as u64);
        all.sync_time.record(syncing);
        if count > 0 {
            all.appends.add(u64::from(count));
            all.append_time.record_many(encoding / count, count);
        }
        if encoding > SLOW {
            all.slow_appends.add(u64::from(count));
        }
    }

    fn tables(&self) -> MutexGuard<'_, HashMap<Bytes, TableAppends>> {
        // Only numbers, which are valid after any panic.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Instruments {
    fn show(&self, scope: &mut Scope<'_>) {
        self.all.show(scope);
        NoSlowSyncRolls.show(scope);
        let mut tables: Vec<(Bytes, TableAppends)> =
            self.tables().iter().map(|(table, appended)| (table.clone(), *appended)).collect();
        tables.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        for (table, TableAppends { edits, bytes }) in tables {
            let metrics = TableMetrics { appends: edits.into(), bytes: bytes.into() };
            metrics.show(&mut scope.named(&String::from_utf8_lossy(&table)));
        }
    }

    fn roll(&self) {
        self.all.roll();
    }
}
