//! The inventory of a region: the files that its stores must have at the next open.

use layout::Inventory;
use tracing::warn;

use crate::error::Result;
use crate::region::Region;

impl Region {
    /// Records the files of the current view. Called when new files are in the view, and before
    /// replaced files leave their directory.
    ///
    /// # Errors
    /// File system errors. The content on disk is then unknown, and the next call writes it again.
    pub(super) async fn record_files(&self) -> Result<()> {
        let mut recorded = self.recorded.lock().await;
        let inventory = self.inventory();
        if recorded.as_ref() == Some(&inventory) {
            return Ok(());
        }
        // Another server may have the region open, with other files.
        self.check_owned().await?;
        *recorded = None;
        let services = &self.services;
        services.root.write_inventory(&*services.fs, &self.info, Some(&inventory)).await?;
        *recorded = Some(inventory);
        Ok(())
    }

    /// Records new files. After a failure, a loss of these files would not be detected until the
    /// next record succeeds. Nothing else is affected.
    pub(super) async fn record_new_files(&self) {
        if let Err(error) = self.record_files().await {
            warn!(region = %self.name, %error, "cannot record new store files; will retry with the next ones");
        }
    }

    /// Records `seq_id` as the highest sequence id used, together with the files of the current
    /// view. On a full disk only the sequence id is recorded, in an empty file.
    ///
    /// # Errors
    /// File system errors.
    pub(super) async fn record_seq_id(&self, seq_id: u64) -> Result<()> {
        let (fs, root) = (&*self.services.fs, &self.services.root);
        {
            let mut recorded = self.recorded.lock().await;
            let (inventory, before) = (self.inventory(), recorded.take());
            *recorded = match root.write_max_seq_id(fs, &self.info, seq_id, Some(&inventory)).await {
                Ok(true) => Some(inventory),
                Ok(false) => before,
                Err(layout::Error::Fs(fs::Error::NoSpace { .. })) => {
                    root.write_max_seq_id(fs, &self.info, seq_id, None).await?;
                    None
                }
                Err(error) => return Err(error.into()),
            };
        }
        self.record_new_files().await;
        Ok(())
    }

    fn inventory(&self) -> Inventory {
        let mut inventory = Inventory::default();
        let view = self.view.load();
        for (family, store) in self.families.iter().zip(&view.stores) {
            store.files.iter().for_each(|file| inventory.add(&family.name, file.name()));
        }
        inventory
    }
}
