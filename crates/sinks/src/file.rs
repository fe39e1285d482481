//! Records as lines of a file, as Hadoop's `FileSink` writes them.
//!
//! A file that another program moved away or removed is made anew at the next period; one that cannot be written is
//! tried again then, and gets nothing of this one. A line that broke off, since the disk was full, is ended before the
//! next begins.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use crate::push::{Look, Medium};
use crate::record::{Part, Records, put_number};

/// Bytes that are written at once, about.
const CHUNK_LEN: usize = 64 << 10;

/// A file that lines are put behind one another in.
pub trait LineFile: Write + Send {
    /// Whether it is still the one at its path.
    fn is_in_place(&self) -> bool;
}

/// Where files of lines are, for a thread that may wait.
pub trait Files: Send + Sync + 'static {
    /// Opens the file at `path` to write behind what is there; makes it if there is none.
    ///
    /// # Errors
    /// The system's.
    fn append_to(&self, path: &std::path::Path) -> io::Result<Box<dyn LineFile>>;
}

/// The sink.
pub(crate) struct FileSink {
    path: PathBuf,
    files: Arc<dyn Files>,
    open: Option<Box<dyn LineFile>>,
    // The last line has no end.
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

    fn told(&self, error: &io::Error) -> String {
        format!("{}: {error}", self.path.display())
    }
}

impl Medium for FileSink {
    fn push(&mut self, look: &Look<'_>) -> Result<(), String> {
        let mut file = self.open().map_err(|error| self.told(&error))?;
        if std::mem::take(&mut self.is_broken) {
            // If this fails as well, so does all that follows.
            let _ = file.write_all(b"\n");
        }
        let mut lines =
            Lines { at_ms: look.at_ms, file: &mut *file, text: Vec::with_capacity(CHUNK_LEN), failed: None };
        look.records(&mut lines);
        lines.write();
        match lines.failed {
            None => {
                self.open = Some(file);
                Ok(())
            }
            // Opened anew next time: it may have been of a disk that is gone.
            Some(error) => {
                self.is_broken = true;
                Err(self.told(&error))
            }
        }
    }
}

/// Records on their way into the file.
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
        // Threads that serve clients should not wait for all that is left.
        std::thread::yield_now();
    }
}

impl Records for Lines<'_> {
    fn put(&mut self, part: Part<'_>) {
        let Part { head, metrics, is_first, is_last } = part;
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
    out.write_fmt(text).expect("memory takes what is written");
}

/// A line stays one, whatever somebody called his table.
fn put_in_line(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().map(|byte| if byte < b' ' { b'_' } else { byte }));
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::Path;
    use std::sync::Mutex;

    use super::*;
    use crate::testing::{look, registry};

    /// Files by path, which others can take away and whose disk can be full.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<State>>);

    #[derive(Default)]
    struct State {
        files: HashMap<PathBuf, (u64, Vec<u8>)>,
        made: u64,
        opened: u64,
        room: Option<usize>,
    }

    struct Open(Disk, PathBuf, u64);

    impl Files for Disk {
        fn append_to(&self, path: &Path) -> io::Result<Box<dyn LineFile>> {
            let mut state = self.0.lock().unwrap();
            if path.starts_with("/absent") {
                return Err(io::ErrorKind::NotFound.into());
            }
            state.opened += 1;
            state.made += 1;
            let made = state.made;
            let id = state.files.entry(path.to_owned()).or_insert((made, vec![])).0;
            Ok(Box::new(Open(self.clone(), path.to_owned(), id)))
        }
    }

    impl Write for Open {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut state = self.0.0.lock().unwrap();
            let room = state.room.unwrap_or(usize::MAX).min(bytes.len());
            if room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            state.room = state.room.map(|left| left - room);
            if let Some((id, text)) = state.files.get_mut(&self.1)
                && *id == self.2
            {
                text.extend_from_slice(&bytes[..room]);
            }
            Ok(room)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl LineFile for Open {
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
        sink.push(&look(&registry, 1700)).unwrap();
        registry.counted.calls.add(4);
        sink.push(&look(&registry, 2700)).unwrap();
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
    async fn a_file_that_was_rotated_is_made_anew() {
        let (disk, registry) = (Disk::default(), registry());
        let mut sink = FileSink::new("/m".into(), Arc::new(disk.clone()));
        sink.push(&look(&registry, 1)).unwrap();
        let moved = disk.0.lock().unwrap().files.remove(Path::new("/m")).unwrap();
        disk.0.lock().unwrap().files.insert("/m.1".into(), moved);
        sink.push(&look(&registry, 2)).unwrap();
        assert!(disk.text("/m").starts_with("2 ") && disk.text("/m.1").starts_with("1 "));
        assert_eq!(disk.text("/m").lines().count() + disk.text("/m.1").lines().count(), 2);
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_tried_again() {
        let (disk, registry) = (Disk::default(), registry());
        let mut sink = FileSink::new("/m".into(), Arc::new(disk.clone()));
        disk.0.lock().unwrap().room = Some(20);
        let error = sink.push(&look(&registry, 1)).unwrap_err();
        assert!(error.starts_with("/m: "), "{error}");
        disk.0.lock().unwrap().room = None;
        sink.push(&look(&registry, 2)).unwrap();
        let text = disk.text("/m");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "the broken line is ended: {text}");
        assert!(lines[1].starts_with("2 regionserver.Server: "));
        let mut absent = FileSink::new("/absent/m".into(), Arc::new(disk));
        assert!(absent.push(&look(&registry, 1)).is_err());
    }
}
