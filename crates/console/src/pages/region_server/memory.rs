//! Memory of a region server by consumer.

use web::section::{Share, Shares};

use super::RegionServerPages;
use super::snapshot::RegionSnapshot;

impl RegionServerPages {
    /// The parts of `grampus.memory`.
    pub(super) fn shares(&self, regions: &[RegionSnapshot]) -> Shares {
        let cache = self.server.cache_stats();
        let share = |label: &str, used_bytes: u64, limit_bytes: Option<u64>| Share {
            label: label.to_owned(),
            used_bytes,
            limit_bytes,
        };
        let indexes = regions.iter().map(|one| one.region.open_file_bytes()).sum();
        let mut parts = vec![
            share("Memstores", self.server.memstore_bytes(), Some(self.identity.memory.memstores)),
            share("Block cache", cache.weight_bytes, Some(cache.capacity_bytes)),
            share("Indexes of open files", indexes, None),
            share(
                "Requests",
                self.identity.shared.request_budget().used() as u64,
                Some(self.identity.memory.requests),
            ),
            share(
                "Responses",
                self.identity.shared.response_budget().used() as u64,
                Some(self.identity.memory.responses),
            ),
        ];
        let counted: u64 = parts.iter().map(|part| part.used_bytes).sum();
        let resident = base::memory::resident_bytes().unwrap_or(0);
        parts.push(share("Rest of the process", resident.saturating_sub(counted), None));
        Shares {
            heading: "Memory".into(),
            note: "The parts of grampus.memory. The block cache may also use free memstore memory.".into(),
            total_bytes: self.identity.memory.total,
            parts,
        }
    }
}
