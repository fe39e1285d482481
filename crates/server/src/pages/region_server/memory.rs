//! Who has the memory of a region server.

use web::section::{Share, Shares};

use super::RegionServerPages;
use super::served::Served;

impl RegionServerPages {
    /// The parts of `grampus.memory`.
    pub(super) fn shares(&self, served: &[Served]) -> Shares {
        let cache = self.server.cache_stats();
        let share = |label: &str, used_bytes: u64, limit_bytes: Option<u64>| Share {
            label: label.to_owned(),
            used_bytes,
            limit_bytes,
        };
        let indexes = served.iter().map(|one| one.region.open_file_bytes()).sum();
        let mut parts = vec![
            share("Memstores", self.server.memstore_bytes(), Some(self.memory.memstores)),
            share("Block cache", cache.weight_bytes, Some(cache.capacity_bytes)),
            share("Indexes of open files", indexes, None),
            share("Requests", self.shared.requests().used() as u64, Some(self.memory.requests)),
            share("Answers", self.shared.answers().used() as u64, Some(self.memory.answers)),
        ];
        let counted: u64 = parts.iter().map(|part| part.used_bytes).sum();
        let resident = base::memory::resident_bytes().unwrap_or(0);
        parts.push(share("All else of the process", resident.saturating_sub(counted), None));
        Shares {
            heading: "Memory".into(),
            note: "The parts of grampus.memory. What memstores leave of theirs the block cache may have."
                .into(),
            total_bytes: self.memory.total,
            parts,
        }
    }
}
