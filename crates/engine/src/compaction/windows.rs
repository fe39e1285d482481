//! Time windows; the newest are the shortest (HBase: `ExponentialCompactionWindowFactory`).
//!
//! Windows of one length are aligned to multiples of it. Going back in time, windows get longer
//! after one that begins at a multiple of the next length. None grows if it would reach back beyond
//! the age at which growth stops.

use std::cmp::Ordering;

use crate::compaction::settings::WindowSettings;

/// A time window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    length_ms: i64,
    // Number of lengths from the epoch to its start.
    position: i64,
    per_tier: i64,
    // A window that would begin before this does not grow.
    grows_until: i64,
}

impl Window {
    /// The window that contains `now_ms`.
    pub fn incoming(settings: &WindowSettings, now_ms: i64) -> Window {
        debug_assert!(settings.base_ms > 0 && settings.per_tier > 1, "windows have a length and grow");
        Window {
            length_ms: settings.base_ms,
            position: now_ms / settings.base_ms,
            per_tier: settings.per_tier,
            grows_until: now_ms.checked_sub(settings.tier_age_max_ms).unwrap_or(i64::MIN),
        }
    }

    /// The window before it.
    pub fn earlier(self) -> Window {
        let longer = self.length_ms.saturating_mul(self.per_tier);
        let grows =
            self.position % self.per_tier <= 0 && self.start_ms().saturating_sub(longer) >= self.grows_until;
        match grows {
            true => Window { length_ms: longer, position: self.position / self.per_tier - 1, ..self },
            false => Window { position: self.position - 1, ..self },
        }
    }

    /// Whether the window is before the timestamp (`Less`), contains it, or is after it.
    pub fn compared_to(self, timestamp: i64) -> Ordering {
        let rounded = match timestamp < 0 {
            true => timestamp.checked_sub(self.length_ms - 1).unwrap_or(i64::MIN),
            false => timestamp,
        };
        self.position.cmp(&(rounded / self.length_ms))
    }

    /// The first timestamp in it.
    pub fn start_ms(self) -> i64 {
        self.length_ms.checked_mul(self.position).unwrap_or(i64::MIN)
    }
}
