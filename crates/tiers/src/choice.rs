//! The volume of a tier for a new file.

use std::sync::Arc;
use std::time::Duration;

use crate::volume::{Health, Volume};

/// Volumes count as equally fast if they are ready within this factor of the fastest one, ...
const SAME_SPEED_FACTOR: u32 = 2;
/// ... or within this factor if they are emptier than it by more than [`EMPTIER_SHARE`], ...
const EMPTIER_FACTOR: u32 = 4;
/// With several writers, an empty volume is busier than a full one because it gets their files.
/// Without the larger factor, every second file would then go to the full one.
const EMPTIER_SHARE: f64 = 0.03;
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
    let (fastest, earliest) = timed.iter().min_by_key(|(_, time)| *time).copied()?;
    let is_fast = |volume: &Volume, time: Duration| {
        let is_emptier = volume.fill() + EMPTIER_SHARE < fastest.fill();
        let factor = if is_emptier { EMPTIER_FACTOR } else { SAME_SPEED_FACTOR };
        time <= (earliest * factor).max(earliest + SAME_SPEED_TIME)
    };
    let fast = timed.into_iter().filter(|(volume, time)| is_fast(volume, *time));
    fast.map(|(volume, _)| volume).min_by(|a, b| a.fill().total_cmp(&b.fill()))
}
