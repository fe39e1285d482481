//! Writes records as lines of a file, as Hadoop's `FileSink` does.
//!
//! If another program moved or removed the file, it is recreated in the next period. A failed write
//! drops the rest of its period's records; the file is reopened in the next period. A line that was
//! truncated because the disk was full is terminated before the next line.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use crate::push::{Push, Transport};
use crate::record::{RecordPart, Records, put_number};

/// Approximate size in bytes of one write.
const CHUNK_LEN: usize = 64 << 10;

/// A file to which lines are appended.
pub trait LineFile: Write + Send {
    /// Whether the file is still the one at its path.
    fn is_in_place(&self) -> bool;
}

/// Opens files of lines, on a thread that may block.
pub trait Files: Send + Sync + 'static {
    /// Opens the file at `path` for appending; creates it if it does not exist.
    ///
    /// # Errors
    /// The operating system's.
    fn append_to(&self, path: &std::path::Path) -> io::Result<Box<dyn LineFile>>;
}

/// The sink.
pub(crate) struct FileSink {
    path: PathBuf,
    files: Arc<dyn Files>,
    open: Option<Box<dyn LineFile>>,
    // Whether the last line is truncated.
    is_broken: bool,
}

impl FileSink {
    pub(crate) fn new(path: PathBuf, files: Arc<dyn Files>) -> FileSink {
        FileSink { path, files, open: None, is_broken: false }
    }

    fn open(&mut self) -> io::Result<Box<dyn LineFile>> {
        match self.open.take().filter(|file| file.is_in_place()) {
            Some(file) => Ok(file),
            None => self.files.append_to(&self.path),
        }
    }

    fn message(&self, error: &io::Error) -> String {
        format!("{}: {error}", self.path.display())
    }
}

impl Transport for FileSink {
    fn push(&mut self, push: &Push<'_>) -> Result<(), String> {
        let mut file = self.open().map_err(|error| self.message(&error))?;
        if std::mem::take(&mut self.is_broken) {
            // If this fails, the following writes fail too.
            let _ = file.write_all(b"\n");
        }
        let mut lines =
            Lines { at_ms: push.at_ms, file: &mut *file, text: Vec::with_capacity(CHUNK_LEN), failed: None };
        push.records(&mut lines);
        lines.write();
        match lines.failed {
            None => {
                self.open = Some(file);
                Ok(())
            }
            // Not kept open: it may have been on a disk that is gone.
            Some(error) => {
                self.is_broken = true;
                Err(self.message(&error))
            }
        }
    }
}

/// Appends records to the file.
struct Lines<'a> {
    at_ms: u64,
    file: &'a mut dyn LineFile,
    text: Vec<u8>,
    failed: Option<io::Error>,
}

impl Lines<'_> {
    fn write(&mut self) {
        if self.failed.is_none() {
            self.failed = self.file.write_all(&self.text).err();
        }
        self.text.clear();
        // Threads that serve clients should not wait until all records are written.
        std::thread::yield_now();
    }
}

impl Records for Lines<'_> {
    fn put(&mut self, part: RecordPart<'_>) {
        let RecordPart { head, metrics, is_first, is_last } = part;
        let mut separator = ", ";
        if is_first {
            put(&mut self.text, format_args!("{} {}.{}", self.at_ms, head.context, head.record));
            separator = ": ";
            for (name, text) in &head.tags {
                self.text.extend_from_slice(separator.as_bytes());
                put_in_line(&mut self.text, name);
                self.text.push(b'=');
                put_in_line(&mut self.text, text);
                separator = ", ";
            }
        }
        for (name, _, value) in metrics.iter() {
            self.text.extend_from_slice(separator.as_bytes());
            put_in_line(&mut self.text, name);
            self.text.push(b'=');
            put_number(&mut self.text, value);
            separator = ", ";
        }
        if is_last {
            self.text.push(b'\n');
        }
        if self.text.len() >= CHUNK_LEN {
            self.write();
        }
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory cannot fail");
}

