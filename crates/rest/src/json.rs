//! JSON: a reader that does not build a tree, and text for the writers.
//!
//! A tree of a large body would need many times its memory. The reader calls the caller for each
//! member and element, and accepts what Jackson accepts by default.

/// Maximum nesting depth of values that are skipped or read.
const DEPTH_MAX: usize = 32;

/// The text is not the expected JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotJson;

pub(crate) type Result<T> = std::result::Result<T, NotJson>;

/// Reads values of a JSON text in sequence.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Reader<'a> {
        Reader { rest: text, depth: 0 }
    }

    /// The next character that is not white space, without consuming it.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let at = self.rest.iter().position(|byte| !b" \t\r\n".contains(byte)).unwrap_or(self.rest.len());
        self.rest = &self.rest[at..];
        self.rest.first().copied()
    }

    fn take(&mut self, expected: u8) -> Result<()> {
        match self.peek() {
            Some(found) if found == expected => {
                self.rest = &self.rest[1..];
                Ok(())
            }
            _ => Err(NotJson),
        }
    }

    /// Consumes `null`, if that is next.
    pub(crate) fn null(&mut self) -> bool {
        self.peek();
        match self.rest.strip_prefix(b"null") {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Reads an object; `member` reads the value of each name.
    pub(crate) fn object(&mut self, mut member: impl FnMut(&mut Self, &str) -> Result<()>) -> Result<()> {
        self.nested(b'{', b'}', |reader| {
            let name = reader.string()?;
            reader.take(b':')?;
            member(reader, &name)
        })
    }

    /// Reads an array; `element` reads each element.
    pub(crate) fn array(&mut self, element: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.nested(b'[', b']', element)
    }

    fn nested(&mut self, open: u8, close: u8, mut part: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.take(open)?;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(NotJson);
        }
        if self.peek() != Some(close) {
            loop {
                part(self)?;
                match self.peek() {
                    Some(b',') => self.take(b',')?,
                    _ => break,
                }
            }
        }
        self.depth -= 1;
        self.take(close)
    }

    /// Reads a string.
    pub(crate) fn string(&mut self) -> Result<String> {
        self.take(b'"')?;
        let mut end = 0;
        loop {
            match self.rest.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
                None => return Err(NotJson),
            }
        }
        let inner = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        match inner.contains(&b'\\') {
            false => String::from_utf8(inner.to_vec()).map_err(|_| NotJson),
            true => unescaped(inner),
        }
    }

    /// Reads a string, number or boolean as text.
    pub(crate) fn scalar(&mut self) -> Result<String> {
        if self.peek() == Some(b'"') {
            return self.string();
        }
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let end = self.rest.iter().position(|byte| !is_part(byte)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let is_number = matches!(word.first(), Some(b'-' | b'0'..=b'9'))
            && std::str::from_utf8(word).is_ok_and(|word| word.parse::<f64>().is_ok());
        if !is_number && word != b"true" && word != b"false" {
            return Err(NotJson);
        }
        self.rest = rest;
        String::from_utf8(word.to_vec()).map_err(|_| NotJson)
    }

    /// Reads an integer, or a string that contains one.
    pub(crate) fn integer(&mut self) -> Result<i64> {
        self.scalar()?.trim().parse().map_err(|_| NotJson)
    }

    /// Checks that nothing but white space is left.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.peek().map_or(Ok(()), |_| Err(NotJson))
    }
}

/// Resolves escapes; serde_json has them all.
fn unescaped(inner: &[u8]) -> Result<String> {
    let quoted = [b"\"", inner, b"\""].concat();
    serde_json::from_slice(&quoted).map_err(|_| NotJson)
}

/// Appends `text` as a JSON string.
pub(crate) fn quote_to(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("writing to memory does not fail");
}

/// Appends `"name":`.
pub(crate) fn name_to(out: &mut Vec<u8>, name: &str) {
    quote_to(out, name);
    out.push(b':');
}

/// Appends a separator and `"name":`.
pub(crate) fn member_to(out: &mut Vec<u8>, separator: u8, name: &str) {
    out.push(separator);
    name_to(out, name);
}

/// Appends the elements of an array with separators; `write` appends one.
pub(crate) fn array_to<T>(
    out: &mut Vec<u8>,
    elements: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (at, element) in elements.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, element);
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        let mut reader = Reader::new(text.as_bytes());
        reader.object(|reader, name| {
            found.push(name.to_owned());
            match reader.peek() {
                Some(b'[') => reader.array(|reader| {
                    found.push(reader.scalar()?);
                    Ok(())
                }),
                _ if reader.null() => Ok(()),
                _ => {
                    found.push(reader.scalar()?);
                    Ok(())
                }
            }
        })?;
        reader.end()?;
        Ok(found)
    }

    #[test]
    fn objects_arrays_and_scalars_are_read() {
        let text = r#" {"a" : [1, "x\u00e4\n", true], "b":null,"c":-2.5e3 , "d":[]} "#;
        assert_eq!(read(text).unwrap(), ["a", "1", "xä\n", "true", "b", "c", "-2.5e3", "d"]);
        assert_eq!(read("{}").unwrap(), [""; 0]);
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in [
            "",
            "{",
            "{\"a\"}",
            "{\"a\":1",
            "{\"a\":1,}",
            "{\"a\":x}",
            "{} x",
            "{\"a\":\"",
            "{\"a\":\"\\",
            "[]",
        ] {
            assert_eq!(read(text), Err(NotJson), "{text}");
        }
    }

    #[test]
    fn depth_is_limited() {
        fn nested(reader: &mut Reader<'_>) -> Result<()> {
            reader.array(
                |inner| if inner.peek() == Some(b'[') { nested(inner) } else { inner.integer().map(drop) },
            )
        }
        let text = |depth: usize| "[".repeat(depth) + "1" + &"]".repeat(depth);
        assert_eq!(nested(&mut Reader::new(text(DEPTH_MAX).as_bytes())), Ok(()));
        assert_eq!(nested(&mut Reader::new(text(100_000).as_bytes())), Err(NotJson));
    }
}
