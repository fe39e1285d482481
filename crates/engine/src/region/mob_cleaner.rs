//! Archives the MOB files of a region to which none of its cells refers.
//!
//! A region cleans only files that it wrote: no other region can have references to them while it
//! is open. Files of regions that no longer exist are the master's task.
//!
//! Source: HBase `RSMobFileCleanerChore`.

use std::sync::Arc;
use std::time::Duration;

use fs::FileStatus;
use layout::mob::region_of;
use tracing::{info, warn};

use crate::error::Result;
use crate::mob::FileRefs;
use crate::region::Region;
use crate::store::StoreFile;

impl Region {
    /// Archives MOB files of this region that are older than `min_age` and to which no cell refers.
    /// Returns their number.
    ///
    /// # Errors
    /// [`Error::NotServing`](crate::Error::NotServing); errors of the file system, and of malformed
    /// lists. The files then stay.
    pub async fn clean_mob_files(&self, min_age: Duration) -> Result<usize> {
        if self.mob.is_none() {
            return Ok(0);
        }
        self.check_serving()?;
        let mut archived = 0;
        for at in (0..self.families.len()).filter(|at| self.families[*at].is_mob()) {
            archived += self.clean_mob_files_of(at, min_age).await?;
        }
        Ok(archived)
    }

    async fn clean_mob_files_of(&self, at: usize, min_age: Duration) -> Result<usize> {
        let (services, family) = (&self.services, &self.families[at].name);
        let (fs, root, table) = (&*services.fs, &services.root, &self.info.table);
        // The order matters. A file that is listed here has its references in a file that is being
        // written (and then its name is in use), or in a view.
        let listed = root.list_mob_files(fs, table, family).await?;
        let in_use = self.mob_files_in_use();
        let Some(refs) = FileRefs::of_all(self.files_with_readers(at)?.iter().map(|file| &**file))? else {
            warn!(
                region = %self.name, family = %family.escape_ascii(),
                "cannot clean MOB files: a store file does not list those that it needs; a major compaction adds the list"
            );
            return Ok(0);
        };
        if !self.stray_names(at).is_empty() {
            // A store file that no view has may reappear after a crash, with its references. The
            // removal of such files is retried.
            return Ok(0);
        }
        let now_ms = services.env.clock.now_ms();
        let before_ms = now_ms.saturating_sub(min_age.as_millis() as u64);
        let is_obsolete = |file: &&FileStatus| {
            region_of(&file.name) == Some(&self.encoded)
                && file.modified_ms <= before_ms
                && !refs.contains(&file.name)
                && !in_use.contains(&file.name)
        };
        let obsolete: Vec<&str> = listed.iter().filter(is_obsolete).map(|file| &*file.name).collect();
        if obsolete.is_empty() {
            return Ok(0);
        }
        // If the region is open elsewhere, it may have written files that this view lacks.
        self.check_owned().await?;
        root.archive_mob_files(fs, table, family, &obsolete).await?;
        info!(
            region = %self.name, family = %family.escape_ascii(), files = obsolete.len(),
            "archived MOB files without references"
        );
        Ok(obsolete.len())
    }

    /// The files of the store `at` in the current view, and those that older views still have.
    fn files_with_readers(&self, at: usize) -> Result<Vec<Arc<StoreFile>>> {
        let _publish = self.publish_lock()?;
        let mut files = self.view.load().stores[at].files.to_vec();
        let retired = self.retired();
        files.extend(retired.iter().filter(|(store, _)| *store == at).map(|(_, file)| file.clone()));
        Ok(files)
    }
}
