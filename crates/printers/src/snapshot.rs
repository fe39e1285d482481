//! Prints snapshots.

mod text;

use std::io::Write;

use base::calendar::CalendarTime;
use fs::FileSystem;
use layout::snapshot::{Manifest, SnapshotFile, SnapshotRegion};
use layout::{FileLink, RootDir};
use proto::SnapshotDescription;

use crate::Error;
use crate::descriptor::{family_attributes, table_attributes};
use text::{decimal, size};

const RULE: &str = "----------------------------------------";
const WARNING_RULE: &str = "**************************************************************";

/// What is printed of a snapshot; the names are those of HBase's options.
#[derive(Clone, Copy, Debug, Default)]
pub struct SnapshotOptions {
    /// The name, size and state of each file (`-files`).
    pub files: bool,
    /// The number and size of the files (`-stats`).
    pub statistics: bool,
    /// The attributes of the table (`-schema`).
    pub schema: bool,
    /// Sizes in bytes, and not with units (`-size-in-bytes`).
    pub bytes: bool,
}

/// Prints the snapshots in a root directory.
pub struct SnapshotPrinter<'a> {
    fs: &'a dyn FileSystem,
    root: &'a RootDir,
    out: &'a mut dyn Write,
    warnings: &'a mut dyn Write,
}

impl<'a> SnapshotPrinter<'a> {
    /// Prints the snapshots of `root` to `out`, and warnings to `warnings`.
    pub fn new(
        fs: &'a dyn FileSystem,
        root: &'a RootDir,
        out: &'a mut dyn Write,
        warnings: &'a mut dyn Write,
    ) -> SnapshotPrinter<'a> {
        SnapshotPrinter { fs, root, out, warnings }
    }

    /// Lists the complete snapshots, in order of their names (`-list-snapshots`). A corrupt one is
    /// a warning.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list(&mut self) -> Result<(), Error> {
        let titles = ("SNAPSHOT", "CREATION TIME", "TTL IN SEC", "TABLE NAME");
        writeln!(self.out, "{:<20} | {:<20} | {:<20} | {}", titles.0, titles.1, titles.2, titles.3)?;
        for name in self.root.snapshot_names(self.fs).await? {
            match self.root.find_snapshot(self.fs, &name).await {
                Ok(Some(found)) => {
                    let (created, ttl, table) = (created(&found), found.ttl(), found.table());
                    writeln!(self.out, "{name:<20} | {created:>20} | {ttl:>20} | {table}")?;
                }
                // A directory without files is what a removal leaves for a moment.
                Ok(None) => {}
                Err(error) => writeln!(self.warnings, "skipping snapshot {name:?}: {error}")?,
            }
        }
        Ok(())
    }

    /// Prints a snapshot. Returns whether it exists.
    ///
    /// # Errors
    /// [`Error`], if it is damaged.
    pub async fn print(&mut self, name: &str, options: SnapshotOptions) -> Result<bool, Error> {
        let Some(description) = self.root.find_snapshot(self.fs, name).await? else { return Ok(false) };
        let manifest = self.root.read_snapshot(self.fs, name).await?;
        self.print_description(&description)?;
        if options.schema {
            self.print_schema(&manifest)?;
        }
        self.print_files(&manifest, options).await?;
        Ok(true)
    }

    fn print_description(&mut self, description: &SnapshotDescription) -> Result<(), Error> {
        let kind = description.r#type().as_str_name();
        let (table, version, owner) = (description.table(), description.version(), description.owner());
        writeln!(self.out, "Snapshot Info\n{RULE}")?;
        writeln!(self.out, "   Name: {}\n   Type: {kind}\n  Table: {table}", description.name)?;
        writeln!(self.out, " Format: {version}\nCreated: {}", created(description))?;
        Ok(writeln!(self.out, "    Ttl: {}\n  Owner: {owner}\n", description.ttl())?)
    }

    fn print_schema(&mut self, manifest: &Manifest) -> Result<(), Error> {
        let table = &manifest.table;
        writeln!(self.out, "Table Descriptor\n{RULE}")?;
        write!(self.out, "'{}'{}", table.name, table_attributes(table))?;
        for family in table.families.values() {
            write!(self.out, ", {}", family_attributes(family))?;
        }
        Ok(writeln!(self.out, "\n")?)
    }

    async fn print_files(&mut self, manifest: &Manifest, options: SnapshotOptions) -> Result<(), Error> {
        if options.files {
            writeln!(self.out, "Snapshot Files\n{RULE}")?;
        }
        let mut totals = Totals::default();
        for region in &manifest.regions {
            for (family, files) in &region.families {
                // A reference shares the bytes of a file that is in the snapshot, too.
                for file in files.iter().filter(|file| file.reference.is_none()) {
                    let found = self.find(region, family, file).await?;
                    totals.add(found);
                    if options.files {
                        self.print_file(manifest, region, (family, file), found, options)?;
                    }
                }
            }
        }
        writeln!(self.out)?;
        if totals.missing > 0 || totals.changed > 0 {
            writeln!(self.out, "{WARNING_RULE}")?;
            writeln!(self.out, "BAD SNAPSHOT: {} hfile(s) and 0 log(s) missing.", totals.missing)?;
            writeln!(self.out, "              {} hfile(s) corrupted.", totals.changed)?;
            writeln!(self.out, "{WARNING_RULE}")?;
        }
        if options.statistics {
            totals.print(self.out, options)?;
        }
        Ok(())
    }

    async fn find(
        &self,
        region: &SnapshotRegion,
        family: &[u8],
        file: &SnapshotFile,
    ) -> Result<FoundFile, Error> {
        let link = FileLink::to(&region.info, family, &file.name);
        let Some(link) = link else { return Ok(FoundFile::default()) };
        let Some((path, status)) = link.find(self.root, self.fs).await? else {
            return Ok(FoundFile::default());
        };
        let place = match path.as_str() {
            path if path.starts_with(self.root.archive_dir().as_str()) => Place::Archive,
            path if path.starts_with(self.root.mob_data_dir().as_str()) => Place::Mob,
            _ => Place::Table,
        };
        let is_changed = file.len.is_some_and(|len| len != status.len);
        Ok(FoundFile { place, bytes: status.len, is_changed })
    }

    fn print_file(
        &mut self,
        manifest: &Manifest,
        region: &SnapshotRegion,
        (family, file): (&[u8], &SnapshotFile),
        found: FoundFile,
        options: SnapshotOptions,
    ) -> Result<(), Error> {
        let bytes = match found.place {
            Place::Nowhere => "-".to_string(),
            _ => size(found.bytes, options.bytes),
        };
        let (table, encoded) = (&manifest.table.name, region.info.encoded_name());
        let family = base::text::to_string_binary(family);
        Ok(writeln!(self.out, "{bytes:>8} {table}/{encoded}/{family}/{} {}", file.name, found.state())?)
    }
}

