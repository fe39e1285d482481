//! The kinds of files and directories in a root directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::damage::Damage;
use crate::image::{Image, TABLES};

/// A file or directory to damage.
#[derive(Clone, Debug)]
pub struct Target {
    pub kind: String,
    /// The path in the root directory.
    pub path: String,
    /// The table that owns it, if it is one of the image's tables.
    pub table: Option<String>,
    is_dir: bool,
    len: u64,
    /// Sort key. The smallest target represents its kind.
    order: (usize, String),
}

/// The cases: one file or directory of each kind, or all of them.
///
/// # Panics
/// If a file's kind is unknown.
pub fn cases(image: &Image, all: bool) -> Vec<(Target, Damage)> {
    let mut targets = Vec::new();
    collect(image, &image.path(), "", &mut targets);
    let mut by_kind: BTreeMap<String, Vec<Target>> = BTreeMap::new();
    for target in targets {
        by_kind.entry(target.kind.clone()).or_default().push(target);
    }
    let mut cases = Vec::new();
    for (_, mut targets) in by_kind {
        targets.sort_by_key(|target| target.order.clone());
        let count = if all { targets.len() } else { 1 };
        for target in targets.into_iter().take(count) {
            let damages: &[Damage] = if all { &Damage::ALL } else { &Damage::QUICK };
            let makes_sense = |damage: &&Damage| match damage {
                Damage::Remove => true,
                _ => !target.is_dir && target.len > 0,
            };
            cases.extend(damages.iter().filter(makes_sense).map(|damage| (target.clone(), *damage)));
        }
    }
    cases
}

fn collect(image: &Image, dir: &Path, below: &str, targets: &mut Vec<Target>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let is_dir = entry.file_type().unwrap().is_dir();
        let Some((kind, table, order)) = describe(image, &path, is_dir) else {
            panic!("{path} is of an unknown kind: add it to kinds.rs");
        };
        let len = entry.metadata().unwrap().len();
        targets.push(Target { kind, path: path.clone(), table, is_dir, len, order });
        if is_dir {
            collect(image, &entry.path(), &path, targets);
        }
    }
}

type Description = (String, Option<String>, (usize, String));

/// Kind, table and sort key of a path; `None` if the kind is unknown.
fn describe(image: &Image, path: &str, is_dir: bool) -> Option<Description> {
    let parts: Vec<&str> = path.split('/').collect();
    let of_root = |kind: &str| Some((kind.to_string(), None, (0, path.to_string())));
    match (&parts[..], is_dir) {
        (["grampus.root"], false) => of_root("`grampus.root`"),
        (["grampus.lock"], false) => of_root("`grampus.lock`"),
        (["hbase.id"], false) => of_root("`hbase.id`"),
        (["hbase.version"], false) => of_root("`hbase.version`"),
        (["grampus.reserve"], true) => of_root("directory `grampus.reserve`"),
        (["grampus.reserve", ..], false) => of_root("`grampus.reserve/`: reserved space"),
        (["grampus.logs"], true) => of_root("directory `grampus.logs`"),
        (["grampus.logs", name], false) if name.contains("meta") => {
            of_root("`grampus.logs/`: record of the logs of `hbase:meta`")
        }
        (["grampus.logs", _], false) => of_root("`grampus.logs/`: record of the logs of tables"),
        (["MasterData"], true) => of_root("directory `MasterData`"),
        (["MasterData", "grampus.logs"], true) => of_root("directory `MasterData/grampus.logs`"),
        (["MasterData", "grampus.logs", _], false) => {
            of_root("`MasterData/grampus.logs/`: record of the logs of `master:store`")
        }
        (["MasterData", rest @ ..], _) => in_root(image, "MasterData/", rest, is_dir, path),
        (rest, _) => in_root(image, "", rest, is_dir, path),
    }
}

