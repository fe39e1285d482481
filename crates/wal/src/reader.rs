//! Reads one log from start to end.
//!
//! A log ends at its trailer, at the end mark, at the end of the file, or where the last group of a
//! killed server is incomplete. In our own logs each entry has a checksum. An end is an error if a
//! mark after it, or the caller, states that later bytes were durable. In HBase's plain logs an
//! entry that extends beyond the end of the file is the end of the log, as in HBase. Any other
//! invalid entry is damage.

use std::sync::Arc;

use fs::{FilePath, FileReader, FileSystem};

use crate::compressed::Dictionaries;
use crate::entry::{self, Entry, EntryLocation, Fault, HEAD_BYTES};
use crate::header::{self, DecodedHeader, HEADER_LEN_MAX, LogFormat, Previous};
use crate::mark::{END_MARK, TRAILER_TAIL_LEN, is_trailer, is_truncated_trailer, search, trailer_len};
use crate::window::Window;
use crate::{Error, Result};

/// Bytes read at a time for single entries, and to search in a log.
pub(crate) const PIECE_BYTES: usize = 256 << 10;
/// Limit on the bytes that are reread to find an entry after damage, as a multiple of the log's
/// length.
const RESUME_READS: u64 = 4;
/// Longest trailer that is recognized; HBase's has eight bytes.
const TRAILER_LEN_MAX: u64 = 1024;

/// How a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A trailer: the log was closed.
    Trailer,
    /// The end of the file, after an entry or without any entry.
    EndOfFile,
    /// The end mark of a file with reserved zeros.
    EndMark,
    /// The last write is incomplete; none of it was acknowledged.
    Torn(&'static str),
}

/// Where and how a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Offset after the last entry.
    pub end: u64,
    /// How the log ends there.
    pub ending: Ending,
}

/// Reads the entries of one log in order.
pub struct LogReader {
    scanner: EntryScanner,
    dictionaries: Option<Dictionaries>,
    tail: Option<Tail>,
}

impl LogReader {
    /// Opens a log and reads its header.
    ///
    /// # Errors
    /// [`Error::Damaged`] at offset 0 if it has no valid header although entries may follow,
    /// [`Error::Unsupported`].
    pub async fn open(fs: &dyn FileSystem, path: &FilePath) -> Result<LogReader> {
        let scanner = EntryScanner::open(fs, path).await?;
        let dictionaries = match scanner.format {
            Some(LogFormat::Dictionary { tags, values }) => Some(Dictionaries::new(path, tags, values)),
            _ => None,
        };
        Ok(LogReader { scanner, dictionaries, tail: None })
    }

    /// The log.
    pub fn path(&self) -> &FilePath {
        self.scanner.window.path()
    }

    /// Offset of the next entry, if there is one.
    pub fn offset(&self) -> u64 {
        self.scanner.at
    }

    /// Reads no byte from `end` on, where an earlier scan ended.
    pub(crate) fn cut(&mut self, end: u64) {
        self.scanner.window.cut(end);
    }

    /// The next entry; `None` at the end, which [`LogReader::tail`] then describes.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the offset of an entry that should be there. The reader does not
    /// advance.
    pub async fn next(&mut self) -> Result<Option<Entry>> {
        if self.tail.is_some() {
            return Ok(None);
        }
        let entry = match &mut self.dictionaries {
            Some(dictionaries) => self.scanner.next_compressed(dictionaries).await?,
            None => match self.scanner.next().await? {
                ScanStep::End(tail) => Err(tail),
                ScanStep::Entry(location) => Ok(self.scanner.load(&location).await?),
            },
        };
        match entry {
            Ok(entry) => Ok(Some(entry)),
            Err(tail) => {
                self.tail = Some(tail);
                Ok(None)
            }
        }
    }

    /// Where and how the log ends, once [`LogReader::next`] returned `None`.
    pub fn tail(&self) -> Option<Tail> {
        self.tail
    }
}

