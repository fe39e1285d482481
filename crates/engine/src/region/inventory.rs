//! What a region writes into its inventory: the files that its stores must have at the next open.

use layout::Inventory;
use tracing::warn;

use crate::error::Result;
use crate::region::Region;

impl Region {
    /// Records the files of the current view. Called after files were moved in and are in the view, and before replaced
    /// ones leave their directory.
    ///
    /// # Errors
    /// The file system's; what is recorded is then not known, and the next call writes it again.
    pub(super) async fn record_files(&self) -> Result<()> {
        let mut recorded = self.recorded.lock().await;
        let inventory = self.inventory();
        if recorded.as_ref() == Some(&inventory) {
            return Ok(());
        }
        *recorded = None;
        let services = &self.services;
        services.root.write_inventory(&*services.fs, &self.info, Some(&inventory)).await?;
        *recorded = Some(inventory);
        Ok(())
    }

    /// Records new files. Where that fails, their loss would not be noticed, and nothing else is wrong.
    pub(super) async fn record_new_files(&self) {
        if let Err(error) = self.record_files().await {
            warn!(region = %self.name, %error, "new store files could not be recorded; tried again with the next ones");
        }
    }

    /// Keeps a sequence id as the highest one that was used, and records the files of the current view with it. On a full
    /// disk only the sequence id, whose file then needs no room.
    ///
    /// # Errors
    /// The file system's.
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
