//! Scans and checks all logs of a dead server in one pass, then reads each region's entries
//! separately.
//!
//! [`scan`] holds one piece of one log in memory at a time. For each region it stores where the
//! region's entries are: twelve bytes for each range of adjacent entries. A region that opens reads
//! only its own entries ([`read_region`]).
//!
//! The index omits the entries that precede a region's close: a region is closed only when all its
//! edits are in store files.
//!
//! Each log is fenced before the scan. Bytes that were only in the page cache become durable, so
//! that a power loss cannot remove bytes that the scan has read.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::{fmt, mem};

use fs::{FilePath, FileSystem};
use tracing::warn;

use crate::entry::{Entry, EntryLocation};
use crate::header::LogFormat;
use crate::marker;
use crate::name::LogName;
use crate::reader::{Ending, EntryScanner, LogReader, PIECE_BYTES, ScanStep, Tail};
use crate::retention::{OldLog, OldLogAction};
use crate::{Error, Result};

/// Maximum bytes read at a time for one region.
const REGION_PIECE_BYTES: u64 = PIECE_BYTES as u64 - SLACK_BYTES;
/// Maximum gap in bytes between two ranges that are read with one call. Copying this many bytes of
/// other regions takes about as long as a second call.
const GAP_BYTES_MAX: u64 = 32 << 10;
/// Bytes read after a range, so that locating its last entry needs no further read.
const SLACK_BYTES: u64 = 512;

/// The content of the logs, by region.
pub struct LogIndex {
    logs: Vec<IndexedLog>,
    regions: HashMap<Arc<str>, IndexedRegion>,
    damaged_parts: Vec<Damage>,
}

/// A part of a log that was durable and can no longer be read.
#[derive(Clone, Debug)]
pub struct Damage {
    /// The log.
    pub file: FilePath,
    /// Offset of the part.
    pub offset: u64,
    /// Offset after the part, where the log is readable again; `None` if it is not.
    pub resumed_at: Option<u64>,
    /// What is wrong.
    pub what: &'static str,
    /// If the part is a single entry: the region of this entry, if known.
    pub single_region: Option<Arc<str>>,
    // By region: the highest sequence id before the part.
    before: HashMap<Arc<str>, u64>,
    // By region: of the sequence ids after the part, the first that exceeds the id in `before`.
    after: HashMap<Arc<str>, u64>,
}

/// Edits of a region that may have been in a damaged part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Their sequence ids are greater than this one.
    pub above: u64,
    /// Their sequence ids are less than this one; `None`: no upper limit.
    pub below: Option<u64>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.below {
            Some(below) if below == self.above + 2 => write!(f, "sequence id {}", self.above + 1),
            Some(below) => write!(f, "sequence ids {} to {}", self.above + 1, below - 1),
            None => write!(f, "sequence ids from {} on", self.above + 1),
        }
    }
}

impl Damage {
    /// The edits of a region that may be lost: they may have been in the part, and are not in the
    /// region's store files, which hold all edits up to `flushed`. `None`: no edit is lost.
    ///
    /// In the logs, the sequence ids of a region have no gaps. So the entries around the part show
    /// which edits are missing.
    pub fn loss_of(&self, region: &str, flushed: u64) -> Option<Loss> {
        if self.single_region.as_ref().is_some_and(|single_region| **single_region != *region) {
            return None;
        }
        let above = self.before.get(region).copied().unwrap_or(0).max(flushed);
        let below = self.after.get(region).copied();
        // There is a loss if at least one sequence id lies between the two.
        below.is_none_or(|below| below > above + 1).then_some(Loss { above, below })
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "log {} is damaged at {}: {}", self.file, self.offset, self.what)?;
        match self.resumed_at {
            Some(at) => write!(f, "; {} bytes cannot be read", at - self.offset),
            None => write!(f, "; nothing after that can be read"),
        }
    }
}

