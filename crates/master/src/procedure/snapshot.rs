//! Takes a snapshot: records the current files of a table. If the table is enabled, its memstores
//! are flushed before, unless the client requests otherwise.
//!
//! The server of an open region lists the files of all its families at the end of its flush. They
//! have the region's edits up to one sequence id, so the snapshot has no parts of rows. If they are
//! compacted before the snapshot is written, they are in the archive, from which no file of a
//! snapshot is removed. Without a flush, the snapshot has the edits that are in files. As in HBase,
//! these are parts of rows if the latest flush was one of some families.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use layout::FileLink;
use layout::mob::pseudo_region;
use layout::reference::is_reference;
use layout::snapshot::{Manifest, SnapshotFile, SnapshotRegion};
use proto::SnapshotDescription;
use proto::exception::{JavaException, class};
use proto::snapshot_description::Type;
use wire::meta::TableState;

use super::for_regions;
use crate::assignment::RegionState;
use crate::context::Context;
use crate::tables::file_exception;

/// Checks that the table is enabled or disabled, and that no snapshot of this name exists.
pub(super) async fn check(
    context: &Context,
    table: &TableName,
    snapshot: &SnapshotDescription,
) -> Result<(), JavaException> {
    let tables = &context.tables;
    if tables.root().find_snapshot(tables.fs(), &snapshot.name).await.map_err(file_exception)?.is_some() {
        return Err(exists(snapshot));
    }
    match context.meta.table_state(table).await? {
        Some(TableState::Enabled | TableState::Disabled) => Ok(()),
        Some(_) => {
            Err(JavaException::new(class::TABLE_PARTIALLY_OPEN, format!("Table {table} isn't fully open.")))
        }
        None => Err(JavaException::new(
            class::SNAPSHOT_CREATION,
            format!("Table '{table}' doesn't exist, can't take snapshot."),
        )),
    }
}

fn exists(snapshot: &SnapshotDescription) -> JavaException {
    let message = format!("Snapshot '{}' already stored on the filesystem.", snapshot.name);
    JavaException::new(class::SNAPSHOT_EXISTS, message)
}

