//! Boundaries of records in text: lines of JSON, and lines of CSV, whose quoted fields may contain
//! line ends.

use std::io::Read;

use bytes::{Bytes, BytesMut};

/// Bytes that are read from a file at a time.
const READ_BYTES: usize = 1 << 20;
/// Maximum size in bytes of one record; a larger one is an unclosed quote, or not this format.
pub const RECORD_BYTES_MAX: usize = 64 << 20;

/// How records end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// Lines, in which a quote protects delimiters and line ends.
    Csv {
        /// The byte between two fields.
        delimiter: u8,
    },
    /// Lines.
    Lines,
}

/// Finds the ends of records in successive parts of a file.
#[derive(Debug, Clone)]
struct EndFinder {
    records: Records,
    in_quotes: bool,
    /// Whether the next byte begins a field: only there does a quote open a quoted field.
    at_field: bool,
    /// Whether the current line has a byte other than a line end: empty lines are not records.
    has_content: bool,
}

impl EndFinder {
    fn new(records: Records) -> EndFinder {
        EndFinder { records, in_quotes: false, at_field: true, has_content: false }
    }

    /// Whether a record ends with this byte.
    fn ends(&mut self, byte: u8) -> bool {
        let is_end = byte == b'\n' && !self.in_quotes;
        if is_end {
            self.at_field = true;
            return std::mem::take(&mut self.has_content);
        }
        self.has_content |= byte != b'\r' && byte != b'\n';
        if let Records::Csv { delimiter } = self.records {
            match byte {
                // A doubled quote closes and opens again.
                b'"' if self.in_quotes => {
                    self.in_quotes = false;
                    self.at_field = true;
                }
                b'"' if self.at_field => self.in_quotes = true,
                _ => self.at_field = !self.in_quotes && byte == delimiter,
            }
        }
        false
    }
}

/// Splits bytes of complete records into records, with their line ends.
pub fn split(bytes: &[u8], records: Records) -> Vec<&[u8]> {
    let mut finder = EndFinder::new(records);
    let (mut found, mut start) = (Vec::new(), 0);
    for (at, byte) in bytes.iter().enumerate() {
        if finder.ends(*byte) {
            found.push(&bytes[start..=at]);
            start = at + 1;
        }
    }
    if finder.has_content {
        found.push(&bytes[start..]);
    }
    found
}

/// The number of fields of a CSV record.
pub fn field_count(record: &[u8], delimiter: u8) -> usize {
    let mut finder = EndFinder::new(Records::Csv { delimiter });
    let delimiters = record.iter().filter(|byte| {
        finder.ends(**byte);
        **byte == delimiter && finder.at_field
    });
    delimiters.count() + 1
}

/// Some complete records of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Their bytes.
    pub bytes: Bytes,
    /// Position of the first byte in the file.
    pub start: u64,
    /// Number of the first record, from 0.
    pub first_record: u64,
    /// Number of records.
    pub records: u64,
}

/// Reads a file as chunks of complete records. Memory is bounded by the size of a chunk and of a
/// record.
pub struct Chunks<R> {
    file: R,
    finder: EndFinder,
    chunk_bytes: usize,
    /// Bytes that are read but not returned.
    buffer: BytesMut,
    /// How many of them were searched.
    searched: usize,
    /// The end of the last record among the searched bytes.
    last_end: usize,
    /// The number of records that end among the searched bytes.
    ended: u64,
    start: u64,
    first_record: u64,
    at_end: bool,
}

impl<R: Read> Chunks<R> {
    /// Chunks of at least `chunk_bytes`, except the last one.
    pub fn new(file: R, records: Records, chunk_bytes: usize) -> Chunks<R> {
        Chunks {
            file,
            finder: EndFinder::new(records),
            chunk_bytes,
            buffer: BytesMut::new(),
            searched: 0,
            last_end: 0,
            ended: 0,
            start: 0,
            first_record: 0,
            at_end: false,
        }
    }

    /// The first record alone, which is the header of a CSV file; `None` for an empty file.
    ///
    /// # Errors
    /// Those of reading.
    pub fn header(&mut self) -> std::io::Result<Option<Bytes>> {
        self.next_of(1).map(|chunk| {
            // The header is not counted.
            self.first_record = 0;
            chunk.map(|chunk| chunk.bytes)
        })
    }

    /// The next records.
    ///
    /// # Errors
    /// Those of reading.
    pub fn next_chunk(&mut self) -> std::io::Result<Option<Chunk>> {
        self.next_of(self.chunk_bytes)
    }