/// One scanned log.
#[derive(Clone, Debug)]
pub struct IndexedLog {
    /// Its path.
    pub path: FilePath,
    /// Where and how it ends.
    pub tail: Tail,
    /// The highest sequence id of each region that has edits in it, without regions that a later
    /// close makes outdated. Markers ([`crate::marker`]) do not count as edits.
    pub highest: HashMap<Arc<str>, u64>,
    // The regions with edits in it that a later close makes outdated.
    outdated: HashSet<Arc<str>>,
    // The regions whose close it records.
    closed: HashSet<Arc<str>>,
    format: Option<LogFormat>,
}

/// One region's entries in the logs.
#[derive(Clone, Debug, Default)]
pub struct IndexedRegion {
    /// The table, as named by the first entry.
    pub table: bytes::Bytes,
    /// The lowest sequence id.
    pub lowest_seq_id: u64,
    /// The highest sequence id.
    pub highest_seq_id: u64,
    /// Number of entries, including those before a close. An entry whose sync failed was written to
    /// the next log too, and counts twice.
    pub entries: u64,
    /// Total size in bytes of the entries.
    pub bytes: u64,
    /// The sequence id of its last close; 0 if there was none. At the close, all earlier edits were
    /// in store files.
    pub closed_at: u64,
    ranges: Vec<EntryRange>,
    // The highest sequence id in `ranges`, without those of close markers: after a close, sequence
    // ids may restart at a lower number, because a snapshot was cloned under the same name.
    newest_in_ranges: u64,
    // The lowest sequence id in `ranges` of each log that has some.
    lowest_of_logs: Vec<(u32, u64)>,
    // Entries up to this sequence id are skipped when they are read. 0: none.
    skipped_to: u64,
}

impl IndexedRegion {
    /// Handles a close marker with this sequence id. Returns whether all entries before it are
    /// outdated.
    fn close(&mut self, seq_id: u64) -> bool {
        self.closed_at = seq_id;
        let is_last = self.newest_in_ranges < seq_id;
        if is_last {
            self.ranges.clear();
            self.lowest_of_logs.clear();
            self.newest_in_ranges = 0;
        } else {
            // The logs are of several servers, and their entries overlap in time: a log that was
            // created earlier can have entries that are newer than this close, if the region was
            // opened on the server of that log afterwards.
            self.skipped_to = self.skipped_to.max(seq_id);
        }
        is_last
    }

    /// Handles an entry that is in `ranges`.
    fn record_in_log(&mut self, log: u32, seq_id: u64) {
        match self.lowest_of_logs.last_mut() {
            Some((last, lowest)) if *last == log => *lowest = (*lowest).min(seq_id),
            _ => self.lowest_of_logs.push((log, seq_id)),
        }
    }
}

/// Adjacent entries of one region.
#[derive(Clone, Copy, Debug)]
struct EntryRange {
    log: u32,
    start: u32,
    len: u32,
}

/// The [`EntryRange::len`] of a range that is the whole log. A compressed log can only be read from
/// the start, because of its dictionaries.
const WHOLE_LOG: u32 = u32::MAX;

impl LogIndex {
    /// The regions that have entries, by encoded name.
    pub fn regions(&self) -> impl Iterator<Item = (&Arc<str>, &IndexedRegion)> {
        self.regions.iter()
    }

    /// The entries of one region.
    pub fn region(&self, encoded_name: &str) -> Option<&IndexedRegion> {
        self.regions.get(encoded_name)
    }

    /// The logs in the order in which they were scanned.
    pub fn logs(&self) -> &[IndexedLog] {
        &self.logs
    }

    /// The damaged parts that [`scan_past_damage`] found. Empty after [`scan`], which fails at the
    /// first damaged part.
    pub fn damaged_parts(&self) -> &[Damage] {
        &self.damaged_parts
    }

    /// The scanned logs, for [`crate::Log::adopt`].
    pub fn old_logs(&self) -> Vec<OldLog> {
        let old = |log: &IndexedLog| OldLog {
            path: log.path.clone(),
            bytes: log.tail.end,
            highest: log.highest.clone(),
            outdated: log.outdated.clone(),
            closed: log.closed.clone(),
            action: OldLogAction::Archive,
        };
        self.logs.iter().map(old).collect()
    }
}

