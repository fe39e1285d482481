//! The text of the options that describe tiers.
//!
//! Tiers are separated by semicolons, from the fastest to the slowest:
//!
//! ```text
//! fast nvme /nvme0/grampus,/nvme1/grampus ; disk hdd root,/disk1/grampus codec=ZSTD
//! ```
//!
//! Each has a name, a class, and directories. `root` is the root directory of the database. Words
//! `key=value` follow. A class is described by a name, and by words `key=value`:
//! `qlc type=ssd writers=2`.

use std::sync::Arc;

use base::config::{parse_bytes, parse_millis};
use fs::Role;

use crate::class::{DiskClass, StorageType};
use crate::model::{parse_model, parse_rate};
use crate::placement::TierRule;

/// The word for the root directory in a list of directories.
const ROOT: &str = "root";

/// One tier as configured.
#[derive(Clone, Debug, PartialEq)]
pub struct TierOptions {
    /// Its name.
    pub name: Arc<str>,
    /// The kind of its disks, with what the tier changes.
    pub class: DiskClass,
    /// Its directories.
    pub directories: Vec<TierDirectory>,
    /// Which files it takes.
    pub rule: TierRule,
}

/// A directory of a tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TierDirectory {
    /// The root directory of the database.
    Root,
    /// An absolute path.
    Path(String),
}

impl TierDirectory {
    fn as_text(&self) -> &str {
        match self {
            TierDirectory::Root => ROOT,
            TierDirectory::Path(path) => path,
        }
    }
}

/// Parses all tiers; none for an empty text. `classes` are those that are not built in.
///
/// # Errors
/// What is wrong, for the operator.
pub fn parse_tiers(text: &str, classes: &[DiskClass]) -> Result<Vec<TierOptions>, String> {
    let parts: Vec<&str> = text.split(';').map(str::trim).filter(|part| !part.is_empty()).collect();
    let mut tiers: Vec<TierOptions> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let tier = parse_tier(part, classes, TierRule::default_of(at, parts.len()))?;
        if tiers.iter().any(|other| other.name == tier.name) {
            return Err(format!("two tiers have the name {}", tier.name));
        }
        for (at, dir) in tier.directories.iter().enumerate() {
            let mut others = tiers.iter().flat_map(|other| &other.directories).chain(&tier.directories[..at]);
            if others.any(|other| other == dir) {
                return Err(format!("the directory {} is listed twice", dir.as_text()));
            }
        }
        tiers.push(tier);
    }
    Ok(tiers)
}

fn parse_tier(text: &str, classes: &[DiskClass], mut rule: TierRule) -> Result<TierOptions, String> {
    let mut words = text.split_whitespace();
    let (Some(name), Some(class), Some(directories)) = (words.next(), words.next(), words.next()) else {
        return Err(format!(
            "`{text}` should be a name, a class and directories, such as `fast nvme /nvme0`"
        ));
    };
    let own = classes.iter().find(|own| *own.name == *class).cloned();
    let mut class = own.map_or_else(|| DiskClass::built_in(class), Ok).map_err(|error| error.to_string())?;
    for word in words {
        let (key, value) = key_and_value(word)?;
        let invalid = || format!("`{word}` of the tier {name} has no valid value");
        match key {
            "roles" => rule.roles = value.split(',').map(parse_role).collect::<Result<_, _>>()?,
            "file.bytes.max" => rule.file_bytes_max = Some(parse_bytes(value).ok_or_else(invalid)?),
            "age.max" => rule.age_ms_max = Some(parse_millis(value).ok_or_else(invalid)?),
            "fill.max" => rule.fill_max = parse_percent(value).ok_or_else(invalid)?,
            _ => set(&mut class, key, value).ok_or_else(|| unknown(word))??,
        }
    }
    check_bus(&class).map_err(|reason| format!("the tier {name}: {reason}"))?;
    let directories = directories.split(',').map(parse_directory).collect::<Result<_, _>>()?;
    Ok(TierOptions { name: name.into(), class, directories, rule })
}

/// Parses the classes that are not built in.
///
/// # Errors
/// What is wrong, for the operator.
pub fn parse_classes(text: &str) -> Result<Vec<DiskClass>, String> {
    text.split(';').map(str::trim).filter(|part| !part.is_empty()).map(parse_class).collect()
}

fn parse_class(text: &str) -> Result<DiskClass, String> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    if DiskClass::built_in(name).is_ok() {
        return Err(format!("the class {name} is built in; choose another name"));
    }
    let mut class = DiskClass::built_in("ssd").expect("a built-in class");
    class.name = name.into();
    for word in words {
        let (key, value) = key_and_value(word)?;
        set(&mut class, key, value).ok_or_else(|| unknown(word))??;
    }
    Ok(class)
}

/// A limit that nothing enforces would be a surprise.
fn check_bus(class: &DiskClass) -> Result<(), String> {
    match class.bus_bytes_per_s.is_some() && class.model.is_none() {
        true => Err("`bus` limits disks that have a `model`, such as model=ssd".to_owned()),
        false => Ok(()),
    }
}

/// Sets a property of a class; `None` if there is no such property or value, and an error if the
/// value has parts of its own.
fn set(class: &mut DiskClass, key: &str, value: &str) -> Option<Result<(), String>> {
    match key {
        "type" => class.storage_type = storage_type(value)?,
        "writers" => class.writers_max = value.parse().ok().filter(|count| *count > 0)?,
        "codec" => class.compression = Some(value.into()),
        "encoding" => class.encoding = Some(value.into()),
        "direct" => class.direct_io = value.parse().ok()?,
        "model" => return Some(parse_model(value).map(|device| class.model = Some(device))),
        "bus" => return Some(parse_rate(value).map(|rate| class.bus_bytes_per_s = Some(rate))),
        _ => return None,
    }
    Some(Ok(()))
}

