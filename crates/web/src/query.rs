//! What stands behind the question mark of an address: read strictly, and written anew with a change.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::Refusal;

/// Names and values of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    /// Takes `name=value&…` apart; of a name that is given twice the last value counts.
    ///
    /// # Errors
    /// A refusal if something in it is no text in UTF-8 as browsers write it into addresses.
    pub fn parse(text: &str) -> Result<Query, Refusal> {
        let mut query = Query::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let part = |part| {
                decoded(part)
                    .ok_or_else(|| Refusal::bad(format!("The address has “{pair}” in it, which is no text.")))
            };
            query.0.insert(part(name)?, part(value)?);
        }
        Ok(query)
    }

    /// The value of a name, if there is one that is not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A whole number from 1 on.
    ///
    /// # Errors
    /// A refusal if it is anything else.
    pub fn number(&self, name: &str) -> Result<Option<usize>, Refusal> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(Refusal::bad(format!("“{name}” is a whole number from 1 on, not “{text}”."))),
        }
    }

    /// One of the words that are `known`.
    ///
    /// # Errors
    /// A refusal that says which they are.
    pub fn word(&self, name: &str, known: &[&'static str]) -> Result<Option<&'static str>, Refusal> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match known.iter().find(|word| **word == text) {
            Some(word) => Ok(Some(word)),
            None => Err(Refusal::bad(format!("“{name}” is one of {}, not “{text}”.", known.join(", ")))),
        }
    }

    /// The same with another value for a name, or with none.
    pub fn with(&self, name: &str, value: Option<&str>) -> Query {
        let mut changed = self.clone();
        match value {
            Some(value) => changed.0.insert(name.to_owned(), value.to_owned()),
            None => changed.0.remove(name),
        };
        changed
    }

    /// Names and values that are not empty.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// As it stands behind a path, with the question mark; the path alone if there is nothing in it.
    pub fn behind(&self, path: &str) -> String {
        let mut address = path.to_owned();
        for (at, (name, value)) in self.pairs().enumerate() {
            let _ =
                write!(address, "{}{}={}", if at == 0 { '?' } else { '&' }, encoded(name), encoded(value));
        }
        address
    }
}

/// An address with one name and value in its query.
pub fn address(path: &str, name: &str, value: &str) -> String {
    Query::default().with(name, Some(value)).behind(path)
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
    fn what_is_written_is_read() {
        let query = Query::default().with("name", Some("a b&c=%/ä<")).with("page", Some("2"));
        let address = query.behind("/region");
        assert_eq!(address, "/region?name=a%20b%26c%3D%25%2F%C3%A4%3C&page=2");
        assert_eq!(Query::parse(address.split_once('?').unwrap().1).unwrap(), query);
        assert_eq!(query.with("page", None).with("name", None).behind("/x"), "/x");
    }

    #[test]
    fn browsers_forms_are_read_too() {
        let query = Query::parse("table=a+b&&empty=&flag&table=c+d").unwrap();
        assert_eq!((query.get("table"), query.get("empty"), query.get("flag")), (Some("c d"), None, None));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for text in ["a=%", "a=%4", "a=%zz", "%ff=b", "a=%c3"] {
            assert_eq!(Query::parse(text).unwrap_err().status, 400, "{text}");
        }
        let query = Query::parse("page=0&sort=up&size=-1&n=3").unwrap();
        assert!(query.number("page").is_err() && query.number("size").is_err());
        assert_eq!((query.number("n").unwrap(), query.number("none").unwrap()), (Some(3), None));
        let refusal = query.word("sort", &["name", "reads"]).unwrap_err();
        assert!(refusal.what.contains("name, reads") && refusal.what.contains("up"), "{}", refusal.what);
    }
}
