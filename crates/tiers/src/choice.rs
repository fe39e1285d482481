//! The volume of a tier for a new file.

use std::sync::Arc;
use std::time::Duration;

use crate::volume::{Health, Volume};

/// Volumes count as equally fast if they are ready within this factor of the fastest one, ...
const SAME_SPEED_FACTOR: u32 = 2;
/// ... or within this time. Differences of a few requests say nothing.
const SAME_SPEED_TIME: Duration = Duration::from_millis(20);

/// The volume for a new file of about `bytes` bytes: of those that are likely to be ready about as
/// early as the first one, the emptiest. `None` if no volume is usable and has the space.
///
/// A slow volume gets a file when the queues of the others are so long that it would still be ready
/// first. Equally fast volumes of different size fill evenly, in percent.
pub(crate) fn choose(volumes: &[Arc<Volume>], bytes: u64) -> Option<&Arc<Volume>> {
    let has_room = |volume: &Arc<Volume>| volume.health() == Health::Good && volume.has_room_for(bytes);
    let usable = volumes.iter().filter(|volume| has_room(volume));
    let timed: Vec<_> = usable.map(|volume| (volume, volume.expected_completion(bytes))).collect();
    let earliest = timed.iter().map(|(_, time)| *time).min()?;
    let limit = (earliest * SAME_SPEED_FACTOR).max(earliest + SAME_SPEED_TIME);
    let fast = timed.into_iter().filter(|(_, time)| *time <= limit);
    fast.map(|(volume, _)| volume).min_by(|a, b| a.fill().total_cmp(&b.fill()))
}