fn unknown(word: &str) -> String {
    format!(
        "`{word}` is not known; known are roles, file.bytes.max, age.max, fill.max, type, writers, codec, \
         encoding, direct, model and bus, each with `=` and a value"
    )
}

fn key_and_value(word: &str) -> Result<(&str, &str), String> {
    word.split_once('=').ok_or_else(|| unknown(word))
}

/// The share of a percentage from 1 % to 100 %.
fn parse_percent(text: &str) -> Option<f64> {
    let percent: u8 = text.strip_suffix('%')?.parse().ok()?;
    (1..=100).contains(&percent).then(|| f64::from(percent) / 100.0)
}

fn storage_type(text: &str) -> Option<StorageType> {
    Some(match text {
        "ram_disk" => StorageType::RamDisk,
        "ssd" => StorageType::Ssd,
        "disk" => StorageType::Disk,
        "archive" => StorageType::Archive,
        _ => return None,
    })
}

fn parse_role(text: &str) -> Result<Role, String> {
    Ok(match text {
        "log" => Role::Log,
        "flush" => Role::Flush,
        "minor" => Role::MinorCompaction,
        "major" => Role::MajorCompaction,
        "mob" => Role::Mob,
        "archive" => Role::Archive,
        _ => {
            return Err(format!(
                "`{text}` is not a role; the roles are log, flush, minor, major, mob and archive"
            ));
        }
    })
}

fn parse_directory(text: &str) -> Result<TierDirectory, String> {
    match text {
        ROOT => Ok(TierDirectory::Root),
        _ if text.starts_with('/') => Ok(TierDirectory::Path(text.trim_end_matches('/').to_owned())),
        _ => Err(format!("the directory `{text}` is not an absolute path or `root`")),
    }
}

#[cfg(test)]
mod tests {
    use fs::paced::Device;

    use super::*;

    #[test]
    fn tiers_are_parsed() {
        let text = "fast nvme /nvme0/g,/nvme1/g roles=log,flush file.bytes.max=1536MiB fill.max=85%;\n disk hdd root,/d1/g \
                    codec=ZSTD age.max=7d;";
        let tiers = parse_tiers(text, &[]).unwrap();
        assert_eq!(tiers.len(), 2);
        assert_eq!(
            tiers[0].directories,
            ["/nvme0/g", "/nvme1/g"].map(|dir| TierDirectory::Path(dir.to_owned()))
        );
        assert_eq!(tiers[0].rule.roles, [Role::Log, Role::Flush]);
        assert_eq!(tiers[0].rule.file_bytes_max, Some(1536 << 20));
        assert_eq!((tiers[0].rule.fill_max, tiers[1].rule.fill_max), (0.85, 0.9));
        assert_eq!(tiers[1].directories[0], TierDirectory::Root);
        assert_eq!(tiers[1].class.compression.as_deref(), Some("ZSTD"));
        assert_eq!(tiers[1].rule.age_ms_max, Some(7 * 86_400_000));
        assert_eq!(tiers[1].rule.roles, TierRule::default_of(1, 2).roles);
        assert_eq!(parse_tiers("  ", &[]), Ok(Vec::new()));
    }

    #[test]
    fn own_classes_are_parsed() {
        let classes = parse_classes("qlc type=ssd writers=2 direct=false").unwrap();
        assert_eq!((classes[0].writers_max, classes[0].direct_io), (2, false));
        assert_eq!(parse_tiers("a qlc /a", &classes).unwrap()[0].class, classes[0]);
    }

    #[test]
    fn models_are_parsed() {
        let text = "a ssd /a,/b model=ssd,slower=2 bus=1536MB/s; b hdd /c";
        let tiers = parse_tiers(text, &[]).unwrap();
        assert_eq!(tiers[0].class.model, Some(Device::ssd().scaled(2.0)));
        assert_eq!(tiers[0].class.bus_bytes_per_s, Some(1_536_000_000));
        assert_eq!((&tiers[1].class.model, tiers[1].class.bus_bytes_per_s), (&None, None));
        // A class has a model too, and a tier changes it.
        let classes = parse_classes("slow model=hdd").unwrap();
        assert_eq!(parse_tiers("a slow /a", &classes).unwrap()[0].class.model, Some(Device::hdd()));
        let changed = parse_tiers("a slow /a model=ssd", &classes).unwrap();
        assert_eq!(changed[0].class.model, Some(Device::ssd()));
    }

    #[test]
    fn errors_name_the_word() {
        for (text, expected) in [
            ("fast nvme", "name, a class and directories"),
            ("fast floppy /a", "floppy"),
            ("fast nvme relative", "`relative`"),
            ("fast nvme /a roles=logs", "`logs`"),
            ("fast nvme /a color=red", "`color=red`"),
            ("fast nvme /a file.bytes.max=much", "`file.bytes.max=much`"),
            ("fast nvme /a fill.max=101%", "`fill.max=101%`"),
            ("a ssd /a model=tape", "`tape` is not a model"),
            ("a ssd /a model=hdd,seek=8", "`8` is not a time"),
            ("a ssd /a model=hdd bus=much", "`much` is not a rate"),
            ("a ssd /a bus=1GB/s", "the tier a: `bus` limits disks that have a `model`"),
            ("a nvme /a; a hdd /b", "two tiers"),
            ("a nvme /a; b hdd /a", "listed twice"),
            ("a nvme /a,/a", "listed twice"),
        ] {
            let error = parse_tiers(text, &[]).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(parse_classes("hdd writers=4").unwrap_err().contains("built in"));
    }
}