/// Escapes control characters, so that a table name cannot split a line.
fn put_in_line(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().map(|byte| if byte < b' ' { b'_' } else { byte }));
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::Path;
    use std::sync::Mutex;

    use super::*;
    use crate::testing::{registry, test_push};

    /// Files by path. They can be moved away, and the disk can be full.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<State>>);

    #[derive(Default)]
    struct State {
        files: HashMap<PathBuf, (u64, Vec<u8>)>,
        created: u64,
        opened: u64,
        space_left: Option<usize>,
    }

    struct OpenFile(Disk, PathBuf, u64);

    impl Files for Disk {
        fn append_to(&self, path: &Path) -> io::Result<Box<dyn LineFile>> {
            let mut state = self.0.lock().unwrap();
            if path.starts_with("/absent") {
                return Err(io::ErrorKind::NotFound.into());
            }
            state.opened += 1;
            state.created += 1;
            let created = state.created;
            let id = state.files.entry(path.to_owned()).or_insert((created, vec![])).0;
            Ok(Box::new(OpenFile(self.clone(), path.to_owned(), id)))
        }
    }

    impl Write for OpenFile {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut state = self.0.0.lock().unwrap();
            let space_left = state.space_left.unwrap_or(usize::MAX).min(bytes.len());
            if space_left == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            state.space_left = state.space_left.map(|left| left - space_left);
            if let Some((id, text)) = state.files.get_mut(&self.1)
                && *id == self.2
            {
                text.extend_from_slice(&bytes[..space_left]);
            }
            Ok(space_left)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl LineFile for OpenFile {
        fn is_in_place(&self) -> bool {
            self.0.0.lock().unwrap().files.get(&self.1).is_some_and(|(id, _)| *id == self.2)
        }
    }

    impl Disk {
        fn text(&self, path: &str) -> String {
            let state = self.0.lock().unwrap();
            state
                .files
                .get(Path::new(path))
                .map_or(String::new(), |(_, text)| String::from_utf8(text.clone()).unwrap())
        }
    }

    #[tokio::test]
    async fn a_record_is_a_line() {
        let (disk, registry) = (Disk::default(), registry());
        let mut sink = FileSink::new("/m".into(), Arc::new(disk.clone()));
        registry.counted.calls.add(3);
        sink.push(&test_push(&registry, 1700)).unwrap();
        registry.counted.calls.add(4);
        sink.push(&test_push(&registry, 2700)).unwrap();
        let line = |at: u64, calls: u64| {
            format!(
                "{at} regionserver.Server: serverName=h,1,2, Context=regionserver, Hostname=host, load=-1.5, \
                 calls={calls}\n"
            )
        };
        assert_eq!(disk.text("/m"), line(1700, 3) + &line(2700, 7));
        assert_eq!(disk.0.lock().unwrap().opened, 1, "it stays open");
    }

    #[tokio::test]
    async fn a_rotated_file_is_recreated() {
        let (disk, registry) = (Disk::default(), registry());
        let mut sink = FileSink::new("/m".into(), Arc::new(disk.clone()));
        sink.push(&test_push(&registry, 1)).unwrap();
        let moved = disk.0.lock().unwrap().files.remove(Path::new("/m")).unwrap();
        disk.0.lock().unwrap().files.insert("/m.1".into(), moved);
        sink.push(&test_push(&registry, 2)).unwrap();
        assert!(disk.text("/m").starts_with("2 ") && disk.text("/m.1").starts_with("1 "));
        assert_eq!(disk.text("/m").lines().count() + disk.text("/m.1").lines().count(), 2);
    }

    #[tokio::test]
    async fn failed_writes_are_retried() {
        let (disk, registry) = (Disk::default(), registry());
        let mut sink = FileSink::new("/m".into(), Arc::new(disk.clone()));
        disk.0.lock().unwrap().space_left = Some(20);
        let error = sink.push(&test_push(&registry, 1)).unwrap_err();
        assert!(error.starts_with("/m: "), "{error}");
        disk.0.lock().unwrap().space_left = None;
        sink.push(&test_push(&registry, 2)).unwrap();
        let text = disk.text("/m");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "the truncated line is terminated: {text}");
        assert!(lines[1].starts_with("2 regionserver.Server: "));
        let mut absent = FileSink::new("/absent/m".into(), Arc::new(disk));
        assert!(absent.push(&test_push(&registry, 1)).is_err());
    }
}
