//! One log from front to back.
//!
//! A log ends where its trailer is, at the end of the file, or where a dead server's last group was torn. In our own
//! logs each entry is checked, and an end that is not an orderly one is accepted only if nothing behind it, and
//! nothing that the caller knows, says that more was durable. In HBase's plain logs an entry that goes on beyond the
//! end of the file is the end, as it is to HBase; anything else that is no entry is damage.

use fs::{FilePath, FileSystem};

use crate::compressed::Dictionaries;
use crate::entry::{self, Entry, Fault, Found, HEAD_BYTES};
use crate::header::{self, Form, HEADER_LEN_MAX, Previous, Start};
use crate::mark::{END_MARK, TRAILER_TAIL_LEN, is_cut_trailer, is_trailer, search, trailer_len};
use crate::window::Window;
use crate::{Error, Result};

/// Bytes read at a time: as many as a local disk answers at once from the page cache, and as stay in the processor's
/// own cache until they are checked.
pub(crate) const PIECE_BYTES: usize = 256 << 10;
/// How often the bytes of a log are read again at most, to find an entry after damage.
const RESUME_READS: u64 = 4;
/// Longest trailer looked for; HBase's has eight bytes.
const TRAILER_LEN_MAX: u64 = 1024;

/// How a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was closed.
    Trailer,
    /// The file ends where an entry ends, or has no entry.
    EndOfFile,
    /// The end mark of a file with reserved zeros.
    EndMark,
    /// What was written last was not written wholly; nothing of it was acknowledged.
    Torn(&'static str),
}

/// Where and how a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Behind the last entry.
    pub end: u64,
    /// What is there.
    pub ending: Ending,
}

/// Reads the entries of one log in order.
pub struct LogReader {
    walk: Walk,
    dictionaries: Option<Dictionaries>,
    tail: Option<Tail>,
}

impl LogReader {
    /// Opens a log and reads its header.
    ///
    /// # Errors
    /// [`Error::Damaged`] at offset 0 if it has no sound header though entries may follow, [`Error::Unsupported`].
    pub async fn open(fs: &dyn FileSystem, path: &FilePath) -> Result<LogReader> {
        let walk = Walk::open(fs, path, PIECE_BYTES).await?;
        let dictionaries = match walk.form {
            Some(Form::Dictionary { tags, values }) => Some(Dictionaries::new(path, tags, values)),
            _ => None,
        };
        Ok(LogReader { walk, dictionaries, tail: None })
    }

    /// The log.
    pub fn path(&self) -> &FilePath {
        self.walk.window.path()
    }

    /// Where the next entry begins, if there is one.
    pub fn offset(&self) -> u64 {
        self.walk.at
    }