/// The result of one step over a log.
pub(crate) enum ScanStep {
    Entry(EntryLocation),
    End(Tail),
}

/// Iterates over a log's entries, checks each, and validates the log's end.
pub(crate) struct EntryScanner {
    pub(crate) window: Window,
    // `None`: the header was never completed, so there are no entries.
    pub(crate) format: Option<LogFormat>,
    // Offset of the next entry.
    at: u64,
    // No entry extends beyond this offset.
    stop: u64,
    // All bytes before this offset were durable, according to the log or the caller.
    durable: u64,
    // Why HBase's trailer could not be read. Then the end of the log is an error.
    unread_trailer: Option<Error>,
}

impl EntryScanner {
    /// Opens a log that is read in order.
    pub(crate) async fn open(fs: &dyn FileSystem, path: &FilePath) -> Result<EntryScanner> {
        let file = fs.open(path).await?;
        let piece_bytes = file.sequential_read_bytes();
        EntryScanner::begin(file, piece_bytes).await
    }

    /// Begins to read an open log, `piece_bytes` at a time.
    pub(crate) async fn begin(file: Arc<dyn FileReader>, piece_bytes: usize) -> Result<EntryScanner> {
        let mut window = Window::new(file, piece_bytes);
        let file_len = window.len();
        let head_len = file_len.min(HEADER_LEN_MAX as u64) as usize;
        window.fill_ahead(0, head_len, head_len).await?;
        let (format, at) = match header::decode(window.loaded(0), file_len) {
            DecodedHeader::Header { format, len } => (Some(format), len),
            DecodedHeader::Torn => (None, 0),
            DecodedHeader::Damaged(what) => {
                return Err(Error::Damaged { file: window.path().clone(), offset: 0, what });
            }
            DecodedHeader::Unsupported(what) => {
                return Err(Error::Unsupported { file: window.path().clone(), what });
            }
        };
        let mut scanner =
            EntryScanner { window, format, at, stop: file_len, durable: 0, unread_trailer: None };
        if !matches!(scanner.format, Some(LogFormat::Checked { .. })) {
            match scanner.stop_before_trailer().await {
                Ok(stop) => scanner.stop = stop,
                // The last block of the file may be lost, and the entries in the others are not.
                Err(error) => scanner.unread_trailer = Some(error),
            }
        }
        Ok(scanner)
    }

    /// What the log's header states about the previous log.
    pub(crate) fn previous(&self) -> Option<Previous> {
        match self.format {
            Some(LogFormat::Checked { previous, .. }) if previous.number != 0 => Some(previous),
            _ => None,
        }
    }

    /// Records that all bytes before offset `durable` were synced.
    pub(crate) fn expect_durable(&mut self, durable: u64) {
        self.durable = self.durable.max(durable);
    }

    // The offset of HBase's trailer, which HBase reads first; the end of the file if it has none.
    async fn stop_before_trailer(&mut self) -> Result<u64> {
        let len = self.window.len();
        if len < self.at + TRAILER_TAIL_LEN as u64 {
            return Ok(len);
        }
        let at = len - TRAILER_TAIL_LEN as u64;
        let last = self.window.fill(at, TRAILER_TAIL_LEN).await?;
        let stop =
            trailer_len(last).filter(|trailer| *trailer <= TRAILER_LEN_MAX && self.at + trailer <= len);
        Ok(stop.map_or(len, |trailer| len - trailer))
    }

    /// The next entry, checked, or the end.
    pub(crate) async fn next(&mut self) -> Result<ScanStep> {
        let Some(format) = self.format else { return self.end(Ending::EndOfFile).await };
        if self.at >= self.stop {
            return self.end_at_stop().await;
        }
        match entry::find(&mut self.window, self.at, &format).await {
            Ok(location) if location.end > self.stop => {
                Err(self.damaged("an entry extends into the trailer"))
            }
            Ok(location) => {
                debug_assert!(location.end > self.at, "an entry has bytes, so that the walk advances");
                self.durable = self.durable.max(location.durable.unwrap_or(0));
                self.at = location.end;
                Ok(ScanStep::Entry(location))
            }
            Err(Fault::Fs(error)) => Err(error.into()),
            Err(fault) => self.no_entry(format, fault).await,
        }
    }

