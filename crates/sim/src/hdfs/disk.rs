//! The disk of a DataNode: latencies, and the faults of its process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base::BoxFuture;
use base::env::Clock;
use hdfs::simulated::{DataDisk, DiskAccess};

use crate::process::{Life, Process};
use crate::random::RandomSource;

/// The pause between two checks whether the disk still hangs.
const HANG_CHECK: Duration = Duration::from_millis(100);

pub(super) struct DataNodeDisk {
    process: Arc<Process>,
    clock: Arc<dyn Clock>,
    random: RandomSource,
}

impl DataNodeDisk {
    pub(super) fn new(life: &Life, random: RandomSource) -> DataNodeDisk {
        DataNodeDisk { process: life.process.clone(), clock: life.env.clock.clone(), random }
    }

    fn latency(&self, access: DiskAccess) -> Duration {
        let micros = |from, to| self.random.between(Duration::from_micros(from), Duration::from_micros(to));
        match (access, self.random.below(512)) {
            (DiskAccess::Sync, 0) => micros(20_000, 400_000),
            (DiskAccess::Sync, _) => micros(100, 1_500),
            (_, 0) => micros(500, 10_000),
            (_, _) => micros(3, 40),
        }
    }
}

impl DataDisk for DataNodeDisk {
    fn access(&self, access: DiskAccess) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async move {
            let faults = self.process.disk_faults();
            self.clock.sleep(self.latency(access) * faults.slowness).await;
            while self.process.disk_faults().hangs {
                self.clock.sleep(HANG_CHECK).await;
            }
            match faults.failing_one_in > 0 && self.random.one_in(faults.failing_one_in) {
                true => Err(io::Error::other("injected fault")),
                false => Ok(()),
            }
        })
    }
}
