//! All logs of a dead server in one pass that checks everything, and then each region's entries by themselves.
//!
//! [`scan`] holds one piece of one log at a time, and keeps for each region where its entries are: twelve bytes for
//! every run of entries that adjoin. A region that opens reads only its own ([`read_region`]).
//!
//! Entries before a region's close are left out: a region is closed when all its edits are in files.
//!
//! What scan has seen stays: each log is fenced first, so that bytes which were in the page cache only are on disk
//! before anyone acts on them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use fs::{FilePath, FileSystem};

use crate::entry::{Entry, Found};
use crate::header::Form;
use crate::log::{Fate, OldLog};
use crate::marker;
use crate::name::LogName;
use crate::reader::{Ending, LogReader, PIECE_BYTES, Step, Tail, Walk};
use crate::{Error, Result};

/// Bytes that are read at a time for one region, at most.
const REGION_PIECE_BYTES: u64 = PIECE_BYTES as u64 - SLACK_BYTES;
/// Bytes of others that are read along rather than asking the disk again: what a copy moves in the time of a call.
const GAP_BYTES_MAX: u64 = 32 << 10;
/// Read behind a run, so that finding its last entry asks for no more.
const SLACK_BYTES: u64 = 512;

/// What the logs hold, by region.
pub struct LogIndex {
    logs: Vec<IndexedLog>,
    regions: HashMap<Arc<str>, IndexedRegion>,
    damages: Vec<Damage>,
}

/// A part of a log that was durable once and cannot be read.
#[derive(Clone, Debug)]
pub struct Damage {
    /// The log.
    pub file: FilePath,
    /// Where the part begins.
    pub offset: u64,
    /// Where the log can be read again; `None`: nowhere.
    pub resumed_at: Option<u64>,
    /// What was found.
    pub what: &'static str,
    /// The region of the only entry in it, if it is no more than one.
    pub only: Option<Arc<str>>,
    // Of regions with entries: the highest sequence id before, and the lowest one after that is higher.
    before: HashMap<Arc<str>, u64>,
    after: HashMap<Arc<str>, u64>,
}