    /// The next entry; `None` at the end, which [`LogReader::tail`] then describes.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the offset of an entry that should be there. The reader stays where it is.
    pub async fn next(&mut self) -> Result<Option<Entry>> {
        if self.tail.is_some() {
            return Ok(None);
        }
        let entry = match &mut self.dictionaries {
            Some(dictionaries) => self.walk.next_compressed(dictionaries).await?,
            None => match self.walk.next().await? {
                Step::End(tail) => Err(tail),
                Step::Found(found) => Ok(self.walk.load(&found).await?),
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

    /// Where and how the log ends, once [`LogReader::next`] gave `None`.
    pub fn tail(&self) -> Option<Tail> {
        self.tail
    }
}

/// A step over a log.
pub(crate) enum Step {
    Found(Found),
    End(Tail),
}

/// Goes over a log entry by entry, checking each, and judges its end.
pub(crate) struct Walk {
    pub(crate) window: Window,
    // None: a header that was never finished, so no entries.
    pub(crate) form: Option<Form>,
    // Where the next entry begins.
    at: u64,
    // Entries end before it.
    stop: u64,
    // All below was durable once, by what was read so far or what the caller knows.
    durable: u64,
}

impl Walk {
    pub(crate) async fn open(fs: &dyn FileSystem, path: &FilePath, piece_bytes: usize) -> Result<Walk> {
        let mut window = Window::new(fs.open(path).await?, piece_bytes);
        let file_len = window.len();
        let head_len = file_len.min(HEADER_LEN_MAX as u64) as usize;
        window.fill_ahead(0, head_len, head_len).await?;
        let (form, at) = match header::decode(window.held(0), file_len) {
            Start::Header { form, len } => (Some(form), len),
            Start::Torn => (None, 0),
            Start::Damaged(what) => return Err(Error::Damaged { file: path.clone(), offset: 0, what }),
            Start::Unsupported(what) => return Err(Error::Unsupported { file: path.clone(), what }),
        };
        let mut walk = Walk { window, form, at, stop: file_len, durable: 0 };
        if !matches!(walk.form, Some(Form::Checked { .. })) {
            walk.stop = walk.stop_before_trailer().await?;
        }
        Ok(walk)
    }

    /// What the log says about the one before it.
    pub(crate) fn previous(&self) -> Option<Previous> {
        match self.form {
            Some(Form::Checked { previous, .. }) if previous.number != 0 => Some(previous),
            _ => None,
        }
    }

    /// Takes note that all below `durable` was synced once.
    pub(crate) fn expect_durable(&mut self, durable: u64) {
        self.durable = self.durable.max(durable);
    }

    // HBase looks for the trailer first; entries end before it.
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
    pub(crate) async fn next(&mut self) -> Result<Step> {
        let Some(form) = self.form else { return self.end(Ending::EndOfFile).await };
        if self.at >= self.stop {
            return self.end_at_stop().await;
        }
        match entry::find(&mut self.window, self.at, &form).await {
            Ok(found) if found.end > self.stop => Err(self.damaged("an entry reaches into the trailer")),
            Ok(found) => {
                self.durable = self.durable.max(found.durable.unwrap_or(0));
                self.at = found.end;
                Ok(Step::Found(found))
            }
            Err(Fault::Fs(error)) => Err(error.into()),
            Err(fault) => self.no_entry(form, fault).await,
        }
    }

    async fn next_compressed(
        &mut self,
        dictionaries: &mut Dictionaries,
    ) -> Result<std::result::Result<Entry, Tail>> {
        if self.at >= self.stop {
            return Ok(Err(self.stop_tail()));
        }
        match dictionaries.read(&mut self.window, self.at).await {
            Ok(entry) if entry.end > self.stop => Err(self.damaged("an entry reaches into the trailer")),
            Ok(entry) => {
                self.at = entry.end;
                Ok(Ok(entry))
            }
            Err(Fault::Fs(error)) => Err(error.into()),
            Err(fault) => match self.judge(fault).await? {
                Err(what) => Err(self.damaged(what)),
                Ok(ending) => Ok(Err(Tail { end: self.at, ending })),
            },
        }
    }

    /// Reads an entry that a step gave.
    pub(crate) async fn load(&mut self, found: &Found) -> Result<Entry> {
        match entry::load(&mut self.window, found).await {
            Ok(entry) => Ok(entry),
            Err(Fault::Fs(error)) => Err(error.into()),
            Err(Fault::Bad(what)) => Err(self.damaged_at(found.offset, what)),
            Err(Fault::Cut) => Err(self.damaged_at(found.offset, CUT)),
        }
    }

    /// Reads the entry that is known to begin at `offset`; `piece_bytes` are read if it is not in memory.
    pub(crate) async fn read_at(&mut self, offset: u64, piece_bytes: usize) -> Result<Entry> {
        let Some(form) = self.form else {
            return Err(self.damaged_at(offset, "the log has no entries any more"));
        };
        if offset >= self.window.len() {
            return Err(self.damaged_at(offset, "the log is shorter than before"));
        }
        let head = (self.window.len() - offset).min(HEAD_BYTES) as usize;
        self.window.fill_ahead(offset, head, piece_bytes).await?;
        match entry::find(&mut self.window, offset, &form).await {
            Ok(found) => self.load(&found).await,
            Err(Fault::Fs(error)) => Err(error.into()),
            Err(Fault::Bad(what)) => Err(self.damaged_at(offset, what)),
            Err(Fault::Cut) => Err(self.damaged_at(offset, CUT)),
        }
    }

    /// Sees to it that the key of an entry that was found is in memory.
    #[inline]
    pub(crate) async fn hold_key(&mut self, found: &Found) -> Result<()> {
        self.window.fill(found.key_at, found.key_len).await?;
        Ok(())
    }

    async fn no_entry(&mut self, form: Form, fault: Fault) -> Result<Step> {
        match (self.judge(fault).await?, form) {
            (Ok(ending), _) => self.end(ending).await,
            (Err(what), Form::Checked { .. }) => self.end(Ending::Torn(what)).await,
            (Err(what), _) => Err(self.damaged(what)),
        }
    }

    // What there is in place of an entry: an end, or bytes that are wrong.
    async fn judge(&mut self, fault: Fault) -> Result<std::result::Result<Ending, &'static str>> {
        let left = self.stop - self.at;
        let head = self.window.fill(self.at, left.min(TRAILER_LEN_MAX) as usize).await?;
        let whole = left < TRAILER_LEN_MAX;
        Ok(match fault {
            Fault::Fs(error) => return Err(error.into()),
            _ if whole && is_trailer(head) => Ok(Ending::Trailer),
            _ if head.starts_with(&END_MARK) => Ok(Ending::EndMark),
            _ if whole && is_cut_trailer(head) => Ok(Ending::Torn("the trailer is cut")),
            Fault::Cut => Ok(Ending::Torn(CUT)),
            Fault::Bad(what) => Err(what),
        })
    }

    fn stop_tail(&self) -> Tail {
        let ending = if self.stop < self.window.len() { Ending::Trailer } else { Ending::EndOfFile };
        Tail { end: self.at, ending }
    }

    async fn end_at_stop(&mut self) -> Result<Step> {
        self.end(self.stop_tail().ending).await
    }

    /// Where the next step looks for an entry.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Goes on at `at`, past bytes that are damaged.
    pub(crate) fn resume_at(&mut self, at: u64) {
        self.at = at;
    }

    /// The first offset after the damage at `damaged_at` where an entry of this log passes its check; `None` if there is
    /// none, or if the log's entries have no checks.
    ///
    /// An entry's checksum covers its offset and the log's random number, so nothing else is taken for one.
    pub(crate) async fn resume_after(&mut self, damaged_at: u64) -> Result<Option<u64>> {
        let Some(form @ Form::Checked { .. }) = self.form else { return Ok(None) };
        // Bytes that only look like entries cost no more than this, whatever a client stored.
        let mut budget = self.window.len().saturating_mul(RESUME_READS);
        let mut at = damaged_at + 1;
        while at < self.stop && budget > 0 {
            let len = (self.stop - at).min(PIECE_BYTES as u64) as usize;
            // Near the end of what is held, to be read once and not for each candidate.
            let wanted = len.min(HEAD_BYTES as usize);
            self.window.fill_ahead(at, wanted, len).await?;
            let held = self.window.held(at);
            let Some(skip) = entry::next_candidate(held) else {
                at += held.len().saturating_sub(entry::CANDIDATE_LEN - 1).max(1) as u64;
                continue;
            };
            at += skip as u64;
            let claimed = entry::claimed_end(&mut self.window, at).await?;
            match claimed.filter(|end| *end <= self.stop) {
                Some(end) => {
                    budget = budget.saturating_sub(end - at);
                    match entry::find(&mut self.window, at, &form).await {
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

    /// The region that the key of the damaged entry at `at` names, if the entry ends at `end`.
    pub(crate) async fn damaged_entry(&mut self, at: u64, end: u64) -> Result<Option<String>> {
        if entry::claimed_end(&mut self.window, at).await? != Some(end) {
            return Ok(None);
        }
        Ok(entry::claimed_region(&mut self.window, at).await?)
    }

    // Accepts the end, unless it is known that more than this was durable.
    async fn end(&mut self, ending: Ending) -> Result<Step> {
        if let Some(Form::Checked { salt, .. }) = self.form {
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
        Ok(Step::End(Tail { end: self.at, ending }))
    }

    fn damaged(&self, what: &'static str) -> Error {
        self.damaged_at(self.at, what)
    }

    fn damaged_at(&self, offset: u64, what: &'static str) -> Error {
        Error::Damaged { file: self.window.path().clone(), offset, what }
    }
}

const CUT: &str = "an entry goes on beyond the end of the file";