/// The logs in a directory, in the order in which they were written. Files whose names are not
/// those of logs are omitted.
///
/// # Errors
/// As [`FileSystem::list`].
pub async fn logs_in(fs: &dyn FileSystem, dir: &FilePath) -> Result<Vec<FilePath>> {
    let mut names: Vec<(LogName, String)> = fs
        .list(dir)
        .await?
        .into_iter()
        .filter(|status| !status.is_dir)
        .filter_map(|status| Some((LogName::parse(&status.name)?, status.name)))
        .collect();
    names.sort_by(|(a, _), (b, _)| (a.number, a).cmp(&(b.number, b)));
    Ok(names.into_iter().map(|(_, name)| dir.join(&name)).collect())
}

/// Scans the logs, which must be in the order in which they were written.
///
/// # Errors
/// [`Error::Damaged`] for the first invalid entry that was durable. The caller must then replay no
/// log.
pub async fn scan(fs: &dyn FileSystem, paths: &[FilePath]) -> Result<LogIndex> {
    scan_with(fs, paths, IndexBuilder::default()).await
}

/// As [`scan`], but continues after damage: indexes the readable parts of the logs, and lists the
/// unreadable parts in [`LogIndex::damaged_parts`].
///
/// # Errors
/// Errors of the file system, and [`Error::Unsupported`].
pub async fn scan_past_damage(fs: &dyn FileSystem, paths: &[FilePath]) -> Result<LogIndex> {
    scan_with(fs, paths, IndexBuilder { skipped: Skipped::Damage, ..IndexBuilder::default() }).await
}

/// As [`scan_past_damage`], but a failed read is also damage: nothing after it in this log is
/// indexed. The file system has retried the read. All replicas of a block may be lost.
///
/// # Errors
/// Other errors of the file system, and [`Error::Unsupported`].
pub async fn scan_past_failed_reads(fs: &dyn FileSystem, paths: &[FilePath]) -> Result<LogIndex> {
    let skipped = Skipped::DamageAndFailedReads;
    scan_with(fs, paths, IndexBuilder { skipped, ..IndexBuilder::default() }).await
}

/// What a scan records as damage, instead of ending with an error.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Skipped {
    #[default]
    Nothing,
    Damage,
    DamageAndFailedReads,
}

impl Skipped {
    /// The offset and the description of the damage with which the scan continues. `at` is where
    /// the scan was.
    ///
    /// # Errors
    /// `error`, if it ends the scan.
    fn damage_of(self, error: Error, at: u64) -> Result<(u64, &'static str)> {
        match error {
            Error::Damaged { offset, what, .. } if self != Skipped::Nothing => Ok((offset, what)),
            Error::Fs(error @ fs::Error::Io { operation: "read", .. })
                if self == Skipped::DamageAndFailedReads =>
            {
                warn!(%error, "cannot read a log; the rest of it counts as damaged");
                Ok((at, "a read failed"))
            }
            error => Err(error),
        }
    }
}

async fn scan_with(fs: &dyn FileSystem, paths: &[FilePath], mut builder: IndexBuilder) -> Result<LogIndex> {
    let durable_ends = fence_and_find_durable_ends(fs, paths, builder.skipped).await?;
    for path in paths {
        let mut scanner = match EntryScanner::open(fs, path).await {
            Ok(scanner) => scanner,
            Err(error) => {
                let (offset, what) = builder.skipped.damage_of(error, 0)?;
                builder.record_damaged_header(path, offset, what);
                continue;
            }
        };
        if let Some(durable_end) = durable_ends.get(path) {
            scanner.expect_durable(*durable_end);
        }
        builder.scan_log(fs, path, scanner).await?;
    }
    Ok(builder.finish())
}

