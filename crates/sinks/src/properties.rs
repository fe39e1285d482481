//! Java properties files, as Hadoop reads `hadoop-metrics2-hbase.properties`.
//!
//! Bounded and self-contained: no other file is read (`include`), and `${…}` refers only to keys of
//! the same file.

/// Maximum file size in bytes: a hundred times the size in any real cluster.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// Maximum number of keys in a file: few enough for linear searches.
const PROPERTIES_MAX: usize = 2000;
/// Maximum number of substitutions in one value, including nested ones.
const SUBSTITUTIONS_MAX: usize = 100;
/// Maximum length of a value after substitution.
const VALUE_LEN_MAX: usize = 64 << 10;

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Property {
    pub(crate) key: String,
    pub(crate) value: String,
    /// The number of its first line, from 1.
    pub(crate) line: usize,
}

/// An error in a file, and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PropertyError {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// Parses the properties of a file in their order; of a duplicate key, the last value counts.
pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<Property>, PropertyError> {
    let error = |line: usize, message: String| PropertyError { line, message };
    if bytes.len() > FILE_BYTES_MAX {
        return Err(error(1, format!("more than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    // Keys and meaningful values are ASCII; other encodings occur only in comments.
    let text = String::from_utf8_lossy(bytes);
    let mut properties: Vec<Property> = Vec::new();
    for (line, logical) in logical_lines(text.strip_prefix('\u{feff}').unwrap_or(&text)) {
        let property = property(line, &logical).map_err(|message| error(line, message))?;
        let earlier = properties.iter().position(|earlier| earlier.key == property.key);
        match earlier {
            Some(at) => properties[at] = property,
            None if properties.len() == PROPERTIES_MAX => {
                return Err(error(line, format!("more than {PROPERTIES_MAX} keys")));
            }
            None => properties.push(property),
        }
    }
    let raw = properties.clone();
    for property in &mut properties {
        property.value = substituted(&property.value, &raw, &mut { SUBSTITUTIONS_MAX })
            .map_err(|message| error(property.line, message))?;
    }
    Ok(properties)
}

/// Joins lines that end with a backslash, and removes comments and empty lines.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let (begin, mut joined) = match open.take() {
            Some(open) => open,
            None if line.is_empty() || line.starts_with(['#', '!']) => continue,
            None => (at + 1, String::new()),
        };
        let slashes = line.len() - line.trim_end_matches('\\').len();
        if slashes % 2 == 1 {
            joined.push_str(&line[..line.len() - 1]);
            open = Some((begin, joined));
        } else {
            joined.push_str(line);
            lines.push((begin, joined));
        }
    }
    lines.extend(open);
    lines
}

fn property(line: usize, text: &str) -> Result<Property, String> {
    let mut end = text.len();
    let mut is_escaped = false;
    for (at, letter) in text.char_indices() {
        if !is_escaped && (letter == '=' || letter == ':' || letter.is_whitespace()) {
            end = at;
            break;
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    let rest = text[end..].trim_start();
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim();
    let key = unescaped(&text[..end])?;
    if key.is_empty() {
        return Err("missing key before the value".to_owned());
    }
    Ok(Property { key, value: unescaped(value)?, line })
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            plain.push(letter);
            continue;
        }
        match letters.next() {
            Some('t') => plain.push('\t'),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('f') => plain.push('\u{c}'),
            Some('u') => {
                let digits: String = letters.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
                match code {
                    // Half of a surrogate pair has no meaning alone.
                    Some(code) => plain.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
                    None => {
                        return Err(format!("expected four hexadecimal digits after \\u, not '{digits}'"));
                    }
                }
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    Ok(plain)
}

/// Replaces each `${KEY}` in `text` by the value of that key, with at most `left` substitutions;
/// unknown keys stay as they are.
fn substituted(text: &str, all: &[Property], left: &mut usize) -> Result<String, String> {
    let (mut value, mut rest) = (String::new(), text);
    while let Some((before, tail)) = rest.split_once("${") {
        value.push_str(before);
        let Some((key, tail)) = tail.split_once('}') else {
            rest = &rest[before.len()..];
            break;
        };
        match all.iter().find(|property| property.key == key) {
            Some(property) => {
                *left = left.checked_sub(1).ok_or("too many substitutions of values")?;
                value.push_str(&substituted(&property.value, all, left)?);
            }
            None => value.extend(["${", key, "}"]),
        }
        if value.len() > VALUE_LEN_MAX {
            return Err("value is too long after substitution".to_owned());
        }
        rest = tail;
    }
    value.push_str(rest);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let found = parse(text.as_bytes()).unwrap();
        let found: Vec<_> = found.iter().map(|of| (of.key.as_str(), of.value.as_str())).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn java_reads_them_so() {
        check("# one\n! two\n\n  \na=1\n", &[("a", "1")]);
        check("a = 1 \r\nb: 2\nc 3\nd\ne==", &[("a", "1"), ("b", "2"), ("c", "3"), ("d", ""), ("e", "=")]);
        check("a=1,\\\n   2\nb=3\\\\\nc=4", &[("a", "1,2"), ("b", "3\\"), ("c", "4")]);
        check("a\\=b=\\u0041\\tx\\q", &[("a=b", "A\txq")]);
        check("a=1\nb=2\na=3", &[("a", "3"), ("b", "2")]);
        check("*.sink.file*.class=F", &[("*.sink.file*.class", "F")]);
        check("a=1\\", &[("a", "1")]);
        check("\u{feff}a=1", &[("a", "1")]);
    }

    #[test]
    fn references_expand_to_values() {
        check("a=x\nb=${a}y${a}\nc=${d}${", &[("a", "x"), ("b", "xyx"), ("c", "${d}${")]);
    }

    #[test]
    fn parse_errors_have_a_line() {
        let refused = |text: &str| {
            let PropertyError { line, message } = parse(text.as_bytes()).unwrap_err();
            format!("{line}: {message}")
        };
        assert_eq!(refused("a=1\n=2"), "2: missing key before the value");
        assert_eq!(refused("a=\\u12"), "1: expected four hexadecimal digits after \\u, not '12'");
        assert_eq!(refused("a=${b}\nb=${a}"), "1: too many substitutions of values");
        let doubling: String = (1..40).map(|n| format!("k{n}=${{k{0}}}${{k{0}}}\n", n - 1)).collect();
        assert!(refused(&format!("k0=\n{doubling}")).contains("too many substitutions"));
        let grows = format!("k0={}\nk1={}\n", "x".repeat(10_000), "${k0}".repeat(10));
        assert!(refused(&grows).contains("too long after substitution"));
        assert!(refused(&"x".repeat(FILE_BYTES_MAX + 1)).contains("more than 1 MiB"));
        assert!(parse(b"a=\xff\xfe\n").is_ok(), "other encodings");
        let many: String = (0..=PROPERTIES_MAX).map(|n| format!("k{n}=\n")).collect();
        assert_eq!(refused(&many), "2001: more than 2000 keys");
    }
}