    async fn next_compressed(
        &mut self,
        dictionaries: &mut Dictionaries,
    ) -> Result<std::result::Result<Entry, Tail>> {
        if self.at >= self.stop {
            self.check_trailer()?;
            return Ok(Err(self.stop_tail()));
        }
        match dictionaries.read(&mut self.window, self.at).await {
            Ok(entry) if entry.end > self.stop => Err(self.damaged("an entry extends into the trailer")),
            Ok(entry) => {
                self.at = entry.end;
                Ok(Ok(entry))
            }
            Err(Fault::Fs(error)) => Err(error.into()),
            Err(fault) => match self.classify_end(fault).await? {
                Err(what) => Err(self.damaged(what)),
                Ok(ending) => {
                    self.check_trailer()?;
                    Ok(Err(Tail { end: self.at, ending }))
                }
            },
        }
    }

    /// Reads all of an entry that [`next`](Self::next) located.
    pub(crate) async fn load(&mut self, location: &EntryLocation) -> Result<Entry> {
        match entry::load(&mut self.window, location).await {
            Ok(entry) => Ok(entry),
            Err(Fault::Fs(error)) => Err(error.into()),
            Err(Fault::Invalid(what)) => Err(self.damaged_at(location.offset, what)),
            Err(Fault::Truncated) => Err(self.damaged_at(location.offset, TRUNCATED)),
        }
    }

    /// Reads the entry that is known to begin at `offset`. If it is not in memory, reads
    /// `piece_bytes` bytes from there.
    pub(crate) async fn read_at(&mut self, offset: u64, piece_bytes: usize) -> Result<Entry> {
        let Some(format) = self.format else {
            return Err(self.damaged_at(offset, "the log no longer has entries"));
        };
        if offset >= self.window.len() {
            return Err(self.damaged_at(offset, "the log is shorter than when it was scanned"));
        }
        let head = (self.window.len() - offset).min(HEAD_BYTES) as usize;
        self.window.fill_ahead(offset, head, piece_bytes).await?;
        match entry::find(&mut self.window, offset, &format).await {
            Ok(location) => self.load(&location).await,
            Err(Fault::Fs(error)) => Err(error.into()),
            Err(Fault::Invalid(what)) => Err(self.damaged_at(offset, what)),
            Err(Fault::Truncated) => Err(self.damaged_at(offset, TRUNCATED)),
        }
    }

    /// Ensures that the key of a located entry is in memory.
    #[inline]
    pub(crate) async fn load_key(&mut self, location: &EntryLocation) -> Result<()> {
        self.window.fill(location.key_at, location.key_len).await?;
        Ok(())
    }

    async fn no_entry(&mut self, format: LogFormat, fault: Fault) -> Result<ScanStep> {
        match (self.classify_end(fault).await?, format) {
            (Ok(ending), _) => self.end(ending).await,
            (Err(what), LogFormat::Checked { .. }) => self.end(Ending::Torn(what)).await,
            (Err(what), _) => Err(self.damaged(what)),
        }
    }

