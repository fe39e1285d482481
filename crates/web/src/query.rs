//! The query string of a URL: strict parsing, and writing with changed values.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::Refusal;

/// Names and values of a query string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    /// Parses `name=value&…`. If a name occurs twice, the last value counts.
    ///
    /// # Errors
    /// If a part is not valid percent-encoded UTF-8.
    pub fn parse(text: &str) -> Result<Query, Refusal> {
        let mut query = Query::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let part = |part| {
                decoded(part)
                    .ok_or_else(|| Refusal::bad(format!("“{pair}” is not valid percent-encoded UTF-8.")))
            };
            query.0.insert(part(name)?, part(value)?);
        }
        Ok(query)
    }

    /// The value of a name, if there is one and it is not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The value of a name as an integer of at least 1.
    ///
    /// # Errors
    /// If the value is anything else.
    pub fn number(&self, name: &str) -> Result<Option<usize>, Refusal> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(Refusal::bad(format!("“{name}” must be an integer of at least 1, not “{text}”."))),
        }
    }

    /// The value of a name, which must be one of the words in `known`.
    ///
    /// # Errors
    /// If it is none of them. The message lists the known words.
    pub fn word(&self, name: &str, known: &[&'static str]) -> Result<Option<&'static str>, Refusal> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match known.iter().find(|word| **word == text) {
            Some(word) => Ok(Some(word)),
            None => Err(Refusal::bad(format!("“{name}” must be one of {}, not “{text}”.", known.join(", ")))),
        }
    }

    /// A copy with another value for a name, or without it.
    pub fn with(&self, name: &str, value: Option<&str>) -> Query {
        let mut changed = self.clone();
        match value {
            Some(value) => changed.0.insert(name.to_owned(), value.to_owned()),
            None => changed.0.remove(name),
        };
        changed
    }

    /// Names and their values, without empty values.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// `path` followed by the query string with its question mark; only `path` if the query is
    /// empty.
    pub fn append_to(&self, path: &str) -> String {
        let mut address = path.to_owned();
        for (at, (name, value)) in self.pairs().enumerate() {
            let _ =
                write!(address, "{}{}={}", if at == 0 { '?' } else { '&' }, encoded(name), encoded(value));
        }
        address
    }
}

/// An address with one name and value in its query string.
pub fn address(path: &str, name: &str, value: &str) -> String {
    Query::default().with(name, Some(value)).append_to(path)
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

fn encoded(text: &str) -> String {
    let mut address = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:,".contains(&byte) {
            address.push(char::from(byte));
        } else {
            let _ = write!(address, "%{byte:02X}");
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_values_are_parsed() {
        let query = Query::default().with("name", Some("a b&c=%/ä<")).with("page", Some("2"));
        let address = query.append_to("/region");
        assert_eq!(address, "/region?name=a%20b%26c%3D%25%2F%C3%A4%3C&page=2");
        assert_eq!(Query::parse(address.split_once('?').unwrap().1).unwrap(), query);
        assert_eq!(query.with("page", None).with("name", None).append_to("/x"), "/x");
    }

    #[test]
    fn browsers_forms_are_read_too() {
        let query = Query::parse("table=a+b&&empty=&flag&table=c+d").unwrap();
        assert_eq!((query.get("table"), query.get("empty"), query.get("flag")), (Some("c d"), None, None));
    }

    #[test]
    fn invalid_queries_are_rejected() {
        for text in ["a=%", "a=%4", "a=%zz", "%ff=b", "a=%c3"] {
            assert_eq!(Query::parse(text).unwrap_err().status, 400, "{text}");
        }
        let query = Query::parse("page=0&sort=up&size=-1&n=3").unwrap();
        assert!(query.number("page").is_err() && query.number("size").is_err());
        assert_eq!((query.number("n").unwrap(), query.number("none").unwrap()), (Some(3), None));
        let refusal = query.word("sort", &["name", "reads"]).unwrap_err();
        assert!(
            refusal.reason.contains("name, reads") && refusal.reason.contains("up"),
            "{}",
            refusal.reason
        );
    }
}
