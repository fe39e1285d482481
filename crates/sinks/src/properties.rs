//! Files of Java's properties, as Hadoop reads `hadoop-metrics2-hbase.properties`.
//!
//! Bounded and closed: no other file is read (`include`), nothing but the file's own keys stands for `${…}`.

/// A configuration of any real cluster is a hundredth of this.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// Keys of a file: so many are looked through in no time, however they are asked for.
const PROPERTIES_MAX: usize = 2000;
/// Values that stand in one, and in those, all together.
const SUBSTITUTIONS_MAX: usize = 100;
/// The longest value with all that stands in it.
const VALUE_LEN_MAX: usize = 64 << 10;

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Property {
    pub(crate) key: String,
    pub(crate) value: String,
    /// The line where it begins, from 1.
    pub(crate) line: usize,
}

/// What is wrong with a file, and on which line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) line: usize,
    pub(crate) what: String,
}

/// The properties of a file in its order; of a key that stands twice the last.
pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<Property>, Malformed> {
    let malformed = |line: usize, what: String| Malformed { line, what };
    if bytes.len() > FILE_BYTES_MAX {
        return Err(malformed(1, format!("more than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    // Keys and what is meant by values is ASCII; letters of other encodings stand in comments.
    let text = String::from_utf8_lossy(bytes);
    let mut properties: Vec<Property> = Vec::new();
    for (line, logical) in logical_lines(text.strip_prefix('\u{feff}').unwrap_or(&text)) {
        let property = property(line, &logical).map_err(|what| malformed(line, what))?;
        let earlier = properties.iter().position(|earlier| earlier.key == property.key);
        match earlier {
            Some(at) => properties[at] = property,
            None if properties.len() == PROPERTIES_MAX => {
                return Err(malformed(line, format!("more than {PROPERTIES_MAX} keys")));
            }
            None => properties.push(property),
        }
    }
    let raw = properties.clone();
    for property in &mut properties {
        property.value = substituted(&property.value, &raw, &mut { SUBSTITUTIONS_MAX })
            .map_err(|what| malformed(property.line, what))?;
    }
    Ok(properties)
}

/// Lines with those joined that a backslash leads on to, without comments and empty ones.
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
        return Err("no key stands before the value".to_owned());
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
                    // Halves of a pair mean nothing alone.
                    Some(code) => plain.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
                    None => return Err(format!("four hexadecimal digits stand behind \\u, not '{digits}'")),
                }
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    Ok(plain)
}

/// `text` with the values of other keys where it has `${KEY}`, of which `left` are allowed; what is no key stays.
fn substituted(text: &str, all: &[Property], left: &mut usize) -> Result<String, String> {
    let (mut made, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once("${") {
        made.push_str(before);
        let Some((key, behind)) = behind.split_once('}') else {
            rest = &rest[before.len()..];
            break;
        };
        match all.iter().find(|property| property.key == key) {
            Some(property) => {
                *left = left.checked_sub(1).ok_or("values that stand for one another without end")?;
                made.push_str(&substituted(&property.value, all, left)?);
            }
            None => made.extend(["${", key, "}"]),
        }
        if made.len() > VALUE_LEN_MAX {
            return Err("a value that grows without end".to_owned());
        }
        rest = behind;
    }
    made.push_str(rest);
    Ok(made)
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
    fn keys_stand_for_values() {
        check("a=x\nb=${a}y${a}\nc=${d}${", &[("a", "x"), ("b", "xyx"), ("c", "${d}${")]);
    }

    #[test]
    fn what_cannot_be_meant_has_a_line() {
        let refused = |text: &str| {
            let Malformed { line, what } = parse(text.as_bytes()).unwrap_err();
            format!("{line}: {what}")
        };
        assert_eq!(refused("a=1\n=2"), "2: no key stands before the value");
        assert_eq!(refused("a=\\u12"), "1: four hexadecimal digits stand behind \\u, not '12'");
        assert_eq!(refused("a=${b}\nb=${a}"), "1: values that stand for one another without end");
        let doubling: String = (1..40).map(|n| format!("k{n}=${{k{0}}}${{k{0}}}\n", n - 1)).collect();
        assert!(refused(&format!("k0=\n{doubling}")).contains("without end"));
        let grows = format!("k0={}\nk1={}\n", "x".repeat(10_000), "${k0}".repeat(10));
        assert!(refused(&grows).contains("grows without end"));
        assert!(refused(&"x".repeat(FILE_BYTES_MAX + 1)).contains("more than 1 MiB"));
        assert!(parse(b"a=\xff\xfe\n").is_ok(), "other encodings");
        let many: String = (0..=PROPERTIES_MAX).map(|n| format!("k{n}=\n")).collect();
        assert_eq!(refused(&many), "2001: more than 2000 keys");
    }
}