    // Classifies the bytes in place of an entry: an end, or invalid bytes.
    async fn classify_end(&mut self, fault: Fault) -> Result<std::result::Result<Ending, &'static str>> {
        let left = self.stop - self.at;
        let head = self.window.fill(self.at, left.min(TRAILER_LEN_MAX) as usize).await?;
        let whole = left < TRAILER_LEN_MAX;
        Ok(match fault {
            Fault::Fs(error) => return Err(error.into()),
            _ if whole && is_trailer(head) => Ok(Ending::Trailer),
            _ if head.starts_with(&END_MARK) => Ok(Ending::EndMark),
            _ if whole && is_truncated_trailer(head) => Ok(Ending::Torn("the trailer is truncated")),
            Fault::Truncated => Ok(Ending::Torn(TRUNCATED)),
            Fault::Invalid(what) => Err(what),
        })
    }

    fn stop_tail(&self) -> Tail {
        let ending = if self.stop < self.window.len() { Ending::Trailer } else { Ending::EndOfFile };
        Tail { end: self.at, ending }
    }

    async fn end_at_stop(&mut self) -> Result<ScanStep> {
        self.end(self.stop_tail().ending).await
    }

    /// Offset at which the next step expects an entry.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Continues at `at`, after damaged bytes.
    pub(crate) fn resume_at(&mut self, at: u64) {
        debug_assert!(at >= self.at, "a walk does not go back");
        self.at = at;
    }

    /// The first offset after the damage at `damaged_at` where an entry of this log passes its
    /// check. `None` if there is none, or if the log's entries have no checksums.
    ///
    /// An entry's checksum covers its offset and the log's salt, so no other bytes pass.
    pub(crate) async fn resume_after(&mut self, damaged_at: u64) -> Result<Option<u64>> {
        let Some(format @ LogFormat::Checked { .. }) = self.format else { return Ok(None) };
        // Limits the cost of values that look like entries, because clients can store any bytes.
        let mut budget = self.window.len().saturating_mul(RESUME_READS);
        let mut at = damaged_at + 1;
        while at < self.stop && budget > 0 {
            let len = (self.stop - at).min(PIECE_BYTES as u64) as usize;
            // Refills only near the end of the bytes in memory, not for each candidate.
            let wanted = len.min(HEAD_BYTES as usize);
            self.window.fill_ahead(at, wanted, len).await?;
            let loaded = self.window.loaded(at);
            let Some(skip) = entry::next_candidate(loaded) else {
                at += loaded.len().saturating_sub(entry::CANDIDATE_LEN - 1).max(1) as u64;
                continue;
            };
            at += skip as u64;
            let claimed = entry::claimed_end(&mut self.window, at).await?;
            match claimed.filter(|end| *end <= self.stop) {
                Some(end) => {
                    budget = budget.saturating_sub(end - at);
                    match entry::find(&mut self.window, at, &format).await {
                        Ok(_) => return Ok(Some(at)),
                        Err(Fault::Fs(error)) => return Err(error.into()),
                        Err(_) => at += 1,
                    }
                }
                None => at += 1,
            }
        }
        Ok(None)
    }

    /// The region named by the key of the damaged entry at `at`, if that key states that the entry
    /// ends at `end`.
    pub(crate) async fn region_of_damaged_entry(&mut self, at: u64, end: u64) -> Result<Option<String>> {
        if entry::claimed_end(&mut self.window, at).await? != Some(end) {
            return Ok(None);
        }
        Ok(entry::claimed_region(&mut self.window, at).await?)
    }

    // Accepts the end, unless later bytes are known to have been durable.
    async fn end(&mut self, ending: Ending) -> Result<ScanStep> {
        self.check_trailer()?;
        if let Some(LogFormat::Checked { salt, .. }) = self.format {
            let stated = search(&mut self.window, salt, self.at).await?;
            self.expect_durable(stated);
        }
        if self.durable > self.at {
            let what = match ending {
                Ending::Torn(what) => what,
                Ending::Trailer | Ending::EndOfFile | Ending::EndMark => "entries are missing",
            };
            return Err(self.damaged(what));
        }
        Ok(ScanStep::End(Tail { end: self.at, ending }))
    }

    // Fails if the trailer, without which no end is certain, could not be read.
    fn check_trailer(&self) -> Result<()> {
        self.unread_trailer.clone().map_or(Ok(()), Err)
    }

    fn damaged(&self, what: &'static str) -> Error {
        self.damaged_at(self.at, what)
    }

    fn damaged_at(&self, offset: u64, what: &'static str) -> Error {
        Error::Damaged { file: self.window.path().clone(), offset, what }
    }
}

const TRUNCATED: &str = "an entry goes on beyond the end of the file";