// Fences all logs. Returns the offset up to which each log was durable according to the header of
// the next log.
async fn fence_and_find_durable_ends(
    fs: &dyn FileSystem,
    paths: &[FilePath],
    skipped: Skipped,
) -> Result<HashMap<FilePath, u64>> {
    let mut durable_ends = HashMap::new();
    for path in paths {
        // The caller ensures that no process writes these logs. So only durability matters here.
        let _ = fs.fence(path).await?;
        let scanner = match EntryScanner::open(fs, path).await {
            Ok(scanner) => scanner,
            Err(error) => {
                skipped.damage_of(error, 0)?;
                continue;
            }
        };
        if let (Some(previous), Some(name)) = (scanner.previous(), LogName::of(path)) {
            let before = LogName { number: previous.number, ..name };
            let end = durable_ends.entry(path.parent().join(&before.to_string())).or_insert(0);
            *end = previous.durable.max(*end);
        }
    }
    Ok(durable_ends)
}

#[derive(Default)]
struct IndexBuilder {
    logs: Vec<IndexedLog>,
    // In the order in which the names appear. The id of a region is its index in this list.
    regions: Vec<(Arc<str>, IndexedRegion)>,
    ids: HashMap<Arc<str>, usize>,
    // By region id: the highest sequence id of an edit in the log being scanned; 0: no edit.
    highest: Vec<u64>,
    // Of the log being scanned, see `IndexedLog`.
    outdated: HashSet<Arc<str>>,
    closed: HashSet<Arc<str>>,
    // The region id of the previous entry. The next entry is usually of the same region.
    last_id: usize,
    skipped: Skipped,
    damaged_parts: Vec<Damage>,
    // For each damaged part, two lists by region id: the highest sequence id before the part, and
    // the first higher one after it. 0: none.
    seq_ids_around_damage: Vec<(Vec<u64>, Vec<u64>)>,
}

/// Limit of damaged parts in one log. Once it is reached, the scan does not search for the next
/// valid entry: the rest of the log counts as damaged.
const DAMAGED_PARTS_MAX: usize = 64;

impl IndexBuilder {
    async fn scan_log(
        &mut self,
        fs: &dyn FileSystem,
        path: &FilePath,
        mut scanner: EntryScanner,
    ) -> Result<()> {
        self.highest.fill(0);
        if scanner.window.len() >= u64::from(WHOLE_LOG) {
            return Err(Error::Unsupported { file: path.clone(), what: "it is longer than 4 GiB".into() });
        }
        let format = scanner.format;
        let scanned = match format {
            Some(LogFormat::Dictionary { .. }) => self.scan_compressed(fs, path).await,
            _ => self.scan_entries(path, &mut scanner).await,
        };
        let tail = match scanned {
            Ok(tail) => tail,
            Err(error) => self.end_at_damage(path, error, scanner.at())?,
        };
        let named = self.regions.iter().zip(&self.highest).filter(|(_, highest)| **highest != 0);
        let highest = named.map(|((name, _), highest)| (name.clone(), *highest)).collect();
        let (outdated, closed) = (mem::take(&mut self.outdated), mem::take(&mut self.closed));
        self.logs.push(IndexedLog { path: path.clone(), tail, highest, outdated, closed, format });
        Ok(())
    }

    /// Ends the scan of a log with an error at `at`, if the scan of the other logs continues.
    fn end_at_damage(&mut self, path: &FilePath, error: Error, at: u64) -> Result<Tail> {
        let (offset, what) = self.skipped.damage_of(error, at)?;
        self.record_damage(path, offset, what, None, None);
        Ok(Tail { end: offset, ending: Ending::Torn(what) })
    }

