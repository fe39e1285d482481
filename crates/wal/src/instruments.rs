//! What logs count, under HBase's names.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::metrics::{Scope, Source};
use bytes::Bytes;

use crate::Edit;

/// What takes longer is counted as slow, as by HBase.
const SLOW: Duration = Duration::from_secs(1);

base::instruments! {
    /// What the logs of a server count together.
    pub struct LogInstruments in "RegionServer,sub=WAL" {
        /// Edits appended.
        appends: Counter = "appendCount",
        /// How long it took to write one down for the disk.
        append_time: Times = "AppendTime",
        /// Bytes of its cells.
        append_size: Sizes = "AppendSize",
        /// Those that took more than a second.
        slow_appends: Counter = "slowAppendCount",
        /// Bytes written.
        written_bytes: Counter = "writtenBytes" in Bytes,
        /// How long a group of edits took to the disk.
        sync_time: Times = "SyncTime",
        /// New files that were asked for, because of errors and sizes.
        roll_requests: Counter = "rollRequest",
        /// Of these those because of an error.
        error_rolls: Counter = "errorRollRequest",
        /// Of these those because the file was long enough.
        size_rolls: Counter = "sizeRollRequest",
        /// Files begun in place of others, for whatever reason.
        rolls: Counter = "successfulLogRolls",
    }
}

base::absent! {
    /// A disk has no replicas, and a slow one is not left for another.
    pub struct NoReplicas in "RegionServer,sub=WAL" {
        /// New files that were asked for because replicas were lacking.
        Counter = "lowReplicaRollRequest",
        /// Those because syncs were slow.
        Counter = "slowSyncRollRequest",
    }
}

base::figures! {
    /// What was appended of a table, whose name stands before.
    pub struct TableFigures in "RegionServer,sub=WAL" {
        /// Edits.
        appends: Counted = ".appendCount",
        /// Bytes of their cells.
        bytes: Counted = ".appendSize" in Bytes,
    }
}

/// What the logs of a server count, of each table too.
#[derive(Debug)]
pub struct Instruments {
    /// Of all tables together.
    pub all: LogInstruments,
    tables: Mutex<HashMap<Bytes, Appended>>,
}

/// What was appended of a table.
#[derive(Clone, Copy, Debug, Default)]
struct Appended {
    edits: u64,
    bytes: u64,
}

impl Instruments {
    /// Nothing counted yet; `now` is a time of the monotonic clock.
    pub fn begin(now: Duration) -> Instruments {
        Instruments { all: LogInstruments::begin(now), tables: Mutex::default() }
    }

    /// A group is on disk: `edits` are those of it that are in the log, with `bytes` as entries, which it took `encoding` to
    /// write down and `syncing` to get there.
    pub(crate) fn note_group<'a>(
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
                tables.insert(edit.table.clone(), Appended::default());
            }
            let of_table = tables.get_mut(&edit.table).expect("just put in, if it was not there");
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

    fn tables(&self) -> MutexGuard<'_, HashMap<Bytes, Appended>> {
        // Numbers: whole after any panic.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Instruments {
    fn show(&self, scope: &mut Scope<'_>) {
        self.all.show(scope);
        NoReplicas.show(scope);
        let mut tables: Vec<(Bytes, Appended)> =
            self.tables().iter().map(|(table, appended)| (table.clone(), *appended)).collect();
        tables.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        for (table, Appended { edits, bytes }) in tables {
            let figures = TableFigures { appends: edits.into(), bytes: bytes.into() };
            figures.show(&mut scope.named(&String::from_utf8_lossy(&table)));
        }
    }

    fn roll(&self) {
        self.all.roll();
    }
}