/// The time at which a snapshot was taken, in UTC, as HBase formats it.
fn created(description: &SnapshotDescription) -> String {
    let CalendarTime { year, month, day, hour, minute, second, .. } =
        CalendarTime::from_ms(description.creation_time());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// The directory that has a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// The directory of a region, so the file is shared with a table.
    Table,
    /// The archive.
    Archive,
    /// The directory of MOB files.
    Mob,
    /// None: the file is missing.
    #[default]
    Nowhere,
}

/// A file of a snapshot.
#[derive(Clone, Copy, Debug, Default)]
struct FoundFile {
    place: Place,
    bytes: u64,
    /// Whether its size is not the recorded one.
    is_changed: bool,
}

impl FoundFile {
    fn state(self) -> &'static str {
        match self.place {
            _ if self.is_changed => "(CORRUPTED)",
            Place::Archive | Place::Mob => "(archive)",
            Place::Nowhere => "(NOT FOUND)",
            Place::Table => "",
        }
    }
}

/// Files and bytes in one place.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    files: u64,
    bytes: u64,
}

impl Total {
    fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }
}

/// The files of a snapshot.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    table: Total,
    archive: Total,
    mob: Total,
    missing: u64,
    changed: u64,
}

impl Totals {
    fn add(&mut self, found: FoundFile) {
        match found.place {
            Place::Table => self.table.add(found.bytes),
            Place::Archive => self.archive.add(found.bytes),
            Place::Mob => self.mob.add(found.bytes),
            Place::Nowhere => self.missing += 1,
        }
        self.changed += u64::from(found.is_changed);
    }

    fn print(&self, out: &mut dyn Write, options: SnapshotOptions) -> Result<(), Error> {
        let Totals { table, archive, mob, .. } = self;
        let (files, bytes) =
            (table.files + archive.files + mob.files, table.bytes + archive.bytes + mob.bytes);
        let shown = |bytes| size(bytes, options.bytes);
        // HBase computes with 32 bits, and shows NaN if there are no bytes.
        let share = |part: u64| decimal(f64::from(part as f32 / bytes as f32 * 100.0), 2);
        writeln!(
            out,
            "{files} HFiles ({} in archive, {} in mob storage), total size {} ({}% {} shared with the source table, \
             {}% {} in mob dir)",
            archive.files,
            mob.files,
            shown(bytes),
            share(table.bytes),
            shown(table.bytes),
            share(mob.bytes),
            shown(mob.bytes)
        )?;
        Ok(writeln!(out, "0 Logs, total size {}\n", shown(0))?)
    }
}