    async fn scan_entries(&mut self, path: &FilePath, scanner: &mut EntryScanner) -> Result<Tail> {
        let parts_before = self.damaged_parts.len();
        loop {
            match self.scan_entry(scanner).await {
                Ok(None) => {}
                Ok(Some(tail)) => return Ok(tail),
                Err(Error::Damaged { offset, what, .. }) if self.skipped != Skipped::Nothing => {
                    let is_limit_reached = self.damaged_parts.len() - parts_before >= DAMAGED_PARTS_MAX;
                    let resumed_at = match scanner.at() > offset {
                        // The checksum of the entry is correct but its content is invalid: only
                        // this entry is skipped.
                        true => Some(scanner.at()),
                        false if is_limit_reached => None,
                        false => scanner.resume_after(offset).await?,
                    };
                    let single_region = match resumed_at {
                        Some(end) => scanner.region_of_damaged_entry(offset, end).await?,
                        None => None,
                    };
                    self.record_damage(path, offset, what, resumed_at, single_region);
                    match resumed_at {
                        Some(at) => scanner.resume_at(at),
                        None => return Ok(Tail { end: offset, ending: Ending::Torn(what) }),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn scan_entry(&mut self, scanner: &mut EntryScanner) -> Result<Option<Tail>> {
        match scanner.next().await? {
            ScanStep::Entry(location) => {
                // Without a checksum, damage shows only in the cells, which a replay would refuse.
                if self.skipped != Skipped::Nothing && scanner.format == Some(LogFormat::Plain) {
                    scanner.load(&location).await?;
                }
                // A long entry was checked in pieces, so its key may no longer be in memory.
                scanner.load_key(&location).await?;
                self.add_entry(scanner, &location)?;
                Ok(None)
            }
            ScanStep::End(tail) => Ok(Some(tail)),
        }
    }

    /// Records a log without a valid header: nothing in it can be read.
    fn record_damaged_header(&mut self, path: &FilePath, offset: u64, what: &'static str) {
        self.record_damage(path, offset, what, None, None);
        let tail = Tail { end: 0, ending: Ending::Torn(what) };
        let (highest, outdated, closed) = Default::default();
        self.logs.push(IndexedLog { path: path.clone(), tail, highest, outdated, closed, format: None });
    }

    fn record_damage(
        &mut self,
        path: &FilePath,
        offset: u64,
        what: &'static str,
        resumed_at: Option<u64>,
        single_region: Option<String>,
    ) {
        let single_region = single_region.map(Into::into);
        let (before, after) = (HashMap::new(), HashMap::new());
        self.damaged_parts.push(Damage {
            file: path.clone(),
            offset,
            resumed_at,
            what,
            single_region,
            before,
            after,
        });
        let before = self.regions.iter().map(|(_, region)| region.highest_seq_id).collect();
        self.seq_ids_around_damage.push((before, Vec::new()));
    }

    fn finish(mut self) -> LogIndex {
        assert!(
            self.damaged_parts.len() == self.seq_ids_around_damage.len(),
            "the sequence ids around each damaged part are known"
        );
        for (damage, (before, after)) in self.damaged_parts.iter_mut().zip(&self.seq_ids_around_damage) {
            let by_name = |seq_ids: &[u64]| {
                let named = self.regions.iter().zip(seq_ids).filter(|(_, seq_id)| **seq_id != 0);
                named.map(|((name, _), seq_id)| (name.clone(), *seq_id)).collect()
            };
            (damage.before, damage.after) = (by_name(before), by_name(after));
            // The region name in a damaged entry may be damaged too. If no valid entry has this
            // name, the damaged entry may belong to any region.
            let is_known = |name: &Arc<str>| self.ids.contains_key(name);
            damage.single_region = damage.single_region.take().filter(is_known);
        }
        LogIndex {
            logs: self.logs,
            regions: self.regions.into_iter().collect(),
            damaged_parts: self.damaged_parts,
        }
    }

    fn add_entry(&mut self, scanner: &EntryScanner, location: &EntryLocation) -> Result<()> {
        let key_fields = &location.key_fields;
        let region = &scanner.window.loaded(location.key_at)[key_fields.region_at..][..key_fields.region_len];
        let id = if self.has_last_id(region) { self.last_id } else { self.id_of(scanner, location, region)? };
        let (start, len) = (location.offset as u32, (location.end - location.offset) as u32);
        let cells = scanner.window.loaded(location.cells_at);
        let (is_marker, is_close) = (marker::is_marker(cells), marker::is_close(cells));
        self.count(id, key_fields.seq_id, u64::from(len), is_marker);
        if is_close {
            // All earlier edits were in store files at the close. They are never replayed. Their
            // family may have been deleted since, or a snapshot restored: replay would bring back
            // deleted data.
            self.close(id, key_fields.seq_id);
        } else {
            let newest = &mut self.regions[id].1.newest_in_ranges;
            *newest = (*newest).max(key_fields.seq_id);
        }
        let log = self.logs.len() as u32;
        self.regions[id].1.record_in_log(log, key_fields.seq_id);
        debug_assert!(
            self.regions[id]
                .1
                .ranges
                .last()
                .is_none_or(|last| last.log < log || last.start + last.len <= start),
            "the entries of a region are scanned in the order of the logs"
        );
        match self.regions[id].1.ranges.last_mut() {
            Some(range) if range.log == log && range.start + range.len == start => range.len += len,
            _ => self.regions[id].1.ranges.push(EntryRange { log, start, len }),
        }
        Ok(())
    }

    fn close(&mut self, id: usize, seq_id: u64) {
        let (name, region) = &mut self.regions[id];
        self.closed.insert(name.clone());
        if !region.close(seq_id) {
            return;
        }
        if mem::take(&mut self.highest[id]) > 0 {
            self.outdated.insert(name.clone());
        }
        for log in self.logs.iter_mut().filter(|log| log.highest.contains_key(name)) {
            log.highest.remove(name);
            log.outdated.insert(name.clone());
        }
    }

    async fn scan_compressed(&mut self, fs: &dyn FileSystem, path: &FilePath) -> Result<Tail> {
        let mut reader = LogReader::open(fs, path).await?;
        let log = self.logs.len() as u32;
        loop {
            let next = reader.next().await.and_then(|entry| {
                let Some(entry) = entry else { return Ok(None) };
                let is_utf8 = std::str::from_utf8(&entry.key.region).is_ok();
                let (file, offset, what) = (reader.path().clone(), entry.offset, REGION_NOT_UTF8);
                if is_utf8 { Ok(Some(entry)) } else { Err(Error::Damaged { file, offset, what }) }
            });
            let entry = match next {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                // The dictionaries lack the items of this entry, so no later entry can be read.
                Err(error) => return self.end_at_damage(path, error, reader.offset()),
            };
            let region = std::str::from_utf8(&entry.key.region).expect("checked above");
            let id = self.id_of_name(region, || entry.key.table.clone());
            self.count(id, entry.key.seq_id, entry.end - entry.offset, marker::is_marker(&entry.cells));
            self.regions[id].1.record_in_log(log, entry.key.seq_id);
            let ranges = &mut self.regions[id].1.ranges;
            if ranges.last().is_none_or(|range| range.log != log) {
                ranges.push(EntryRange { log, start: 0, len: WHOLE_LOG });
            }
        }
        Ok(reader.tail().expect("the reader reached the end"))
    }

    fn has_last_id(&self, region: &[u8]) -> bool {
        self.regions.get(self.last_id).is_some_and(|(name, _)| name.as_bytes() == region)
    }

    fn id_of(&mut self, scanner: &EntryScanner, location: &EntryLocation, region: &[u8]) -> Result<usize> {
        let damaged =
            |what| Error::Damaged { file: scanner.window.path().clone(), offset: location.offset, what };
        let region = std::str::from_utf8(region).map_err(|_| damaged(REGION_NOT_UTF8))?;
        let key = scanner.window.slice(location.key_at, location.key_len);
        let table = || {
            let key = crate::key::Key::read(&key).unwrap_or_default();
            bytes::Bytes::copy_from_slice(&key.table)
        };
        Ok(self.id_of_name(region, table))
    }

    fn id_of_name(&mut self, region: &str, table: impl FnOnce() -> bytes::Bytes) -> usize {
        self.last_id = match self.ids.get(region) {
            Some(id) => *id,
            None => {
                let name: Arc<str> = region.into();
                self.ids.insert(name.clone(), self.regions.len());
                self.regions.push((name, IndexedRegion { table: table(), ..IndexedRegion::default() }));
                self.highest.push(0);
                self.regions.len() - 1
            }
        };
        self.last_id
    }

    fn count(&mut self, id: usize, seq_id: u64, bytes: u64, is_marker: bool) {
        let region = &mut self.regions[id].1;
        region.lowest_seq_id = if region.entries == 0 { seq_id } else { region.lowest_seq_id.min(seq_id) };
        region.highest_seq_id = region.highest_seq_id.max(seq_id);
        region.entries += 1;
        region.bytes += bytes;
        if !is_marker {
            self.highest[id] = self.highest[id].max(seq_id);
        }
        for (before, after) in &mut self.seq_ids_around_damage {
            after.resize(after.len().max(id + 1), 0);
            if after[id] == 0 && before.get(id).is_none_or(|before| seq_id > *before) {
                after[id] = seq_id;
            }
        }
    }
}

const REGION_NOT_UTF8: &str = "a region name is not UTF-8";

/// Reads the entries of one region, in the order of the logs.
///
/// An edit whose sync failed was written to the next log too. So an edit may occur twice, with the
/// same sequence id and cells.
pub fn read_region(fs: Arc<dyn FileSystem>, index: Arc<LogIndex>, encoded_name: &str) -> RegionReader {
    let indexed = index.regions.get(encoded_name).cloned().unwrap_or_default();
    RegionReader {
        fs,
        index,
        region: encoded_name.into(),
        ranges: indexed.ranges,
        lowest_of_logs: indexed.lowest_of_logs,
        skipped_to: indexed.skipped_to,
        current: 0,
        next_at: 0,
        has_begun: false,
        highest: 0,
        open: OpenLog::Nothing,
    }
}

/// Reads the entries of one region.
///
/// A missing log is skipped if the region has no unread edits in it: a log with only markers of the
/// region ([`crate::marker`]) may be archived before the region reads it.
pub struct RegionReader {
    fs: Arc<dyn FileSystem>,
    index: Arc<LogIndex>,
    region: Arc<str>,
    ranges: Vec<EntryRange>,
    lowest_of_logs: Vec<(u32, u64)>,
    // Entries up to this sequence id are skipped.
    skipped_to: u64,
    // Whether the first entry was requested.
    has_begun: bool,
    // Index of the range being read.
    current: usize,
    // Offset of the next entry; 0: that of the range's first entry.
    next_at: u64,
    // The highest sequence id read.
    highest: u64,
    open: OpenLog,
}

enum OpenLog {
    Nothing,
    // A log that can be read from any entry on.
    Random { log: u32, scanner: Box<EntryScanner> },
    // A log that must be read from the start.
    Sequential { log: u32, reader: Box<LogReader> },
}

impl RegionReader {
    /// The next entry of the region.
    ///
    /// # Errors
    /// [`Error::Damaged`] if an entry that the scan found valid is no longer valid.
    pub async fn next(&mut self) -> Result<Option<Entry>> {
        self.has_begun = true;
        while let Some(range) = self.ranges.get(self.current).copied() {
            let entry = match range.len {
                WHOLE_LOG => self.next_of_whole_log(range).await,
                _ => self.next_of_range(range).await,
            };
            let entry = match entry {
                Err(Error::Fs(fs::Error::NotFound { .. })) if self.is_log_unneeded(range.log) => None,
                other => other?,
            };
            match entry {
                Some(entry) if entry.key.seq_id <= self.skipped_to => {}
                Some(entry) => {
                    self.highest = self.highest.max(entry.key.seq_id);
                    return Ok(Some(entry));
                }
                None => {
                    self.current += 1;
                    self.next_at = 0;
                }
            }
        }
        self.open = OpenLog::Nothing;
        Ok(None)
    }

    /// A lower limit of the sequence ids in the logs that are not begun yet; `None` if there are
    /// none. Within a log, sequence ids ascend.
    ///
    /// If the logs are of several servers, a later log can have lower sequence ids than earlier
    /// ones.
    pub fn lowest_in_later_logs(&self) -> Option<u64> {
        let begun = self.ranges.get(self.current).map(|range| range.log).filter(|_| self.has_begun);
        let is_later = |log: u32| match begun {
            Some(begun) => log > begun,
            // Nothing was read, or everything.
            None => !self.has_begun,
        };
        let later = self.lowest_of_logs.iter().filter(|(log, _)| is_later(*log));
        later.map(|(_, lowest)| (*lowest).max(self.skipped_to + 1)).min()
    }

    fn is_log_unneeded(&self, log: u32) -> bool {
        let edits = self.index.logs[log as usize].highest.get(&self.region);
        edits.is_none_or(|highest| *highest <= self.highest)
    }

    async fn next_of_range(&mut self, range: EntryRange) -> Result<Option<Entry>> {
        let (start, end) = (u64::from(range.start), u64::from(range.start) + u64::from(range.len));
        let at = self.next_at.max(start);
        if at >= end {
            return Ok(None);
        }
        let piece = self.piece_from(at);
        let scanner = self.scanner_of(range.log).await?;
        let entry = scanner.read_at(at, piece).await?;
        if entry.key.region != self.region.as_bytes() {
            let file = self.index.logs[range.log as usize].path.clone();
            return Err(Error::Damaged { file, offset: at, what: "the entry changed after the scan" });
        }
        self.next_at = entry.end;
        Ok(Some(entry))
    }

    // Number of bytes to read at `at` if they are not in memory: to the end of the current range,
    // or of later ranges that follow with small gaps.
    fn piece_from(&self, at: u64) -> usize {
        let log = self.ranges[self.current].log;
        let mut end = at;
        for range in &self.ranges[self.current..] {
            let start = u64::from(range.start);
            if range.log != log || start > end + GAP_BYTES_MAX || end - at >= REGION_PIECE_BYTES {
                break;
            }
            end = start + u64::from(range.len);
        }
        ((end - at).min(REGION_PIECE_BYTES) + SLACK_BYTES) as usize
    }

    async fn scanner_of(&mut self, wanted: u32) -> Result<&mut EntryScanner> {
        if !matches!(&self.open, OpenLog::Random { log, .. } if *log == wanted) {
            let indexed = &self.index.logs[wanted as usize];
            let file = self.fs.open(&indexed.path).await?;
            let mut scanner = EntryScanner::begin(file, SLACK_BYTES as usize).await?;
            if scanner.format != indexed.format {
                let what = "the header changed after the scan";
                return Err(Error::Damaged { file: indexed.path.clone(), offset: 0, what });
            }
            scanner.window.cut(indexed.tail.end);
            self.open = OpenLog::Random { log: wanted, scanner: Box::new(scanner) };
        }
        match &mut self.open {
            OpenLog::Random { scanner, .. } => Ok(scanner),
            _ => unreachable!("it was just opened"),
        }
    }

    async fn next_of_whole_log(&mut self, range: EntryRange) -> Result<Option<Entry>> {
        // Where the scan stopped: at the end of the log, or at damage.
        let end = self.index.logs[range.log as usize].tail.end;
        if !matches!(&self.open, OpenLog::Sequential { log, .. } if *log == range.log) {
            let path = &self.index.logs[range.log as usize].path;
            let mut reader = Box::new(LogReader::open(&*self.fs, path).await?);
            reader.cut(end);
            self.open = OpenLog::Sequential { log: range.log, reader };
        }
        let OpenLog::Sequential { reader, .. } = &mut self.open else { unreachable!("it was just opened") };
        while reader.offset() < end
            && let Some(entry) = reader.next().await?
        {
            if entry.key.region == self.region.as_bytes() {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}