/// Takes the snapshot.
pub(super) async fn act(
    context: &Context,
    table: &TableName,
    snapshot: &SnapshotDescription,
) -> Result<(), JavaException> {
    if is_complete(context, snapshot).await? {
        return Ok(());
    }
    let tables = &context.tables;
    let descriptor = tables.descriptor(table).ok_or_else(|| JavaException::io("table not found"))?;
    let is_enabled = tables.state(table) == Some(TableState::Enabled);
    let mut description = snapshot.clone();
    if !is_enabled {
        description.r#type = Some(Type::Disabled as i32);
    }
    // MOB files are listed before and after the store files. A file to which a store file of the
    // snapshot refers is on one of the lists, even if it is archived in the meantime.
    let mut mob_files = mob_file_names(context, &descriptor).await?;
    let mut regions = regions_of(context, &descriptor, is_enabled, description.r#type()).await?;
    mob_files.extend(mob_file_names(context, &descriptor).await?);
    regions.extend(mob_region(context, table, mob_files).await?);
    let manifest = Manifest { table: (*descriptor).clone(), regions };
    let _changing = context.snapshot_changes.lock().await;
    // A snapshot of another table may have got the name meanwhile.
    if is_complete(context, snapshot).await? {
        return Ok(());
    }
    tables.root().write_snapshot(tables.fs(), &description, &manifest).await.map_err(file_exception)
}

/// The regions of a table in the order of their keys, and its split parents, with their files.
async fn regions_of(
    context: &Context,
    table: &TableDescriptor,
    is_enabled: bool,
    kind: Type,
) -> Result<Vec<SnapshotRegion>, JavaException> {
    let infos: Vec<RegionInfo> =
        context.assignment.regions_of(&table.name).into_iter().map(|(region, _)| region).collect();
    let mut regions = match is_enabled {
        true => {
            let open = infos.into_iter().map(|region| {
                let server = match context.assignment.state(&region) {
                    Some(RegionState::Open(server)) => Some(server),
                    _ => None,
                };
                (server, open_region(context, table, region, kind))
            });
            for_regions(context, open.collect()).await?
        }
        false => {
            infos.iter().try_for_each(|region| check_edits_in_files(context, region))?;
            let closed = infos.into_iter().map(|region| (None, closed_region(context, table, region)));
            for_regions(context, closed.collect()).await?
        }
    };
    // Daughters may have references to the parents' files.
    for parent in context.assignment.split_parents_of(&table.name) {
        regions.push(closed_region(context, table, parent).await?);
    }
    Ok(regions)
}

/// Checks that no edits of a closed region are only in the logs of a dead server: the region could
/// not be opened before its table was disabled. The snapshot would lack these edits, perhaps of
/// some families only.
///
/// # Errors
/// A final `IOException`: no other procedure can open the region while this one waits.
fn check_edits_in_files(context: &Context, region: &RegionInfo) -> Result<(), JavaException> {
    if !context.recoveries.is_needed_by(region) {
        return Ok(());
    }
    let name = region.encoded_name();
    let message = format!("region {name} may have edits that are only in logs: enable the table first");
    Err(JavaException { do_not_retry: true, ..JavaException::io(message) })
}

/// Whether an earlier attempt of this procedure has written the snapshot.
///
/// # Errors
/// `SnapshotExistsException` for another snapshot of the same name; the file system's error.
async fn is_complete(context: &Context, snapshot: &SnapshotDescription) -> Result<bool, JavaException> {
    let tables = &context.tables;
    let found = tables.root().find_snapshot(tables.fs(), &snapshot.name).await.map_err(file_exception)?;
    match found {
        None => Ok(false),
        Some(found) if found.table == snapshot.table && found.creation_time == snapshot.creation_time => {
            Ok(true)
        }
        Some(_) => Err(exists(snapshot)),
    }
}

/// The names of the MOB files of a table, each with its family.
async fn mob_file_names(
    context: &Context,
    table: &TableDescriptor,
) -> Result<BTreeSet<(Bytes, String)>, JavaException> {
    let (fs, root) = (context.tables.fs(), context.tables.root());
    let mut names = BTreeSet::new();
    for family in table.families.values().filter(|family| family.is_mob()) {
        let listed = root.list_mob_files(fs, &table.name, &family.name).await.map_err(file_exception)?;
        names.extend(listed.into_iter().map(|file| (family.name.clone(), file.name)));
    }
    Ok(names)
}

/// The pseudo region that holds the MOB files of a snapshot; `None` if there are none.
async fn mob_region(
    context: &Context,
    table: &TableName,
    names: BTreeSet<(Bytes, String)>,
) -> Result<Option<SnapshotRegion>, JavaException> {
    if names.is_empty() {
        return Ok(None);
    }
    let info = pseudo_region(table);
    let mut by_family: BTreeMap<Bytes, Vec<String>> = BTreeMap::new();
    names.into_iter().for_each(|(family, name)| by_family.entry(family).or_default().push(name));
    let mut families = Vec::new();
    for (family, names) in by_family {
        let files = with_lengths(context, &info, &family, names).await?;
        families.push((family, files));
    }
    Ok(Some(SnapshotRegion { info, families }))
}

/// The files of an open region, as its server reports them.
async fn open_region(
    context: &Context,
    table: &TableDescriptor,
    info: RegionInfo,
    kind: Type,
) -> Result<SnapshotRegion, JavaException> {
    let region = &info;
    // If a region cannot be opened, fail instead of waiting: no other procedure can change the
    // table while this one waits.
    let open = context.assignment.wait_for_open(std::slice::from_ref(region)).await;
    open.map_err(|error| JavaException { do_not_retry: true, ..error })?;
    let Some(RegionState::Open(server)) = context.assignment.state(region) else {
        return Err(JavaException::io(format!("region {} is not open", region.encoded_name())));
    };
    let admin = context.connections.admin(&server);
    let specifier = || wire::convert::region_specifier(region);
    // The flush lists the files: after it, a flush of one family could add its file, and the
    // snapshot would have parts of rows.
    let flushed = match kind {
        Type::Skipflush => None,
        _ => {
            let request = proto::FlushRegionRequest {
                region: specifier(),
                write_flush_wal_marker: Some(true),
                grampus_list_files: Some(true),
                ..Default::default()
            };
            admin.flush_region(request).await?.grampus_store_files
        }
    };
    let files = match flushed {
        Some(files) => files,
        // There was no flush, or the server has an earlier version. One call for all families:
        // between two calls, any flush or bulk load could add its files to the later lists only.
        None => {
            let family = table.families.keys().cloned().collect();
            admin.get_store_file(proto::GetStoreFileRequest { region: specifier(), family }).await?
        }
    };
    let mut families = Vec::new();
    for (family, names) in names_by_family(table, &files.store_file)? {
        let files = with_lengths(context, region, &family, names).await?;
        families.push((family, files));
    }
    Ok(SnapshotRegion { info, families })
}

/// The names of store files, by the family whose directory is the parent in the path.
fn names_by_family(
    table: &TableDescriptor,
    paths: &[String],
) -> Result<BTreeMap<Bytes, Vec<String>>, JavaException> {
    let mut names: BTreeMap<Bytes, Vec<String>> =
        table.families.keys().map(|family| (family.clone(), Vec::new())).collect();
    for path in paths {
        let mut parts = path.rsplit('/');
        let (name, dir) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let files = names.get_mut(dir.as_bytes());
        let files = files.ok_or_else(|| JavaException::io(format!("{path} is in no family of the table")))?;
        files.push(name.to_string());
    }
    Ok(names)
}

/// The files of a region that is not open.
async fn closed_region(
    context: &Context,
    table: &TableDescriptor,
    info: RegionInfo,
) -> Result<SnapshotRegion, JavaException> {
    let (fs, root) = (context.tables.fs(), context.tables.root());
    let mut families = Vec::new();
    for family in table.families.keys() {
        let listed = engine::stored::files_in_use(fs, root, &info, family).await;
        // For a damaged file, fail instead of waiting: no other procedure can change the table
        // while this one waits.
        let listed = listed.map_err(|error| JavaException {
            do_not_retry: !matches!(error, engine::Error::Fs(_)),
            ..JavaException::io(error.to_string())
        })?;
        let files = listed.into_iter().map(|file| SnapshotFile {
            name: file.path.name().into(),
            len: Some(file.len),
            reference: file.reference,
        });
        families.push((family.clone(), files.collect()));
    }
    Ok(SnapshotRegion { info, families })
}

async fn with_lengths(
    context: &Context,
    region: &RegionInfo,
    family: &[u8],
    names: Vec<String>,
) -> Result<Vec<SnapshotFile>, JavaException> {
    let (fs, root) = (context.tables.fs(), context.tables.root());
    let mut files = Vec::with_capacity(names.len());
    for name in names {
        let gone = || JavaException::io(format!("{name} of {} is gone", region.encoded_name()));
        let link = FileLink::to(region, family, &name).ok_or_else(gone)?;
        let (_, status) = link.find(root, fs).await.map_err(file_exception)?.ok_or_else(gone)?;
        let reference = match is_reference(&name) {
            true => Some(
                root.find_reference(fs, region, family, &name)
                    .await
                    .map_err(file_exception)?
                    .ok_or_else(gone)?,
            ),
            false => None,
        };
        files.push(SnapshotFile { len: Some(status.len), name, reference });
    }
    Ok(files)
}
