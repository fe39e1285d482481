//! Filters as text: `PrefixFilter('a') AND (KeyOnlyFilter() OR PageFilter(5))`.
//!
//! The language of HBase's `ParseFilter`, which HBase's shell and gateways parse on the client
//! side. `SKIP` and `WHILE` bind tightest, then `AND`, then `OR`. Text arguments are in single
//! quotes, in which `''` is one quote. Numbers, operators, `true` and `false` are unquoted.
//! Comparators are `'binary:abc'`, `'binaryprefix:abc'`, `'substring:abc'`, `'regexstring:a.*'` and
//! `'regexstringnocase:a.*'`. Text is bytes throughout.
//!
//! Not here: evaluation (`engine::filter`) and the wire format (`wire::filter`).

mod arguments;
mod simple;

use super::{DEPTH_MAX, Filter, ListOperator};

/// Text that is not a filter. The message is that of HBase's `IllegalArgumentException`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAFilter(pub String);

pub(crate) fn refused<T>(message: impl Into<String>) -> Result<T, NotAFilter> {
    Err(NotAFilter(message.into()))
}

/// The filter that `text` describes.
///
/// # Errors
/// [`NotAFilter`].
pub fn parse(text: &[u8]) -> Result<Filter, NotAFilter> {
    let mut parser = Parser { rest: text, depth: 0 };
    let filter = parser.any_of()?;
    match parser.rest.first() {
        None => Ok(filter),
        Some(b')') => refused("Mismatched parenthesis"),
        Some(_) => refused("Incorrect Filter String"),
    }
}

struct Parser<'a> {
    rest: &'a [u8],
    depth: usize,
}

impl<'a> Parser<'a> {
    fn any_of(&mut self) -> Result<Filter, NotAFilter> {
        self.list("OR", ListOperator::MustPassOne, Parser::all_of)
    }

    fn all_of(&mut self) -> Result<Filter, NotAFilter> {
        self.list("AND", ListOperator::MustPassAll, Parser::one)
    }

    /// Parses filters separated by `word`. A single filter is returned as it is.
    fn list(
        &mut self,
        word: &str,
        operator: ListOperator,
        part: fn(&mut Self) -> Result<Filter, NotAFilter>,
    ) -> Result<Filter, NotAFilter> {
        let first = part(self)?;
        let mut filters = vec![first];
        while self.take_word(word) {
            if self.at_end() {
                return refused(format!("Incorrect input string - an {word} needs two filters"));
            }
            filters.push(part(self)?);
        }
        match filters.len() {
            1 => Ok(filters.remove(0)),
            _ => Ok(Filter::List { operator, filters }),
        }
    }

    fn one(&mut self) -> Result<Filter, NotAFilter> {
        if self.take_word("SKIP") {
            return self.inner("SKIP").map(|filter| Filter::Skip(Box::new(filter)));
        }
        if self.take_word("WHILE") {
            return self.inner("WHILE").map(|filter| Filter::WhileMatch(Box::new(filter)));
        }
        self.skip_blank();
        match self.rest {
            [b'(', rest @ ..] => {
                self.rest = rest;
                let filter = self.deeper(Parser::any_of)?;
                self.skip_blank();
                match self.rest {
                    [b')', rest @ ..] => self.rest = rest,
                    _ => return refused("Mismatched parenthesis"),
                }
                Ok(filter)
            }
            _ => simple::filter(self.simple_expression()?),
        }
    }

    fn inner(&mut self, word: &str) -> Result<Filter, NotAFilter> {
        match self.at_end() {
            true => refused(format!("Incorrect input string - a {word} needs a filter")),
            false => self.deeper(Parser::one),
        }
    }

    fn deeper(&mut self, part: fn(&mut Self) -> Result<Filter, NotAFilter>) -> Result<Filter, NotAFilter> {
        if self.depth == DEPTH_MAX {
            return refused(format!("filters nested more than {DEPTH_MAX} levels deep"));
        }
        self.depth += 1;
        let filter = part(self);
        self.depth -= 1;
        filter
    }

