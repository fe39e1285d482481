//! The cleaner of MOB files whose region no longer exists, after a split or merge, and of links of
//! clones to MOB files.
//!
//! Region servers clean the MOB files of their open regions. The files here may be referenced by
//! any region of the table, so all store files of the table are read. Nothing is archived if one of
//! them lacks the list of its MOB files, if the directory of a region lacks its `.regioninfo`, or
//! if the regions change in the meantime. Before each removal, the master checks that it was not
//! replaced: what it has read may be outdated if it was frozen.
//!
//! Source: HBase `MobFileCleanerChore`, `MobFileCleanupUtil`.

use std::collections::HashSet;

use cell::region::RegionInfo;
use cell::schema::TableDescriptor;
use engine::mob::FileRefs;
use fs::FileStatus;
use layout::mob::{region_of, target_of};
use tracing::{info, warn};

use crate::master::Master;

/// Cleans the MOB files of all tables once.
pub(super) async fn run(master: &Master) {
    let context = master.context();
    let tables = match context.tables.root().list_tables(context.tables.fs()).await {
        Ok(tables) => tables,
        Err(error) => return warn!(%error, "cannot list tables; cleaning MOB files in the next period"),
    };
    for name in tables {
        let Some(table) = context.tables.descriptor(&name) else { continue };
        for family in table.families.values().filter(|family| family.is_mob()) {
            match clean(master, &table, &family.name).await {
                Ok(0) => {}
                Ok(archived) => info!(table = %name, archived, "archived MOB files without references"),
                Err(error) => {
                    warn!(table = %name, %error, "cannot clean MOB files; retrying in the next period")
                }
            }
        }
    }
}

/// Cleans the files of one family. Returns their number.
async fn clean(master: &Master, table: &TableDescriptor, family: &[u8]) -> Result<usize, engine::Error> {
    let (fs, root) = (master.context().tables.fs(), master.context().tables.root());
    // Files are listed first: a reference to a listed file of a region that no longer exists is in
    // a store file that exists by now.
    let listed = root.list_mob_files(fs, &table.name, family).await?;
    let before_ms = now_minus_age(master);
    let regions: HashSet<String> = root.list_region_dirs(fs, &table.name).await?.into_iter().collect();
    let may_be_obsolete = |file: &&FileStatus| {
        let is_of_region = region_of(&file.name).is_some_and(|region| regions.contains(region));
        file.modified_ms <= before_ms && !is_of_region
    };
    let candidates: Vec<&FileStatus> = listed.iter().filter(may_be_obsolete).collect();
    if candidates.is_empty() {
        return Ok(0);
    }
    let infos = root.list_regions(fs, &table.name).await?;
    if infos.iter().map(RegionInfo::encoded_name).collect::<HashSet<_>>() != regions {
        warn!(
            table = %table.name,
            "cannot clean MOB files: the directory of a region has no .regioninfo, or the regions have changed"
        );
        return Ok(0);
    }
    let Some(refs) = references(master, &infos, family).await? else {
        warn!(
            table = %table.name, family = %family.escape_ascii(),
            "cannot clean MOB files: a store file does not list those that it needs; a major compaction adds the list"
        );
        return Ok(0);
    };
    // A region that was split or merged in the meantime may have been read when its files had moved
    // already, and its successors were not read.
    let after: HashSet<String> = root.list_region_dirs(fs, &table.name).await?.into_iter().collect();
    if after != regions {
        return Ok(0);
    }
    // Taking or using a snapshot: the files may be about to be needed.
    if super::cleaner::uses_snapshots(master) {
        return Ok(0);
    }
    let obsolete = candidates.into_iter().filter(|file| !refs.contains(&target_of(&file.name)));
    let (links, files): (Vec<&FileStatus>, Vec<&FileStatus>) =
        obsolete.partition(|file| target_of(&file.name) != file.name);
    let dir = root.mob_family_dir(&table.name, family);
    for link in &links {
        master.context().check_owned().await?;
        fs.delete(&dir.join(&link.name)).await?;
    }
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    master.context().check_owned().await?;
    root.archive_mob_files(fs, &table.name, family, &names).await?;
    Ok(links.len() + names.len())
}

fn now_minus_age(master: &Master) -> u64 {
    let age_ms = master.chores().mob_min_age.as_millis() as u64;
    master.context().env.clock.now_ms().saturating_sub(age_ms)
}

/// The MOB files that store files of the regions list; `None` if one of them has no list.
async fn references(
    master: &Master,
    regions: &[RegionInfo],
    family: &[u8],
) -> Result<Option<FileRefs>, engine::Error> {
    let (fs, root) = (master.context().tables.fs(), master.context().tables.root());
    let mut refs = FileRefs::default();
    for region in regions {
        for file in root.list_store_files(fs, region, family).await? {
            match engine::mob::listed_in(fs, &file.target).await? {
                Some(listed) => refs.extend(listed),
                None => return Ok(None),
            }
        }
    }
    Ok(Some(refs))
}