/// Edits of a region that may have been in a damaged part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Their sequence ids are higher than this one.
    pub above: u64,
    /// And lower than this one, if any.
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
    /// Which edits of a region may have been in the part, where its files hold all up to `flushed`; `None`: none.
    ///
    /// Sequence ids of a region have no gaps in its logs, so the entries around the part say what is missing.
    pub fn loss_of(&self, region: &str, flushed: u64) -> Option<Loss> {
        if self.only.as_ref().is_some_and(|only| **only != *region) {
            return None;
        }
        let above = self.before.get(region).copied().unwrap_or(0).max(flushed);
        let below = self.after.get(region).copied();
        // One id is between them at least.
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

/// One log that was scanned.
#[derive(Clone, Debug)]
pub struct IndexedLog {
    /// Where it is.
    pub path: FilePath,
    /// Where and how it ends.
    pub tail: Tail,
    /// The regions that have entries in it other than markers, with the highest sequence id of each.
    pub highest: HashMap<Arc<str>, u64>,
    form: Option<Form>,
}

/// One region's entries in the logs.
#[derive(Clone, Debug, Default)]
pub struct IndexedRegion {
    /// The table, as the first entry names it.
    pub table: bytes::Bytes,
    /// The lowest sequence id.
    pub lowest_seq_id: u64,
    /// The highest sequence id.
    pub highest_seq_id: u64,
    /// Entries, those before a close too; an entry that was appended again to the next log counts twice.
    pub entries: u64,
    /// Bytes of the entries.
    pub bytes: u64,
    /// The sequence id of its last close, 0 if none: all edits up to that one are in files.
    pub closed_at: u64,
    runs: Vec<Run>,
}

/// Entries of one region that adjoin.
#[derive(Clone, Copy, Debug)]
struct Run {
    log: u32,
    start: u32,
    len: u32,
}

/// Length of a run that means: the whole log, which has dictionaries.
const WHOLE_LOG: u32 = u32::MAX;

impl LogIndex {
    /// The regions that have entries, with what they have.
    pub fn regions(&self) -> impl Iterator<Item = (&Arc<str>, &IndexedRegion)> {
        self.regions.iter()
    }

    /// What one region has.
    pub fn region(&self, encoded_name: &str) -> Option<&IndexedRegion> {
        self.regions.get(encoded_name)
    }

    /// The logs in the order in which they were scanned.
    pub fn logs(&self) -> &[IndexedLog] {
        &self.logs
    }

    /// The parts of logs that cannot be read; none after [`scan`].
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// For [`crate::Log::adopt`].
    pub fn old_logs(&self) -> Vec<OldLog> {
        let old = |log: &IndexedLog| OldLog {
            path: log.path.clone(),
            bytes: log.tail.end,
            highest: log.highest.clone(),
            fate: Fate::Archive,
        };
        self.logs.iter().map(old).collect()
    }
}

/// The logs in a directory, in the order in which they were written; names that are not logs' are left out.
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

/// Goes over the logs, which are given in the order in which they were written.
///
/// # Errors
/// [`Error::Damaged`] for the first entry that was durable and is not sound: nothing should be replayed then.
pub async fn scan(fs: &dyn FileSystem, paths: &[FilePath]) -> Result<LogIndex> {
    scan_with(fs, paths, Builder::default()).await
}

/// As [`scan`], but goes on past damage: what can be read before and after it is indexed, and what cannot is in
/// [`LogIndex::damages`].
///
/// # Errors
/// What the file system reports, and [`Error::Unsupported`].
pub async fn scan_past_damage(fs: &dyn FileSystem, paths: &[FilePath]) -> Result<LogIndex> {
    scan_with(fs, paths, Builder { goes_on: true, ..Builder::default() }).await
}

async fn scan_with(fs: &dyn FileSystem, paths: &[FilePath], mut builder: Builder) -> Result<LogIndex> {
    let claims = successors_claims(fs, paths, builder.goes_on).await?;
    for path in paths {
        let mut walk = match Walk::open(fs, path, PIECE_BYTES).await {
            Err(Error::Damaged { offset, what, .. }) if builder.goes_on => {
                builder.damaged_header(path, offset, what);
                continue;
            }
            walk => walk?,
        };
        if let Some(durable) = claims.get(path) {
            walk.expect_durable(*durable);
        }
        builder.scan_log(fs, path, walk).await?;
    }
    Ok(builder.finish())
}

// A log's header says how much of the log before it was durable. Fences all logs on the way.
async fn successors_claims(
    fs: &dyn FileSystem,
    paths: &[FilePath],
    goes_on: bool,
) -> Result<HashMap<FilePath, u64>> {
    let mut claims = HashMap::new();
    for path in paths {
        fs.fence(path).await?;
        let walk = match Walk::open(fs, path, PIECE_BYTES).await {
            Err(Error::Damaged { .. }) if goes_on => continue,
            walk => walk?,
        };
        if let (Some(previous), Some(name)) = (walk.previous(), LogName::of(path)) {
            let before = LogName { number: previous.number, ..name };
            let claim = claims.entry(path.parent().join(&before.to_string())).or_insert(0);
            *claim = previous.durable.max(*claim);
        }
    }
    Ok(claims)
}

#[derive(Default)]
struct Builder {
    logs: Vec<IndexedLog>,
    // By order of first appearance; `ids` finds them.
    regions: Vec<(Arc<str>, IndexedRegion)>,
    ids: HashMap<Arc<str>, usize>,
    // Highest sequence id in the log being scanned, by region; 0: no entry.
    highest: Vec<u64>,
    // The region of the entry before: most often that of the next one.
    last: usize,
    // Whether damage is noted rather than the end of the scan.
    goes_on: bool,
    damages: Vec<Damage>,
    // For each of these and each region the highest sequence id before and the lowest one after; 0: none.
    around: Vec<(Vec<u64>, Vec<u64>)>,
}

/// Damaged parts of one log that are noted; a log with more is not read on.
const DAMAGES_MAX: usize = 64;

impl Builder {
    async fn scan_log(&mut self, fs: &dyn FileSystem, path: &FilePath, mut walk: Walk) -> Result<()> {
        self.highest.fill(0);
        if walk.window.len() >= u64::from(WHOLE_LOG) {
            return Err(Error::Unsupported { file: path.clone(), what: "it is longer than 4 GiB".into() });
        }
        let form = walk.form;
        let tail = match form {
            Some(Form::Dictionary { .. }) => self.scan_compressed(LogReader::open(fs, path).await?).await?,
            _ => self.scan_entries(path, &mut walk).await?,
        };
        let named = self.regions.iter().zip(&self.highest).filter(|(_, highest)| **highest != 0);
        let highest = named.map(|((name, _), highest)| (name.clone(), *highest)).collect();
        self.logs.push(IndexedLog { path: path.clone(), tail, highest, form });
        Ok(())
    }

    async fn scan_entries(&mut self, path: &FilePath, walk: &mut Walk) -> Result<Tail> {
        let noted_before = self.damages.len();
        loop {
            match self.scan_entry(walk).await {
                Ok(None) => {}
                Ok(Some(tail)) => return Ok(tail),
                Err(Error::Damaged { offset, what, .. }) if self.goes_on => {
                    let is_long = self.damages.len() - noted_before >= DAMAGES_MAX;
                    let resumed_at = match walk.at() > offset {
                        // The entry passed its check, and is of no use all the same.
                        true => Some(walk.at()),
                        false if is_long => None,
                        false => walk.resume_after(offset).await?,
                    };
                    let only = match resumed_at {
                        Some(end) => walk.damaged_entry(offset, end).await?,
                        None => None,
                    };
                    self.note_damage(path, offset, what, resumed_at, only);
                    match resumed_at {
                        Some(at) => walk.resume_at(at),
                        None => return Ok(Tail { end: offset, ending: Ending::Torn(what) }),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn scan_entry(&mut self, walk: &mut Walk) -> Result<Option<Tail>> {
        match walk.next().await? {
            Step::Found(found) => {
                // A long entry was checked piece by piece, and its key may have left memory.
                walk.hold_key(&found).await?;
                self.take(walk, &found)?;
                Ok(None)
            }
            Step::End(tail) => Ok(Some(tail)),
        }
    }

    /// A log without a sound header: nothing in it can be read.
    fn damaged_header(&mut self, path: &FilePath, offset: u64, what: &'static str) {
        self.note_damage(path, offset, what, None, None);
        let tail = Tail { end: 0, ending: Ending::Torn(what) };
        self.logs.push(IndexedLog { path: path.clone(), tail, highest: HashMap::new(), form: None });
    }

    fn note_damage(
        &mut self,
        path: &FilePath,
        offset: u64,
        what: &'static str,
        resumed_at: Option<u64>,
        only: Option<String>,
    ) {
        let only = only.map(Into::into);
        let (before, after) = (HashMap::new(), HashMap::new());
        self.damages.push(Damage { file: path.clone(), offset, resumed_at, what, only, before, after });
        let before = self.regions.iter().map(|(_, region)| region.highest_seq_id).collect();
        self.around.push((before, Vec::new()));
    }

    fn finish(mut self) -> LogIndex {
        for (damage, (before, after)) in self.damages.iter_mut().zip(&self.around) {
            let of = |ids: &[u64]| {
                let named = self.regions.iter().zip(ids).filter(|(_, seq_id)| **seq_id != 0);
                named.map(|((name, _), seq_id)| (name.clone(), *seq_id)).collect()
            };
            (damage.before, damage.after) = (of(before), of(after));
            // A flipped bit in the name of a region: then it may be any.
            let is_known = |name: &Arc<str>| self.ids.contains_key(name);
            damage.only = damage.only.take().filter(is_known);
        }
        LogIndex { logs: self.logs, regions: self.regions.into_iter().collect(), damages: self.damages }
    }

    fn take(&mut self, walk: &Walk, found: &Found) -> Result<()> {
        let outline = &found.outline;
        let region = &walk.window.held(found.key_at)[outline.region_at..][..outline.region_len];
        let id = if self.is_last(region) { self.last } else { self.id_of(walk, found, region)? };
        let (start, len) = (found.offset as u32, (found.end - found.offset) as u32);
        let cells = walk.window.held(found.cells_at);
        let (is_marker, is_close) = (marker::is_marker(cells), marker::is_close(cells));
        self.count(id, outline.seq_id, u64::from(len), is_marker);
        if is_close {
            // All before it is in files, or was: a family may be gone since, or the region's files be those of a
            // snapshot now. Replayed, such edits would come back.
            self.regions[id].1.runs.clear();
            self.regions[id].1.closed_at = outline.seq_id;
        }
        let log = self.logs.len() as u32;
        match self.regions[id].1.runs.last_mut() {
            Some(run) if run.log == log && run.start + run.len == start => run.len += len,
            _ => self.regions[id].1.runs.push(Run { log, start, len }),
        }
        Ok(())
    }

    async fn scan_compressed(&mut self, mut reader: LogReader) -> Result<Tail> {
        let log = self.logs.len() as u32;
        loop {
            let next = reader.next().await.and_then(|entry| {
                let Some(entry) = entry else { return Ok(None) };
                let is_text = std::str::from_utf8(&entry.key.region).is_ok();
                let (file, offset, what) = (reader.path().clone(), entry.offset, REGION_NO_TEXT);
                if is_text { Ok(Some(entry)) } else { Err(Error::Damaged { file, offset, what }) }
            });
            let entry = match next {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                // Dictionaries lack what could not be read: nothing after it can be.
                Err(Error::Damaged { offset, what, .. }) if self.goes_on => {
                    self.note_damage(&reader.path().clone(), offset, what, None, None);
                    return Ok(Tail { end: offset, ending: Ending::Torn(what) });
                }
                Err(error) => return Err(error),
            };
            let region = std::str::from_utf8(&entry.key.region).expect("looked at above");
            let id = self.id_of_name(region, || entry.key.table.clone());
            self.count(id, entry.key.seq_id, entry.end - entry.offset, marker::is_marker(&entry.cells));
            let runs = &mut self.regions[id].1.runs;
            if runs.last().is_none_or(|run| run.log != log) {
                runs.push(Run { log, start: 0, len: WHOLE_LOG });
            }
        }
        Ok(reader.tail().expect("the end was met"))
    }

    fn is_last(&self, region: &[u8]) -> bool {
        self.regions.get(self.last).is_some_and(|(name, _)| name.as_bytes() == region)
    }

    fn id_of(&mut self, walk: &Walk, found: &Found, region: &[u8]) -> Result<usize> {
        let damaged = |what| Error::Damaged { file: walk.window.path().clone(), offset: found.offset, what };
        let region = std::str::from_utf8(region).map_err(|_| damaged(REGION_NO_TEXT))?;
        let key = walk.window.slice(found.key_at, found.key_len);
        let table = || {
            let key = crate::key::Key::read(&key).unwrap_or_default();
            bytes::Bytes::copy_from_slice(&key.table)
        };
        Ok(self.id_of_name(region, table))
    }

    fn id_of_name(&mut self, region: &str, table: impl FnOnce() -> bytes::Bytes) -> usize {
        self.last = match self.ids.get(region) {
            Some(id) => *id,
            None => {
                let name: Arc<str> = region.into();
                self.ids.insert(name.clone(), self.regions.len());
                self.regions.push((name, IndexedRegion { table: table(), ..IndexedRegion::default() }));
                self.highest.push(0);
                self.regions.len() - 1
            }
        };
        self.last
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
        for (before, after) in &mut self.around {
            after.resize(after.len().max(id + 1), 0);
            if after[id] == 0 && before.get(id).is_none_or(|before| seq_id > *before) {
                after[id] = seq_id;
            }
        }
    }
}

const REGION_NO_TEXT: &str = "a region's name is no text";

/// The entries of one region, in the order of the log.
///
/// An edit whose sync failed once was appended again to the next log, and so may be met twice, with one sequence id
/// and the same cells.
pub fn read_region(fs: Arc<dyn FileSystem>, index: Arc<LogIndex>, encoded_name: &str) -> RegionReader {
    let runs = index.regions.get(encoded_name).map_or_else(Vec::new, |region| region.runs.clone());
    let region = encoded_name.into();
    RegionReader { fs, index, region, runs, next: 0, at: 0, highest: 0, open: Open::Nothing }
}

/// Reads the entries of one region.
///
/// A log that was archived meanwhile is passed over if it holds nothing but markers beyond what was read: markers keep
/// no log from being archived, and a log that only regions with edits in it need may go before this region is read.
pub struct RegionReader {
    fs: Arc<dyn FileSystem>,
    index: Arc<LogIndex>,
    region: Arc<str>,
    runs: Vec<Run>,
    // The run being read, and where in the log its next entry begins; 0: the run was not begun.
    next: usize,
    at: u64,
    // The highest sequence id that was read.
    highest: u64,
    open: Open,
}

enum Open {
    Nothing,
    // A log that can be read at any entry.
    Random { log: u32, walk: Box<Walk> },
    // A log that must be read from the front.
    Sequential { log: u32, reader: Box<LogReader> },
}

impl RegionReader {
    /// The next entry of the region.
    ///
    /// # Errors
    /// [`Error::Damaged`] if an entry that scan found sound is not any more.
    pub async fn next(&mut self) -> Result<Option<Entry>> {
        while let Some(run) = self.runs.get(self.next).copied() {
            let entry = match run.len {
                WHOLE_LOG => self.next_of_whole(run).await,
                _ => self.next_of_run(run).await,
            };
            let entry = match entry {
                Err(Error::Fs(fs::Error::NotFound { .. })) if self.needs_nothing_of(run.log) => None,
                other => other?,
            };
            match entry {
                Some(entry) => {
                    self.highest = self.highest.max(entry.key.seq_id);
                    return Ok(Some(entry));
                }
                None => {
                    self.next += 1;
                    self.at = 0;
                }
            }
        }
        self.open = Open::Nothing;
        Ok(None)
    }

    fn needs_nothing_of(&self, log: u32) -> bool {
        let edits = self.index.logs[log as usize].highest.get(&self.region);
        edits.is_none_or(|highest| *highest <= self.highest)
    }

    async fn next_of_run(&mut self, run: Run) -> Result<Option<Entry>> {
        let (start, end) = (u64::from(run.start), u64::from(run.start) + u64::from(run.len));
        let at = self.at.max(start);
        if at >= end {
            return Ok(None);
        }
        let piece = self.piece_from(at);
        let walk = self.walk_of(run.log).await?;
        let entry = walk.read_at(at, piece).await?;
        if entry.key.region != self.region.as_bytes() {
            let file = self.index.logs[run.log as usize].path.clone();
            return Err(Error::Damaged { file, offset: at, what: "an entry is another one than before" });
        }
        self.at = entry.end;
        Ok(Some(entry))
    }

    // How much to read from `at` on, if it must be read: this run and those that follow closely.
    fn piece_from(&self, at: u64) -> usize {
        let log = self.runs[self.next].log;
        let mut end = at;
        for run in &self.runs[self.next..] {
            let start = u64::from(run.start);
            if run.log != log || start > end + GAP_BYTES_MAX || end - at >= REGION_PIECE_BYTES {
                break;
            }
            end = start + u64::from(run.len);
        }
        ((end - at).min(REGION_PIECE_BYTES) + SLACK_BYTES) as usize
    }

    async fn walk_of(&mut self, wanted: u32) -> Result<&mut Walk> {
        if !matches!(&self.open, Open::Random { log, .. } if *log == wanted) {
            let indexed = &self.index.logs[wanted as usize];
            let walk = Walk::open(&*self.fs, &indexed.path, SLACK_BYTES as usize).await?;
            if walk.form != indexed.form {
                let what = "the header is another one than before";
                return Err(Error::Damaged { file: indexed.path.clone(), offset: 0, what });
            }
            self.open = Open::Random { log: wanted, walk: Box::new(walk) };
        }
        match &mut self.open {
            Open::Random { walk, .. } => Ok(walk),
            _ => unreachable!("it was just opened"),
        }
    }

    async fn next_of_whole(&mut self, run: Run) -> Result<Option<Entry>> {
        if !matches!(&self.open, Open::Sequential { log, .. } if *log == run.log) {
            let path = &self.index.logs[run.log as usize].path;
            let reader = Box::new(LogReader::open(&*self.fs, path).await?);
            self.open = Open::Sequential { log: run.log, reader };
        }
        let Open::Sequential { reader, .. } = &mut self.open else { unreachable!("it was just opened") };
        // Where scan stopped, at the end or at damage.
        let end = self.index.logs[run.log as usize].tail.end;
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