    /// Takes a name and its arguments up to the closing bracket outside quotes.
    fn simple_expression(&mut self) -> Result<&'a [u8], NotAFilter> {
        let mut in_quotes = false;
        for (at, byte) in self.rest.iter().enumerate() {
            match byte {
                b'\'' => in_quotes = !in_quotes,
                b')' if !in_quotes => {
                    let (expression, rest) = self.rest.split_at(at + 1);
                    self.rest = rest;
                    return Ok(expression);
                }
                _ => {}
            }
        }
        refused("Incorrect Filter String")
    }

    /// Takes an operator: a word in capitals, followed by a blank or a bracket.
    fn take_word(&mut self, word: &str) -> bool {
        self.skip_blank();
        match self.rest.strip_prefix(word.as_bytes()) {
            Some(rest @ [b' ' | b'\t' | b'(', ..]) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn at_end(&mut self) -> bool {
        self.skip_blank();
        self.rest.is_empty()
    }

    fn skip_blank(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::filter::{Comparator, Compare, CompareOp, Pattern};

    fn parsed(text: &str) -> Filter {
        parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn prefix(text: &'static str) -> Filter {
        Filter::Prefix(Some(Bytes::from_static(text.as_bytes())))
    }

    fn list(operator: ListOperator, filters: Vec<Filter>) -> Filter {
        Filter::List { operator, filters }
    }

    #[test]
    fn operators_bind_as_in_hbase() {
        use ListOperator::{MustPassAll, MustPassOne};
        let (a, b, c) = (prefix("a"), prefix("b"), prefix("c"));
        assert_eq!(
            parsed("PrefixFilter('a') OR PrefixFilter('b') AND PrefixFilter('c')"),
            list(MustPassOne, vec![a.clone(), list(MustPassAll, vec![b.clone(), c.clone()])])
        );
        assert_eq!(
            parsed("(PrefixFilter('a') OR PrefixFilter('b')) AND(PrefixFilter('c'))"),
            list(MustPassAll, vec![list(MustPassOne, vec![a.clone(), b.clone()]), c.clone()])
        );
        assert_eq!(
            parsed("PrefixFilter('a') AND PrefixFilter('b') AND PrefixFilter('c')"),
            list(MustPassAll, vec![a.clone(), b.clone(), c])
        );
        assert_eq!(
            parsed("SKIP PrefixFilter('a') AND WHILE PrefixFilter('b')"),
            list(MustPassAll, vec![Filter::Skip(Box::new(a)), Filter::WhileMatch(Box::new(b))])
        );
    }

    #[test]
    fn text_in_quotes_is_bytes() {
        assert_eq!(parsed("PrefixFilter ('it''s (a) AND b')"), prefix("it's (a) AND b"));
        let found = parse(b"PrefixFilter('\x00\xff')").unwrap();
        assert_eq!(found, Filter::Prefix(Some(Bytes::from_static(b"\x00\xff"))));
    }

    #[test]
    fn comparisons_take_an_operator_and_a_comparator() {
        let compare = |op, comparator| Filter::Value(Compare { op, comparator });
        assert_eq!(
            parsed("ValueFilter(>=, 'binaryprefix:a:b')"),
            compare(CompareOp::GreaterOrEqual, Comparator::BinaryPrefix("a:b".into()))
        );
        assert_eq!(
            parsed("ValueFilter(=,'substring:AB')"),
            compare(CompareOp::Equal, Comparator::Substring("ab".into()))
        );
        let pattern = |flags| {
            Comparator::Regex(Pattern {
                source: "a.*".into(),
                flags,
                charset: "UTF-8".into(),
                engine: "JAVA".into(),
            })
        };
        assert_eq!(parsed("ValueFilter(!=, 'regexstring:a.*')"), compare(CompareOp::NotEqual, pattern(32)));
        assert_eq!(parsed("ValueFilter(=, 'regexstringnocase:a.*')"), compare(CompareOp::Equal, pattern(34)));
    }

    #[test]
    fn invalid_filters_have_the_messages_of_hbase() {
        let check =
            |text: &str, message: &str| assert_eq!(parse(text.as_bytes()), refused(message), "{text}");
        check("PrefixFilter('a'", "Incorrect Filter String");
        check("NoSuchFilter()", "Filter Name NoSuchFilter not supported");
        check("PageFilter('x')", "Incorrect filter string PageFilter('x')");
        check("(PrefixFilter('a')", "Mismatched parenthesis");
        check("PrefixFilter('a'))", "Mismatched parenthesis");
        check("PrefixFilter('a') PrefixFilter('b')", "Incorrect Filter String");
        check("PrefixFilter('a') AND ", "Incorrect input string - an AND needs two filters");
        check("SKIP ", "Incorrect input string - a SKIP needs a filter");
        for text in
            ["", "()", ")", "(", "'", "AND", "Prefix", "PageFilter()", "PageFilter('x')", "ValueFilter(=)"]
        {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        let deep = "(".repeat(100_000);
        assert!(parse(deep.as_bytes()).is_err());
        assert!(parse("SKIP ".repeat(100_000).as_bytes()).is_err());
    }
}
