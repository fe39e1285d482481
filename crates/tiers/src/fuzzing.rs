//! Entry points of the fuzz targets. None of their futures waits.

use fs::FilePath;
use fs::memory::MemoryFs;

use crate::known::KnownVolumes;
use crate::options::{parse_classes, parse_tiers};
use crate::target::Target;
use crate::volume::read_identity;

/// `grampus.volumes`: an accepted list is equal after it was written again.
pub async fn known_volumes(data: &[u8]) {
    let home = MemoryFs::new();
    home.put(&FilePath::new("grampus.volumes"), data.to_vec());
    let Ok(known) = KnownVolumes::read(&home).await else { return };
    home.put(&FilePath::new("grampus.volumes"), known.text().into_bytes());
    assert_eq!(KnownVolumes::read(&home).await.expect("a written list must be readable"), known);
}

/// `grampus.volume`: accepted lines have an id and a database.
pub async fn volume_identity(data: &[u8]) {
    let disk = MemoryFs::new();
    disk.put(&FilePath::new("grampus.volume"), data.to_vec());
    if let Ok(found) = read_identity(&disk).await {
        let (id, database) = found.expect("the file exists");
        assert!(!id.is_empty() && !database.is_empty());
    }
}

/// The target of a link: an accepted one is the same after it was written again.
pub fn link_target(text: &str) {
    let Some(target) = Target::parse(text) else { return };
    assert_eq!(Target::parse(&target.link("/mnt/disk")).as_ref(), Some(&target), "{text:?}");
}

/// The options `grampus.tier.classes` (before the first line break) and `grampus.tiers`.
pub fn options(text: &str) {
    let (classes, tiers) = text.split_once('\n').unwrap_or(("", text));
    let Ok(classes) = parse_classes(classes) else { return };
    let Ok(tiers) = parse_tiers(tiers, &classes) else { return };
    for tier in tiers {
        assert!(!tier.directories.is_empty() && tier.class.writers_max > 0);
        assert!(tier.rule.fill_max > 0.0 && tier.rule.fill_max <= 1.0);
        assert!(tier.class.bus_bytes_per_s != Some(0));
        if let Some(model) = tier.class.model {
            assert!(model.read_bytes_per_s > 0 && model.write_bytes_per_s > 0 && model.queue_depth > 0);
        }
    }
}