    /// Records of at least `bytes_min` together.
    fn next_of(&mut self, bytes_min: usize) -> std::io::Result<Option<Chunk>> {
        loop {
            while self.searched < self.buffer.len() {
                let byte = self.buffer[self.searched];
                self.searched += 1;
                if self.finder.ends(byte) {
                    self.last_end = self.searched;
                    self.ended += 1;
                    if self.last_end >= bytes_min {
                        return Ok(Some(self.take(self.last_end)));
                    }
                }
            }
            if self.at_end {
                // The last record may lack a line end.
                if std::mem::take(&mut self.finder.has_content) {
                    self.last_end = self.buffer.len();
                    self.ended += 1;
                }
                return Ok((self.ended > 0).then(|| self.take(self.last_end)));
            }
            if self.buffer.len() - self.last_end > RECORD_BYTES_MAX {
                return Err(std::io::Error::other(format!(
                    "row {} is longer than {} MiB; is a quote not closed?",
                    self.first_record + self.ended + 1,
                    RECORD_BYTES_MAX >> 20
                )));
            }
            self.fill()?;
        }
    }

    fn take(&mut self, end: usize) -> Chunk {
        let bytes = self.buffer.split_to(end).freeze();
        let chunk = Chunk { bytes, start: self.start, first_record: self.first_record, records: self.ended };
        self.start += end as u64;
        self.first_record += self.ended;
        self.searched -= end;
        (self.last_end, self.ended) = (0, 0);
        chunk
    }

    fn fill(&mut self) -> std::io::Result<()> {
        let before = self.buffer.len();
        self.buffer.resize(before + READ_BYTES, 0);
        let read = self.file.read(&mut self.buffer[before..]);
        self.buffer.truncate(before + read.as_ref().map_or(0, |read| *read));
        self.at_end = read? == 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: Records = Records::Csv { delimiter: b',' };

    fn texts(text: &str, records: Records) -> Vec<&str> {
        split(text.as_bytes(), records).into_iter().map(|one| std::str::from_utf8(one).unwrap()).collect()
    }

    #[test]
    fn quotes_protect_line_ends() {
        assert_eq!(texts("a,b\n\"x\ny\",2\nc", CSV), ["a,b\n", "\"x\ny\",2\n", "c"]);
        assert_eq!(
            texts("\"say \"\"hi\n\"\"\",1\r\n2,3\r\n", CSV),
            ["\"say \"\"hi\n\"\"\",1\r\n", "2,3\r\n"]
        );
        // A quote inside an unquoted field is an ordinary byte.
        assert_eq!(texts("5\" pipe,1\n6\" pipe,2\n", CSV), ["5\" pipe,1\n", "6\" pipe,2\n"]);
        // Empty lines are not records; they belong to the next one.
        assert_eq!(texts("a\n\n\r\nb\n\n", CSV), ["a\n", "\n\r\nb\n"]);
        assert_eq!(texts("{\"a\":\"\\\"\"}\n{}\n", Records::Lines), ["{\"a\":\"\\\"\"}\n", "{}\n"]);
    }

    #[test]
    fn quotes_protect_delimiters() {
        for (record, fields) in [
            ("", 1),
            ("a,b\n", 2),
            ("\"a,b\",\"c\"\"\n,d\",\r\n", 3),
            // A quote inside an unquoted field is an ordinary byte.
            ("5\" pipe,a,b\n", 3),
        ] {
            assert_eq!(field_count(record.as_bytes(), b','), fields, "{record}");
        }
    }

    /// Whatever the sizes, chunks together are the records of the file, with their numbers.
    #[test]
    fn chunks_are_complete_records() {
        let mut text = String::from("id,\"na\nme\"\n");
        for row in 0..300 {
            text.push_str(&match row % 4 {
                0 => format!("{row},\"line\nend\"\n"),
                1 => format!("{row},\"a \"\"quoted\"\" word\"\r\n"),
                2 => format!("{row},\n\n"),
                _ => format!("{row},{}\n", "x".repeat(row)),
            });
        }
        text.push_str("last,1");
        let records = split(text.as_bytes(), CSV).len() as u64 - 1;
        for chunk_bytes in [1, 7, 64, 1000, 1 << 20] {
            let mut chunks = Chunks::new(text.as_bytes(), CSV, chunk_bytes);
            let mut joined = chunks.header().unwrap().unwrap().to_vec();
            assert_eq!(joined, b"id,\"na\nme\"\n");
            let mut next = 0;
            while let Some(chunk) = chunks.next_chunk().unwrap() {
                assert_eq!(chunk.start, joined.len() as u64);
                assert_eq!(chunk.first_record, next);
                assert_eq!(split(&chunk.bytes, CSV).len() as u64, chunk.records);
                next += chunk.records;
                joined.extend_from_slice(&chunk.bytes);
            }
            assert_eq!(next, records);
            assert_eq!(joined, text.as_bytes());
        }
        assert_eq!(Chunks::new(&b"\n\n"[..], CSV, 1).next_chunk().unwrap(), None);
    }
}
