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
        // Clients other than HBase's own say so that they want all namespaces.
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        Ok(Names { pattern, namespace: namespace.map(str::to_string), with_system })
    }

    /// The only namespace whose tables are wanted, which must exist.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Whether `table` is wanted. A table of the default namespace may be matched with and without it.
    pub(super) fn wants(&self, table: &TableName) -> bool {
        (self.with_system || !table.is_system())
            && self.namespace.as_deref().is_none_or(|namespace| namespace == table.namespace())
            && self.pattern.as_ref().is_none_or(|pattern| matches(pattern, table))
    }
}

fn matches(pattern: &Regex, table: &TableName) -> bool {
    let name = table.to_string();
    pattern.is_match(&name) || (!name.contains(':') && pattern.is_match(&format!("default:{name}")))
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
    fn the_default_namespace_may_be_named() {
        let wants = |pattern: &str| {
            Names::new(Some(pattern), None, false).unwrap().wants(&TableName::parse("t1").unwrap())
        };
        assert!(wants("default:t.*") && !wants("other:t.*"));
    }

    #[test]
    fn an_empty_namespace_is_none() {
        let names = Names::new(Some(".*"), Some(""), false).unwrap();
        assert!(names.namespace().is_none() && names.wants(&TableName::parse("ns:t1").unwrap()));
    }

    #[test]
    fn patterns_that_need_backtracking_are_refused() {
        assert!(Names::new(Some("(?=t)t"), None, false).is_err());
        assert!(Names::new(Some("("), None, false).is_err());
    }
}
