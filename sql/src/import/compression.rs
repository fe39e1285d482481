//! Compressed text files. They are decompressed as one stream, by the thread that finds the pieces.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

/// How a file of text is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, also of several members, as `cat a.gz b.gz` writes them.
    Gzip,
    /// Zstandard, also of several frames. A window is at most 128 MiB, the decoder's own limit.
    Zstd,
}

impl Compression {
    /// The compression that the end of a file name states, and the name without that end.
    pub fn of_name(path: &Path) -> (Compression, &Path) {
        let compression = match path.extension().and_then(|end| end.to_str()) {
            Some(end) if end.eq_ignore_ascii_case("gz") => Compression::Gzip,
            Some(end) if end.eq_ignore_ascii_case("zst") => Compression::Zstd,
            Some(end) if end.eq_ignore_ascii_case("zstd") => Compression::Zstd,
            _ => return (Compression::None, path),
        };
        (compression, path.file_stem().map_or(path, Path::new))
    }

    /// The decompressed bytes of a file.
    ///
    /// # Errors
    /// Those of reading.
    pub fn reader(self, file: File) -> std::io::Result<TextReader> {
        let consumed = Arc::new(AtomicU64::new(0));
        let counted = BufReader::new(Counted { file, consumed: Arc::clone(&consumed) });
        let text: Box<dyn Read> = match self {
            Compression::None => Box::new(counted),
            Compression::Gzip => Box::new(MultiGzDecoder::new(counted)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(counted)?),
        };
        Ok(TextReader { text, consumed })
    }
}

/// The text of a file, and how many bytes of the file were read for it.
pub struct TextReader {
    text: Box<dyn Read>,
    consumed: Arc<AtomicU64>,
}

impl TextReader {
    /// The counter of bytes that were read from the file.
    pub fn consumed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.consumed)
    }
}

impl Read for TextReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.text.read(buffer)
    }
}

struct Counted {
    file: File,
    consumed: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.consumed.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_states_the_compression() {
        for (name, compression, without) in [
            ("a.csv", Compression::None, "a.csv"),
            ("d.gz/a.csv", Compression::None, "d.gz/a.csv"),
            ("a.csv.gz", Compression::Gzip, "a.csv"),
            ("a.json.ZST", Compression::Zstd, "a.json"),
            ("a.jsonl.zstd", Compression::Zstd, "a.jsonl"),
        ] {
            assert_eq!(Compression::of_name(Path::new(name)), (compression, Path::new(without)), "{name}");
        }
    }
}
