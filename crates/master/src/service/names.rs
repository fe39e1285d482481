//! Which tables a listing wants: a pattern, a namespace, system tables or not.

use cell::schema::TableName;
use regex::Regex;
use wire::exception::{Answer, JavaException};

/// Longest compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A choice of tables.
pub(super) struct Names {
    pattern: Option<Regex>,
    namespace: Option<String>,
    with_system: bool,
}

impl Names {
    /// A choice by Java pattern (the whole name must match) and namespace.
    ///
    /// # Errors
    /// A pattern that is none, or that needs what a linear-time engine has not (look-around, back references).
    pub(super) fn new(pattern: Option<&str>, namespace: Option<&str>, with_system: bool) -> Answer<Names> {
        let pattern = pattern
            .map(|text| {
                regex::RegexBuilder::new(&format!("^(?:{text})$")).size_limit(PATTERN_BYTES_MAX).build()
            })
            .transpose()
            .map_err(|error| JavaException::do_not_retry(format!("pattern not supported: {error}")))?;
        Ok(Names { pattern, namespace: namespace.map(str::to_string), with_system })
    }

    /// Whether `table` is wanted. The namespace of the default one is not part of the name that is matched.
    pub(super) fn wants(&self, table: &TableName) -> bool {
        (self.with_system || !table.is_system())
            && self.namespace.as_deref().is_none_or(|namespace| namespace == table.namespace())
            && self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(&table.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_name_must_match() {
        let wants = |pattern: &str, name: &str| {
            Names::new(Some(pattern), None, false).unwrap().wants(&TableName::parse(name).unwrap())
        };
        assert!(wants("t.*", "t1") && !wants("t", "t1") && wants("a|t1", "t1"));
        assert!(wants("ns:t.*", "ns:t1") && !wants("t.*", "ns:t1"));
        assert!(!wants(".*", "hbase:meta"), "system tables only when asked for");
    }

    #[test]
    fn patterns_that_need_backtracking_are_refused() {
        assert!(Names::new(Some("(?=t)t"), None, false).is_err());
        assert!(Names::new(Some("("), None, false).is_err());
    }
}