fn in_root(image: &Image, root: &str, parts: &[&str], is_dir: bool, path: &str) -> Option<Description> {
    let of_root = |kind: String| Some((kind, None, (0, path.to_string())));
    match (parts, is_dir) {
        (
            [dir @ ("data" | "WALs" | "oldWALs" | "archive" | ".tmp" | "corrupt" | ".hbase-snapshot")],
            true,
        ) => of_root(format!("directory `{root}{dir}`")),
        (["WALs", _], true) => of_root(format!("directory `{root}WALs/SERVER`")),
        (["WALs", _, name], false) => of_root(match (root, name.ends_with(".meta")) {
            ("", true) => "log of `hbase:meta`".to_string(),
            ("", false) => "log of tables".to_string(),
            _ => "log of `master:store`".to_string(),
        }),
        (["oldWALs", ..], false) => of_root(format!("`{root}oldWALs/`: log that is not needed any more")),
        (["corrupt", ..], false) => of_root(format!("`{root}corrupt/`: damaged log")),
        ([".tmp", ..], true) => of_root(format!("directory below `{root}.tmp`")),
        ([".tmp", ..], false) => of_root(format!("file below `{root}.tmp`")),
        ([".hbase-snapshot", ".tmp", ..], true) => of_root("directory `.hbase-snapshot/.tmp`".into()),
        ([".hbase-snapshot", _], true) => of_root("directory of a snapshot".into()),
        ([".hbase-snapshot", _, ".snapshotinfo"], false) => of_root("snapshot: `.snapshotinfo`".into()),
        ([".hbase-snapshot", _, "data.manifest"], false) => of_root("snapshot: `data.manifest`".into()),
        (["archive", "data"], true) => of_root(format!("directory `{root}archive/data`")),
        (["archive", "data", _], true) => of_root(format!("directory `{root}archive/data/NAMESPACE`")),
        (["archive", "data", namespace, table, rest @ ..], _) => {
            archived(image, root, namespace, table, rest, is_dir, path)
        }
        (["data", "hbase" | "master"], true) => {
            of_root(format!("directory of the system's namespace in `{root}data`"))
        }
        (["data", _], true) => {
            let table = TABLES.iter().find(|table| table.starts_with("ns:")).map(ToString::to_string);
            let order = if parts[1] == "ns" { 0 } else { 1 };
            Some(("directory of a namespace".to_string(), table, (order, path.to_string())))
        }
        (["data", namespace, table, rest @ ..], _) => of_table(image, namespace, table, rest, is_dir, path),
        _ => None,
    }
}

/// The table's name, and its index in [`TABLES`].
fn table_of(namespace: &str, table: &str) -> (String, Option<usize>) {
    let name = if namespace == "default" { table.to_string() } else { format!("{namespace}:{table}") };
    let place = TABLES.iter().position(|known| *known == name);
    (name, place)
}

fn of_table(
    image: &Image,
    namespace: &str,
    table: &str,
    rest: &[&str],
    is_dir: bool,
    path: &str,
) -> Option<Description> {
    let (name, place) = table_of(namespace, table);
    let owner = if place.is_some() { "a table".to_string() } else { format!("`{name}`") };
    let region = rest.first().and_then(|encoded| image.regions.get(*encoded));
    let kind = match (rest, is_dir) {
        ([], true) => format!("directory of {owner}"),
        ([".tabledesc"], true) => format!("directory `.tabledesc` of {owner}"),
        ([".tabledesc", _], false) => format!("descriptor of {owner}"),
        ([".tmp", ..], true) => "directory below `.tmp` of a table".into(),
        ([_], true) => format!("directory of a region of {owner}"),
        ([_, ".regioninfo"], false) => format!("`.regioninfo` of a region of {owner}"),
        ([_, ".tmp", ..], true) => "directory below `.tmp` of a region".into(),
        ([_, "recovered.edits"], true) => format!("directory `recovered.edits` of a region of {owner}"),
        ([_, "recovered.edits", name], false) if name.ends_with(".seqid") => {
            format!("sequence id file of a region of {owner}")
        }
        ([_, "recovered.edits", _], false) => format!("recovered edits of a region of {owner}"),
        ([_, _], true) => format!("directory of a family of {owner}"),
        ([_, _, file], false) => match (&name[..], *file) {
            (_, file) if file.contains('=') => "link to a store file".to_string(),
            (_, file) if file.contains('.') => "reference to a store file (after a split)".to_string(),
            ("sidecar", _) => "store file with a column sidecar".to_string(),
            _ if region.is_some_and(|region| region.is_split_parent) => {
                "store file that references of a split name".to_string()
            }
            _ => format!("store file of {owner}"),
        },
        _ => return None,
    };
    let kind = match region {
        Some(region) if region.is_split_parent && rest.len() <= 2 => format!("{kind} (split parent)"),
        _ => kind,
    };
    // Among family directories, prefer one with files.
    let start = region.map_or(String::new(), |region| region.start.clone());
    let family = rest.get(1).copied().unwrap_or_default();
    let is_empty = is_dir && fs::read_dir(image.path().join(path)).unwrap().next().is_none();
    let order = place.map_or(usize::MAX, |place| place + if is_empty { TABLES.len() } else { 0 });
    Some((kind, place.map(|_| name), (order, format!("{start} {family} {path}"))))
}

fn archived(
    image: &Image,
    root: &str,
    namespace: &str,
    table: &str,
    rest: &[&str],
    is_dir: bool,
    path: &str,
) -> Option<Description> {
    let (name, place) = table_of(namespace, table);
    let what = match (rest, is_dir) {
        ([], true) => "directory of a table",
        ([_], true) => "directory of a region",
        ([_, _], true) => "directory of a family",
        ([_, _, links], true) if links.starts_with(".links-") => "directory of back references",
        ([_, _, links, _], false) if links.starts_with(".links-") => "back reference of a link",
        ([_, _, file], false) if file.contains('.') => "reference",
        ([_, _, _], false) => "store file that a snapshot or a link needs",
        _ => return None,
    };
    let _ = image;
    Some((
        format!("`{root}archive/`: {what}"),
        place.map(|_| name),
        (place.unwrap_or(usize::MAX), path.to_string()),
    ))
}
