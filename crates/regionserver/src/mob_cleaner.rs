//! Cleans the MOB files of the open regions periodically.
//!
//! The master cleans those of regions that no longer exist.

use std::sync::Arc;

use base::env::{Env, TaskClass};
use engine::mob::MobOptions;
use tracing::warn;

use crate::regions::OnlineRegions;

/// Starts the chore, which runs as long as `regions` are in use.
pub(crate) fn watch(env: &Env, regions: &Arc<OnlineRegions>, options: MobOptions) {
    let (weak, clock) = (Arc::downgrade(regions), env.clock.clone());
    env.spawn(TaskClass::Background, async move {
        loop {
            clock.sleep(options.cleaner_period).await;
            let Some(regions) = weak.upgrade() else { return };
            for region in regions.all() {
                if let Err(error) = region.clean_mob_files(options.min_age).await {
                    warn!(region = %region.name(), %error, "cannot clean MOB files; retrying in the next period");
                }
            }
        }
    });
}
